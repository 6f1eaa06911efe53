"""A region among other stages: what it holds, what its vertices see, and who cannot have one."""

from __future__ import annotations

import numpy as np
import pytest

import timely
from bench.dataflow.bfs import build
from differential.columns.update_batch import UpdateBatch
from differential.regions import loop_region
from differential.regions.loop_region import LoopRegion
from progress.errors import InternalError
from timely.operators.capture import FOREVER
from timely.running.actions import Resume
from timely.running.core import Worker
from timely.running.instance import Instance


def _worker() -> tuple[Worker, Instance]:
    flow = timely.Dataflow("tested")
    build(flow)
    worker = Worker()
    return worker, worker.install(flow.freeze())


def _send(instance: Instance, name: str, epoch: int, *rows: tuple[int, ...]) -> None:
    words = np.array([(*row, _word(instance, epoch), 1) for row in rows], np.int64).T.copy()
    instance.input(name).append(epoch, UpdateBatch(words))


def _word(instance: Instance, epoch: int) -> int:
    return epoch << instance.frozen.layout.shifts[0]


def _seal(instance: Instance) -> None:
    for handle in instance.inputs.values():
        handle.seal()


def test_an_epoch_is_held_until_all_that_leaves_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.regions
    run, delays = LoopRegion.run, [True] * 3

    def late(region: LoopRegion, bound: int) -> bool:
        if region._least() < bound and delays:
            delays.pop()
            return False
        return run(region, bound)

    monkeypatch.setattr(LoopRegion, "run", late)
    _send(instance, "edges", 0, (0, 1), (1, 2))
    _send(instance, "roots", 0, (0,))
    assert instance.epochs_done() == 0
    _seal(instance)
    seen: list[tuple[int, int]] = []
    while worker.step():
        seen.append((len(delays), instance.epochs_done()))
        if delays:
            at = {word for port in region._watched for word in region.frontier(port).tolist()}
            assert at == {_word(instance, 0)}, "what its vertices keep is still asked for"
    assert not delays and seen[-1] == (0, 1)
    assert all(done == 0 for left, done in seen if left), "as long as it is not done, the epoch is not"
    assert region.frontier(region._watched[0]).tolist() == [_word(instance, 1)]


def test_a_region_that_has_more_to_do_is_let_go_on_also_one_action_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_region, "_TURNS_MAX", 1)
    worker, instance = _worker()
    (region,) = instance.regions
    _send(instance, "edges", 0, (0, 1), (1, 2))
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    resumed = 0
    while actions := worker.enabled():
        resumed += Resume(0, region.stage) in actions
        worker.perform(actions[0])
    assert resumed > 2 and instance.epochs_done() == 1


def test_a_region_that_is_under_way_goes_on_whyever_it_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_region, "_TURNS_MAX", 1)
    worker, instance = _worker()
    (region,) = instance.regions
    assert isinstance(region.region, LoopRegion)
    _send(instance, "edges", 0, *[(node, node + 1) for node in range(6)])
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    while not region.wants_resume:
        worker.perform(worker.enabled()[0])
    turns = 0
    while region.wants_resume:
        region.activate()
        turns += 1
    assert turns > 2 and region.region._is_done


def test_rows_of_an_open_epoch_wait_and_hold_it_alone() -> None:
    worker, instance = _worker()
    (region,) = instance.regions
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    worker.run_until_idle()
    assert instance.epochs_done() == 1 and region._held is None
    _send(instance, "edges", 1, (0, 1))
    instance.input("edges").seal()
    worker.run_until_idle()
    assert instance.epochs_done() == 1
    assert region._held == _word(instance, 1)
    instance.input("roots").seal()
    worker.run_until_idle()
    assert instance.epochs_done() == 2 and region._held is None


def test_what_has_ended_is_kept_no_more() -> None:
    worker, instance = _worker()
    _send(instance, "edges", 0, (0, 1), (1, 2), (2, 3))
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    worker.run_until_idle()
    rows = [trace.rows for runner in instance.runners for trace in getattr(runner.vertex, "traces", list)()]
    assert sum(rows) > 0
    for handle in instance.inputs.values():
        handle.close()
    worker.run_until_idle()
    rows = [trace.rows for runner in instance.runners for trace in getattr(runner.vertex, "traces", list)()]
    assert sum(rows) == 0
    assert instance.epochs_done() == FOREVER and instance.is_complete()


def test_errors_name_the_stage_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.regions

    def fail(inner: LoopRegion, bound: int) -> bool:
        inner.at = region.stages[-1]
        raise RuntimeError("it does not work")

    monkeypatch.setattr(LoopRegion, "run", fail)
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    with pytest.raises(RuntimeError) as caught:
        worker.run_until_idle()
    (note,) = caught.value.__notes__
    assert "'group by node" in note and "bfs.py" in note


def test_who_runs_regions_cannot_be_copied() -> None:
    worker, _ = _worker()
    with pytest.raises(InternalError, match="runs loops as regions"):
        worker.fork(None)


def test_what_has_only_come_in_is_held_from_the_earliest_message_on(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.regions
    while worker.step():
        pass
    assert region._closed is not None and region._held is None
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(region._place, "count", lambda location, word, delta: counted.append((word, delta)))
    monkeypatch.setattr(LoopRegion, "take", lambda self, stage, port, batch: None)
    location = next(iter(region._ports)) + region._first_connector
    batch = UpdateBatch(np.zeros((4, 1), np.int64))
    words = [_word(instance, epoch) for epoch in (7, 5, 6)]
    region.inbox = [(0, location, word, batch) for word in words]
    region.activate()
    assert region._held == words[1]
    assert [word for word, delta in counted if delta == 1] == [words[1]] * len(region._leaving)
    assert [word for word, delta in counted if delta == -1] == words
