"""WITH RECURSIVE, WITH MUTUALLY RECURSIVE: the fixed point of queries that read themselves, or one another.

SQL's standard computes a recursive query from the rows of the last step alone, and so forbids aggregates and
a second reference. Here the result is the fixed point: rows = first part UNION step(rows), whatever the step
does. Where a step only adds rows and UNION drops what is there twice, both say the same.

Queries that read one another are computed in their order, again and again: each reads what those before it
have in this iteration, and of itself and of those behind it what they had in the iteration before.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from ...errors import ExpressionError, SqlError
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import Bodies, Recursion, RecursionVariable, Relation
from .expressions.scopes import NameScope, value_of
from .expressions.types import column_type
from .expressions.values import common_type
from .mutual import MutualRecursion
from .sources import NamedRelation, NamedRelations, Queries
from .texts import SqlText, children_of

__all__ = ["RecursionReader"]

_ITERATIONS_MAX: Final = 10_000
"""A recursion that has not ended by then is an error; it would most likely never end."""

_NO_LIMIT: Final = MutualRecursion(None, None)

_ROUNDS_MAX: Final = 8
"""How often types of columns are widened before that is an error."""


class RecursionReader:
    """Reads the queries of WITH RECURSIVE."""

    def __init__(self, text: SqlText, names: AttributeNames, queries: Queries) -> None:
        self._text, self._names, self._queries = text, names, queries

    def named(
        self, ctes: list[exp.Expression], outer: NameScope | None, entry: dict[str, NamedRelation]
    ) -> NamedRelations:
        """Return the names that are known behind WITH RECURSIVE."""
        labels = {each.alias.lower(): each for each in ctes}
        reads = {label: _tables_in(each.this) & labels.keys() for label, each in labels.items()}
        done: set[str] = set()
        for label, cte in labels.items():
            if label in done:
                continue
            group = _circle(label, reads)
            later = set().union(*(reads[each] for each in group)) - group - done
            if later:
                raise self._text.error(cte, f"{label} reads {', '.join(sorted(later))}, which come later")
            if group == {label} and label not in reads[label]:
                relation = self._queries.query(cte.this, outer, entry)
                entry[label] = NamedRelation(self._relabelled(relation, cte))
            else:
                members = {each: labels[each] for each in labels if each in group}
                entry.update(self._recursive(members, outer, entry))
            done |= group
        return entry

    def mutual(  # what a WITH has
        self,
        ctes: list[exp.Expression],
        limit: MutualRecursion,
        outer: NameScope | None,
        entry: dict[str, NamedRelation],
    ) -> NamedRelations:
        """Return the names that are known behind WITH MUTUALLY RECURSIVE. All iterate together."""
        members = {each.alias.lower(): each for each in ctes}
        columns = {label: self._declared(cte) for label, cte in members.items()}
        return {**entry, **self._fixed_points(members, columns, limit, outer, entry, are_declared=True)}

    def _declared(self, cte: exp.Expression) -> tuple[Attribute, ...]:
        """Return the columns that a query of WITH MUTUALLY RECURSIVE declares; whether they may be null is
        seen when the query has been read.
        """
        declared = children_of(cte.args["alias"], "columns")
        if not declared:
            raise self._text.error(
                cte.args["alias"],
                f"{cte.alias} needs columns with types: {cte.alias} (column type, …) AS (…)",
            )
        columns = []
        for each in declared:
            if not isinstance(each, exp.ColumnDef) or not isinstance(each.args.get("kind"), exp.DataType):
                raise self._text.error(each, f"{self._text.written(each)} needs a type: {each.name} type")
            self._text.parts_of(each, "this", "kind")
            columns.append(self._names.attribute(each.name, column_type(self._text, each.args["kind"])))
        return tuple(columns)

    def _recursive(
        self, members: dict[str, exp.Expression], outer: NameScope | None, entry: dict[str, NamedRelation]
    ) -> dict[str, NamedRelation]:
        """Return the fixed points of queries that read one another."""
        columns = self._first_types(members, outer, entry)
        return self._fixed_points(members, columns, _NO_LIMIT, outer, entry, are_declared=False)

    def _fixed_points(  # what a WITH has
        self,
        members: dict[str, exp.Expression],
        columns: dict[str, tuple[Attribute, ...]],
        limit: MutualRecursion,
        outer: NameScope | None,
        entry: dict[str, NamedRelation],
        *,
        are_declared: bool,
    ) -> dict[str, NamedRelation]:
        """Return the fixed points of queries whose `columns` are these, or wider ones."""
        for _ in range(_ROUNDS_MAX):
            keys = {label: self._names.fresh(label) for label in members}
            variables = {
                label: NamedRelation(
                    RecursionVariable(keys[label], columns[label], site=self._text.site(cte))
                )
                for label, cte in members.items()
            }
            relations = {
                label: self._queries.query(cte.this, outer, {**entry, **variables})
                for label, cte in members.items()
            }
            if not are_declared:
                relations = {
                    label: self._relabelled(each, members[label]) for label, each in relations.items()
                }
            wider = {
                label: self._wider(columns[label], relations[label], cte, are_declared=are_declared)
                for label, cte in members.items()
            }
            if all(
                [each.type for each in wider[label]] == [each.type for each in columns[label]]
                for label in members
            ):
                break
            columns = wider
        else:
            raise self._text.error(
                next(iter(members.values())), "the types of a recursive query do not settle"
            )
        bodies = Bodies(
            {keys[label]: columns[label] for label in members},
            {keys[label]: relations[label] for label in members},
        )
        most = _ITERATIONS_MAX if limit.iterations_max is None else limit.iterations_max
        return {
            label: NamedRelation(
                Recursion(
                    keys[label],
                    tuple(self._names.attribute(each.label, each.type) for each in columns[label]),
                    bodies,
                    limit.times,
                    most,
                    site=self._text.site(cte),
                )
            )
            for label, cte in members.items()
        }

    def _first_types(
        self, members: dict[str, exp.Expression], outer: NameScope | None, entry: dict[str, NamedRelation]
    ) -> dict[str, tuple[Attribute, ...]]:
        """Return the columns of each query, as its parts without recursion have them."""
        columns: dict[str, tuple[Attribute, ...]] = {}
        while len(columns) < len(members):
            before = len(columns)
            for label, cte in members.items():
                variables = {other: NamedRelation(RecursionVariable("", columns[other])) for other in columns}
                part = _part_without(cte.this, members.keys() - columns.keys())
                if label not in columns and part is not None:
                    relation = self._queries.query(part, outer, {**entry, **variables})
                    columns[label] = self._fresh(self._relabelled(relation, cte))
            if len(columns) == before:
                label, cte = next(each for each in members.items() if each[0] not in columns)
                raise self._text.error(
                    cte, f"{label} has no part that begins it: a recursive query is a first part UNION a step"
                )
        return columns

    def _fresh(self, relation: Relation) -> tuple[Attribute, ...]:
        return tuple(self._names.attribute(each.label, each.type) for each in relation.attributes)

    def _wider(
        self,
        columns: tuple[Attribute, ...],
        relation: Relation,
        cte: exp.Expression,
        *,
        are_declared: bool,
    ) -> tuple[Attribute, ...]:
        """Return the columns with types that have the values of `relation`, too; declared types stay, but
        for null.
        """
        if len(columns) != len(relation.attributes):
            what = "its query" if are_declared else "its step"
            raise self._text.error(
                cte, f"{cte.alias} has {len(columns)} columns, and {len(relation.attributes)} in {what}"
            )
        wider = []
        for one, other in zip(columns, relation.attributes, strict=True):
            try:
                type_, _ = common_type([value_of(one), value_of(other)])
            except ExpressionError:
                if are_declared:
                    raise self._not_declared(one, other, cte) from None
                raise self._text.error(
                    cte, f"{one.label} is {one.type} at first, then {other.type}"
                ) from None
            if are_declared:
                is_same = type_.not_null() == one.type.not_null()
                if not is_same and not (one.type.kind == "decimal" and other.type.kind in ("decimal", "int")):
                    raise self._not_declared(one, other, cte)
                type_ = one.type.or_null(one.type.nullable or other.type.nullable)
            wider.append(self._names.attribute(one.label, type_))
        return tuple(wider)

    def _not_declared(self, declared: Attribute, other: Attribute, cte: exp.Expression) -> SqlError:
        what = f"{cte.alias}.{declared.label} is declared {declared.type.not_null()}"
        return self._text.error(cte, f"{what}, and its query makes {other.type.not_null()}: use CAST")

    def _relabelled(self, relation: Relation, cte: exp.Expression) -> Relation:
        labels = self._text.labels(cte.args["alias"])
        if labels and len(labels) != len(relation.attributes):
            raise self._text.error(
                cte.args["alias"],
                f"{cte.alias} has {len(relation.attributes)} columns, and {len(labels)} names",
            )
        return relation if not labels else self._queries.relabelled(relation, cte)


def _tables_in(node: exp.Expression) -> set[str]:
    return {each.name.lower() for each in node.find_all(exp.Table)}


def _circle(label: str, reads: dict[str, set[str]]) -> set[str]:
    """Return the names that read `label` and that it reads, by whatever way; itself among them."""

    def reached(start: str) -> set[str]:
        outcome, waiting = {start}, [start]
        while waiting:
            for other in reads[waiting.pop()] - outcome:
                outcome.add(other)
                waiting.append(other)
        return outcome

    return {other for other in reached(label) if label in reached(other)}


def _part_without(node: exp.Expression, labels: set[str]) -> exp.Expression | None:
    """Return what is left of a query without what reads these names: sides of UNION, conditions; None if
    that is not enough. It has the columns of the query, and most of their types.
    """
    if not _tables_in(node) & labels:
        return node
    rest = exp.Subquery(this=node.copy())
    for each in list(rest.find_all(exp.SetOperation, exp.Where, exp.Having)):  # those around others first
        if each.root() is not rest or not _tables_in(each) & labels:
            continue
        if not isinstance(each, exp.SetOperation):
            each.pop()
            continue
        sides = [each.this, each.args["expression"]]
        first = next((side for side in sides if not _tables_in(side) & labels), None)
        if first is not None:
            if each.args.get("with_") is not None:
                first = exp.Subquery(this=first.pop(), with_=each.args["with_"].pop())
            each.replace(first)
    return rest if not _tables_in(rest) & labels else None
