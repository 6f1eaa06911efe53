"""A compiled loop among other stages: what its runner holds, what its vertices see, and who has none."""

from __future__ import annotations

import numpy as np
import pytest

import differential as dd
import timely
from bench.dataflow.bfs import build
from differential import col
from differential.columns.update_batch import UpdateBatch
from differential.compiled_loops import loop as loop_module
from differential.compiled_loops.loop import KernelLoop
from timely.operators.capture import FOREVER
from timely.running.checking.actions import Resume
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.compiled_loop import CompiledLoopRunner


def _worker() -> tuple[Worker, Instance]:
    flow = timely.Dataflow("tested")
    build(flow)
    worker = Worker()
    return worker, worker.install(flow.freeze())


def _send(instance: Instance, name: str, epoch: int, *rows: tuple[int, ...]) -> None:
    words = np.array(
        [(*row, _word(instance, epoch - instance.anchor.epoch), 1) for row in rows], np.int64
    ).T.copy()
    instance.input(name).append(epoch, UpdateBatch(words))


def _word(instance: Instance, epoch: int) -> int:
    return epoch << instance.frozen.layout.shifts[0]


def _seal(instance: Instance) -> None:
    for handle in instance.inputs.values():
        handle.seal()


def test_an_epoch_is_held_until_all_that_leaves_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    run, delays = KernelLoop.run, [True] * 3

    def late(loop: KernelLoop) -> bool:
        if delays:
            delays.pop()
            return False
        return run(loop)

    monkeypatch.setattr(KernelLoop, "run", late)
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


def test_a_loop_that_has_more_to_do_is_let_go_on_also_one_action_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "_TURNS_MAX", 1)
    worker, instance = _worker()
    (region,) = instance.loops
    _send(instance, "edges", 0, (0, 1), (1, 2))
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    resumed = 0
    while actions := worker.enabled():
        resumed += Resume(0, region.stage) in actions
        worker.perform(actions[0])
    assert resumed > 2 and instance.epochs_done() == 1


def test_a_loop_that_is_under_way_goes_on_whyever_it_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "_TURNS_MAX", 1)
    worker, instance = _worker()
    (region,) = instance.loops
    assert isinstance(region.loop, KernelLoop)
    _send(instance, "edges", 0, *[(node, node + 1) for node in range(6)])
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    while not region.wants_resume:
        worker.perform(worker.enabled()[0])
    turns = 0
    while region.wants_resume:
        assert region._span == 1
        region.activate()
        turns += 1
    assert turns > 2 and region._span is None and region._done == 1


def test_rows_of_an_open_epoch_wait_and_hold_it_alone() -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    worker.run_until_idle()
    assert instance.epochs_done() == 1 and region.held is None
    _send(instance, "edges", 1, (0, 1))
    instance.input("edges").seal()
    worker.run_until_idle()
    assert instance.epochs_done() == 1
    assert region.held == _word(instance, 1)
    instance.input("roots").seal()
    worker.run_until_idle()
    assert instance.epochs_done() == 2 and region.held is None


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
    (region,) = instance.loops

    def fail(inner: KernelLoop) -> bool:
        inner.at = region.stages[-1]
        raise RuntimeError("it does not work")

    monkeypatch.setattr(KernelLoop, "run", fail)
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    with pytest.raises(RuntimeError) as caught:
        worker.run_until_idle()
    (note,) = caught.value.__notes__
    assert "'group by node" in note and "bfs.py" in note


