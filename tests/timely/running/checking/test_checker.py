"""One worker checking itself: what it lets pass, and what it catches without knowing the others.

off_*      without the switch there is no checker
passes_*   random dataflows, and embedded clusters
caught_*   the runtime is broken on purpose, each way by name
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from dataflows import frozen, settle, word_count
from random_dataflows import run

import timely
from progress.errors import InternalError
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.tracker import Tracker
from timely import Batch
from timely.running.checking.checker import SWITCH, ProgressChecker
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.connector import Connector
from timely.running.stages.vertex_runner import VertexRunner
from timely.wire.transport.memory import MemoryNetwork

CASES = 12


def pair() -> tuple[list[Worker], list[Instance]]:
    """Two workers that check themselves, with a word to count on worker 0."""
    network = MemoryNetwork(2)
    group = [Worker(index, 2, network.transport(index), check_progress=True) for index in range(2)]
    instances = [worker.install(frozen(word_count)) for worker in group]
    for instance in instances:
        instance.input("lines").send(["a b c d e f"])
        instance.input("lines").seal()
    return group, instances


def test_off_without_the_switch_there_is_no_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert Worker().install(frozen(word_count)).checker is None
    assert Worker(check_progress=True).install(frozen(word_count)).checker is not None
    monkeypatch.setenv(SWITCH, "1")
    assert Worker().install(frozen(word_count)).checker is not None


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_passes_random_dataflows(
    workers: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    for case in range(CASES * effort // workers):
        run(seed + case, workers, case, monitored=False)


def test_passes_an_embedded_cluster() -> None:
    with timely.connect(workers=2, embedded=True, check_progress=True) as cluster:
        flow = cluster.install("dataflows:collatz")
        flow.input("numbers").insert([(n, n, 0) for n in (1, 6, 27)])
        flow.seal()
        assert sorted(flow.output("steps").changes()) == [(0, (1, 0, 0)), (0, (6, 2, 2)), (0, (27, 41, 41))]


def test_caught_a_dropped_count_by_what_the_worker_owns() -> None:
    with timely.connect(workers=2, embedded=True, check_progress=True) as cluster:
        flow = cluster.install("dataflows:miscounts")
        flow.input("words").insert(["drop a count"])
        with pytest.raises(
            timely.InternalError,
            match=r"predicate B2, own share does not hold at worker 1 of 2, dataflow 0: what a worker "
            r"owns = .*fails at 'miscounts' output 0 → 'collect' input 0 \(connector 1\) at \(0,\)\.\n"
            r"  last events: .*a message went out at 'miscounts'",
        ):
            flow.wait(flow.seal())


def test_caught_decrements_that_are_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the worker itself: what it has not told is not upright. By its peer: it hears of what it cannot."""
    take = CountChanges.take

    def take_increments_late(self: CountChanges) -> list[Change]:
        changes = take(self)
        raised = [change for change in changes if change[2] > 0]
        if len(raised) == len(changes):
            return changes
        for change in raised:
            self.add(*change)
        return [change for change in changes if change[2] < 0]

    monkeypatch.setattr(CountChanges, "take", take_increments_late)
    group, _ = pair()
    with pytest.raises(InternalError, match="predicate B2, own share does not hold at worker 0 of 2"):
        settle(group)


def test_caught_a_send_without_a_right(monkeypatch: pytest.MonkeyPatch) -> None:
    group, instances = pair()
    settle(group)
    monkeypatch.setattr(VertexRunner, "_check_right", lambda self, word, what: None)
    vertex = instances[0].runners[1].vertex
    assert vertex is not None
    vertex.send_by(0, ["late"], (0,))
    with pytest.raises(InternalError, match=r"predicate A2 does not hold at worker 0 of 2.*at \(0,\)"):
        group[0].step()


def test_caught_a_message_that_comes_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    group, instances = pair()
    settle(group)
    (exchanged,) = [number for number, one in enumerate(instances[0].connectors) if one.route is not None]
    with pytest.raises(InternalError, match=r"predicate E2 does not hold at worker 1 .* at \(0,\)"):
        instances[1].receive(exchanged, instances[1].runners[2].code.pack((0,)), timely.Records(["late"]))


def test_caught_a_payload_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Broadcaster.on_message
    monkeypatch.setattr(Broadcaster, "on_message", lambda self, payload: heard(self, payload) * 2)
    group, _ = pair()
    with pytest.raises(InternalError, match=r"predicate (B6|B9|S3) does not hold at worker \d of 2"):
        for instance in (worker.instance() for worker in group):
            instance.input("lines").close()
        settle(group)


def test_caught_a_peer_that_tells_of_what_cannot_be() -> None:
    group, instances = pair()
    settle(group)
    checker = instances[0].checker
    assert isinstance(checker, ProgressChecker)
    with pytest.raises(
        InternalError, match=r"predicate B9 .*: every change that a worker will receive .*at \(0,\)"
    ):
        checker.on_progress(1, [(3, 0, 1)])


def test_caught_a_notification_before_its_time() -> None:
    group, instances = pair()
    group[0].step()
    counting = next(runner for runner in instances[0].runners if runner.requested)
    counting.due.append(next(iter(counting.requested)))
    with pytest.raises(InternalError, match=r"predicate due .*'count words' \(stage 2\) at \(0,\)"):
        counting.activate()


@pytest.mark.parametrize(
    ("label", "break_it"),
    [
        ("E1", lambda patch: _broken_apply(patch)),
        ("C4", lambda patch: patch.setattr(Tracker, "frontier", lambda self, port: np.zeros(0, np.int64))),
    ],
)
def test_caught_a_tracker_that_is_wrong(
    label: str, break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(check_progress=True)
    instance = worker.install(frozen(word_count))
    instance.input("lines").send(["a b"])
    instance.input("lines").seal()
    break_it(monkeypatch)
    with pytest.raises(InternalError, match=f"predicate {label} does not hold at worker 0 of 1"):
        worker.step()


def _broken_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Tracker.apply
    monkeypatch.setattr(Tracker, "apply", lambda self, changes: apply(self, changes[:1]))


def test_caught_a_message_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Connector.send

    def uncounted(self: Connector, batch: Batch, word: int) -> None:
        self._carrier.count, count = lambda location, word, delta: None, self._carrier.count
        send(self, batch, word)
        self._carrier.count = count

    monkeypatch.setattr(Connector, "send", uncounted)
    group, _ = pair()
    with pytest.raises(InternalError, match="predicate B2, own share does not hold at worker 0 of 2"):
        settle(group)
