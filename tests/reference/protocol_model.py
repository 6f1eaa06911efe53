"""The progress protocol alone, explored at random: workers, delays, vertices that do what they may.

The model runs the real `Tracker`, `CountChanges` and `Broadcaster` of every worker, on any graph: also on
those that no dataflow of today has (stages whose inputs lead to some outputs only, prioritised loops).
Vertices behave at random, within the rules: what they receive or hold at t lets them send, hold or ask at t
or later. Data goes to random workers and arrives in any order; progress is FIFO between each pair of workers,
and as late as it likes. Beside it stands what is true: how many events are outstanding, everywhere, now.

After every action the predicates of `progress/checking/predicates.py` are evaluated on the state, as they are
on running workers (`timely/running/checking/monitor.py`, whose tests show that they notice what is broken).
Besides:
notifications come when nothing outstanding can lead to them, frontiers only move forward, everything ends.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence

from progress.checking.predicates import total, unheld
from progress.checking.protocol_state import ProtocolState, failures, failures_between
from progress.graph.graph import Graph
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.graph.summary_table import SummaryTable
from progress.times.timestamp import Timestamp
from progress.tracking.broadcast import Broadcaster, changes_in
from progress.tracking.count_changes import Change, CountChanges
from progress.tracking.tracker import Tracker

SENDS_MAX = 14
EPOCHS_MAX = 3
DRAIN_ROUNDS_MAX = 400


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
        self.ports = [tuple(group) for group in ports.values()]
        self.ports_of_stage: list[list[int]] = [[] for _ in graph.stages]
        for port, (stage, _) in enumerate(ports):
            self.ports_of_stage[stage].append(port)
        self.table = SummaryTable(graph, self.ports)
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
        self.order = PointstampOrder(graph)

    def unpack(self, location: int, words: Sequence[int]) -> list[Timestamp]:
        """Words at a location as times."""
        return [self.graph.code_of(location).unpack(word) for word in words]


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

    def __init__(self, table: Table, workers: int, seed: int) -> None:
        self.table = table
        self.graph = table.graph
        self.random = random.Random(seed)
        self.workers = [ModelWorker(index, workers, table) for index in range(workers)]
        self.truth: Counter[Pointstamp] = Counter({(0, 0): workers})
        self.data: list[tuple[int, Pointstamp]] = []
        self.wires: dict[tuple[int, int], deque[bytes]] = {
            (p, q): deque() for p in range(workers) for q in range(workers) if p != q
        }
        self.sends_left = SENDS_MAX
        self.notified = 0
        self.before: ProtocolState | None = None

    # -- the whole run --

    def run(self, steps: int) -> None:
        """`steps` random actions, then everything is finished; checked after every action."""
        for _ in range(steps):
            self._act(self.random.choice(self.workers), self.random.random())
            self.check()
        self.check_trackers()
        self.drain()
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
        else:
            self._deliver_to(worker)

    def _count(self, worker: ModelWorker, pointstamp: Pointstamp, delta: int) -> None:
        """What happens is true at once; others hear of it when the worker tells."""
        worker.changes.add(*pointstamp, delta)
        self.truth[pointstamp] += delta
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

    # -- telling and hearing --

    def _flush(self, worker: ModelWorker) -> None:
        """Tell all others what has changed, in one payload, and take it in oneself."""
        changes = worker.changes.take()
        payload = worker.broadcaster.on_step_done(changes)
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
            payload = self.wires[self.random.choice(senders), worker.index].popleft()
            self._apply(worker, worker.broadcaster.on_message(payload))
        return bool(arriving or senders)

    def _apply(self, worker: ModelWorker, changes: list[Change]) -> None:
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
        """At a notification nothing outstanding, anywhere, can lead to a message at or before it."""
        shape, time = self.graph.shape_of(stage), self.graph.codes[stage].unpack(word)
        for port in self.table.ports_of_stage[stage]:
            for pointstamp in self.truth:
                if any(
                    shape.less_equal(image, time)
                    for image in self.table.order.images(pointstamp, self.table.ports[port])
                ):
                    raise ViolationError(
                        f"worker {worker.index} notified stage {stage} at {time}; {pointstamp} is outstanding"
                    )

    def state(self) -> ProtocolState:
        """Everything, as the predicates want it."""
        open_epochs = [[] if one.epoch is None else [(0, one.epoch)] for one in self.workers]
        caps = [Counter([*one.inbox, *one.held, *one.asked, *open_epochs[one.index]]) for one in self.workers]
        return ProtocolState(
            nrec=dict(self.truth),
            records=total(*caps, Counter(pointstamp for _, pointstamp in self.data)),
            caps=[dict(owned) for owned in caps],
            temp=[_by_point(one.changes.consolidated()) for one in self.workers],
            glob=[
                {(location, word): count for location, word, count, _ in one.tracker.active()}
                for one in self.workers
            ],
            msg={pair: [_by_point(changes_in(one)) for one in wire] for pair, wire in self.wires.items()},
        )

    def check(self) -> None:
        """All predicates, on the state and on the pair of it and the last; and E2 for every port."""
        state, order = self.state(), self.table.order
        found = list(failures(state, order, self.before))
        if self.before is not None:
            found += failures_between(self.before, state, order)
        earliest = order.minimal(state.records)
        for worker in self.workers:
            for port, group in enumerate(self.table.ports):
                frontier = self.table.unpack(group[0], worker.fronts[port])
                points = unheld(earliest, group, frontier, order)
                found += [("E2", f"at worker {worker.index}, port {port}", points)] if points else []
        for label, where, points in found:
            raise ViolationError(f"{label} {where} at {[order.name(point) for point in points]}")
        self.before = state

    def check_trackers(self) -> None:
        """C4: every tracker's counts and frontiers are what their definitions say."""
        for worker in self.workers:
            worker.tracker.check_invariants()


def _by_point(changes: Sequence[Change]) -> dict[Pointstamp, int]:
    return {(location, word): delta for location, word, delta in changes}
