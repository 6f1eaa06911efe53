"""Joins on a condition over the columns of both sides, as PySpark has them.

    orders.join(customers, (orders.customer == customers.id) & (orders.cents > customers.limit), "left")

Equalities become keys, whatever they compare; the rest is a condition on pairs. The result has all columns of
both sides, also those that are equal: without a partner they are null. A column of the right with a name that
the left has, too, gets another one; `customers.name` is it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from timely.user_code.call_site import call_site

from ...columns.schema import Schema
from ...errors import ExpressionError
from ...expressions.expression import Expr, col
from ...expressions.pending import names_without_owner, over_rows
from ...plan.origins.aliases import with_sides
from ...plan.origins.origins import JoinSide, PairsOfSides
from ..balanced.balancing import AnyBalance
from ..handle import in_innermost_loop
from ..joining import How
from ..joins import JoinOperators, check_balance
from .equalities import Equality, all_of_them, conjuncts, equality_between
from .keys import JoinKeys

__all__ = ["ConditionJoins"]

C = TypeVar("C", bound=JoinOperators)

_SUFFIX: Final = "_right"


class ConditionJoins(JoinOperators):
    """Joins on conditions."""

    def _joined_on(
        self,
        other: Self,
        conditions: Sequence[Expr],
        how: How,
        suffix: str | None,
        balance: AnyBalance[Self] | None,
    ) -> Self:
        """As `JoinOperators._joined_on`."""
        left, right = in_innermost_loop((self, other))
        check_balance(left, right, how, balance)
        names = _names(left.schema, right.schema, _SUFFIX if suffix is None else suffix)
        sides = _sides(left, other, names)
        if any(old != new for old, new in names.items()):
            right = right.select(**{new: col(name) for name, new in names.items()})
        over = PairsOfSides(Schema((*left.schema, *right.schema)), sides)
        whole = with_sides(all_of_them(conditions), over, self.plan.origins, None)
        unowned = names_without_owner(whole, over)
        for name in sorted(unowned & set(left.schema.names) & set(other.schema.names)):
            raise ExpressionError(
                f"join: on={whole!r} ({call_site()}): both sides have a column {name!r}, which may be either "
                f"here. Write on={name!r} if both shall be equal; otherwise name the sides, as in "
                f"left.{name} == right.{name}"
            )
        condition = over_rows(whole, over)
        type_ = condition.type_in(over.schema)
        if type_.kind != "bool":
            raise ExpressionError(
                f"join: on={condition!r} ({call_site()}) is {type_}, and no condition; columns that both "
                "sides have are on=['a', 'b']"
            )
        if how == "right":
            rows = _joined(right, left, condition, "left", None)
        else:
            rows = _joined(left, right, condition, how, balance)
        if how in ("semi", "anti"):
            self.plan.origins.joined(rows.node, sides[:1])
            return rows
        rows = rows.select(*left.schema.names, *right.schema.names)
        self.plan.origins.joined(rows.node, sides)
        return rows


def _names(left: Schema, right: Schema, suffix: str) -> dict[str, str]:
    """Return what the columns of the right are called in the result."""
    names: dict[str, str] = {}
    taken = {*left.names, *right.names}
    for name in right.names:
        new = name
        if name in left:
            new = f"{name}{suffix}"
            number = 2
            while new in taken:
                new, number = f"{name}{suffix}{number}", number + 1
            taken.add(new)
        names[name] = new
    return names


def _sides(left: JoinOperators, right: JoinOperators, names: dict[str, str]) -> tuple[JoinSide, JoinSide]:
    mine = {name: name for name in left.schema.names}
    return JoinSide(left.node, left.called, mine), JoinSide(right.node, right.called, names)


def _joined(left: C, right: C, condition: Expr, how: How, balance: AnyBalance[C] | None) -> C:
    """Return the rows of a join; of all but semi and anti joins with all columns of both sides."""
    keys, rest = JoinKeys(left, right), []
    names, others = frozenset(left.schema.names), frozenset(right.schema.names)
    for part in conjuncts(condition):
        equality = equality_between(part, names, others)
        mixes = equality is not None and how not in ("inner", "cross") and _mixes(keys, equality)
        if equality is None or mixes or not keys.take(equality):
            rest.append(part)
    if how in ("inner", "cross"):
        rows = keys.inner(balance)
        return rows.filter(*rest) if rest else rows
    if how in ("semi", "anti"):
        return keys.left_only(how, rest)
    return keys.outer(how, rest, _fresh_in({*names, *others}))


def _mixes(keys: JoinKeys[C], equality: Equality) -> bool:
    """Return True if null equals null in this equality and not in the keys so far, or the reverse."""
    return bool(keys.pairs) and equality.is_null_safe not in keys.null_safe


def _fresh_in(taken: set[str]) -> Callable[[str], str]:
    def fresh(name: str) -> str:
        number = len(taken)
        while f"({name} {number})" in taken:
            number += 1
        taken.add(f"({name} {number})")
        return f"({name} {number})"

    return fresh
