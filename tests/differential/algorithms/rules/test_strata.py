"""algorithms/rules/strata.py: what is computed together, and what before what.

order_*     each stratum behind what it needs
refused_*   a relation that depends on its own negation
"""

from __future__ import annotations

import pytest

from differential.algorithms.rules.strata import strata
from differential.algorithms.rules.syntax import parse
from differential.errors import RuleError


def _names(text: str) -> list[tuple[str, ...]]:
    return [stratum.names for stratum in strata(parse(text))]


def test_order_is_that_of_what_is_needed_not_of_the_text() -> None:
    assert _names("c(x) :- b(x). b(x) :- a(x), not e(x). a(x) :- e(x).") == [("a",), ("b",), ("c",)]


def test_order_keeps_together_what_needs_one_another_and_nothing_else() -> None:
    text = (
        "end(x) :- p(x). p(x) :- q(x), e(x). q(x) :- p(x). "
        "q(x) :- start(x). start(x) :- e(x). end(x) :- e(x)."
    )
    found = strata(parse(text))
    assert [stratum.names for stratum in found] == [("start",), ("p", "q"), ("end",)]
    assert [stratum.is_loop for stratum in found] == [False, True, False]
    assert [[rule.number for rule in stratum.rules] for stratum in found] == [[5], [2, 3, 4], [1, 6]]
    assert [found[1].is_round(rule) for rule in found[1].rules] == [True, True, False]


def test_order_of_a_relation_that_needs_itself_is_a_loop() -> None:
    (found,) = strata(parse("p(x) :- e(x). p(x) :- p(y), f(y, x)."))
    assert found.is_loop


def test_order_puts_a_negated_relation_ahead() -> None:
    assert _names("not_p(x) :- e(x), not p(x). p(x) :- p(y), f(y, x). p(x) :- e(x).") == [("p",), ("not_p",)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("win(x) :- move(x, y), not win(y).", "not win(y) cannot be decided"),
        ("p(x) :- e(x), not q(x). q(x) :- r(x). r(x) :- p(x).", "rule 1 (line 1), p(x) :- e(x), not q(x).:"),
        ("p(x) :- e(x). p(x) :- q(x). q(x) :- e(x), not p(x).", "'p' needs 'q' itself"),
    ],
)
def test_refused_negation_of_what_needs_it(text: str, said: str) -> None:
    with pytest.raises(RuleError) as caught:
        strata(parse(text))
    assert said in str(caught.value)
