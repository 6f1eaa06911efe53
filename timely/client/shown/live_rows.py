"""The rows of an output, and the first of them in an order that a user has chosen, for a live table.

All rows are kept as one Arrow table: whichever row leaves the first ones, the next one is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

import pyarrow as pa

from ...errors import MisuseError
from ...limits import LIVE_SHOWN_ROWS_MAX
from ...wire.arrow import pc
from .first_rows import cells_of, count_shown, first_rows, merged_rows, shown_columns, summed_changes

__all__ = ["Frame", "LiveRows", "RowOrder"]

Frame = Mapping[str, object]
"""What a live table shows at one moment; see `LiveRows.frame`."""

_Cells = tuple[str, ...]


class RowOrder(NamedTuple):
    """By which column rows are sorted; then by the other columns."""

    column: str
    descending: bool = False


class LiveRows:
    """The rows of one output.

    Args:
        schema: the columns.
        shown: how many rows a frame has at most.
        order: by which column they are sorted.
        key: the columns whose values tell which row a changed one was before; by default the first.
    """

    def __init__(
        self, schema: pa.Schema, shown: int, order: RowOrder | None = None, key: Sequence[str] = ()
    ) -> None:
        names = [str(name) for name in schema.names]
        for name in (*key, *([order.column] if order else [])):
            if name not in names:
                raise MisuseError(
                    f"live: there is no column {name!r}; there are {', '.join(names) or 'none'}"
                )
        if not 1 <= shown <= LIVE_SHOWN_ROWS_MAX:
            raise MisuseError(f"live shows 1 to {LIVE_SHOWN_ROWS_MAX:,} rows, not {shown!r:.80}")
        self._names = names
        self._columns = [list(column) for column in shown_columns(schema)]
        self._shown = count_shown(shown, len(names))
        self._keys = [names.index(name) for name in key or names[:1]]
        self.order = order or RowOrder(names[0] if names else "")
        self._rows: pa.Table | None = None
        self._before: dict[_Cells, list[_Cells]] = {}
        self._changed: set[_Cells] | None = None
        self._numbers = count(1)
        self.epoch = -1

    def begin(self, rows: pa.Table, epoch: int) -> None:
        """Begin with a collection, in the columns of the output, `epoch` and `diff`."""
        self._rows = None
        self._before, self._changed, self.epoch = {}, None, epoch
        self._rows = merged_rows(None, summed_changes(rows))

    def change(self, changes: pa.Table) -> None:
        """Take in changes, in the same columns. Raise `MisuseError` if there are too many rows then."""
        assert self._rows is not None, "a collection comes first"
        if changes.num_rows == 0:
            return
        self.epoch = max(self.epoch, int(pc.max(changes.column("epoch")).as_py()))
        table = summed_changes(changes)
        self._changed = (self._changed or set()) | self._keys_of(table)
        rows, self._rows = self._rows, None  # there are none if they become too many
        self._rows = merged_rows(rows, table)

    def sort(self, order: RowOrder) -> bool:
        """Sort by another column; return False if there is no such column."""
        if order.column not in self._names:
            return False
        self.order = order
        return True

    def frame(self) -> dict[str, object]:
        """Return what to show.

        number       larger than that of the frame before
        columns      of each its name, its type, and whether it holds numbers
        rows         the cells of the first rows, as texts
        marks        [row, column] of each cell that has changed since the frame before
        total        how many rows there are
        order        the column by which they are sorted, and whether that descends
        epoch        the last epoch that is in it; -1: none
        note, error  what else to say
        """
        shown, total, note = self._first()
        marks: list[list[int]] = []
        by_key: dict[_Cells, list[_Cells]] = {}
        for place, cells in enumerate(shown):
            key = tuple(cells[at] for at in self._keys)
            same = by_key.setdefault(key, [])
            before = self._before.get(key, [])
            if len(same) < len(before):
                old = before[len(same)]
                marks += [[place, at] for at, cell in enumerate(cells) if cell != old[at]]
            elif self._changed is not None and key in self._changed:
                marks += [[place, at] for at in range(len(cells))]
            same.append(cells)
        self._before, self._changed = by_key, set()
        return {
            "number": next(self._numbers),
            "columns": self._columns,
            "rows": [list(cells) for cells in shown],
            "marks": marks,
            "total": total,
            "order": [self.order.column, self.order.descending],
            # A browser would round larger numbers.
            "epoch": self.epoch if self.epoch < 1 << 53 else str(self.epoch),
            "note": note,
            "error": "",
        }

    def _first(self) -> tuple[list[_Cells], int, str]:
        """Return the first rows, each as often as it is there; how many there are; and a note about them."""
        if self._rows is None:
            return [], 0, "no epoch is complete yet"
        table = self._in_order(self._rows)
        total = int(pc.sum(pc.max_element_wise(self._rows.column("diff"), 0)).as_py() or 0)
        rows: list[_Cells] = []
        for cells, diff in zip(
            _texts(table.select(self._names)), table.column("diff").to_pylist(), strict=True
        ):
            rows += [cells] * min(max(0, diff), self._shown - len(rows))
        is_negative = self._rows.num_rows and pc.min(self._rows.column("diff")).as_py() < 0
        return rows, total, "some rows are there a negative number of times" if is_negative else ""

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """Return the first rows in order."""
        if not self._names:
            return rows
        direction = "descending" if self.order.descending else "ascending"
        others = [(name, "ascending") for name in self._names if name != self.order.column]
        return first_rows(rows, self._shown, [(self.order.column, direction), *others])

    def _keys_of(self, table: pa.Table) -> set[_Cells]:
        """Return the keys of rows, as texts: cells that look the same are not told apart."""
        if not self._names:
            return {()}
        return set(_texts(table.select([self._names[at] for at in self._keys])))


def _texts(table: pa.Table) -> list[_Cells]:
    return [tuple("null" if cell is None else cell for cell in cells) for cells in cells_of(table)]
