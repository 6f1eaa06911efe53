"""Which rows are there when, and which queries are asked: what every engine gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bench.workloads import RowRange

__all__ = ["Epoch", "Query", "Stream", "StreamTable"]


@dataclass(frozen=True)
class Epoch:
    """The rows of a table that go in an epoch, and those that come."""

    gone: RowRange
    come: RowRange


@dataclass(frozen=True)
class StreamTable:
    """A table with all rows that are ever there; `epochs` begins with the load, which removes nothing.

    rowtime    a column of which Flink makes windows; then its rows are in its order, and stay
    """

    rows: pa.Table
    epochs: Sequence[Epoch]
    rowtime: str | None = None

    def part(self, rows: RowRange) -> pa.Table:
        """Some of the rows."""
        return self.rows.slice(rows.start, rows.stop - rows.start)

    @property
    def is_fixed(self) -> bool:
        """Whether nothing changes behind the load."""
        return all(epoch.gone == epoch.come == slice(0, 0) for epoch in self.epochs[1:])

    @property
    def last(self) -> pa.Table:
        """What is there after the last epoch: what has come, without what has gone, which came first."""
        came = max(epoch.come.stop for epoch in self.epochs)
        gone = max(epoch.gone.stop for epoch in self.epochs)
        return self.part(slice(gone, came))


@dataclass(frozen=True)
class Stream:
    """Tables and the watermark that ends each epoch."""

    tables: Mapping[str, StreamTable]
    watermarks: Sequence[int]

    @property
    def changes(self) -> int:
        """How many epochs there are behind the load."""
        return len(self.watermarks) - 1

    def of(self, query: Query) -> Mapping[str, StreamTable]:
        """The tables that a query reads."""
        return {name: self.tables[name] for name in query.reads}

    def loaded(self, query: Query) -> int:
        """How many rows its load has."""
        return sum(table.epochs[0].come.stop for table in self.of(query).values())


@dataclass(frozen=True)
class Query:
    """A query in the dialect of Spark, which is also that of ours; DuckDB's text is made of it.

    flink      its text in Flink SQL, where that is another
    refused    why Flink SQL does not take it
    """

    name: str
    says: str
    reads: tuple[str, ...]
    text: str
    flink: str | None = None
    refused: str | None = field(default=None)
