"""The first rows of a collection, or of each of its groups, in an order; and the number of each row in it.

A collection itself has no order: these operators take one.

    by          a column or expression, or several, in turn: "x", col.x, col.x.desc(), (col.a + col.b).asc()
    ties        rows that are equal in all of these come in the order of their other columns, in which numbers
                and times ascend, and text comes in an order that is arbitrary and always the same
    null        comes first if ascending and last if descending, unless `nulls_last` says otherwise
    text        has the order of its characters' code points, bytes that of bytes, floats NaN last

Cost of a change: finding k + offset rows in a group of n, O((k + offset) · log² n) at the most, and nothing
if the change is behind them. A text longer than 32 bytes that was never seen before is sorted among those
that begin alike, which takes some µs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Generic, Self, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.short_traces import in_short

from ...errors import SchemaError
from ...expressions.expression import Ordering, col
from ...expressions.orders import By, OrderSpec
from ...operators.reduce import RankKind
from ...other_spellings import written_as
from ...other_spellings.of_collections import OrderSpellings
from ...other_spellings.table import ORDERS
from ...plan.grouping.computing import order_of
from ...plan.grouping.dividing import divided
from ...plan.nodes import ALL_ROWS, OrderBy, Select, TopK
from ...skew.balance import Balance
from ..checking import CheckingOperators
from ..handle import Handle, Names, names_of

__all__ = ["OrderOperators", "Ordered"]


_METHODS: Final = ("row_number", "rank", "dense")

H = TypeVar("H", bound=Handle)


class OrderOperators(CheckingOperators):
    """Rows in an order."""

    @written_as(
        "top_k(3, by=col.x.desc()) for those with the largest x, by='x' for the least; of a group: keys='k'"
    )
    def top_k(
        self,
        k: int,
        by: By,
        *,
        keys: Names = (),
        offset: int = 0,
        rank: str | None = None,
        method: RankKind = "row_number",
        ties: bool = False,
    ) -> Self:
        """The first `k` rows in the order `by`, behind the first `offset`; with `keys`, of each group.

        Largest first: `top_k(3, by=col.score.desc())`. A row that is there twice is two rows.

        `rank` names one more column, the row's number in its group. `method` says how rows are numbered, see
        `Ordered.rank`, and does not change which rows there are: these are `k`, whichever are equal in the
        order. With `ties=True` all further rows come, too, that are equal in the order to the last of them.
        Rust: `reduce` over the sorted group. SQL: `row_number() over (…) <= k`; with ties `rank() over (…) <=
        k`, or `FETCH FIRST k ROWS WITH TIES`.

        Law: the rows number offset … offset + k - 1, from 0, of each sorted group. Cost: see above.
        """
        named = names_of(keys, "top_k", self)
        order = Ordered(self, named, self.orders_of(by, "top_k"))
        return order.limit(k, offset, rank=rank, method=method, ties=ties)

    @written_as("order_by(col.x.desc(), 'y').limit(10)")
    def order_by(self, *by: OrderSpec) -> Ordered[Self]:
        """An order of all rows; follow with `limit(n, offset=…)` or `rank("place")`. LINQ: `OrderBy`."""
        return Ordered(self, (), self.orders_of(by, "order_by"))


@in_short
@dataclass(frozen=True, eq=False)
class Ordered(OrderSpellings[H], Generic[H]):
    """A collection, or its groups by `keys`, in an order. Its methods return collections again."""

    _internal = frozenset({"by", "collection", "keys"})

    collection: H
    keys: tuple[str, ...]
    by: tuple[Ordering, ...]
    _balance: Balance | None = None
    """The units among which groups are divided."""

    def _missing(self, name: str) -> str:
        otherwise = (
            "; take of it what you need, as a collection again: limit(10), first(), last() or rank('place'). "
            "A collection itself has no order"
        )
        return ORDERS.message(f"an order has no {name!r}", name, otherwise=otherwise)

    def limit(
        self,
        n: int,
        offset: int = 0,
        *,
        rank: str | None = None,
        method: RankKind = "row_number",
        ties: bool = False,
    ) -> H:
        """The rows number `offset` … `offset` + `n` - 1, from 0 (of each group); see `top_k`."""
        return self._top_rows((n, offset), rank, method, ties=ties)

    def first(self) -> H:
        """The first row (of each group)."""
        return self.limit(1)

    def last(self) -> H:
        """The last row (of each group): the first one if all directions are turned round."""
        return replace(self, by=tuple(each.reversed() for each in self.by)).first()

    def rank(self, name: str, method: RankKind = "row_number") -> H:
        """All rows, with one more column `name`: the number of the row in the order (of its group).

            row_number   1, 2, 3, 4, …: each row its own; one that is there twice gets two numbers
            rank         1, 2, 2, 4, …: rows that are equal in the order share the least
            dense        1, 2, 2, 3, …

        Cost: whenever a row of a group changes, the operator goes through the group, some 1.5 µs a row, and
        sends all rows behind that get other numbers. If only the first matter, `limit(n, rank=name)` costs no
        more than those.
        """
        if self._balance is not None:
            raise SchemaError(
                f"rank ({call_site()}): to number all rows of a group they are all needed in one place; "
                "leave out balance=, or take the first ones: limit(n, rank=…)"
            )
        return self._top_rows((ALL_ROWS, 0), name, method)

    def _top_rows(
        self, span: tuple[int, int], rank: str | None, method: RankKind, *, ties: bool = False
    ) -> H:
        """Return `TopK` of the collection, with the collection's columns in their order, and the rank."""
        rows, keys = self.collection, self.keys
        names = rows.schema.names
        _check(rows, keys, span, rank, method)
        source, ordered = order_of(rows.plan.add, rows.node, self.by)
        order: dict[str, OrderBy] = {}
        for each in ordered:
            source.schema.offset(each.column)
            # a key is the same in all of a group, and a second mention of a column adds nothing
            if each.column not in keys:
                order.setdefault(each.column, each)
        numbered = None if rank is None else (rank, method)
        top = TopK(source, keys, tuple(order.values()), *span, numbered, ties)
        top_rows = rows.with_node(divided(rows.plan.add, top, self._balance))
        output_names = (*names, rank) if rank is not None else names
        if top_rows.schema.names == output_names:
            return top_rows
        return top_rows.with_node(Select(top_rows.node, tuple((name, col(name)) for name in output_names)))


