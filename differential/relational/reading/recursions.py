"""WITH RECURSIVE: the fixed point of queries that read themselves, or one another.

SQL's standard computes a recursive query from the rows of the last step alone, and so forbids aggregates and
a second reference. Here the result is the fixed point: rows = first part UNION step(rows), whatever the step
does. Where a step only adds rows and UNION drops what is there twice, both say the same.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from ...errors import ExpressionError
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import Bodies, Recursion, RecursionVariable, Relation
from .expressions.scopes import NameScope, value_of
from .expressions.values import common_type
from .sources import NamedRelation, NamedRelations, Queries
from .texts import SqlText, children_of

__all__ = ["RecursionReader"]

_ITERATIONS_MAX: Final = 10_000
"""A recursion that has not ended by then is an error; it would most likely never end."""

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

    def _recursive(
        self, members: dict[str, exp.Expression], outer: NameScope | None, entry: dict[str, NamedRelation]
    ) -> dict[str, NamedRelation]:
        """Return the fixed points of queries that read one another."""
        columns = self._first_types(members, outer, entry)
        for _ in range(_ROUNDS_MAX):
            keys = {label: self._names.fresh(label) for label in members}
            variables = {
                label: NamedRelation(
                    RecursionVariable(keys[label], columns[label], site=self._text.site(cte))
                )
                for label, cte in members.items()
            }
            relations = {
                label: self._relabelled(self._queries.query(cte.this, outer, {**entry, **variables}), cte)
                for label, cte in members.items()
            }
            wider = {
                label: self._wider(columns[label], relations[label], cte) for label, cte in members.items()
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
        return {
            label: NamedRelation(
                Recursion(
                    keys[label],
                    tuple(self._names.attribute(each.label, each.type) for each in columns[label]),
                    bodies,
                    None,
                    _ITERATIONS_MAX,
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
        self, columns: tuple[Attribute, ...], relation: Relation, cte: exp.Expression
    ) -> tuple[Attribute, ...]:
        if len(columns) != len(relation.attributes):
            raise self._text.error(
                cte, f"{cte.alias} has {len(columns)} columns, and {len(relation.attributes)} in its step"
            )
        wider = []
        for one, other in zip(columns, relation.attributes, strict=True):
            try:
                type_, _ = common_type([value_of(one), value_of(other)])
            except ExpressionError:
                raise self._text.error(
                    cte, f"{one.label} is {one.type} at first, then {other.type}"
                ) from None
            wider.append(self._names.attribute(one.label, type_))
        return tuple(wider)

    def _relabelled(self, relation: Relation, cte: exp.Expression) -> Relation:
        labels = [each.name for each in children_of(cte.args["alias"], "columns")]
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
    """Return a part of a query that reads none of these names: the query, or a side of its UNION."""
    if not _tables_in(node) & labels:
        return node
    while isinstance(node, exp.Subquery):
        node = node.this
    if isinstance(node, exp.Union):
        for side in (node.this, node.args["expression"]):
            part = _part_without(side, labels)
            if part is not None:
                return part
    return None
