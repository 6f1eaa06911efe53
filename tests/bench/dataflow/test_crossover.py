"""crossover.py: the answers are those of pandas, and a crossing lies between what was measured."""

from __future__ import annotations

import pytest

from bench.dataflow.crossover import PROGRAMS, Figures, crossing, measured


@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_are_those_of_pandas(name: str) -> None:
    """`measured` holds them against each other after each share."""
    figures = measured(name, rows=400, customers=60, shares=(0.01, 0.5))
    assert [each.share for each in figures] == [0.01, 0.5]
    assert all(value > 0 for each in figures for value in each[1:])


def test_crossing_is_between_shares_or_nowhere() -> None:
    figures = [Figures(0.01, 1, 2, 10, 5), Figures(0.1, 4, 20, 10, 4), Figures(1, 100, 200, 10, 4)]
    assert crossing(figures, "changes", "pandas") == pytest.approx(0.1 * 10 ** (0.9163 / 3.2189), rel=0.001)
    assert crossing(figures, "changes", "duckdb") == pytest.approx(0.1)
    assert crossing(figures, "snapshot", "duckdb") == pytest.approx(0.01 * 10 ** (0.9163 / 2.5257), rel=0.001)
    assert crossing(figures[:1], "changes", "pandas") is None
    assert crossing(figures[2:], "changes", "pandas") == 1
