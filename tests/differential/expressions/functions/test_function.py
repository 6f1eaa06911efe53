"""What a function says of itself."""

from __future__ import annotations

from differential.expressions.functions.catalogue import FUNCTIONS


def test_the_last_parameter_of_some_may_be_repeated() -> None:
    concat = FUNCTIONS["concat"]
    assert concat.param(0) is concat.param(7)
    assert FUNCTIONS["upper"].param(1) is None


def test_what_may_be_left_out_is_not_counted() -> None:
    assert FUNCTIONS["slice"].operands_min == 2
    assert FUNCTIONS["round"].operands_min == 1


def test_constants_that_make_no_sense_are_refused_with_the_reason() -> None:
    assert FUNCTIONS["matches"].refusal(["a+"]) is None
    assert "regular expression" in (FUNCTIONS["matches"].refusal(["a("]) or "")
    assert "no codes" in (FUNCTIONS["format"].refusal(["yyyy"]) or "")
    assert FUNCTIONS["upper"].refusal([]) is None


def test_only_a_lack_of_values_that_says_why_stops_a_dataflow() -> None:
    assert FUNCTIONS["to_date"].can_fail and not FUNCTIONS["try_to_date"].can_fail
    assert not FUNCTIONS["extract"].can_fail
