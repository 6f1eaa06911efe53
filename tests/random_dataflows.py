"""Random dataflows of record vertices, loops included, on workers whose messages are delayed at random.

    Builder    the same random dataflow for each worker: up to three loops deep, notifications, holds, sources
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

from progress.times.timestamp import Timestamp
from timely import Capability, Dataflow, Stream, Vertex
from timely.building.exchange import RecordRoute
from timely.building.loop import Loop, LoopOrder
from timely.client.tables import records_of
from timely.running.checking.actions import Receive, singly
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.sending.telling import Telling
from timely.wire.transport.memory import MemoryNetwork

__all__ = ["Builder", "Keeping", "Watch", "Watched", "run"]

EPOCHS = 3
EPOCHS_MAX = 100
"""More than there are, though records come back at later epochs."""

ORDERS: tuple[LoopOrder, ...] = ("product", "lexicographic", "prioritised")
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
    misled: list[str] = field(default_factory=list)
    """Records that came to another worker than that of their key."""

    def saw_message(self, vertex: Watched, time: Timestamp) -> None:
        shape = vertex.code.shape
        for done in self.notified.get((vertex.name, vertex.worker), []):
            if shape.less_equal(time, done):
                self.early.append(f"{vertex!r} got a message at {time} after on_notify({done})")

    def saw_records(self, vertex: Watched, edge: int, records: list[Record]) -> None:
        salts = vertex.salts.get(edge, [])
        for record in records if salts else ():
            if all(_by_identity(salt)(record) % vertex.workers != vertex.worker for salt in salts):
                self.misled.append(f"{vertex!r} got {record} at edge {edge} on worker {vertex.worker}")

    def saw_notification_late(self, vertex: Vertex, time: Timestamp) -> None:
        self.asked[vertex.name, vertex.worker, time] -= 1

    def saw_notification(self, vertex: Watched, time: Timestamp) -> None:
        self.notified.setdefault((vertex.name, vertex.worker), []).append(time)
        self.asked[vertex.name, vertex.worker, time] -= 1


class Watched(Vertex):
    """Hands records on at once, or when their time is complete; with `spends`, those whose fuel lasts; with
    `lags`, at the next time.
    """

    def __init__(
        self,
        watch: Watch,
        waits: bool,
        lags: bool,
        spends: bool,
        outputs: int,
        ports: int,
        salts: dict[int, list[int]] | None = None,
    ) -> None:
        """`salts`: of the ports to which all records come by a key, those of the keys."""
        self.watch = watch
        self.salts = salts or {}
        self.waits = waits
        self.lags = lags
        self.spends = spends
        self.outputs = outputs
        self.ports = ports
        self.waiting: dict[Timestamp, list[Record]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.watch.saw_message(self, time)
        records = cast(list[Record], message)
        self.watch.saw_records(self, edge, records)
        if not self.waits:
            self.emit(records, time)
            return
        if time not in self.waiting:
            self.waiting[time] = []
            self.watch.asked[self.name, self.worker, time] += 1
            if self.lags:
                self.notify_at(time, at=_next(time))
            else:
                self.notify_at(time)
        self.waiting[time].extend(records)

    def on_notify(self, time: Timestamp) -> None:
        self.watch.saw_notification(self, time)
        self.emit(self.waiting.pop(time), _next(time) if self.lags else time)

    def emit(self, records: list[Record], time: Timestamp) -> None:
        kept = [(one, fuel - 1) for one, fuel in records if fuel > 0] if self.spends else records
        for output in range(self.outputs):
            self.send_by(output, kept, time)


class Keeping(Watched):
    """Holds a time as long as it has records of it. Sends one now and then, the rest when it is complete."""

    wants_frontier: ClassVar[bool] = True

    def on_start(self) -> None:
        self.held: dict[Timestamp, Capability] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.watch.saw_message(self, time)
        self.watch.saw_records(self, edge, cast(list[Record], message))
        if time not in self.waiting:
            self.waiting[time] = []
            self.held[time] = self.hold(time)
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
        self.held.pop(time).drop()

    def is_complete(self, time: Timestamp) -> bool:
        fronts = [front for port in range(self.ports) for front in self.frontier(port)]
        return not any(self.code.shape.less_equal(front, time) for front in fronts)


class ByPaths(Vertex):
    """What comes in at input 0 leaves late by output 0, when its time is complete; what comes in at input 1
    never leaves there, but at once by output 1.
    """

    def __init__(self, watch: Watch, late: int) -> None:
        self.watch = watch
        self.late = late
        self.waiting: dict[Timestamp, list[Record]] = {}

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        records = cast(list[Record], message)
        if edge == 1:
            self.send_by(1, records, time)
            return
        later = (*time[:-1], time[-1] + self.late)
        if later not in self.waiting:
            self.waiting[later] = []
            self.watch.asked[self.name, self.worker, later] += 1
            self.notify_at(later)
        self.waiting[later].extend(records)

    def on_notify(self, time: Timestamp) -> None:
        self.watch.saw_notification_late(self, time)
        self.send_by(0, self.waiting.pop(time), time)


class Rising(Vertex):
    """A source: some records of each epoch, an epoch in each turn; those of all workers are the same however
    many there are.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate()

    def on_activate(self) -> None:
        (epoch,) = self.held.time
        chance = random.Random(f"{self.seed} {epoch}")
        records = [
            (100 + number + 10 * epoch, chance.randint(0, 2)) for number in range(chance.randint(0, 4))
        ]
        self.send_by(0, records[self.worker :: self.workers], self.held.time)
        if epoch == EPOCHS - 1:
            self.held.drop()
        else:
            self.held.downgrade((epoch + 1,))
            self.activate()


