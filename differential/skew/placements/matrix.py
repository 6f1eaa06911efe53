"""DYNAMIC: the matrix of cells. A left row is in some row of cells, a right row in some column.

Any two rows meet in one cell, whatever the condition, and no key is hotter than another; nothing waits. A
left row is stored in as many cells as there are columns (copies of the grid), a right row in as many as there
are rows (shares). A cell gets |left| / shares + |right| / copies rows, which is least where both terms are
about equal; so the grid follows the sizes of the sides. Its sides are powers of two: a change of the grid
then halves one side and doubles the other, and each cell keeps half of what it has.

Source: Elseidy et al., Scalable and Adaptive Online Joins (2014).
"""

from __future__ import annotations

from progress.errors import MisuseError
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable, checked_units

from .placement import Placement

__all__ = ["fitting_grid", "input_load", "matrix", "matrix_table"]


def matrix(units: int, shares: int | None = None) -> Placement:
    """Return a grid over the largest power of two of `units`; `shares` None: as square as can be.

    Raises MisuseError if `shares` is no power of two, or more than there are cells.
    """
    cells = 1 << (checked_units(units).bit_length() - 1)
    if shares is None:
        shares = fitting_grid(units, 1, 1)
    if shares < 1 or shares & (shares - 1) or shares > cells:
        raise MisuseError(f"a grid of {cells} cells has 1, 2, 4 … {cells} rows of them, not {shares}")
    return Placement("matrix", matrix_table(units, shares), is_cells=True, meets_all=True)


def matrix_table(units: int, shares: int) -> RoutingTable:
    """Return the table with `shares` rows of cells. Units beyond the largest power of two have nothing."""
    copies = (1 << (units.bit_length() - 1)) // shares
    grid = Grid.even([range(share * copies, (share + 1) * copies) for share in range(shares)])
    return RoutingTable.of(units, [grid], [grid])


def fitting_grid(units: int, left_rows: int, right_rows: int) -> int:
    """Return the number of shares with which a cell gets fewest rows, the least such number."""
    cells = 1 << (units.bit_length() - 1)
    candidates = [1 << power for power in range(cells.bit_length())]
    return min(candidates, key=lambda shares: input_load(cells, shares, left_rows, right_rows))


def input_load(cells: int, shares: int, left_rows: int, right_rows: int) -> float:
    """Return the average number of rows that a cell gets."""
    return left_rows / shares + right_rows * shares / cells
