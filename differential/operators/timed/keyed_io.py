"""What the clients of an upsert input send, as rows of words: the columns, whether there is a value, the
order.

A table has a row for each value, `diff` 1; or the keys to delete, `diff` -1. Where some column beside the
keys is declared without null, a row in which all of them are null deletes its key, too; where all may be
null such a row is a value like others.

Within an epoch the order decides. Rows of one call are in their order. Calls have the order in which
worker 0 takes them; appends to an epoch that their writer names (`AppendClient`, Spark) come before all of
these, ordered by a hash of the writer's name and by their numbers, so that it makes no difference when,
where and how often they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgpack
import numpy as np
import pyarrow as pa

from differential.columns.column_types import Bools, Int64s
from differential.columns.rows import PlainWords
from differential.columns.schema import Column, Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError
from differential.expressions.projection import TRAILING_WORDS
from differential.operators.between.imports import CopiedImport, TableImport
from differential.operators.table_io import by_epochs, checked
from differential.operators.timed.latest import INHERITED, SAID_WORDS
from timely.errors import MisuseError
from timely.operators.imported import Exported, ImportCodec
from timely.operators.inputs.by_epoch import ByEpoch
from timely.operators.inputs.codecs import counted
from timely.operators.inputs.plain_rows import PlainRow, PlainRows
from timely.wire.arrow import number_array
from timely.wire.batch import Batch

__all__ = ["KeyedTableIn", "ValuesImport", "said_schema"]

_SAID = ("(has value)", "(order)", "(place)")


def said_schema(schema: Schema) -> Schema:
    """The columns of what comes out of an upsert input, before the last value of each key is found."""
    return Schema((*schema.columns, *Schema.of([(name, "int") for name in _SAID]).columns))


class KeyedTableIn:
    """Encodes tables for an upsert input with the columns of `schema`, of which `keys` are the key."""

    converter = "differential.columns.client_tables:client_table"

    def __init__(self, schema: Schema, name: str, keys: tuple[str, ...]) -> None:
        self.schema = schema
        self.name = name
        self.keys = keys
        self._values = [column for column in schema if column.name not in keys]
        self._null_deletes = any(not column.type.nullable for column in self._values)
        """The columns as clients may send them."""
        self._wire = Schema(
            tuple(
                Column(column.name, column.type.or_null(self._null_deletes and column.name not in keys))
                for column in schema
            )
        )
        self._keys = schema.picked(keys)
        self._plain, self._plain_keys = PlainRows(self._wire.to_arrow()), PlainRows(self._keys.to_arrow())
        self._words, self._key_words = PlainWords(self._wire, SYMBOLS), PlainWords(self._keys, SYMBOLS)

    def describe(self) -> str:
        """The columns and the keys."""
        return f"table ({self.schema}) by {', '.join(self.keys)}"

    def arrow_schema(self) -> pa.Schema:
        """What clients may send, and by which columns it is kept."""
        return self._wire.to_arrow().with_metadata({b"keys": msgpack.packb(list(self.keys))})

    def as_import(self) -> ImportCodec:
        """The current values, of a dataflow that exports them."""
        return ValuesImport(self.schema, self.keys)

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """What `table` says of its keys, in the order of its rows; the order among calls is not known yet."""
        if diff not in (1, -1) if isinstance(diff, int) else not (np.abs(diff) == 1).all():
            raise MisuseError(
                f"input {self.name!r}: the column 'diff' says 1 for a value and -1 for a key that is deleted"
            )
        if isinstance(diff, int) and diff < 0:
            # What is not there, or is there twice, is refused as for any table.
            named = [name for name in self.keys if table.schema.get_field_index(name) >= 0]
            given = self._keys.encode(table.select(named), SYMBOLS, self.name)
        else:
            given = self._words_of(table, diff)
        return self._said(given, diff, epoch_word)

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, given: ByEpoch, words: Sequence[int]
    ) -> list[UpdateBatch]:
        """As `encode` of the rows of each of these epochs: values are encoded all together."""
        return by_epochs(self.encode(table, diff, 0), given, words)

    def _words_of(self, table: pa.Table, diff: int | Int64s) -> Int64s:
        """The words of all columns. What stands beside a key that is deleted does not count, here as where
        all are deleted: if it is no value of its column the row is read by its key alone.
        """
        try:
            return self._wire.encode(table, SYMBOLS, self.name)
        except SchemaError as error:
            if isinstance(diff, int):
                raise
            try:
                said = table.filter(number_array(diff > 0))
            except pa.ArrowException:  # not every form of column can be filtered by every release
                raise error from None
        words = np.zeros((self._wire.width, table.num_rows), dtype=np.int64)
        with counted("among those whose diff is 1"):
            words[:, diff > 0] = self._wire.encode(said, SYMBOLS, self.name)
        keys = self._keys.encode(table.select(self.keys), SYMBOLS, self.name)
        for name in self.keys:
            words[_span(self._wire, name)] = keys[_span(self._keys, name)]
        return words

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        """The plain rows that a client has sent: of the keys alone, if they are deleted."""
        return checked(self._plain_keys if diff < 0 else self._plain, rows, self.name)

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> UpdateBatch:
        """As `encode` of a table of these checked rows, all of which say something, or all delete."""
        words = self._key_words if diffs[0] < 0 else self._words
        return self._said(words.of(rows), diffs[0], epoch_word)

    def _said(self, given: Int64s, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """The batch of the words `given`: of the keys alone if `diff` is -1, else of all columns."""
        width, rows = self.schema.width, given.shape[1]
        words = np.zeros((width + SAID_WORDS + TRAILING_WORDS, rows), dtype=np.int64)
        if isinstance(diff, int) and diff < 0:
            for name in self.keys:
                words[_span(self.schema, name)] = given[_span(self._keys, name)]
        else:
            has_value = np.ones(rows, dtype=np.bool_) if isinstance(diff, int) else diff > 0
            self._write_values(given, has_value, words)
        words[width + SAID_WORDS] = epoch_word
        words[width + SAID_WORDS + 1] = 1
        return UpdateBatch(words, self.schema.symbol_words)

    def ordered(self, batch: Batch, order: int, place: int) -> UpdateBatch:
        """The same with its place in the order: among calls, and within the one that it is (a part) of."""
        words = words_of(batch).copy()
        at = words.shape[0] - TRAILING_WORDS - 2
        words[at] = order
        words[at + 1] = np.arange(place, place + words.shape[1])
        return UpdateBatch(words, self.schema.symbol_words)

    def _write_values(self, given: Int64s, has_value: Bools, words: Int64s) -> None:
        """Write the columns into `words`; raises SchemaError for a null that neither fits nor deletes."""
        if self._null_deletes:
            flags = [given[self._wire.offset(column.name)] != 0 for column in self._values]
            has_value = has_value & np.array(flags).any(axis=0)
            for column, flag in zip(self._values, flags, strict=True):
                missing = has_value & ~flag
                if not column.type.nullable and missing.any():
                    raise SchemaError(
                        f"input {self.name!r}, column {column.name!r} ({column.type}), row "
                        f"{int(np.argmax(missing))}: null is not a value of it.\n  A row in which all "
                        f"columns but "
                        f"the key are null deletes the key; so does delete([…])."
                    )
        for column in self.schema:
            size = column.type.words
            stop = self._wire.words_of(column.name).stop
            out = words[_span(self.schema, column.name)]
            out[:] = given[stop - size : stop]
            if column.name not in self.keys:
                out *= has_value
        words[self.schema.width] = has_value


@dataclass(frozen=True)
class ValuesImport:
    """Reads the values of an upsert input of another dataflow, by `keys`."""

    schema: Schema
    keys: tuple[str, ...]

    def describe(self) -> str:
        """Columns and keys."""
        return f"table ({self.schema}) by {', '.join(self.keys)}"

    def open(self, exported: Exported, reader: str) -> CopiedImport:
        """Begin to read; SchemaError if the columns are others."""
        return _CopiedValues(self.schema, TableImport(self.schema).checked(exported, reader), reader)


class _CopiedValues(CopiedImport):
    """The changes of values as they are, among what is said: see `latest.py`."""

    def _batch(self, rows: Int64s, epochs: Int64s) -> UpdateBatch:
        batch = super()._batch(rows, epochs)
        words, width = words_of(batch), self._schema.width
        said = np.zeros((width + SAID_WORDS + TRAILING_WORDS, words.shape[1]), dtype=np.int64)
        said[:width] = words[:width]
        said[width] = INHERITED
        said[-TRAILING_WORDS:] = words[-TRAILING_WORDS:]
        return UpdateBatch(said, self._schema.symbol_words)


def _span(schema: Schema, name: str) -> slice[int, int, None]:
    where = schema.words_of(name)
    return slice(where.start, where.stop)
