"""A round message on its way to another worker: a vote on a loop, and rows for the slots of the loop.

    header   the vote; slot, columns and rows of each part (columns negative if it is packed); which ports
             have ended
    rows     for each part in turn: its words; or, packed, the number of bytes of its values, then place,
             width and base of each column, and these bytes, padded to whole words
    symbols  as with other rows, if there are any

All numbers are little-endian, of eight bytes. A kernel takes up round messages without packed rows
(`differential/kernels/compiled_loops/round_messages.py`), and leaves others to Python: it recognises them by
their negative columns. Packed rows are read in the memory in which they arrived, so everything in their
description is checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.packed.block import BLOCK_ROWS, Block, PackedColumn
from differential.columns.packed.parts import Part, column_of, packed, rows_in, symbols_in, with_added
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.worker_symbols import SYMBOLS
from differential.thresholds import PACKED_ROWS_MIN
from progress.compiled.arrays import Int64s
from progress.errors import InternalError, PeerError
from timely.dictionaries import Mark
from timely.operators.compiled_loop import Vote
from timely.wire.batch import Frame, bytes_of, register

__all__ = ["RoundMessage", "to_send"]

_HEADER: Final = struct.Struct("<7q2?")
"""All of `Vote` but its last field, with the number of parts before the two booleans."""

_SHAPE: Final = struct.Struct("<3q")
"""Slot, columns and rows of a part. The last field of `Vote` follows behind the last part."""

_COLUMN: Final = struct.Struct("<3q")
_SIZE: Final = struct.Struct("<q")
_WORD: Final = 8


class _Shape(NamedTuple):
    """Shape of a part on the wire; `columns` is negative if it is packed."""

    slot: int
    columns: int
    rows: int


@register
@dataclass(frozen=True)
class RoundMessage:
    """A vote, and rows.

    parts    slot and rows with time and difference, as int64[columns, rows] or packed
    symbols  the words among them whose values the other worker has to know
    moved    what was added to the times of the rows since they arrived: see `Slots.times`
    """

    vote: Vote
    parts: tuple[tuple[int, Part], ...]
    symbol_words: tuple[Int64s, ...] = ()
    moved: int = 0

    KIND: ClassVar[int] = 4

    @property
    def rows(self) -> int:
        """Number of rows for all slots; a message may bring none."""
        return rows_in([part for _, part in self.parts])

    def shifted(self, keep: int, add: int) -> Self:
        """Refuse: a round message crosses no connector."""
        raise InternalError("a round message on a connector")

    def rebased(self, step: int) -> Self:
        """Return the message with every time later by `step`."""
        if step == 0 or not self.parts:
            return self
        parts = tuple((slot, with_added(part, (-2,), step)) for slot, part in self.parts)
        return type(self)(self.vote, parts, self.symbol_words, self.moved + step)

    def latest(self, shift: int, mask: int) -> int:
        """Return the largest value of the counter at `shift` and `mask` in the times of its rows."""
        times = [column_of(part, -2) for _, part in self.parts]
        return max((int(((each >> shift) & mask).max()) for each in times), default=0)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Refuse: see `shifted`."""
        raise InternalError("a round message on a connector")

    def to_frames(self, peer: int) -> list[Frame]:
        """Return header, rows of all parts, and the symbols that `peer` has not got."""
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
        """Note that the symbols of the rows are on their way to `peer`."""
        if self.symbol_words:
            SYMBOLS.on_sent(peer)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        symbols_in([part for _, part in self.parts], mark)

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the message of two or three frames.

        Raises PeerError unless header, rows and symbols agree exactly.
        """
        vote, parts = _checked(frames, peer)
        _learn(frames, peer, parts)
        return cls(vote, parts)

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols, drop the rows: rows of other dataflows may use these symbols without entries."""
        _, parts = _checked(frames, peer)
        _learn(frames, peer, parts)
        return frames[:2]


def to_send(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the same rows, packed if they are many: so they take few bytes each on the wire and there."""
    for part in parts:
        if isinstance(part, Block) or part.shape[1] < PACKED_ROWS_MIN:
            yield part
        else:
            yield from packed(part)


def _shape_of(part: Part) -> tuple[int, int]:
    """Return columns and rows as in a header."""
    if isinstance(part, Block):
        return -part.columns, part.rows
    columns, rows = part.shape
    return columns, rows


def _pieces_of(part: Part) -> Sequence[Frame]:
    """Return the bytes of some rows, piece by piece."""
    if not isinstance(part, Block):
        return [np.ascontiguousarray(part).reshape(-1).view(np.uint8).data]
    columns, memory = part.lying()
    size = len(memory)
    header = [_SIZE.pack(size), *(_COLUMN.pack(*column) for column in columns)]
    return [*header, memory, bytes(-size % _WORD)]


def _learn(frames: Sequence[memoryview], peer: int, parts: Sequence[tuple[int, Part]]) -> None:
    if len(frames) == 3:
        count_max = sum((abs(_shape_of(part)[0]) - 2) * rows_in([part]) for _, part in parts)
        SYMBOLS.learn(SymbolEntries.from_bytes(frames[2], peer, count_max), peer)


def _checked(frames: Sequence[memoryview], peer: int) -> tuple[Vote, tuple[tuple[int, Part], ...]]:
    """Return the vote of a message on the wire, and its parts.

    Words are copied; packed rows stay in the frame's memory.
    """
    if len(frames) not in (2, 3):
        raise PeerError(f"worker {peer} sent a round message in frames: {len(frames)}, not two or three")
    header, size = frames[0], frames[0].nbytes
    if size >= _HEADER.size:
        worker, number, bound, first, barrier, counters, parts, passes, is_empty = _HEADER.unpack_from(header)
        behind = _HEADER.size + _SHAPE.size * parts
        if parts >= 0 and behind <= size:
            shapes = [_Shape(*each) for each in _SHAPE.iter_unpack(header[_HEADER.size : behind])]
            held = _parts_in(bytes_of(frames[1]), shapes)
            if held is not None:
                ended = bytes(header[behind:])
                return Vote(worker, number, bound, first, barrier, counters, passes, is_empty, ended), held
    raise PeerError(f"worker {peer} sent a round message whose header does not say what is in it")


def _parts_in(rows: memoryview, shapes: Sequence[_Shape]) -> tuple[tuple[int, Part], ...] | None:
    """Return parts of these shapes, which take all of `rows`; None if they do not, or a shape is wrong."""
    parts: list[tuple[int, Part]] = []
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
            parts.append((shape.slot, words.copy()))
        else:
            block = _block_in(left, -shape.columns, shape.rows)
            if block is None:
                return None
            size = block[1]
            parts.append((shape.slot, block[0]))
        at += size
    return tuple(parts) if at == len(rows) else None


def _block_in(left: memoryview, columns: int, rows: int) -> tuple[Block, int] | None:
    """Return the packed rows at the start of `left`, and how many bytes they take with their description.

    Returns None if any of that would lie outside of `left`.
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
