"""Do these Arrow data fit the declared columns? If not: which value, in which row, and what to do?

Casts that lose nothing are done (a narrower integer, a dictionary, a large string, a coarser timestamp, a
date). Where the type leaves it open whether a cast loses something (uint64, nanoseconds, int64 to float), the
values decide. Everything else is refused: a float is not an int even if it happens to be 3.0, text is not a
number.

    declared     taken
    int          any integer type
    float        any float type; integers that a double holds exactly
    bool         bool
    timestamp    timestamps (without a zone: read as UTC), dates (midnight UTC)
    date         dates
    decimal      decimals and integers that have no more digits, before and behind the point
    string       string, large_string, string_view, and dictionaries of these
    bytes        binary in every form, and dictionaries of these
    any          everything whose values msgpack can hold
    array        lists of every form, whose elements fit
    struct       structs, whose fields fit, in any order; a field that may be null may be missing
    map          maps, whose keys and values fit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from weakref import WeakValueDictionary, ref

import pyarrow as pa

from differential.columns.column_types import DECIMAL_DIGITS_MAX, TYPE_KEY, ColumnType, as_column_type
from differential.columns.encoding import is_short
from differential.columns.foreign.type_names import kind_of_arrow
from differential.columns.nested.arrays import conform_nested, packed_array, takes_nested
from differential.columns.nested.locations import ValueLocation
from differential.columns.symbols.packing import pack
from differential.errors import SchemaError
from timely.wire.arrow import pc, stored

__all__ = ["Conforming", "conform_table", "form_of"]


class Conforming:
    """The form that tables must take: the columns of an Arrow schema, and the types that they stand for."""

    __slots__ = ("__weakref__", "_has_any", "_is_not_null", "_last_met", "last", "names", "schema", "types")

    def __init__(self, schema: pa.Schema, types: Sequence[ColumnType]) -> None:
        self.schema, self.types = schema, types
        self.names: list[str] = schema.names
        # Most tables are small, and have the schema of the one before: Arrow compares two schemas sooner than
        # it lists the types of one.
        self._last_met: pa.Schema | None = None
        self.last: ref[pa.Table] | None = None
        """The table that `conform_table` returned last: an embedded worker gets what the client has made
        conform."""
        self._has_any = any(type_.kind == "any" or type_.is_nested for type_ in types)
        self._is_not_null = [not type_.nullable for type_ in types]

    def compared(self) -> object:
        """Return what it asks for; which table it has met last decides nothing."""
        return self.schema, self.types

    def is_met_by(self, table: pa.Table) -> bool:
        """True if the table plainly needs no change: the quick answer for a running system's small tables."""
        schema = table.schema
        if self._last_met is None or not schema.equals(self._last_met):
            if self._has_any or schema.names != self.names or not self._are_taken(schema.types):
                return False
            self._last_met = schema
        for is_not_null, column in zip(self._is_not_null, table.columns, strict=True):
            if is_not_null and column.null_count:
                return False
        return True

    def _are_taken(self, types: Sequence[pa.DataType]) -> bool:
        """True if columns of these types need no cast, whatever their values."""
        return all(map(_is_taken, self.types, types, self.schema.types))


_FORMS: Final[WeakValueDictionary[tuple[tuple[str, ...], tuple[ColumnType, ...]], Conforming]] = (
    WeakValueDictionary()
)


def form_of(schema: pa.Schema, types: tuple[ColumnType, ...]) -> Conforming:
    """Return the form of a schema: one for all equal schemas of this process.

    A client and an embedded worker have a schema each. So the worker does not check a table again that the
    client has made conform. The text of a schema does not tell it: a name may hold commas and colons.
    """
    key = tuple(schema.names), types
    form = _FORMS.get(key)
    if form is None:
        form = _FORMS[key] = Conforming(schema, types)
    return form


def _is_taken(type_: ColumnType, arrow: pa.DataType, declared: pa.DataType) -> bool:
    # Short numbers are widened when they are written as words, not here all at once.
    return bool(arrow == declared) or (type_.kind == "int" and is_short(arrow))


