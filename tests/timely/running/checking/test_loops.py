"""Compiled loops under checks: what is seen of them, what passes, and what is caught.

sight_*    what a compiled loop is in the middle of
passes_*   workers that check themselves run compiled loops
caught_*   the runner is broken on purpose, each way by name
"""

from __future__ import annotations

from collections import Counter

import pytest
from labelled_flows import changes_of, feed, labels, labels_plainly

from progress.errors import InternalError
from timely import Dataflow
from timely.running.checking.loops import comes_in_closed, count_of_hold, holds, sight_of
from timely.running.core import Worker
from timely.running.stages.compiled_loop import HOLD, CompiledLoopRunner
from timely.wire.transport.memory import MemoryNetwork

Group = list[Worker]


def _group(workers: int, seed: int = 0) -> Group:
    network = MemoryNetwork(workers, seed)
    group = [
        Worker(index, workers, network.transport(index) if workers > 1 else None, check_progress=True)
        for index in range(workers)
    ]
    for worker in group:
        flow = Dataflow("labels")
        labels(flow)
        assert len(worker.install(flow.freeze()).loops) == 1
    return group


def _settle(group: Group) -> None:
    idle = 0
    while idle < 8:
        idle = 0 if sum(worker.step() for worker in group) else idle + 1


# sight_


def test_sight_of_a_loop_of_two_workers_between_spans() -> None:
    group = _group(2)
    instance = group[0].instance()
    (loop,) = instance.loops
    sight = sight_of(loop)
    assert (sight.held, sight.first, sight.closed, sight.done, sight.rounds) == (0, None, 0, 0, 0)
    assert count_of_hold(instance) == HOLD and {count for _, _, count in holds(loop)} == {HOLD}
    for worker in group:
        feed(worker.instance(), [(1, 2)])
    _settle(group)
    sight = sight_of(loop)
    assert (sight.held, sight.closed, sight.done, sight.voted) == (1, 1, 1, False) and sight.rounds > 2
    assert comes_in_closed(loop, instance.frozen.codes[0].unpack_wide(0)) and not sight.is_late


def test_sight_of_a_lone_loop_that_holds_nothing() -> None:
    (worker,) = _group(1)
    instance = worker.instance()
    (loop,) = instance.loops
    assert count_of_hold(instance) == 1 and holds(loop) == [] and sight_of(loop).held is None


# passes_


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_passes_epochs_that_insert_and_remove(workers: int) -> None:
    group = _group(workers, seed=workers)
    pairs = [(n, n + 1) for n in range(6)]
    for worker in group:
        mine = pairs[worker.index :: workers]
        feed(worker.instance(), mine)
        feed(worker.instance(), mine[:1], -1)
    _settle(group)
    found: Counter[tuple[int, ...]] = Counter()
    for worker in group:
        for (*row, _), diff in changes_of(worker.instance()).items():
            found[tuple(row)] += diff
    assert {row for row, diff in found.items() if diff} == labels_plainly(pairs[workers:])
    assert all(worker.instance().checker is not None for worker in group)


# caught_


def test_caught_a_loop_that_holds_later_than_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = CompiledLoopRunner._hold

    def hold_later(self: CompiledLoopRunner, word: int | None) -> None:
        hold(self, None if word is None else word + (1 << self._shift))

    monkeypatch.setattr(CompiledLoopRunner, "_hold", hold_later)
    group = _group(2)
    with pytest.raises(InternalError, match=r"predicate L1 does not hold .*the loop 'iterate'"):
        for worker in group:
            feed(worker.instance(), [(1, 2), (2, 3)])
            feed(worker.instance(), [(3, 4)])
        _settle(group)


def test_caught_a_loop_that_closes_an_epoch_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    closed_before = CompiledLoopRunner._closed_before
    monkeypatch.setattr(CompiledLoopRunner, "_closed_before", lambda self: closed_before(self) + 1)
    group = _group(2)
    with pytest.raises(InternalError, match="predicate L2 does not hold"):
        for worker in group:
            feed(worker.instance(), [(n, n + 1) for n in range(8)])
            feed(worker.instance(), [(n, n + 2) for n in range(8)])
        _settle(group)
