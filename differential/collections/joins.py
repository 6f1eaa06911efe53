"""Joins: pairs of rows of two collections, and groups of rows of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.spellings import called_as

from ..columns.column_types import ColumnType, integer
from ..columns.schema import Column, Schema, SchemaSpec
from ..errors import SchemaError
from ..expressions.expression import ColumnRef, Expr, ExprLike, as_condition, col, lit
from ..expressions.pending import OwnedColumn, SqlExpr, over_rows
from ..linear.placing import UNIT
from ..other_spellings import written_as
from ..plan.nodes import ReduceFunction
from ..plan.origins.aliases import with_sides
from ..plan.origins.origins import JoinSide, PairsOfSides
from ..skew.balance import Balance
from .balanced.balancing import AnyBalance, Routed
from .balanced.theta import Condition, Predicate, binned, parts_of
from .handle import Row, in_innermost_loop, name_of
from .joining import How, Joining, Pairs, how_of
from .sets import SetOperators

__all__ = ["CogroupFunction", "JoinOperators", "On", "check_balance"]

C = TypeVar("C", bound=SetOperators)

_Group = list[tuple[Row, int]]

CogroupFunction = Callable[..., Iterable[object]]  # type: ignore[explicit-any]  # as many groups as collections

_Name = str | Expr
On = _Name | Sequence[_Name | tuple[_Name, _Name]] | Mapping[str, str]
"""Keys of a join: a column, several, pairs (of the left, of the right), or a mapping from left to right. Or a
condition over columns of both, or several.
"""

_SUFFIX = "_right"
"""Suffix of columns of the right that only a condition sees."""


class JoinOperators(SetOperators):
    """Operators that make pairs of rows."""

    @written_as("join(other, on='key', how='left', suffix='_right', where=col.x < col.y)")
    def join(  # noqa: PLR0913  # each is a part of what a join is
        self,
        other: Self,
        on: On | None = None,
        how: str = "inner",
        *,
        where: ExprLike | None = None,
        suffix: str | None = None,
        null_safe: bool = False,
        left_on: _Name | Sequence[_Name] | None = None,
        right_on: _Name | Sequence[_Name] | None = None,
        balance: AnyBalance[Self] | None = None,
    ) -> Self:
        """Rows of this collection and of `other` with equal keys; multiplicities are multiplied.

        on         columns that both have ("src", ["a", "b"]), or pairs of one here and one there
                   ({"src": "node"}, [("src", "node")]). [] joins everything with everything. Or a condition,
                   as in PySpark: (a.src == b.node) & (a.at < b.at), or a list of such
        how        inner: pairs only · left, right, outer: and rows of the left, right, either side that are
                   in no pair, with nulls · semi, anti: rows of the left that are in a pair, in none · cross:
                   all pairs, without `on`
        where      a condition over the columns of pairs beside the keys, also as SQL in a text; if it is
                   false or null, the two rows are no pair
        suffix     put behind the names of columns of the right that the left has, too; without it they are
                   refused; where `on` is a condition it is "_right" then
        null_safe  null equals null; otherwise, as in SQL, a key that is null equals nothing
        left_on    and `right_on`: keys here and there, as Polars writes them, in place of `on`
        balance    how pairs are spread over units, `dd.Balance("matrix", units=64)`, so that one hot key is
                   not the work of one worker; the result is the same. For inner joins and all pairs only.
                   "auto": begins as an ordinary join, and divides hot keys once that pays

        Columns: the keys under the names they have here, the other columns of this, the other columns of
        `other`; where `on` is a condition, all columns of both; of semi and anti: those of this collection.
        Behind the join `a.x` and `b.x` are the columns of the sides. Spelled as in PySpark and Polars as well
        ("left_semi", "fullouter", "full"). Rust: `join`, `semijoin`, `antijoin`. LINQ: `Join`, `GroupJoin`.

        Law, at every time: inner = {(l, r)} with |l|·|r|; semi(l) = |l| if there is a row of its key in
        `other` (all rows of the key together are there a positive number of times; with a condition over
        both sides: its pairs together), else 0; anti = left - semi; left = inner + anti, padded.

        Cost: a change costs its pairs. inner stores both sides by key; outer joins store beside that the
        different keys of a side that decides; semi and anti store the left, and of the right the keys. With a
        condition over both sides, all but inner joins store the left once more, and the rows that are in
        pairs. What several operators store alike is stored once.
        """
        kind = how_of(how)
        if left_on is not None or right_on is not None:
            on = _paired(on, left_on, right_on)
        if (conditions := _conditions(on)) is not None:
            if where is not None or null_safe:
                raise SchemaError(
                    f"join ({call_site()}): on= is a condition already: write where= as a part of it, by &, "
                    "and null_safe=True as a.x.eq_null_safe(b.x)"
                )
            return self._joined_on(other, conditions, kind, suffix, balance)
        left, right = in_innermost_loop((self, other))
        pairs = _checked_pairs(on, kind, (left, right))
        _check_kinds(left, right, pairs)
        check_balance(left, right, kind, balance)
        whole = right
        right = _renamed(left, right, pairs, _SUFFIX if suffix is None and kind in _LEFT_ONLY else suffix)
        sides = _sides_of(left, whole, right, pairs, kind)
        over = PairsOfSides(Schema((*left.schema, *_beside(right, pairs))), sides)
        condition = None if where is None else self._condition_over(where, over)
        rows = Joining(left, right, pairs, condition, null_safe, balance).joined(kind)
        self.plan.origins.joined(rows.node, sides[:1] if kind in _LEFT_ONLY else sides)
        return replace(rows, called=None)

    def _condition_over(self, where: ExprLike, pairs: PairsOfSides) -> Expr:
        """Return `where` of a join as a condition over the columns of pairs."""
        if isinstance(where, str):
            where = SqlExpr(f"join(where={where!r:.80})", where, "spark", "where={}")
        condition = as_condition("join(where=…)", where)
        return over_rows(with_sides(condition, pairs, self.plan.origins, None), pairs)

    def _joined_on(
        self,
        other: Self,
        conditions: Sequence[Expr],
        how: How,
        suffix: str | None,
        balance: AnyBalance[Self] | None,
    ) -> Self:
        """Return the join on conditions over the columns of both sides: `ConditionJoins`."""
        raise NotImplementedError

    def theta_join(
        self,
        other: Self,
        condition: Condition | Sequence[Condition],
        *,
        suffix: str | None = None,
        balance: AnyBalance[Self] | None = None,
    ) -> Self:
        """Pairs of rows of this collection and of `other` for which `condition` is true.

        condition   an expression over the columns of both; `dd.band("a", "b", 5)`, that is |a - b| ≤ 5; a
                    Python function of two records; or several of these, all of which are to be true
        suffix      put behind the names of columns of the right that the left has, too; without it they are
                    refused. Expressions and bands use the new names; functions get records with the old ones
        balance     as in `join`

        Columns: those of this, then those of `other`. Law, at every time: all pairs, and of these the ones
        for which the condition is true. The join stores all rows of its inputs; for windows let rows leave
        before, with `last` or `during`.

        Cost: equal columns are keys, as in `join`, and cost their pairs. A band costs the pairs of rows in
        the same or neighbouring bins of its width, and stores the right three times. Other conditions cost
        all pairs of these; without equality and band all pairs there are, about 1 µs each for a Python
        function: `balance=dd.Balance("matrix", …)` spreads them.
        """
        conditions: Sequence[Condition] = condition if isinstance(condition, Sequence) else [condition]
        left, right = in_innermost_loop((self, other))
        records = (left.schema.names, right.schema.names)
        whole = right
        right = _renamed(left, right, (), suffix)
        sides = _sides_of(left, whole, right, (), "inner")
        over = PairsOfSides(Schema((*left.schema, *right.schema)), sides)
        read = [
            over_rows(with_sides(each, over, self.plan.origins, None), over)
            if isinstance(each, Expr)
            else each
            for each in conditions
        ]
        parts = parts_of(left, right, read)
        names = (*left.schema.names, *right.schema.names)
        on, named = parts.on, dict(parts.on)
        if parts.band is not None:
            left, right, bins = binned(left, right, parts.band)
            on = (*on, (bins, bins))
        check_balance(left, right, "inner", balance)
        pairs = Joining(left, right, on, None, False, balance).joined("inner")
        pairs = pairs.with_columns(**{name: col(key) for key, name in named.items()})
        for each in parts.filters:
            pairs = pairs.filter(each)
        pairs = pairs.select(*names)
        for predicate in parts.predicates:
            pairs = pairs.filter(_of_two(predicate, len(records[0])))
        self.plan.origins.joined(pairs.node, sides)
        return replace(pairs, called=None)

    def cogroup(
        self, others: Self | Sequence[Self], on: On, function: CogroupFunction, schema: SchemaSpec
    ) -> Self:
        """The rows that `function(key, rows, other_rows, …)` returns for each key of any of the collections.

        The groups are lists of (row without the keys, multiplicity), as in `reduce`, one for each collection,
        empty if that has no such key; null is a key like others. The result has the keys, under the names
        they have here, and the columns of `schema`. `on` as in `join`; with several others, the same names
        everywhere.

        PySpark: `cogroup`. LINQ: `CoGroupBy`. Law: at every time the function's rows for the groups at that
        time. Stores all rows once, by key; a change costs its whole group, about 2 µs a row.
        """
        rest = [others] if isinstance(others, JoinOperators) else list(others)
        parts = in_innermost_loop((self, *rest))
        pairs = _pairs_of(on, (parts[0], parts[1])) if rest else ()
        keys = tuple(left for left, _ in pairs)
        if any(left != right for left, right in pairs) and len(parts) > 2:
            raise SchemaError("cogroup: of several others, the keys have the same names everywhere")
        answer_columns = Schema.of(schema)
        columns = [Column(key, _common(parts, pair)) for key, pair in zip(keys, pairs, strict=True)]
        columns.append(Column(_TAG, integer))
        spans: list[tuple[int, int]] = []
        tagged: list[Self] = []
        for number, part in enumerate(parts):
            named: dict[str, Expr] = {pair[0]: col(pair[number > 0]) for pair in pairs}
            start = len(columns) - len(keys)
            for column in part.schema:
                if column.name not in {pair[number > 0] for pair in pairs}:
                    named[f"{number}: {column.name}"] = col(column.name)
                    columns.append(Column(f"{number}: {column.name}", column.type.or_null()))
            spans.append((start, len(columns) - len(keys)))
            tagged.append(part.select(**{_TAG: lit(number)}, **named))
        first, *more = (part.fitted(Schema(tuple(columns))) for part in tagged)
        whole = first.concat(*more)
        user_function = self.plan.function(_cogrouping(function, tuple(spans)))
        return whole.with_node(ReduceFunction(whole.node, keys, user_function, answer_columns))

    def cross_join(self, other: Self, suffix: str | None = None) -> Self:
        """All pairs of rows; the same as `join(other, how="cross")`. All of it is on one worker."""
        return self.join(other, how="cross", suffix=suffix)

    @called_as("join_where")
    def _join_where(self, other: Self, *predicates: ExprLike, suffix: str | None = "_right") -> Self:
        """The same as `theta_join(other, predicates)`, in Polars' form."""
        if not predicates:
            raise SchemaError(f"join_where ({call_site()}) needs a condition, as in col.x < col.y")
        conditions = [as_condition("join_where", predicate) for predicate in predicates]
        return self.theta_join(other, conditions, suffix=suffix)


