"""Many workers in one process, random delays, an all-knowing count: is a view ever too optimistic?

The model runs the real `Tracker`, `CountChanges` and `Broadcaster` of every worker. Vertices behave at
random, within the rules: what they receive or hold at t lets them send, hold or ask at t or later. Data goes
to random workers and arrives in any order; progress is FIFO between each pair of workers, and as late as it
likes. Beside it stands what is true: how many events are outstanding, everywhere, now.

`Schedule.check` compares every worker's view with the truth; the letters are those of the literature:

    A1   no true count is negative
    A5   truth = a worker's view + what is under way to it + what others have not told yet
    A6   what is outstanding is, for every worker, at or after something active in its view
    B6   what is negative in a view is after something positive there
    E2   what is outstanding holds every frontier back that it can lead to, at every worker
    S3   frontiers only move forward
    B5   what is under way is justified by what is true (costs more: `check_justified`)

`Fault` names ways to break the protocol, each of which these checks must notice.
"""

from __future__ import annotations

import random
import struct
from collections import Counter, deque
from enum import Enum, auto

from progress.broadcast import Broadcaster
from progress.count_changes import Change, CountChanges
from progress.graph import Graph
from progress.tracker import Tracker

Pointstamp = tuple[int, int]
"""(location, word)."""

SENDS_MAX = 14
EPOCHS_MAX = 3
DRAIN_ROUNDS_MAX = 400


class Fault(Enum):
    """A way to break the protocol."""

    NONE = auto()
    DECREMENTS_FIRST = auto()
    """A step's decrements and increments leave as two payloads, decrements first."""
    OVERTAKING = auto()
    """Payloads between two workers may overtake one another, and nobody looks at the numbers."""
    OWN_VIEW_FOR_A_RIGHT = auto()
    """A vertex sends at a time that its worker's view still allows, without holding anything there."""
    LOST_PAYLOAD = auto()
    """One payload never arrives, and nobody looks at the numbers."""


class ViolationError(AssertionError):
    """A view and the truth contradict each other."""


