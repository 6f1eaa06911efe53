"""Which barrier opens next, and what may still come behind it; twins on tuples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.compiled_loops.slots import Slots
from differential.compiled_loops.traces import Traces
from differential.kernels.compiled_loops.barriers import find_next, frontier_behind, keep_all, next_barrier
from differential.kernels.compiled_loops.layout import (
    FAR,
    HEAD_IS_FULL,
    K_BARRIER,
    K_JOIN,
    KEEPS_ANSWERS,
    KEEPS_ROWS,
    P_ANSWERS,
    P_KEEPS,
    P_KIND,
    P_LEVELS,
    P_NEXT,
    P_PENDING,
    P_PLACES,
    P_SLOT,
    P_TRACE,
    S_NEXT,
    SLOT,
    STATE,
    STEP,
    T_INSERTED,
    T_ROOM,
    X_BOUND,
    X_COUNTERS,
    X_FROM,
    X_NOW,
    X_ROWS,
    X_SLOT,
)
from differential.trace.trace import Trace
from progress import ROOT, TimeCode, TimeLayout

LAYOUT = TimeLayout((4, 3, 3))
FIELDS = np.array([[*LAYOUT.shifts], [(1 << bits) - 1 for bits in LAYOUT.level_bits]], np.int64)
SHAPES = [ROOT.loop(), ROOT.loop().loop()]
CODES = [TimeCode(LAYOUT, shape) for shape in SHAPES]

Barrier = tuple[tuple[int, ...], tuple[int, ...]]
"""Its counters, and its places."""


def _barriers() -> st.SearchStrategy[list[Barrier]]:
    """Of a loop with a barrier at place 0, an inner loop at place 1 with two barriers, a barrier at place 2,
    and an inner loop at place 3 with one; steps are in any order.
    """
    counter = st.integers(0, 2)
    counters = [
        st.tuples(counter),
        st.tuples(counter, counter),
        st.tuples(counter, counter),
        st.tuples(counter),
        st.tuples(counter, counter),
    ]
    places = [(0,), (1, 0), (1, 1), (2,), (3, 0)]
    return st.tuples(*counters).flatmap(lambda found: st.permutations(list(zip(found, places, strict=True))))


def _key(barrier: Barrier) -> tuple[int, ...]:
    """Counter and place of each loop, outermost first."""
    return tuple(itertools.chain.from_iterable(zip(*barrier, strict=True)))


def _word(counters: tuple[int, ...], epoch: int = 0) -> int:
    return CODES[len(counters) - 1].pack((epoch, *counters))


def _tables(barriers: list[Barrier]) -> tuple[np.ndarray, np.ndarray]:
    steps = np.zeros((len(barriers) + 1, STEP), np.int64)
    slots = Slots((1 << LAYOUT.shifts[0]) - 1)
    slots.bound = _word((0,), 1)
    for number, (counters, places) in enumerate(barriers):
        line = steps[number]
        line[P_KIND], line[P_SLOT], line[P_PENDING], line[P_NEXT] = K_BARRIER, number, -1, FAR
        line[P_LEVELS] = len(places)
        line[P_PLACES : P_PLACES + len(places)] = places
        slots.put(slots.add(2), np.array([[_word(counters)], [1]], np.int64))
    # Rows of a join wait for no time.
    slots.put(slots.add(2), np.array([[0], [1]], np.int64))
    steps[-1, P_KIND], steps[-1, P_SLOT] = K_JOIN, len(barriers)
    return steps, slots.table


@given(_barriers())
def test_next_is_the_first_by_counter_and_place(barriers: list[Barrier]) -> None:
    steps, slots = _tables(barriers)
    state = np.zeros(STATE, np.int64)
    chosen = int(next_barrier(steps, slots, FIELDS, state))
    assert _key(barriers[chosen]) == min(map(_key, barriers))
    assert state[X_NOW] == _word(barriers[chosen][0])


def test_next_is_none_where_nothing_waits() -> None:
    steps, slots = _tables([((1,), (0,)), ((1,), (2,))])
    slots[:2, S_NEXT] = FAR
    assert next_barrier(steps, slots, FIELDS, np.zeros(STATE, np.int64)) == -1


def test_next_counts_what_is_pending_and_what_is_kept_elsewhere() -> None:
    steps, slots = _tables([((4,), (0,)), ((4,), (2,))])
    slots = np.concatenate([slots, np.zeros((1, SLOT), np.int64)])
    pending = len(slots) - 1
    steps[1, P_PENDING], slots[pending, S_NEXT] = pending, _word((3,))
    state = np.zeros(STATE, np.int64)
    assert next_barrier(steps, slots, FIELDS, state) == 1
    assert state[X_NOW] == _word((3,))
    steps[0, P_NEXT] = _word((2,))
    assert next_barrier(steps, slots, FIELDS, state) == 0


WAITING = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)
"""Epoch and counter."""


@given(WAITING, WAITING, st.integers(0, 4))
def test_when_epochs_close_a_barrier_has_the_least_counters_in_them(
    rows: list[tuple[int, int]], pended: list[tuple[int, int]], closed: int
) -> None:
    steps, slots = np.zeros((1, STEP), np.int64), Slots((1 << LAYOUT.shifts[0]) - 1)
    times = [[_word(counters, epoch) for epoch, *counters in each] for each in (rows, pended)]
    slots.put(slots.add(2), np.array([times[0], [1] * len(rows)], np.int64))
    slots.put(slots.add(2), np.array([[7] * len(pended), times[1]], np.int64), -1)
    steps[0, P_KIND], steps[0, P_PENDING] = K_BARRIER, 1
    state = np.zeros(STATE, np.int64)
    state[X_BOUND], state[X_COUNTERS] = _word((0,), closed), (1 << LAYOUT.shifts[0]) - 1
    find_next(steps, slots.table, state)
    for slot, waiting in enumerate((rows, pended)):
        wanted = min([_word((counter,)) for epoch, counter in waiting if epoch < closed], default=FAR)
        assert slots.table[slot, S_NEXT] == wanted


@given(
    st.integers(1, 2).flatmap(lambda depth: st.tuples(*[st.integers(0, 2)] * depth)),
    st.integers(0, 1),
    st.integers(1, 3),
)
def test_behind_is_exactly_what_is_later_in_order(counters: tuple[int, ...], start: int, epochs: int) -> None:
    """A time is beyond the frontier if and only if it is ≥ some time that may still come: one of an epoch of
    the stretch whose counters are later in lexicographic order, or any of an epoch behind it.
    """
    code, shape, bound = CODES[len(counters) - 1], SHAPES[len(counters) - 1], start + epochs
    state = np.zeros(STATE, np.int64)
    state[[X_NOW, X_FROM, X_BOUND]] = _word(counters), _word((0,), start), _word((0,), bound)
    frontier = [code.unpack(word) for word in frontier_behind(len(counters), FIELDS, state).tolist()]
    every = list(itertools.product(range(6), *[range(4)] * len(counters)))
    to_come = [time for time in every if time[0] >= bound or (time[0] >= start and time[1:] > counters)]
    for other in every:
        beyond = any(shape.less_equal(least, other) for least in frontier)
        assert beyond == any(shape.less_equal(later, other) for later in to_come)
    for one, other in itertools.permutations(frontier, 2):
        assert not shape.less_equal(one, other), "an antichain"


def test_behind_the_last_value_of_a_counter_only_outer_ones_and_epochs_go_on() -> None:
    state = np.zeros(STATE, np.int64)
    state[[X_NOW, X_BOUND]] = _word((int(FIELDS[1, 1]),)), _word((0,), 2)
    assert frontier_behind(1, FIELDS, state).tolist() == [_word((0,), 2)]


def test_behind_the_last_of_all_epochs_the_last_word_stands_for_what_is_further_ahead() -> None:
    state = np.zeros(STATE, np.int64)
    state[[X_NOW, X_BOUND]] = _word((1,)), LAYOUT.limit
    assert frontier_behind(1, FIELDS, state).tolist() == [_word((2,)), LAYOUT.limit]


@pytest.mark.parametrize(("rows", "answers"), [(2, 1), (1, 2), (2, 2), (1, 1)])
def test_rows_and_answers_are_kept_both_or_neither(rows: int, answers: int) -> None:
    kept, said = Trace(1, 1, CODES[0].guards), Trace(1, 1, CODES[0].guards)
    traces, state, steps = Traces(), np.zeros(STATE, np.int64), np.zeros((1, STEP), np.int64)
    line = steps[0]
    line[P_TRACE], line[P_ANSWERS] = traces.number(kept, is_ours=True), traces.number(said, is_ours=True)
    line[P_KEEPS] = KEEPS_ROWS | KEEPS_ANSWERS
    traces.lend()
    traces.table[:, T_ROOM] = 1
    words = [np.array([[*range(n)], [0] * n, [0] * n, [1] * n], np.int64) for n in (rows, answers)]
    why = keep_all(0, steps, *words, traces.table, state)
    assert why == (HEAD_IS_FULL if rows + answers > 2 else 0)
    if why:
        full = line[P_TRACE] if rows > 1 else line[P_ANSWERS]
        assert (state[X_SLOT], state[X_ROWS]) == (full, 2)
    assert traces.table[:, T_INSERTED].tolist() == ([0, 0] if why else [1, 1])
