"""What is a key, who holds which key, and how do secrets stay out of all output?

Every key is a pair: a public half, by which others identify its holder, and a secret half, which proves the
identity. Both are 40 printable characters.

    ClusterKeys   held by every worker of a cluster: one pair, the same on all, and the list of admitted
                  clients
    ClientKeys    held by one client: its own pair, and the public half of the cluster that it talks to

Workers identify each other by the cluster's pair, so its holder can do everything. A client's pair opens
connections to this cluster and nothing else.

`repr` and `str` of every object leave the secret out, so that it gets into no log, plan, traceback or page of
Spark. Pickling and `to_text` include it: that is how keys are handed over.
Pure: `timely/keys/` reads files, `transport/curve.py` secures sockets.
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
    """The secret half of a pair. Only `reveal` shows it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _ALPHABET.fullmatch(text):
            raise MisuseError(f"a secret key has {_KEY_CHARS} characters of Z85; this one is damaged")
        self._text = text

    def reveal(self) -> str:
        """Return the 40 characters."""
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
    """The keys of client `name`: its pair, and the public key of the only cluster that it talks to.

    `of` says in messages where the keys come from: a folder, or the object that handed them over.
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
        """Return one line, secret included, for a pipe or a private file; `from_text` is the inverse."""
        pair = [self.pair.public, self.pair.secret.reveal()]
        return json.dumps({"name": self.name, "pair": pair, "cluster": self.cluster, "of": self.of})

    @classmethod
    def from_text(cls, text: str) -> ClientKeys:
        """Read the line of `to_text`; for any other text raise `MisuseError`, which does not repeat it."""
        values = _object(text, "client")
        return cls(
            _text(values.get("name")),
            _pair(values.get("pair")),
            _text(values.get("cluster")),
            _text(values.get("of")),
        )


@dataclass(frozen=True)
class ClusterKeys:
    """The keys that each worker of a cluster holds.

    pair         the pair of the cluster
    clients      public keys by client name; admitted in addition to those of `list_file`
    list_file    path of the list of clients, reread when it changes; empty: no list
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
        """Return client keys with the cluster's own pair, for programs that hold it anyway."""
        return ClientKeys("cluster", self.pair, self.pair.public, self.list_file)

    def to_text(self) -> str:
        """Return one line, secret included, for the pipe to a worker; `from_text` is the inverse."""
        pair = [self.pair.public, self.pair.secret.reveal()]
        return json.dumps({"pair": pair, "clients": dict(self.clients), "list": self.list_file})

    @classmethod
    def from_text(cls, text: str) -> ClusterKeys:
        """Read the line of `to_text`; for any other text raise `MisuseError`, which does not repeat it."""
        values = _object(text, "cluster")
        clients = values.get("clients")
        if not isinstance(clients, dict):
            raise MisuseError("the text of a cluster's keys is damaged: it has no clients")
        listed = {_text(name): _text(public) for name, public in clients.items()}
        return cls(_pair(values.get("pair")), listed, _text(values.get("list")))


def shown_key(public: str) -> str:
    """Return the first 8 characters of a public key, enough to tell it from others."""
    return f"{public[:8]}…"


def check_name(name: str) -> None:
    """Raise `MisuseError` unless `name` can name a client: it must serve as a file name and in a list."""
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
