"""Is `why` right about a dataflow that stalls? Random dataflows stall at random, and the model says by what.

A stall: inputs that nobody seals, vertices that wait for them, and often a worker that is stopped in the
middle and answers nothing, or only from another thread. All others run until they have nothing to do.

The model is that of progress tracking: what is outstanding is what was there at first and all that workers
have counted since, heard or not. It is counted here, and compared by an order that knows nothing of trackers.

  sound      each reason is about something that is outstanding, up to that epoch
  first      a reason that "waits for nothing else" is a minimal one, and each minimal one is told
  complete   an epoch is said to be complete if and only if nothing is outstanding up to it
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from random_dataflows import EPOCHS, Builder, Watch

from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from timely.client.reports.why import EpochReport, report_of
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.reasons.outstanding import Outstanding
from timely.wire.reasons import Reason
from timely.wire.requests import Reply
from timely.wire.transport.memory import MemoryNetwork

Place = tuple[int, tuple[int, ...]]
"""A location and a time, as reasons have them."""

CASES = 50
"""For each number of workers; each is looked at for two epochs: more than 200 stalls in all."""
STEPS_MAX = 20_000


class Stalled:
    """A random dataflow that has stalled: its workers, what is outstanding, and which of them is stopped."""

    def __init__(self, case: int, workers: int) -> None:
        self.chance = random.Random(case)
        network = MemoryNetwork(workers, case)
        self.workers = [
            Worker(index, workers, network.transport(index) if workers > 1 else None)
            for index in range(workers)
        ]
        self.instances = [
            worker.install(Builder(case, Watch(), workers).flow.freeze()) for worker in self.workers
        ]
        first = self.instances[0]
        self._shift = first.frozen.layout.shifts[0]
        self._counted: Counter[Pointstamp] = Counter()
        for location, word, count in first.pointstamps():
            self._counted[location, word] += count
        for index, worker in enumerate(self.workers):
            self._listen(index, worker)
        self.stopped: int | None = None
        self._stall()

    def _listen(self, index: int, worker: Worker) -> None:
        """Count what a worker tells the others."""
        told = worker._tell_all

        def tells(dataflow: int, changes: list[tuple[int, int, int]]) -> None:
            self._add(self.instances[index], changes)
            told(dataflow, changes)  # type: ignore[arg-type]

        worker._tell_all = tells  # type: ignore[method-assign,assignment]

    def _add(self, instance: Instance, changes: list[tuple[int, int, int]]) -> None:
        base = instance.anchor.epoch << self._shift
        for location, word, delta in changes:
            self._counted[location, word + base] += delta

    def _stall(self) -> None:
        """Seal some epochs of some inputs; let workers run, one of them not to the end."""
        chance, names = self.chance, list(self.instances[0].inputs)
        sealed = {name: chance.randint(0, EPOCHS) for name in names}
        for epoch in range(EPOCHS):
            for name in names:
                if epoch > sealed[name]:
                    continue
                for instance in self.instances:
                    records = [
                        (chance.randint(0, 9), chance.randint(0, 2)) for _ in range(chance.randint(0, 3))
                    ]
                    instance.input(name).send(records)
                    if epoch < sealed[name]:
                        instance.input(name).seal()
            self._run(self.workers, chance.randint(0, 40))
        if len(self.workers) > 1 and chance.random() < 0.6:
            self.stopped = chance.randrange(len(self.workers))
        running = [worker for worker in self.workers if worker.index != self.stopped]
        assert not self._run(running, STEPS_MAX), "it does not come to rest"

    def _run(self, workers: list[Worker], steps: int) -> bool:
        for _ in range(steps):
            actions = [(worker, action) for worker in workers for action in worker.enabled()]
            if not actions:
                return False
            worker, action = self.chance.choice(actions)
            worker.perform(action)
        return True

    def outstanding(self, epoch: int, *, untold: bool = True) -> set[Pointstamp]:
        """What the model says is outstanding up to an epoch; without `untold`, what could be known by now to
        others than the worker that is stopped in the middle of a step.
        """
        counted = self._counted.copy()
        if len(self.workers) == 1:
            (instance,) = self.instances
            counted = Counter({(location, word): n for location, word, n in instance.pointstamps()})
        for instance in self.instances:
            base = instance.anchor.epoch << self._shift
            for location, word, delta in instance.untold() if untold else ():
                counted[location, word + base] += delta
        assert not untold or min(counted.values(), default=0) >= 0, "nothing is counted off too early"
        return {point for point, count in counted.items() if count > 0 and self.time(point)[0] <= epoch}

    def time(self, point: Pointstamp) -> tuple[int, ...]:
        """The time of a pointstamp."""
        return self.instances[0].frozen.graph.code_of(point[0]).unpack_wide(point[1])

    def place(self, point: Pointstamp) -> Place:
        """A pointstamp with its time, as reasons have it."""
        return point[0], self.time(point)

    def report(self, epoch: int) -> EpochReport:
        """The report of all workers; one that is stopped may answer nothing."""
        answers: list[Reply | str] = []
        for worker, instance in zip(self.workers, self.instances, strict=True):
            if worker.index == self.stopped and self.chance.random() < 0.5:
                answers.append(f"worker {worker.index} does not answer")
                continue
            found = Outstanding(instance, epoch, worker.instances)
            reasons = [reason.values() for reason in found.reasons()]
            if worker.index == self.stopped:
                reasons.append(Reason("call", workers=(worker.index,)).values())
            viewed = [[each.reason.values(), each.events, each.own, each.untold] for each in found.view()]
            answers.append(
                Reply({"complete": instance.epochs_done(), "reasons": reasons, "view": viewed})  # type: ignore[dict-item]
            )
        return report_of("random", epoch, answers)


def minimal(points: set[Pointstamp], order: PointstampOrder) -> set[Pointstamp]:
    """Those to which no other one leads."""
    return {point for point in points if not any(order[other, point] for other in points - {point})}


def places(reasons: Sequence[Reason], there: set[Place]) -> set[Place]:
    """What reasons are about. An input that is open also holds what has not entered before its open epoch:
    the reason is about all that is there of it.
    """
    told: set[Place] = set()
    for reason in reasons:
        of_input = {place for place in there if place[0] == reason.number and place[1] <= reason.time}
        if reason.kind == "input" and of_input:
            told |= of_input
        elif reason.number >= 0:
            told.add((reason.number, reason.time))
    return told


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_reasons_are_what_the_model_says_is_outstanding(workers: int, seed: int, effort: int) -> None:
    stalls = 0
    for number in range(CASES * effort):
        case = seed + number
        stalled = Stalled(case, workers)
        order = PointstampOrder(stalled.instances[0].frozen.graph)
        for epoch in (0, EPOCHS - 1):
            what = f"seed {case}, {workers} workers, epoch {epoch}"
            report = stalled.report(epoch)
            points = stalled.outstanding(epoch)
            silent = any(reason.kind == "silent" for reason in report.reasons)
            heard = stalled.outstanding(epoch, untold=False)
            if not points:
                assert report.is_complete or silent or stalled.stopped is not None, what
                assert places(report.reasons, set()) <= set(map(stalled.place, heard)), what
                continue
            stalls += 1
            assert not report.is_complete and report.reasons, what
            there = set(map(stalled.place, points | heard))
            least = set(map(stalled.place, minimal(points, order)))
            least_heard = set(map(stalled.place, minimal(heard, order)))
            told = places(report.reasons, there)
            assert told <= there, f"{what}: {told - there}"
            first = places([reason for reason in report.reasons if reason.is_first], least | least_heard)
            assert first <= least | least_heard, f"{what}: {first - least}"
            if stalled.stopped is None:
                assert first == least, f"{what}: {least - first} are not told"
            else:
                assert silent or least <= told, f"{what}: {least - told} are not told"
    assert stalls >= CASES * effort, "most are stalls"
