"""Which gate opens next, and what may still come behind it; twins on tuples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.kernels.regions.gates import frontier_behind, keep_all, next_gate
from differential.kernels.regions.layout import (
    FAR,
    HEAD_IS_FULL,
    K_GATE,
    K_JOIN,
    KEEPS_ANSWERS,
    KEEPS_ROWS,
    P_ANSWERS,
    P_HELD,
    P_KEEPS,
    P_KIND,
    P_LEVELS,
    P_PENDING,
    P_PLACES,
    P_SLOT,
    P_TRACE,
    S_LEAST,
    SLOT,
    STATE,
    STEP,
    T_INSERTED,
    T_ROOM,
    X_NOW,
    X_ROWS,
    X_SLOT,
)
from differential.regions.traces import Traces
from differential.trace.trace import Trace
from progress import ROOT, TimeCode, TimeLayout

LAYOUT = TimeLayout((4, 3, 3))
FIELDS = np.array([[*LAYOUT.shifts], [(1 << bits) - 1 for bits in LAYOUT.level_bits]], np.int64)
SHAPES = [ROOT.loop(), ROOT.loop().loop()]
CODES = [TimeCode(LAYOUT, shape) for shape in SHAPES]

Gate = tuple[tuple[int, ...], tuple[int, ...]]
"""Its time, and its places."""


def _gates() -> st.SearchStrategy[list[Gate]]:
    """Of a loop with a gate at place 0, an inner loop at place 1 with two gates, a gate at place 2, and an
    inner loop at place 3 with one; steps are in any order.
    """
    counter = st.integers(0, 2)
    times = [
        st.tuples(counter, counter),
        st.tuples(counter, counter, counter),
        st.tuples(counter, counter, counter),
        st.tuples(counter, counter),
        st.tuples(counter, counter, counter),
    ]
    places = [(0,), (1, 0), (1, 1), (2,), (3, 0)]
    return st.tuples(*times).flatmap(lambda found: st.permutations(list(zip(found, places, strict=True))))


def _key(gate: Gate) -> tuple[int, ...]:
    """Epoch, then counter and place of each loop, outermost first."""
    (epoch, *counters), places = gate
    return (epoch, *itertools.chain.from_iterable(zip(counters, places, strict=True)))


def _tables(gates: list[Gate]) -> tuple[np.ndarray, np.ndarray]:
    steps, slots = np.zeros((len(gates) + 1, STEP), np.int64), np.zeros((len(gates) + 1, SLOT), np.int64)
    for number, (time, places) in enumerate(gates):
        line = steps[number]
        line[P_KIND], line[P_SLOT], line[P_PENDING], line[P_HELD] = K_GATE, number, -1, FAR
        line[P_LEVELS] = len(places)
        line[P_PLACES : P_PLACES + len(places)] = places
        slots[number, S_LEAST] = CODES[len(places) - 1].pack(time)
    # Rows of a join wait for no time.
    steps[-1, P_KIND], steps[-1, P_SLOT], slots[-1, S_LEAST] = K_JOIN, len(gates), 0
    return steps, slots


@given(_gates())
def test_next_is_the_first_by_epoch_and_then_by_counter_and_place(gates: list[Gate]) -> None:
    steps, slots = _tables(gates)
    state = np.zeros(STATE, np.int64)
    chosen = int(next_gate(steps, slots, FIELDS, state, FAR))
    assert _key(gates[chosen]) == min(map(_key, gates))
    assert state[X_NOW] == slots[chosen, S_LEAST]


@given(_gates(), st.integers(0, 3))
def test_next_is_none_at_or_behind_the_bound(gates: list[Gate], epoch: int) -> None:
    steps, slots = _tables(gates)
    bound = CODES[0].pack((epoch, 0))
    chosen = int(next_gate(steps, slots, FIELDS, np.zeros(STATE, np.int64), bound))
    open_ = [gate for gate in gates if gate[0][0] < epoch]
    assert chosen == -1 if not open_ else gates[chosen] == min(open_, key=_key)


def test_next_counts_what_is_pending_and_what_is_kept_elsewhere() -> None:
    steps, slots = _tables([((1, 0), (0,)), ((1, 1), (2,))])
    slots = np.concatenate([slots, np.zeros((1, SLOT), np.int64)])
    pending = len(slots) - 1
    steps[1, P_PENDING], slots[pending, S_LEAST] = pending, CODES[0].pack((0, 3))
    state = np.zeros(STATE, np.int64)
    assert next_gate(steps, slots, FIELDS, state, FAR) == 1
    assert state[X_NOW] == CODES[0].pack((0, 3))
    steps[0, P_HELD] = CODES[0].pack((0, 2))
    assert next_gate(steps, slots, FIELDS, state, FAR) == 0


@given(st.integers(1, 2).flatmap(lambda depth: st.tuples(*[st.integers(0, 2)] * (depth + 1))))
def test_behind_is_exactly_what_is_later_in_order(time: tuple[int, ...]) -> None:
    """A time is beyond the frontier if and only if it is ≥ some time that comes later in lexicographic order;
    so what is not is complete: nothing later leads there.
    """
    code = CODES[len(time) - 2]
    shape = SHAPES[len(time) - 2]
    frontier = [
        code.unpack(word) for word in frontier_behind(code.pack(time), len(time) - 1, FIELDS).tolist()
    ]
    every = list(itertools.product(range(4), repeat=len(time)))
    for other in every:
        beyond = any(shape.less_equal(bound, other) for bound in frontier)
        assert beyond == any(later > time and shape.less_equal(later, other) for later in every)
    for one, other in itertools.permutations(frontier, 2):
        assert not shape.less_equal(one, other), "an antichain"


def test_behind_the_last_value_of_a_counter_only_outer_ones_go_on() -> None:
    time = CODES[0].pack((1, FIELDS[1, 1]))
    assert frontier_behind(time, 1, FIELDS).tolist() == [CODES[0].pack((2, 0))]


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
