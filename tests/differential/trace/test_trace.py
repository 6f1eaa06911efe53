"""A trace accumulates to what was inserted, at every time that may still be asked about.

against_*   random inserts, merges and compactions, against a list of rows
sizes_*     what it costs: few runs, no growth under a sliding window
"""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from reference.words import accumulated, as_words, closure_of, less_equal, lub, rows_of
from strategies_words import CODES, RandomHistory, antichain
from words_seen import Seen

from differential.kernels.rows.sort import sort_consolidate
from differential.trace import run as run_module
from differential.trace import trace as trace_module
from differential.trace.trace import GROWTH, Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark


def _something_else(trace: Trace, rng: random.Random) -> None:
    """What may happen to a trace between two inserts."""
    chosen = rng.randrange(5)
    if chosen == 4:
        trace.sum_up(rng.choice([1, 20, 1000]))
    elif chosen == 0:
        trace.freeze_head()
    elif chosen == 1:
        trace.compact()
    elif chosen == 2:
        trace.effort(9)
        if rng.random() < 0.3:
            trace.rest()
        while rng.random() < 0.9 and trace.settle(200):
            pass


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("words", [0, 1, 2])
def test_against_all_rows_at_every_later_time(
    depth: int, words: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 16)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 20)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 20)
    guards = CODES[depth].guards
    for trial in range(8 * effort):
        rng = random.Random(f"{seed} {trial}")
        history = RandomHistory(rng, depth, words)
        trace = Trace(words, 0, guards)
        for _ in range(12):
            trace.insert(sort_consolidate(history.next_rows(rng.choice([1, 5, 30]))))
            history.rise()
            since = history.frontier
            trace.set_since(since)
            _something_else(trace, rng)
            trace.check_invariants()
            times = {lub(rng.choice(history.rows)[-2], int(bound), guards) for bound in since if history.rows}
            for time in closure_of(times, guards):
                assert any(less_equal(int(bound), time, guards) for bound in since)
                got = accumulated(rows_of(trace.words()), time, guards)
                assert got == accumulated(history.rows, time, guards), (seed, trial)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_against_itself_before_words_counted_from_a_later_epoch(
    depth: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 16)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 20)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 20)
    code = CODES[depth]
    shift, guards = code.layout.shifts[0], code.guards
    for trial in range(8 * effort):
        rng = random.Random(f"{seed} {trial}")
        trace, history = Trace(1, 0, guards), RandomHistory(rng, depth, 1)
        for _ in range(4):
            rows = sort_consolidate(history.next_rows(rng.choice([1, 5, 30])))
            rows[-2] &= (1 << shift + 2) - 1  # epochs 0 to 3, as they come
            trace.insert(sort_consolidate(rows))
            _something_else(trace, rng)
            epochs = rng.randrange(1, 4)
            by = Rebase(epochs, shift)
            trace.set_since(np.array([by.step]))
            _something_else(trace, rng)
            counters = [(rng.randrange(4),) * (depth - 1) for _ in range(3)]
            times = [code.pack((epoch, *rest)) for epoch in range(epochs, 5) for rest in counters]
            before = [accumulated(rows_of(trace.words()), time, guards) for time in times]
            trace.rebase(by)
            trace.check_invariants()
            moved = rows_of(trace.words())
            assert [accumulated(moved, by.word(time), guards) for time in times] == before, (seed, trial)
            assert trace.since.tolist() == [0]


def _check_sizes(trace: Trace) -> None:
    """Every run is larger than the next newer one by the factor, unless one of the two is being merged."""
    sizes = [run.rows for run in trace._runs]
    for index, (older, newer) in enumerate(pairwise(sizes)):
        under_way = {index - 1, index, index + 1} & trace._merges.keys()
        assert older >= GROWTH * newer or under_way, (sizes, trace._merges.keys())


def test_anchors_that_move_faster_than_rows_come_in_leave_few_runs() -> None:
    """Merges that began again at each move were never done, so there was a run more for each."""
    code = CODES[2]
    by = Rebase(1, code.layout.shifts[0])
    trace = Trace(1, 1, code.guards)
    total = 0
    for move in range(200):
        words = np.array([[move % 50, 50 + move], [move, move], [code.pack((1, 0))] * 2, [1, 1]])
        total += 2
        trace.insert(sort_consolidate(words))
        trace.set_since(np.array([by.step]))
        trace.rebase(by)
        trace.check_invariants()
        _check_sizes(trace)
        assert not trace._merges
        assert len(trace._runs) <= 9  # 2 ** 9 is more than all rows
    assert trace.rows == total == trace.words()[-1].sum()


