"""Converts data of users to Arrow tables, and merges the answers of workers into one table.

Records travel as one binary column `record` of msgpack values. The codec of an input may name a function that
converts data to tables (its attribute `converter`, "module:function", called with the data, the Arrow schema
and the name of the input); without one, Arrow's own rules do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import itemgetter
from typing import cast

import msgpack
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..building.builders import load_function
from ..errors import InternalError, MisuseError, PeerError
from ..limits import NESTING_LEVELS_MAX, SNAPSHOT_ROWS_MAX
from ..operators.inputs.plain_rows import PlainRow, PlainRows
from ..wire.arrow import binary_array, int64_array, int64s_of
from ..wire.claims import shown
from ..wire.frames.record_values import VALUES, pack_value, unpack_value
from ..wire.frames.tables import schema_from_bytes
from ..wire.nesting import is_one_record, is_too_deep
from ..wire.requests import Reply

__all__ = [
    "InputForm",
    "accumulated",
    "at_epoch",
    "chunks",
    "columns_of",
    "expanded",
    "exported_forms",
    "imported_names",
    "input_forms",
    "is_of_pandas",
    "merged_changes",
    "open_ahead",
    "output_forms",
    "records_of",
    "summed",
    "with_values",
]

_VALUES = "differential.columns.symbols.arrow_values:with_values"
"""What makes values of packed columns, which `differential` knows."""

_LOOKED_AT_ROWS = 1 << 15
_KEY_BITS = 63


@dataclass(frozen=True)
class InputForm:
    """An input as a client knows it: its name, its codec's description, and how to make tables for it."""

    name: str
    description: str
    schema: pa.Schema | None = None
    converter: str | None = None
    is_plain: bool = False
    """True if it takes plain rows."""

    @property
    def is_records(self) -> bool:
        """True if it takes Python records."""
        return self.description == "records"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The columns of the key, if it keeps the last value by key; else empty."""
        packed = None if self.schema is None else (self.schema.metadata or {}).get(b"keys")
        return () if packed is None else tuple(map(str, msgpack.unpackb(packed)))

    @cached_property
    def of_keys(self) -> InputForm:
        """The form of rows that have only the columns of the key."""
        assert self.schema is not None and self.keys
        fields = [self.schema.field(name) for name in self.keys]
        return replace(self, schema=pa.schema(fields, self.schema.metadata))

    def key_rows(self, data: object) -> object:
        """Return `data` as rows for `of_keys`. `data` may be a table with these columns among others, tuples,
        or bare values if the key has one column. Data without all columns of the key come back as they are,
        and the conversion refuses them.
        """
        names = list(self.keys)
        if isinstance(data, pa.Table | pa.RecordBatch):
            return data.select([name for name in names if data.schema.get_field_index(name) >= 0])
        if is_of_pandas(data, "DataFrame"):
            frame = cast("Mapping[object, object]", data)
            return frame[[name for name in names if name in frame]]
        if type(data).__module__.startswith("polars.") and type(data).__name__ == "DataFrame":
            columns: list[str] = data.columns  # type: ignore[attr-defined]
            return data.select([name for name in names if name in columns])  # type: ignore[attr-defined]
        if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping | np.ndarray):
            data = list(data)
            if len(names) == 1 and not any(isinstance(each, tuple | list | Mapping) for each in data):
                data = [(each,) for each in data]
        return data

    @cached_property
    def plain_rows(self) -> Callable[[object], list[PlainRow] | None]:
        """A function that returns data as they are if they are few plain rows, which need no table; else
        None.
        """
        return PlainRows(self.schema).of if self.is_plain and self.schema is not None else _none_plain

    @cached_property
    def _convert(self) -> Callable[[object, pa.Schema | None, str], object]:
        assert self.converter is not None
        return cast(
            Callable[[object, pa.Schema | None, str], object], load_function(self.converter, "a converter")
        )

    def to_table(self, data: object) -> pa.Table:
        """Return `data` as a table for this input; raise `MisuseError` if they do not fit."""
        if self.is_records:
            return self._records(data)
        if self.converter is not None:
            table = self._convert(data, self.schema, self.name)
            if not isinstance(table, pa.Table):
                raise InternalError(f"{self.converter} made a {type(table).__name__}, not an Arrow table")
            return table
        try:
            return _plain_table(data, self.schema)
        except (pa.ArrowException, AttributeError, TypeError, ValueError, KeyError) as error:
            raise MisuseError(
                f"input {self.name!r} takes {self.description}; this {type(data).__name__} does not fit: "
                f"{error}"
            ) from error

    def _records(self, data: object) -> pa.Table:
        if isinstance(data, pa.Table):
            return data
        if is_one_record(data) or not isinstance(data, Iterable):
            raise MisuseError(
                f"input {self.name!r} takes a list of records, not one {type(data).__name__}: write "
                "[record, …]"
            )
        records = list(data)
        for row, record in enumerate(records):
            if is_too_deep(record):
                raise MisuseError(
                    f"input {self.name!r}, record {row}: it is nested more than {NESTING_LEVELS_MAX} deep"
                )
        try:
            packed = [pack_value(record) for record in records]
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(f"input {self.name!r}: a record holds {VALUES}: {error}") from error
        return pa.Table.from_arrays([binary_array(packed)], ["record"])


def columns_of(rows: Sequence[object], names: Sequence[str]) -> list[Sequence[object]] | None:
    """Return the columns of dicts that have just these names, or of tuples with as many values; None for rows
    that have to be looked at one by one. No code of Python runs for each row.
    """
    kinds = set(map(type, rows))
    if kinds not in ({dict}, {tuple}) or set(map(len, cast("Sequence[Sized]", rows))) != {len(names)}:
        return None
    if kinds == {tuple}:
        return list(zip(*cast("Sequence[tuple[object, ...]]", rows), strict=True))
    try:
        return [list(map(itemgetter(name), cast("Sequence[Mapping[str, object]]", rows))) for name in names]
    except KeyError:
        return None


def with_values(table: pa.Table) -> pa.Table:
    """Return a table as users are given it: packed values are values wherever Arrow makes Python objects."""
    if any(field.metadata for field in table.schema):
        return _values_function()(table)
    return table


@cache
def _values_function() -> Callable[[pa.Table], pa.Table]:
    """Return the function that `_VALUES` names. To load it takes longer than to read a small table."""
    return load_function(_VALUES, "columns of type any")


def records_of(table: pa.Table) -> list[tuple[int, object]]:
    """Return the (epoch, record) pairs of an output of records, by epoch; raise `PeerError` if a worker has
    sent something else.
    """
    try:
        epochs = table.column("epoch").to_pylist()
        records = [unpack_value(packed) for packed in table.column("record").to_pylist()]
        return sorted(zip(epochs, records, strict=True), key=_first)
    except Exception as error:  # msgpack raises whatever a map's key or a nesting leads to
        raise PeerError(
            f"a worker sent records that cannot be read: {type(error).__name__}: {error}"
        ) from error


def merged_changes(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the changes of all workers as one table, sorted by (epoch, columns). Equal rows are one row with
    the sum of their `diff`; rows that cancel are left out.
    """
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return tables[0]
    names = filled[0].column_names
    others = [name for name in names if name not in ("epoch", "diff")]
    names = [name for name in ("epoch", *others, "diff") if name in names]
    if len(filled) > 1 and (merged := _merged(filled, names)) is not None:
        return merged
    return _sorted(filled[0] if len(filled) == 1 else summed(pa.concat_tables(filled)), names)


