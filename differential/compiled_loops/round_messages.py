"""A round message on its way to another worker: a vote on a loop, and rows for the slots of the loop.

    header   the vote; slot, columns and rows of each part, columns below zero if it is packed; which ports
    have
             ended
    rows     of each part in turn: its words; or, packed, how many bytes its values take, place, width and
             base of each column, and these bytes, filled up to whole words
    symbols  as with other rows, if there are any

All numbers are little-endian, of eight bytes. A kernel takes up round messages that have no packed rows
(`differential/kernels/compiled_loops/round_messages.py`), and leaves others to Python: no slot has columns
below zero. Packed rows are read where they came in, so nothing that is said of them is believed before it is
checked.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.packed.block import BLOCK_ROWS, Block, PackedColumn
from differential.columns.packed.parts import Part, rows_in
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.worker_symbols import SYMBOLS
from progress.compiled.arrays import Int64s
from progress.errors import InternalError, PeerError
from timely.dictionaries import Mark
from timely.operators.compiled_loop import Vote
from timely.wire.batch import Frame, bytes_of, register

__all__ = ["RoundMessage", "column_of"]

_HEADER: Final = struct.Struct("<7q2?")
"""All of `Vote` but the last of it, with the number of parts before what is true or false."""

_SHAPE: Final = struct.Struct("<3q")
"""Slot, columns and rows of a part. Behind the last one is the rest of `Vote`."""

_COLUMN: Final = struct.Struct("<3q")
_SIZE: Final = struct.Struct("<q")
_WORD: Final = 8


class _Shape(NamedTuple):
    """Of a part on the wire; `columns` below zero if it is packed."""

    slot: int
    columns: int
    rows: int


@register
@dataclass(frozen=True)
class RoundMessage:
    """A vote, and rows.

    parts    slot and rows with time and difference, as int64[columns, rows] or packed
    symbols  the words among them whose values the other worker has to know
    moved    by how much the times of the rows have been moved since they came: see `Slots.times`
    """

    vote: Vote
    parts: tuple[tuple[int, Part], ...]
    symbol_words: tuple[Int64s, ...] = ()
    moved: int = 0

    KIND: ClassVar[int] = 4

    @property
    def rows(self) -> int:
        """How many there are in all slots; a message may bring none."""
        return rows_in([part for _, part in self.parts])

    def shifted(self, keep: int, add: int) -> Self:
        """Never: a round message crosses no connector."""
        raise InternalError("a round message on a connector")

    def rebased(self, step: int) -> Self:
        """Every time later by `step`."""
        if step == 0 or not self.parts:
            return self
        moved = []
        for slot, part in self.parts:
            later = part.words() if isinstance(part, Block) else part.copy()
            later[-2] += step
            moved.append((slot, Block(later) if isinstance(part, Block) else later))
        return type(self)(self.vote, tuple(moved), self.symbol_words, self.moved + step)

    def latest(self, shift: int, mask: int) -> int:
        """The largest value of the counter at `shift` and `mask` in the times of its rows."""
        times = [column_of(part, -2) for _, part in self.parts]
        return max((int(((each >> shift) & mask).max()) for each in times), default=0)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Never: see `shifted`."""
        raise InternalError("a round message on a connector")

    def to_frames(self, peer: int) -> list[Frame]:
        """Header, rows of all parts, and the symbols that `peer` has not got."""
        *numbers, passes, is_empty, ended = self.vote
        header = _HEADER.pack(*numbers, len(self.parts), passes, is_empty)
        shapes = [_SHAPE.pack(slot, *_shape_of(part)) for slot, part in self.parts]
        rows = b"".join(piece for _, part in self.parts for piece in _pieces_of(part))
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
        for _, part in self.parts:
            if isinstance(part, Block):
                part.symbols(mark, range(part.columns - 2))
            else:
                mark.words(part[:-2])

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the message of two or three frames; `PeerError` unless header, rows and symbols agree
        exactly.
        """
        vote, parts = _checked(frames, peer)
        _learn(frames, peer, parts)
        return cls(vote, parts)

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols; rows of other dataflows may hold them without bringing them again."""
        _, parts = _checked(frames, peer)
        _learn(frames, peer, parts)
        return frames[:2]


