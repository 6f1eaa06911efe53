"""Inputs of tables: what clients insert comes in as it is."""

from __future__ import annotations

import pyarrow as pa

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError

from ...wire.batch import Batch
from ...wire.frames.table_batch import TableBatch
from ..imported import ImportCodec

__all__ = ["TablesIn"]


class TablesIn:
    """Takes tables with whatever columns."""

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        """Return the table as a batch; rows can only be added."""
        del epoch_word
        if not isinstance(diff, int) or diff != 1:
            raise MisuseError(
                "an input of tables can only be added to: removing is for differential collections"
            )
        return TableBatch(table)

    def describe(self) -> str:
        """Return the name of the form of rows."""
        return "tables"

    def as_import(self) -> ImportCodec:
        """Raise MisuseError: no dataflow keeps tables."""
        raise MisuseError("an input of tables cannot be imported: no dataflow keeps tables")