def _merged(tables: Sequence[pa.Table], names: Sequence[str]) -> pa.Table | None:
    """Merge tables of whole numbers by numpy; return None if Arrow has to do it. For many rows numpy frees
    its memory afterwards, while Arrow keeps its own for later, as much as some of these tables. For few rows
    numpy takes a quarter of the time, and the process does not load Arrow's functions: ten MiB.

    Each worker sends its rows in order. So if a row, as numbers, fits one word, the stable sort of these
    words is a merge.
    """
    rows = sum(table.num_rows for table in tables)
    if names[-1] != "diff" or len(names) == 1 or not all(map(_is_plain, tables)):
        return None
    diffs = np.concatenate([int64s_of(table.column("diff")) for table in tables])
    if np.abs(diffs.astype(np.float64)).sum() >= 2.0**62:
        return None
    columns = [np.concatenate([int64s_of(table.column(name)) for table in tables]) for name in names[:-1]]
    order = _order_of(columns)
    for number, column in enumerate(columns):
        columns[number] = column[order]
    diffs = diffs[order]
    del order
    is_first = np.zeros(rows, np.bool_)
    is_first[0] = True
    for column in columns:
        is_first[1:] |= column[1:] != column[:-1]
    if not is_first.all():
        diffs = np.add.reduceat(diffs, np.flatnonzero(is_first))
        is_there = diffs != 0
        diffs, columns = diffs[is_there], [column[is_first][is_there] for column in columns]
    arrays = dict(zip(names, map(int64_array, [*columns, diffs]), strict=True))
    schema = tables[0].schema
    return pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _order_of(columns: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.intp]:
    """Return the order of rows, as `numpy.lexsort` of the columns in reverse: the first column counts
    most.
    """
    key, bits = np.zeros(len(columns[0]), np.int64), 0
    for column in columns:
        low, high = int(column.min()), int(column.max())
        width = (high - low).bit_length()
        bits += width
        if bits > _KEY_BITS:
            return np.lexsort(columns[::-1])
        key <<= width
        key += column - low
    return np.argsort(key, kind="stable")