def conform_table(table: pa.Table | pa.RecordBatch, declared: Conforming, input_name: str) -> pa.Table:
    """Return `table` with the columns of `declared`, cast where that loses nothing.

    Short whole numbers stay short, dictionaries of strings or bytes stay dictionaries. Raises SchemaError
    (see the module's docstring).
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if declared.last is not None and declared.last() is table:
        return table
    conformed = table if declared.is_met_by(table) else _conformed(stored(table), declared, input_name)
    declared.last = ref(conformed)
    return conformed


def _conformed(table: pa.Table, declared: Conforming, input_name: str) -> pa.Table:
    """Do `conform_table` for a table without columns of extension types."""
    if declared.is_met_by(table):
        return table
    _check_names(table.column_names, declared.names, input_name)
    columns = []
    for name, type_ in zip(declared.names, declared.types, strict=True):
        place = ValueLocation(input_name, name, type_)
        field = table.schema.field(name)
        packed_type = (field.metadata or {}).get(TYPE_KEY)
        is_packed = packed_type is not None and packed_type in (type_.metadata or {}).values()
        try:
            columns.append(_conform_column(table.column(name), place, is_packed))
        except pa.ArrowException as error:  # not every form of column can be cast by every release
            raise SchemaError(
                f"input {input_name!r}, column {name!r} ({type_}): {field.type} is not taken: {error}."
            ) from error
    fields = [field.with_type(column.type) for field, column in zip(declared.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _check_names(columns: Sequence[str], declared: Sequence[str], input_name: str) -> None:
    missing = [name for name in declared if name not in columns]
    extra = [name for name in columns if name not in declared]
    twice = sorted({name for name in columns if list(columns).count(name) > 1})
    if not missing and not extra and not twice:
        return
    problems = [
        f"{what} {', '.join(map(repr, names))}"
        for what, names in (("missing", missing), ("not declared", extra), ("there twice", twice))
        if names
    ]
    meant = (
        " For rows whose column 'diff' says how often each comes: append(table)." if "diff" in extra else ""
    )
    raise SchemaError(
        f"input {input_name!r} takes the columns {', '.join(declared)}; {'; '.join(problems)}.\n"
        f"  Select or rename columns before inserting, or change the schema of the input.{meant}"
    )


def _conform_column(column: pa.ChunkedArray, place: ValueLocation, is_packed: bool) -> pa.ChunkedArray:
    """Return one column, cast, and free of nulls where none are allowed."""
    if place.type.kind == "any":
        return _pack_column(column, place, is_packed)
    if place.type.is_nested:
        return column.cast(pa.binary()) if is_packed else _pack_nested(column, place)
    return _conform_plain(column, place)


def _conform_plain(column: pa.ChunkedArray, place: ValueLocation) -> pa.ChunkedArray:
    """Return a column without parts, cast, and free of nulls where none are allowed."""
    is_text = place.type.kind in ("string", "bytes")
    if pa.types.is_dictionary(column.type) and not (is_text and _takes(place.type, column.type.value_type)):
        column = column.cast(column.type.value_type)
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not _takes(place.type, value_type):
        if column.null_count == len(column) and place.type.nullable:
            return pa.chunked_array([pa.nulls(len(column), place.type.to_arrow())])
        _refuse_type(column, place)
    _check_nulls(column, place)
    if pa.types.is_dictionary(column.type):
        column = _with_plain_nulls(column)
        _check_nulls(column, place)
        return column
    return _cast(column, place)


def _pack_nested(column: pa.ChunkedArray, place: ValueLocation) -> pa.ChunkedArray:
    """Return a column of arrays, structs or maps as the bytes of values, whose parts conform."""
    conformed = _conform_nested(column, place)
    return pa.chunked_array([packed_array(chunk, place.type) for chunk in conformed.chunks], pa.binary())


def _conform_nested(column: pa.ChunkedArray, place: ValueLocation) -> pa.ChunkedArray:
    """Return a column of arrays, structs or maps, with parts that conform."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not takes_nested(place.type, column.type):
        if column.null_count == len(column) and place.type.nullable:
            return pa.chunked_array([pa.nulls(len(column), place.type.arrow_of_values())])
        _refuse_type(column, place)
    _check_nulls(column, place)
    return conform_nested(column, place, _conform_part)


def _conform_part(column: pa.ChunkedArray, place: ValueLocation) -> pa.ChunkedArray:
    return (_conform_nested if place.type.is_nested else _conform_plain)(column, place)


def _with_plain_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of dictionaries with no null among its values: such rows are null themselves.

    The values are not expanded by row: very many rows may share a few long values.
    """
    if not any(chunk.dictionary.null_count for chunk in column.chunks):
        return column
    chunks = []
    for chunk in column.chunks:
        filled = chunk.dictionary.fill_null("" if _is_text(chunk.dictionary.type) else b"")
        chunks.append(pa.DictionaryArray.from_arrays(_indices_of_values(chunk), filled))
    return pa.chunked_array(chunks, column.type)


def _indices_of_values(chunk: pa.DictionaryArray) -> pa.Array:
    """Return the indices of a dictionary's rows, null where the value is."""
    is_there = chunk.dictionary.is_valid().take(chunk.indices)
    return pc.if_else(is_there, chunk.indices, pa.scalar(None, chunk.indices.type))


def _is_text(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    )


def _takes(type_: ColumnType, arrow: pa.DataType) -> bool:
    """True if a column of this kind takes values of the Arrow type, if they fit."""
    tests: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
        "int": (pa.types.is_integer,),
        "float": (pa.types.is_floating, pa.types.is_integer),
        "bool": (pa.types.is_boolean,),
        "timestamp": (pa.types.is_timestamp, pa.types.is_date),
        "date": (pa.types.is_date,),
        "decimal": (pa.types.is_decimal, pa.types.is_integer),
        "string": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "bytes": (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        ),
    }
    return any(test(arrow) for test in tests[type_.kind])


