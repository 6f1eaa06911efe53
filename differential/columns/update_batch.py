"""Updates in flight: rows of words with times of their own and differences.

    words   int64[w + 2, n], C-contiguous: w words of the row, time word, diff; n ≥ 1 on a wire

The rows need be neither sorted nor consolidated. Batches are frozen: the maker gives the array away, and
several receivers may hold it.

On the wire a batch of words is two frames: a msgpack header {"words": w + 2, "rows": n}, and the bytes of the
array (little-endian), sent without copying. An optional third frame holds the entries of symbols in the rows
that the receiver has not got yet; the receiver takes these in whatever becomes of the rows. Both ends assert
the same shape. A packed batch travels one block at a time, as it lies in memory (`packed/sent.py`); symbols
go with it as with words.

Which words of a row are symbols is declared by a component that knows the columns: the input, the chain of
linear operators or the key route. An operator does not declare it for the rows it sends: these stay on its
worker unless a chain or a key route follows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import ClassVar, Final, Self

import msgpack
import numpy as np

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.columns.packed.sent import Sent, received, to_send
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.history.times import latest_counter, shift_times
from differential.kernels.rows.room import room_for
from differential.kernels.rows.sort import PackedRows
from differential.thresholds import SENT_PACKED_ROWS_MIN
from progress.compiled.arrays import Int64s
from progress.records import record
from timely.dictionaries import Mark
from timely.errors import InternalError, PeerError
from timely.wire.batch import UNPACK_ERRORS, Batch, Frame, Large, Timed, register
from timely.wire.claims import shown

__all__ = [
    "PackedBatch",
    "UpdateBatch",
    "as_batch",
    "parts_of",
    "rows_of",
    "with_symbols",
    "words_of",
]

_PASSING_ROWS: Final = 1 << 16
"""Packed rows that are unpacked at a time while they are divided among workers.