def _next(time: Timestamp) -> Timestamp:
    return (*time[:-1], time[-1] + 1)


def _next_priority(time: Timestamp) -> Timestamp:
    return (*time[:-2], time[-2] + 1, 0)


class Builder:
    """Builds the same random dataflow for each worker: all choices come from `seed`."""

    def __init__(self, seed: int, watch: Watch, workers: int = 1) -> None:
        self._random = random.Random(seed)
        self._workers = workers
        self._watch = watch
        self._stages = 0
        self.flow = Dataflow(f"random {seed}", level_bits=(8, 16, 16, 16))
        inputs = [self.flow.input(f"in {number}") for number in range(self._random.randint(1, 2))]
        if random.Random(f"{seed} source").random() < 0.4:
            inputs.append(self.flow.source("source", lambda: Rising(seed)))
        if random.Random(f"{seed} root").random() < 0.4:
            streams = self._to_later_epochs(inputs)
        else:
            streams = self._body(inputs, None, depth=0)
        for number, stream in enumerate(streams):
            self.flow.output(f"out {number}", stream)

    def _to_later_epochs(self, inputs: list[Stream]) -> list[Stream]:
        """A circle outside of all loops: records come back some epochs later."""
        back = self.flow.feedback(by=self._random.choice((1, 1, 2, 3)))
        first = self._stage([self._random.choice(inputs), back.stream])
        streams = self._body([*inputs, first], None, depth=0)
        back.connect(self._stage([streams[-1]], spends=True))
        return streams

    def _body(self, streams: list[Stream], loop: Loop | None, depth: int) -> list[Stream]:
        for _ in range(self._random.randint(1, 3)):
            if depth < 3 and self._random.random() < 0.4:
                streams.append(self._loop(self._random.choice(streams), loop, depth))
            else:
                sources = self._random.sample(streams, self._random.randint(1, min(2, len(streams))))
                streams.append(self._operator(self._stage(sources)))
        return streams[-2:]

    def _operator(self, stream: Stream) -> Stream:
        """One of the operators of streams behind it, or none."""
        match self._random.randint(0, 9):
            case 0:
                yes, no = stream.branch(_by_identity(0))
                return yes.concat(no)
            case 1:
                later = _next_priority if stream.scope.shape.level_coordinates[-1] == 2 else _next
                return stream.delay(
                    lambda record, time: later(time) if _by_identity(2)(record) % 3 == 0 else time
                )
            case 2:
                return stream.exchange(_by_identity(1))
            case 3:
                return stream.state_machine(_count_up, 0)
            case 4:
                return self._by_paths(stream)
            case _:
                return stream

    def _stage(self, sources: list[Stream], spends: bool = False, outputs: int = 1) -> Stream:
        self._stages += 1
        waits = self._random.random() < 0.5
        lags = self._random.random() < 0.3
        feeds, chosen = [], list[int | None]()
        for port, source in enumerate(sources):
            salt = self._random.randint(0, 9)
            route = RecordRoute(_by_identity(salt)) if self._random.random() < 0.7 else None
            chosen.append(None if route is None else salt)
            feeds.append(source.feed(port if self._random.random() < 0.5 else 0, route=route))
        if all(feed.port for feed in feeds):
            feeds[0] = sources[0].feed(0, route=feeds[0].route)
        ports = 1 + max(feed.port for feed in feeds)
        keeps = not spends and self._random.random() < 0.3
        placed = None
        if self._random.random() < 0.3:
            placed = sorted({self._random.randint(0, 9) % self._workers for _ in range(2)})
        salts = _by_port([feed.port for feed in feeds], chosen if placed is None else [])
        made = self.flow.stage(
            f"stage {self._stages}",
            lambda: (Keeping if keeps else Watched)(self._watch, waits, lags, spends, outputs, ports, salts),
            feeds,
            outputs=outputs,
            workers=placed,
        )
        return made[0]

    def _by_paths(self, stream: Stream) -> Stream:
        """A stage whose inputs lead to its outputs by paths of their own: late, never, at the same time."""
        self._stages += 1
        late = self._random.choice((1, 2))
        parts = stream.branch(lambda record: _by_identity(0)(record) % 2)
        feeds = [part.feed(port, exchange=_by_identity(port)) for port, part in enumerate(parts)]
        first, second = self.flow.stage(
            f"paths {self._stages}",
            lambda: ByPaths(self._watch, late),
            feeds,
            outputs=2,
            paths={(0, 0): late, (1, 0): None},
            workers=self._random.choice((None, 1)),
        )
        return first.concat(second)

    def _loop(self, stream: Stream, parent: Loop | None, depth: int) -> Stream:
        order = self._random.choice(ORDERS)
        name = f"loop {self._stages}"
        with (self.flow if parent is None else parent).loop(name, order=order) as loop:
            back = loop.feedback(by=self._random.choice((1, 1, 1, 2, 5)))
            at = _small_number if self._random.random() < 0.3 else None
            entered = loop.enter(stream, at=at)
            inside = self._body([self._stage([entered, back.stream])], loop, depth + 1)
            back.connect(self._stage([inside[-1]], spends=True))
            left = loop.leave(self._random.choice(inside))
            if self._random.random() < 0.3:
                left = left.concat(loop.leave(self._random.choice(inside), at=self._random.randint(0, 2)))
            return left


