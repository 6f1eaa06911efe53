"""A join spread over units: rows are placed, meet in their units, and the unit is forgotten.

    cells     a row is kept wherever it asks. Both sides, placed, are joined by the unit and the keys:
              whichever row of a pair comes later makes it, as in every join, and nothing waits. In any loop.
    halves    a row is kept in few units and asks in others. Both of a pair could make it; so the rows of the
              left that ask meet what is kept of the right up to their time, and those of the right what is
              kept of the left before theirs: two half joins. They wait for that time to be complete.

Which of the two a scheme is, and the law that two rows meet exactly once: `skew/placements/placement.py`.
"""

from __future__ import annotations

from typing import TypeVar

from ...expressions.expression import col
from ...linear.placing import UNIT
from ...plan.nodes import Concat, HalfJoin, Join, Pairs, Place, Select
from ...skew.balance import Balance, Purpose
from ..sets import SetOperators

__all__ = ["balanced_pairs"]

C = TypeVar("C", bound=SetOperators)


def balanced_pairs(
    left: C, right: C, on: tuple[tuple[str, str], ...], balance: Balance, *, null_safe: bool
) -> C:
    """The pairs of rows with equal keys, of the same types; columns as `Join` has them."""
    if not null_safe:  # such rows are in no pair, and would all be on one unit
        left = left.drop_nulls(*(one for one, _ in on)) if on else left
        right = right.drop_nulls(*(other for _, other in on)) if on else right
    keys = ((UNIT, UNIT), *on)
    asking: Purpose = "asking"

    def placed(side: int, purpose: Purpose) -> C:
        whole, names = (left, right)[side], tuple(pair[side] for pair in on)
        return whole.with_node(Place(whole.node, names, side, purpose, balance))

    kept = placed(0, "kept"), placed(1, "kept")
    if balance.placement.is_cells:
        pairs: C = _with_pairs(Join(kept[0].node, kept[1].node, keys, null_safe), left)
    else:
        halves = [
            _with_pairs(HalfJoin(placed(0, asking).node, kept[1].node, keys, null_safe, 0), left),
            _with_pairs(HalfJoin(kept[0].node, placed(1, asking).node, keys, null_safe, 1), left),
        ]
        pairs = left.with_node(Concat(tuple(half.node for half in halves)))
    names = [name for name in pairs.schema.names if name != UNIT]
    return pairs.with_node(Select(pairs.node, tuple((name, col(name)) for name in names)))


def _with_pairs(pairs: Pairs, left: C) -> C:
    return left.with_node(pairs)