def test_what_has_only_come_in_is_held_from_the_earliest_message_on(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    while worker.step():
        pass
    assert region._done == 0 and region.held is None
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(
        region._dataflow, "count", lambda location, word, delta: counted.append((word, delta))
    )
    monkeypatch.setattr(KernelLoop, "take", lambda self, stage, port, batch: None)
    location = next(iter(region.ports))
    batch = UpdateBatch(np.zeros((4, 1), np.int64))
    words = [_word(instance, epoch) for epoch in (7, 5, 6)]
    region.inbox = [(0, location, word, batch) for word in words]
    region.activate()
    assert region.held == words[1]
    assert [word for word, delta in counted if delta == 1] == [words[1]] * len(region.leaving)
    assert [word for word, delta in counted if delta == -1] == words


def test_what_comes_in_later_of_an_earlier_epoch_is_held_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    worker.run_until_idle()
    monkeypatch.setattr(KernelLoop, "take", lambda self, stage, port, batch: None)
    location = next(iter(region.ports))
    batch = UpdateBatch(np.zeros((4, 1), np.int64))
    held = []
    for epoch in (7, 8, 5, 6):
        region.inbox = [(0, location, _word(instance, epoch), batch)]
        region.activate()
        held.append(region.held)
    assert held == [_word(instance, epoch) for epoch in (7, 7, 5, 5)]


def _two_behind_stages(flow: timely.Dataflow) -> None:
    """A loop into which no input leads by itself."""
    edges = dd.input(flow, "edges", "src: int, dst: int").distinct()
    roots = dd.input(flow, "roots", "src: int, dst: int").distinct()
    steps = roots.select(src=col.src, to=col.dst)
    edges.iterate(
        lambda x: x.join(steps, on="src").select(src=col.to, dst=col.dst).concat(x).distinct()
    ).output("found")


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("leads", ["edges", "roots"])
@pytest.mark.parametrize("bits", [None, 4])
def test_behind_other_stages_a_loop_never_goes_back_nor_ahead(
    bits: int | None, leads: str, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come in without news of what is closed, which is no reason to think that less is. With few bits
    words count from a later epoch every few epochs.
    """
    flow = timely.Dataflow("tested", level_bits=None if bits is None else (bits, 9))
    _two_behind_stages(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    (region,) = instance.loops
    assert region._ahead is None and len(region._entries) > 1
    close, shift = KernelLoop.close, instance.frozen.layout.shifts[0]
    (follows,) = {"edges", "roots"} - {leads}
    bounds: list[int] = []
    seen: list[tuple[int, int]] = []

    def epoch_of(word: int) -> int:
        return instance.anchor.epoch + (word >> shift)

    def noted(inner: KernelLoop, start: int, bound: int) -> bool:
        bounds.append(epoch_of(bound))
        assert bound == instance.frozen.layout.limit or bounds[-1] <= instance.input(follows).epoch
        assert start == max(0, region._done - instance.anchor.epoch) << shift
        return close(inner, start, bound)

    monkeypatch.setattr(KernelLoop, "close", noted)
    for step in range(32):
        for name, epoch in ((leads, step), (follows, step - 2)):
            handle = instance.input(name)
            if handle.is_closed or not 0 <= epoch < 30:
                continue
            _send(instance, name, epoch, (epoch, 1))
            if closes and epoch == 20 and name == leads:
                handle.close()
            else:
                handle.seal()
            while actions := worker.enabled():
                worker.perform(actions[-1])
                seen.append((epoch_of(region._since), epoch_of(region.held or 1 << 50)))
    assert bounds == sorted(bounds) and [since for since, _ in seen] == sorted(since for since, _ in seen)
    assert all(since <= held for since, held in seen)
    assert instance.epochs_done() == 30 and region._done == 30
    assert (instance.anchor.epoch > 0) == (bits is not None)


def test_more_rows_of_an_open_epoch_than_may_wait_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    worker.run_until_idle()
    monkeypatch.setattr(loop_module, "STEP_ROWS_MAX", 3)
    assert isinstance(region.loop, KernelLoop)
    waiting = []
    for epoch, count in enumerate((3, 1, 2)):
        _send(instance, "edges", epoch, *[(node, node + 1) for node in range(count)])
        instance.input("edges").seal()
        worker.run_until_idle()
        waiting.append(sum(region.loop._slots.rows(slot) for slot in region.loop._parts.passing))
    assert waiting == [3, 0, 2]


def test_what_is_told_is_closed_up_to_the_first_of_all_that_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    _, instance = _worker()
    (region,) = instance.loops
    assert len(region._entries) > 1
    for early in region._entries:
        for late in (_word(instance, 5), None):
            firsts = dict.fromkeys(region._entries, late) | {early: _word(instance, 3) + 1}
            with monkeypatch.context() as patched:
                patched.setattr(type(instance.tracker), "first", lambda _, port, firsts=firsts: firsts[port])
                region._closed = None
                assert region._closed_as_tracked() == 3
            assert region._entries_ended == (len(region._entries) - 1 if late is None else 0)


def test_an_input_that_ends_is_heard_of_also_if_no_epoch_is_closed_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, instance = _worker()
    (region,) = instance.loops
    worker.run_until_idle()
    told: list[int] = []
    monkeypatch.setattr(KernelLoop, "on_ended", lambda _: told.append(region._since))
    instance.input("roots").close()
    worker.run_until_idle()
    assert told == [0] and instance.epochs_done() == 0
    assert [len(region.frontier(port)) for port in region._entries].count(0) == 1


def test_as_long_as_rows_go_round_nothing_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "_TURNS_MAX", 1)
    worker, instance = _worker()
    (region,) = instance.loops
    _send(instance, "edges", 0, *[(node, node + 1) for node in range(6)])
    _send(instance, "roots", 0, (0,))
    for handle in instance.inputs.values():
        handle.close()
    under_way = since = 0
    while actions := worker.enabled():
        worker.perform(actions[0])
        assert since <= region._since
        since = region._since
        if region.loop.first() is not None:
            under_way += 1
            assert not region._ended
    assert under_way > 2 and region._ended == set(region._watched)
    worker.run_until_idle()
    found = instance.output("distances").log.snapshot(0)
    assert sorted(zip(*(found.column(name).to_pylist() for name in ("node", "distance")), strict=True)) == [
        (node, node) for node in range(7)
    ]


@pytest.mark.parametrize("closes", [False, True])
def test_rows_and_the_end_of_their_epoch_are_one_turn(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an input has ended, another turn only hears of that."""
    worker, instance = _worker()
    _send(instance, "roots", 0, (0,))
    _seal(instance)
    if closes:
        instance.input("roots").close()
    worker.run_until_idle()
    turns: list[tuple[int, int]] = []
    activate = CompiledLoopRunner.activate

    def noted(region: CompiledLoopRunner) -> None:
        came = len(region.inbox)
        activate(region)
        turns.append((came, region._done))

    monkeypatch.setattr(CompiledLoopRunner, "activate", noted)
    for epoch in range(1, 4):
        turns.clear()
        _send(instance, "edges", epoch, (epoch - 1, epoch))
        for handle in instance.inputs.values():
            if not handle.is_closed:
                handle.seal()
        worker.run_until_idle()
        assert instance.epochs_done() == epoch + 1
        assert turns == [(1, epoch + 1), (0, epoch + 1)][: 1 + closes]


@pytest.mark.parametrize("is_ahead", [True, False])
@pytest.mark.parametrize("bits", [None, 4])
def test_epochs_that_words_cannot_say_are_done(bits: int | None, is_ahead: bool) -> None:
    """From one far epoch to the next, with rows in between, whether inputs lead to the loop by themselves."""
    flow = timely.Dataflow("tested", level_bits=None if bits is None else (bits, 9))
    if is_ahead:
        build(flow)
    else:
        _two_behind_stages(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    (runner,) = instance.loops
    assert (runner._ahead is not None) == is_ahead
    for rows, epoch in enumerate((1 << 30, 1 << 55, 1 << 58, 1 << 59)):
        for handle in instance.inputs.values():
            handle.seal(epoch)
        worker.run_until_idle()
        assert instance.epochs_done() == epoch + 1 and runner.held is None
        _send(instance, "edges", epoch + 1, (rows, rows + 1))
        _send(instance, "roots", epoch + 1, (rows, rows + 1)[: 1 if is_ahead else 2])
        for handle in instance.inputs.values():
            handle.seal(epoch + 1)
        worker.run_until_idle()
        assert instance.epochs_done() == epoch + 2 and runner._done >= epoch + 2