def _refuse_type(column: pa.ChunkedArray, place: ValueLocation) -> None:
    """Raise about the first value that is not of the declared type."""
    if len(column) == column.null_count:
        _check_nulls(column, place)
        return
    row = pc.index(column.is_valid(), True).as_py()
    declare = f'or declare it "{place.column}: {_suggested(column.type)}".'
    mend = f"Cast the column before inserting{_cast_in_pandas(column.type, place)}, {declare}"
    raise place.error(row, _value_at(column, row), f"comes as {column.type}, not {place.type.kind}", mend)


def _cast_in_pandas(arrow: pa.DataType, place: ValueLocation) -> str:
    """Return how a frame of pandas casts a column of this Arrow type to the declared one, for a message; ""
    if that depends on the values.
    """
    kind = place.type.kind
    if kind == "date" and pa.types.is_timestamp(arrow):
        how = ".dt.date"
    elif kind == "int" and pa.types.is_floating(arrow):
        how = ".astype('int64')"
    elif kind == "decimal" and pa.types.is_floating(arrow):
        how = f".map(lambda x: round(Decimal(x), {place.type.scale}))"
    else:
        return ""
    return f" (in pandas frame[{place.column!r}]{how})"


def _suggested(arrow: pa.DataType) -> str:
    """Return the kind of column that would take the Arrow type."""
    named = kind_of_arrow(arrow)
    if named is None:
        return "any"
    if named.parts:
        return str(as_column_type(arrow))
    if named.kind != "decimal":
        return named.kind
    fits = named.precision <= DECIMAL_DIGITS_MAX
    return f"decimal({named.precision}, {named.scale})" if fits else "float"


def _check_nulls(column: pa.ChunkedArray, place: ValueLocation) -> None:
    if column.null_count and not place.type.nullable:
        raise place.null_error(pc.index(column.is_null(), True).as_py())


def _cast(column: pa.ChunkedArray, place: ValueLocation) -> pa.ChunkedArray:
    """Return `column` in the declared type; raises about the first value that does not fit."""
    target = place.type.to_arrow()
    if _is_taken(place.type, column.type, target):
        return column
    if pa.types.is_decimal(target) and pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(38, 0))  # otherwise Arrow wants room for 19 digits in the target
    if _fits(column, target):
        return column.cast(target)
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fits(column.slice(start, middle - start), target):
            start = middle
        else:
            stop = middle
    value = _value_at(column, start)
    mend = "Only what loses nothing is cast: round, scale or filter the values before inserting them."
    raise place.error(start, value, f"({column.type}) cannot be stored as {target} without loss", mend)


def _value_at(column: pa.ChunkedArray, row: int) -> object:
    """Return one value for a message: as Python has it, or else as Arrow writes it."""
    try:
        if pa.types.is_temporal(column.type):
            return column[row].cast(pa.string()).as_py()  # Python's years end at 9999
        return column[row].as_py()
    except Exception:  # each of Python's types raises its own error for a value that it cannot hold
        return f"a {column.type}"


def _fits(column: pa.ChunkedArray, target: pa.DataType) -> bool:
    try:
        column.cast(target)
    except pa.ArrowInvalid:
        return False
    return True


def _pack_column(column: pa.ChunkedArray, place: ValueLocation, is_packed: bool) -> pa.ChunkedArray:
    """Return a column of any values as their msgpack bytes."""
    _check_nulls(column, place)
    if is_packed:
        return column.cast(pa.binary())
    if pa.types.is_dictionary(column.type):
        kind = pa.dictionary(column.type.index_type, pa.binary())
        return pa.chunked_array([_pack_dictionary(chunk, place) for chunk in column.chunks], kind)
    return pa.chunked_array([_packed(column, place)])


def _pack_dictionary(chunk: pa.DictionaryArray, place: ValueLocation) -> pa.DictionaryArray:
    """Pack each value once, however many rows refer to it."""
    values = _packed(chunk.dictionary, place).fill_null(b"\xc0")
    packed = pa.DictionaryArray.from_arrays(_indices_of_values(chunk), values)
    _check_nulls(pa.chunked_array([packed]), place)
    return packed


def _packed(column: pa.Array | pa.ChunkedArray, place: ValueLocation) -> pa.Array:
    try:
        values = column.to_pylist()
    except Exception as error:  # each of Python's types raises its own error for a value that it cannot hold
        mend = f"Cast the column before inserting: {error}."
        raise place.error(
            0, f"the column of {column.type}", "has a value that Python has not", mend
        ) from error
    packed: list[bytes | None] = []
    for row, value in enumerate(values):
        try:
            packed.append(None if value is None else pack(value))
        except SchemaError as error:
            raise place.error(row, value, "cannot be stored", str(error)) from error
    return pa.array(packed, pa.binary())
