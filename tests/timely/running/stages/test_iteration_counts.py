"""iteration_counts.py: rows by time word, of which the last are kept."""

from __future__ import annotations

from progress.times.anchor import Rebase
from timely.building.freeze import LoopLimit
from timely.running.stages.iteration_counts import ITERATIONS_KEPT, IterationCounts

ENDLESS = LoopLimit("loop", 0, 0xFFFF, 100)


def test_rows_of_a_word_are_summed_and_words_come_in_order() -> None:
    counts = IterationCounts(ENDLESS)
    for word, rows in ((7, 2), (3, 1), (7, 5)):
        counts.add(word, rows)
    assert list(counts) == [(3, 1), (7, 7)]


def test_the_words_that_came_first_are_forgotten_first() -> None:
    counts = IterationCounts(ENDLESS)
    for word in range(ITERATIONS_KEPT + 3):
        counts.add(word, 1)
    counts.add(5, 1)
    assert [word for word, _ in counts] == list(range(3, ITERATIONS_KEPT + 3))
    assert dict(counts)[5] == 2


def test_what_a_loop_that_stops_does_not_reach_is_not_counted() -> None:
    counts = IterationCounts(LoopLimit("loop", 4, 0xF, 3, stops=True))
    for iteration in range(6):
        counts.add((iteration << 4) + 9, 1)
    assert [word >> 4 for word, _ in counts] == [0, 1, 2, 3]


def test_words_of_before_a_later_anchor_are_kept_below_zero() -> None:
    counts = IterationCounts(ENDLESS)
    for word in (3, 20):
        counts.add(word, 1)
    counts.rebase(Rebase(2, 3))
    counts.add(4, 5)
    assert list(counts) == [(-13, 1), (4, 6)]
