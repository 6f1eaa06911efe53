"""What is a key here, who holds which, and how is a secret kept out of what is printed?

Every key is a pair: a public half, by which others know its holder, and a secret half, which proves it.
Both are 40 printable characters.

    ClusterKeys   what the workers of a cluster hold: their pair, one for all, and the list of clients they
                  let in
    ClientKeys    what one client holds: its own pair, and the public half of the cluster that it talks to

Workers know each other by the cluster's pair, so whoever holds that can do everything. A client's pair opens
connections to this cluster and nothing else.

Nothing here shows a secret: `repr` and `str` of every object leave it out, so that none gets into a log, a
plan, a traceback or the pages of Spark. Pickled, and by `to_text`, it travels whole: that is how it is
handed over.
Pure: files are read by `timely/keys/`, sockets locked by `transport/curve.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..errors import MisuseError
from ..limits import CLIENT_KEYS_MAX

__all__ = ["ClientKeys", "ClusterKeys", "KeyPair", "Secret", "check_name", "check_public", "shown_key"]

_KEY_CHARS: Final = 40
_ALPHABET: Final = re.compile(r"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Secret:
    """The secret half of a pair. Shows itself to nobody who does not ask by `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _ALPHABET.fullmatch(text):
            raise MisuseError(f"a secret key has {_KEY_CHARS} characters of Z85; this one is damaged")
        self._text = text

    def reveal(self) -> str:
        """The characters."""
        return self._text

    def __repr__(self) -> str:
        return "<secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._text,)


@dataclass(frozen=True)
class KeyPair:
    """A public half and its secret."""

    public: str
    secret: Secret

    def __post_init__(self) -> None:
        check_public(self.public, "a public key")

    def __repr__(self) -> str:
        return f"KeyPair({shown_key(self.public)})"


@dataclass(frozen=True)
class ClientKeys:
    """What client `name` holds: its pair, and the public key of the only cluster that it talks to.

    `of` says where it comes from, for messages: a folder, or what handed it over.
    """

    name: str
    pair: KeyPair
    cluster: str
    of: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_public(self.cluster, "the cluster's public key")

    def __repr__(self) -> str:
        return (
            f"ClientKeys({self.name!r}, {shown_key(self.pair.public)} for cluster {shown_key(self.cluster)})"
        )

    def to_text(self) -> str:
        """One line with the secret in it, for a pipe or a file of one's own; `from_text` is the inverse."""
        pair = [self.pair.public, self.pair.secret.reveal()]
        return json.dumps({"name": self.name, "pair": pair, "cluster": self.cluster, "of": self.of})

    @classmethod
    def from_text(cls, text: str) -> ClientKeys:
        """Raises `MisuseError`, which does not repeat the text, if it is none."""
        values = _object(text, "client")
        return cls(
            _text(values.get("name")),
            _pair(values.get("pair")),
            _text(values.get("cluster")),
            _text(values.get("of")),
        )


@dataclass(frozen=True)
class ClusterKeys:
    """What each worker of a cluster holds.

    pair         of the cluster
    clients      public keys that are let in, beside those of `list_file`, by name
    list_file    the list of clients, which is read anew when it changes; empty: there is none
    """

    pair: KeyPair
    clients: Mapping[str, str] = field(default_factory=dict)
    list_file: str = ""

    def __post_init__(self) -> None:
        if len(self.clients) > CLIENT_KEYS_MAX:
            raise MisuseError(
                f"a cluster lets in {CLIENT_KEYS_MAX:,} clients at most, not {len(self.clients):,}"
            )
        for name, public in self.clients.items():
            check_name(name)
            check_public(public, f"the public key of client {name!r}")

    def __repr__(self) -> str:
        beside = f", list {self.list_file}" if self.list_file else ""
        return f"ClusterKeys({shown_key(self.pair.public)}, {len(self.clients)} clients{beside})"

    def as_client(self) -> ClientKeys:
        """The cluster's own pair as that of a client: for programs that have it anyway."""
        return ClientKeys("cluster", self.pair, self.pair.public, self.list_file)

    def to_text(self) -> str:
        """One line with the secret in it, for the pipe to a worker; `from_text` is the inverse."""
        pair = [self.pair.public, self.pair.secret.reveal()]
        return json.dumps({"pair": pair, "clients": dict(self.clients), "list": self.list_file})

    @classmethod
    def from_text(cls, text: str) -> ClusterKeys:
        """Raises `MisuseError`, which does not repeat the text, if it is none."""
        values = _object(text, "cluster")
        clients = values.get("clients")
        if not isinstance(clients, dict):
            raise MisuseError("the text of a cluster's keys is damaged: it has no clients")
        listed = {_text(name): _text(public) for name, public in clients.items()}
        return cls(_pair(values.get("pair")), listed, _text(values.get("list")))


def shown_key(public: str) -> str:
    """As much of a public key as tells it from others."""
    return f"{public[:8]}…"


def check_name(name: str) -> None:
    """Raise `MisuseError` unless a client can be called so: it names a file and a line of a list."""
    if not _NAME.fullmatch(name):
        raise MisuseError(
            f"{name!r:.80} is no name of a key: letters, digits, '.', '_' and '-', beginning with a "
            f"letter or digit, "
            "64 at most"
        )


def check_public(text: str, what: str) -> None:
    """Raise `MisuseError` unless `text` can be a public key."""
    if not _ALPHABET.fullmatch(text):
        raise MisuseError(f"{what} has {_KEY_CHARS} characters of Z85, not {text!r:.60}")


def _object(text: str, whose: str) -> dict[str, object]:
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise MisuseError(f"the text of a {whose}'s keys is damaged")  # not shown: a secret may be in it
    return values


def _pair(value: object) -> KeyPair:
    match value:
        case [str(public), str(secret)]:
            return KeyPair(public, Secret(secret))
        case _:
            raise MisuseError("the text of a key is damaged: it is no pair")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MisuseError("the text of a key is damaged")
    return value
