"""Updates in flight: rows of words with times of their own and differences.

    words   int64[w + 2, n], C-contiguous: w words of the row, time word, diff; n ≥ 1 on a wire

Neither sorted nor consolidated, as far as this class is concerned. Batches are frozen: whoever makes one
gives the array away, and several receivers may hold it.

On the wire a batch is two frames: a msgpack header {"words": w + 2, "rows": n}, and the bytes of the array
(little-endian), sent without copying. A third frame, if there is one, has the entries of symbols in the rows
that the receiver has not got yet; a receiver takes them in whatever becomes of the rows. Both ends assert the
same shape.

Which words of a row are symbols is said by what knows the columns: the input, the chain of linear operators
or the key route. What an operator sends does not say it: it stays on its worker unless one of those two
stands behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import msgpack
import numpy as np

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.worker_symbols import SYMBOLS
from differential.kernels.history.times import latest_counter, shift_times
from differential.kernels.rows.hashing import partition_by_key_hash, partition_by_unit
from progress.arrays import Int64s
from timely.dictionaries import Mark
from timely.errors import InternalError, PeerError
from timely.wire.batch import UNPACK_ERRORS, Batch, Frame, register
from timely.wire.claims import shown
from timely.wire.routing import Routing

__all__ = ["KeyRoute", "UnitRoute", "UpdateBatch", "words_of"]

_KEEP_ALL: Final = (1 << 63) - 1

assert sys.byteorder == "little", (
    "rows travel in the byte order of the machine, which is little-endian everywhere we run"
)


@register
@dataclass(frozen=True, slots=True, eq=False)
class UpdateBatch:
    """Rows of updates: int64[words + 2, rows], row words, time word, diff.

    `symbol_words`: which of the row's words are symbols, whose entries must travel along. `moved`: what was
    added to all times since the batch was sent, for words that count from other epochs; times that are among
    the row's words are the receiver's to move.
    """

    words: Int64s
    symbol_words: tuple[int, ...] = ()
    moved: int = 0

    KIND: ClassVar[int] = 2

    def __post_init__(self) -> None:
        words = self.words
        if words.ndim != 2 or words.shape[0] < 2 or words.dtype != np.int64 or not words.flags.c_contiguous:
            raise InternalError(
                f"an update batch is int64[≥ 2, n] by columns, not {words.dtype}{words.shape}"
            )

    @property
    def rows(self) -> int:
        """How many updates."""
        return int(self.words.shape[1])

    def shifted(self, keep: int, add: int) -> Self:
        """The same rows with every time `t` moved to `(t & keep) + add`; itself if that changes nothing."""
        if add == 0 and keep & _KEEP_ALL == _KEEP_ALL:
            return self
        return type(self)(shift_times(self.words, keep, add), self.symbol_words)

    def rebased(self, step: int) -> Self:
        """Every time later by `step`."""
        if step == 0:
            return self
        return type(self)(shift_times(self.words, -1, step), self.symbol_words, self.moved + step)

    def latest(self, shift: int, mask: int) -> int:
        """The largest value of the counter at `shift` and `mask` in the times of its rows."""
        return latest_counter(self.words, shift, mask)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """The rows whose counter at `shift` and `mask` is at most `last`; None if there are none."""
        rows = self.words[:, (self.words[-2] >> shift) & mask <= last]
        return type(self)(np.ascontiguousarray(rows), self.symbol_words) if rows.shape[1] else None

    def to_frames(self, peer: int) -> list[Frame]:
        """Header, rows, and the symbols that `peer` has not got; the second frame is the memory of the array.

        What `peer` has not got is found when the message leaves: a batch that is made and never sent, or not
        to another worker, has told nobody anything.
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
        """The symbols of the rows are on their way to `peer`."""
        if self.symbol_words:
            SYMBOLS.on_sent(peer)

    def symbols(self, mark: Mark) -> None:
        """All words of the rows: what came from another worker does not say which are symbols."""
        mark.words(self.words[:-2])

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """The batch of two or three frames; `PeerError` unless header, rows and symbols agree exactly.

        Rows are copied: kernels are compiled for arrays that may be written, which frames on a wire are not.
        """
        columns, rows = _checked_shape(frames, peer)
        _learn(frames, peer, (columns - 2) * rows)
        return cls(np.frombuffer(frames[1], np.int64).reshape(columns, rows).copy())

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Learn the symbols; rows of other dataflows may hold them without bringing them again."""
        columns, rows = _checked_shape(frames, peer)
        _learn(frames, peer, (columns - 2) * rows)
        return frames[:2]


def _checked_shape(frames: Sequence[memoryview], peer: int) -> tuple[int, int]:
    """Columns and rows of a batch on the wire."""
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


def _learn(frames: Sequence[memoryview], peer: int, count_max: int) -> None:
    if len(frames) == 3:
        SYMBOLS.learn(SymbolEntries.from_bytes(frames[2], peer, count_max), peer)


def words_of(batch: Batch) -> Int64s:
    """The rows of an update batch; `InternalError` for a batch of another kind."""
    if not isinstance(batch, UpdateBatch):
        raise InternalError(f"a differential operator got a {type(batch).__name__}")
    return batch.words


@dataclass(frozen=True)
class KeyRoute:
    """Sends each row to the worker that owns the bucket that its first `kw` words hash to; bucket 0 if there
    are none.

    `symbol_words`: which of the row's words are symbols, whose entries must travel along.
    """

    kw: int
    symbol_words: tuple[int, ...] = ()

    def describe(self) -> str:
        """Part of the dataflow's fingerprint."""
        return f"by key of {self.kw} words"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """The rows of each worker, by index; None where there are none. Each row's own time counts."""
        workers = routing.workers
        if not isinstance(batch, UpdateBatch):
            raise InternalError(f"a key route got a {type(batch).__name__}")
        if workers == 1:
            return [batch]
        words, bounds = partition_by_key_hash(batch.words, self.kw, workers, routing.starts, routing.owners)
        return _parts(words, bounds, self.symbol_words)


@dataclass(frozen=True)
class UnitRoute:
    """Sends each row to the worker that owns the bucket that its word `at` says: the *unit*, which somebody
    has chosen for it. By the default routing unit u is at worker u modulo the number of workers.

    Any word does, modulo the number of buckets.
    """

    symbol_words: tuple[int, ...] = ()
    at: int = 0

    def describe(self) -> str:
        """Part of the dataflow's fingerprint."""
        return f"by unit in word {self.at}" if self.at else "by unit"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """The rows of each worker, by index; None where there are none. Each row's own time counts."""
        if not isinstance(batch, UpdateBatch):
            raise InternalError(f"a route by units got a {type(batch).__name__}")
        if routing.workers == 1:
            return [batch]
        words, bounds = partition_by_unit(
            batch.words, self.at, routing.workers, routing.starts, routing.owners
        )
        return _parts(words, bounds, self.symbol_words)


def _parts(words: Int64s, bounds: Int64s, symbol_words: tuple[int, ...]) -> list[Batch | None]:
    """A batch for each worker, of the rows between two bounds; None for those without rows."""
    found: list[Batch | None] = []
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = np.ascontiguousarray(words[:, start:stop]) if stop > start else None
        found.append(None if part is None else UpdateBatch(part, symbol_words))
    return found
