"""Tables of an upsert input become *entries*: rows that set or delete the value of a key, with their order.

A table has a row for each value, `diff` 1; or the keys to delete, `diff` -1. If some column beside the keys
is declared without null, a row in which all columns beside the keys are null deletes its key, too; if all
of them may be null such a row is a value like others.

Within an epoch the order of entries decides. Rows of one call are in their order. Calls have the order in
which worker 0 takes them. Appends to an epoch that their writer names (`AppendClient`, Spark) come before
all of these, ordered by a hash of the writer's name and by their numbers, so that it makes no difference
when, where and how often they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgpack
import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, Int64s, boolean
from differential.columns.rows import PlainWords, Row
from differential.columns.schema import Column, Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError
from differential.expressions.projection import TRAILING_WORDS
from differential.operators.between.evolution import Evolution, check_evolution, defaults_text, with_defaults
from differential.operators.between.exports import ExportVertex
from differential.operators.between.imports import CopiedImport, TableImport
from differential.operators.edge.table_in import by_epochs, checked, is_of_base
from differential.operators.timed.latest import ENTRY_WORDS, INHERITED
from timely.errors import MisuseError
from timely.operators.imported import Exported, ImportCodec
from timely.operators.inputs.by_epoch import ByEpoch
from timely.operators.inputs.codecs import counted
from timely.operators.inputs.plain_rows import PlainRow, PlainRows
from timely.wire.arrow import number_array
from timely.wire.batch import Batch

__all__ = ["KeyedTableIn", "ValuesImport", "entry_schema"]

_IS_THERE = boolean.or_null(True)
_ENTRY_COLUMNS = ("(has value)", "(order)", "(place)")


def entry_schema(schema: Schema) -> Schema:
    """Return the columns of entries: those of `schema`, whether the entry has a value, and its order (2)."""
    return Schema((*schema.columns, *Schema.of([(name, "int") for name in _ENTRY_COLUMNS]).columns))


class KeyedTableIn:
    """Encodes tables for an upsert input with the columns of `schema`; those named in `keys` are the key."""

    converter = "differential.columns.client_tables:client_table"

    def __init__(
        self, schema: Schema, name: str, keys: tuple[str, ...], defaults: pa.Table | None = None
    ) -> None:
        """`defaults`: one row, of columns that older rows and tables of older clients lack."""
        self.schema = schema
        self.name = name
        self._defaults = defaults
        self.keys = keys
        self._null_deletes = any(not c.type.nullable for c in schema if c.name not in keys)
        """True if a row whose columns beside the keys are all null deletes its key."""
        self._wire = Schema(
            tuple(
                Column(column.name, column.type.or_null(self._null_deletes and column.name not in keys))
                for column in schema
            )
        )
        """The columns as clients may send them."""
        self._beside_keys = [name for name in schema.names if name not in keys]
        self._keys = schema.picked(keys)
        self._plain, self._plain_keys = PlainRows(self._wire.to_arrow()), PlainRows(self._keys.to_arrow())
        self._key_words = PlainWords(self._keys, SYMBOLS)
        self.keep_only(schema.names)

    def keep_only(self, names: Sequence[str]) -> None:
        """Keep only these columns, the keys among them, of rows that come in from now on: nobody reads the
        others. Of a value in those the input reads whether it is null, since a row of nulls deletes its key.
        """
        self.columns = self.schema.picked([name for name in self.schema.names if name in names])
        is_kept = [name in self.columns.names for name in self.schema.names]
        self._unread = [at for at, is_read in enumerate(is_kept) if not is_read]
        self._read = Schema(
            tuple(
                column if is_read else Column(column.name, _IS_THERE)
                for column, is_read in zip(self._wire, is_kept, strict=True)
            )
        )
        """The columns as they become words; in place of each that nobody reads, whether there is a value."""
        self._words = PlainWords(self._read, SYMBOLS)

    def describe(self) -> str:
        """Return the columns and keys, as text."""
        return f"table ({self.schema}) by {', '.join(self.keys)}" + defaults_text(self._defaults)

    def arrow_schema(self) -> pa.Schema:
        """Return the columns that clients may send, with the names of the keys as metadata."""
        return self._wire.to_arrow().with_metadata({b"keys": msgpack.packb(list(self.keys))})

    def as_import(self) -> ImportCodec:
        """Return what reads the values of a dataflow that exports them, perhaps an older version."""
        return ValuesImport(self.schema, self.keys, self.columns, self._defaults)

    def check_older(self, older: object) -> None:
        """Raise SchemaError if values of an older version of the input are not all values of this one."""
        if not isinstance(older, KeyedTableIn):
            raise SchemaError("an input that keeps the last value by key, and one of rows, are two things")
        check_evolution(older.schema, self.schema, self._defaults, (older.keys, self.keys))

    def reread(self, older: object, batch: Batch) -> UpdateBatch:
        """Return entries of the older version with the columns of this one; one that deletes has its key."""
        assert isinstance(older, KeyedTableIn), "checked before"
        rows = Evolution(older.columns, self.columns, self._defaults).rows(words_of(batch))
        has_value = rows[self.columns.width] != 0
        for column in self.columns:
            if column.name not in self.keys:
                rows[_span(self.columns, column.name)] *= has_value
        return UpdateBatch(rows, self.columns.symbol_words)

    def raw_form(self) -> tuple[str, list[object]]:
        """Return the function that makes batches from a log whole, and its second argument: see
        `timely.durable.bases.raw_rows`.
        """
        return "differential.columns.update_batch:with_symbols", list(self.columns.symbol_words)

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """Return the entries of `table`, in the order of its rows; the order among calls is not known yet."""
        if diff not in (1, -1) if isinstance(diff, int) else not (np.abs(diff) == 1).all():
            raise MisuseError(
                f"input {self.name!r}: the column 'diff' says 1 for a value and -1 for a key that is deleted"
            )
        if isinstance(diff, int) and diff < 0:
            # A key column that is missing, or is there twice, is refused as for any table.
            named = [name for name in self.keys if table.schema.get_field_index(name) >= 0]
            columns = self._keys.encode(table.select(named), SYMBOLS, self.name)
        else:
            columns = self._words_of(table, diff)
        return self._entries(columns, diff, epoch_word)

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, epochs: ByEpoch, words: Sequence[int]
    ) -> list[UpdateBatch]:
        """Return what `encode` returns for the rows of each epoch of `epochs`, with all values encoded
        at once.
        """
        return by_epochs(self.encode(table, diff, 0), epochs, words)

    def _words_of(self, table: pa.Table, diff: int | Int64s) -> Int64s:
        """Return the words of the columns as they are read. The values beside a key that is deleted do not
        count, as where all rows delete: if some do not fit, rows that delete are read by their keys alone.
        """
        try:
            return self._read.encode(self._as_read(table), SYMBOLS, self.name)
        except SchemaError as error:
            if isinstance(diff, int):
                raise
            try:
                values = table.filter(number_array(diff > 0))
            except pa.ArrowException:  # not every form of column can be filtered by every release
                raise error from None
        words = np.zeros((self._read.width, table.num_rows), dtype=np.int64)
        with counted("among those whose diff is 1"):
            words[:, diff > 0] = self._read.encode(self._as_read(values), SYMBOLS, self.name)
        keys = self._keys.encode(table.select(self.keys), SYMBOLS, self.name)
        for name in self.keys:
            words[_span(self._read, name)] = keys[_span(self._keys, name)]
        return words

    def _as_read(self, table: pa.Table) -> pa.Table:
        """Return the table with the columns as they are read. One of a base has only those which are kept:
        its rows have values.
        """
        if not is_of_base(table):
            table = with_defaults(table, self._defaults, self._beside_keys if self._null_deletes else ())
        if not self._unread:
            return table
        if is_of_base(table):
            there = pa.repeat(pa.scalar(True), table.num_rows)
            for at in self._unread:
                table = table.add_column(at, self.schema.names[at], there)
            return table
        import pyarrow.compute as pc  # few inputs leave columns out; to load it takes 0.05 s

        conformed = self._wire.conform(table, self.name)
        for at in self._unread:
            there = pc.if_else(pc.is_valid(conformed.column(at)), True, None)
            conformed = conformed.set_column(at, self.schema.names[at], there)
        return conformed

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        """Return the plain rows that a client has sent: of the keys alone, if they are deleted."""
        return checked(self._plain_keys if diff < 0 else self._plain, rows, self.name)

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> UpdateBatch:
        """Return what `encode` returns for a table of these checked rows; all set values, or all delete."""
        if diffs[0] < 0:
            return self._entries(self._key_words.of(rows), diffs[0], epoch_word)
        read: Sequence[Row] = rows
        if self._unread:
            read = [
                tuple(
                    value if at not in self._unread else (None if value is None else True)
                    for at, value in enumerate(row)
                )
                for row in rows
            ]
        return self._entries(self._words.of(read), diffs[0], epoch_word)

    def _entries(self, columns: Int64s, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """Return the batch of entries with the words `columns`: those of the keys alone if `diff` is -1, else
        those of the columns as they are read.
        """
        width, rows = self.columns.width, columns.shape[1]
        words = np.zeros((width + ENTRY_WORDS + TRAILING_WORDS, rows), dtype=np.int64)
        if isinstance(diff, int) and diff < 0:
            for name in self.keys:
                words[_span(self.columns, name)] = columns[_span(self._keys, name)]
        else:
            has_value = np.ones(rows, dtype=np.bool_) if isinstance(diff, int) else diff > 0
            self._write_values(columns, has_value, words)
        words[width + ENTRY_WORDS] = epoch_word
        words[width + ENTRY_WORDS + 1] = 1
        return UpdateBatch(words, self.columns.symbol_words)

    def ordered(self, batch: Batch, order: int, place: int) -> UpdateBatch:
        """Return the batch with its position in the order: that of its call, and its first row's in the
        call.
        """
        words = words_of(batch).copy()
        at = words.shape[0] - TRAILING_WORDS - 2
        words[at] = order
        words[at + 1] = np.arange(place, place + words.shape[1])
        return UpdateBatch(words, self.columns.symbol_words)

    def reordered(self, batch: Batch, orders: Int64s, places: Int64s) -> UpdateBatch:
        """Return the batch with the order of each row."""
        words = words_of(batch).copy()
        at = words.shape[0] - TRAILING_WORDS - 2
        words[at], words[at + 1] = orders, places
        return UpdateBatch(words, self.columns.symbol_words)

    def _write_values(self, columns: Int64s, has_value: Bools, words: Int64s) -> None:
        """Write the columns into `words`. Raise SchemaError for a null that neither fits nor deletes."""
        if self._null_deletes:
            values = [column for column in self.schema if column.name not in self.keys]
            flags = [columns[self._read.offset(column.name)] != 0 for column in values]
            has_value = has_value & np.array(flags).any(axis=0)
            for column, flag in zip(values, flags, strict=True):
                missing = has_value & ~flag
                if not column.type.nullable and missing.any():
                    raise SchemaError(
                        f"input {self.name!r}, column {column.name!r} ({column.type}), row "
                        f"{int(np.argmax(missing))}: null is not a value of it.\n  A row in which all "
                        f"columns but "
                        f"the key are null deletes the key; so does delete([…])."
                    )
        for column in self.columns:
            size = column.type.words
            stop = self._read.words_of(column.name).stop
            out = words[_span(self.columns, column.name)]
            out[:] = columns[stop - size : stop]
            if column.name not in self.keys:
                out *= has_value
        words[self.columns.width] = has_value


@dataclass(frozen=True)
class ValuesImport:
    """Reads the values of an upsert input of another dataflow, by `keys`; it keeps `columns`."""

    schema: Schema
    keys: tuple[str, ...]
    columns: Schema
    defaults: pa.Table | None = None

    def describe(self) -> str:
        """Return the columns and keys, as text."""
        return f"table ({self.schema}) by {', '.join(self.keys)}"

    def open(self, exported: Exported, reader: str) -> CopiedImport:
        """Begin to read; raise SchemaError if the columns differ."""
        newer = TableImport(self.schema, None, True, self.defaults)
        return _CopiedValues(self, newer.checked(exported, reader), reader)


class _CopiedValues(CopiedImport):
    """Makes entries of the changes of values: see `latest.py`. Those for a log are as clients make them."""

    def __init__(self, values: ValuesImport, vertex: ExportVertex, reader: str) -> None:
        super().__init__(values.columns, vertex, reader, values.defaults)
        names = [name for name in values.columns.names if name not in values.keys]
        self._beside_keys = np.array([w for n in names for w in values.columns.words_of(n)], np.int64)

    def _logged(self, batch: UpdateBatch, order: Int64s) -> UpdateBatch:
        words, width = words_of(batch), self._schema.width
        is_gone = words[-1] < 0  # there is a value of the same order, which counts, unless the key is gone
        words[width] = ~is_gone
        words[np.ix_(self._beside_keys, np.flatnonzero(is_gone))] = 0
        words[width + 1] = order
        words[-1] = 1
        return UpdateBatch(words, self._schema.symbol_words)

    def _batch(self, rows: Int64s, epochs: Int64s) -> UpdateBatch:
        batch = super()._batch(rows, epochs)
        words, width = words_of(batch), self._schema.width
        entries = np.zeros((width + ENTRY_WORDS + TRAILING_WORDS, words.shape[1]), dtype=np.int64)
        entries[:width] = words[:width]
        entries[width] = INHERITED
        entries[-TRAILING_WORDS:] = words[-TRAILING_WORDS:]
        return UpdateBatch(entries, self._schema.symbol_words)


def _span(schema: Schema, name: str) -> slice[int, int, None]:
    where = schema.words_of(name)
    return slice(where.start, where.stop)
