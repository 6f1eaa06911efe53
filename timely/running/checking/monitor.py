"""All workers of this process, watched: do the predicates of progress tracking hold, at every moment?

A monitor knows every worker and the network between them. After each step of a worker, and after each
activation within it, it looks (`snapshot.py`) and evaluates `progress/checking/predicates.py` on what it sees
and on the pair of that and what it saw before. Workers, vertices and delays are as they would be without it.

    network = MemoryNetwork(3, seed)
    workers = [Worker(index, 3, network.transport(index)) for index in range(3)]
    monitor = Monitor(workers, network)            # before anything is installed

A worker that has not installed a dataflow yet counts as one that has done nothing and heard nothing.

Beside what it sees, the monitor remembers two things of each dataflow: what was there at first and all
changes that callbacks have made since (nrec); and for each worker the sum of what its tracker was given,
which is what E1 compares. While a worker receives it does not look: what has left the network and is not
in an inbox yet is nowhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from progress.checking.predicates import (
    Counts,
    frontier_of,
    total,
    unaccounted,
    unearned,
    unforeseen,
    unheld,
    violation,
)
from progress.checking.protocol_state import Failure, ProtocolState, failures, failures_between
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.times.timestamp import Timestamp
from progress.tracking.broadcast import changes_in
from progress.tracking.count_changes import Change

from ...building.freeze import FrozenDataflow
from ...wire.batch import Batch
from ...wire.transport.memory import MemoryNetwork
from ..core import Worker
from ..instance import Instance
from ..progress_messages import DataHeader, ProgressHeader, read_header
from ..stages.compiled_loop import CompiledLoopRunner
from ..stages.vertex_runner import VertexRunner
from .actions import Action
from .prefixes_heard import Prefixes
from .snapshot import counted, first_epochs, owned, view

__all__ = ["Monitor", "believed_by", "frontiers_of", "under_way", "untold"]

_RECENT_EVENTS = 8
_WANTED_MAX = 1_000


@dataclass(eq=False)
class _Watched:
    """One dataflow as the monitor knows it."""

    number: int
    frozen: FrozenDataflow
    order: PointstampOrder
    performed: dict[Pointstamp, int]
    applied: list[dict[Pointstamp, int]]
    """What each worker's tracker was given so far."""
    first: list[list[Pointstamp]]
    """What each worker owns before it has done anything."""
    instances: dict[int, Instance] = field(default_factory=dict)
    frontiers: dict[int, list[list[Timestamp]]] = field(default_factory=dict)
    """Of each worker's ports, as times."""
    earliest: list[Pointstamp] = field(default_factory=list)
    """What was outstanding at the last look, before which nothing else was."""
    news: set[int] = field(default_factory=set)
    """Workers whose tracker was given something since the last look."""
    is_changed: bool = True
    acted: set[int] = field(default_factory=set)
    """Workers that may have changed since the last look."""
    wanted: dict[tuple[int, tuple[Pointstamp, ...]], list[list[Timestamp]]] = field(default_factory=dict)
    """For a worker, and the minimal points that it believes to be outstanding, the frontier of each of its
    ports.
    """
    before: ProtocolState | None = None
    prefixes: Prefixes | None = None
    """How far workers have heard of one another, if they hold back what they tell."""


