"""Subqueries joined back to the rows that they are about.

EXISTS, IN          a semi join by the outer columns and the members
NOT EXISTS          an anti join
NOT IN              an anti join, too, if nothing can be null; otherwise rows go as well if the set has a
                    null, or if the member is null and the set has rows
as a value          a left join with the different rows of the subquery: whether there was one
scalars, LATERAL    a join by the outer columns
"""

from __future__ import annotations

import differential.aggregates as dd

from ...collections.collection import Collection
from ...collections.conditions.equalities import all_of_them, is_null_with
from ...expressions.expression import ColumnRef, Expr, col, lit, when
from ...plan.nodes.guarded import Provided
from ..algebra.relations import (
    Aggregation,
    ApplyOf,
    FirstRowsOf,
    ProjectionOf,
    Relation,
    Selection,
    SingleRow,
    ValueRows,
)
from .domains import Lowers, Subquery, renamed, subquery_of

__all__ = ["applied", "filtered_by", "part_of"]


def filtered_by(lower: Lowers, left: Collection, apply: ApplyOf) -> Collection:
    """Return the rows of `left` for which a membership holds, or does not hold."""
    names = left.schema.names
    subquery = subquery_of(lower, left, apply.right)
    left, members = _with_members(lower, left, apply.members, subquery.outer)
    values = apply.right.names[: len(members)]
    pairs = [*subquery.pairs, *zip(members, values, strict=True)]
    rows = subquery.rows.select(*subquery.outer, *values) if pairs else subquery.rows
    if apply.kind == "semi":
        outcome = left.join(
            _without_nulls(rows, values), on=pairs, how="semi", null_safe=bool(subquery.outer)
        )
    elif not any(_may_be_null(left, rows, pair) for pair in zip(members, values, strict=True)):
        outcome = left.join(rows, on=pairs, how="anti", null_safe=bool(subquery.outer))
    elif len(members) == 1:
        outcome = _not_in(left, Subquery(rows, subquery.outer), members[0], values[0])
    else:
        unknown = [(col[x] == col[v]).fill_null(True) for x, v in zip(members, values, strict=True)]
        outcome = left.join(
            rows, on=subquery.pairs, how="anti", where=all_of_them(unknown), null_safe=bool(subquery.outer)
        )
    return outcome.select(*names)


def _with_members(
    lower: Lowers, left: Collection, members: tuple[Expr, ...], outer: tuple[str, ...]
) -> tuple[Collection, list[str]]:
    """Return the rows with a column for each member, other than the outer columns, and their names."""
    names: list[str] = []
    for member in members:
        if isinstance(member, ColumnRef) and member.name not in (*names, *outer):
            names.append(member.name)
        else:
            names.append(lower.fresh("member"))
            left = left.with_columns(**{names[-1]: member})
    return left, names


def _without_nulls(rows: Collection, names: tuple[str, ...]) -> Collection:
    nullable = [name for name in names if rows.schema[name].type.nullable]
    return rows.drop_nulls(*nullable) if nullable else rows


def _may_be_null(left: Collection, rows: Collection, pair: tuple[str, str]) -> bool:
    return left.schema[pair[0]].type.nullable or rows.schema[pair[1]].type.nullable


def _not_in(left: Collection, subquery: Subquery, member: str, value: str) -> Collection:
    """Return the rows of `left` whose member is surely not in the set."""
    rows, outer = subquery.rows, subquery.outer
    by = [*subquery.pairs, (member, value)]
    sure = left.drop_nulls(member) if left.schema[member].type.nullable else left
    outcome = sure.join(_without_nulls(rows, (value,)), on=by, how="anti", null_safe=bool(outer))
    if rows.schema[value].type.nullable:
        nulls = rows.filter(col[value].is_null())
        outcome = outcome.join(nulls, on=subquery.pairs, how="anti", null_safe=bool(outer))
    if left.schema[member].type.nullable:
        unsure = left.filter(col[member].is_null())
        empty = unsure.join(rows, on=subquery.pairs, how="anti", null_safe=bool(outer))
        outcome = outcome.fitted(left.schema).concat(empty)
    return outcome


def applied(lower: Lowers, left: Collection, apply: ApplyOf) -> Collection:
    """Return the rows of `left` with what a subquery adds to them."""
    if apply.kind == "mark":
        return _marked(lower, left, apply)
    if apply.kind == "scalar":
        return _with_scalar(lower, left, apply)
    subquery = part_of(lower, left, apply)
    condition = all_of_them(apply.conditions) if apply.conditions else None
    return left.join(subquery.rows, on=subquery.pairs, how="left", where=condition, null_safe=True)


