"""From a DataFrame's columns to those of an input, and from an answer's columns back to Spark's.

An input takes over names, types and nullability, so that users declare nothing twice:

    byte, short, int, long, float, double     int, float (64 bits)
    boolean, date, string, binary             the same
    timestamp, timestamp_ntz                  timestamp; the second is read as UTC, and comes back with a zone
    decimal(p, s)                             the same
    array, struct, map                        the same; any, if a part is of a type that no column has

In an answer, arrays, structs and maps are those of Arrow. A column of type `any` has its values packed by
msgpack. It gets the Spark type of an input's column of the same name if there is one, and is text otherwise,
as JSON: Spark has no type for values of any kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from timely.client.tables import with_values
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.errors import InputFormatError, OutputError, first_line

__all__ = ["SparkForm", "fitted_fields", "input_fields", "nested_types"]

_ANY = {b"differential.type": b"any"}
"""The metadata of a field of values of any kind, which are packed."""
_TYPE_KEY = b"differential.type"

_TAKEN = (
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.BooleanType,
    T.StringType,
    T.BinaryType,
    T.TimestampType,
    T.TimestampNTZType,
    T.DateType,
    T.DecimalType,
)


def input_fields(name: str, frame: DataFrame, beside: Iterable[str]) -> T.StructType:
    """Return the columns of the input called `name`: those of `frame` without `beside`, which determine when
    rows come.

    Raises InputFormatError for a column that a collection cannot have; it names the column, its type, and
    what to write.
    """
    left_out = set(beside)
    fields = [field for field in frame.schema.fields if field.name not in left_out]
    names = [field.name for field in fields]
    for field in fields:
        if names.count(field.name) > 1:
            raise InputFormatError(
                f"input {name!r}: two columns are called {field.name!r}. Rename one: toDF('a', 'b', …)"
            )
        if field.name.lower() in (EPOCH, DIFF):  # Spark ignores case
            raise InputFormatError(
                f"input {name!r}: a column cannot be called {field.name!r}, which tables of changes use. "
                f"Write withColumnRenamed({field.name!r}, …), or name it in epochs= or diff="
            )
        mend = _mend(field.dataType, field.name)
        if mend:
            raise InputFormatError(
                f"input {name!r}: column {field.name!r} is {field.dataType.simpleString()}, which a "
                f"collection cannot have. Write {mend}"
            )
    if not fields:
        raise InputFormatError(
            f"input {name!r} has no column besides those that say when rows come ({', '.join(frame.columns)})"
        )
    return T.StructType(fields)


def fitted_fields(name: str, frame: DataFrame, declared: pa.Schema, beside: Iterable[str]) -> T.StructType:
    """Return the columns that an input declares, in its order, with the types of `frame`; leave out the
    others.

    Raises InputFormatError for columns that are missing, or of another type.
    """
    present = {field.name: field for field in input_fields(name, frame, beside).fields}
    missing = [column for column in declared.names if column not in present]
    if missing:
        raise InputFormatError(
            f"input {name!r} takes {', '.join(declared.names)}; the DataFrame has no {', '.join(missing)}, "
            f"but {', '.join(present)}"
        )
    for field in declared:
        kind = present[field.name].dataType
        is_packed = field.metadata is not None and _TYPE_KEY in field.metadata
        if not is_packed and not _widened(kind).equals(field.type):
            raise InputFormatError(
                f"input {name!r}: column {field.name!r} is {field.type} in the query and "
                f"{kind.simpleString()} in the DataFrame. Cast one of them"
            )
    return T.StructType(
        [T.StructField(field.name, present[field.name].dataType, field.nullable) for field in declared]
    )


def _widened(kind: T.DataType) -> pa.DataType:
    """Return the Arrow type in which a column of this type is sent."""
    if isinstance(kind, T.IntegralType):
        return pa.int64()
    if isinstance(kind, T.FractionalType) and not isinstance(kind, T.DecimalType):
        return pa.float64()
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return pa.timestamp("us", tz="UTC")
    return pa.string() if isinstance(kind, T.StringType) else to_arrow_type(kind, timezone="UTC")


def _mend(kind: T.DataType, name: str) -> str:
    """Return what to write in place of a column of this type; "" if a collection can have it."""
    column = f"withColumn({name!r}, col({name!r})"
    if isinstance(kind, T.StringType) and kind.simpleString() != "string":  # a collation
        return f"{column}.cast('string')): texts are compared byte by byte"
    if isinstance(kind, _TAKEN):
        return ""
    if isinstance(kind, T.ArrayType):
        return _mend_inside(kind.elementType, name)
    if isinstance(kind, T.StructType):
        return next(filter(None, (_mend_inside(field.dataType, name) for field in kind.fields)), "")
    if isinstance(kind, T.MapType) and isinstance(kind.keyType, _TAKEN):
        return _mend_inside(kind.valueType, name)
    if isinstance(kind, T.MapType):
        return f"withColumn({name!r}, map_entries({name!r})), a list of its keys and values"
    if isinstance(kind, T.NullType):
        return f"{column}.cast('string')), or another type that it is to have"
    return f"{column}.cast('string')), or drop({name!r})"


def _mend_inside(kind: T.DataType, name: str) -> str:
    """Return the same for a type inside another: decimals of any length are possible there, as their
    digits.
    """
    if isinstance(kind, T.DecimalType):
        return ""
    if isinstance(kind, T.ArrayType | T.StructType | T.MapType):
        return _mend(kind, name)
    is_taken = isinstance(kind, _TAKEN) and not isinstance(kind, T.TimestampNTZType)
    return "" if is_taken else f"drop({name!r}), or to_json({name!r}) in its place"


def nested_types(inputs: Mapping[str, T.StructType]) -> dict[str, pa.DataType]:
    """Return the types of the nested columns of all inputs, by name; leave out names with differing types."""
    types: dict[str, T.DataType] = {}
    differing: set[str] = set()
    for fields in inputs.values():
        for field in fields.fields:
            if isinstance(field.dataType, T.ArrayType | T.StructType):
                if types.setdefault(field.name, field.dataType) != field.dataType:
                    differing.add(field.name)
    return {
        name: to_arrow_type(kind, timezone="UTC") for name, kind in types.items() if name not in differing
    }


@dataclass(frozen=True)
class SparkForm:
    """Converts tables of one output to types that Spark has; `nested` as `nested_types` returns it, `unpack`
    reads a packed value.
    """

    output: str
    nested: Mapping[str, pa.DataType]
    unpack: Callable[[bytes], object]
    wanted: Mapping[str, pa.DataType] | None = None
    """The types that columns have in Spark, where a query of DataFrames says so."""

    def of(self, table: pa.Table) -> pa.Table:
        """Return `table` with packed columns unpacked; the same table if it has none."""
        types = [(field.metadata or {}).get(_TYPE_KEY, b"any") for field in table.schema]
        if any(type_ != b"any" for type_ in types):
            table = with_values(table)
        for at, field in enumerate(table.schema):
            if field.metadata is not None and field.metadata.items() >= _ANY.items():
                column = self._written_out(table.column(at), field.name)
                table = table.set_column(at, pa.field(field.name, column.type, field.nullable), column)
        return self._as_wanted(table)

    def _as_wanted(self, table: pa.Table) -> pa.Table:
        """Return the columns in the types that Spark's own answer has: 32 bits where it has 32."""
        for at, column_field in enumerate(table.schema):
            kind = None if self.wanted is None else self.wanted.get(column_field.name)
            if kind is None or kind.equals(column_field.type):
                continue
            try:
                column = table.column(at).cast(kind)
            except pa.ArrowNotImplementedError:
                continue
            except pa.ArrowInvalid as error:
                raise OutputError(
                    f"output {self.output!r}: column {column_field.name!r} is {kind} in Spark, and a value "
                    f"does not fit: {first_line(error)}"
                ) from None
            table = table.set_column(at, pa.field(column_field.name, kind, column_field.nullable), column)
        return table

    def _written_out(self, packed: pa.ChunkedArray, name: str) -> pa.Array:
        values = packed.to_pylist()
        if packed.type == pa.binary():  # as workers send them; an output of a flow gives values
            values = [None if each is None else self.unpack(each) for each in values]
        kind = self.nested.get(name)
        if kind is None:
            return pa.array([None if each is None else _as_text(each) for each in values], pa.string())
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise OutputError(
                f"output {self.output!r}: column {name!r} is {kind} in an input and holds something else "
                f"here: {error}. Give it another name in the query, and it is written as text"
            ) from None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