def test_since_that_was_noted_in_parts_moves_with_the_words() -> None:
    code = CODES[2]
    trace = Trace(1, 0, code.guards)
    trace.set_since(np.array([code.pack((5, 0))]), np.array([code.pack((4, 3))]))
    trace.rebase(Rebase(3, code.fields[0][0]))
    assert sorted(trace.since.tolist()) == sorted([code.pack((2, 0)), code.pack((1, 3))])


def test_sizes_of_runs_fall_geometrically_and_nothing_is_lost() -> None:
    rng = np.random.default_rng(5)
    trace = Trace(1, 1, CODES[2].guards)
    for count in [1, 20, 3000, 700, 700, 9000, 9000, 9000, 40, 20_000, *[600] * 40]:
        words = rng.integers(0, 500, (4, count))
        words[2], words[3] = 0, 1
        trace.insert(sort_consolidate(words))
        trace.check_invariants()
        _check_sizes(trace)
    while trace.settle(5000):
        trace.check_invariants()
        _check_sizes(trace)
    assert len(trace._runs) <= 6, "75,000 rows, each run four times as large as the next, none below 512"
    trace.compact()
    trace.check_invariants()
    assert len(trace._runs) == 1
    assert trace.accumulated().all()[3].sum() == 1 + 20 + 3000 + 1400 + 27_000 + 40 + 20_000 + 24_000


def test_merges_under_way_move_when_an_older_one_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small runs become one while two large ones behind them are being merged, too."""
    monkeypatch.setattr(trace_module, "EFFORT_PER_ROW", 0)
    trace = Trace(1, 0, CODES[1].guards)
    want = 0
    for number, count in enumerate((600, 600, 5000, 5000)):
        trace.insert(as_words([(key + 10_000 * number, 0, 1) for key in range(count)], 3))
        want += count
    assert sorted(trace._merges) == [0, 2]
    trace.settle(1400)
    assert sorted(trace._merges) == [1]
    trace.check_invariants()
    while trace.settle(1300):
        trace.check_invariants()
    assert trace.accumulated().rows == trace.rows == want


def test_merges_whose_rows_all_cancel_leave_the_others_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "EFFORT_PER_ROW", 0)
    trace = Trace(1, 0, CODES[1].guards)
    for sign in (1, -1):
        trace.insert(as_words([(key, 0, sign) for key in range(600)], 3))
    for number in (1, 2):
        trace.insert(as_words([(key + 10_000 * number, 0, 1) for key in range(5000)], 3))
    trace.settle(1300)
    assert sorted(trace._merges) == [0]
    trace.check_invariants()
    assert trace.accumulated().rows == 10_000


def _rest(trace: Trace) -> None:
    while trace.settle(500):
        trace.check_invariants()
    trace.rest()
    while trace.settle(500):
        trace.check_invariants()


@pytest.mark.parametrize("count", [70, 3_000, 40_000])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_sizes_at_rest_follow_what_is_left_when_most_is_removed(count: int, share: float) -> None:
    """Removals come at a later time, in batches of other sizes than what they remove."""
    code = CODES[2]
    rng = np.random.default_rng(count)
    trace = Trace(1, 1, code.guards)
    keys = rng.permutation(count)
    for first in range(0, count, 700):
        part = keys[first : first + 700]
        trace.insert(sort_consolidate(np.stack([part, part, 0 * part, 0 * part + 1])))
    gone = keys[: int(share * count)]
    for number, part in enumerate(np.array_split(gone, 9)):
        time = code.pack((number + 1, 0))
        trace.set_since(np.array([time]))
        trace.insert(sort_consolidate(np.stack([part, part, 0 * part + time, 0 * part - 1])))
    _rest(trace)
    left = count - len(gone)
    assert trace.accumulated().rows == left <= trace.rows <= max(2 * left, trace_module.LOOK_ROWS_MIN)


def test_sizes_at_rest_that_somebody_holds_are_looked_at_again_when_he_moves_on() -> None:
    code = CODES[1]
    trace = Trace(1, 0, code.guards)
    for epoch, sign in ((1, 1), (2, -1)):
        trace.insert(as_words([(key, code.pack((epoch,)), sign) for key in range(3_000)], 3))
    trace.set_since(np.array([code.pack((1,))]))
    _rest(trace)
    assert trace.rows == 6_000
    trace.rest()
    assert not trace.settle(500), "nothing has changed"
    trace.set_since(np.array([code.pack((2,))]))
    _rest(trace)
    assert trace.rows == 0


def test_sizes_at_rest_are_small_after_a_merge_that_knew_an_earlier_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was under way when rest came: what it keeps apart can be added up only by one more."""
    monkeypatch.setattr(trace_module, "EFFORT_PER_ROW", 0)
    code = CODES[1]
    trace = Trace(1, 0, code.guards)
    gone = code.pack((1,))
    trace.insert(as_words([(key, 0, 1) for key in range(6_000)], 3))
    trace.insert(as_words([(key, gone, -1) for key in range(6_000)], 3))
    assert trace.settle(500) and trace._merges, "one is under way"
    trace.set_since(np.array([gone]))
    trace.rest()
    while trace.settle(500):
        trace.check_invariants()
    assert trace.rows == 0


