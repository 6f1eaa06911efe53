"""The keys of a join of two collections: the equalities of a condition, also between computed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from ...columns.column_types import DECIMAL_DIGITS_MAX, ColumnType, decimal, floating
from ...columns.schema import Schema
from ...expressions.expression import ColumnRef, Expr, col
from ...expressions.pending import with_columns_of
from ..balanced.balancing import AnyBalance
from ..joins import JoinOperators
from .equalities import Equality, all_of_them, same_key_type

__all__ = ["JoinKeys"]

C = TypeVar("C", bound=JoinOperators)

_INT_DIGITS: Final = 20
"""Digits of an int as a decimal, as for operators of expressions."""


class JoinKeys(Generic[C]):
    """The keys of a join of two collections with different columns."""

    def __init__(self, left: C, right: C) -> None:
        self.sides = (left, right)
        self.pairs: list[tuple[str, str]] = []
        self.null_safe: list[bool] = []
        self._computed: tuple[dict[str, Expr], dict[str, Expr]] = ({}, {})

    def take(self, equality: Equality) -> bool:
        """Make keys of an equality; return False if the types do not allow it, or it says more than a key
        of the same columns.
        """
        left, right = self.sides
        equality = _of_one_type(equality, left.schema, right.schema)
        if not same_key_type(equality.left.type_in(left.schema), equality.right.type_in(right.schema)):
            return False
        pair = (self._name(0, equality.left), self._name(1, equality.right))
        for (name, other), is_null_safe in zip(self.pairs, self.null_safe, strict=True):
            if (name == pair[0]) != (other == pair[1]):
                return False
            if (name, other) == pair:  # a = b says more than a <=> b, and not the reverse
                return equality.is_null_safe or not is_null_safe
        self.pairs.append(pair)
        self.null_safe.append(equality.is_null_safe)
        return True

    def _name(self, side: int, expr: Expr) -> str:
        if isinstance(expr, ColumnRef):
            return expr.name
        name = f"({expr.describe()}) {side}"
        self._computed[side][name] = expr
        return name

    def side(self, number: int, *, without_nulls: bool = False) -> C:
        """Return a side with its computed keys; of mixed keys without the nulls that equal nothing."""
        rows = self.sides[number]
        if self._computed[number]:
            rows = rows.with_columns(**self._computed[number])
        if without_nulls and self.is_mixed:
            strict = [pair[number] for pair, safe in zip(self.pairs, self.null_safe, strict=True) if not safe]
            nullable = [name for name in strict if rows.schema[name].type.nullable]
            rows = rows.drop_nulls(*nullable) if nullable else rows
        return rows

    @property
    def is_mixed(self) -> bool:
        """Return True if null equals null in some keys, and not in others."""
        return len(set(self.null_safe)) == 2

    def computed(self, number: int) -> list[str]:
        """Return the names of computed keys."""
        return [*self._computed[number]]

    def inner(self, balance: AnyBalance[C] | None = None) -> C:
        """Return the pairs, with all columns of both."""
        left, right = self.side(0), self.side(1, without_nulls=True)
        if not self.pairs:
            return left.join(right, how="cross", balance=balance)
        rows = left.join(right, on=self.pairs, null_safe=any(self.null_safe), balance=balance)
        again = {other: col[name] for name, other in self.pairs if other not in self._computed[1]}
        rows = rows.with_columns(**again) if again else rows
        return rows.drop(*self.computed(0)) if self.computed(0) else rows

    def left_only(self, how: str, conditions: Sequence[Expr]) -> C:
        """Return a semi or anti join by these keys, where `conditions` are true."""
        equal = {other: col(name) for name, other in self.pairs}
        where = with_columns_of(all_of_them(conditions), equal) if conditions else None
        rows = self.side(0).join(
            self.side(1), on=self.pairs, how=how, where=where, null_safe=any(self.null_safe)
        )
        return rows.drop(*self.computed(0)) if self.computed(0) else rows

    def outer(
        self,
        how: str,
        conditions: Sequence[Expr],
        fresh: Callable[[str], str],
        theirs: Mapping[str, str] | None = None,
    ) -> C:
        """Return a left or outer join by these keys, where `conditions` are true, with all columns of both.

        Keys of a side are null in rows without one: the join itself has copies of them. `fresh` returns a
        name that no column has; `theirs` are keys by name that the left has under another name, and that
        the result does not have.
        """
        left, right = self.side(0), self.side(1, without_nulls=True)
        own = theirs or {}
        copies: list[dict[str, str]] = [{}, {}]
        if self.pairs:
            copies = [
                {name: fresh("key") for name in dict.fromkeys(each)} for each in zip(*self.pairs, strict=True)
            ]
        mine: dict[str, str] = {}
        if how == "outer":
            mine = {name: copy for name, copy in copies[0].items() if name not in own}
            left = left.with_columns(**{copy: col[name] for name, copy in mine.items()})
        right = right.with_columns(**{copy: col[name] for name, copy in copies[1].items()})
        pairs = [(mine.get(name, name), copies[1][other]) for name, other in self.pairs]
        condition = all_of_them(conditions) if conditions else None
        rows = left.join(right, on=pairs, how=how, where=condition, null_safe=any(self.null_safe))
        extra = [*self.computed(0), *self.computed(1), *mine.values(), *own.values()]
        return rows.drop(*extra) if extra else rows


def _of_one_type(equality: Equality, left: Schema, right: Schema) -> Equality:
    """Return an equality of numbers of two types as one of their common type, so that it can be a key."""
    one, other = equality.left.type_in(left), equality.right.type_in(right)
    common = _common(one, other)
    if common is None:
        return equality
    sides = [
        side if type_.not_null() == common else side.cast(common.or_null(type_.nullable))
        for side, type_ in ((equality.left, one), (equality.right, other))
    ]
    return Equality(sides[0], sides[1], equality.is_null_safe)


def _common(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """Return the type that holds the numbers of two different types; None if there is none."""
    if not (one.is_number and other.is_number) or one.not_null() == other.not_null():
        return None
    if "float" in (one.kind, other.kind):
        return floating
    scale = max(each.scale if each.kind == "decimal" else 0 for each in (one, other))
    whole = max(
        each.precision - each.scale if each.kind == "decimal" else _INT_DIGITS for each in (one, other)
    )
    return decimal(whole + scale, scale) if whole + scale <= DECIMAL_DIGITS_MAX else None