They are few enough for the processor's caches.
"""

_KEEP_ALL: Final = (1 << 63) - 1
_INT64: Final = np.dtype(np.int64)
_LEAST_DIFF: Final = -(1 << 63)

assert sys.byteorder == "little", (
    "rows travel in the byte order of the machine, which is little-endian everywhere we run"
)


@register
@record(frozen=True, slots=True, eq=False)
class UpdateBatch(Timed):
    """Rows of updates: int64[words + 2, rows], row words, time word, diff.

    `symbol_words`: which of the row's words are symbols, whose entries must travel along. `moved`: what was
    added to all times since the batch was sent, because a receiver's time words count from another epoch;
    times among the row's words are not moved, the receiver moves them.
    """

    words: Int64s
    symbol_words: tuple[int, ...] = ()
    moved: int = 0
    rows: int = field(init=False, repr=False)
    """Number of updates; an attribute, since each stage on the way of a batch reads it."""

    KIND: ClassVar[int] = 2

    def __post_init__(self) -> None:
        words = self.words
        shape = words.shape  # read once: numpy makes a tuple each time
        if words.ndim != 2 or shape[0] < 2 or words.dtype != _INT64 or not words.flags.c_contiguous:
            raise InternalError(
                f"an update batch is int64[≥ 2, n] by columns, not {words.dtype}{words.shape}"
            )
        self.rows = shape[1]  # type: ignore[misc]  # a record is frozen only for others

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows."""
        return int(self.words.nbytes)

    def least_time(self) -> int:
        """Return the least time word of the rows; requires at least one row."""
        return int(self.words[-2].min())

    def only_time(self) -> int | None:
        """Return the time of all rows; None if there are several times, or no rows."""
        times = self.words[-2]
        return int(times[0]) if self.rows and (times == times[0]).all() else None

    def blocks(self) -> Iterator[Int64s]:
        """Yield the rows, some at a time."""
        for start in range(0, self.rows, BLOCK_ROWS):
            yield np.ascontiguousarray(self.words[:, start : start + BLOCK_ROWS])

    def passing(self) -> Iterator[tuple[Int64s, int, int]]:
        """Yield the rows, some at a time, as rows [start, stop) of a table."""
        for start in range(0, self.rows, BLOCK_ROWS):
            yield self.words, start, min(start + BLOCK_ROWS, self.rows)

    @property
    def columns(self) -> int:
        """Words of a row, time and diff included."""
        return int(self.words.shape[0])

    def in_column(self, column: int) -> Iterator[Int64s]:
        """Yield the words of a column of the row, int64[1, ·], some rows at a time."""
        yield self.words[column : column + 1]

    def with_others(self, others: Sequence[Self]) -> Self:
        """Return all rows, in order; the others have the same columns."""
        if not others:
            return self
        words = np.concatenate([self.words, *[other.words for other in others]], axis=1)
        return type(self)(words, self.symbol_words, self.moved)

    def shifted(self, keep: int, add: int) -> Self:
        """Return the rows with every time `t` moved to `(t & keep) + add`; itself if nothing changes."""
        if add == 0 and keep & _KEEP_ALL == _KEEP_ALL:
            return self
        return type(self)(shift_times(self.words, keep, add), self.symbol_words)

    def rebased(self, step: int) -> Self:
        """Return the same rows with every time later by `step`."""
        if step == 0:
            return self
        return type(self)(shift_times(self.words, -1, step), self.symbol_words, self.moved + step)

    def latest(self, shift: int, mask: int) -> int:
        """Return the largest value of the counter at `shift` and `mask` in the times of the rows."""
        return latest_counter(self.words, shift, mask)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Return the rows whose counter at `shift` and `mask` is at most `last`; None if there are none."""
        rows = self.words[:, (self.words[-2] >> shift) & mask <= last]
        return type(self)(np.ascontiguousarray(rows), self.symbol_words) if rows.shape[1] else None

    def to_frames(self, peer: int) -> list[Frame]:
        """Return header, rows, and the symbols that `peer` has not got; frame 2 is the memory of the array.

        The missing symbols are determined when the message leaves: a batch that is never sent, or stays on
        this worker, must not mark any symbol as known to a peer.
        """
        columns, rows = self.words.shape
        frames: list[Frame] = [
            msgpack.packb({"words": columns, "rows": rows}),
            self.words.reshape(-1).view(np.uint8).data,
        ]
        if self.symbol_words:
            entries = SYMBOLS.delta_for(peer, self.words[list(self.symbol_words)])
            if entries:
                frames.append(entries.to_bytes())
        return frames

    def on_sent(self, peer: int) -> None:
        """Note that the symbols of the rows are on their way to `peer`."""
        if self.symbol_words:
            SYMBOLS.on_sent(peer)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows: a batch from another worker does not say which are symbols."""
        mark.words(self.words[:-2])

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the batch of two or three frames; `PeerError` unless header, rows and symbols agree exactly.

        Rows are copied: kernels are compiled for writable arrays, and frames from a wire are read-only.
        """
        columns, rows = _checked_shape(frames, peer)
        _learn(frames, peer, (columns - 2) * rows)
        return cls(np.frombuffer(frames[1], np.int64).reshape(columns, rows).copy())

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols, drop the rows: rows of other dataflows may use these symbols without entries."""
        columns, rows = _checked_shape(frames, peer)
        _learn(frames, peer, (columns - 2) * rows)
        return frames[:2]


