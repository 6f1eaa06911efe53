"""Joins spread over units: rows are placed on units, meet there, and the result drops the unit.

    cells     a row is stored wherever it probes. Both sides, placed, are joined by the keys and the unit: the
              later row of a pair makes it, as in every join, and nothing waits. In any loop.
    halves    a row is stored in few units and probes in others. Both rows of a pair could make it; so the
              rows of the left that probe meet the rows stored of the right up to their time, and those of the
              right meet the rows stored of the left before theirs: two half joins. They wait until that time
              is complete.

`skew/placements/placement.py` says which of the two a scheme is, and has the law that two rows meet exactly
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from timely.errors import GraphError
from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered

from ...errors import SchemaError
from ...expressions.expression import col
from ...linear.placing import UNIT
from ...plan.nodes import Concat, HalfJoin, Join, Pairs, PlaceOnUnits, Select, Spread
from ...skew.balance import LEAD_MAX, Balance, Purpose
from ..sets import SetOperators

__all__ = ["Routed", "balanced_pairs"]

C = TypeVar("C", bound=SetOperators)


@dataclass(frozen=True, eq=False)
class Routed(Offered, Generic[C]):
    """A balance whose routing changes while it runs, by announcements.

    balance         the scheme, and its routing at the beginning
    announcements   rows of `dd.announcements`: those sealed in epoch a hold from epoch a + `lead` on. Rows of
                    such epochs follow them; stored rows move meanwhile, and nothing stops

    A row of epoch e goes on its way once epoch e - `lead` of the announcements is sealed, and its pairs are
    complete once epoch e of them is. Outside of all loops.

    An announcement that is impossible, or contradicts another one of its epoch, ends the dataflow with a
    MisuseError; `Placement.changed` says before whether it does.
    """

    balance: Balance
    announcements: C
    lead: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.balance, Balance):
            raise SchemaError(f"routed ({call_site()}): {self.balance!r:.80} is no dd.Balance(…)")
        if not isinstance(self.announcements, SetOperators):
            raise SchemaError(f"routed ({call_site()}): announcements are a collection: dd.announcements(…)")
        if type(self.lead) is not int or not 0 <= self.lead <= LEAD_MAX:
            raise SchemaError(
                f"routed ({call_site()}): lead is 0 to {LEAD_MAX:,} epochs, not {self.lead!r:.80}"
            )


def balanced_pairs(
    left: C, right: C, on: tuple[tuple[str, str], ...], balance: Balance | Routed[C], *, null_safe: bool
) -> C:
    """Return the pairs of rows with equal keys, which have equal types; columns as `Join` has them."""
    if not null_safe:  # rows with a null key are in no pair, and would all be on one unit
        left = left.drop_nulls(*(one for one, _ in on)) if on else left
        right = right.drop_nulls(*(other for _, other in on)) if on else right
    if isinstance(balance, Routed):
        return _routed_pairs(left, right, on, balance, null_safe)
    keys = (*on, (UNIT, UNIT))
    probing: Purpose = "probing"

    def placed(side: int, purpose: Purpose) -> C:
        whole, names = (left, right)[side], tuple(pair[side] for pair in on)
        return whole.with_node(PlaceOnUnits(whole.node, names, side, purpose, balance))

    stored = placed(0, "kept"), placed(1, "kept")
    if balance.placement.is_cells:
        pairs: C = _with_pairs(Join(stored[0].node, stored[1].node, keys, null_safe), left)
    else:
        halves = [
            _with_pairs(HalfJoin(placed(0, probing).node, stored[1].node, keys, null_safe, 0), left),
            _with_pairs(HalfJoin(stored[0].node, placed(1, probing).node, keys, null_safe, 1), left),
        ]
        pairs = left.with_node(Concat(tuple(half.node for half in halves)))
    names = [name for name in pairs.schema.names if name != UNIT]
    return pairs.with_node(Select(pairs.node, tuple((name, col(name)) for name in names)))


def _routed_pairs(
    left: C, right: C, on: tuple[tuple[str, str], ...], routed: Routed[C], null_safe: bool
) -> C:
    announcements = routed.announcements
    if left.place or announcements.place:
        raise GraphError(
            f"join ({call_site()}): a routing changes by epochs, so what it routes is outside of all loops, "
            "and so are announcements; in a loop write balance=dd.Balance(…)"
        )
    if announcements.plan is not left.plan:
        raise GraphError("collections of two dataflows cannot meet")
    return left.with_node(
        Spread(left.node, right.node, announcements.node, on, null_safe, routed.balance, routed.lead)
    )


def _with_pairs(pairs: Pairs, left: C) -> C:
    return left.with_node(pairs)
