"""Streams whose messages are Arrow tables: operators whose functions get a table, not a record.

A vertex sends a table by `send_by`, as it sends a list of records. `tables(stream)` says of a stream that all
its messages are tables, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...operators.records.by_time import CountVertex
from ...operators.records.of_tables import (
    BranchTableVertex,
    ColumnAggregateVertex,
    FilterTableVertex,
    MapTableVertex,
    OfTable,
    PartitionTableVertex,
    PutOffTableVertex,
    ShowTableVertex,
)
from ...operators.records.one_by_one import PassVertex
from ...operators.vertex import Vertex
from ...user_code.call_site import call_site
from ...user_code.code_digest import digest_of
from ...user_code.spellings import Same, Spellings
from ...wire.claims import shown
from ..exchange import Broadcast, Route, ToWorker
from ..other_spellings import OF_STREAMS
from ..record_hash import KeyNumber, by
from ..stream import Stream

__all__ = ["TableStream", "tables"]

_NOT_OF_TABLES: Final = frozenset({"flat_map", "inspect_batch", "ok_err", "state_machine"})
"""Operators of records, which a stream of tables has not."""


_ALL_ROWS: Final = "map(function), whose function gets a table and returns one, of any number of rows"
_KEYED: Final = "aggregate(['column'], total=('cents', 'sum'))"
_SHOWN: Final = "inspect(function), whose function gets a table"
_STAGE: Final = (
    "stage(name, Vertex, exchange=timely.by('column')), whose on_recv gets tables; or, for records, "
    "unary('records', make)"
)


def _for_tables(entry: str | Same) -> str | Same:
    """Return what to write for a stream of tables where for one of records it would be `entry`."""
    written = entry.attribute if isinstance(entry, Same) else entry.partition("(")[0]
    if written in _NOT_OF_TABLES:
        return {"flat_map": _ALL_ROWS, "inspect_batch": _SHOWN}.get(written, _STAGE)
    is_fold = isinstance(entry, str) and ("aggregate(fold" in entry or ").aggregate(" in entry)
    return _KEYED if is_fold else entry


_OF_TABLE_STREAMS: Final = Spellings(
    {
        **{name: _for_tables(entry) for name, entry in OF_STREAMS.names.items()},
        **dict.fromkeys(
            (
                "flat_map",
                "flatMap",
                "select",
                "with_columns",
                "assign",
                "rename",
                "drop",
                "explode",
                "map_batches",
            ),
            _ALL_ROWS,
        ),
        **dict.fromkeys(("where", "query"), "filter(function), whose function returns a mask, or a table"),
        **dict.fromkeys(("group_by", "groupBy", "groupby", "agg", "sum", "reduce", "fold"), _KEYED),
        **dict.fromkeys(("inspect_batch", "foreach", "for_each"), _SHOWN),
        **dict.fromkeys(("state_machine", "ok_err", "join", "sort", "sort_by"), _STAGE),
        **dict.fromkeys(("union", "union_all", "merge", "concatenate"), "concat(*streams)"),
        **dict.fromkeys(("shuffle", "repartition", "rebalance"), "exchange(timely.by('column'))"),
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class TableStream(Stream):
    """A stream all of whose messages are tables. Its operators return streams of tables, too."""

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> object:
            if name in _NOT_OF_TABLES:
                raise AttributeError(_missing(name))
            return super().__getattribute__(name)

        def __getattr__(self, name: str) -> object:
            raise AttributeError(_missing(name))

    def __dir__(self) -> list[str]:
        """Return what a stream of tables has."""
        return [name for name in super().__dir__() if name not in _NOT_OF_TABLES]

    def map(self, function: Callable[[pa.Table], object]) -> TableStream:
        """Return the table that `function` returns for each table."""
        return self._of_table("map", function, MapTableVertex)[0]

    def filter(self, condition: Callable[[pa.Table], object]) -> TableStream:
        """Return the rows for which the mask that `condition` returns is true; it may also return a table."""
        return self._of_table("filter", condition, FilterTableVertex)[0]

    def inspect(self, function: Callable[[pa.Table], object]) -> TableStream:
        """Call `function` with each table, on the worker that has it, and return the same tables."""
        return self._of_table("inspect", function, ShowTableVertex)[0]

    def branch(self, condition: Callable[[pa.Table], object]) -> tuple[TableStream, TableStream]:
        """Return the rows for which the mask that `condition` returns is true, and the others."""
        yes, no = self._of_table("branch", condition, BranchTableVertex, outputs=2)
        return yes, no

    def partition(  # type: ignore[override]  # of streams of tables
        self, parts: int, function: Callable[[pa.Table], object]
    ) -> list[TableStream]:
        """Return `parts` streams: each row is in the one whose number, from 0, stands in the array that
        `function` returns.
        """
        if type(parts) is not int or parts < 1:
            raise MisuseError(
                f"partition(parts, function): `parts` is a number from 1 on, not {shown(parts)}"
            )
        return self._of_table(
            "partition",
            function,
            partial(PartitionTableVertex, parts),
            outputs=parts,
            detail=f"{parts} parts",
        )

    def delay(self, function: Callable[[pa.Table, Timestamp], Timestamp]) -> TableStream:
        """Return each table at the time that `function(table, time)` returns, which is `time` or later."""
        return self._of_table("delay", cast(OfTable, function), PutOffTableVertex)[0]

    def exchange(self, key: Callable[[object], int] | Route) -> TableStream:
        """Return the same rows, those with equal values in some columns on one worker:
        `exchange(timely.by("customer"))`. They go where records with these keys go.
        """
        if callable(key) and key is not hash and getattr(key, "places", None) is None:
            name = key.__qualname__ if isinstance(key, KeyNumber) else shown(key)
            raise MisuseError(
                f"exchange({name}) of a stream of tables ({call_site()}): rows of tables are divided by "
                "columns, and not by a function of a record. Write exchange(timely.by('column'))"
            )
        return tables(self.stage("exchange", PassVertex, exchange=key))

    def broadcast(self) -> TableStream:
        """Return all tables on each worker."""
        return tables(self.stage("broadcast", PassVertex, exchange=Broadcast()))

    def concat(self, *others: Stream) -> TableStream:
        """Return the tables of this stream and of all others, which are of the same loop."""
        return tables(super().concat(*others))

    def count(self) -> Stream:
        """Return the number of rows of each time that has any, on all workers together, as a record."""
        return self.stage("count", CountVertex).aggregate(_added, 0, _second)

    def aggregate(  # type: ignore[override]  # of columns
        self, by_columns: str | Sequence[str] = (), **wanted: tuple[str, str] | str
    ) -> TableStream:
        """Aggregate the rows of each time that have equal values in the columns `by_columns`, when the time
        is complete: `aggregate("customer", total=("cents", "sum"), n="count")`.

        By name of a column of the result: a column and the name of one of Arrow's functions for groups, such
        as "sum", "min", "max", "mean", "count", "count_distinct"; or "count" alone, the number of rows.
        """
        columns = (by_columns,) if isinstance(by_columns, str) else tuple(by_columns)
        calls: dict[str, tuple[str | None, str]] = {}
        handed_in: dict[str, object] = dict(wanted)
        for name, call in handed_in.items():
            if call == "count":
                calls[name] = (None, "count_all")
            elif isinstance(call, tuple) and len(call) == 2 and all(isinstance(each, str) for each in call):
                calls[name] = call
            else:
                raise MisuseError(
                    f"aggregate(…, {name}={shown(call)}) ({call_site()}): write {name}=('column', 'sum'), or "
                    f"{name}='count' for the number of rows"
                )
        if not all(isinstance(column, str) for column in columns) or not calls or set(calls) & set(columns):
            raise MisuseError(
                f"aggregate({shown(by_columns)}, …) ({call_site()}) takes names of columns, and what to "
                f"compute under other names: {_KEYED}"
            )
        route = by(*columns) if columns else ToWorker(0)
        (output,) = self.dataflow.stage(
            "aggregate",
            lambda: ColumnAggregateVertex(columns, calls),
            [self.feed(exchange=route)],
            detail=f"aggregate {calls} by {columns}",
        )
        return tables(output)

    def _of_table(
        self,
        operator: str,
        function: object,
        vertex: Callable[[OfTable], Vertex],
        *,
        outputs: int = 1,
        detail: str = "",
    ) -> list[TableStream]:
        """Add the stage of an operator that calls a function of a table."""
        if not callable(function):
            raise MisuseError(f"{operator}(function): `function` is a function, not {shown(function)}")
        called = cast(OfTable, function)
        streams = self.dataflow.stage(
            operator,
            lambda: vertex(called),
            [self.feed()],
            outputs=outputs,
            detail=f"{operator} of tables {detail} {digest_of(function)}",
        )
        return [tables(stream) for stream in streams]


def _missing(name: str) -> str:
    return _OF_TABLE_STREAMS.message(f"a stream of tables has no {name!r}", name, dir(TableStream))


def tables(stream: Stream) -> TableStream:
    """Return a stream all of whose messages are tables, such as what a vertex sends that was written by hand,
    with the operators of streams of tables.
    """
    handed_in: object = stream
    if not isinstance(handed_in, Stream):
        raise MisuseError(
            f"timely.tables(stream) ({call_site()}) takes a stream, such as what stage(…) or loop.enter(…) "
            f"returns, and not {shown(handed_in)}"
        )
    return TableStream(stream.dataflow, stream.stage_index, stream.output, stream.scope)


def _added(total: int, count: int) -> int:
    return total + count


def _second(first: object, second: object) -> object:
    return second