@register
class PackedBatch(Large):
    """An update batch that is packed on its way from an input to its first consumer, on whichever worker.

    The rows are in blocks, all at the time `word`. All have the diff `diff`, unless that is None: then the
    blocks have the diff as a column behind the row.

    The words exist nowhere until somebody reads `words`; then it is like an update batch. A consumer that
    takes the rows in parts (`parts_of`) never has all of them unpacked at once.
    """

    __slots__ = ("_blocks", "_diff", "_rows", "_width", "_word", "moved", "symbol_words")

    KIND: ClassVar[int] = 5

    def __init__(
        self,
        blocks: tuple[Block, ...],
        width: int,
        word: int,
        diff: int | None,
        symbol_words: tuple[int, ...] = (),
        moved: int = 0,
    ) -> None:
        self._blocks = blocks
        self._width = width
        self._word = word
        self._diff = diff
        self._rows = sum(block.rows for block in blocks)
        self.symbol_words = symbol_words
        self.moved = moved

    @property
    def rows(self) -> int:
        """Number of updates."""
        return self._rows

    @property
    def size_bytes(self) -> int:
        """The bytes of the blocks, packed."""
        return int(sum(block.bytes for block in self._blocks))

    @property
    def words(self) -> Int64s:
        """All rows, unpacked anew for each call."""
        return self._unpacked(self._blocks)

    def least_time(self) -> int:
        """Return the time of all rows."""
        return self._word

    def only_time(self) -> int:
        """Return the time of all rows."""
        return self._word

    def blocks(self) -> Iterator[Int64s]:
        """Yield the rows of each block, as words."""
        for block in self._blocks:
            yield self._unpacked((block,))

    def passing(self) -> Iterator[tuple[Int64s, int, int]]:
        """Yield the rows, some at a time, as rows [start, stop) of a table that the next one overwrites."""
        columns = self._width + 2
        rows = min(_PASSING_ROWS, max(block.rows for block in self._blocks))
        room = room_for(1, columns * rows)[0]
        for block in self._blocks:
            for start in range(0, block.rows, rows):
                some = block if block.rows <= rows else block.between(start, min(start + rows, block.rows))
                words = room[: columns * some.rows].reshape(columns, some.rows)
                self._unpack((some,), words)
                yield words, 0, some.rows

    @property
    def columns(self) -> int:
        """Words of a row, time and diff included."""
        return self._width + 2

    def in_column(self, column: int) -> Iterator[Int64s]:
        """Yield the words of a column of the row, int64[1, ·], of each block."""
        for block in self._blocks:
            words: Int64s = np.empty((1, block.rows), np.int64)
            block.write(column, words[0])
            yield words

    def packed(self) -> list[Block]:
        """Return the rows as they are, with time and diff as columns, in the same memory."""
        width, diff = self._width, self._diff
        sources = [*range(width), -1, width if diff is None else -1]
        same = [*[0] * width, self._word, diff or 0]
        return [block.with_columns(sources, same) for block in self._blocks]

    def projected(
        self, sources: Sequence[int], same: Sequence[int], sign: int, symbol_words: tuple[int, ...]
    ) -> PackedBatch | None:
        """Return the rows with other columns, as `Block.with_columns`, in the same memory, times `sign`.

        Returns None if the new multiplicities would need memory: if they differ by row, or do not fit 64
        bits.
        """
        diff = self._diff
        if sign != 1 and (diff is None or diff == _LEAST_DIFF):
            return None
        if diff is None:
            sources, same = [*sources, self._width], [*same, 0]
        blocks = tuple(block.with_columns(sources, same) for block in self._blocks)
        width = len(sources) - (diff is None)
        diff = None if diff is None else sign * diff
        return PackedBatch(blocks, width, self._word, diff, symbol_words, self.moved)

    def declared(self, symbol_words: tuple[int, ...]) -> PackedBatch:
        """Return the same rows, and note that these words are symbols."""
        return PackedBatch(self._blocks, self._width, self._word, self._diff, symbol_words, self.moved)

    def messages(self) -> Iterator[PackedBatch]:
        """Yield one batch for each block."""
        for block in self._blocks:
            yield PackedBatch((block,), self._width, self._word, self._diff, self.symbol_words, self.moved)

    def _unpacked(self, blocks: Sequence[Block]) -> Int64s:
        words = room_for(self._width + 2, sum(block.rows for block in blocks))
        self._unpack(blocks, words)
        return words

    def _unpack(self, blocks: Sequence[Block], words: Int64s) -> None:
        width = self._width
        start = 0
        for block in blocks:
            stop = start + block.rows
            for column in range(width):
                block.write(column, words[column, start:stop])
            if self._diff is None:
                block.write(width, words[width + 1, start:stop])
            start = stop
        words[width] = self._word
        if self._diff is not None:
            words[width + 1] = self._diff

    def shifted(self, keep: int, add: int) -> Self:
        """Return the same rows with their time `t` moved to `(t & keep) + add`."""
        return self._at((self._word & keep) + add, self.moved)

    def rebased(self, step: int) -> Self:
        """Return the same rows later by `step`."""
        return self._at(self._word + step, self.moved + step)

    def _at(self, word: int, moved: int) -> Self:
        if word == self._word:
            return self
        return type(self)(self._blocks, self._width, word, self._diff, self.symbol_words, moved)

    def latest(self, shift: int, mask: int) -> int:
        """Return the value of the counter at `shift` and `mask` in the time of the rows."""
        return (self._word >> shift) & mask

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Return the batch itself if the counter at `shift` and `mask` is at most `last`; otherwise None."""
        return self if self.latest(shift, mask) <= last else None

    def to_frames(self, peer: int) -> list[Frame]:
        """Return header, bytes, and the symbols that `peer` lacks. Requires one block, as from `messages`."""
        if len(self._blocks) != 1:
            raise InternalError(f"a packed batch of {len(self._blocks)} blocks was to be sent as one message")
        (block,) = self._blocks
        frames: list[Frame] = [*to_send(Sent(block, self._word, self._diff))]
        if self.symbol_words:
            words: Int64s = np.empty((len(self.symbol_words), block.rows), np.int64)
            for row, column in enumerate(self.symbol_words):
                block.write(column, words[row])
            entries = SYMBOLS.delta_for(peer, words)
            if entries:
                frames.append(entries.to_bytes())
        return frames

    def on_sent(self, peer: int) -> None:
        """Note that the symbols of the rows are on their way to `peer`."""
        if self.symbol_words:
            SYMBOLS.on_sent(peer)

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows, as an update batch does."""
        for block in self._blocks:
            block.symbols(mark, range(self._width))

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Return the batch of two or three frames; `PeerError` unless header, bytes and symbols agree.

        Its rows stay in the frames' memory.
        """
        sent = _checked_block(frames, peer)
        return cls((sent.block,), _width_of(sent), sent.word, sent.diff)

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols, drop the rows: rows of other dataflows may use these symbols without entries."""
        _checked_block(frames, peer)
        return frames[:2]