def _is_plain(table: pa.Table) -> bool:
    return all(column.type == pa.int64() and not column.null_count for column in table.columns)


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table sorted by these columns, ascending. Rows of whole numbers are sorted by numpy: to load
    Arrow's functions takes a twelfth of the time until the first answer of a fresh process. Rows of one
    worker are usually in order already: to check that takes no memory, while sorting takes as much as the
    table.
    """
    if not _is_plain(table):
        return table.sort_by([(name, "ascending") for name in names])
    columns = dict(zip(table.column_names, map(int64s_of, table.columns), strict=True))
    if _are_in_order([columns[name] for name in names], table.num_rows):
        return table
    order = _order_of([columns[name] for name in names])
    return pa.Table.from_arrays([int64_array(each[order]) for each in columns.values()], schema=table.schema)


def _are_in_order(columns: Sequence[npt.NDArray[np.int64]], rows: int) -> bool:
    """Return True if the rows are sorted; compare `_LOOKED_AT_ROWS` rows at a time."""
    for start in range(0, rows - 1, _LOOKED_AT_ROWS):
        stop = min(start + _LOOKED_AT_ROWS, rows - 1)
        undecided = np.ones(stop - start, np.bool_)
        for column in columns:
            these, following = column[start:stop], column[start + 1 : stop + 1]
            if (undecided & (these > following)).any():
                return False
            undecided &= these == following
            if not undecided.any():
                break
    return True


def at_epoch(table: pa.Table, start: int, stop: int | None = None) -> pa.Table:
    """Return the rows of epochs `start` ≤ epoch < `stop` (by default only `start`) of a table sorted by
    epoch.
    """
    epochs = int64s_of(table.column("epoch"))
    first, last = np.searchsorted(epochs, [start, start + 1 if stop is None else stop])
    return table.slice(int(first), int(last - first))


def accumulated(tables: Sequence[pa.Table], epoch: int) -> pa.Table:
    """Return the snapshots of all workers as changes of one epoch: columns, `epoch`, `diff`; sorted."""
    filled = [table for table in tables if table.num_rows]
    table = summed(pa.concat_tables(filled)) if len(filled) > 1 else filled[0] if filled else tables[0]
    others = [name for name in table.column_names if name != "diff"]
    if others and table.num_rows:
        table = _sorted(table, others)
    return table.add_column(len(others), "epoch", int64_array(np.full(table.num_rows, epoch, dtype=np.int64)))


def expanded(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the snapshots of all workers as one sorted table, with each row as often as its `diff` says, if
    there is that column.
    """
    filled = [table for table in tables if table.num_rows]
    if not filled:
        return _without_diff(tables[0])
    table = filled[0] if len(filled) == 1 else pa.concat_tables(filled)
    if "diff" in table.column_names:
        # Summing takes longer than all the rest, and a row that several workers have may stand here twice: so
        # sum only if a diff is negative.
        if (int64s_of(table.column("diff")) < 0).any():
            table = summed(table)
        times = int64s_of(table.column("diff"))
        if (times < 0).any():
            first = int(np.argmax(times < 0))
            raise MisuseError(
                "the collection holds rows a negative number of times, so it is no table: read changes(). "
                f"{_shown(_without_diff(table.slice(first, 1)))} is there {times[first]:,} times: a plain "
                "input lets a client remove rows that are not there; dd.checked_input(…) refuses that"
            )
        if (times != 1).any():
            # As floats: the sum of such multiplicities may overflow 64 bits.
            if times.sum(dtype=np.float64) > SNAPSHOT_ROWS_MAX:
                raise MisuseError(
                    f"the collection holds {sum(times.tolist()):,} rows, {summed(table).num_rows:,} of them "
                    f"different; a snapshot repeats rows up to {SNAPSHOT_ROWS_MAX:,} in all. Read changes(), "
                    "which has each row once, or put distinct() or a count in front of the output"
                )
            table = table.take(int64_array(np.repeat(np.arange(table.num_rows), times)))
        table = _without_diff(table)
    return _sorted(table, table.column_names) if table.num_columns else table