class Table:
    """What the checks look up, computed once per graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        ports: dict[tuple[int, int], list[int]] = {}
        for number, connector in enumerate(graph.connectors):
            location = graph.connector_location(number)
            ports.setdefault((connector.target, connector.input), []).append(location)
        self.ports = list(ports.values())
        self.ports_of_stage: list[list[int]] = [[] for _ in graph.stages]
        for port, (stage, _) in enumerate(ports):
            self.ports_of_stage[stage].append(port)
        self.table = Tracker(graph, self.ports).table
        self.guards: list[int] = self.table.guards.tolist()
        self.valid: list[int] = self.table.valid.tolist()
        self.port_guards = [self.guards[group[0]] for group in self.ports]
        self.leaving: list[list[int]] = [[] for _ in graph.stages]
        for number, connector in enumerate(graph.connectors):
            self.leaving[connector.source].append(number)
        self.carries = [
            connector.summary.to_words(graph.codes[connector.source], graph.codes[connector.target])
            for connector in graph.connectors
        ]
        self._images: dict[Pointstamp, list[tuple[int, int]]] = {}
        self._below: dict[tuple[Pointstamp, Pointstamp], bool] = {}

    def images(self, pointstamp: Pointstamp) -> list[tuple[int, int]]:
        """The (port, earliest word) that an event at `pointstamp` can lead to."""
        if pointstamp not in self._images:
            location, word = pointstamp
            self._images[pointstamp] = [
                (port, (word & keep) + add)
                for port, group in enumerate(self.ports)
                for target in group
                for keep, add in self.table.between(location, target)
                if ((word & keep) + add) & ~self.valid[target] == 0
            ]
        return self._images[pointstamp]

    def could_result_in(self, a: Pointstamp, b: Pointstamp) -> bool:
        """Whether an event at `a` can lead to one at `b`. Reflexive."""
        if (a, b) not in self._below:
            guards = self.guards[b[0]]
            self._below[a, b] = any(
                image & ~self.valid[b[0]] == 0 and ((b[1] | guards) - image) & guards == guards
                for image in ((a[1] & keep) + add for keep, add in self.table.between(a[0], b[0]))
            )
        return self._below[a, b]


class ModelWorker:
    """One worker: its own tracker, what waits for it, what it holds, what it has not told yet."""

    def __init__(self, index: int, workers: int, table: Table) -> None:
        self.index = index
        self.tracker = Tracker(table.graph, table.ports)
        self.tracker.apply([(0, 0, workers)])
        self.broadcaster = Broadcaster(index, workers, table.graph.location_count)
        self.changes = CountChanges()
        self.inbox: list[Pointstamp] = []
        self.held: list[Pointstamp] = []
        self.asked: list[Pointstamp] = []
        self.epoch: int | None = 0
        self.fronts: list[list[int]] = [
            self.tracker.frontier(port).tolist() for port in range(len(table.ports))
        ]


class Schedule:
    """One run, decided by its seed alone. `run` raises `ViolationError` as soon as a check fails."""

    def __init__(self, table: Table, workers: int, seed: int, fault: Fault = Fault.NONE) -> None:
        self.table = table
        self.graph = table.graph
        self.random = random.Random(seed)
        self.fault = fault
        self.workers = [ModelWorker(index, workers, table) for index in range(workers)]
        self.truth: Counter[Pointstamp] = Counter({(0, 0): workers})
        self.data: list[tuple[int, Pointstamp]] = []
        self.wires: dict[tuple[int, int], deque[bytes]] = {
            (p, q): deque() for p in range(workers) for q in range(workers) if p != q
        }
        self.unchecked = set(range(workers))
        """Workers for whom something the checks look at has changed since the last check."""
        self.sends_left = SENDS_MAX
        self.lost = False
        self.notified = 0

    # -- the whole run --

    def run(self, steps: int, thorough: bool = False) -> None:
        """`steps` random actions, then everything is finished; checked after every action."""
        for step in range(steps):
            self._act(self.random.choice(self.workers), self.random.random())
            self.check()
            if thorough and step % 4 == 0:
                self.check_justified()
                self.check_trackers()
        self.drain()
        if thorough:
            self.check_trackers()

    def drain(self) -> None:
        """Close the inputs and let everything finish. Fails if it does not, in bounded time."""
        self.sends_left = 0
        for _ in range(DRAIN_ROUNDS_MAX):
            for worker in self.workers:
                self._close(worker)
                while worker.inbox:
                    self._receive(worker)
                while worker.held:
                    self._count(worker, worker.held.pop(), -1)
                self._notify(worker)
                self._flush(worker)
                while self._deliver_to(worker):
                    pass
            self.check()
            if not self._anything_left():
                break
        self._require(not self._anything_left(), "it does not finish")
        for worker in self.workers:
            self._require(
                worker.tracker.is_idle(), f"worker {worker.index} is not idle: {worker.tracker.active()}"
            )
            self._require(not any(worker.fronts), f"worker {worker.index} still waits: {worker.fronts}")
        self._require(not +self.truth and not -self.truth, f"something is outstanding: {self.truth}")

    def _anything_left(self) -> bool:
        waits = any(worker.inbox or worker.asked or worker.changes for worker in self.workers)
        return waits or bool(self.data) or any(self.wires.values())

    # -- actions --

    def _act(self, worker: ModelWorker, chance: float) -> None:
        if chance < 0.12:
            self._advance_input(worker)
        elif chance < 0.3:
            self._receive(worker)
        elif chance < 0.4:
            self._use_capability(worker)
        elif chance < 0.5:
            self._notify(worker)
        elif chance < 0.65:
            self._flush(worker)
        elif chance < 0.95:
            self._deliver_to(worker)
        elif self.fault is Fault.OWN_VIEW_FOR_A_RIGHT:
            self._send_without_a_right(worker)

    def _count(self, worker: ModelWorker, pointstamp: Pointstamp, delta: int) -> None:
        """What happens is true at once; others hear of it when the worker tells."""
        self.unchecked.update(range(len(self.workers)))
        worker.changes.add(*pointstamp, delta)
        self.truth[pointstamp] += delta
        self._require(self.truth[pointstamp] >= 0, f"A1: a negative count at {pointstamp}")
        if not self.truth[pointstamp]:
            del self.truth[pointstamp]

    def _advance_input(self, worker: ModelWorker) -> None:
        if worker.epoch is None:
            return
        self._send_from(worker, 0, worker.epoch)
        if self.random.random() < 0.5:
            unit = self.graph.codes[0].unit
            later = worker.epoch + unit * self.random.randint(1, 2)
            if later > EPOCHS_MAX * unit:
                self._close(worker)
                return
            self._count(worker, (0, later), 1)
            self._count(worker, (0, worker.epoch), -1)
            worker.epoch = later

    def _close(self, worker: ModelWorker) -> None:
        if worker.epoch is not None:
            self._count(worker, (0, worker.epoch), -1)
            worker.epoch = None

    def _send(self, worker: ModelWorker, connector: int, word: int) -> None:
        """Send at `word` (a time of the source's scope, or later) to any worker."""
        location = self.graph.connector_location(connector)
        keep, add = self.table.carries[connector]
        pointstamp = (location, (word & keep) + add)
        if self.sends_left == 0 or pointstamp[1] & ~self.table.valid[location]:
            return
        self.sends_left -= 1
        self._count(worker, pointstamp, 1)
        self.data.append((self.random.randrange(len(self.workers)), pointstamp))

    def _send_from(self, worker: ModelWorker, stage: int, word: int) -> None:
        for connector in self.table.leaving[stage]:
            if self.random.random() < 0.5:
                self._send(worker, connector, self._later(stage, word))

    def _later(self, stage: int, word: int) -> int:
        """The same time, or sometimes the next."""
        later = word + self.graph.codes[stage].unit
        return later if self.random.random() < 0.15 and not later & ~self.table.valid[stage] else word

    def _receive(self, worker: ModelWorker) -> None:
        """Consume one message, and do something because of it."""
        if not worker.inbox:
            return
        location, word = worker.inbox.pop(self.random.randrange(len(worker.inbox)))
        self._count(worker, (location, word), -1)
        arrival = self.graph.connectors[location - len(self.graph.stages)]
        stage, code = arrival.target, self.graph.codes[arrival.target]
        for onward in self.table.leaving[stage]:
            inside = self.graph.internal(stage, arrival.input, self.graph.connectors[onward].output)
            if inside is not None and self.random.random() < 0.5:
                keep, add = inside.to_words(code, code)
                if not ((word & keep) + add) & ~code.valid:
                    self._send(worker, onward, self._later(stage, (word & keep) + add))
        hold = self.graph.hold_summary(stage, arrival.input)
        if hold is not None and self.sends_left and self.random.random() < 0.6:
            keep, add = hold.to_words(code, code)
            if not ((word & keep) + add) & ~code.valid:
                self._keep(worker, (stage, self._later(stage, (word & keep) + add)))

    def _keep(self, worker: ModelWorker, pointstamp: Pointstamp) -> None:
        """Ask for a notification, or hold a capability."""
        (worker.asked if self.random.random() < 0.6 else worker.held).append(pointstamp)
        self._count(worker, pointstamp, 1)

    def _use_capability(self, worker: ModelWorker) -> None:
        """Send with it, then exchange it for a later one or let it go."""
        if not worker.held:
            return
        stage, word = worker.held.pop(self.random.randrange(len(worker.held)))
        self._send_from(worker, stage, word)
        if self.random.random() < 0.5:
            self._keep(worker, (stage, self._later(stage, word)))
        self._count(worker, (stage, word), -1)

    def _notify(self, worker: ModelWorker) -> None:
        """Deliver every notification whose time is complete in the worker's own view."""
        for stage, word in list(worker.asked):
            guards = self.table.guards[stage]
            fronts = [worker.fronts[port] for port in self.table.ports_of_stage[stage]]
            if any(((word | guards) - f) & guards == guards for front in fronts for f in front):
                continue
            self._require_complete(worker, stage, word)
            worker.asked.remove((stage, word))
            self._send_from(worker, stage, word)
            self._count(worker, (stage, word), -1)
            self.notified += 1

    def _send_without_a_right(self, worker: ModelWorker) -> None:
        possible = [(port, f) for port, front in enumerate(worker.fronts) for f in front]
        if possible:
            port, word = self.random.choice(possible)
            self._send_from(worker, self.graph.stage_of(self.table.ports[port][0]), word)

    # -- telling and hearing --

    def _flush(self, worker: ModelWorker) -> None:
        """Tell all others what has changed, in one payload, and take it in oneself."""
        changes = worker.changes.take()
        if changes:
            self.unchecked.update(range(len(self.workers)))
        parts = [changes]
        if self.fault is Fault.DECREMENTS_FIRST:
            parts = [[c for c in changes if c[2] < 0], [c for c in changes if c[2] > 0]]
        for part in parts:
            payload = worker.broadcaster.on_step_done(part)
            for peer in range(len(self.workers)):
                if payload is not None and peer != worker.index:
                    self.wires[worker.index, peer].append(payload)
        self._apply(worker, changes)

    def _deliver_to(self, worker: ModelWorker) -> bool:
        """One payload or one message arrives, whichever; whether there was any."""
        senders = [p for p in range(len(self.workers)) if self.wires.get((p, worker.index))]
        arriving = [number for number, (to, _) in enumerate(self.data) if to == worker.index]
        if arriving and (not senders or self.random.random() < 0.5):
            worker.inbox.append(self.data.pop(self.random.choice(arriving))[1])
        elif senders:
            wire = self.wires[self.random.choice(senders), worker.index]
            if self.fault is Fault.OVERTAKING:
                wire.rotate(-self.random.randrange(len(wire)))
            payload = wire.popleft()
            if self.fault is Fault.LOST_PAYLOAD and not self.lost:
                self.lost = True
                return True
            self._apply(worker, self._heard(worker, payload))
        return bool(arriving or senders)

    def _heard(self, worker: ModelWorker, payload: bytes) -> list[Change]:
        if self.fault in (Fault.OVERTAKING, Fault.LOST_PAYLOAD):
            return list(struct.iter_unpack("<3q", payload[16:]))
        return worker.broadcaster.on_message(payload)

    def _apply(self, worker: ModelWorker, changes: list[Change]) -> None:
        self.unchecked.add(worker.index)
        for port in worker.tracker.apply(changes):
            front = worker.tracker.frontier(port).tolist()
            guards = self.table.port_guards[port]
            for word in front:
                earlier = any(((word | guards) - f) & guards == guards for f in worker.fronts[port])
                self._require(earlier, f"S3: the frontier of port {port} went back at worker {worker.index}")
            worker.fronts[port] = front

    # -- checks --

    def _require(self, condition: bool, what: str) -> None:
        if not condition:
            raise ViolationError(what)

    def _require_complete(self, worker: ModelWorker, stage: int, word: int) -> None:
        """Safety: at a notification nothing outstanding, anywhere, can lead to a message at or before it."""
        guards = self.table.guards[stage]
        ports = self.table.ports_of_stage[stage]
        for pointstamp in self.truth:
            for port, image in self.table.images(pointstamp):
                if port in ports and ((word | guards) - image) & guards == guards:
                    raise ViolationError(
                        f"worker {worker.index} notified stage {stage} at {word:#x} with {pointstamp} "
                        "outstanding"
                    )

    def check(self) -> None:
        """A5, A6, B6 and E2 for every worker for whom anything has changed."""
        for worker in [self.workers[index] for index in sorted(self.unchecked)]:
            for pointstamp in self.truth:
                for port, image in self.table.images(pointstamp):
                    guards = self.table.port_guards[port]
                    if not any(((image | guards) - f) & guards == guards for f in worker.fronts[port]):
                        raise ViolationError(
                            f"E2: {pointstamp} is outstanding, but the frontier of port {port} at worker "
                            f"{worker.index} is {worker.fronts[port]}"
                        )
            view = {(location, word): count for location, word, count, _ in worker.tracker.active()}
            for pointstamp in self.truth:
                vacant = not any(self.table.could_result_in(other, pointstamp) for other in view)
                self._require(not vacant, f"A6: worker {worker.index} sees nothing up to {pointstamp}")
            positive = [pointstamp for pointstamp, count in view.items() if count > 0]
            for pointstamp, count in view.items():
                if count < 0:
                    known = any(self.table.could_result_in(other, pointstamp) for other in positive)
                    self._require(
                        known, f"B6: only negative counts up to {pointstamp} at worker {worker.index}"
                    )
            self._check_sum(worker, view)
        self.unchecked.clear()

    def _check_sum(self, worker: ModelWorker, view: dict[Pointstamp, int]) -> None:
        """A5: the view and all that is still to come make up the truth."""
        if self.fault is Fault.LOST_PAYLOAD:
            return
        total = Counter(view)
        for other in self.workers:
            for location, word, delta in self._untold(other, worker):
                total[location, word] += delta
        found = {pointstamp: count for pointstamp, count in total.items() if count}
        if found != self.truth:
            raise ViolationError(f"A5: {found} is not {self.truth} for worker {worker.index}")

    def _untold(self, speaker: ModelWorker, listener: ModelWorker, skip: int = 0) -> list[Change]:
        """What `speaker` has done and `listener` has not heard, without the first `skip` payloads."""
        changes = list(speaker.changes.consolidated())
        for payload in list(self.wires.get((speaker.index, listener.index), ()))[skip:]:
            changes += struct.iter_unpack("<3q", payload[16:])
        return changes

    def check_justified(self) -> None:
        """B5: an increment not heard yet is at something true, or after a decrement or something true."""
        for listener in self.workers:
            for speaker in self.workers:
                for skip in range(len(self.wires.get((speaker.index, listener.index), ())) + 1):
                    info: Counter[Pointstamp] = Counter()
                    for other in self.workers:
                        for location, word, delta in self._untold(
                            other, listener, skip if other is speaker else 0
                        ):
                            info[location, word] += delta
                    for pointstamp, count in info.items():
                        self._require(count <= 0 or self._is_justified(pointstamp, info), f"B5: {pointstamp}")

    def _is_justified(self, pointstamp: Pointstamp, info: Counter[Pointstamp]) -> bool:
        before = [p for p in info if p != pointstamp and self.table.could_result_in(p, pointstamp)]
        supported = any(
            info[p] < 0 and not any(info[r] > 0 and self.table.could_result_in(r, p) for r in info)
            for p in before
        )
        owned = any(p != pointstamp and self.table.could_result_in(p, pointstamp) for p in self.truth)
        return supported or owned or info[pointstamp] <= self.truth[pointstamp]

    def check_trackers(self) -> None:
        """C4: every tracker's counts and frontiers are what their definitions say."""
        for worker in self.workers:
            worker.tracker.check_invariants()
