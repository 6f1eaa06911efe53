"""A trace that is lent to kernels, and taken back, is one that was inserted into."""

from __future__ import annotations

import random

import numpy as np
import pytest

import differential.trace.trace as trace_module
from differential.compiled_loops import traces as traces_module
from differential.compiled_loops.traces import Traces
from differential.kernels.compiled_loops.joining import has_room, lines_of, put_into
from differential.kernels.compiled_loops.layout import (
    STATE,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import HEADER
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

GUARDS = 1 << 62


def _rows(rng: random.Random, count: int) -> Int64s:
    words = [
        [rng.randrange(50), rng.randrange(5), rng.randrange(9), rng.choice((-1, 1, 2))] for _ in range(count)
    ]
    return sort_consolidate(np.array(words, np.int64).reshape(-1, 4).T.copy())


def _total(trace: Trace) -> list[list[int]]:
    return sort_consolidate(trace.words()).T.tolist()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("head", [16, 1024])
def test_inserts_of_kernels_are_those_of_python(
    seed: int, head: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", head)
    rng = random.Random(seed)
    lent, plain = Trace(1, 1, GUARDS), Trace(1, 1, GUARDS)
    traces, state = Traces(), np.zeros(STATE, np.int64)
    other = traces.number(Trace(2, 0, GUARDS), is_ours=True)
    number = traces.number(lent, is_ours=True)
    assert traces.number(lent, is_ours=False) == number != other
    for _ in range(60):
        words = _rows(rng, rng.choice((1, 3, 12)))
        if rng.random() < 0.3:  # by Python, between two calls
            lent.insert(words)
            plain.insert(words)
            continue
        traces.lend()
        for _ in range(rng.randrange(1, 4)):
            words = _rows(rng, rng.choice((1, 3, 12)))
            if not has_room(traces.table, number, words.shape[1], state):
                assert (state[X_SLOT], state[X_ROWS]) == (number, words.shape[1])
                traces.take_back()
                assert traces.make_room(number, words.shape[1])
                traces.lend()
            put_into(traces.table, number, words)
            plain.insert(words)
            lines = lines_of(traces.table, number, 0)
            assert (
                sum(decode_words(lines, line, 4)[3].sum() for line in range(len(lines)))
                == plain.words()[3].sum()
            )
        traces.take_back()
        lent.check_invariants()
        assert _total(lent) == _total(plain)
    assert lent.rows > 0 or not _total(plain)


def test_a_small_head_is_read_in_its_new_memory_as_soon_as_it_is_lent() -> None:
    trace = Trace(1, 1, GUARDS)
    trace.insert(_rows(random.Random(0), 3))
    before = decode_words(trace.table, 0, 4)
    head, _ = trace.lend()
    assert head.shape[1] == trace_module.HEAD_ROWS_MAX
    start = head.ctypes.data
    columns = trace.table[-1, HEADER::3].tolist()
    assert all(start <= at < start + head.nbytes for at in columns), "not in memory that is given back"
    assert np.array_equal(decode_words(trace.table, 0, 4), before)


def test_rows_that_no_head_holds_are_said_to_be_too_many() -> None:
    traces = Traces()
    number = traces.number(Trace(1, 1, GUARDS), is_ours=True)
    traces.lend()
    assert traces.make_room(number, 1024)
    assert not traces.make_room(number, 1025)


def test_what_came_since_the_mark_is_summed_up_if_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces_module, "SPAN_SUMMED_ROWS_MIN", 4)
    much, little, shared = Trace(1, 1, GUARDS), Trace(1, 1, GUARDS), SharedTrace(1, 1, GUARDS)
    shared.read("a reduce", by_position=False)
    monkeypatch.setattr(SharedTrace, "sum_up", None)
    traces = Traces()
    for trace in (much, little, shared):
        traces.number(trace, is_ours=True)
    traces.number(Trace(1, 1, GUARDS), is_ours=False)

    def changes(first: int, count: int) -> Int64s:
        times = [*range(first, first + count)]
        return np.array([[1] * count, [0] * count, times, [1] * count], np.int64)

    for trace in (much, little, shared):
        trace.insert(changes(0, 3))
    traces.mark()
    traces.lend()
    put_into(traces.table, 0, changes(3, 4))
    traces.take_back()
    little.insert(changes(3, 3))
    shared.insert(changes(3, 4))
    for trace in (much, little):
        trace.set_since(np.array([9]))
    traces.sum_up()
    assert [much.rows, little.rows] == [1, 6], "all times are one now"
    much.insert(changes(9, 8))
    much.set_since(np.array([20]))
    traces.sum_up()
    assert much.rows == 9, "there is no mark any more"


def test_readers_of_a_shared_trace_have_accepted_what_kernels_inserted() -> None:
    trace = SharedTrace(1, 1, GUARDS)
    reader, by_time = trace.read("a join", by_position=True), trace.read("a reduce", by_position=False)
    trace.add(_rows(random.Random(0), 3))
    reader.accept(1)
    traces = Traces()
    number = traces.number(trace, is_ours=True)
    traces.lend()
    for seed in (1, 2):
        put_into(traces.table, number, _rows(random.Random(seed), 4))
    traces.take_back()
    assert (trace.sequence, reader.position, by_time.position) == (3, 3, None)
    trace.check_invariants()
    assert trace.rows == sum(int(line[0]) for line in trace.lines)
    traces.lend()
    traces.take_back()
    assert trace.sequence == reader.position == 3, "those of the call before are taken back once"
    traces.lend()
    put_into(traces.table, number, _rows(random.Random(3), 4))
    traces.take_back()
    assert trace.sequence == reader.position == 4


def test_all_lines_of_a_shared_trace_are_lent_also_those_that_some_reader_has_not_accepted() -> None:
    trace = SharedTrace(1, 1, GUARDS)
    trace.read("a join", by_position=True)
    trace.add(_rows(random.Random(0), 3))
    lines = trace.lend()[1]
    assert lines is trace.lines and len(lines) > len(trace.table)


def test_a_delay_moves_a_copy() -> None:
    trace = Trace(1, 1, GUARDS)
    trace.insert(sort_consolidate(np.array([[1], [2], [5], [1]], np.int64)))
    traces = Traces()
    number = traces.number(trace, is_ours=True)
    traces.lend()
    assert decode_words(lines_of(traces.table, number, 3), 0, 4).T.tolist() == [[1, 2, 8, 1]]
    assert decode_words(lines_of(traces.table, number, 0), 0, 4).T.tolist() == [[1, 2, 5, 1]]
