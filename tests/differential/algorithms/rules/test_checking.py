"""algorithms/rules/checking.py: rules that make no sense are refused, with their number and what to mend.

unsafe_*   variables of which nothing says what they can be, by name
columns_*  relations that are not there, columns, constants and types that do not fit
allowed_*  what is safe although it looks odd
"""

from __future__ import annotations

import pytest

from differential.algorithms.rules.checking import check_rule
from differential.algorithms.rules.syntax import parse
from differential.columns.schema import Schema
from differential.errors import RuleError

SCHEMAS = {
    "p": Schema.of("a: int"),
    "q": Schema.of("a: int, b: int"),
    "named": Schema.of("id: int, name: string"),
    "maybe": Schema.of("a: int?"),
    "mixed": Schema.of("f: float, t: bool, o: any"),
}


def _check(text: str) -> None:
    for rule in parse(text):
        check_rule(rule, SCHEMAS)


def _said(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        _check(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p(x) :- q(y, _).", "unsafe: 'x' is in its head and in no atom"),
        (
            "p(x) :- p(x).\np(z) :- p(x), not q(x, z).",
            "rule 2 (line 2), p(z) :- p(x), not q(x, z).: it is unsafe",
        ),
        ("p(x) :- p(x), not q(x, z).", "unsafe: 'z' of not q(x, z)"),
        ("p(x) :- p(x), not q(x, z).", "write _"),
        ("p(x) :- p(x), x < z.", "unsafe: 'z' of x < z"),
        ("p(x) :- p(y), x = y.", "unsafe: 'x' is in its head"),
        ("p(1) :- not q(1, 2).", "no atom of its body says that something is there"),
        ("p(1) :- 1 < 2.", "no atom of its body says that something is there"),
        ("p(_) :- p(x).", "_ is in its head"),
        ("p(x) :- p(x), x != _.", "_ in x != _ has no value to compare"),
        ("p(3).", "a fact is no rule: insert it into the collection given for 'p'"),
    ],
)
def test_unsafe_variables_are_named(text: str, said: str) -> None:
    assert said in _said(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p(x) :- r(x).", "no relation 'r', only p, q, named, maybe, mixed"),
        ("r(x) :- p(x).", "no relation 'r'"),
        ("p(x) :- q(x).", "'q' has 2 columns (a: int, b: int), and q(x) names 1"),
        ("p(x, y) :- q(x, y).", "'p' has 1 columns"),
        ("p(x) :- named(x, 3).", "3 cannot be in column 'name' of 'named', string"),
        ("p('a') :- q(x, y).", "'a' cannot be in column 'a' of 'p', int"),
        ("p(1.5) :- q(x, y).", "1.5 cannot be in column 'a'"),
        ("p(true) :- q(x, y).", "true cannot be in column 'a'"),
        ("p(x) :- p(x), not named(_, x).", "'x' is int by p.a and string by named.name"),
        ("p(x) :- named(_, x).", "'x' is string by named.name and int by p.a"),
        ("p(x) :- named(x, n), n < 3.", "n < 3 compares string with int"),
        ("p(x) :- p(x), mixed(_, _, o), o < o.", "values of type any have no order"),
        ("p(x) :- maybe(x).", "'x' may be null, and column 'a' of 'p' may not"),
        ("p(x) :- p(x), maybe(x).", "'x' may be null"),
    ],
)
def test_columns_and_types_that_do_not_fit(text: str, said: str) -> None:
    assert said in _said(text)


@pytest.mark.parametrize(
    "text",
    [
        "maybe(x) :- p(x), maybe(x).",
        "p(x) :- p(x), not maybe(x).",
        "maybe(3) :- p(_).",
        "mixed(1, true, o) :- mixed(f, t, o), f < 2, t != false, o = o.",
        "p(1) :- p(x), 1 < 2, not p(3).",
        "p(x) :- named(x, n), n >= 'm'.",
    ],
)
def test_allowed(text: str) -> None:
    _check(text)