def _check(of: Handle, keys: tuple[str, ...], span: tuple[int, int], rank: str | None, method: str) -> None:
    """Raise SchemaError for keys, a span, a rank or a method that make no sense."""
    limit, offset = span
    where = call_site()
    for key in keys:
        of.schema.offset(key)
    if len(set(keys)) != len(keys):
        raise SchemaError(f"top_k ({where}): a key is named twice in {', '.join(keys)}")
    if type(limit) is not int or type(offset) is not int or limit < 1 or offset < 0:
        raise SchemaError(
            f"top_k ({where}) takes how many rows, at least 1, and an offset, at least 0; "
            f"not {limit!r:.50} and {offset!r:.50}"
        )
    if limit + offset > ALL_ROWS:
        raise SchemaError(f"top_k ({where}): {limit:,} rows from {offset:,} on are more than can be counted")
    if method not in _METHODS:
        raise SchemaError(
            f"top_k ({where}): rows are numbered by {', '.join(_METHODS)}; not by {method!r:.50}"
        )
    if rank is None and method != "row_number":
        raise SchemaError(
            f"top_k ({where}): method={method!r} says how the places are counted that rank='place' names, "
            "and there is no rank=.\n  top_k takes exactly that many rows, whichever are equal in the "
            "order. To keep all that share a place with the last one, write ties=True"
        )
    if rank is not None and rank in of.schema:
        raise SchemaError(f"top_k ({where}): there is a column {rank!r} already; choose another for the rank")