def test_sizes_at_rest_where_since_moves_faster_than_merges_are_done_once() -> None:
    """As many rows there as owed, all of them different; an epoch ends in each idle moment."""
    code = CODES[1]
    trace = Trace(1, 0, code.guards)
    trace.insert(as_words([(key, 0, 1 - 2 * (key % 2)) for key in range(20_000)], 3))
    trace.rest()
    moments = 0
    for epoch in range(1, 1_000):
        trace.set_since(np.array([code.pack((epoch,))]))
        if not trace.settle(500):
            break
        moments += 1
    assert 20_000 // 500 - 1 <= moments <= 2 * 20_000 // 500


@pytest.mark.parametrize(("diffs", "often"), [((1, -1), 1 + trace_module.SHRINKS_MAX), ((1, 1), 0)])
def test_sizes_at_rest_of_what_only_seems_to_cancel_are_looked_at_a_few_times(
    diffs: tuple[int, int], often: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows there as owed, all of them different; and few rows that come beside many that stay."""
    code = CODES[1]
    trace = Trace(1, 0, code.guards)
    trace.insert(as_words([(key, 0, diffs[key % 2]) for key in range(20_000)], 3))
    _rest(trace)
    begun: list[int] = []
    begin = Trace._merge_at

    def counting(self: Trace, index: int) -> None:
        begun.append(sum(run.rows for run in self._runs[index : index + 2]))
        begin(self, index)

    monkeypatch.setattr(Trace, "_merge_at", counting)
    for epoch in range(1, 1_000):
        trace.set_since(np.array([code.pack((epoch,))]))
        trace.insert(as_words([(30_000 + epoch, code.pack((epoch,)), diffs[epoch % 2])], 3))
        _rest(trace)
    assert len(begun) <= often, "each of some 20,000 rows"
    assert trace.accumulated().rows == 20_999


def test_sizes_do_not_grow_under_a_sliding_window() -> None:
    code = CODES[2]
    trace = Trace(1, 0, code.guards)
    largest = 0
    for epoch in range(200):
        time = code.pack((epoch, 0))
        rows = [(1000 * epoch + key, time, 1) for key in range(100)]
        rows += [(1000 * (epoch - 10) + key, time, -1) for key in range(100) if epoch >= 10]
        trace.insert(sort_consolidate(as_words(rows, 3)))
        trace.set_since(np.array([code.pack((epoch + 1, 0))]))
        largest = max(largest, trace.rows)
    assert largest < 8_000, "a thousand rows are in the window"
    trace.compact()
    assert trace.rows == 1000


def test_a_trace_whose_rows_are_all_removed_becomes_empty() -> None:
    code = CODES[2]
    trace = Trace(1, 0, code.guards)
    rows = [(key, code.pack((0, 0)), 1) for key in range(3000)]
    trace.insert(as_words(rows, 3))
    trace.insert(as_words([(key, code.pack((4, 1)), -1) for key in range(3000)], 3))
    trace.set_since(np.array([code.pack((5, 1))]))
    trace.compact()
    assert trace.rows == 0
    trace.check_invariants()


@pytest.mark.parametrize("bounds", [[[(3, 0), (0, 2)]], [[(3, 0)], [(0, 2), (4, 1)]]])
def test_who_asks_about_corners_is_kept_what_is_one_step_before(bounds: list[list[tuple[int, int]]]) -> None:
    """Of one frontier and of two; (0, 2) has no step before its first counter."""
    code = CODES[2]
    trace = Trace(1, 0, code.guards)
    trace.asks_corners = True
    for _ in range(2):
        trace.set_since(*(antichain(some, code) for some in bounds))
        assert [code.unpack(word) for word in trace.since.tolist()] == [(0, 1), (2, 0)]
    assert trace.since is trace.since, "found once"


def test_summing_up_what_came_last_leaves_one_row_of_a_key_that_changed_at_each_time() -> None:
    trace = Trace(1, 1, CODES[1].guards)
    old = as_words([(key, 0, 0, 1) for key in range(10_000)], 4)
    trace.insert(old)
    for time in range(1, 3_000):
        trace.insert(as_words([(7, time - 1, time, -1), (7, time, time, 1)], 4))
    assert trace.inserted == 10_000 + 2 * 2_999
    assert trace.rows > 14_000
    trace.set_since(np.array([3_000]))
    trace.sum_up(trace.inserted - 10_000)
    trace.check_invariants()
    assert trace._runs[0].rows >= 10_000 and trace.rows < 10_100
    found = {row[:2]: row[3] for row in rows_of(sort_consolidate(_at_once(trace.words())))}
    assert found == {(key, 2_999 if key == 7 else 0): 1 for key in range(10_000)}


def test_summing_up_leaves_a_large_run_alone_and_what_is_being_merged_with_it() -> None:
    guards = CODES[1].guards
    trace = Trace(1, 1, guards)
    trace.insert(as_words([(key, 0, 0, 1) for key in range(10_000)], 4))
    trace.insert(as_words([(key, 1, 1, 1) for key in range(6_000)], 4))
    (large, middle), merges = trace._runs.copy(), dict(trace._merges)
    assert list(merges) == [0], "of the two, and under way"
    trace.insert(as_words([(7, 2, 2, 1), (7, 2, 3, -1), (8, 2, 3, 1)], 4))
    trace.set_since(np.array([9]))
    trace.sum_up(3)
    assert trace._runs[:2] == [large, middle] and trace._merges == merges
    assert [run.rows for run in trace._runs[2:]] == [1] and rows_of(trace._runs[2].words()) == [(8, 2, 9, 1)]
    trace.sum_up(16_003)
    trace.check_invariants()
    assert len(trace._runs) == 1 and not trace._merges and trace.rows == 16_001


def _at_once(words: Int64s) -> Int64s:
    words[-2] = 0
    return words


def test_summing_up_what_cancels_leaves_nothing_and_of_a_trace_that_is_over_nothing_is_asked() -> None:
    trace = Trace(1, 1, CODES[1].guards)
    for time in range(2_000):
        trace.insert(as_words([(7, 0, time, 1 - 2 * (time % 2))], 4))
    trace.sum_up(0)
    assert trace.rows == 2_000, "who asks for no rows changes nothing"
    trace.set_since(np.array([2_000]))
    trace.sum_up(2_000)
    trace.check_invariants()
    assert trace.rows == 0
    trace.set_since(np.empty(0, np.int64))
    trace.sum_up(1)
    assert trace.rows == 0


@pytest.mark.parametrize("others", [0, 50_000])
def test_words_of_rows_that_came_last_and_cancel_are_not_shown(others: int) -> None:
    """However many rows stay as they are."""
    trace, seen = Trace(1, 1, CODES[1].guards), Seen()
    if others:
        trace.insert(as_words([(-1 - key, 0, 0, 1) for key in range(others, 0, -1)], 4))
    for time in range(1, 300):
        trace.insert(as_words([(1_000 + time, 0, time, 1)], 4))
        trace.insert(as_words([(1_000 + time, 0, time, -1)], 4))
        trace.insert(as_words([(2_000 + time, 0, time, 1)], 4))
        trace.insert(as_words([(1_999 + time, 0, time, -1)], 4) if time > 1 else as_words([], 4))
        trace.set_since(np.array([time]))
    trace.symbols(Mark([seen]))
    trace.check_invariants()
    assert {word for word in seen.words if word > 0} == {2_299}
    assert trace.rows == others + 1


def test_a_trace_that_nobody_asks_any_more_is_dropped() -> None:
    trace = Trace(1, 0, CODES[1].guards)
    trace.insert(as_words([(key, 0, 1) for key in range(3000)], 3))
    trace.set_since(np.empty(0, np.int64))
    assert trace.rows == 0
    trace.check_invariants()


def test_rows_stay_while_any_reader_looks_them_up_and_go_with_the_last() -> None:
    trace, none = Trace(1, 0, 0), np.zeros(0, np.int64)
    trace.insert(np.array([[1, 2], [0, 0], [1, 1]], np.int64))
    trace.set_since(none, np.zeros(1, np.int64))
    assert trace.rows == 2
    trace.set_since(none, none)
    assert trace.rows == 0