_Sides = tuple[SetOperators, SetOperators]


def _checked_pairs(on: On | None, kind: How, sides: _Sides) -> Pairs:
    """Return the keys of a join of this kind; raise SchemaError if it needs some, or cannot have any."""
    if on is None and kind != "cross":
        raise SchemaError(
            f"join ({call_site()}) needs on=: columns that both sides have, or pairs of them; for all "
            "pairs write how='cross'"
        )
    pairs = () if on is None else _pairs_of(on, sides)
    if pairs and kind == "cross":
        raise SchemaError("join: how='cross' has no keys; write how='inner', or leave on= out")
    for keys in zip(*pairs, strict=True):
        if len(set(keys)) != len(keys):
            raise SchemaError(f"join: a key is named twice in {', '.join(keys)}")
    return pairs


def _conditions(on: object) -> list[Expr] | None:
    """Return the conditions that `on` is, if it is no column or list of columns."""
    listed = on if isinstance(on, list | tuple) else [on]
    conditions = [each for each in listed if isinstance(each, Expr)]
    if not conditions or all(isinstance(each, ColumnRef | OwnedColumn) for each in conditions):
        return None
    if len(conditions) < len(listed):
        raise SchemaError(
            f"join ({call_site()}): on= takes names of columns, or conditions; not both: write a.x == b.x "
            "for the names"
        )
    return conditions


