"""The worker's loop, alone and with others in one process.

together_*   several workers over a network in memory
alone_*      what one step of the only worker comes to
rest_*       when a step would do nothing
install_*    dataflows come one after the other, on each worker at its own pace
refusing_*   what a peer may not send
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf
from time import sleep

import pytest
from dataflows import settle, word_count

from progress.errors import InternalError, PeerError, TimelyError
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from progress.tracking.count_changes import Change
from timely import Batch, Dataflow, MisuseError, Vertex
from timely.client.tables import records_of
from timely.running import core
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import (
    DataHeader,
    ProgressHeader,
    write_control_header,
    write_data_header,
    write_progress_header,
)
from timely.wire.transport.memory import MemoryNetwork


def frozen_word_count() -> Dataflow:
    dataflow = Dataflow("words")
    word_count(dataflow)
    return dataflow


def make(workers: int, seed: int | None = None) -> list[Worker]:
    network = MemoryNetwork(workers, seed)
    return [
        Worker(index, workers, network.transport(index) if workers > 1 else None) for index in range(workers)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_together_words_meet_on_one_worker_and_epochs_complete_everywhere(workers: int) -> None:
    group = make(workers)
    instances = [worker.install(frozen_word_count().freeze()) for worker in group]
    for epoch in range(3):
        for instance in instances:
            instance.input("lines").send(["a b", "a"])
            instance.input("lines").seal()
        settle(group)
        assert [instance.output("counts").complete_before for instance in instances] == [epoch + 1] * workers
    counted = [
        record for instance in instances for record in records_of(instance.output("counts").log.changes(2, 3))
    ]
    assert sorted(counted) == [(2, ("a", 6 * workers)), (2, ("b", 3 * workers))]
    for instance in instances:
        instance.input("lines").close()
    settle(group)
    assert all(instance.is_complete() for instance in instances)
    for instance in instances:
        instance.tracker.check_invariants()


def test_together_an_epoch_is_complete_only_when_all_workers_have_sealed_it() -> None:
    group = make(2)
    instances = [worker.install(frozen_word_count().freeze()) for worker in group]
    instances[0].input("lines").seal()
    settle(group)
    assert [instance.output("counts").complete_before for instance in instances] == [0, 0]


class OneByOne(Vertex):
    """Passes on one message in each turn, and asks for another."""

    word_times = True

    def on_start(self) -> None:
        """Nothing has come."""
        self.left: list[tuple[int, Batch]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """All wait."""
        for word, batch in messages:
            self.hold_word(word)
            self.left.append((word, batch))
        self.resume()

    def on_resume(self) -> None:
        """One goes on: what is behind hears that its time is over."""
        word, batch = self.left.pop(0)
        self.send(0, batch, word)
        self.release_word(word)
        if self.left:
            self.resume()


def test_alone_what_follows_from_news_of_progress_is_of_the_same_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for what is told between: so clients are looked for once, and not each time."""
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    (worker,) = make(1)
    instance = worker.install(frozen_word_count().freeze())
    instance.input("lines").send(["a b", "a"])
    instance.input("lines").seal()
    assert worker.step()
    assert instance.output("counts").complete_before == 1, "words were counted when their epoch was complete"
    assert not worker.step()


class Late(Vertex):
    """Passes on that something has come when the epoch is complete."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Wait for the epoch."""
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        """It is."""
        self.send_by(0, [1], time)


class Slow(Late):
    """Takes its time over that."""

    def on_notify(self, time: Timestamp) -> None:
        """A load may take a thousand times as long."""
        sleep(0.005)
        super().on_notify(time)


def chain(length: int, vertex: type[Vertex]) -> Dataflow:
    dataflow = Dataflow("chain")
    rows = dataflow.input("numbers")
    for stage in range(length):
        rows = rows.stage(f"stage {stage}", vertex)
    dataflow.output("passed", rows)
    return dataflow


def test_alone_what_takes_long_lets_others_come_in_between() -> None:
    """Of a load each stage may take seconds: who asks meanwhile waits for one of them, and not for all."""
    (worker,) = make(1)
    instance = worker.install(chain(5, Slow).freeze())
    instance.input("numbers").send([1])
    instance.input("numbers").seal()
    before = worker.steps
    worker.run_until_idle()
    assert worker.steps - before >= 5
    assert instance.output("passed").complete_before == 1


