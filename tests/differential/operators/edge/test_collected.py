"""All rows of an output: what is read of them does not depend on which changes wait."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import as_words, rows_of
from words_seen import Seen

from differential.columns.overflow import MultiplicityOverflowError
from differential.operators.edge import collected
from differential.operators.edge.collected import Collected
from differential.trace.run import Run
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

SHIFT = 32
SINCE = np.array([1 << SHIFT])
GUARDS = 1 << 62

changes = st.dictionaries(st.integers(-3, 9), st.integers(-2, 2).filter(bool), max_size=8)


def block(change: dict[int, int], epoch: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Some rows of one word, at an epoch."""
    return as_words([(word, epoch << SHIFT, diff) for word, diff in sorted(change.items())], 3)


def read(rows: Collected, *besides: dict[int, int]) -> dict[int, int]:
    return {word: diff for word, _, diff in rows_of(rows.accumulated([block(one) for one in besides]).all())}


def sums(*listed: dict[int, int]) -> dict[int, int]:
    found: Counter[int] = Counter()
    for one in listed:
        for word, diff in one.items():
            found[word] += diff
    return {word: diff for word, diff in found.items() if diff}


@pytest.fixture(params=[0, 7, 1 << 12], ids=["none waits", "few wait", "all wait"])
def _waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "BESIDE_ROWS_MAX", request.param)


@pytest.mark.usefixtures("_waiting")
@given(st.lists(st.tuples(changes, st.booleans()), max_size=12), changes, st.data())
def test_what_is_read_is_the_sum_of_all_changes(
    given_ones: list[tuple[dict[int, int], bool]], besides: dict[int, int], data: st.DataObject
) -> None:
    rows, known = Collected(1, GUARDS), dict[int, int]()
    for epoch, (change, is_run) in enumerate(given_ones):
        since = np.array([(epoch + 1) << SHIFT])
        if is_run and change:
            rows.add_run(Run.from_words(block(change, epoch), GUARDS), since)
        else:
            rows.add(block(change, epoch), since)
        known = sums(known, change)
        if data.draw(st.integers(0, 3)) == 0:
            assert read(rows) == known
            rows.settle()
        assert read(rows, besides) == sums(known, besides)
    rows.compact()
    assert (read(rows), rows.rows) == (known, len(known))


def test_few_rows_wait_and_many_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "BESIDE_ROWS_MAX", 10)
    monkeypatch.setattr(collected, "UNSETTLED_ROWS_MAX", 50)
    monkeypatch.setattr(collected, "WAITING_SHARE", 4)
    rows = Collected(1, GUARDS)
    waited: list[int] = []
    for first in range(0, 1000, 5):
        rows.add(block({first + at: 1 for at in range(5)}), SINCE)
        rows.settle_many()
        waited.append(rows._rows_waiting)
        assert rows.rows == first + 5
    assert waited[:3] == [5, 10, 0], "at first up to ten"
    assert 20 in waited and max(waited) == 50, "a quarter of what is there, and never more than fifty"
    assert sum(waited[at] == 0 for at in range(len(waited))) < 30


