"""Routes: they decide which worker each row of a batch goes to.

A connector without a route is a *pipeline*: the batch stays on its worker. A `Route` splits a batch into one
part per worker. Rows that must meet (the same key) must get the same worker on every worker, so a route may
depend only on the row, its time, and the routing (`wire/routing.py`), which is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from progress.compiled.arrays import Int64s
from progress.errors import InternalError, MisuseError, PeerError

from ..thresholds import DIVIDED_RECORDS_MIN
from ..user_code.code_digest import calls_hash, digest_of
from ..wire.arrow import number_array
from ..wire.batch import Batch, Records
from ..wire.claims import shown
from ..wire.frames.table_batch import TableBatch
from ..wire.routing import BUCKETS, Routing
from .record_columns import divided_records, keys_numbered
from .record_hash import KeyNumber
from .tables.column_hash import numbers_of_rows, order_by_worker


class Route(Protocol):
    """Splits batches between workers."""

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return one part per worker, by index; `None` where a worker gets nothing.

        `word` is the envelope time; rows with times of their own are routed by these.
        """
        ...

    def describe(self) -> str:
        """Return a stable text, part of the fingerprint of the dataflow."""
        ...


def is_route(thing: object) -> bool:
    """Return True if `thing` has the methods of a `Route`."""
    return callable(getattr(thing, "split", None)) and callable(getattr(thing, "describe", None))


@runtime_checkable
class Expects(Protocol):
    """A route that knows which batches arrive by it. Other routes take every batch."""

    def check(self, batch: Batch, peer: int) -> None:
        """Raise `PeerError` for a batch that worker `peer` cannot have sent by it."""
        ...


class RecordRoute:
    """Routes records by an integer function of the record; modulo the number of buckets it is the bucket.

    Python's function `hash` stands for `by()`: its own results differ between processes. A function that
    calls `hash` may return other numbers in other processes, although workers share the seed for text. So
    the worker that gets the records calls the function once more (`confirm`), unless a routing may have
    moved them (`moves`).
    """

    def __init__(self, partition: Callable[[object], int], *, moves: bool = False) -> None:
        self._partition = KeyNumber((), "hash", ()) if partition is hash else partition
        self._name = str(getattr(self._partition, "__qualname__", "function"))
        own = self._partition.key if isinstance(self._partition, KeyNumber) else self._partition
        self.is_doubtful = not moves and calls_hash(own)

    def describe(self) -> str:
        """Return the name of the function, and a digest of its code: workers that route differently must not
        start.
        """
        return f"exchange by {self._name} {digest_of(self._partition)}"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the records of `batch`, or the rows of a table, each at the worker that owns its bucket."""
        if isinstance(batch, TableBatch):
            return _divided(
                batch.table, self._numbers_of(batch.table), routing.owner_array_at(word), routing.workers
            )
        if not isinstance(batch, Records):
            raise InternalError(f"a record route got a {type(batch).__name__}")
        records = batch.records
        if len(records) >= DIVIDED_RECORDS_MIN and isinstance(self._partition, KeyNumber):
            numbers = keys_numbered(self._partition, records)
            if numbers is not None:
                parts = divided_records(records, numbers, routing.owner_array_at(word), routing.workers)
                return [Records(part) if part else None for part in parts]
        owners = routing.owners_at(word)
        parts = [[] for _ in range(routing.workers)]
        for record in records:
            number = self._partition(record)
            if not isinstance(number, int):
                raise MisuseError(
                    f"the exchange function {getattr(self._partition, '__qualname__', self._partition)!r} "
                    f"must return an int; for {record!r} it returned {number!r}.\n"
                    "  If that is the key by which records meet, write exchange=timely.by(lambda record: …)."
                )
            parts[owners[number % BUCKETS]].append(record)
        return [Records(part) if part else None for part in parts]

    def _numbers_of(self, table: pa.Table) -> npt.NDArray[np.uint32]:
        """Return the number of each row. Raise MisuseError if the key is a function of a record."""
        places = getattr(self._partition, "places", None)
        if places is None:
            raise MisuseError(
                f"the exchange function {self._name!r} takes records, and got a table with the columns "
                f"{', '.join(table.column_names)[:200]}. Name the columns by which rows meet: "
                "exchange=timely.by('column')"
            )
        return numbers_of_rows(table, places, self._name)

    def check(self, batch: Batch, peer: int) -> None:
        """Raise PeerError for a batch of another class: this route divides records and rows of tables."""
        if not isinstance(batch, Records | TableBatch):
            raise PeerError(f"worker {peer} sent a {type(batch).__name__} where records are exchanged")

    def confirm(
        self, batch: Batch, stage: str, peer: int, worker: int, workers: int, routing: Routing | None = None
    ) -> None:
        """Raise `MisuseError` for a record of worker `peer` that this `worker` would send elsewhere."""
        if isinstance(batch, TableBatch):
            return  # numbers of columns are the same in every process
        assert isinstance(batch, Records)
        owners = (Routing.default(workers) if routing is None else routing).owners_at(0)
        for record in batch.records:
            number = self._partition(record)
            if owners[number % BUCKETS] != worker:
                raise MisuseError(
                    f"{stage} got the record {shown(record)}, which the exchange function {self._name!r} "
                    f"sends to worker {worker} on worker {peer}, and to worker {owners[number % BUCKETS]} on "
                    f"worker {worker}. The function calls hash(), which differs between processes for None, "
                    "NaN, classes and functions, so equal keys would not meet. Write exchange=timely.by(…) "
                    "with a function that returns the key itself: timely.by(lambda record: record[0])"
                )


def _divided(
    table: pa.Table, numbers: npt.NDArray[np.uint32], owners: Int64s, workers: int
) -> list[Batch | None]:
    """Return the rows of a table for each worker, in their order, by the owners of their buckets."""
    order, bounds = order_by_worker(numbers, owners, workers)
    parts = list(pairwise(bounds.tolist()))
    if len(order) in np.diff(bounds):
        return [TableBatch(table) if first < last else None for first, last in parts]
    rows = table.combine_chunks().take(number_array(order))
    return [TableBatch(rows.slice(first, last - first)) if first < last else None for first, last in parts]


class Broadcast:
    """Every worker gets every row."""

    def describe(self) -> str:
        """Return its name."""
        return "broadcast"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the same batch for each worker."""
        return [batch] * routing.workers


class ToWorker:
    """All rows go to one worker, for example the one that writes a file."""

    def __init__(self, worker: int) -> None:
        self._worker = worker

    def describe(self) -> str:
        """Return its name with the worker."""
        return f"to worker {self._worker}"

    def split(self, batch: Batch, word: int, routing: Routing) -> list[Batch | None]:
        """Return the batch at the chosen worker."""
        chosen = self._worker % routing.workers
        return [batch if index == chosen else None for index in range(routing.workers)]
