"""Workers that run collections can be copied at any moment, and go their own ways from there on.

copy_*   of a trace: what is inserted, merged and forgotten in one is not in the other
fork_*   of a worker, between any two actions
"""

from __future__ import annotations

import copy
import random

import pytest
from labelled_flows import changes_of, feed, labels
from reference.words import Row, accumulated, rows_of
from strategies_words import CODES, RandomHistory

from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.sort import sort_consolidate
from differential.trace import trace as trace_module
from differential.trace.shared import SharedTrace
from timely import Dataflow
from timely.running.checking.comparable import comparable
from timely.running.core import Worker

# copy_


def _rows(trace: SharedTrace) -> list[Row]:
    lines = trace.lines
    return [row for line in range(len(lines)) for row in rows_of(decode_words(lines, line, trace.columns))]


@pytest.mark.parametrize("seed_of_test", range(6))
def test_copy_of_a_trace_goes_its_own_way(seed_of_test: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 16)
    rng, code = random.Random(seed_of_test), CODES[2]
    history = RandomHistory(rng, 2, 2)
    traces = [SharedTrace(1, 1, code.guards)]
    traces[0].read("a join", by_position=True)
    told: list[list[Row]] = [[]]
    for turn in range(60):
        chosen = rng.randrange(len(traces))
        words = sort_consolidate(history.next_rows(5))
        if words.shape[1]:
            traces[chosen].add(words)
            told[chosen] += rows_of(words)
        if rng.random() < 0.5:
            (reader,) = traces[chosen]._readers
            reader.accept(traces[chosen].sequence)
        if rng.random() < 0.2:
            rng.choice([traces[chosen].compact, lambda: traces[chosen].effort(9)])()  # noqa: B023
        if turn in (20, 40):
            traces.append(copy.deepcopy(traces[chosen]))
            told.append(told[chosen].copy())
            assert comparable(traces[-1]) == comparable(traces[chosen])
        for trace, rows in zip(traces, told, strict=True):
            trace.check_invariants()
            times = {row[-2] for row in rows}
            assert all(
                accumulated(_rows(trace), time, code.guards) == accumulated(rows, time, code.guards)
                for time in times
            )


# fork_


def _worker(compiled: bool) -> Worker:
    dataflow = Dataflow("labels")
    labels(dataflow)
    worker = Worker(compiled_loops=compiled)
    assert len(worker.install(dataflow.freeze()).loops) == compiled
    return worker


PAIRS = [(k, k + 1) for k in range(12)] + [(20, 3), (21, 20)]


def _after(actions: int, compiled: bool) -> Worker:
    """A worker that has performed so many of the actions that come first."""
    worker = _worker(compiled)
    feed(worker.instance(), PAIRS)
    for _ in range(actions):
        enabled = worker.enabled()
        if not enabled:
            break
        worker.perform(enabled[0])
    return worker


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("actions", [0, 3, 7, 12, 20, 33, 50, 80])
def test_fork_at_any_moment_comes_to_the_same_and_leaves_the_other_alone(
    actions: int, compiled: bool
) -> None:
    worker = _after(actions, compiled)
    before = comparable(worker)
    forked = worker.fork(None)
    assert comparable(forked) == before
    forked.run_until_idle()
    alone = _worker(compiled)
    feed(alone.instance(), PAIRS)
    alone.run_until_idle()
    assert changes_of(forked.instance()) == changes_of(alone.instance())
    assert comparable(worker) == before, "it has not moved"
    feed(forked.instance(), PAIRS[:1], -1)
    forked.run_until_idle()
    worker.run_until_idle()
    assert changes_of(worker.instance()) == changes_of(alone.instance()) != changes_of(forked.instance())