def _by_port(ports: list[int], salts: list[int | None]) -> dict[int, list[int]]:
    """The salts of the feeds of each port to which all feeds have one; none at all if `salts` is empty."""
    result: dict[int, list[int]] = {}
    open_ports = {port for port, salt in zip(ports, salts, strict=False) if salt is None}
    for port, salt in zip(ports, salts, strict=False):
        if salt is not None and port not in open_ports:
            result.setdefault(port, []).append(salt)
    return result


def _count_up(key: object, fuel: object, count: object) -> tuple[object, list[object]]:
    return cast(int, count) + 1, [(key, fuel)]


def _small_number(record: object) -> int:
    return cast(Record, record)[0] % 3


def _by_identity(salt: int) -> Callable[[object], int]:
    return lambda record: (cast(Record, record)[0] * 7 + salt) >> 1


def run(
    seed: int, workers: int, delays: int | None, monitored: bool = True, per_host: int = 0
) -> tuple[dict[str, Counter[tuple[int, object]]], Watch]:
    """The outputs as multisets of (epoch, record), and what was watched.

    `monitored`: every predicate of progress tracking is evaluated after every activation and every step.
    `per_host`: how workers tell one another of progress: 0, after each step; otherwise as `Telling` says.
    """
    watch = Watch()
    network = MemoryNetwork(workers, delays)
    group = [
        Worker(
            index,
            workers,
            network.transport(index) if workers > 1 else None,
            telling=Telling(index, workers, per_host) if per_host else None,
        )
        for index in range(workers)
    ]
    if monitored:
        Monitor(group, network)
    instances = [worker.install(Builder(seed, watch, workers).flow.freeze()) for worker in group]
    schedule = random.Random(f"{seed} without delays" if delays is None else delays)
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
    return records_of(instance.output(name).log.changes(0, EPOCHS_MAX))


def step(group: list[Worker], schedule: random.Random, steps: int) -> bool:
    """Workers run at their own pace, by whole steps and single actions: what is next is decided by the
    schedule. Returns whether there was something left to do.
    """
    able = [worker.enabled() for worker in group]
    for _ in range(steps):
        actions = [(who, action) for who, each in enumerate(able) for action in each]
        if not actions:
            return False
        who, action = schedule.choice(actions)
        if schedule.random() < WHOLE_STEPS:
            group[who].step()
        else:
            group[who].perform(action)
        for other, worker in enumerate(group):
            if other == who or messages_at(worker) != sum(isinstance(each, Receive) for each in able[other]):
                able[other] = worker.enabled()
    return True


def messages_at(worker: Worker) -> int:
    """From how many others a message waits for a worker: all that others can change of what it may do."""
    transport = worker._transport
    return 0 if transport is None else len(singly(transport).heard())


def finish(group: list[Worker], schedule: random.Random) -> None:
    assert not step(group, schedule, STEPS_MAX), "it does not become idle"
