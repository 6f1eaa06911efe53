"""Where does a value stand: in which input, column and row, and in which part of the column's values?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from differential.columns.column_types import ColumnType, Int64s
from differential.errors import SchemaError, shown

__all__ = ["ValueLocation"]


@dataclass(frozen=True, slots=True)
class ValueLocation:
    """Where a value stands, for messages.

    Without the name of an input, the value stands in a lone row; the code that shows the error knows which.
    """

    input_name: str
    column: str
    type: ColumnType
    part: str = ""
    """Which part of the values of the column: "element"; "" is the whole."""
    parents: Sequence[int] | Int64s | None = None
    """The row of each value of a part; None: value n is in row n."""

    def inside(self, part: str, type_: ColumnType, parents: Sequence[int] | Int64s) -> ValueLocation:
        """Return the location of a part of these values; `parents`: for each part the number of its value."""
        rows = parents if self.parents is None else [int(self.parents[parent]) for parent in parents]
        name = f"{self.part}, {part}" if self.part else part
        return ValueLocation(self.input_name, self.column, type_, name, rows)

    def row(self, number: int) -> int:
        """Return the row of value `number`."""
        return number if self.parents is None else int(self.parents[number])

    def error(self, row: int, value: object, why: str, mend: str) -> SchemaError:
        """Return the error about one value."""
        part = f", {self.part}" if self.part else ""
        where = f"column {self.column!r}{part} ({self.type})"
        if self.input_name:
            where = f"input {self.input_name!r}, {where}, row {self.row(row)}"
        return SchemaError(f"{where}: {shown(value)} {why}.\n  {mend}")

    def null_error(self, row: int) -> SchemaError:
        """Return the error about a null where none is allowed."""
        mend = (
            f'Declare the column as "{self.column}: {self.type.or_null()}", or drop or fill such rows first.'
        )
        if self.part:
            mend = (
                f'Declare it as "{self.type.or_null()}" in the type of the column, or fill such values first.'
            )
        return self.error(row, None, "is null, which the column does not allow", mend)
