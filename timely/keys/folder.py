"""How do keys lie in files?

    CLUSTER/cluster.key     the workers' pair: of mode 0600, for their hosts only
    CLUSTER/clients.txt     who is let in: `name public-key`, one line each; read anew when it changes
    CLIENT/client.key       a client's pair and the public key of its cluster: of mode 0600, for it alone

A file with a secret is written for its owner's eyes from the first moment, and refused where others may
read it.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

from ..errors import MisuseError
from ..limits import CLIENT_KEYS_MAX
from ..wire.allowed import read_list
from ..wire.keys import ClientKeys, ClusterKeys, KeyPair, Secret, check_name
from ..wire.transport.curve import new_pair

__all__ = [
    "KEYS_VARIABLE",
    "add_client",
    "client_keys",
    "clients_of",
    "load_client",
    "load_cluster",
    "make_cluster",
    "revoke_client",
    "save_client",
]

KEYS_VARIABLE: Final = "NAIAD_KEYS"
"""The environment variable that names a folder of keys where none is given."""

_CLUSTER: Final = "cluster.key"
_CLIENT: Final = "client.key"
_LIST: Final = "clients.txt"
_LIST_HEAD: Final = (
    "# Who is let in: a name and a public key in each line. Workers read this anew when it changes.\n"
)
_FILE_BYTES_MAX: Final = 4_096


def make_cluster(folder: Path) -> ClusterKeys:
    """Make the keys of a new cluster in `folder`, which must not hold any yet."""
    if (folder / _CLUSTER).exists():
        raise MisuseError(
            f"{folder} holds the keys of a cluster already: choose another folder, or delete that one"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pair = new_pair()
    _write_secret(folder / _CLUSTER, "of a cluster: for the hosts of its workers, and nobody else", pair, {})
    if not (folder / _LIST).exists():
        _replace(folder / _LIST, _LIST_HEAD, 0o644)
    return ClusterKeys(pair, list_file=str((folder / _LIST).resolve()))


def add_client(folder: Path, name: str, target: Path) -> ClientKeys:
    """Make keys for client `name` of the cluster in `folder`, put them into `target`, and let it in."""
    cluster = load_cluster(folder)
    check_name(name)
    _check_new(folder, name)
    if (target / _CLIENT).exists():
        raise MisuseError(f"{target} holds the keys of a client already: choose another folder")
    client = ClientKeys(name, new_pair(), cluster.pair.public, str(target))
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_client(target, client)
    _replace(folder / _LIST, f"{_list_text(folder)}{name} {client.pair.public}\n", 0o644)
    return client


def save_client(keys: ClientKeys, folder: Path) -> Path:
    """Put keys that a program has made without files into `folder`, and return it. Keys of that name which
    are there already, of a cluster before, are replaced; those of another client are not.
    """
    if (folder / _CLIENT).exists() and (there := load_client(folder).name) != keys.name:
        raise MisuseError(f"{folder} holds the keys of client {there!r}: choose another folder")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MisuseError(f"{folder} cannot be made: {error.strerror}") from error
    _write_client(folder, keys)
    return folder


def revoke_client(folder: Path, name: str) -> None:
    """Take the key of client `name` away; workers that run end its connections within two seconds."""
    lines = _list_text(folder).splitlines(keepends=True)
    kept = [line for line in lines if line.split()[:1] != [name]]
    if len(kept) == len(lines):
        there = ", ".join(words[0] for line in lines if (words := line.split()) and words[0][0] != "#")
        raise MisuseError(f"{folder} has no client {name!r}; there are: {there or 'none'}")
    _replace(folder / _LIST, "".join(kept), 0o644)


def clients_of(folder: Path) -> dict[str, str]:
    """The clients that are let in: public keys by name. Raises `MisuseError` that names a damaged line."""
    try:
        found, problems = read_list(folder / _LIST)
    except OSError as error:
        raise MisuseError(f"{folder / _LIST} cannot be read: {error.strerror}") from error
    if problems:
        raise MisuseError(f"{folder / _LIST} {problems[0]}")
    return found


def load_cluster(folder: Path | str) -> ClusterKeys:
    """The keys of a cluster's workers, with the list in the same folder.

    Raises `MisuseError` if they are not there, are damaged, or may be read by others.
    """
    place = Path(folder)
    if not (place / _CLUSTER).exists() and (place / _CLIENT).exists():
        raise MisuseError(
            f"{place} holds the keys of a client, which starts no workers: give the cluster's folder"
        )
    values = _read_secret(place / _CLUSTER, "python -m timely.keys new")
    return ClusterKeys(_pair(values, place / _CLUSTER), list_file=str((place / _LIST).resolve()))


def load_client(folder: Path | str) -> ClientKeys:
    """A client's keys; in the folder of a cluster, where there are none, the cluster's own.

    Raises `MisuseError` if they are not there, are damaged, or may be read by others.
    """
    place = Path(folder)
    if not (place / _CLIENT).exists() and (place / _CLUSTER).exists():
        return load_cluster(place).as_client()
    path = place / _CLIENT
    values = _read_secret(path, "python -m timely.keys client CLUSTER NAME")
    return ClientKeys(
        _text(values, "name", path), _pair(values, path), _text(values, "cluster", path), str(place)
    )


def client_keys(given: ClientKeys | ClusterKeys | Path | str | None) -> ClientKeys | None:
    """What a client was given: keys, their folder, or nothing; then NAIAD_KEYS may name one."""
    if isinstance(given, ClientKeys):
        return given
    if isinstance(given, ClusterKeys):
        return given.as_client()
    if given is None:
        given = os.environ.get(KEYS_VARIABLE)
    return load_client(given) if given else None


def _check_new(folder: Path, name: str) -> None:
    listed = clients_of(folder)
    if name in listed:
        raise MisuseError(
            f"{folder} has a client {name!r} already: choose another name, or take that one away by 'revoke'"
        )
    if len(listed) >= CLIENT_KEYS_MAX:
        raise MisuseError(f"{folder} has {len(listed):,} clients already, which is as many as there may be")


def _list_text(folder: Path) -> str:
    try:
        text = (folder / _LIST).read_text(errors="replace")
    except OSError as error:
        raise MisuseError(f"{folder / _LIST} cannot be read: {error.strerror}") from error
    return text if text.endswith("\n") or not text else text + "\n"


def _write_client(folder: Path, keys: ClientKeys) -> None:
    more = {"name": keys.name, "cluster": keys.cluster}
    whose = f"of client {keys.name}: whoever has it is {keys.name}"
    _write_secret(folder / _CLIENT, whose, keys.pair, more)


def _write_secret(path: Path, whose: str, pair: KeyPair, more: dict[str, str]) -> None:
    values = {**more, "public": pair.public, "secret": pair.secret.reveal()}
    lines = [f"# naiad: the key {whose}.", *(f'{name} = "{value}"' for name, value in values.items()), ""]
    _replace(path, "\n".join(lines), 0o600)


def _replace(path: Path, text: str, mode: int) -> None:
    """Write a file that is there whole or not at all, and at no moment with another mode."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
        draft.replace(path)
    except OSError as error:
        raise MisuseError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _read_secret(path: Path, makes: str) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise MisuseError(
            f"{path.parent} has no keys to read ({path.name}: {error.strerror}): '{makes}' makes them"
        ) from error
    if mode & 0o077:
        raise MisuseError(
            f"{path} holds a secret, and others may read it (mode {mode:04o}): chmod 600 {path}"
        )
    try:
        return dict(tomllib.loads(data.decode()))
    except (ValueError, RecursionError):
        pass
    raise MisuseError(f"{path} is damaged: it is not what 'python -m timely.keys' has written")


def _pair(values: dict[str, object], path: Path) -> KeyPair:
    return KeyPair(_text(values, "public", path), Secret(_text(values, "secret", path)))


def _text(values: dict[str, object], name: str, path: Path) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise MisuseError(f"{path} is damaged: it has no {name}")
    return value
