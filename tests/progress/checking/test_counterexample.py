"""What a counterexample says."""

from __future__ import annotations

from progress.checking.counterexample import Counterexample


def test_it_lists_its_steps_by_number_and_is_an_assertion_error() -> None:
    error = Counterexample("the sum is 3", ["send 1", "send 2"], "seed 7")
    assert isinstance(error, AssertionError)
    assert str(error) == "the sum is 3\n    1 send 1\n    2 send 2\n  seed 7"
    assert (error.what, error.steps) == ("the sum is 3", ["send 1", "send 2"])
