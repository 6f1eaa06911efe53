"""latest.py: the last value of each key, and removals of what is not there, epoch by epoch.

law_*    every epoch against the plain definition, however many become complete at once
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import advanced
from reference.collection import Row
from reference.timed.plain import checked, latest
from reference.words import accumulated, as_words, rows_of

from differential.columns.overflow import show_words
from differential.errors import MultiplicityOverflowError
from differential.operators.timed.latest import INHERITED, CheckedMachine, LatestMachine
from progress.times.anchor import Rebase

GUARDS = 1 << 62

calls = st.tuples(
    st.integers(0, 4), st.tuples(st.integers(0, 2)), st.one_of(st.none(), st.tuples(st.integers(0, 2)))
)


def _frontier(epoch: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([epoch], np.int64)


@given(st.lists(calls, max_size=12), st.sets(st.integers(1, 5)), st.randoms())
def test_law_the_last_value_of_each_key(
    said: list[tuple[int, Row, Row | None]], frontiers: set[int], random: object
) -> None:
    rows = [
        (*key, int(value is not None), *(value or (0,)), 5, order, epoch, 1)
        for order, (epoch, key, value) in enumerate(said)
    ]
    rows = [(key, value, has, rank, order, epoch, one) for key, has, value, rank, order, epoch, one in rows]
    machine = LatestMachine(1, 1, GUARDS)
    made = []
    before = 0
    for frontier in [*sorted(frontiers), 9]:
        coming = [row for row in rows if before <= row[-2] < frontier]
        random.shuffle(coming)  # type: ignore[attr-defined]
        for row in coming:
            machine.recv(0, [as_words([row], 7)])
        assert bool(coming) == bool(machine.needs().shape[0])
        changes = advanced(machine, _frontier(frontier))
        assert rows_of(changes) == sorted(rows_of(changes))
        made += rows_of(changes)
        machine.current.check_invariants()
        before = frontier
    for epoch in range(6):
        assert accumulated(made, epoch, GUARDS) == dict(latest(said, epoch)), epoch
    assert sum(abs(row[-1]) for row in made) <= 2 * len(said), "no change is put out in vain"


def test_what_waits_moves_with_the_words() -> None:
    """What was said, and what is inherited: each with its epoch, which is among the words once more."""
    machine = LatestMachine(1, 1, GUARDS)
    machine.recv(
        0, [as_words([(7, 1, INHERITED, 0, 0, 5, 1), (7, 2, 1, 5, 0, 6, 1), (7, 3, 1, 5, 1, 7, 1)], 7)]
    )
    machine.rebase(Rebase(4, 0))
    assert rows_of(advanced(machine, _frontier(3))) == [(7, 1, 1, 1), (7, 1, 2, -1), (7, 2, 2, 1)]
    assert rows_of(advanced(machine, _frontier(4))) == [(7, 2, 3, -1), (7, 3, 3, 1)]


@given(st.lists(calls, max_size=12), st.integers(0, 5), st.sets(st.integers(1, 5)))
def test_law_a_machine_that_inherits_goes_on_as_the_one_that_was_told_all(
    said: list[tuple[int, Row, Row | None]], since: int, frontiers: set[int]
) -> None:
    told, heir = LatestMachine(1, 1, GUARDS), LatestMachine(1, 1, GUARDS)
    for order, (epoch, key, value) in enumerate(said):
        row = (*key, *(value or (0,)), int(value is not None), 5, order, epoch, 1)
        told.recv(0, [as_words([row], 7)])
        if epoch >= since:
            heir.recv(0, [as_words([row], 7)])
    made = rows_of(advanced(told, _frontier(9)))
    for key, value, epoch, diff in made:
        if epoch < since:
            heir.recv(0, [as_words([(key, value, INHERITED, 0, 0, epoch, diff)], 7)])
    found = []
    for frontier in [*sorted(frontiers), 9]:
        found += rows_of(advanced(heir, _frontier(frontier)))
        heir.current.check_invariants()
    assert sorted(found) == sorted(made) and not heir.needs().shape[0]


def test_what_is_said_again_changes_nothing() -> None:
    machine = LatestMachine(1, 1, GUARDS)
    for epoch in range(3):
        machine.recv(0, [as_words([(1, 7, 1, 0, epoch, epoch, 1)], 7)])
        assert advanced(machine, _frontier(epoch + 1)).shape[1] == (epoch == 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.tuples(st.integers(0, 2)), st.sampled_from([-2, -1, 1, 2])),
        max_size=12,
    ),
    st.sets(st.integers(1, 5)),
)
def test_law_no_row_is_there_less_than_0_times(said: list[tuple[int, Row, int]], frontiers: set[int]) -> None:
    machine = CheckedMachine(1, GUARDS)
    made = []
    before = 0
    for frontier in [*sorted(frontiers), 9]:
        for epoch, row, diff in said:
            if before <= epoch < frontier:
                machine.recv(0, [as_words([(*row, epoch, diff)], 3)])
        made += rows_of(advanced(machine, _frontier(frontier)))
        machine.there.check_invariants()
        before = frontier
    for epoch in range(6):
        there, refused = checked(said, epoch)
        wanted = {(*row, 0): count for row, count in there.items()}
        wanted.update({(*row, 1): count for row, count in refused.items()})
        assert accumulated(made, epoch, GUARDS) == wanted


def test_a_row_that_is_there_too_often_is_an_error() -> None:
    machine = CheckedMachine(1, GUARDS)
    machine.show_rows(show_words)
    machine.recv(0, [as_words([(1, 0, 2**62), (1, 1, 2**62)], 3)])
    with pytest.raises(MultiplicityOverflowError):
        advanced(machine, _frontier(2))


def test_what_is_past_takes_no_memory_however_often_a_row_changes() -> None:
    said, there = LatestMachine(1, 1, GUARDS), CheckedMachine(1, GUARDS)
    for epoch in range(3_000):
        said.recv(0, [as_words([(1, epoch, 1, 0, epoch, epoch, 1)], 7)])
        there.recv(0, [as_words([(1, epoch, 1 - epoch % 2 * 2)], 3)])
        for machine in (said, there):
            advanced(machine, _frontier(epoch + 1))
    assert said.current.rows < 2_000 and there.there.rows < 2_000
