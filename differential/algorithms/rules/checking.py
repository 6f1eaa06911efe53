"""Checks a rule by itself: its relations, the number of their columns, its variables, their types.

A variable is *bound* if it is in an atom of the body that is not negated: its values come from there. An
unbound variable would have no end of values; a rule with one where values matter is *unsafe*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never

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
from differential.columns.column_types import ColumnType, boolean, floating, integer, string
from differential.columns.schema import Schema
from differential.errors import RuleError
from timely.user_code.call_site import call_site

__all__ = ["check_rule", "refuse"]


def refuse(rule: Rule, why: str) -> Never:
    """Raise RuleError about `rule`."""
    raise RuleError(f"datalog ({call_site()}), {rule}: {why}")


def check_rule(rule: Rule, schemas: Mapping[str, Schema]) -> None:
    """Raise RuleError if the rule is unsafe, or does not fit the columns of its relations."""
    for atom in (rule.head, *(each for each in rule.body if isinstance(each, Atom))):
        _check_columns(rule, atom, schemas)
    _check_safe(rule)
    types = _types(rule, schemas)
    for part in rule.body:
        if isinstance(part, Comparison):
            _check_comparable(rule, part, types)
    for term, column in zip(rule.head.terms, schemas[rule.head.relation], strict=True):
        if isinstance(term, RuleVariable) and types[term.name].nullable and not column.type.nullable:
            refuse(
                rule,
                f"{term.name!r} may be null, and column {column.name!r} of {rule.head.relation!r} may not: "
                f"declare it as {column.type}?, or drop the nulls before",
            )


def _check_columns(rule: Rule, atom: Atom, schemas: Mapping[str, Schema]) -> None:
    if atom.relation not in schemas:
        names = ", ".join(schemas)
        refuse(rule, f"there is no relation {atom.relation!r}, only {names}. Give its rows, or its columns")
    schema = schemas[atom.relation]
    if len(atom.terms) != len(schema):
        refuse(
            rule,
            f"{atom.relation!r} has {len(schema)} columns ({schema}), and {atom} names {len(atom.terms)}: "
            "write _ for those that do not matter",
        )
    for term, column in zip(atom.terms, schema, strict=True):
        if isinstance(term, Constant) and not _fits(term, column.type):
            refuse(rule, f"{term} cannot be in column {column.name!r} of {atom.relation!r}, {column.type}")


def _check_safe(rule: Rule) -> None:
    if not rule.body:
        refuse(rule, f"a fact is no rule: insert it into the collection given for {rule.head.relation!r}")
    bound = {name for atom in rule.positive for name in variables_of(atom)}
    if ANY in rule.head.terms:
        refuse(rule, "_ is in its head: any value at all would do")
    for name in variables_of(rule.head):
        if name not in bound:
            refuse(
                rule,
                f"it is unsafe: {name!r} is in its head and in no atom of its body that is not negated, so "
                "any value at all would do",
            )
    for part in rule.body:
        if isinstance(part, Comparison) and ANY in part.terms:
            refuse(rule, f"_ in {part} has no value to compare: give it a name, and put that into an atom")
        for name in variables_of(part):
            if name not in bound:
                hint = "" if isinstance(part, Comparison) else " Where any value is meant, write _."
                refuse(
                    rule,
                    f"it is unsafe: {name!r} of {part} is in no atom of its body that is not negated.{hint}",
                )
    if not rule.positive:
        refuse(rule, "it is unsafe: no atom of its body says that something is there, only that it is not")


def _types(rule: Rule, schemas: Mapping[str, Schema]) -> dict[str, ColumnType]:
    """Return the type of each variable; nullable if a column that its values come from is nullable."""
    types: dict[str, tuple[ColumnType, str]] = {}
    for atom in (*rule.positive, *(each for each in rule.body if isinstance(each, Atom)), rule.head):
        schema = schemas[atom.relation]
        for term, column in zip(atom.terms, schema, strict=True):
            if not isinstance(term, RuleVariable) or term == ANY:
                continue
            where = f"{atom.relation}.{column.name}"
            type_before, first = types.setdefault(term.name, (column.type, where))
            if type_before.not_null() != column.type.not_null():
                refuse(
                    rule, f"{term.name!r} is {type_before} by {first} and {column.type} by {where}: cast one"
                )
            if column.type.nullable and atom in rule.positive:
                types[term.name] = (type_before.or_null(), first)
    return {name: type_ for name, (type_, _) in types.items()}


def _fits(constant: Constant, type_: ColumnType) -> bool:
    of = _type_of(constant)
    return type_.not_null() == of or (of == integer and type_.kind == "float")


def _type_of(constant: Constant) -> ColumnType:
    if isinstance(constant.value, bool):
        return boolean
    if isinstance(constant.value, str):
        return string
    return integer if isinstance(constant.value, int) else floating


def _check_comparable(rule: Rule, comparison: Comparison, types: Mapping[str, ColumnType]) -> None:
    def type_of(term: Term) -> ColumnType:
        return _type_of(term) if isinstance(term, Constant) else types[term.name]

    left, right = type_of(comparison.left), type_of(comparison.right)
    if left.not_null() != right.not_null() and not (left.is_number and right.is_number):
        refuse(rule, f"{comparison} compares {left} with {right}")
    if comparison.operator not in ("==", "!=") and not left.has_order:
        refuse(rule, f"{comparison}: values of type {left} have no order")
