"""Vertices behind the methods of `TableStream`: they take and send Arrow tables.

Their functions get a whole table, all rows of one time, as it came in; how rows are divided into tables is up
to inputs, exchanges and the size of messages. All but `PutOffTableVertex` keep nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...wire.arrow import number_array
from ...wire.claims import shown
from ..vertex import Vertex

__all__ = [
    "BranchTableVertex",
    "ColumnAggregateVertex",
    "FilterTableVertex",
    "MapTableVertex",
    "OfTable",
    "PartitionTableVertex",
    "PutOffTableVertex",
    "ShowTableVertex",
    "TableDelays",
]

OfTable: TypeAlias = Callable[[pa.Table], object]
"""Takes a table."""
TableDelays: TypeAlias = Callable[[pa.Table, Timestamp], Timestamp]
"""Takes a table and its time, and returns when it is to be sent."""


class _TableVertex(Vertex):
    """Calls `on_table` with each table; records are refused."""

    keeps: ClassVar[str] = "nothing"

    def __init__(self, function: OfTable) -> None:
        self._function = function

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Take a table."""
        self.on_table(_table_of(self, message), time)

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Do what there is to do with a table."""
        raise NotImplementedError


class MapTableVertex(_TableVertex):
    """Sends the result for each table."""

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Send the result."""
        result = self._function(table)
        if not isinstance(result, (pa.Table, pa.RecordBatch)):
            raise MisuseError(
                f"{self!r}: the function of map returned {_what(result)} for a table; it returns a table, "
                "which may have other columns and any number of rows"
            )
        self.send_by(0, result, time)


class FilterTableVertex(_TableVertex):
    """Sends the rows that the function chooses."""

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Send these rows."""
        chosen = self._function(table)
        if isinstance(chosen, (pa.Table, pa.RecordBatch)):
            self.send_by(0, chosen, time)
        else:
            self.send_by(0, table.filter(number_array(_mask_of(self, "filter", chosen, table))), time)


class BranchTableVertex(_TableVertex):
    """Sends rows for which the mask is true by output 0, and the others by output 1."""

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Divide the rows."""
        mask = _mask_of(self, "branch", self._function(table), table)
        self.send_by(0, table.filter(number_array(mask)), time)
        self.send_by(1, table.filter(number_array(~mask)), time)


class PartitionTableVertex(_TableVertex):
    """Sends each row by the output whose number is in the array that the function returns."""

    def __init__(self, parts: int, function: OfTable) -> None:
        super().__init__(function)
        self._parts = parts

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Divide the rows."""
        result = self._function(table)
        numbers = _array_of(result)
        if (
            numbers is None
            or numbers.dtype.kind not in "iu"
            or len(numbers) != table.num_rows
            or (len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < self._parts)
        ):
            raise MisuseError(
                f"{self!r}: the function of partition returned {_what(result)} for a table of "
                f"{table.num_rows:,} rows; it returns an array with the number of a part for each row, 0 to "
                f"{self._parts - 1}, without nulls"
            )
        for output in range(self._parts):
            self.send_by(output, table.filter(number_array(numbers == output)), time)


class ShowTableVertex(_TableVertex):
    """Shows each table to a function, and sends it on."""

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Show the table, and send it."""
        self._function(table)
        self.send_by(0, table, time)


class PutOffTableVertex(_TableVertex):
    """Sends each table at the time that the function returns, which is the same or later."""

    keeps: ClassVar[str] = ""

    def on_table(self, table: pa.Table, time: Timestamp) -> None:
        """Send the table at its new time."""
        later: object = cast("TableDelays", self._function)(table, time)
        if not isinstance(later, tuple) or not self.code.shape.less_equal(tuple(time), later):
            raise MisuseError(
                f"{self!r}: the function of delay returned {shown(later)} for a table at {time}; it returns "
                "the same time or a later one, such as (time[0] + 1,)"
            )
        self.send_by(0, table, later)


