"""A beat on its way to another worker: what is said of a region, and rows for its slots."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.worker_symbols import SYMBOLS
from progress.arrays import Int64s
from progress.errors import InternalError, PeerError
from timely.dictionaries import Mark
from timely.operators.region import Said
from timely.wire.batch import Frame, register

__all__ = ["BeatBatch"]

_HEADER: Final = struct.Struct("<7q2?")
"""All of `Said` but the last of it, with the number of parts before what is true or false."""

_SHAPE: Final = struct.Struct("<3q")
"""Slot, columns and rows of a part. Behind the last one is the rest of `Said`."""


@register
@dataclass(frozen=True)
class BeatBatch:
    """What `said` says, and rows.

    parts    slot and int64[columns, rows], rows with time and difference
    symbols  the words among them whose values the other worker has to know
    """

    said: Said
    parts: tuple[tuple[int, Int64s], ...]
    symbol_words: tuple[Int64s, ...] = ()

    KIND: ClassVar[int] = 4

    @property
    def rows(self) -> int:
        """How many there are in all slots; a beat may bring none."""
        return sum(words.shape[1] for _, words in self.parts)

    def shifted(self, keep: int, add: int) -> Self:
        """Never: a beat crosses no connector."""
        raise InternalError("a beat on a connector")

    def rebased(self, step: int) -> Self:
        """Every time later by `step`."""
        if step == 0 or not self.parts:
            return self
        moved = []
        for slot, words in self.parts:
            later = words.copy()
            later[-2] += step
            moved.append((slot, later))
        return type(self)(self.said, tuple(moved), self.symbol_words)

    def latest(self, shift: int, mask: int) -> int:
        """The largest value of the counter at `shift` and `mask` in the times of its rows."""
        return max((int(((words[-2] >> shift) & mask).max()) for _, words in self.parts), default=0)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Never: see `shifted`."""
        raise InternalError("a beat on a connector")

    def to_frames(self, peer: int) -> list[Frame]:
        """Header, rows of all parts, and the symbols that `peer` has not got."""
        *numbers, passes, is_empty, ended = self.said
        header = _HEADER.pack(*numbers, len(self.parts), passes, is_empty)
        shapes = [_SHAPE.pack(slot, *words.shape) for slot, words in self.parts]
        rows = b"".join(words.tobytes() for _, words in self.parts)
        frames: list[Frame] = [b"".join((header, *shapes, ended)), rows]
        if self.symbol_words:
            entries = SYMBOLS.delta_for(peer, np.concatenate(self.symbol_words))
            if entries:
                frames.append(entries.to_bytes())
        return frames

    def on_sent(self, peer: int) -> None:
        """The symbols of the rows are on their way to `peer`."""
        if self.symbol_words:
            SYMBOLS.on_sent(peer)

    def symbols(self, mark: Mark) -> None:
        """All words of the rows."""
        for _, words in self.parts:
            mark.words(words[:-2])

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """The beat of two or three frames; `PeerError` unless header, rows and symbols agree exactly."""
        said, shapes = _checked(frames, peer)
        _learn(frames, peer, shapes)
        flat = np.frombuffer(frames[1], np.int64)
        parts, at = [], 0
        for slot, columns, rows in shapes:
            parts.append((slot, flat[at : at + columns * rows].reshape(columns, rows).copy()))
            at += columns * rows
        return cls(said, tuple(parts))

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols; rows of other dataflows may hold them without bringing them again."""
        _, shapes = _checked(frames, peer)
        _learn(frames, peer, shapes)
        return frames[:2]


def _learn(frames: Sequence[memoryview], peer: int, shapes: list[tuple[int, int, int]]) -> None:
    if len(frames) == 3:
        count_max = sum((columns - 2) * rows for _, columns, rows in shapes)
        SYMBOLS.learn(SymbolEntries.from_bytes(frames[2], peer, count_max), peer)


def _checked(frames: Sequence[memoryview], peer: int) -> tuple[Said, list[tuple[int, int, int]]]:
    """What a beat on the wire says, and slot, columns and rows of its parts."""
    if len(frames) not in (2, 3):
        raise PeerError(f"worker {peer} sent a beat in frames: {len(frames)}, not two or three")
    header, size = frames[0], frames[0].nbytes
    if size >= _HEADER.size:
        worker, number, bound, first, gate, counters, parts, passes, is_empty = _HEADER.unpack_from(header)
        behind = _HEADER.size + _SHAPE.size * parts
        if parts >= 0 and behind <= size:
            shapes = list(_SHAPE.iter_unpack(header[_HEADER.size : behind]))
            are_fine = all(slot >= 0 and 2 <= cs <= ROW_WORDS_MAX and rows >= 1 for slot, cs, rows in shapes)
            if are_fine and sum(8 * columns * rows for _, columns, rows in shapes) == frames[1].nbytes:
                ended = bytes(header[behind:])
                said = Said(worker, number, bound, first, gate, counters, passes, is_empty, ended)
                return said, shapes
    raise PeerError(f"worker {peer} sent a beat whose header does not say what is in it")
