"""Which clients may connect? Those in the list of the cluster's key folder, reread whenever it changes.

    # one client in each line: its name, and the public half of its key
    ada   rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7

The reader skips a malformed line and logs it, so that a typo in one line does not prevent the removal of
another client. A missing list admits nobody. If the list cannot be read at the moment, its last contents
hold.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from ..errors import MisuseError
from ..limits import CLIENT_KEYS_MAX, CLIENT_LIST_BYTES_MAX
from .keys import ClusterKeys, check_name, check_public

__all__ = ["AllowList", "read_list"]

_log = logging.getLogger("timely")
_NEVER_READ: Final = (-2, 0, 0)
_NOT_THERE: Final = (-1, 0, 0)


class AllowList:
    """The admitted clients, by public key: those in `keys.clients`, those of the list, and the cluster
    itself.

    `look` may run in one thread while others call `name_of`.
    """

    def __init__(self, keys: ClusterKeys) -> None:
        self._path = Path(keys.list_file) if keys.list_file else None
        self._always = {
            keys.pair.public: "cluster",
            **{public: name for name, public in keys.clients.items()},
        }
        self._names: dict[str, str] = dict(self._always)
        self._state = _NEVER_READ
        self.version = 0
        self.look()

    def name_of(self, public: str) -> str | None:
        """Return the name of an admitted client; `None` for any other key. Cost: one dict lookup."""
        return self._names.get(public)

    def look(self) -> bool:
        """Read the list if its file changed since the last look; return True if it did. Cost: one `stat`."""
        if self._path is None:
            return False
        try:
            stat = self._path.stat()
            state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            state = _NOT_THERE
        except OSError as error:
            self._warn(f"cannot be looked at ({error.strerror}): it holds as it was")
            return False
        if state == self._state:
            return False
        return self._read(self._path, state)

    def _read(self, path: Path, state: tuple[int, int, int]) -> bool:
        listed: dict[str, str] = {}
        problems: list[str] = []
        if state == _NOT_THERE:
            problems.append("is not there: nobody is let in by it")
        else:
            try:
                listed, problems = read_list(path)
            except OSError as error:
                self._warn(f"cannot be read ({error.strerror}): it holds as it was")
                return False
        self._state = state
        for problem in problems:
            self._warn(problem)
        # One assignment: a concurrent `name_of` sees the old list or the new one, never a mixture.
        self._names = {**{public: name for name, public in listed.items()}, **self._always}
        self.version += 1
        return True

    def _warn(self, text: str) -> None:
        _log.warning("the list of clients %s %s", self._path, text)


def read_list(path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the clients of a list (name → public key) and its problems, by line. Raises `OSError`."""
    with path.open("rb") as file:
        data = file.read(CLIENT_LIST_BYTES_MAX + 1)
    problems: list[str] = []
    if len(data) > CLIENT_LIST_BYTES_MAX:
        return {}, [f"has more than {CLIENT_LIST_BYTES_MAX:,} bytes: nobody is let in by it"]
    clients: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if problem := _line_problem(words, clients):
            problems.append(f"has a line {number} that counts for nothing: {problem}")
        else:
            clients[words[0]] = words[1]
    return clients, problems


def _line_problem(words: list[str], clients: dict[str, str]) -> str:
    if len(words) != 2:
        return "a line is a name and a public key"
    if words[0] in clients:
        return f"{words[0]!r} is listed before"
    if len(clients) >= CLIENT_KEYS_MAX:
        return f"{CLIENT_KEYS_MAX:,} clients are let in at most"
    try:
        check_name(words[0])
        check_public(words[1], "a public key")
    except MisuseError as error:
        return str(error)
    return ""
