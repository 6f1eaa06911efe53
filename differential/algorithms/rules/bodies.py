"""The body of a rule as joins.

Atoms are taken one after another, in the order in which they are written, except that an atom that shares a
variable with those before it goes ahead of one that shares none. Each becomes columns, named after its
variables. An atom that adds a variable becomes a join; one that only requires that a fact exists, a
semi-join; a negated one, an anti-join. Comparisons and negated atoms follow as soon as their variables are
there, and columns go as soon as nothing behind needs them.

A multiplicity counts the ways in which a fact is derived; the user of the result makes it distinct.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from differential.algorithms.rules.syntax import (
    ANY,
    Atom,
    Comparison,
    Constant,
    Rule,
    RuleVariable,
    Term,
    variables_of,
)
from differential.collections.collection import Collection
from differential.columns.schema import Schema
from differential.expressions.expression import Expr, col, lit

__all__ = ["derived"]

_NOTHING: Final = "(nothing)"
"""A column of zeros for rows that have no other: to ask whether a row exists, join on it."""

_COMPARED: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def derived(rule: Rule, relations: Mapping[str, Collection], schema: Schema) -> Collection:
    """Return what the rule derives from the relations, with the columns of `schema`, its head's.

    Requires that `check_rule` has passed it. Multiplicities are positive, but may be above 1.
    """
    waiting = [part for part in rule.body if isinstance(part, Comparison) or part.is_negated]
    atoms = _ordered(rule.positive)
    rows, bound = None, set[str]()
    for number, atom in enumerate(atoms):
        behind = [*atoms[number + 1 :], *waiting, rule.head]
        needed = {name for part in behind for name in variables_of(part)}
        rows = _with_atom(rows, atom, relations[atom.relation], bound, needed)
        bound |= set(variables_of(atom))
        for part in [part for part in waiting if bound.issuperset(variables_of(part))]:
            rows = _with_condition(rows, part, relations)
            waiting.remove(part)
        needed = {name for part in (*atoms[number + 1 :], *waiting, rule.head) for name in variables_of(part)}
        rows = _columns(rows, [name for name in rows.schema.names if name in needed])
    assert rows is not None and not waiting
    values = [
        _value(term, column.type.kind == "float").alias(column.name)
        for term, column in zip(rule.head.terms, schema, strict=True)
    ]
    return rows.select(*values).conformed(schema, str(rule))


def _ordered(atoms: Sequence[Atom]) -> list[Atom]:
    """Return the atoms as written, but first those that share a variable with atoms before them."""
    left, order = list(atoms), list[Atom]()
    bound: set[str] = set()
    while left:
        chosen = next((atom for atom in left if not bound.isdisjoint(variables_of(atom))), left[0])
        left.remove(chosen)
        order.append(chosen)
        bound.update(variables_of(chosen))
    return order


def _with_atom(
    rows: Collection | None, atom: Atom, relation: Collection, bound: set[str], needed: set[str]
) -> Collection:
    """Return `rows` with the columns that the atom adds; for the first atom, the columns of its facts."""
    facts = _facts(atom, relation)
    names = variables_of(atom)
    if rows is None:
        return _columns(facts, names)
    keys = [name for name in names if name in bound]
    added = [name for name in names if name not in bound and name in needed]
    if not added and (ANY in atom.terms or len(keys) < len(names)):
        return _met(rows, _columns(facts, keys), keys, "semi")
    return _met(rows, _columns(facts, [*keys, *added]), keys, "inner")


def _with_condition(
    rows: Collection, part: Atom | Comparison, relations: Mapping[str, Collection]
) -> Collection:
    if isinstance(part, Comparison):
        return rows.filter(_COMPARED[part.operator](_value(part.left), _value(part.right)))
    keys = variables_of(part)
    return _met(rows, _columns(_facts(part, relations[part.relation]), keys), keys, "anti")


def _facts(atom: Atom, relation: Collection) -> Collection:
    """Return the facts that match the atom, with columns named after its variables, and no others."""
    where: dict[str, str] = {}
    conditions: list[Expr] = []
    for term, name in zip(atom.terms, relation.schema.names, strict=True):
        if isinstance(term, Constant):
            conditions.append(col(name) == _value(term))
        elif term != ANY and where.setdefault(term.name, name) != name:
            conditions.append(col(name) == col(where[term.name]))
    chosen = relation.filter(*conditions) if conditions else relation
    columns = [col(name).alias(variable) for variable, name in where.items()]
    return chosen.select(*columns) if columns else chosen.select(lit(0).alias(_NOTHING))


def _met(rows: Collection, facts: Collection, keys: Iterable[str], how: str) -> Collection:
    """Return a join, on a column of zeros if there is nothing else in common."""
    on = list(keys)
    if on:
        return rows.join(facts, on=on, how=how)
    zero = lit(0).alias(_NOTHING)
    return rows.with_columns(zero).join(facts.with_columns(zero), on=_NOTHING, how=how)


def _columns(rows: Collection, names: Sequence[str]) -> Collection:
    """Return these columns, in this order; if there are none, a column without meaning."""
    if tuple(names) == rows.schema.names:
        return rows
    return rows.select(*(col(name).alias(name) for name in names) if names else (lit(0).alias(_NOTHING),))


def _value(term: Term, as_float: bool = False) -> Expr:
    if isinstance(term, RuleVariable):
        return col(term.name)
    return lit(float(term.value) if as_float else term.value)
