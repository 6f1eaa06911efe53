"""CountChanges: the changes of one step, summed up, increments first."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from progress.times.anchor import Rebase
from progress.tracking.count_changes import CountChanges

CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-2, 2)), max_size=20)


@given(CHANGES)
def test_law_the_sum_by_pointstamp_is_kept(added: list[tuple[int, int, int]]) -> None:
    changes, expected = CountChanges(), Counter[tuple[int, int]]()
    for location, word, delta in added:
        changes.add(location, word, delta)
        expected[location, word] += delta
    found = {(location, word): delta for location, word, delta in changes.consolidated()}
    assert found == {pointstamp: total for pointstamp, total in expected.items() if total}
    changes.check_invariants()


@given(CHANGES)
def test_law_every_increment_stands_before_every_decrement(added: list[tuple[int, int, int]]) -> None:
    changes = CountChanges()
    for change in added:
        changes.add(*change)
    signs = [delta > 0 for _, _, delta in changes.consolidated()]
    assert signs == sorted(signs, reverse=True)


def test_a_message_sent_and_consumed_in_one_step_is_never_heard_of() -> None:
    changes = CountChanges()
    changes.add(4, 7, 1)
    changes.add(4, 7, -1)
    assert changes and changes.take() == []


def test_taking_starts_afresh() -> None:
    changes = CountChanges()
    changes.add(1, 2, 3)
    assert changes.take() == [(1, 2, 3)]
    assert not changes and changes.consolidated() == []


def test_changes_that_were_not_told_move_with_the_anchor() -> None:
    changes = CountChanges()
    changes.add(1, 40, 2)
    changes.add(0, 33, -1)
    changes.rebase(Rebase(2, 4))
    changes.add(1, 8, 1)
    assert changes.take() == [(1, 8, 3), (0, 1, -1)]
