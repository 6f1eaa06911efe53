"""Few rows of Python values, which need no Arrow table on their way to an input.

A table of one row costs 30 µs to make and to read, and a message to another process five times that; the row
itself costs 1 µs. So rows that are few and *plain* go as they are: tuples in the order of the columns, each
value of exactly the type that its column has in Python.

    column        value           not plain
    int64         int             a bool, an integer of numpy, one beyond 64 bits
    double        float           an int
    bool          bool
    string        str             one that is not UTF-8, a long one
    binary        bytes           a bytearray, a long one
    any of these  None            where the column may not be null

A table of a few rows with exactly these columns is read into plain rows, at a tenth of what it costs as a
table.

Rows that are not plain are no error: they go the way of tables, which converts them or says what is wrong.
So each message has one place, and this module decides only between the two ways. Other columns (timestamps,
dates, decimals, values of any kind) have no plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgpack
import pyarrow as pa

from ...errors import MisuseError
from ...limits import PLAIN_TEXT_CHARS_MAX, PLAIN_VALUES_MAX
from ...thresholds import PLAIN_TABLE_ROWS_MAX

__all__ = ["PlainRow", "PlainRows", "table_of_plain"]

PlainRow: TypeAlias = tuple[object, ...]

_KINDS: Final = {
    pa.int64(): int,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.string(): str,
    pa.binary(): bytes,
}
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1
_FORMS_MAX: Final = 1_024

_Form: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""For rows with certain types of values: the indexes of integers, and those of text or bytes."""


class _Plain(list[PlainRow]):
    """Rows that are known to be plain, for columns of these types. So they are checked once if client and
    worker are in one process.
    """

    __slots__ = ("columns",)

    columns: tuple[object, ...]
    """Set by its maker: a constructor would cost as much as a row."""


class PlainRows:
    """Knows the plain rows of an input with the columns of `schema`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names: list[str] = schema.names
        # Metadata mean that a column holds more than its type says: packed values of any kind.
        self._kinds = [None if field.metadata else _KINDS.get(field.type) for field in schema]
        self._nullable = [field.nullable for field in schema]
        self._columns = tuple(zip(self._kinds, self._nullable, strict=True))
        self._rows_max = 0 if not self._kinds or None in self._kinds else PLAIN_VALUES_MAX // len(self._kinds)
        self._forms: dict[tuple[type, ...], _Form] = {}
        # Few programs that make a table declare its columns without null, so take both.
        own = [field.remove_metadata() for field in schema]
        self._schemas = pa.schema(own), pa.schema([field.with_nullable(True) for field in own])

    def of(self, data: object) -> list[PlainRow] | None:
        """Return the rows of `data`, a list of tuples, lists or dicts or a table, if they are few and
        plain; else None.
        """
        if type(data) is not list:
            if type(data) is _Plain and data.columns == self._columns:
                return data
            data = self._read(data) if type(data) is pa.Table else None
            if data is None:
                return None
        if len(data) > self._rows_max:
            return None
        rows = _Plain()
        rows.columns = self._columns
        forms = self._forms
        for item in data:
            row = item if type(item) is tuple else self._as_tuple(item)
            if row is None:
                return None
            types = tuple(map(type, row))
            form = forms.get(types) or self._learn(types)
            if form is None:
                return None
            integers, texts = form
            for at in integers:
                if not _INT_MIN <= row[at] <= _INT_MAX:  # type: ignore[operator]  # its type is int
                    return None
            for at in texts:
                if not _is_short(row[at]):  # type: ignore[arg-type]  # its type is str or bytes
                    return None
            rows.append(row)
        return rows

    def _read(self, table: pa.Table) -> list[PlainRow] | None:
        # In a table of other columns there may be values that Python does not have: dates of year 10,000.
        if table.num_rows > min(PLAIN_TABLE_ROWS_MAX, self._rows_max):
            return None
        # Bytes may be packed values of any kind, if metadata say so.
        strictly, own = bytes in self._kinds, table.schema
        if not any(own.equals(schema, check_metadata=strictly) for schema in self._schemas):
            return None
        try:
            return list(zip(*[column.to_pylist() for column in table.columns], strict=True))
        except UnicodeDecodeError:  # Arrow does not check that text is UTF-8
            return None

    def _as_tuple(self, row: object) -> PlainRow | None:
        if type(row) is list:
            return tuple(row)
        if type(row) is not dict or len(row) != len(self._names):
            return None
        try:
            return tuple([row[name] for name in self._names])
        except KeyError:
            return None

    def _learn(self, types: tuple[type, ...]) -> _Form | None:
        """Return, and remember, the form of rows of these types; None if they are not plain."""
        form = self._form_of(types)
        if form is not None:
            if len(self._forms) >= _FORMS_MAX:
                self._forms.clear()
            self._forms[types] = form
        return form

    def _form_of(self, types: Sequence[type]) -> _Form | None:
        if len(types) != len(self._kinds):
            return None
        for type_, kind, nullable in zip(types, self._kinds, self._nullable, strict=True):
            if type_ is not kind and not (nullable and type_ is type(None)):
                return None
        return (
            tuple(at for at, type_ in enumerate(types) if type_ is int),
            tuple(at for at, type_ in enumerate(types) if type_ in (str, bytes)),
        )


def table_of_plain(rows: object, schema: pa.Schema, name: str, *, keys_only: bool) -> pa.Table:
    """Return plain rows that a client has sent to the input `name` as a table of the columns `schema`; with
    `keys_only`, and if the input keeps the last value by key, they are rows of its keys alone. Raise
    `MisuseError` if they are not plain.
    """
    keys = (schema.metadata or {}).get(b"keys")
    if keys_only and keys is not None:
        schema = pa.schema([schema.field(str(each)) for each in msgpack.unpackb(keys)])
    plain = PlainRows(schema).of(rows)
    if plain is None:
        raise MisuseError(f"input {name!r}: these are no plain rows of its columns; send them as a table")
    columns = zip(*plain, strict=True) if plain else [()] * len(schema)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _is_short(value: str | bytes) -> bool:
    if len(value) > PLAIN_TEXT_CHARS_MAX:
        return False
    if isinstance(value, bytes) or value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