def as_batch(ordered: PackedRows | Int64s) -> UpdateBatch | PackedBatch:
    """Return sorted rows in the form in which they are sent: packed if they are many and have one time."""
    if not isinstance(ordered, PackedRows):
        return UpdateBatch(ordered)
    if ordered.rows >= SENT_PACKED_ROWS_MIN and (ranges := ordered.ranges())[-2, 0] == ranges[-2, 1]:
        width = ranges.shape[0] - 2
        sources = [*range(width), width + 1]
        blocks = [
            Block(words).with_columns(sources, [0] * len(sources)) for words in ordered.drained(BLOCK_ROWS)
        ]
        return PackedBatch(tuple(blocks), width, int(ranges[-2, 0]), None)
    return UpdateBatch(ordered.unpack(0, ordered.rows))


def _checked_shape(frames: Sequence[memoryview], peer: int) -> tuple[int, int]:
    """Return columns and rows of a batch on the wire; `PeerError` if header and size do not fit."""
    if len(frames) not in (2, 3):
        raise PeerError(f"worker {peer} sent updates in frames: {len(frames)}, not two or three")
    try:
        header = msgpack.unpackb(frames[0])
    except UNPACK_ERRORS as error:
        raise PeerError(
            f"worker {peer} sent updates with a header that is not msgpack: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(header, dict) or header.keys() != {"words", "rows"}:
        raise PeerError(f"worker {peer} sent updates with a header that is not {{words, rows}}")
    columns, rows = header["words"], header["rows"]
    if type(columns) is not int or type(rows) is not int or not 2 <= columns <= ROW_WORDS_MAX or rows < 1:
        raise PeerError(
            f"worker {peer} sent updates of an impossible shape: {shown(columns)} words, {shown(rows)} rows"
        )
    size = frames[1].nbytes
    if size != 8 * columns * rows:
        raise PeerError(
            f"worker {peer} sent updates whose size is not that of their shape: {size} for words {columns}, "
            f"rows {rows}"
        )
    return columns, rows


def _checked_block(frames: Sequence[memoryview], peer: int) -> Sent:
    """Return the block of a packed batch on the wire, and learn its symbols."""
    if len(frames) not in (2, 3):
        raise PeerError(f"worker {peer} sent packed updates in frames: {len(frames)}, not two or three")
    sent = received(frames[0], frames[1], peer)
    _learn(frames, peer, _width_of(sent) * sent.block.rows)
    return sent


def _width_of(sent: Sent) -> int:
    return sent.block.columns - (sent.diff is None)


def _learn(frames: Sequence[memoryview], peer: int, count_max: int) -> None:
    if len(frames) == 3:
        SYMBOLS.learn(SymbolEntries.from_bytes(frames[2], peer, count_max), peer)


def with_symbols(batch: Batch, symbol_words: Sequence[int]) -> Batch:
    """Return a batch that was received, with its symbols declared, so that it can be sent on."""
    symbols = tuple(symbol_words)
    if isinstance(batch, PackedBatch):
        return batch.declared(symbols)
    return UpdateBatch(batch.words, symbols) if isinstance(batch, UpdateBatch) else batch


def rows_of(batch: Batch) -> UpdateBatch | PackedBatch:
    """Return an update batch as it is; `InternalError` for a batch of another kind."""
    if not isinstance(batch, UpdateBatch | PackedBatch):
        raise InternalError(f"a differential operator got a {type(batch).__name__}")
    return batch


def words_of(batch: Batch) -> Int64s:
    """Return the rows of an update batch; `InternalError` for a batch of another kind."""
    return batch.words if isinstance(batch, UpdateBatch) else rows_of(batch).words


def parts_of(batch: Batch) -> Iterable[Int64s]:
    """Yield the rows of an update batch in one or more parts; each can be dropped before the next comes."""
    return (batch.words,) if isinstance(batch, UpdateBatch) else rows_of(batch).blocks()
