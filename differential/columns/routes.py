"""Which worker gets which rows of a batch?

A route chooses a bucket by the hash of a row's key, or by a word of the row. The routing tells which worker
owns the bucket at the time of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, UpdateBatch, rows_of
from differential.kernels.rows.hashing import (
    divide_by_key_hash,
    divide_by_unit,
    partition_by_key_hash,
    partition_by_unit,
)
from differential.kernels.rows.room import room_for
from differential.thresholds import SENT_PACKED_ROWS_MIN
from progress.compiled.arrays import Int64s
from progress.errors import PeerError
from timely.wire.batch import Batch
from timely.wire.routing import Routing

__all__ = ["EveryWorkerRoute", "KeyRoute", "UnitRoute"]


@dataclass(frozen=True)
class KeyRoute:
    """Sends each row to the worker that owns the bucket of its first `kw` words' hash; bucket 0 if `kw` is 0.

    `symbol_words`: which of the row's words are symbols, whose entries must travel along. `width`: words of a
    row, which receivers check; None: not known.
    """

    kw: int
    symbol_words: tuple[int, ...] = ()
    width: int | None = None

    def describe(self) -> str:
        """Return this route's part of the dataflow's fingerprint."""
        return f"by key of {self.kw} words"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the rows for each worker, by index; None for no rows. Each row's own time counts."""
        by = partition_by_key_hash, divide_by_key_hash, self.kw
        return [batch] if routing.workers == 1 else _split(rows_of(batch), by, routing, self.symbol_words)

    def check(self, batch: Batch, peer: int) -> None:
        """Refuse rows of another width: kernels read and write as many words of a row as `width` says."""
        _check(batch, self.width, peer)


@dataclass(frozen=True)
class UnitRoute:
    """Sends each row to the worker that owns the bucket in the row's word `at`, its *unit*.

    A step in front chooses the unit. By the default routing unit u is at worker u modulo the number of
    workers. Any word will do: it counts modulo the number of buckets.
    """

    symbol_words: tuple[int, ...] = ()
    at: int = 0
    width: int | None = None

    def describe(self) -> str:
        """Return this route's part of the dataflow's fingerprint."""
        return f"by unit in word {self.at}" if self.at else "by unit"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the rows for each worker, by index; None for no rows. Each row's own time counts."""
        by = partition_by_unit, divide_by_unit, self.at
        return [batch] if routing.workers == 1 else _split(rows_of(batch), by, routing, self.symbol_words)

    def check(self, batch: Batch, peer: int) -> None:
        """Check rows as a route by keys does."""
        _check(batch, self.width, peer)


@dataclass(frozen=True)
class EveryWorkerRoute:
    """Sends each row of `width` words to all workers."""

    width: int

    def describe(self) -> str:
        """Return this route's part of the dataflow's fingerprint."""
        return "broadcast"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the same batch for each worker."""
        return [batch] * routing.workers

    def check(self, batch: Batch, peer: int) -> None:
        """Check rows as a route by keys does."""
        _check(batch, self.width, peer)


def _check(batch: Batch, width: int | None, peer: int) -> None:
    if not isinstance(batch, UpdateBatch | PackedBatch):
        raise PeerError(f"worker {peer} sent a {type(batch).__name__} where updates are exchanged")
    if width is not None and batch.columns != width + 2:
        raise PeerError(
            f"worker {peer} sent updates with rows of {batch.columns - 2} words where they have {width}"
        )


_Grouping = Callable[[Int64s, int, int, Int64s, Int64s], tuple[Int64s, Int64s]]
"""Returns rows in the order of their workers, and where those of each begin and end."""

_Dividing = Callable[[Int64s, int, int, int, Int64s, Int64s, Int64s, Int64s], None]
"""The same for some rows of one time, into memory of the caller: see `divided_by_owner`."""


def _split(
    batch: UpdateBatch | PackedBatch,
    by: tuple[_Grouping, _Dividing, int],
    routing: Routing,
    symbol_words: tuple[int, ...],
) -> list[Batch | None]:
    """Return the rows for each worker, found by two kernels; `by` is these, and a number.

    The number is how many words of a row the kernels hash, or which word has the unit. Many rows of one time
    are packed as soon as they are divided, some at a time.
    """
    group, divide, words_of_route = by
    workers, starts, owners = routing.workers, routing.starts, routing.owners
    time = batch.only_time() if batch.rows >= SENT_PACKED_ROWS_MIN else None
    if time is None:
        return _parts(*group(batch.words, words_of_route, workers, starts, owners), symbol_words)
    blocks: list[list[Block]] = [[] for _ in range(workers)]
    out: Int64s = np.empty(0, np.int64)
    bounds: Int64s = np.empty(workers + 1, np.int64)
    columns = 0
    for words, start, stop in batch.passing():
        columns = words.shape[0] - 1
        if out.shape[0] < columns * (stop - start):
            out = room_for(1, columns * (stop - start))[0]
        divide(words, start, stop - start, words_of_route, starts, owners, out, bounds)
        for worker, (first, last) in enumerate(pairwise(bounds.tolist())):
            if first < last:
                rows = out[columns * first : columns * last].reshape(columns, last - first)
                blocks[worker].append(Block(rows))
    width = columns - 1
    return [PackedBatch(tuple(each), width, time, None, symbol_words) if each else None for each in blocks]


def _parts(words: Int64s, bounds: Int64s, symbol_words: tuple[int, ...]) -> list[Batch | None]:
    """Return a batch for each worker, of the rows between two bounds; None for workers without rows."""
    batches: list[Batch | None] = []
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = np.ascontiguousarray(words[:, start:stop]) if stop > start else None
        batches.append(None if part is None else UpdateBatch(part, symbol_words))
    return batches