def test_alone_a_step_has_so_many_activations_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    monkeypatch.setattr(core, "ACTIVATIONS_PER_STEP_MAX", 21)
    (worker,) = make(1)
    instance = worker.install(chain(30, Late).freeze())
    worker.run_until_idle()
    instance.input("numbers").send([1])
    instance.input("numbers").seal()
    ran, before = [], 0
    while worker.step():
        activations = sum(runner.activations for runner in instance.runners)
        ran.append(activations - before)
        before = activations
    assert instance.output("passed").complete_before == 1
    assert ran[1] == 21, "all that one step may"
    assert max(ran[1:]) == 21


def test_together_a_step_tells_others_of_progress_before_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    told: list[int] = []
    tell_all = Worker._tell_all

    def counted(worker: Worker, dataflow: int, changes: list[Change]) -> None:
        told[-1] += 1
        tell_all(worker, dataflow, changes)

    monkeypatch.setattr(Worker, "_tell_all", counted)
    group = make(2)
    instances = [worker.install(chain(5, Late).freeze()) for worker in group]
    for instance in instances:
        instance.input("numbers").send([1])
        instance.input("numbers").seal()
    moved = True
    while moved:
        moved = False
        for worker in group:
            told.append(0)
            moved = worker.step() or moved
    assert all(instance.output("passed").complete_before == 1 for instance in instances)
    assert max(told) == 1 and sum(told) > 5


def test_together_workers_of_one_thread_are_told_once_of_all_that_a_step_has_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "UNTOLD_SECONDS_MAX", inf)
    taken, told, untold = 0, 0, set[tuple[int, int]]()
    tell_all, take, move = Worker._tell_all, Instance.take_changes, Instance.move_anchor

    def counted(worker: Worker, dataflow: int, changes: list[Change]) -> None:
        nonlocal told
        told += 1
        untold.remove((worker.index, dataflow))
        tell_all(worker, dataflow, changes)

    def took(instance: Instance) -> list[Change]:
        nonlocal taken
        changes = take(instance)
        if changes:
            taken += 1
            untold.add((instance.worker, instance.index))
        return changes

    def moves(instance: Instance) -> None:
        assert not untold, "their words count from the anchor that was there"
        move(instance)

    monkeypatch.setattr(Worker, "_tell_all", counted)
    monkeypatch.setattr(Instance, "take_changes", took)
    monkeypatch.setattr(Instance, "move_anchor", moves)
    group = make(2)
    for worker in group:
        worker.shares_thread = True
    instances = [worker.install(chain(5, Late).freeze()) for worker in group]
    for epoch in range(3):
        for instance in instances:
            instance.input("numbers").send([1], epoch)
            instance.input("numbers").seal(epoch)
        settle(group)
        assert all(instance.output("passed").complete_before == epoch + 1 for instance in instances)
        first, second = (sorted(instance.tracker.counts()) for instance in instances)
        assert first == second, "each has heard all of the other"
    assert taken > told and not untold


def test_alone_who_resumes_lets_others_come_in_between() -> None:
    """A load in a hundred pieces is a hundred steps: who asks meanwhile is answered."""
    dataflow = Dataflow("pieces")
    dataflow.output("pieces", dataflow.input("numbers").stage("one by one", OneByOne))
    (worker,) = make(1)
    instance = worker.install(dataflow.freeze())
    for epoch in range(100):
        instance.input("numbers").send([epoch], epoch)
    instance.input("numbers").seal(99)
    before = worker.steps
    worker.run_until_idle()
    assert 100 <= worker.steps - before <= 110
    assert instance.output("pieces").complete_before == 100


def test_rest_is_none_while_somebody_waits_for_dataflows_to_get_somewhere() -> None:
    """Who lets a thread sleep whose worker rests would not look any more whether they have."""
    (worker,) = make(1)
    worker.install(frozen_word_count().freeze())
    worker.run_until_idle()
    assert worker.is_at_rest()
    looks = [False, True]
    worker.on_step = looks.pop
    assert not worker.is_at_rest()
    assert worker.step() and not worker.step()
    assert not worker.is_at_rest()
    worker.on_step = None
    assert worker.is_at_rest()


