"""How do Python, numpy and pandas data become an Arrow table with the declared columns?

    data                                          how it is read
    Arrow table, batch, reader, Polars frame      as it is
    Spark DataFrame                               all of it, collected here; large ones: `timely.spark`
    pandas DataFrame                              by column, without index; NaN in a nullable column is null
    numpy structured array, dict of columns       by field or key; values may be arrays or lists
    list of tuples                                in the order of the columns; named tuples and rows of Spark
                                                  that have all columns in another order, by name
    list of dicts                                 by name; a key that is left out is null

The result conforms to the schema (`conforming.py`); otherwise a SchemaError says which value does not, and
how to mend it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from differential.columns.column_types import ColumnType, Floats
from differential.columns.nested.locations import ValueLocation
from differential.columns.rows import checked_values, is_missing
from differential.columns.schema import Column, Schema
from differential.columns.symbols.packing import pack
from differential.errors import SchemaError, shown
from differential.other_spellings import meant
from timely.client.tables import columns_of, is_of_pandas
from timely.counted import counted
from timely.wire.arrow import binary_array, number_array, text_array

__all__ = ["TableData", "to_table"]

TableData: TypeAlias = object
"""Anything in the table of the module's docstring."""

_NUMBERS: Final = {"int": (int, np.int64), "float": (float, np.float64), "bool": (bool, np.bool_)}
_REFUSED: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""Errors of Arrow for a Python value that it does not take; text that is no UTF-8 is a ValueError."""
_NAN_FREE_INTEGERS = "A column of whole numbers with gaps is float64 in pandas; it is taken if declared int?."


def to_table(
    data: TableData, schema: Schema, input_name: str = "input", *, all_keys: bool = False
) -> pa.Table:
    """Return `data` as an Arrow table with the columns of `schema`.

    A dict that is a row may leave out nullable columns, unless `all_keys` is set: in an upsert, a column that
    is left out could also mean that the old value stays.

    Raises SchemaError for another form of data, a missing or undeclared column, columns or rows of different
    lengths, and the first value that does not fit its column.
    """
    if isinstance(data, pa.Table | pa.RecordBatch):
        return schema.conform(data, input_name)
    if is_of_pandas(data, "DataFrame"):
        columns = {str(name): series for name, series in cast(Mapping[str, object], data).items()}
        return _from_columns(columns, schema, input_name)
    to_arrow = getattr(data, "toArrow", None)
    if callable(to_arrow) and type(data).__module__.startswith("pyspark."):
        return schema.conform(cast(pa.Table, to_arrow()), input_name)  # its streams fail on timestamps
    if hasattr(data, "__arrow_c_stream__"):
        _check_no_addresses(data, input_name)
        try:
            table = pa.table(data)
        except pa.ArrowInvalid:  # a stream of single values, such as a Series
            raise _no_table(data, input_name) from None
        return schema.conform(table, input_name)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return _from_columns({name: data[name] for name in data.dtype.names}, schema, input_name)
    if isinstance(data, Mapping):
        return _from_columns(data, schema, input_name)
    if isinstance(data, tuple) and data and all(isinstance(each, _SCALARS) for each in data):
        raise SchemaError(
            f"input {input_name!r}: {shown(data)} is one row, and a list of rows is taken: write "
            f"[{shown(data)}]"
        )
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | np.ndarray):
        return _from_rows(list(data), schema, input_name, all_keys)
    raise _no_table(data, input_name)


_SCALARS: Final = (str, bytes, int, float, Decimal, date, type(None))
"""Values that are no row."""


def _check_no_addresses(data: object, input_name: str) -> None:
    """Refuse Polars columns of Python objects: Arrow would get their addresses as if these were values."""
    if not type(data).__module__.startswith("polars."):
        return
    dtypes = cast(Mapping[str, object], getattr(data, "schema", {}))
    for name in (name for name, dtype in dtypes.items() if str(dtype) == "Object"):
        raise SchemaError(
            f"input {input_name!r}, column {name!r}: Polars keeps its values as objects (dtype Object), and "
            "does not hand them over.\n  Insert rows in place of the frame, frame.rows(), or cast the "
            "column before."
        )


def _no_table(data: TableData, input_name: str) -> SchemaError:
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return SchemaError(
            f"input {input_name!r}: an array of {data.shape[0]:,} rows and {data.shape[1]} columns has no "
            "names for these.\n  Give a dict of columns, {'name': array[:, 0], …}, or a structured array; a "
            "few rows as tuples: map(tuple, array.tolist())."
        )
    return SchemaError(
        f"input {input_name!r}: {type(data).__name__} is not a table.\n"
        "  Give an Arrow table, a DataFrame of pandas, Polars (lazy.collect(), series.to_frame()) or Spark,"
        " a structured array, a dict of columns, or a list of tuples or dicts."
    )


def _from_rows(rows: Sequence[object], schema: Schema, input_name: str, all_keys: bool) -> pa.Table:
    """Return a table of tuples in the order of the columns, or of dicts."""
    names = schema.names
    at_once = columns_of(rows, names)
    if at_once is not None:
        return _from_lists(at_once, schema, input_name)
    name_set = set(names)
    tuples: list[Sequence[object]] = []
    for number, row_data in enumerate(rows):
        row = row_data
        if isinstance(row, np.void) and row.dtype.names is not None:
            row = {name: row[name] for name in row.dtype.names}
        if isinstance(row, Mapping):
            if row.keys() != name_set:
                _check_keys(row, schema, f"input {input_name!r}, row {number}", all_keys)
            tuples.append([row.get(name) for name in names])
        elif isinstance(row, tuple | list):
            order = _other_order(row, names)
            if len(row) != len(names):
                raise SchemaError(
                    f"input {input_name!r}, row {number}: {shown(row)} has "
                    f"{counted(len(row), 'value')} for {counted(len(names), 'column')} ({schema})."
                )
            tuples.append(row if order is None else [row[at] for at in order])
        else:
            raise SchemaError(
                f"input {input_name!r}, row {number}: {shown(row)} is neither a tuple nor a dict.\n"
                f"  A row has the columns {schema}; {_how_to_write(row)}."
            )
    columns: Iterable[Sequence[object]] = zip(*tuples, strict=True) if tuples else [()] * len(names)
    return _from_lists(columns, schema, input_name)


def _from_lists(columns: Iterable[Sequence[object]], schema: Schema, input_name: str) -> pa.Table:
    """Return a table of columns of Python values, in the order of the schema."""
    arrays = [
        _from_list(list(values), column, input_name) for column, values in zip(schema, columns, strict=True)
    ]
    return schema.conform(pa.Table.from_arrays(arrays, schema=schema.to_arrow()), input_name)


def _check_keys(row: Mapping[object, object], schema: Schema, where: str, all_keys: bool) -> None:
    """Raise SchemaError unless all keys of `row` are columns, and none is missing that must be there."""
    missing = [each.name for each in schema if each.name not in row and (all_keys or not each.type.nullable)]
    extra = [key for key in row if key not in schema.names]
    if not missing and not extra:
        return
    problems = [
        f"{what} the key{'s' * (len(keys) > 1)} {', '.join(map(shown, keys))}"
        for what, keys in (("lacks", missing), ("has", extra))
        if keys
    ]
    unused = [name for name in schema.names if name not in row]
    hint = "".join(dict.fromkeys(meant(key, unused) for key in extra))
    may = (
        f"The columns are {', '.join(schema.names)}; here a row has all of them, with None for what is null"
        if all_keys
        else f"The columns are {schema}; a key may be left out where its column may be null"
    )
    raise SchemaError(f"{where}: {shown(row)} {' and '.join(problems)}.\n  {may}.{hint}")


def _other_order(row: Sequence[object], names: Sequence[str]) -> list[int] | None:
    """Return where `row` has each column, if its fields are named, and in another order than the input's.

    Named tuples and rows of Spark have such names. None unless they have exactly the columns of the input.
    """
    fields = getattr(row, "_fields", None) or getattr(row, "__fields__", None)
    if (
        fields is None
        or len(fields) != len(names)
        or list(fields) == list(names)
        or set(fields) != set(names)
    ):
        return None
    return [fields.index(name) for name in names]


def _how_to_write(row: object) -> str:
    """Return a hint how to write a row, for a value that is none."""
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return "of a dataclass write dataclasses.asdict(row)"
    if hasattr(row, "_asdict"):
        return "write row._asdict()"
    if hasattr(row, "to_dict"):  # a Series of pandas, by iterrows() or iloc
        return "write row.to_dict(), or hand in the whole frame"
    return "write a row of one column as (value,)"


def _from_columns(columns: Mapping[str, object], schema: Schema, input_name: str) -> pa.Table:
    """Return a table of whole columns, each an array, a list or a pandas series."""
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        if name not in schema:
            arrays[name] = pa.nulls(0)  # `conform` refuses it, and lists the missing columns, too
            continue
        arrays[name] = _from_column(values, schema[name], input_name)
    lengths = {name: len(array) for name, array in arrays.items() if name in schema}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name}: {rows}" for name, rows in lengths.items())
        raise SchemaError(f"input {input_name!r}: the columns have different lengths ({listed}).")
    if arrays.keys() != set(schema.names):
        arrays = {name: array.slice(0, 0) for name, array in arrays.items()}
    # Some columns are packed already; the metadata of their fields says so.
    fields = [
        pa.field(name, array.type, metadata=_metadata(name, array, schema)) for name, array in arrays.items()
    ]
    return schema.conform(pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields)), input_name)


def _metadata(name: str, array: pa.Array, schema: Schema) -> dict[bytes, bytes] | None:
    """Return what the field of a packed column says; None for others."""
    return schema[name].type.metadata if name in schema and array.type == pa.binary() else None


def _from_column(values: object, column: Column, input_name: str) -> pa.Array:
    """Return one column, in the Arrow type it comes in (arrays) or the declared one (Python values)."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SchemaError(
            f"input {input_name!r}, column {column.name!r}: {shown(values)} is not a column.\n"
            "  A dict has whole columns, each a list or an array; for one row write a list of it: [{…}]."
        )
    if column.type.kind == "any":
        return _from_list(list(cast(Iterable[object], values)), column, input_name)
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ndarray) and values.dtype != object:
        if values.ndim != 1:
            shape = "×".join(map(str, values.shape))
            raise SchemaError(
                f"input {input_name!r}, column {column.name!r}: the array is {shape}, not one row long."
            )
        return _from_numpy(values, column, input_name)
    if is_of_pandas(values, "Series"):
        return _from_series(values, column, input_name)
    return _from_list(list(values), column, input_name)