class ColumnAggregateVertex(Vertex):
    """Aggregates the rows of each time by the columns `by`: `wanted` is by name of the result its column and
    Arrow's function; without a column, the number of rows. Rows with equal values meet: the exchange in front
    sees to that.
    """

    keeps: ClassVar[str] = "nothing"

    def __init__(self, by: Sequence[str], wanted: Mapping[str, tuple[str | None, str]]) -> None:
        self._by = list(by)
        self._wanted = dict(wanted)
        self._tables: dict[Timestamp, list[pa.Table]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Keep the table until its time is complete."""
        table = _table_of(self, message)
        if time not in self._tables:
            self._tables[time] = []
            self.notify_at(time)
        self._tables[time].append(table)

    def on_notify(self, time: Timestamp) -> None:
        """Send the result of a time."""
        names = list(dict.fromkeys([*self._by, *(c for c, _ in self._wanted.values() if c is not None)]))
        tables = self._tables.pop(time)
        for table in tables:
            missing = [name for name in names if table.column_names.count(name) != 1]
            if missing:
                raise MisuseError(
                    f"{self!r}: a table with the columns {', '.join(table.column_names)[:200]} has no column "
                    f"{missing[0]!r}, which aggregate names, or several"
                )
        # Numbers for names: those of Arrow's results would be ambiguous.
        place = {name: str(at) for at, name in enumerate(names)}
        calls = [((place[c] if c is not None else []), function) for c, function in self._wanted.values()]
        try:
            if names:
                rows = pa.concat_tables(
                    [table.select(names).rename_columns([*place.values()]) for table in tables]
                )
            else:
                rows = pa.table(
                    {"": number_array(np.zeros(sum(table.num_rows for table in tables), np.int64))}
                )
            result = rows.group_by([place[name] for name in self._by], use_threads=False).aggregate(
                list(dict.fromkeys((column if column else (), function) for column, function in calls))
            )
        except (pa.ArrowException, KeyError) as error:
            raise MisuseError(f"{self!r} cannot aggregate its tables: {error}") from error
        results = [f"{column}_{function}" if column else function for column, function in calls]
        arrays = [result.column(name) for name in (*(place[name] for name in self._by), *results)]
        self.send_by(0, pa.Table.from_arrays(arrays, [*self._by, *self._wanted]), time)


def _table_of(vertex: Vertex, message: object) -> pa.Table:
    if isinstance(message, pa.Table):
        return message
    first = message[0] if isinstance(message, list) and message else message
    raise MisuseError(
        f"{vertex!r} takes tables, and got a list of records, such as {shown(first)}. Send a table: "
        "self.send_by(0, pa.table({…}), time), or pa.Table.from_pylist(records)"
    )


def _mask_of(vertex: Vertex, operator: str, result: object, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return a mask that a function has returned, where null is false; raise `MisuseError` if it is none."""
    if (
        isinstance(result, (pa.Array, pa.ChunkedArray))
        and pa.types.is_boolean(result.type)
        and result.null_count
    ):
        result = result.fill_null(False)
    mask = _array_of(result)
    if mask is None or mask.dtype != np.bool_ or len(mask) != table.num_rows:
        also = " or a table," if operator == "filter" else ""
        raise MisuseError(
            f"{vertex!r}: the function of {operator} returned {_what(result)} for a table of "
            f"{table.num_rows:,} rows; it returns{also} an array with True or False for each row, such as "
            "pc.greater(table['cents'], 100)"
        )
    return mask.astype(np.bool_, copy=False)


def _array_of(result: object) -> npt.NDArray[np.int64] | None:
    """Return an array of Arrow or NumPy as one of NumPy; None for anything else, and for nulls."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
        if isinstance(result, pa.ChunkedArray):
            return None
    if isinstance(result, pa.Array):
        kind = result.type
        if result.null_count or not (pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
            return None
        return cast("npt.NDArray[np.int64]", result.to_numpy(zero_copy_only=False))
    if isinstance(result, np.ndarray) and result.ndim == 1:
        return cast("npt.NDArray[np.int64]", result)
    return None


def _what(result: object) -> str:
    if isinstance(result, (pa.Array, pa.ChunkedArray)):
        return f"an array of {len(result):,} values of type {result.type}, {result.null_count:,} of them null"
    if isinstance(result, np.ndarray):
        return f"an array of the shape {result.shape} and type {result.dtype}"
    return shown(result)
