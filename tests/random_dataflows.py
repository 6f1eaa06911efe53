"""Random dataflows of record vertices, loops included, on workers whose messages are delayed at random.

    Builder    the same random dataflow for each worker: up to three loops deep, notifications, holds
    run        one run of it: random input, random turns; watched by a `Monitor`, if wanted
    Watch      what the vertices of a run have seen

One seed decides the dataflow, the input, and the schedule.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, cast

from reference.monitor import Monitor

from progress.times.timestamp import Timestamp
from timely import Dataflow, Stream, Vertex
from timely.building.exchange import RecordRoute
from timely.building.loop import Loop
from timely.client.tables import records_of
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.transport.memory import MemoryNetwork

__all__ = ["Builder", "Keeping", "Watch", "Watched", "run"]

EPOCHS = 3
STEPS_MAX = 20_000
WHOLE_STEPS = 0.2
"""How often a worker takes a whole step and not a single action."""

Record = tuple[int, int]
"""(identity, fuel): the fuel is how often it may still go round a loop."""


@dataclass
class Watch:
    """What one run has seen, by (stage, worker)."""

    notified: dict[tuple[str, int], list[Timestamp]] = field(default_factory=dict)
    asked: Counter[tuple[str, int, Timestamp]] = field(default_factory=Counter)
    early: list[str] = field(default_factory=list)

    def saw_message(self, vertex: Watched, time: Timestamp) -> None:
        shape = vertex.code.shape
        for done in self.notified.get((vertex.name, vertex.worker), []):
            if shape.less_equal(time, done):
                self.early.append(f"{vertex!r} got a message at {time} after on_notify({done})")

    def saw_notification(self, vertex: Watched, time: Timestamp) -> None:
        self.notified.setdefault((vertex.name, vertex.worker), []).append(time)
        self.asked[vertex.name, vertex.worker, time] -= 1


class Watched(Vertex):
    """Hands records on at once, or when their time is complete; with `spends`, those whose fuel lasts."""

    def __init__(self, watch: Watch, waits: bool, spends: bool, outputs: int, ports: int) -> None:
        self.watch = watch
        self.waits = waits
        self.spends = spends
        self.outputs = outputs
        self.ports = ports
        self.waiting: dict[Timestamp, list[Record]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.watch.saw_message(self, time)
        records = cast(list[Record], message)
        if not self.waits:
            self.emit(records, time)
            return
        if time not in self.waiting:
            self.waiting[time] = []
            self.watch.asked[self.name, self.worker, time] += 1
            self.notify_at(time)
        self.waiting[time].extend(records)

    def on_notify(self, time: Timestamp) -> None:
        self.watch.saw_notification(self, time)
        self.emit(self.waiting.pop(time), time)

    def emit(self, records: list[Record], time: Timestamp) -> None:
        kept = [(one, fuel - 1) for one, fuel in records if fuel > 0] if self.spends else records
        for output in range(self.outputs):
            self.send_by(output, kept, time)


class Keeping(Watched):
    """Holds a time as long as it has records of it. Sends one now and then, the rest when it is complete."""

    wants_frontier: ClassVar[bool] = True

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.watch.saw_message(self, time)
        if time not in self.waiting:
            self.waiting[time] = []
            self.hold(self.code.pack(time))
        self.waiting[time].extend(cast(list[Record], message))
        earliest = min(self.waiting)
        self.emit([self.waiting[earliest].pop()], earliest)
        if not self.waiting[earliest]:
            self.let_go(earliest)

    def on_frontier(self) -> None:
        for time in [time for time in self.waiting if self.is_complete(time)]:
            self.emit(self.waiting[time], time)
            self.let_go(time)

    def let_go(self, time: Timestamp) -> None:
        del self.waiting[time]
        self.release(self.code.pack(time))

    def is_complete(self, time: Timestamp) -> bool:
        shape, unpack = self.code.shape, self.code.unpack
        fronts = [unpack(int(word)) for port in range(self.ports) for word in self.frontier(port)]
        return not any(shape.less_equal(front, time) for front in fronts)


class Builder:
    """Builds the same random dataflow for each worker: all choices come from `seed`."""

    def __init__(self, seed: int, watch: Watch) -> None:
        self._random = random.Random(seed)
        self._watch = watch
        self._stages = 0
        self.flow = Dataflow(f"random {seed}", level_bits=(8, 12, 12, 12))
        inputs = [self.flow.input(f"in {number}") for number in range(self._random.randint(1, 2))]
        streams = self._body(list(inputs), None, depth=0)
        for number, stream in enumerate(streams):
            self.flow.output(f"out {number}", stream)

    def _body(self, streams: list[Stream], loop: Loop | None, depth: int) -> list[Stream]:
        for _ in range(self._random.randint(1, 3)):
            if depth < 3 and self._random.random() < 0.4:
                streams.append(self._loop(self._random.choice(streams), loop, depth))
            else:
                sources = self._random.sample(streams, self._random.randint(1, min(2, len(streams))))
                streams.append(self._stage(sources))
        return streams[-2:]

    def _stage(self, sources: list[Stream], spends: bool = False, outputs: int = 1) -> Stream:
        self._stages += 1
        waits = self._random.random() < 0.5
        feeds = []
        for port, source in enumerate(sources):
            salt = self._random.randint(0, 9)
            route = RecordRoute(_by_identity(salt)) if self._random.random() < 0.7 else None
            feeds.append(source.feed(port if self._random.random() < 0.5 else 0, route=route))
        if all(feed.port for feed in feeds):
            feeds[0] = sources[0].feed(0, route=feeds[0].route)
        ports = 1 + max(feed.port for feed in feeds)
        keeps = not spends and self._random.random() < 0.3
        made = self.flow.stage(
            f"stage {self._stages}",
            lambda: (Keeping if keeps else Watched)(self._watch, waits, spends, outputs, ports),
            feeds,
            outputs=outputs,
        )
        return made[0]

    def _loop(self, stream: Stream, parent: Loop | None, depth: int) -> Stream:
        order = self._random.choice(("product", "lexicographic"))
        name = f"loop {self._stages}"
        made = (
            self.flow.loop(name, order="lexicographic" if order == "lexicographic" else "product")
            if parent is None
            else parent.loop(name, order="lexicographic" if order == "lexicographic" else "product")
        )
        with made as loop:
            back = loop.feedback()
            inside = self._body([self._stage([loop.enter(stream), back.stream])], loop, depth + 1)
            back.connect(self._stage([inside[-1]], spends=True))
            return loop.leave(self._random.choice(inside))


def _by_identity(salt: int) -> Callable[[object], int]:
    return lambda record: (cast(Record, record)[0] * 7 + salt) >> 1


def run(
    seed: int, workers: int, delays: int | None, monitored: bool = True
) -> tuple[dict[str, Counter[tuple[int, object]]], Watch]:
    """The outputs as multisets of (epoch, record), and what was watched.

    `monitored`: every predicate of progress tracking is evaluated after every activation and every step.
    """
    watch = Watch()
    network = MemoryNetwork(workers, delays)
    group = [
        Worker(index, workers, network.transport(index) if workers > 1 else None) for index in range(workers)
    ]
    if monitored:
        Monitor(group, network)
    instances = [worker.install(Builder(seed, watch).flow.freeze()) for worker in group]
    schedule = random.Random(delays)
    feed = random.Random(seed + 1)
    for epoch in range(EPOCHS):
        for name in instances[0].inputs:
            records: list[list[object]] = [[] for _ in range(workers)]
            for identity in range(feed.randint(0, 5)):
                records[identity % workers].append((identity + 10 * epoch, feed.randint(0, 2)))
            for instance, share in zip(instances, records, strict=True):
                instance.input(name).send(share)
                instance.input(name).seal()
        step(group, schedule, schedule.randint(0, 60))
    for instance in instances:
        for handle in instance.inputs.values():
            handle.close()
    finish(group, schedule)
    outputs: dict[str, Counter[tuple[int, object]]] = {}
    for name in instances[0].frozen.outputs:
        outputs[name] = Counter(entry for instance in instances for entry in outputs_of(instance, name))
    for instance in instances:
        assert instance.is_complete(), f"worker {instance.worker}: {instance.tracker.active()}"
        instance.tracker.check_invariants()
    return outputs, watch


def outputs_of(instance: Instance, name: str) -> list[tuple[int, object]]:
    return records_of(instance.output(name).log.changes(0, EPOCHS))


def step(group: list[Worker], schedule: random.Random, steps: int) -> bool:
    """Workers run at their own pace, by whole steps and single actions: what is next is decided by the
    schedule. Returns whether there was something left to do.
    """
    for _ in range(steps):
        actions = [(worker, action) for worker in group for action in worker.enabled()]
        if not actions:
            return False
        worker, action = schedule.choice(actions)
        if schedule.random() < WHOLE_STEPS:
            worker.step()
        else:
            worker.perform(action)
    return True


def finish(group: list[Worker], schedule: random.Random) -> None:
    assert not step(group, schedule, STEPS_MAX), "it does not become idle"
