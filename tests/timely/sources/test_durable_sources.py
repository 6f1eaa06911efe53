"""Sources of durable workers: what they have sent is there after a restart, and they go on behind it.

any_*      after a crash at any operation of the disk, with any number of workers
refused_*  sources that could not go on
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from durable_workers import SECONDS, DurableWorkers, embedded, survivors, words
from durable_workers import shown as rows_of
from followed_workers import Followers, as_cluster
from simulated_store import SimulatedDisk, SimulatedStore
from source_flows import COUNT, PARTS, PartsVertex

import timely
from progress.times.timestamp import Timestamp
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce
from timely.operators.capability import Capability
from timely.operators.inputs.names import UNNAMED
from timely.wire.requests import IN_OPEN, Deliver, Install, Read
from timely.worker.answers.later import Later
from timely.worker.following import following as following_module

# any_


@dataclass
class Shown:
    """What clients have been shown of the output: the changes of epochs before `stop`."""

    stop: int = 0
    changes: list[tuple[object, ...]] = field(default_factory=list)

    def look(self, workers: DurableWorkers, vertices: Sequence[PartsVertex]) -> None:
        """Read what is complete. It is what was shown before, and more."""
        held = [vertex.held.time[0] for vertex in vertices if vertex.held.is_held]
        stop = min(held, default=max(vertex.held.time[0] for vertex in vertices) + 1)
        changes = workers.read("read", stop, number_of(workers))
        sums: dict[tuple[object, object], int] = {}
        for epoch, (part, number) in changes:  # type: ignore[misc]
            sums[epoch, part] = sums.get((epoch, part), 0) + number  # type: ignore[has-type]
        assert workers.read("sums", stop, number_of(workers)) == sorted(
            ((epoch, (part, total)) for (epoch, part), total in sums.items()), key=repr
        )
        assert [one for one in changes if one[0] < self.stop] == self.changes, "True"  # type: ignore[operator]
        self.stop, self.changes = max(self.stop, stop), changes
        read = [record for _, record in changes]
        for part in range(PARTS):
            numbers = sorted(number for of, number in read if of == part)  # type: ignore[misc]
            assert numbers == [*range(len(numbers))], "Once, and none is missing before another"


def number_of(workers: DurableWorkers) -> int:
    """The number of the dataflow, which is installed here if no log has it."""
    if not workers.workers[0].instances:
        workers.ask(Install("source_flows:in_parts", {}))
    (number,) = workers.workers[0].instances
    return number


def vertices_of(workers: DurableWorkers) -> list[PartsVertex]:
    number = number_of(workers)
    found = [worker.instance(number).runners[0].vertex for worker in workers.workers]
    assert all(isinstance(each, PartsVertex) for each in found)
    return found  # type: ignore[return-value]


def live(
    disk: SimulatedDisk, chance: random.Random, shown: Shown, crash_at: int
) -> tuple[SimulatedDisk, Shown]:
    """Go on with what a disk has; return the disk, and what was shown, at an operation of that disk, or, if
    it has fewer, at the end.
    """
    left = crash_at
    at_crash: list[tuple[SimulatedDisk, Shown]] = []

    def before(store: SimulatedStore, what: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            at_crash.append((SimulatedDisk(deepcopy(disk.files)), deepcopy(shown)))
        operate(store, what, path)

    operate = SimulatedStore.operate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedStore, "operate", before)
        with DurableWorkers(disk, chance.randrange(1, 4), chance.randrange(100)) as workers:
            vertices = [each for each in vertices_of(workers) if hasattr(each, "held")]  # else it is over
            for _ in range(chance.randrange(2, 12) if vertices else 0):
                vertex = chance.choice(vertices)
                if not vertex.held.is_held:
                    continue
                for part in vertex.read:
                    vertex.go(part, chance.randrange(3))
                if chance.random() < 0.1:
                    for part in vertex.read:
                        vertex.go(part, COUNT)
                    vertex.end()
                elif chance.random() < 0.8:
                    vertex.end_epoch(chance.choice([0, 1, 1, 3]))
                workers.settle()
                shown.look(workers, vertices)
            for vertex in vertices:
                if not vertex.held.is_held:
                    continue
                vertex.end_epoch(0)  # else its capability is lost with the vertex
    if not at_crash:
        return disk, shown
    disk, shown = at_crash[0]
    disk.crash(chance.randrange(1 << 30))
    return disk, shown


def finish(disk: SimulatedDisk, shown: Shown) -> None:
    """Read all that is left, once more after a restart."""
    for _ in range(2):
        with DurableWorkers(disk, 2) as workers:
            for vertex in vertices_of(workers):
                if hasattr(vertex, "held"):
                    for part in vertex.read:
                        vertex.go(part, COUNT)
                    vertex.end()
            workers.settle()
            stop = max(
                shown.stop,
                *(worker.instance(number_of(workers)).sources[0].latest + 1 for worker in workers.workers),
            )
            changes = workers.read("read", stop, number_of(workers))
            assert [one for one in changes if one[0] < shown.stop] == shown.changes  # type: ignore[operator]
            read = [record for _, record in changes]
            everything = [(part, number) for part in range(PARTS) for number in range(COUNT)]
            assert sorted(read, key=repr) == sorted(everything, key=repr)
            shown.stop, shown.changes = stop, changes


@pytest.mark.parametrize("number", range(10))
def test_any_crash_keeps_what_was_shown_and_the_source_sends_each_record_once(number: int, seed: int) -> None:
    chance = random.Random(seed + number)
    disk, shown = SimulatedDisk(), Shown()
    for _ in range(4):
        disk, shown = live(disk, chance, shown, crash_at=chance.randrange(1, 120))
        if chance.random() < 0.3:
            store = SimulatedStore(disk)
            incarnation = announce(store, 1)
            fold(logs_of(store, incarnation))
            prune(store, incarnation.number, count=1)
    finish(disk, shown)


def sent(workers: DurableWorkers, vertices: Sequence[PartsVertex], epochs: int = 1) -> None:
    """Let each worker send two records of each of its partitions, and end the epoch, so many times."""
    for _ in range(epochs):
        for vertex in vertices:
            for part in vertex.read:
                vertex.go(part, 2)
            vertex.end_epoch()
        workers.settle()


# positions_


def test_positions_of_before_stay_until_all_workers_have_given_new_ones() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        vertices = vertices_of(workers)
        assert [vertex.given for vertex in vertices] == [[], []]
        sent(workers, vertices)
        assert vertices[0].held.positions == []
    with DurableWorkers(disk, 3) as workers:
        vertices = vertices_of(workers)
        before = [{0: [2, 1], 2: [2, 1]}, {1: [2, 1], 3: [2, 1]}]
        assert [vertex.given for vertex in vertices] == [before] * 3
        assert [vertex.held.time for vertex in vertices] == [(1,)] * 3
    disk = survivors(disk)
    with DurableWorkers(disk, 1) as workers:  # three workers have given positions when they began
        (vertex,) = vertices_of(workers)
        assert vertex.given == [{0: [2, 1], 3: [2, 1]}, {1: [2, 1]}, {2: [2, 1]}]


def test_rows_of_a_source_are_followed_as_they_become_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_LOOK_SECONDS", 0.0)
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers, Followers(disk, 2) as followers:
        vertices = vertices_of(workers)
        for epoch in range(1, 4):
            sent(workers, vertices)
            workers.durable[0].mark_durable()
            workers.settle()
            followers.follow()
            instance = followers.workers[0].instance(0)
            assert instance.output("read").complete_before == epoch
            assert not hasattr(instance.runners[0].vertex, "held"), "it begins when it has taken over"
        expected = workers.read("read", 3)
        after = as_cluster(followers, followers.take_over())
        assert after.read("read", 3) == expected
        vertices = vertices_of(after)
        assert [vertex.held.time for vertex in vertices] == [(3,), (3,)]
        sent(after, vertices)
        assert len(after.read("read", 4)) == len(expected) + 2 * PARTS
    with DurableWorkers(disk, 1) as again:
        vertices_of(again)
        assert again.read("read", 3) == expected


def test_an_epoch_is_shown_once_it_is_in_the_log_and_holds_up_no_output_that_it_does_not_reach() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        number = workers.ask(Install("source_flows:beside_parts", {})).integer("dataflow")
        first, second = vertices_of(workers)
        workers.gate.shut(1)
        for vertex in (first, second):
            vertex.go(vertex.worker, 2)
            vertex.end_epoch()
        workers.settle()
        answers = [workers.take(Read(number, "read", 0, 1, SECONDS), worker=worker) for worker in (0, 1)]
        workers.settle()
        assert all(isinstance(answer, Later) and answer.ready() is None for answer in answers), (
            "the first worker knows that the other's disk is behind"
        )
        workers.gate.open()
        assert len(rows_of([workers.known(answer).table for answer in answers])) == 4
        first.end_epoch(5)
        workers.ask(Deliver(number, "rows", "", UNNAMED, IN_OPEN, 0, 1), words("apart"))
        workers.seal(3, number)
        assert workers.read("apart", 4, number) == [(0, "apart")], "though the second worker is at epoch 1"
        for vertex in (first, second):
            vertex.end_epoch(0)


# refused_


class GivesVertex(timely.Vertex):
    """Does one thing with its capability, that of its class."""

    position: object = None

    def on_open(self, capability: Capability) -> None:
        self.act(capability)

    def act(self, capability: Capability) -> None:
        raise NotImplementedError


class GoesOnVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        self.held = capability
        capability.downgrade((1,))


class DropsVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        self.send_by(0, ["x"], (0,))
        capability.drop()


class OddVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        capability.drop(position=object())


class OfHoldVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        with capability, self.hold((1,)) as other:
            other.drop(position=1)


class LateVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        other = capability.delay((1,))
        self.notify_at((0,))
        self.held = other
        capability.drop(position=1)

    def on_notify(self, time: Timestamp) -> None:
        self.held.downgrade((2,), position=2)
        self.held.drop(position=3)
        self.send_by(0, ["x"], (3,))


class NotifiedVertex(GivesVertex):
    """Sends once more behind its last position."""

    def act(self, capability: Capability) -> None:
        self.notify_at(capability.time)
        self.send_by(0, ["opened"], capability.time)
        self.held = capability
        capability.downgrade((1,), position=1)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, ["notified"], time)


class KeyedVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        capability.drop(position={("topic", 0): 5})


class ThreadVertex(GivesVertex):
    def act(self, capability: Capability) -> None:
        errors: list[Exception] = []
        thread = threading.Thread(target=self.drop_it, args=(capability, errors))
        thread.start()
        thread.join()
        raise errors[0]

    def drop_it(self, capability: Capability, errors: list[Exception]) -> None:
        try:
            capability.drop(position=1)
        except timely.MisuseError as error:
            errors.append(error)


@pytest.mark.parametrize(
    ("vertex", "says"),
    [
        (NotifiedVertex, "goes on to epoch 1 without a position"),
        (KeyedVertex, "a position is plain data.* whose keys are no tuples"),
        (ThreadVertex, "gave a position in the thread"),
        (GoesOnVertex, "goes on to epoch 1 without a position, and this cluster is durable"),
        (DropsVertex, "gives up its last right without a position"),
        (OddVertex, "a position is plain data"),
        (OfHoldVertex, "only a source has positions"),
        (LateVertex, "sends at epoch 3 in a callback that has given it up"),
    ],
)
def test_refused_positions(vertex: type[timely.Vertex], says: str) -> None:
    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.source("source", vertex))

    with embedded(SimulatedDisk()) as (cluster, _):
        flow = cluster.install(build)
        with pytest.raises(timely.MisuseError, match=says):
            flow.finish(timeout=20)


class CatchesVertex(timely.Vertex):
    """Goes on behind what is refused."""

    def on_open(self, capability: Capability) -> None:
        self.send_by(0, ["x"], capability.time)
        with suppress(timely.MisuseError):
            capability.downgrade((5,))
        with suppress(timely.MisuseError):
            capability.drop(position=object())
        capability.drop(position=1)


class FailsVertex(timely.Vertex):
    def on_open(self, capability: Capability) -> None:
        with capability:
            self.send_by(0, ["x"], capability.time)
            raise ValueError("of the callback")


def test_refused_positions_leave_all_as_it_was_and_hide_no_other_error() -> None:
    with embedded(SimulatedDisk()) as (cluster, _):
        flow = cluster.install(lambda flow: flow.output("out", flow.source("source", CatchesVertex)))
        assert flow.finish(timeout=20) == 1
        assert flow.output("out").changes() == [(0, "x")]

        def failing(dataflow: timely.Dataflow) -> None:
            dataflow.output("out", dataflow.source("source", FailsVertex))

        fails = cluster.install(failing)
        with pytest.raises(timely.VertexError, match="of the callback"):
            fails.finish(timeout=20)


def test_refused_sources_and_names(tmp_path: Path) -> None:
    def replays(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.replay(tmp_path))

    def twice(dataflow: timely.Dataflow) -> None:
        for _ in range(2):
            dataflow.output("out", dataflow.source("same", DropsVertex))

    def alike(dataflow: timely.Dataflow) -> None:
        dataflow.output("rows", dataflow.input("source same"))
        dataflow.output("out", dataflow.source("same", DropsVertex))

    with timely.connect(workers=1, embedded=True) as cluster:
        captured = cluster.install(lambda flow: flow.input("rows").capture(tmp_path))
        captured.input("rows").close()
        captured.finish()
    with embedded(SimulatedDisk()) as (cluster, _):
        with pytest.raises(timely.MisuseError, match="begins with its first record, and all records would"):
            cluster.install(replays)
        with pytest.raises(timely.MisuseError, match="another source has that name"):
            cluster.install(alike)


# others


_opened: list[tuple[int, Sequence[object]]] = []


def note_opened(worker: int, positions: Sequence[object]) -> None:
    _opened.append((worker, list(positions)))


class CountsVertex(timely.Vertex):
    """Three numbers in a life, and no more than six."""

    def on_open(self, capability: Capability) -> None:
        note_opened(self.worker, capability.positions)
        last = max(cast("list[int]", capability.positions), default=0)
        for number in range(last, last + 3):
            self.send_by(0, [number], (number,))
            capability.downgrade((number + 1,), position=number + 1)
        if last < 3:
            self.held = capability
        else:
            capability.drop()  # it has sent nothing behind the last position


def counts(dataflow: timely.Dataflow) -> None:
    source = dataflow.source("counts", CountsVertex, workers=[1])
    dataflow.output("out", source.exchange(timely.by()))
    dataflow.output("both", dataflow.input("rows").concat(source))


def test_workers_without_the_source_do_not_hold_it_up_and_what_is_over_stays_so() -> None:
    disk = SimulatedDisk()
    for life in range(3):
        with embedded(disk, workers=2) as (cluster, _):
            flow = cluster.install(counts)
            assert flow.epoch == (0, 3, 7)[life], "behind the last one, once nothing more can come"
            last = (3, 6, 6)[life]
            for epoch in range(flow.epoch, last):
                flow.input("rows").insert([f"row {epoch}"])
                flow.seal(wait=True)
            assert flow.output("out").changes(0, last) == [(number, number) for number in range(last)]
            assert len(flow.output("both").changes(0, last)) == 2 * last
            if life:
                flow.input("rows").close()
                assert flow.finish(timeout=20) == 7
    assert _opened == [(1, []), (1, [3])]


class EndsByNoticeVertex(timely.Vertex):
    """What it may do last is in a notification."""

    def on_open(self, capability: Capability) -> None:
        self.notify_at((0,))
        capability.drop(position=1)

    def on_notify(self, time: Timestamp) -> None:
        del time
        note_opened(self.worker, ["notified"])


def test_a_source_is_over_behind_its_last_notification() -> None:
    _opened.clear()
    disk = SimulatedDisk()
    for _ in range(2):
        with embedded(disk) as (cluster, _):
            flow = cluster.install(lambda flow: flow.output("out", flow.source("ends", EndsByNoticeVertex)))
            flow.finish(timeout=20)
    assert _opened == [(0, ["notified"])]


class SharedVertex(timely.Vertex):
    """The first worker reads all there is, and then drops its right without a word, since nothing is left."""

    def on_open(self, capability: Capability) -> None:
        note_opened(self.worker, capability.positions)
        positions = cast("list[list[int]]", capability.positions)
        last = max((number for worker, number in positions if worker == self.worker), default=0)
        if self.worker == 0:
            if last == 0:
                self.send_by(0, ["once"], capability.time)
                capability.drop(position=[0, 1])
            else:
                capability.drop()
            return
        self.held = capability
        capability.downgrade((capability.time[0] + 1,), position=[1, last + 1])


def test_a_worker_without_a_position_leaves_that_of_before() -> None:
    _opened.clear()
    disk = SimulatedDisk()
    for life in range(4):
        with embedded(disk, workers=2) as (cluster, _):
            flow = cluster.install(lambda flow: flow.output("out", flow.source("shared", SharedVertex)))
            flow.wait(life, timeout=20)
            assert flow.output("out").changes(0, life + 1) == [(0, "once")]
    assert [positions for worker, positions in _opened if worker == 0] == [
        [],
        [[0, 1], [1, 1]],
        [[0, 1], [1, 1], [1, 2]],
        [[0, 1], [1, 1], [1, 2], [1, 3]],
    ]


class CountedVertex(timely.Vertex):
    """Sends a dict, and gives the position in a later turn."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        if not capability.positions:
            self.send_by(0, [{"n": 1}], capability.time)
        self.activate(after=0.01)

    def on_activate(self) -> None:
        self.held.drop(position=1)


def _counted(record: dict[str, int]) -> dict[str, int]:
    record["n"] += 1
    return record


def test_what_readers_do_to_records_is_not_in_the_log() -> None:
    disk = SimulatedDisk()
    for _ in range(2):
        with embedded(disk) as (cluster, _):
            flow = cluster.install(
                lambda flow: flow.output("out", flow.source("counted", CountedVertex).map(_counted))
            )
            flow.finish(timeout=20)
            assert flow.output("out").changes() == [(0, {"n": 2})]


def test_a_batch_of_an_epoch_that_is_far_is_there_after_a_restart() -> None:
    far = 1 << 40

    class FarVertex(timely.Vertex):
        def on_open(self, capability: Capability) -> None:
            self.send_by(0, ["near"], capability.time)
            self.send_by(0, ["far"], (far,))
            capability.downgrade((far + 1,), position="all")
            self.held = capability

    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.source("far", FarVertex))

    disk = SimulatedDisk()
    for life in range(2):
        with embedded(disk) as (cluster, _), suppress(timely.MisuseError):
            flow = cluster.install(build)
            flow.wait(far, timeout=20)
            assert flow.output("out").changes() == [(0, "near"), (far, "far")][: 2 + life]
