"""Reduces of arrangements, without a dataflow, against reduces of their own rows. In dataflows:
`test_arrange.py`.

same_*      corrections at every complete time; pending times, too, while nothing was compacted
answers_*   what is shared of them
holds_*     what it may still ask
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from arranged_flows import REDUCES
from machines import advanced
from reference.words import Row, accumulated, as_words, beyond, closure_of, rows_of
from strategies_words import CODES, RandomHistory

from differential.kernels.rows.sort import sort_consolidate
from differential.operators.reduce import Aggregates, ReduceMachine
from differential.trace import run as run_module
from differential.trace import trace as trace_module
from differential.trace.shared import SharedTrace

NOTHING = np.empty(0, np.int64)


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", REDUCES)
def test_same_as_a_reduce_of_its_own_rows(
    kind: str, depth: int, compacts: bool, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the inserts is in the table before the reduce is told; others hold compaction back, or
    not."""
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 8)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 10)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 10)
    if not compacts:
        monkeypatch.setattr(trace_module.Trace, "_begin_merges", lambda trace: None)
    guards = CODES[depth].guards
    for trial in range(6 * effort):
        rng = random.Random(f"{seed} {trial}")
        history = RandomHistory(rng, depth, 2)
        trace = SharedTrace(1, 1, guards)
        reader = trace.read("reduce", by_position=False)
        join = trace.read("join", by_position=True)
        shared = ReduceMachine(1, 1, guards, REDUCES[kind], (trace, reader), None)
        alone = ReduceMachine(1, 1, guards, REDUCES[kind])
        sent: list[Row] = []
        for step in range(8):
            words = sort_consolidate(history.next_rows())
            if words.shape[1]:
                trace.add(words)
                shared.recv(0, [words])
                alone.recv(0, [words])
            history.rise() if step < 7 else history.finish()
            frontier = history.frontier
            mine = rows_of(advanced(shared, frontier))
            others = rows_of(advanced(alone, frontier))
            sent += mine
            assert not any(beyond(row[-2], frontier, guards) for row in mine)
            if not compacts:
                assert mine == others
                assert shared.needs().tolist() == alone.needs().tolist()
                assert rows_of(shared._pending._near) == rows_of(alone._pending._near)
            if rng.random() < 0.6:
                join.accept(trace.sequence)
            if rng.random() < 0.6:
                join.set_hold(frontier)
            if compacts and rng.random() < 0.5:
                rng.choice([trace.compact, trace.freeze_head, shared.output.compact])()
            shared.check_invariants()
            for time in closure_of({row[-2] for row in history.rows}, guards):
                if not beyond(time, frontier, guards):
                    told = accumulated(history.rows, time, guards)
                    assert accumulated(sent, time, guards) == _plain(told, kind)


def _plain(rows: dict[Row, int], kind: str) -> dict[Row, int]:
    from reference.words import reduced

    if kind == "least":
        positive = {row: 1 for row, count in rows.items() if count > 0}
        return reduced(positive, 1, [("min", 0)])
    return reduced(rows, 1, [] if kind == "distinct" else [(kind, 0)])


def test_same_although_what_is_complete_was_advanced_beyond_the_frontier() -> None:
    """7 came at (0, 3), behind 3, and is at (5, 3) after compaction; 3 goes at (5, 1). So at (5, 3) 7 is the
    answer, which nothing but that row tells.
    """
    code = CODES[2]
    trace = SharedTrace(1, 1, code.guards)
    reader = trace.read("reduce", by_position=False)
    machine = ReduceMachine(1, 1, code.guards, REDUCES["min"], (trace, reader), None)
    first, gone = code.pack((0, 0)), code.pack((5, 1))
    sent: list[list[Row]] = []
    for rows, frontier in [
        ([(1, 3, first, 1), (1, 7, code.pack((0, 3)), 1)], np.array([code.pack((5, 0))])),
        ([(1, 3, gone, -1)], np.array([code.pack((5, 2))])),
    ]:
        words = as_words(rows, 4)
        trace.add(words)
        machine.recv(0, [words])
        sent.append(rows_of(advanced(machine, frontier)))
        trace.compact()
    assert sent == [[(1, 3, first, 1)], [(1, 3, gone, -1)]]
    assert rows_of(advanced(machine, NOTHING)) == [(1, 7, code.pack((5, 3)), 1)]


def _machine() -> tuple[ReduceMachine, SharedTrace, SharedTrace]:
    guards = CODES[1].guards
    trace, answers = SharedTrace(1, 1, guards), SharedTrace(1, 1, guards)
    reader = trace.read("reduce", by_position=False)
    return (
        ReduceMachine(1, 1, guards, Aggregates((("min", 0),)), (trace, reader), answers),
        trace,
        answers,
    )


def test_answers_that_are_shared_are_left_to_be_numbered_by_who_sends_them() -> None:
    machine, trace, answers = _machine()
    words = as_words([(1, 5, 0, 1)], 4)
    trace.add(words)
    machine.recv(0, [words])
    corrections = advanced(machine, np.array([1]))
    assert rows_of(corrections) == [(1, 5, 0, 1)] and answers.sequence == answers.rows == 0
    answers.add(corrections)
    more = as_words([(1, 3, 1, 1)], 4)
    trace.add(more)
    machine.recv(0, [more])
    assert rows_of(advanced(machine, np.array([2]))) == [(1, 3, 1, 1), (1, 5, 1, -1)]


def test_holds_follow_the_frontier_on_both_sides_and_end_with_it() -> None:
    machine, trace, answers = _machine()
    other = answers.read("join", by_position=True)
    machine.set_since(np.array([4]))
    assert (trace.since.tolist(), answers.since.tolist()) == ([4], [0])
    other.set_hold(np.array([3]))
    assert answers.since.tolist() == [3]
    advanced(machine, NOTHING)
    assert (trace.since.tolist(), answers.since.tolist()) == ([], [3]), "the join goes on"
    assert machine.traces == [answers]