class Monitor:
    """Raises `InternalError`, out of the step in question, as soon as a predicate does not hold.

        workers   all workers of the cluster; nothing is installed yet
        network   what joins them; None for a single worker

    `looks` counts the states in which everything held.
    """

    def __init__(self, workers: Sequence[Worker], network: MemoryNetwork | None = None) -> None:
        assert network is not None or len(workers) == 1, "several workers have a network between them"
        assert not any(worker.instances for worker in workers), "it must see everything from the start"
        self.looks = 0
        self._workers = list(workers)
        self._network = network
        self._flows: dict[int, _Watched] = {}
        self._events: deque[str] = deque(maxlen=_RECENT_EVENTS)
        for worker in workers:
            self._watch_worker(worker)

    # -- listening: methods of workers and instances tell the monitor, too --

    def _watch_worker(self, worker: Worker) -> None:
        start, step, perform = worker.start, worker.step, worker.perform

        def watched_start(instance: Instance, epoch: int = 0) -> None:
            begin = instance.begin

            def begin_and_watch(epoch: int) -> None:
                begin(epoch)
                self._watch_instance(instance)

            instance.begin = begin_and_watch  # type: ignore[method-assign]
            start(instance, epoch)

        def watched_step() -> bool:
            happened = step()
            for flow in self._flows.values():
                flow.acted.add(worker.index)
                if happened or flow.is_changed:
                    self._look(flow, f"worker {worker.index} stepped")
            return happened

        def watched_perform(action: Action) -> None:
            perform(action)
            for flow in self._flows.values():
                flow.acted.add(worker.index)
                self._look(flow, f"worker {worker.index}: {action}")

        worker.perform = watched_perform  # type: ignore[method-assign]
        worker.start = watched_start  # type: ignore[method-assign]
        worker.step = watched_step  # type: ignore[method-assign]

    def _watch_instance(self, instance: Instance) -> None:
        flow = self._flows.get(instance.index) or self._begin(instance)
        flow.instances[instance.worker] = instance
        flow.acted.add(instance.worker)
        flow.news.add(instance.worker)
        worker, activate, receive = instance.worker, instance.turns._activate, instance.receive
        apply, count = instance.apply, instance.count

        def watched_count(location: int, word: int, delta: int) -> None:
            flow.is_changed = True
            flow.acted.add(worker)
            word += _base_of(instance)
            flow.performed[location, word] = flow.performed.get((location, word), 0) + delta
            count(location, word - _base_of(instance), delta)

        def watched_receive(connector: int, word: int, batch: Batch, anchor: int = 0) -> None:
            flow.is_changed = True
            flow.acted.add(worker)
            receive(connector, word, batch, anchor)

        def watched_apply(changes: list[Change]) -> None:
            flow.is_changed = True
            flow.acted.add(worker)
            flow.news.add(worker)
            before, base = flow.applied[worker], _base_of(instance)
            flow.applied[worker] = total(
                before, *({(where, word + base): delta} for where, word, delta in changes)
            )
            moved = unforeseen(flow.applied[worker], before, flow.order)
            self._require(flow, [("S3", f"at worker {worker}", moved)] if moved else [])
            apply(changes)

        def watched_activate(runner: VertexRunner | CompiledLoopRunner) -> None:
            flow.acted.add(worker)
            self._look(flow, f"worker {worker} received")
            activate(runner)
            flow.acted.add(worker)
            self._look(flow, f"worker {worker} ran a vertex", worker)

        instance.count = watched_count
        instance.receive = watched_receive  # type: ignore[method-assign]
        instance.apply = watched_apply  # type: ignore[method-assign]
        instance.turns._activate = watched_activate  # type: ignore[method-assign]

    def _begin(self, instance: Instance) -> _Watched:
        workers, order = len(self._workers), PointstampOrder(instance.frozen.graph)
        # Not alike on all workers: a source may be on some of them only.
        first = [first_epochs(instance.frozen, worker, instance.first_epoch) for worker in range(workers)]
        opening = counted([point for points in first for point in points])
        applied = [dict(opening) for _ in self._workers]
        flow = _Watched(instance.index, instance.frozen, order, dict(opening), applied, first)
        self._flows[instance.index] = flow
        if self._workers[0].telling is not None:
            flow.prefixes = Prefixes(self._workers, instance.index)
        standing = order.standing_pairs()
        if standing:
            graph = instance.frozen.graph
            pairs = " · ".join(
                f"{graph.name_of(here)} and {graph.name_of(there)}" for here, there in standing
            )
            raise violation("no zero cycle", f"between {pairs}", [], order, self._events)
        return flow

    # -- looking --

    def _look(self, flow: _Watched, event: str, acting: int | None = None) -> None:
        """Judge the state as it is now; `acting`: since the last look nobody but this worker did anything."""
        if not flow.is_changed and acting is None:
            return
        flow.is_changed = False
        self._events.append(event)
        state = self._state(flow)
        self._require(flow, failures(state, flow.order, flow.before))
        if flow.before is not None:
            self._require(flow, failures_between(flow.before, state, flow.order))
            if acting is not None:
                self._require(flow, _unearned(flow, flow.before, state, acting))
        earliest = flow.order.minimal(t for t, count in state.records.items() if count > 0)
        for worker in flow.instances:
            if worker in flow.news or not set(earliest) <= set(flow.earliest):
                self._require(flow, _of_tracker(flow, state, worker, earliest))
        flow.earliest = earliest
        flow.news.clear()
        flow.acted.clear()
        flow.before = state
        self.looks += 1

    def _state(self, flow: _Watched) -> ProtocolState:
        everyone = range(len(self._workers))
        msg: dict[tuple[int, int], list[Counts]] = {}
        data: list[Pointstamp] = []
        for p in everyone:
            for q in everyone:
                payloads, messages = under_way(self._wire(flow, p, q), p, flow.number, flow.frozen)
                msg[p, q] = payloads if flow.prefixes is None else flow.prefixes.unheard(p, q)
                data += messages
        seen = [self._seen(flow, worker) for worker in everyone]
        caps = [each[0] for each in seen]
        flow.performed = total(flow.performed)
        return ProtocolState(
            nrec=dict(flow.performed),
            records=total(*caps, counted(data)),
            caps=caps,
            temp=[each[1] for each in seen],
            glob=[each[2] for each in seen],
            msg=msg,
        )

    def _seen(self, flow: _Watched, worker: int) -> tuple[Counts, Counts, Counts]:
        """Return caps, temp and glob of a worker; as before if it has not acted, for only it changes them."""
        before, instance = flow.before, flow.instances.get(worker)
        if before is not None and worker not in flow.acted:
            return before.caps[worker], before.temp[worker], before.glob[worker]
        if instance is None:
            return counted(flow.first[worker]), {}, flow.applied[worker]
        return owned(instance), untold(instance), view(instance)

    def _wire(self, flow: _Watched, source: int, target: int) -> list[list[memoryview]]:
        """What `source` has sent and the dataflow of `target` has not taken in, oldest first."""
        if self._network is None or source == target:
            return []
        early = self._workers[target].early(flow.number)
        return [frames for peer, frames in early if peer == source] + self._network.waiting(source, target)

    def _require(self, flow: _Watched, failing: Iterable[Failure]) -> None:
        for label, where, points in failing:
            raise violation(label, where, points, flow.order, self._events)