def _sides_of(
    left: SetOperators, whole: SetOperators, right: SetOperators, pairs: Pairs, how: How
) -> tuple[JoinSide, JoinSide]:
    """Return the sides of a join by keys; `right` is `whole` with other names.

    A key has one column in the result. It is the column of a side that has a row in each pair.
    """
    keys = {other: one for one, other in pairs}
    mine = {
        name: name for name in left.schema.names if name not in keys.values() or how not in ("right", "outer")
    }
    renamed = dict(zip(whole.schema.names, right.schema.names, strict=True))
    theirs = {old: new for old, new in renamed.items() if new not in keys}
    if how in ("inner", "right"):
        theirs |= {old: keys[new] for old, new in renamed.items() if new in keys}
    return JoinSide(left.node, left.called, mine), JoinSide(whole.node, whole.called, theirs)


def _beside(right: SetOperators, pairs: Pairs) -> list[Column]:
    """Return the columns of the right beside its keys."""
    keys = {key for _, key in pairs}
    return [column for column in right.schema if column.name not in keys]


_LEFT_ONLY: tuple[How, ...] = ("semi", "anti")


def _paired(on: On | None, left: object, right: object) -> On:
    """Return `left_on` and `right_on` as `on`."""
    keys = [list(side) if isinstance(side, list | tuple) else [side] for side in (left, right)]
    if on is not None or left is None or right is None or len(keys[0]) != len(keys[1]):
        raise SchemaError(
            f"join ({call_site()}): left_on and right_on take as many columns each, and no on= beside them; "
            "or write on={'left_column': 'right_column'}"
        )
    return list(zip(*keys, strict=True))


