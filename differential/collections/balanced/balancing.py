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
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from timely.errors import GraphError
from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered
from timely.wire.routing import BUCKETS

from ...aggregates import count
from ...aggregates import sum as total
from ...errors import SchemaError
from ...expressions.expression import col, lit
from ...linear.placing import UNIT
from ...plan.nodes import (
    Accumulate,
    AddedColumn,
    Concat,
    Filter,
    HalfJoin,
    Join,
    Node,
    Pairs,
    PlaceOnUnits,
    Select,
    Spread,
    Steered,
)
from ...skew.balance import LEAD_MAX, Balance, Purpose
from ...thresholds import HEAVY_ROWS_MIN
from ..sets import SetOperators

__all__ = ["AnyBalance", "Routed", "balanced_pairs"]

C = TypeVar("C", bound=SetOperators)

_AUTO: Final = Balance("hash", units=16)
"""Where rows of a join that balances itself are at first: both sides of a key on one unit, as in any join."""


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


AnyBalance: TypeAlias = Balance | Routed[C] | Literal["auto"]
"""What `balance=` of a join may be."""


def balanced_pairs(
    left: C, right: C, on: tuple[tuple[str, str], ...], balance: AnyBalance[C], *, null_safe: bool
) -> C:
    """Return the pairs of rows with equal keys, which have equal types; columns as `Join` has them."""
    if not null_safe:  # rows with a null key are in no pair, and would all be on one unit
        left = left.drop_nulls(*(one for one, _ in on)) if on else left
        right = right.drop_nulls(*(other for _, other in on)) if on else right
    if balance == "auto":
        announcements = left.with_node(_steered(left.node, right.node, on))
        balance = Routed(_AUTO, announcements)
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


def _steered(left: Node, right: Node, on: tuple[tuple[str, str], ...]) -> Steered:
    """Return the announcements of a controller that counts the rows of both sides: those of heavy keys one by
    one, and those of all others by bucket.
    """
    counted: list[Node] = []
    for side, node in enumerate((left, right)):
        placed = PlaceOnUnits(node, tuple(pair[side] for pair in on), side, "counted by key", _AUTO)
        counted.append(Select(placed, (("key", col(UNIT)), ("left", lit(1 - side)), ("right", lit(side)))))
    sums = AddedColumn("left", 0, total("left")), AddedColumn("right", 0, total("right"))
    by_key = Accumulate((Concat(tuple(counted)),), ("key",), 1, sums)
    is_light = (col.left < HEAVY_ROWS_MIN) & (col.right < HEAVY_ROWS_MIN)
    light = Select(
        Filter(by_key, is_light), (("key", col.key % BUCKETS), ("left", col.left), ("right", col.right))
    )
    by_bucket = Accumulate((light,), ("key",), 1, (*sums, AddedColumn("keys", 0, count())))
    sides = (("key", col.key), ("left", col.left), ("right", col.right))
    parts = (
        Select(by_bucket, (("is_key", lit(0)), *sides, ("keys", col.keys))),
        Select(Filter(by_key, ~is_light), (("is_key", lit(1)), *sides, ("keys", lit(1)))),
    )
    return Steered(Concat(parts), _AUTO)


def _with_pairs(pairs: Pairs, left: C) -> C:
    return left.with_node(pairs)
