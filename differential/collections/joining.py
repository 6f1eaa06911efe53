"""Every kind of join in terms of inner joins, sums and sets.

    inner    pairs: rows with equal keys for which `where`, if there is one, is true
    semi     rows of the left that are in a pair, as often as they are there; anti: the others
    left     pairs, and the anti join with nulls for the columns of the right; right and outer alike

Without a condition over both sides, the rows of the left that are in a pair are those whose key the right
has: the left, joined with the keys of the right. So both sides are stored once, by key, for the pairs and for
the rows without one, and beside them the different keys only. With such a condition the pairs decide: they
are reduced to the rows of the left, each once, and the left is joined with these by all its columns; that
stores the left twice, and the rows of pairs.

As in differential dataflow everywhere, "is there" means a positive multiplicity: of all rows of a key
together, or of all pairs of a row together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from timely.user_code.call_site import call_site

from ..columns.nested.values import some_value
from ..columns.schema import Column, Schema
from ..errors import SchemaError
from ..expressions.expression import Expr, col, lit
from ..linear.failures.raising import can_raise
from ..plan.nodes import Join, Keys
from ..plan.rules.filters import conjuncts
from .balanced.balancing import AnyBalance, balanced_pairs
from .sets import SetOperators

__all__ = ["How", "Joining", "Pairs", "how_of"]

C = TypeVar("C", bound=SetOperators)

How = Literal["inner", "left", "right", "outer", "semi", "anti", "cross"]
Pairs = tuple[tuple[str, str], ...]

_HOW: Final[dict[str, How]] = {
    "inner": "inner", "cross": "cross",
    "left": "left", "leftouter": "left",
    "right": "right", "rightouter": "right",
    "outer": "outer", "full": "outer", "fullouter": "outer",
    "semi": "semi", "leftsemi": "semi",
    "anti": "anti", "leftanti": "anti",
}  # fmt: skip


def how_of(how: str) -> How:
    """Return the kind of join that PySpark, Polars or pandas call `how`; raise SchemaError for others."""
    kind = _HOW.get(str(how).lower().replace("_", "").replace(" ", ""))
    if kind is None:
        raise SchemaError(
            f"join: there is no how={how!r} ({call_site()}). Write one of inner, left, right, outer, semi, "
            "anti, cross"
        )
    return kind


@dataclass(frozen=True)
class Joining(Generic[C]):
    """Two collections, in the same loops, to be joined on pairs of columns, and where a condition is true.

    The columns of `right` beside its keys have other names than those of `left`.
    """

    left: C
    right: C
    on: Pairs
    where: Expr | None
    null_safe: bool
    balance: AnyBalance[C] | None = None

    def joined(self, how: How) -> C:
        """Return the join of this kind."""
        if how in ("inner", "cross"):
            return self._all_pairs() if self.where is None else self._all_pairs().filter(self.where)
        if how == "semi":
            return self._semi(0)
        if how == "anti":
            return self._alone(0)
        columns = self._columns(how)
        parts = [self._pairs().fitted(columns)]
        if how in ("left", "outer"):
            parts.append(self._alone(0).fitted(columns))
        if how in ("right", "outer"):
            by_left_name = {left: col(right) for left, right in self.on}
            by_left_name |= {name: col(name) for name in self._others(1)}
            parts.append(self._alone(1).select(**by_left_name).fitted(columns))
        return parts[0].concat(*parts[1:])

    def _others(self, side: int) -> list[str]:
        """Return the columns of a side beside its keys."""
        keys = {pair[side] for pair in self.on}
        return [name for name in (self.left, self.right)[side].schema.names if name not in keys]

    def _columns(self, how: How) -> Schema:
        """Return the columns of the result: nullable where a side may have no row."""
        columns: list[Column] = []
        for left, right in self.on:
            of_left, of_right = self.left.schema[left].type, self.right.schema[right].type
            sides = {"left": of_left, "right": of_right}
            columns.append(Column(left, sides.get(how, of_left.or_null(of_right.nullable))))
        for side, alone in ((0, "right"), (1, "left")):
            schema = (self.left, self.right)[side].schema
            for name in self._others(side):
                columns.append(Column(name, schema[name].type.or_null(how in (alone, "outer"))))
        return Schema(tuple(columns))

    def _parts(self) -> tuple[list[Expr], list[Expr], list[Expr]]:
        """Split `where` into conditions on rows of the left, on rows of the right, and on pairs.

        A condition that can raise is one on pairs: it must not see rows that have no partner.
        """
        of_left: list[Expr] = []
        of_right: list[Expr] = []
        of_pairs: list[Expr] = []
        for part in () if self.where is None else conjuncts(self.where):
            if can_raise(part):
                of_pairs.append(part)
            elif part.columns() <= set(self.left.schema.names):
                of_left.append(part)
            elif part.columns() <= set(self._others(1)):
                of_right.append(part)
            else:
                of_pairs.append(part)
        return of_left, of_right, of_pairs

    def _sides(self) -> tuple[C, C]:
        """Return the rows that may be in a pair, with keys of the same types."""
        of_left, of_right, _ = self._parts()
        left = self.left.filter(*of_left) if of_left else self.left
        right = self.right.filter(*of_right) if of_right else self.right
        return self._with_equal_types(left, 0), self._with_equal_types(right, 1)

    def _with_equal_types(self, whole: C, side: int) -> C:
        schema = whole.schema
        wider: dict[str, Expr] = {}
        for pair in self.on:
            left, right = self.left.schema[pair[0]].type, self.right.schema[pair[1]].type
            if (
                left.kind == right.kind
                and (left.nullable or right.nullable)
                and not schema[pair[side]].type.nullable
            ):
                wider[pair[side]] = col(pair[side]).cast(schema[pair[side]].type.or_null())
        return whole.with_columns(**wider) if wider else whole

    def _all_pairs(self) -> C:
        """Return all pairs with equal keys, whatever `where` says."""
        return self._paired(self._with_equal_types(self.left, 0), self._with_equal_types(self.right, 1))

    def _pairs(self) -> C:
        """Return the pairs for which `where` is true."""
        pairs = self._paired(*self._sides())
        for part in self._parts()[2]:
            pairs = pairs.filter(part)
        return pairs

    def _paired(self, left: C, right: C) -> C:
        """Return the pairs of two sides with keys of the same types."""
        if self.balance is None:
            return left.with_node(Join(left.node, right.node, self.on, self.null_safe))
        return balanced_pairs(left, right, self.on, self.balance, null_safe=self.null_safe)

    def _semi(self, side: int) -> C:
        """Return the rows of a side that are in a pair, as often as they are there."""
        whole = (self.left, self.right)[side]
        names = whole.schema.names
        if not self._parts()[2]:
            mine, others = self._sides()[side], self._sides()[1 - side]
            keys = Keys(others.node, tuple(pair[1 - side] for pair in self.on))
            on = tuple((pair[side], pair[1 - side]) for pair in self.on)
            rows = mine.with_node(Join(mine.node, mine.with_node(keys).node, on, self.null_safe))
            return _as_before(rows, whole.schema)
        as_in_pairs = {name: col(name) for name in names}
        if side == 1:
            as_in_pairs |= {right: col(left) for left, right in self.on}
        matched = self._pairs().select(**as_in_pairs)
        matched = _as_before(matched, whole.schema).distinct()
        on = tuple((name, name) for name in names)
        return whole.with_node(Join(whole.node, matched.node, on, null_safe=True))

    def _alone(self, side: int) -> C:
        """Return the rows of a side that are in no pair."""
        return (self.left, self.right)[side].concat(self._semi(side).negate())


_SOME: Final[dict[str, object]] = {"float": 0.0, "bool": False, "string": "", "bytes": b"", "any": []}


def _as_before(rows: C, schema: Schema) -> C:
    """Return rows of a side that are in pairs, with the columns and types of that side.

    If null equals null, a key of pairs may be null by its type, although no row of this side may have a null
    key.
    """
    never = {
        column.name: _not_null(column)
        for column in schema
        if rows.schema[column.name].type.nullable and not column.type.nullable
    }
    return (rows.with_columns(**never) if never else rows).fitted(schema)


def _not_null(column: Column) -> Expr:
    """Return a column that is never null as one that is so by its type."""
    kind = column.type.kind
    if column.type.is_nested:
        return col(column.name).fill_null(lit(some_value(column.type), column.type))
    other = lit(_SOME[kind], column.type) if kind in _SOME else lit(0).cast(column.type)
    return col(column.name).fill_null(other)