def test_many_rows_at_once_are_taken_in_as_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in order: to sort a load once more takes as long as to load it, and as much memory."""
    monkeypatch.setattr(collected, "BESIDE_ROWS_MAX", 10)
    rows, sorted_rows = Collected(1, GUARDS), list[int]()
    sort = collected.sort_parts
    monkeypatch.setattr(
        collected, "sort_parts", lambda parts: (sorted_rows.append(parts[0].shape[1]), sort(parts))[1]
    )
    rows.add(block(dict.fromkeys(range(1000), 1)), SINCE)
    assert (rows._rows_waiting, rows._trace.rows, sorted_rows) == (0, 1000, [])
    rows.add(block({7: -1, 8: 1}, 1), np.array([2 << SHIFT]))
    rows.add(block(dict.fromkeys(range(7, 20), 1), 2), np.array([3 << SHIFT]))
    rows.add(block(dict.fromkeys(range(100), 1), 3), np.array([4 << SHIFT]))
    assert (rows._rows_waiting, sorted_rows) == (0, [15]), "but for those that waited"
    assert rows._trace.since.tolist() == [4 << SHIFT]
    assert read(rows) == sums(
        dict.fromkeys(range(1000), 1),
        {7: -1, 8: 1},
        dict.fromkeys(range(7, 20), 1),
        dict.fromkeys(range(100), 1),
    )


def test_equal_rows_of_several_changes_become_one() -> None:
    """Memory follows the rows of the collection, and not how often they have changed."""
    rows = Collected(1, GUARDS)
    for epoch in range(20_000):
        rows.add(block({1: 1 if epoch % 2 else -1}, epoch), np.array([(epoch + 1) << SHIFT]))
        rows.settle_many()
    assert rows.rows <= collected.BESIDE_ROWS_MAX + 1


@pytest.mark.parametrize("is_summed", [True, False])
def test_who_reads_after_each_change_does_not_go_through_all_that_wait(is_summed: bool) -> None:
    """A reader of each epoch would else pay for each change thousands of times."""
    rows, known = Collected(1, GUARDS), dict[int, int]()
    if not is_summed:  # what waits alone leaves 64 bits, all rows together do not
        rows.add(block({9: -(1 << 63) + 1}), SINCE)
        rows.settle()
        for _ in range(2):
            rows.add(block({9: (1 << 63) - 1}), SINCE)
        known = {9: (1 << 63) - 1}
    for epoch in range(200):
        change = {epoch % 3: 1 if epoch % 2 else -1}
        rows.add(block(change, epoch), np.array([(epoch + 1) << SHIFT]))
        known = sums(known, change)
        assert read(rows) == known
        assert len(rows._waiting) <= collected.PARTS_READ_MAX
    assert rows._rows_waiting == sum(part.shape[1] for part in rows._waiting)
    if is_summed:
        assert rows.rows <= 3 + collected.PARTS_READ_MAX
        rows.settle()
        assert read(rows) == known


def test_words_of_later_epochs_and_a_later_anchor() -> None:
    rows = Collected(1, GUARDS)
    rows.add(block({5: 1}, 3), np.array([4 << SHIFT]))
    rows.rebase(Rebase(4, SHIFT))
    rows.add(block({5: 1, 6: 1}, 0), np.array([1 << SHIFT]))
    rows.settle()
    assert read(rows) == {5: 2, 6: 1}
    assert rows._trace.since.tolist() == [1 << SHIFT]


def test_all_words_are_shown_whether_they_wait_or_not() -> None:
    rows, seen = Collected(1, GUARDS), Seen()
    rows.add(block({5: 1}), SINCE)
    rows.settle()
    rows.add(block({6: 1, 7: -1}), SINCE)
    rows.symbols(Mark([seen]))
    assert seen.words == {5, 6, 7}


def test_a_multiplicity_beyond_64_bits_is_said_with_its_row() -> None:
    rows = Collected(1, GUARDS)
    rows.show = lambda words: f"row {words[0]}"
    for _ in range(2):
        rows.add(block({5: (1 << 63) - 1}), SINCE)
    with pytest.raises(MultiplicityOverflowError, match="row 5"):
        rows.settle()


def test_what_was_given_is_not_written_to() -> None:
    """Readers of changes have the same arrays."""
    rows, words = Collected(1, GUARDS), block({5: 1}, 3)
    rows.add(words, np.array([9 << SHIFT]))
    rows.settle()
    assert rows_of(words) == [(5, 3 << SHIFT, 1)]


def test_words_of_rows_that_cancel_while_they_wait_are_not_shown() -> None:
    rows, seen = Collected(1, GUARDS), Seen()
    for epoch in range(100):
        change = {1_000 + epoch: 1} | ({999 + epoch: -1} if epoch else {})
        rows.add(block(change, epoch), np.array([(epoch + 1) << SHIFT]))
    rows.symbols(Mark([seen]))
    assert seen.words == {1_099}
    assert read(rows) == {1_099: 1}


def test_multiplicities_that_could_leave_64_bits_wait_on_while_words_are_shown() -> None:
    """Together they fit: what is wrong with a part of them is no reason to change what is read."""
    rows, seen = Collected(1, GUARDS), Seen()
    for diff in (2**62, 2**62, -(2**62)):
        rows.add(block({5: diff}), SINCE)
    rows.symbols(Mark([seen]))
    assert seen.words == {5} and read(rows) == {5: 2**62}