def chunks(table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    """Yield the rows of `table`, in order, in pieces of about `bytes_max` at most (at least one row each)."""
    rows = max(1, table.num_rows * bytes_max // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def summed(table: pa.Table) -> pa.Table:
    """Return equal rows as one row with the sum of their `diff`; leave out rows with sum 0. In no order."""
    if "diff" not in table.column_names:
        return table
    import pyarrow.compute as pc  # takes 0.05 s, which most clients need not wait for

    names = table.column_names
    keys = [name for name in names if name != "diff"]
    if not keys:
        return table
    if np.abs(int64s_of(table.column("diff")).astype(np.float64)).sum() >= 2.0**62:
        table = _widened(table)
    summed = table.group_by(keys).aggregate([("diff", "sum")]).rename_columns([*keys, "diff"])
    if pa.types.is_decimal(summed.schema.field("diff").type):
        summed = _narrowed(summed)
    return summed.filter(pc.not_equal(summed.column("diff"), 0)).select(names)


def _widened(table: pa.Table) -> pa.Table:
    """Return the table with `diff` as decimals, which add up exactly where 64 bits would wrap."""
    index = table.column_names.index("diff")
    return table.set_column(index, "diff", table.column("diff").cast(pa.decimal128(38, 0)))


def _shown(row: pa.Table) -> str:
    """Return a row as text for a message, at most 200 characters."""
    try:
        (values,) = row.to_pylist()
    except (OverflowError, ValueError):  # Python has no such time
        return "one of them"
    return f"{values!r:.200}"


def _narrowed(table: pa.Table) -> pa.Table:
    """Return the table with `diff` in 64 bits; raise `MisuseError`, which shows the row, if one does not
    fit.
    """
    index = table.column_names.index("diff")
    for row, diff in enumerate(table.column("diff").to_pylist()):
        if not -(1 << 63) <= diff < 1 << 63:
            (values,) = table.slice(row, 1).drop_columns(["diff"]).to_pylist()
            raise MisuseError(f"the row {values} is there {diff} times, which 64 bits do not hold")
    return table.set_column(index, "diff", table.column("diff").cast(pa.int64()))


def _without_diff(table: pa.Table) -> pa.Table:
    return table.drop_columns(["diff"]) if "diff" in table.column_names else table


def _plain_table(data: object, schema: pa.Schema | None) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if is_of_pandas(data, "DataFrame"):
        return pa.Table.from_pandas(data, schema=schema, preserve_index=False)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return pa.table({name: data[name] for name in data.dtype.names}, schema=schema)
    if isinstance(data, Mapping):
        return pa.table(dict(data), schema=schema)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    rows = list(cast(Iterable[object], data))
    if schema is not None and all(isinstance(row, tuple | list) for row in rows):
        columns = zip(*cast(list[Sequence[object]], rows), strict=True) if rows else [()] * len(schema)
        return pa.Table.from_arrays(
            [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )
    for row in rows:  # Arrow would look for the names of columns in a text, and take it for a row of nulls
        if not isinstance(row, Mapping):
            raise TypeError(f"a row is a tuple or a dict, and one is {row!r:.80}")
    return pa.Table.from_pylist(rows, schema=schema)


def is_of_pandas(value: object, kind: str) -> bool:
    """Return True if `value` is of the class `kind` of pandas, "DataFrame" or "Series". Pandas need not be
    installed, and another thread may be importing it just now.
    """
    pandas_class = getattr(sys.modules.get("pandas"), kind, None)
    return isinstance(pandas_class, type) and isinstance(value, pandas_class)


def _none_plain(data: object) -> None:
    """Return None: an input that takes no plain rows has none."""
    del data


def _first(pair: tuple[int, object]) -> int:
    return pair[0]


def input_forms(reply: Reply) -> Iterator[InputForm]:
    """Yield the inputs that a worker describes."""
    for entry in reply.items("inputs"):
        match entry:
            case [str(name), str(description), packed, converter, bool(is_plain)]:
                schema = schema_from_bytes(packed) if isinstance(packed, bytes) else None
                by = converter if isinstance(converter, str) else None
                yield InputForm(name, description, schema, by, is_plain)
            case _:
                raise PeerError(f"a worker describes an input as {shown(entry)}")


def output_forms(reply: Reply) -> Iterator[tuple[str, str, pa.Schema | None]]:
    """Yield the outputs that a worker describes: name, description, and schema."""
    for entry in reply.items("outputs"):
        match entry:
            case [str(name), str(description), packed]:
                yield name, description, schema_from_bytes(packed) if isinstance(packed, bytes) else None
            case _:
                raise PeerError(f"a worker describes an output as {shown(entry)}")


def exported_forms(reply: Reply) -> dict[str, pa.Schema | None]:
    """Return the columns of what a dataflow exports, by name; None for records."""
    forms: dict[str, pa.Schema | None] = {}
    for entry in reply.items("exports"):
        match entry:
            case [str(name), packed, str()]:
                forms[name] = schema_from_bytes(packed) if isinstance(packed, bytes) else None
            case _:
                raise PeerError(f"a worker describes an export as {shown(entry)}")
    return forms


def imported_names(reply: Reply) -> list[tuple[int, str]]:
    """Return the dataflows that one reads, by number, and the names of what it reads of them."""
    names: list[tuple[int, str]] = []
    for entry in reply.items("imports"):
        match entry:
            case [int(owner), str(name)]:
                names.append((owner, name))
            case _:
                raise PeerError(f"a worker describes an import as {shown(entry)}")
    return names


def open_ahead(reply: Reply) -> dict[str, int]:
    """Return the open epochs of inputs that are ahead of others, by name."""
    epochs: dict[str, int] = {}
    for entry in reply.items("ahead"):
        match entry:
            case [str(name), int(epoch)]:
                epochs[name] = epoch
            case _:
                raise PeerError(f"a worker describes the epoch of an input as {shown(entry)}")
    return epochs
