"""A scenario is explored and simulated by one description."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wrong_vertices import RIGHT_ALONE

from progress.check.checkable import Checkable
from progress.checking.counterexample import Counterexample
from timely.errors import MisuseError
from timely.testing import explore, simulate


def test_it_is_what_the_command_takes() -> None:
    assert isinstance(RIGHT_ALONE, Checkable)


def test_functions_and_methods_do_the_same() -> None:
    explored = explore(
        RIGHT_ALONE.build, RIGHT_ALONE.acts, workers=1, expected=RIGHT_ALONE.expected, orders="all"
    )
    assert explored == RIGHT_ALONE.explore(orders="all")
    run = simulate(RIGHT_ALONE.build, RIGHT_ALONE.acts, 5, workers=1, expected=RIGHT_ALONE.expected)
    assert run == RIGHT_ALONE.simulate(5) == replace(RIGHT_ALONE, expected=None).simulate(5)


def test_what_is_expected_is_judged_by_both() -> None:
    wrong = replace(RIGHT_ALONE, expected={"sums": [(0, ("a", 4))]})
    for judge in (wrong.explore, lambda: wrong.simulate(1)):
        with pytest.raises(
            Counterexample, match=r"lacks \(0, \('a', 4\)\) and has \(0, \('a', 3\)\) too much"
        ):
            judge()


def test_arguments_are_judged_at_once() -> None:
    with pytest.raises(MisuseError, match="workers=0"):
        replace(RIGHT_ALONE, workers=0)
    with pytest.raises(MisuseError, match="cannot be called"):
        replace(RIGHT_ALONE, build=3)  # type: ignore[arg-type]