def test_install_messages_of_a_faster_worker_wait_for_the_slower_one() -> None:
    fast, slow = make(2)
    early = fast.install(frozen_word_count().freeze())
    early.input("lines").send(["a b c d e f"])
    early.input("lines").seal()
    fast.run_until_idle()
    slow.run_until_idle()
    late = slow.install(frozen_word_count().freeze())
    late.input("lines").seal()
    settle((fast, slow))
    counted = [
        record
        for instance in (early, late)
        for record in records_of(instance.output("counts").log.changes(0, 1))
    ]
    assert sorted(counted) == [(0, (word, 1)) for word in "abcdef"]


def test_install_gives_each_dataflow_its_number_once() -> None:
    (worker,) = make(1)
    worker.install(frozen_word_count().freeze())
    assert worker.install(frozen_word_count().freeze()).index == 1
    with pytest.raises(InternalError, match="dataflow 1 is installed already"):
        worker.install(frozen_word_count().freeze(), 1)
    with pytest.raises(MisuseError, match=r"has no dataflow 7: installed are \[0, 1\]"):
        worker.instance(7)


def test_install_needs_a_transport_for_several_workers() -> None:
    with pytest.raises(InternalError, match="2 workers need a transport"):
        Worker(0, 2)
    with pytest.raises(InternalError, match="worker 2 of 2"):
        Worker(2, 2)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "empty message"),
        ([b"garbage"], "worker 1 sent"),
        ([write_data_header(DataHeader(0, 99, 0, 1)), b"\x90"], "sent by connector 99, but there are 3"),
        ([write_data_header(DataHeader(0, 0, 0, 1)), b"\xc1"], "not msgpack"),
        (
            [write_data_header(DataHeader(0, 0, 0, 1)), b"\x90"],
            "connector 0, whose rows stay with their worker",
        ),
        ([write_progress_header(ProgressHeader(0))], "came as 1 frames"),
        ([write_progress_header(ProgressHeader(0)), b"x"], "1 bytes as progress"),
        ([write_control_header(), b"x"], "nobody expects"),
    ],
)
def test_refusing_what_a_peer_may_not_send(frames: list[bytes], message: str) -> None:
    network = MemoryNetwork(2)
    worker = Worker(0, 2, network.transport(0))
    worker.install(frozen_word_count().freeze())
    network.transport(1).send(0, list(frames))
    with pytest.raises(PeerError, match=message):
        worker.step()


class ExitsWhenMoved(Vertex):
    word_times = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        pass

    def rebase(self, by: Rebase) -> None:
        sys.exit(3)


class AsksBadly(Vertex):
    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        pass

    def first_asked(self) -> int | None:
        raise ValueError("nobody knows")


def test_together_who_fails_when_asked_for_an_epoch_ends_his_dataflow_when_words_move() -> None:
    (worker,) = make(1)
    told: list[TimelyError] = []
    worker.on_failure = lambda number, error: told.append(error)
    dataflow = Dataflow(level_bits=(3,))
    dataflow.input("numbers").stage("stage", AsksBadly)
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([1], 3)
    instance.input("numbers").seal(50)
    worker.run_until_idle()
    (error,) = told
    assert "ValueError: nobody knows\n  while 'stage' (stage 1" in str(error)
    assert not worker.instances


def test_together_a_second_error_of_a_dataflow_is_told_to_nobody() -> None:
    (worker,) = make(1)
    told: list[str] = []
    worker.on_failure = lambda number, error: told.append(str(error))
    worker.install(frozen_word_count().freeze())
    for text in ("first", "second"):
        worker.fail(0, MisuseError(text))
    assert told == ["first"] and str(worker.ended[0]) == "first"


def test_together_what_ends_a_move_of_the_anchor_ends_the_dataflow_wherever_it_began() -> None:
    """On worker 0 it begins at the end of a step, on worker 1 with news of worker 0."""
    group = make(2)
    told: list[tuple[int, int, TimelyError]] = []
    for worker in group:
        worker.on_failure = lambda number, error, at=worker.index: told.append((at, number, error))
        dataflow = Dataflow(level_bits=(3,))
        dataflow.input("numbers").stage("exits", ExitsWhenMoved)
        worker.install(dataflow.freeze())
    for worker in reversed(group):
        worker.instance().input("numbers").seal(50)
        worker.step()
    group[1].step()
    assert [(at, number, str(error).partition("\n")[0]) for at, number, error in told] == [
        (0, 0, "SystemExit: 3"),
        (1, 0, "SystemExit: 3"),
    ]
    assert all(not worker.instances for worker in group), "half of it has moved"
