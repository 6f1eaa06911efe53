"""reduce_sums.py: what has to be said at a time follows from the sums at its corners.

Right at every time, of rows that come to a reduce alone, compacted at any moment: `operators/test_reduce.py`.

meaning_*   of arrangements, whose rows others compact; of many times of one key; of large numbers
kept_*      is nothing that was said
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import advanced
from reference.words import Row, accumulated, as_words, beyond, closure_of, reduced, rows_of
from strategies_words import CODES, RandomHistory

from differential.columns.float_words import float_to_word
from differential.kernels.history.times import earlier_time
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums.accumulated import COUNT as COUNT_OF
from differential.kernels.sums.accumulated import MEAN, TOTAL
from differential.kernels.sums.components import WHOLE_LIMBS
from differential.operators.reduce import Accumulation, Aggregates, ReduceMachine
from differential.trace import run as run_module
from differential.trace import trace as trace_module
from differential.trace.shared import SharedTrace

NOTHING = np.empty(0, np.int64)
SUMS: dict[str, tuple[int, Aggregates | Accumulation]] = {
    "count": (0, Aggregates((("count", 0),))),
    "distinct": (0, Aggregates(())),
    "keys": (1, Aggregates(())),
    "sum": (1, Accumulation(((COUNT_OF, 0, -1, 0, 0), (TOTAL, 1, -1, 0, 0)), 3, 1)),
    "mean": (1, Accumulation(((MEAN, 1, 0, WHOLE_LIMBS, 0),), 3, 1)),
}


def _plain(rows: dict[Row, int], kind: str) -> dict[Row, int]:
    if kind == "count":
        return reduced(rows, 1, [("count", 0)])
    if kind == "distinct":
        return reduced(rows, 1, [])
    found: dict[Row, int] = {}
    for key in {row[:1] for row in rows}:
        if kind == "keys":
            if sum(count for row, count in rows.items() if row[:1] == key) > 0:
                found[key] = 1
            continue
        there, low, high = (rows.get((*key, component), 0) for component in range(3))
        total = low + (high << 32)
        if there:
            found[(*key, float_to_word(total / there)) if kind == "mean" else (*key, there, total)] = 1
    return found


@given(st.sampled_from([1, 2, 3]), st.data())
def test_no_corner_is_before_the_time_one_step_earlier(depth: int, data: st.DataObject) -> None:
    code = CODES[depth]
    time = data.draw(st.tuples(*[st.integers(0, 3)] * depth))
    assert code.unpack(earlier_time(code.pack(time), code.guards)) == tuple(max(0, at - 1) for at in time)


def _steps(
    kind: str, depth: int, rng: random.Random, rows: int, compacts: bool, diffs: list[int] | None
) -> None:
    """A reduce of an arrangement and one of its own rows: both are right, and, while nothing is compacted,
    wait for the same."""
    guards, (vw, aggregate) = CODES[depth].guards, SUMS[kind]
    history = RandomHistory(rng, depth, 1 + vw)
    history.least = 0
    history.diffs = history.diffs if diffs is None else diffs
    trace = SharedTrace(1, vw, guards)
    reader = trace.read("reduce", by_position=False)
    join = trace.read("join", by_position=True)
    shared = ReduceMachine(1, vw, guards, aggregate, (trace, reader), None)
    alone = ReduceMachine(1, vw, guards, aggregate)
    sent: list[Row] = []
    for step in range(8):
        words = sort_consolidate(history.next_rows(rows))
        if words.shape[1]:
            trace.add(words)
            shared.recv(0, [words])
            alone.recv(0, [words])
        history.rise() if step < 7 else history.finish()
        frontier = history.frontier
        mine = rows_of(advanced(shared, frontier))
        sent += mine
        assert mine == rows_of(advanced(alone, frontier))
        if not compacts:
            assert rows_of(shared._pending._near) == rows_of(alone._pending._near)
        if rng.random() < 0.6:
            join.accept(trace.sequence)
        if rng.random() < 0.6:
            join.set_hold(frontier)
        if compacts and rng.random() < 0.5:
            rng.choice([trace.compact, trace.freeze_head, alone.input.compact])()
        shared.check_invariants()
        for time in closure_of({row[-2] for row in history.rows}, guards):
            if not beyond(time, frontier, guards):
                told = accumulated(history.rows, time, guards)
                assert accumulated(sent, time, guards) == _plain(told, kind)
    assert shared.output.rows == alone.output.rows == 0, "nothing of what was said is kept"


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", SUMS)
def test_meaning_of_an_arrangement(
    kind: str, depth: int, compacts: bool, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 8)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 10)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 10)
    if not compacts:
        monkeypatch.setattr(trace_module.Trace, "_begin_merges", lambda trace: None)
    for trial in range(4 * effort):
        _steps(kind, depth, random.Random(f"{seed} {trial}"), 6, compacts, None)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("kind", ["count", "distinct", "keys"])
def test_meaning_of_numbers_that_nearly_leave_a_word(kind: str, depth: int, seed: int, effort: int) -> None:
    """Ten of them fit, and the sums of classes do not fit the bits in which they may be added unseen."""
    for trial in range(2 * effort):
        _steps(kind, depth, random.Random(f"{seed} {trial}"), 3, True, [2**58, -(2**58), 2**58 + 1, 1])


@pytest.mark.parametrize("kind", ["count", "distinct"])
def test_meaning_of_a_key_with_more_later_times_than_are_noted(kind: str) -> None:
    """Ten rows at (9 - i, i) are later than what comes in at (0, 0), at ten times."""
    code, (vw, aggregate) = CODES[3], SUMS[kind]
    machine = ReduceMachine(1, vw, code.guards, aggregate)
    rows = [(7, code.pack((0, 9 - i, i)), 1) for i in range(10)]
    machine.recv(0, [as_words(rows, 3)])
    sent = rows_of(advanced(machine, np.array([code.pack((1, 0, 0))])))
    new = [(7, code.pack((1, 0, 0)), -3)]
    machine.recv(0, [as_words(new, 3)])
    sent += rows_of(
        advanced(machine, np.array([code.pack(time) for time in [(1, 0, 1), (1, 1, 0), (2, 0, 0)]]))
    )
    waiting = [code.unpack(word) for word in machine.needs().tolist()]
    assert waiting == [(1, i, 9 - i) for i in range(10)]
    sent += rows_of(advanced(machine, NOTHING))
    for time in closure_of({row[1] for row in [*rows, *new]}, code.guards):
        told = accumulated([*rows, *new], time, code.guards)
        assert accumulated(sent, time, code.guards) == _plain(told, kind), code.unpack(time)


def test_meaning_of_rows_that_cancel_for_a_seed_and_not_for_its_corners() -> None:
    """The example of the module, of a distinct: without the third row from the last nothing is said at
    (2, 5, 1)."""
    code = CODES[3]
    rows = [(1, code.pack(time), diff) for time, diff in [((1, 5, 0), 1), ((1, 0, 1), -1), ((2, 5, 0), -1)]]
    machine = ReduceMachine(1, 0, code.guards, Aggregates(()))
    machine.recv(0, [as_words(rows, 3)])
    sent = rows_of(advanced(machine, np.array([code.pack(time) for time in [(2, 3, 1), (3, 0, 0)]])))
    machine.recv(0, [as_words([(1, code.pack((2, 3, 1)), 2)], 3)])
    rows.append((1, code.pack((2, 3, 1)), 2))
    sent += rows_of(advanced(machine, np.array([code.pack(time) for time in [(2, 4, 1), (3, 0, 0)]])))
    sent += rows_of(advanced(machine, NOTHING))
    for time in closure_of({row[1] for row in rows}, code.guards):
        told = accumulated(rows, time, code.guards)
        assert accumulated(sent, time, code.guards) == _plain(told, "distinct"), code.unpack(time)


def test_kept_is_one_row_for_a_key_that_has_changed_a_thousand_times() -> None:
    machine = ReduceMachine(1, 0, CODES[1].guards, Aggregates((("count", 0),)))
    for epoch in range(1000):
        machine.recv(0, [as_words([(3, epoch, 1)], 3)])
        said = rows_of(advanced(machine, np.array([epoch + 1])))
        assert said == sorted([(3, epoch, epoch, -1)] * (epoch > 0) + [(3, epoch + 1, epoch, 1)])
    machine.input.compact()
    assert (machine.input.rows, machine.output.rows) == (1, 0)