def _unearned(flow: _Watched, before: ProtocolState, after: ProtocolState, acting: int) -> list[Failure]:
    """B0: what a worker's activation has made."""
    fresh = {t: count - before.records.get(t, 0) for t, count in after.records.items()}
    stages = len(flow.frozen.stages)
    points = unearned(fresh, before.caps[acting], lambda t: t[0] >= stages, flow.order)
    return [("B0", f"at worker {acting}", points)] if points else []


def _of_tracker(
    flow: _Watched, state: ProtocolState, worker: int, earliest: list[Pointstamp]
) -> Iterator[Failure]:
    """E1, C4 and E2: what a worker's tracker makes of the changes that it got. It counts a time that is later
    than its words can say as one in the last epoch that they can.
    """
    instance, where = flow.instances[worker], f"at worker {worker}"
    tracker = instance.tracker
    before, new = flow.frontiers.get(worker), [t for t in earliest if t not in flow.earliest]
    if worker in flow.news:
        points = unaccounted(flow.applied[worker], state.glob[worker], {})
        if points:
            yield "E1", where, points
        flow.frontiers[worker] = frontiers_of(instance)
        believed = tuple(flow.order.minimal(believed_by(instance, state.glob[worker])))
        key = worker, believed
        if key not in flow.wanted:
            if len(flow.wanted) >= _WANTED_MAX:
                flow.wanted.clear()
            flow.wanted[key] = [frontier_of(believed, port, flow.order) for port in tracker.watched]
        for number, wanted in enumerate(flow.wanted[key]):
            frontier = flow.frontiers[worker][number]
            if sorted(frontier) != wanted:
                yield "C4", f"{where}, port {number}, whose frontier is {frontier} and should be {wanted}", []
    for number, (port, frontier) in enumerate(zip(tracker.watched, flow.frontiers[worker], strict=True)):
        is_same = before is not None and before[number] == frontier
        outstanding = new if is_same else earliest
        points = unheld(outstanding, port, frontier, flow.order) if outstanding else []
        if points:
            yield "E2", f"{where}, port {number}, whose frontier is {frontier}", points


def untold(instance: Instance) -> Counts:
    """temp[p]: changes that no other worker has heard of."""
    base = _base_of(instance)
    return {(location, word + base): delta for location, word, delta in instance.untold()}


def frontiers_of(instance: Instance) -> list[list[Timestamp]]:
    """Of each port, as times."""
    code_of, base, tracker = instance.frozen.graph.code_of, _base_of(instance), instance.tracker
    return [
        [code_of(port[0]).unpack_wide(int(word) + base) for word in tracker.frontier(number)]
        for number, port in enumerate(tracker.watched)
    ]


def believed_by(instance: Instance, counts: Counts) -> set[Pointstamp]:
    """What the tracker has as outstanding of what the worker knows to be so: of what is far, stand-ins."""
    last = _base_of(instance) + instance.frozen.layout.limit
    return {(where, min(word, last)) for (where, word), count in counts.items() if count > 0}


def _base_of(instance: Instance) -> int:
    """What makes time words of an instance count from epoch 0, as in all that is judged."""
    return instance.anchor.epoch << instance.frozen.layout.shifts[0]


def under_way(
    messages: Sequence[list[memoryview]], source: int, dataflow: int, frozen: FrozenDataflow
) -> tuple[list[Counts], list[Pointstamp]]:
    """Of the messages of a wire, those of one dataflow: payloads (msg[p][q]), and where data is."""
    payloads: list[Counts] = []
    data: list[Pointstamp] = []
    for frames in messages:
        header = read_header(frames[0], source)
        if isinstance(header, ProgressHeader) and header.dataflow == dataflow:
            changes = changes_in(frames[1])
            payloads.append({(location, word): delta for location, word, delta in changes})
        elif isinstance(header, DataHeader) and header.dataflow == dataflow:
            if header.connector >= len(frozen.connectors):
                continue  # a round message of a compiled loop is counted nowhere
            word = header.word + (header.anchor << frozen.layout.shifts[0])
            data.append((frozen.graph.connector_location(header.connector), word))
    return payloads, data
