"""How are keys stored in files?

    CLUSTER/cluster.key     the workers' pair: of mode 0600, for their hosts only
    CLUSTER/clients.txt     the admitted clients: `name public-key`, one line each; reread when it changes
    CLIENT/client.key       a client's pair and the public key of its cluster: of mode 0600, for it alone

A file with a secret is readable by its owner only from the moment it is created; if others may read it, it is
refused.
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
"""The environment variable with a folder of keys, for calls without one."""

_CLUSTER: Final = "cluster.key"
_CLIENT: Final = "client.key"
_LIST: Final = "clients.txt"
_LIST_HEAD: Final = (
    "# Who is let in: a name and a public key in each line. Workers read this anew when it changes.\n"
)
_FILE_BYTES_MAX: Final = 4_096


def make_cluster(folder: Path) -> ClusterKeys:
    """Make the keys of a new cluster in `folder`; raises `MisuseError` if it holds such keys already."""
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
    """Make keys for client `name` of the cluster in `folder`, write them into `target`, and admit the
    client.
    """
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
    """Write keys that a program has made without files into `folder`, and return it.

    Keys of the same name there, of an earlier cluster, are replaced; raises `MisuseError` if there are those
    of another client.
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
    """Take the key of client `name` away; running workers end its connections within two seconds."""
    lines = _list_text(folder).splitlines(keepends=True)
    others = [line for line in lines if line.split()[:1] != [name]]
    if len(others) == len(lines):
        there = ", ".join(words[0] for line in lines if (words := line.split()) and words[0][0] != "#")
        raise MisuseError(f"{folder} has no client {name!r}; there are: {there or 'none'}")
    _replace(folder / _LIST, "".join(others), 0o644)


def clients_of(folder: Path) -> dict[str, str]:
    """Return the admitted clients: public keys by name. Raises `MisuseError`, which names a damaged line."""
    try:
        clients, problems = read_list(folder / _LIST)
    except OSError as error:
        raise MisuseError(f"{folder / _LIST} cannot be read: {error.strerror}") from error
    if problems:
        raise MisuseError(f"{folder / _LIST} {problems[0]}")
    return clients


def load_cluster(folder: Path | str) -> ClusterKeys:
    """Return the keys of a cluster's workers, with the list in the same folder.

    Raises `MisuseError` if they are missing or damaged, or if others may read them.
    """
    base = Path(folder)
    if not (base / _CLUSTER).exists() and (base / _CLIENT).exists():
        raise MisuseError(
            f"{base} holds the keys of a client, which starts no workers: give the cluster's folder"
        )
    values = _read_secret(base / _CLUSTER, "python -m timely.keys new")
    return ClusterKeys(_pair(values, base / _CLUSTER), list_file=str((base / _LIST).resolve()))


def load_client(folder: Path | str) -> ClientKeys:
    """Return the client keys in a folder; for the folder of a cluster, the cluster's own.

    Raises `MisuseError` if they are missing or damaged, or if others may read them.
    """
    base = Path(folder)
    if not (base / _CLIENT).exists() and (base / _CLUSTER).exists():
        return load_cluster(base).as_client()
    path = base / _CLIENT
    values = _read_secret(path, "python -m timely.keys client CLUSTER NAME")
    return ClientKeys(
        _text(values, "name", path), _pair(values, path), _text(values, "cluster", path), str(base)
    )


def client_keys(keys: ClientKeys | ClusterKeys | Path | str | None) -> ClientKeys | None:
    """Return client keys for an argument: keys, or their folder. Without one use the folder in NAIAD_KEYS;
    None if that is not set.
    """
    if isinstance(keys, ClientKeys):
        return keys
    if isinstance(keys, ClusterKeys):
        return keys.as_client()
    if keys is None:
        keys = os.environ.get(KEYS_VARIABLE)
    return load_client(keys) if keys else None


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
    """Write a file so that it exists whole or not at all, and never with another mode."""
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
