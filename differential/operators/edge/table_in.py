"""Arrow tables and plain rows come in: columns → an update batch at an epoch.

Clients send all columns that an input declares. A plan may read only some of them; then the input keeps those
alone (`keep_only`), and makes no symbols of the texts in the others. Two rows that differ in a column that
nobody reads are one row, twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from timely.errors import MisuseError
from timely.operators.inputs.by_epoch import ByEpoch
from timely.operators.inputs.folded import Waiting
from timely.operators.inputs.plain_rows import PlainRow, PlainRows
from timely.wire.batch import Batch

from ...columns.rows import PlainWords
from ...columns.update_batch import UpdateBatch, words_of
from ...columns.worker_symbols import SYMBOLS
from ...errors import SchemaError
from ..between.evolution import Evolution, check_evolution, defaults_text, with_defaults
from ..between.imports import TableImport
from .folding import folded

__all__ = ["TableIn", "by_epochs", "checked", "is_of_base", "of_base"]


_OF_BASE: Final = {b"differential.columns": b"those that are kept"}


class TableIn:
    """Encodes tables for an input with the columns of `schema`.

    Args:
        schema: the columns that clients send.
        name: of the input.
        columns: the names of the columns that are kept, in the order of `schema`; None for all.
        defaults: one row, of columns that older rows and tables of older clients lack.
    """

    converter = "differential.columns.client_tables:client_table"

    def __init__(
        self,
        schema: Schema,
        name: str,
        columns: Sequence[str] | None = None,
        defaults: pa.Table | None = None,
    ) -> None:
        self.schema = schema
        self.name = name
        self._defaults = defaults
        self._plain = PlainRows(schema.to_arrow())
        self.keep_only(schema.names if columns is None else columns)

    def keep_only(self, names: Sequence[str]) -> None:
        """Keep only these columns of rows that come in from now on, since nobody reads the others."""
        taken = [name for name in self.schema.names if name in names]
        self._keeps_all = len(taken) == len(self.schema)
        self.columns = self.schema if self._keeps_all else self.schema.picked(taken)
        self._places = None if self._keeps_all else [self.schema.names.index(name) for name in taken]
        self._words = PlainWords(self.columns, SYMBOLS)

    def describe(self) -> str:
        """Return the columns, as text."""
        return f"table ({self.schema})" + defaults_text(self._defaults)

    def arrow_schema(self) -> pa.Schema:
        """Return the columns that clients must send."""
        return self.schema.to_arrow()

    def as_import(self) -> TableImport:
        """Return what reads the same rows from a dataflow that exports them, perhaps an older version."""
        return TableImport(self.schema, self.columns, True, self._defaults)

    def check_older(self, older: object) -> None:
        """Raise SchemaError if rows of an older version of the input cannot be read as rows of this one."""
        if type(older) is not TableIn:
            raise SchemaError("an input that keeps the last value by key, and one of rows, are two things")
        check_evolution(older.schema, self.schema, self._defaults)

    def reread(self, older: object, batch: Batch) -> UpdateBatch:
        """Return a batch of the older version with the columns of this one."""
        assert isinstance(older, TableIn), "checked before"
        rows = Evolution(older.columns, self.columns, self._defaults).rows(words_of(batch))
        return UpdateBatch(rows, self.columns.symbol_words)

    def raw_form(self) -> tuple[str, list[object]]:
        """Return the function that makes batches from a log whole, and its second argument: see
        `timely.durable.bases.raw_rows`.
        """
        return "differential.columns.update_batch:with_symbols", list(self.columns.symbol_words)

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> UpdateBatch:
        """Return the rows of `table` at `epoch_word`, each `diff` times."""
        width = self.columns.width
        words = np.empty((width + 2, table.num_rows), dtype=np.int64)
        self.columns.encode_into(words, self._kept_of(table), SYMBOLS, self.name)
        words[width] = epoch_word
        words[width + 1] = diff
        return UpdateBatch(words, self.columns.symbol_words)

    def encode_epochs(
        self, table: pa.Table, diff: int | Int64s, epochs: ByEpoch, words: Sequence[int]
    ) -> list[UpdateBatch]:
        """Return what `encode` returns for the rows of each epoch of `epochs`, with all values encoded
        at once.
        """
        return by_epochs(self.encode(table, diff, 0), epochs, words)

    def encode_folded(self, table: pa.Table, diff: int | Int64s) -> list[Waiting]:
        """Return many rows in pieces, which take less memory until they enter one by one."""
        return list(folded(self.columns, self._kept_of(table), diff, SYMBOLS, self.name))

    def _kept_of(self, table: pa.Table) -> pa.Table:
        """Return the columns that are kept. A table of a base has only these. All columns of any other table
        must be there, or have a default, and fit, whether they are kept or not.
        """
        if is_of_base(table):
            return table
        table = with_defaults(table, self._defaults)
        if self._keeps_all:
            return table
        return self.schema.conform(table, self.name).select(self.columns.names)

    def checked_rows(self, rows: object, diff: int) -> list[PlainRow]:
        """Return the plain rows that a client has sent, as far as they are kept; raise `MisuseError` if they
        are not plain.
        """
        del diff
        plain, places = self._plain.of(rows), self._places
        if plain is None:
            raise _not_plain(self.name)
        return plain if places is None else [tuple([row[at] for at in places]) for row in plain]

    def encode_rows(self, rows: list[PlainRow], diffs: list[int], epoch_word: int) -> UpdateBatch:
        """Return what `encode` returns for a table of these checked rows, each row with its own diff."""
        words = self._words.of(rows, [epoch_word] * len(rows), diffs)
        return UpdateBatch(words, self.columns.symbol_words)


def of_base(table: pa.Table) -> pa.Table:
    """Return the table, marked as one that a base has, in which columns that nobody reads are missing."""
    return table.replace_schema_metadata(_OF_BASE)


def is_of_base(table: pa.Table) -> bool:
    """Return True if `of_base` has marked the table."""
    return (table.schema.metadata or {}).items() >= _OF_BASE.items()


def checked(form: PlainRows, rows: object, name: str) -> list[PlainRow]:
    """Return the plain rows that a client has sent to the input `name`; raise `MisuseError` if they are not
    plain.
    """
    plain_rows = form.of(rows)
    if plain_rows is None:
        raise _not_plain(name)
    return plain_rows


def _not_plain(name: str) -> MisuseError:
    """Return the error for rows that a client has sent to the input `name`, and that are not plain."""
    return MisuseError(f"input {name!r}: these are no plain rows of its columns; send them as a table")


def by_epochs(whole: UpdateBatch, epochs: ByEpoch, words: Sequence[int]) -> list[UpdateBatch]:
    """Return one batch for each epoch, its rows at the word of the epoch."""
    rows = whole.words if epochs.order is None else whole.words[:, epochs.order]
    batches: list[UpdateBatch] = []
    for (start, stop), word in zip(epochs.ranges(), words, strict=True):
        part = np.ascontiguousarray(rows[:, start:stop])
        part[-2] = word
        batches.append(UpdateBatch(part, whole.symbol_words))
    return batches
