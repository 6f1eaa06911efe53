"""Liveness: where every message arrives in time, everything is complete in time, by a bound that is computed.

Time is counted in sweeps. In a sweep each worker takes in what has arrived, and does all that it can do. A
message arrives `late` sweeps later than it could, at most; those of one worker to another keep their order.

    bound_*     within so many sweeps nothing is outstanding, and all is as it should be
    every_*     of all that can happen: no run is endless
    mutants_*   what is broken on purpose, by name, is not complete in time
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

import pytest
from labelled_flows import Pair, changes_of, countdown, countdown_plainly, feed
from reference.loops.loop_explorer import LoopExplorer, TableClient

from timely import Dataflow
from timely.running.checking.reached import Explorable
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Frame
from timely.wire.transport import Lent


class Post:
    """Carries the messages of all workers, each at most `late` sweeps late."""

    def __init__(self, late: int, seed: int) -> None:
        self.now = 0
        self._late = late
        self._chance = random.Random(seed)
        self._wires: dict[tuple[int, int], deque[tuple[int, list[memoryview]]]] = {}

    def put(self, source: int, target: int, frames: Sequence[Frame]) -> None:
        wire = self._wires.setdefault((source, target), deque())
        due = self.now + 1 + self._chance.randint(0, self._late)
        copied = [memoryview(bytes(frame)) for frame in frames]
        wire.append((max(due, wire[-1][0] if wire else 0), copied))

    def take(self, target: int) -> list[tuple[int, list[memoryview]]]:
        found = []
        for (source, to), wire in self._wires.items():
            while to == target and wire and wire[0][0] <= self.now:
                found.append((source, wire.popleft()[1]))
        return found


class Box:
    """The transport of one worker."""

    def __init__(self, post: Post, worker: int) -> None:
        self._post = post
        self._worker = worker

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        self._post.put(self._worker, peer, frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        return self._post.take(self._worker)

    def wait(self, timeout_seconds: float) -> None:
        raise AssertionError("nobody waits here")

    def lend(self) -> Lent | None:
        return None

    def take_back(self) -> tuple[int, int]:
        raise AssertionError("nothing was lent")

    def close(self) -> None:
        raise AssertionError("nobody closes it")


def sweeps_of(
    workers: int, pairs: Sequence[Pair], late: int, seed: int, compiled: bool, sweeps_max: int
) -> tuple[int, list[Instance]]:
    """After how many sweeps `countdown` is complete everywhere."""
    post = Post(late, seed)
    group = [Worker(index, workers, Box(post, index), compiled_loops=compiled) for index in range(workers)]
    for worker in group:
        flow = Dataflow("liveness")
        countdown(flow)
        instance = worker.install(flow.freeze())
        feed(instance, pairs[worker.index :: workers])
        instance.input("edges").close()
    instances = [worker.instance() for worker in group]
    while post.now < sweeps_max:
        for worker in group:
            worker.run_until_idle()
        if all(instance.is_complete() for instance in instances):
            break
        post.now += 1
    return post.now, instances


def bound(rounds: int, late: int, compiled: bool) -> int:
    """For numbers up to `rounds`: how many messages, one after the other, can lie between the closing of
    inputs and the last thing that a worker hears, each of which takes 1 + `late` sweeps.

    compiled   two votes for each time round: rows come with one and are passed on, the next opens a barrier.
               Before that the closing, after it a vote that nothing waits, and the letting go
    otherwise  two for each time round: rows and progress side by side, then the news that they are taken up.
               Before that the closing, after it the last time round, which brings nothing, and the letting go
    """
    times_round = rounds + 1
    return (2 * times_round + 4 + (0 if compiled else 2)) * (1 + late)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("workers", [2, 3])
def test_bound_holds_for_each_delay(workers: int, compiled: bool, seed: int, effort: int) -> None:
    for rounds in (0, 1, 5):
        for late in (0, 1, 3):
            pairs = [(10 * n, rounds) for n in range(workers)]
            for case in range(2 * effort):
                most = bound(rounds, late, compiled)
                took, instances = sweeps_of(workers, pairs, late, seed + case, compiled, 4 * most)
                assert took <= most, f"{took} sweeps for {rounds} times round, {late} late: at most {most}"
                found = {(k, v) for each in instances for k, v, _ in changes_of(each)}
                assert found == countdown_plainly(pairs)


def test_every_run_comes_to_its_end() -> None:
    """Whoever is next, whatever is late: the graph of all states has no circle, so no run is endless."""
    acts = [[TableClient(((0, 1),), is_last=True, input="edges")], [TableClient(is_last=True, input="edges")]]
    explored = LoopExplorer(Explorable(countdown, acts, len, 2), whole=True, reduced=True).run()
    assert 20 < explored.longest < 60 and explored.ends >= 1, explored


# mutants_


@pytest.mark.parametrize("compiled", [True, False])
def test_mutants_workers_that_keep_their_progress_to_themselves_are_never_complete(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "_tell_all", lambda self, dataflow, changes: None)
    most = bound(1, 0, compiled)
    took, _ = sweeps_of(2, [(0, 1), (1, 1)], 0, 0, compiled, sweeps_max=4 * most)
    assert took == 4 * most