def _pairs_of(on: On, sides: _Sides) -> Pairs:
    """Return keys as pairs of a column of the left and one of the right."""
    if isinstance(on, str | Expr):
        return (_name_in_both(on, sides),)
    if not isinstance(on, Iterable):
        raise SchemaError(
            f"join ({call_site()}): on={on!r:.60} is neither columns nor a condition: write on='x', "
            "on=['x', 'y'], or a condition as in on=a.x == b.x"
        )
    listed = [*on.items()] if isinstance(on, Mapping) else on
    pairs: list[tuple[str, str]] = []
    for key in listed:
        if isinstance(key, tuple):
            if len(key) != 2:
                raise SchemaError(f"join: {key!r} is no pair of a column of the left and one of the right")
            pairs.append((_name(key[0], sides[0]), _name(key[1], sides[1])))
        else:
            pairs.append(_name_in_both(key, sides))
    return tuple(pairs)


def _name_in_both(key: object, sides: _Sides) -> tuple[str, str]:
    """Return what a key is called in both sides. A column of one side has a partner of its name in the
    other.
    """
    if not isinstance(key, OwnedColumn):
        name = _name(key, sides[0])
        return name, name
    is_in = [key.owner.has_column_in(key, side.node, side.called) for side in sides]
    if not any(is_in):
        _name(key, sides[0])  # raises
    left, right = (_name(key, side) if there else key.name for side, there in zip(sides, is_in, strict=True))
    return left, right