def _from_numpy(values: object, column: Column, input_name: str) -> pa.Array:
    """Return a numpy array of plain values as an Arrow array."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        column_dtype = getattr(values, "dtype", "?")
        raise SchemaError(
            f"input {input_name!r}, column {column.name!r} ({column.type}): {column_dtype} is not taken:"
            f" {error}."
        ) from error


def _from_series(series: object, column: Column, input_name: str) -> pa.Array:
    """Return a pandas series as an Arrow array; missing values become nulls where the column allows them."""
    dtype = str(getattr(series, "dtype", ""))
    if dtype.startswith("float") and column.type.nullable and column.type.kind == "int":
        return _whole_numbers(np.asarray(series, dtype=np.float64), column, input_name)
    if dtype.startswith("float") and not column.type.nullable:
        numbers = np.asarray(series, dtype=np.float64)
        if column.type.kind == "int":
            _check_no_gaps(numbers, column, input_name)
        return pa.array(numbers, from_pandas=False)  # NaN stays NaN
    if dtype == "object":
        values = [None if _is_missing_in_pandas(value) else value for value in cast(Iterable[object], series)]
        return _from_list(values, column, input_name)
    array = pa.Array.from_pandas(series)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _check_no_gaps(values: Floats, column: Column, input_name: str) -> None:
    """Raise about the first gap in a column of otherwise whole numbers, which may have no gaps.

    Without this check the error would only say that the numbers are floats: pandas makes them so for the gap.
    """
    missing = np.isnan(values)
    if missing.any() and (values[~missing] == np.floor(values[~missing])).all():
        raise ValueLocation(input_name, column.name, column.type).error(
            int(np.argmax(missing)),
            float("nan"),
            "is missing, which the column does not allow",
            f'Declare the column as "{column.name}: {column.type.or_null()}", or drop such rows first: '
            f"frame.dropna(subset=[{column.name!r}]).astype({{{column.name!r}: 'int64'}}).",
        )


def _is_missing_in_pandas(value: object) -> bool:
    """True if `value` is None, NaN, NaT or NA: pandas writes any of them into a column of Python objects."""
    return is_missing(value) or (isinstance(value, float) and value != value)


def _whole_numbers(values: Floats, column: Column, input_name: str) -> pa.Array:
    """Return whole numbers that pandas keeps as floats because some are missing."""
    missing = np.isnan(values)
    whole = np.where(missing, 0.0, values)
    broken = (whole != np.floor(whole)) | (np.abs(whole) >= 2.0**53)
    if broken.any():
        row = int(np.argmax(broken))
        place = ValueLocation(input_name, column.name, column.type)
        raise place.error(
            row, float(values[row]), "is not a whole number that a double holds exactly", _NAN_FREE_INTEGERS
        )
    return pa.array(whole.astype(np.int64), mask=missing)


def _from_list(values: list[object], column: Column, input_name: str) -> pa.Array:
    """Return Python values as an Arrow array; check them one by one if not all are of the expected type."""
    place = ValueLocation(input_name, column.name, column.type)
    values = list(checked_values(values, place))
    if column.type.metadata is not None:
        packed: list[bytes | None] = []
        for row, value in enumerate(values):
            try:
                packed.append(None if value is None else pack(value))
            except SchemaError as error:
                raise place.error(row, value, "cannot be stored", str(error)) from error
        return pa.array(packed, pa.binary())
    try:
        plain = _plain_array(values, column.type)
        return pa.array(values, column.type.to_arrow()) if plain is None else plain
    except _REFUSED as error:
        for row, value in enumerate(values):
            try:
                pa.array([value], column.type.to_arrow())
            except _REFUSED:
                mend = _MENDS.get(column.type.kind, f"It must fit {column.type.to_arrow()}: {error}")
                raise place.error(row, value, "is out of range", mend) from None
        raise


_MENDS: Final = {
    "int": "Integers are 64 bits wide. Scale the values, or write float(x) for a column of floats.",
    "float": "A float does not hold it exactly. Write float(x) to round it.",
    "decimal": "Round it, or declare the column with more digits.",
}
"""What to do about a value that is out of the range of a column, by its kind."""


def _plain_array(values: list[object], type_: ColumnType) -> pa.Array | None:
    """Return an array of values of exactly the expected Python type.

    Returns None for other values, which Arrow must check, and beyond 2 GiB of text, where Arrow makes chunks.
    """
    kinds = set(map(type, values))
    strings = None
    if type_.kind in _NUMBERS:
        kind, dtype = _NUMBERS[type_.kind]
        if kinds <= {kind}:
            return number_array(np.array(values, dtype))
        if kinds <= {kind, type(None)}:
            null = np.array([value is None for value in values])
            filled = [0 if value is None else value for value in values]
            return number_array(np.array(filled, dtype), null)
    elif type_.kind == "string" and kinds == {str}:
        strings = text_array(cast("list[str]", values))
    elif type_.kind == "bytes" and kinds == {bytes}:
        strings = binary_array(cast("list[bytes]", values))
    return strings if strings is not None and strings.type == type_.to_arrow() else None
