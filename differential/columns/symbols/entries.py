"""Entries of symbols that workers send each other: words, and the bytes of each word's value, as a frame."""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from timely.errors import PeerError
from timely.wire.batch import UNPACK_ERRORS

__all__ = ["SymbolEntries"]


@dataclass(frozen=True, slots=True)
class SymbolEntries:
    """Entries that one worker sends another: words, and for each the msgpack bytes of its value."""

    words: tuple[int, ...] = ()
    payloads: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.words) == len(self.payloads)

    def __len__(self) -> int:
        return len(self.words)

    def to_bytes(self) -> bytes:
        """Return the entries as one frame for the wire."""
        packed: bytes = msgpack.packb([list(self.words), list(self.payloads)])
        return packed

    @classmethod
    def from_bytes(cls, frame: bytes | memoryview, peer: int, count_max: int) -> SymbolEntries:
        """Return the inverse of `to_bytes`, checked: at most `count_max` words, and bytes for each.

        Raises PeerError for any other frame. `SymbolTable.learn` checks that the bytes belong to the words.
        """
        try:
            lists = msgpack.unpackb(frame, use_list=False)
        except UNPACK_ERRORS as error:
            raise PeerError(
                f"worker {peer} sent symbols that are not msgpack: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(lists, tuple) or [*map(type, lists)] != [tuple, tuple]:
            raise PeerError(f"worker {peer} sent symbols that are not two lists, of words and of values")
        words, payloads = lists
        if not len(words) == len(payloads) <= count_max:
            raise PeerError(
                f"worker {peer} sent {len(words)} symbols with {len(payloads)} values, for rows that hold "
                f"{count_max} at most"
            )
        if not all(type(word) is int and -(2**63) <= word < 2**63 for word in words):
            raise PeerError(f"worker {peer} sent a symbol that is no 64-bit word")
        if not all(type(payload) is bytes for payload in payloads):
            raise PeerError(f"worker {peer} sent a symbol whose value does not come as bytes")
        return cls(words, payloads)