def column_of(part: Part, column: int) -> Int64s:
    """The words of a column of some rows, which may count from behind."""
    if not isinstance(part, Block):
        found: Int64s = part[column]
        return found
    words: Int64s = np.empty(part.rows, np.int64)
    part.write(column % part.columns, words)
    return words


def _shape_of(part: Part) -> tuple[int, int]:
    """Columns and rows as a header says them."""
    if isinstance(part, Block):
        return -part.columns, part.rows
    columns, rows = part.shape
    return columns, rows


def _pieces_of(part: Part) -> Sequence[Frame]:
    """The bytes of some rows, piece by piece."""
    if not isinstance(part, Block):
        return [np.ascontiguousarray(part).reshape(-1).view(np.uint8).data]
    columns, memory = part.lying()
    size = len(memory)
    said = [_SIZE.pack(size), *(_COLUMN.pack(*column) for column in columns)]
    return [*said, memory, bytes(-size % _WORD)]


def _learn(frames: Sequence[memoryview], peer: int, parts: Sequence[tuple[int, Part]]) -> None:
    if len(frames) == 3:
        count_max = sum((abs(_shape_of(part)[0]) - 2) * rows_in([part]) for _, part in parts)
        SYMBOLS.learn(SymbolEntries.from_bytes(frames[2], peer, count_max), peer)


def _checked(frames: Sequence[memoryview], peer: int) -> tuple[Vote, tuple[tuple[int, Part], ...]]:
    """Return the vote of a message on the wire, and its parts; words are copied, packed rows stay where they
    are.
    """
    if len(frames) not in (2, 3):
        raise PeerError(f"worker {peer} sent a round message in frames: {len(frames)}, not two or three")
    header, size = frames[0], frames[0].nbytes
    if size >= _HEADER.size:
        worker, number, bound, first, barrier, counters, parts, passes, is_empty = _HEADER.unpack_from(header)
        behind = _HEADER.size + _SHAPE.size * parts
        if parts >= 0 and behind <= size:
            shapes = [_Shape(*each) for each in _SHAPE.iter_unpack(header[_HEADER.size : behind])]
            found = _parts_in(bytes_of(frames[1]), shapes)
            if found is not None:
                ended = bytes(header[behind:])
                return Vote(worker, number, bound, first, barrier, counters, passes, is_empty, ended), found
    raise PeerError(f"worker {peer} sent a round message whose header does not say what is in it")


def _parts_in(rows: memoryview, shapes: Sequence[_Shape]) -> tuple[tuple[int, Part], ...] | None:
    """The parts of these shapes, which take all of `rows`; None if they do not, or there are none such."""
    found: list[tuple[int, Part]] = []
    at = 0
    for shape in shapes:
        if shape.slot < 0 or not 2 <= abs(shape.columns) <= ROW_WORDS_MAX or shape.rows < 1:
            return None
        left = rows[at:]
        if shape.columns > 0:
            size = _WORD * shape.columns * shape.rows
            if size > len(left):
                return None
            words = np.frombuffer(left[:size], np.int64).reshape(shape.columns, shape.rows)
            found.append((shape.slot, words.copy()))
        else:
            block = _block_in(left, -shape.columns, shape.rows)
            if block is None:
                return None
            size = block[1]
            found.append((shape.slot, block[0]))
        at += size
    return tuple(found) if at == len(rows) else None


def _block_in(left: memoryview, columns: int, rows: int) -> tuple[Block, int] | None:
    """The packed rows that `left` begins with, and the bytes that they take with all that is said of them;
    None if anything of them would lie elsewhere.
    """
    begin = _SIZE.size + _COLUMN.size * columns
    if len(left) < begin or rows > BLOCK_ROWS:
        return None
    (size,) = _SIZE.unpack_from(left)
    end = begin + size + -size % _WORD
    if size < 1 or end > len(left):
        return None
    lying = [PackedColumn(*each) for each in _COLUMN.iter_unpack(left[_SIZE.size : begin])]
    try:
        return Block.within(rows, lying, left[begin : begin + size]), end
    except ValueError:
        return None