def _name(key: object, rows: SetOperators) -> str:
    """Return what a key is called in a side."""
    if isinstance(key, ColumnRef | OwnedColumn):
        return name_of(key, "join", rows)
    if isinstance(key, Expr):
        raise SchemaError(
            f"join: {key!r} ({call_site()}) is computed: write a.x == b.y as a condition, on=a.x == b.y"
        )
    if not isinstance(key, str):
        raise SchemaError(f"join: on takes names of columns, not {key!r} ({call_site()})")
    return key


def _check_kinds(left: SetOperators, right: SetOperators, pairs: Pairs) -> None:
    for one, other in pairs:
        types = left.schema[one].type, right.schema[other].type
        if types[0].not_null() != types[1].not_null():
            raise SchemaError(
                f"join: key {one!r} is {types[0]}, key {other!r} is {types[1]}; cast one of them"
            )


def _of_two(predicate: Predicate, width: int) -> Callable[[Row], object]:
    """Return a function of a pair; the first `width` columns of pairs are those of the left."""

    def holds(row: Row) -> object:
        return predicate(row[:width], row[width:])

    return holds


def check_balance(left: SetOperators, right: SetOperators, kind: How, balance: object) -> None:
    """Raise SchemaError if a join of this kind cannot have `balance`."""
    if balance is None:
        return
    if balance != "auto" and not isinstance(balance, Balance | Routed):
        raise SchemaError(
            f"join ({call_site()}): balance={balance!r:.80} is no balance: it may be 'auto', or write "
            "dd.Balance('hash', units=16)"
        )
    if kind not in ("inner", "cross"):
        raise SchemaError(f"join ({call_site()}): balance= is for how='inner' and 'cross', not {kind!r}")
    if any(UNIT in side.schema for side in (left, right)):
        raise SchemaError(f"join ({call_site()}): balance= needs the name {UNIT!r}; rename that column")


def _renamed(left: SetOperators, right: C, pairs: Pairs, suffix: str | None) -> C:
    """Return the right with `suffix` behind the names that the left has, too."""
    keys = {other for _, other in pairs}
    clashing = [name for name in right.schema.names if name not in keys and name in left.schema]
    if not clashing:
        return right
    if suffix is None:
        (name, *_) = clashing
        raise SchemaError(
            f"join: both sides have a column {name!r} besides the keys. Write join(…, suffix='_right'), or "
            f"rename one before: select(…, right_{name}=col.{name})"
        )
    names = {name: f"{name}{suffix}" if name in clashing else name for name in right.schema.names}
    taken = [
        new for name, new in names.items() if name in clashing and (new in left.schema or new in right.schema)
    ]
    if taken:
        raise SchemaError(f"join: with suffix={suffix!r} there would be two columns {taken[0]!r}")
    return right.select(**{new: col(name) for name, new in names.items()})


_TAG = "group of"


def _common(parts: Sequence[JoinOperators], pair: tuple[str, str]) -> ColumnType:
    """Return the type of a key; it may be null if it may be so in one of the collections."""
    types = [part.schema[pair[number > 0]].type for number, part in enumerate(parts)]
    if len({type_.not_null() for type_ in types}) > 1:
        raise SchemaError(
            f"cogroup: key {pair[0]!r} is {', '.join(map(str, types))}; cast it to one type everywhere"
        )
    return types[0].or_null(any(type_.nullable for type_ in types))


def _cogrouping(
    function: CogroupFunction, spans: tuple[tuple[int, int], ...]
) -> Callable[[Row, _Group], Iterable[object]]:
    """Return `function` for rows that begin with their collection's number, and have columns for each."""

    def cogrouped(key: Row, group: _Group) -> Iterable[object]:
        groups: list[_Group] = [[] for _ in spans]
        for row, multiplicity in group:
            number = int(str(row[0]))
            start, stop = spans[number]
            groups[number].append((row[start:stop], multiplicity))
        return function(key, *groups)

    return cogrouped
