"""algorithms/rules/syntax.py: rules as text.

read_*      what the parts of a rule are
refused_*   what cannot be read, with its line
"""

from __future__ import annotations

import pytest

from differential.algorithms.rules.syntax import (
    ANY,
    Atom,
    Comparison,
    Constant,
    RuleVariable,
    parse,
    variables_of,
)
from differential.errors import RuleError

X, Y = RuleVariable("x"), RuleVariable("y")


def test_read_atoms_negations_and_comparisons() -> None:
    (rule,) = parse("p(x, 3) :- q(x, _), not r(x), !s(y, y), x<=y, x = -2.5.")
    assert rule.head == Atom("p", (X, Constant(3)))
    assert rule.body == (
        Atom("q", (X, ANY)),
        Atom("r", (X,), True),
        Atom("s", (Y, Y), True),
        Comparison(X, "<=", Y),
        Comparison(X, "==", Constant(-2.5)),
    )
    assert rule.positive == rule.body[:1]
    assert rule.relations == {"q", "r", "s"}
    assert variables_of(rule.body[2]) == ("y",)
    assert variables_of(rule.body[0]) == ("x",)


def test_read_constants_of_all_kinds() -> None:
    (rule,) = parse(r"""p("a, \"b\".", 'x', true, false, 7, -7, 0.5, 1e3) :- q(not_a_word).""")
    values = [term.value for term in rule.head.terms if isinstance(term, Constant)]
    assert values == ['a, "b".', "x", True, False, 7, -7, 0.5, 1000.0]
    assert [type(value) for value in values[4:]] == [int, int, float, float]


def test_read_names_like_words_and_relations_as_variables() -> None:
    (rule,) = parse("not_p(Über, nothing) :- q(Über, nothing), nothing < q.")
    assert variables_of(rule.head) == ("Über", "nothing")
    assert rule.body[1] == Comparison(RuleVariable("nothing"), "<", RuleVariable("q"))


def test_read_numbers_rules_and_lines_and_passes_over_remarks() -> None:
    rules = parse("% first\np(x) :- q(x). # one\n\n// another\np(x) :-\n  r(x)\n  .  p(x) :- s(x).")
    assert [(rule.number, rule.line) for rule in rules] == [(1, 2), (2, 5), (3, 7)]
    assert str(rules[1]) == "rule 2 (line 5), p(x) :- r(x)."


def test_read_prints_what_reads_as_the_same() -> None:
    text = "p(x, 'it is', true) :- q(x, _, 1.5), not r(x, 'y'), x != 2, 3 >= x."
    (rule,) = parse(text)
    assert str(rule).endswith(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the end of the text stands where a rule is expected"),
        ("p(x) :- q(x)", "line 1: the end of the text stands where '.' behind a rule"),
        ("p(x) :- q(x),\n.", "line 2: '.' stands where a variable or a constant"),
        ("p(x) :- q(x).\np(x :- q(x).", "line 2: ':-' stands where ')' behind the terms of 'p'"),
        ("p() :- q(x).", "')' stands where a variable or a constant"),
        ("p :- q(x).", "':-' stands where '(' behind the relation 'p'"),
        ("p(x) :- q(x), x.", "'.' stands where a comparison"),
        ("p(x) :- q(x), 3(x).", "'(' stands where a comparison"),
        ("p(x) :- q(x), not x < 3.", "'<' stands where '(' behind the relation 'x'"),
        (
            "p(x)\n :- q(x) & r(x).",
            "line 2: '& r(x).' cannot be read: no name, constant or mark begins there",
        ),
        ("p(x) :- q('a).", "cannot be read: no name, constant or mark begins there"),
        ("3(x) :- q(x).", "'3' stands where the name of a relation"),
    ],
)
def test_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert said in str(caught.value) and "test_syntax.py" in str(caught.value)
