"""What do rules of Datalog mean? Every value tried for every variable, again and again until nothing is new.

A program is plain data. A term is a number, a variable such as "x", or "_"; an atom a relation and its
terms; a literal ("+", atom), ("-", atom) for one that is not, or ("<", term, term); a rule its head and its
literals.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

__all__ = ["Facts", "Literal", "Rule", "Term", "follow_from", "written"]

Term: TypeAlias = int | str
Atom: TypeAlias = tuple[str, tuple[Term, ...]]
Literal: TypeAlias = tuple[str, Atom] | tuple[str, Term, Term]
Rule: TypeAlias = tuple[Atom, Sequence[Literal]]
Facts: TypeAlias = dict[str, set[tuple[int, ...]]]

_COMPARED = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}


def follow_from(program: Sequence[Rule], given: Mapping[str, set[tuple[int, ...]]]) -> Facts:
    """All facts of all relations, the given ones included."""
    levels = _levels(program)
    facts = {name: set(given.get(name, ())) for name in {*given, *levels}}
    for level in sorted(set(levels.values())):
        rules = [rule for rule in program if levels[rule[0][0]] == level]
        size = -1
        while size != sum(map(len, facts.values())):
            size = sum(map(len, facts.values()))
            for head, body in rules:
                facts[head[0]] |= set(_derived(head, body, facts))
    return facts


def _derived(head: Atom, body: Sequence[Literal], facts: Facts) -> Iterator[tuple[int, ...]]:
    values = sorted({value for rows in facts.values() for row in rows for value in row})
    names = sorted({term for literal in body for term in _terms(literal) if isinstance(term, str)} - {"_"})
    for chosen in product(values, repeat=len(names)):
        meaning = dict(zip(names, chosen, strict=True))
        if all(_holds(literal, meaning, facts) for literal in body):
            yield tuple(_value(term, meaning) for term in head[1])


def _terms(literal: Literal) -> tuple[Term, ...]:
    if len(literal) == 3:
        return literal[1:]
    return literal[1][1]


def _holds(literal: Literal, meaning: Mapping[str, int], facts: Facts) -> bool:
    if len(literal) == 3:
        compared, left, right = literal
        return bool(_COMPARED[compared](_value(left, meaning), _value(right, meaning)))
    sign, (relation, terms) = literal
    found = any(
        all(term == "_" or _value(term, meaning) == value for term, value in zip(terms, row, strict=True))
        for row in facts.get(relation, ())
    )
    return found == (sign == "+")


def _value(term: Term, meaning: Mapping[str, int]) -> int:
    return meaning[term] if isinstance(term, str) else term


def _levels(program: Sequence[Rule]) -> dict[str, int]:
    """A number for each head: no less than those that its rules ask, more than those that they negate."""
    levels = {head[0]: 0 for head, _ in program}
    for _ in range(len(levels) + 1):
        for head, body in program:
            for literal in body:
                if len(literal) == 2:
                    sign, (relation, _) = literal
                    least = levels.get(relation, -1) + (sign == "-")
                    levels[head[0]] = max(levels[head[0]], least)
    assert max(levels.values()) <= len(levels), "a relation depends on its own negation"
    return levels


def written(program: Sequence[Rule]) -> str:
    """The program as text."""
    return "\n".join(f"{_atom(head)} :- {', '.join(map(_literal, body))}." for head, body in program)


def _literal(literal: Literal) -> str:
    if len(literal) == 3:
        return f"{literal[1]} {literal[0]} {literal[2]}"
    return "not " * (literal[0] == "-") + _atom(literal[1])


def _atom(atom: Atom) -> str:
    return f"{atom[0]}({', '.join(map(str, atom[1]))})"