def _marked(lower: Lowers, left: Collection, apply: ApplyOf) -> Collection:
    """Return all rows with the truth of a membership: true, false, or null if nobody knows."""
    assert apply.mark is not None
    names, mark = left.schema.names, apply.mark.name
    subquery = subquery_of(lower, left, apply.right)
    left, members = _with_members(lower, left, apply.members, subquery.outer)
    values = apply.right.names[: len(members)]
    rows = subquery.rows.select(*subquery.outer, *values) if members or subquery.outer else subquery.rows
    by = [*subquery.pairs, *zip(members, values, strict=True)]
    outcome = lower.fresh("found")
    if not by:
        there = rows.agg(**{outcome: dd.count()})
        return left.cross_join(there).with_columns(**{mark: col[outcome] > 0}).drop(outcome)
    matches = _without_nulls(rows, values).distinct().with_columns(**{outcome: lit(True)})
    theirs = {name: lower.fresh(name) for name in matches.schema.names if name != outcome}
    matches = renamed(matches, theirs)
    on = [(name, theirs[other]) for name, other in by]
    marked = left.join(matches, on=on, how="left", null_safe=bool(subquery.outer))
    is_match = col[outcome].fill_null(False)
    if not any(_may_be_null(left, rows, pair) for pair in zip(members, values, strict=True)):
        return marked.with_columns(**{mark: is_match}).select(*names, mark)
    unknown = _unknown(lower, left, Subquery(rows, subquery.outer), list(zip(members, values, strict=True)))
    unsure = lower.fresh("unsure")
    keys = {name: lower.fresh(name) for name in unknown.schema.names}
    unknown = renamed(unknown, keys).with_columns(**{unsure: lit(True)})
    marked = marked.join(unknown, on=list(keys.items()), how="left", null_safe=True)
    truth = when(is_match).then(lit(True)).when(col[unsure].fill_null(False)).then(lit(None, "bool"))
    return marked.with_columns(**{mark: truth.otherwise(lit(False))}).select(*names, mark)


def _unknown(lower: Lowers, left: Collection, subquery: Subquery, pairs: list[tuple[str, str]]) -> Collection:
    """Return the outer columns and members for which a null leaves open whether they are in the set."""
    asked = left.select(*dict.fromkeys([*subquery.outer, *(x for x, _ in pairs)])).distinct()
    if len(pairs) > 1:
        may = all_of_them((col[x] == col[v]).fill_null(True) for x, v in pairs)
        return asked.join(subquery.rows, on=subquery.pairs, how="semi", where=may, null_safe=True)
    (member, value) = pairs[0]
    of_null = asked.filter(col[member].is_null()).join(
        subquery.rows, on=subquery.pairs, how="semi", null_safe=True
    )
    nulls = subquery.rows.filter(col[value].is_null())
    of_value = asked.filter(col[member].is_not_null()).join(
        nulls, on=subquery.pairs, how="semi", null_safe=True
    )
    return of_null.fitted(asked.schema).concat(of_value.fitted(asked.schema))


def part_of(lower: Lowers, left: Collection, apply: ApplyOf) -> Subquery:
    """Return the rows of a subquery that adds columns, to be joined with those of `left`."""
    right = apply.right
    is_scalar = apply.kind == "scalar"
    subquery = subquery_of(lower, left, right, fills=not (is_scalar and _is_null_of_nothing(right)))
    rows = subquery.rows.select(*subquery.outer, *right.names)
    if is_scalar and not _is_single(right):
        what = f"the subquery at {apply.site} has one row at most"
        if subquery.outer:
            count = lower.fresh("rows")
            more = rows.group_by(*subquery.outer).agg(**{count: dd.count()}).filter(col[count] > 1)
            rows = rows.with_node(Provided(rows.node, more.assert_empty(what).node))
        else:
            rows = rows.assert_single(what)
    return Subquery(rows, subquery.outer)


def _with_scalar(lower: Lowers, left: Collection, apply: ApplyOf) -> Collection:
    """Return all rows with the one row of a subquery, or nulls."""
    subquery = part_of(lower, left, apply)
    if not subquery.outer:
        alone = _has_a_row(apply.right)
        return left.cross_join(subquery.rows) if alone else left.join(subquery.rows, on=[], how="left")
    return left.join(subquery.rows, on=subquery.pairs, how="left", null_safe=True)


def _is_single(relation: Relation) -> bool:
    """Return True if a relation has one row at most, whatever the data are."""
    if isinstance(relation, Aggregation):
        return not relation.keys and relation.sets is None
    if isinstance(relation, FirstRowsOf):
        return (relation.limit == 1 and not relation.keys) or _is_single(relation.input)
    if isinstance(relation, ProjectionOf | Selection):
        return _is_single(relation.input)
    return isinstance(relation, SingleRow) or (isinstance(relation, ValueRows) and len(relation.rows) == 1)


def _has_a_row(relation: Relation) -> bool:
    """Return True if a relation surely has a row."""
    if isinstance(relation, ProjectionOf):
        return _has_a_row(relation.input)
    return _is_single(relation) and isinstance(relation, Aggregation | SingleRow | ValueRows)


def _is_null_of_nothing(relation: Relation) -> bool:
    """Return True if the columns of a relation over one group are null where the group has no rows: then the
    row may as well be missing.
    """
    if isinstance(relation, Aggregation):
        return all(
            call.kind not in ("count", "count_if", "count_distinct", "collect", "collect_set")
            for call in relation.calls
        )
    if isinstance(relation, ProjectionOf) and _is_single(relation) and _is_null_of_nothing(relation.input):
        names = frozenset(relation.input.names)
        return all(is_null_with(expr, names) for expr in relation.expressions)
    if isinstance(relation, Selection) and _is_single(relation) and _is_null_of_nothing(relation.input):
        return any(is_null_with(expr, frozenset(relation.input.names)) for expr in relation.conditions)
    return False
