"""All that can happen: real workers, explored action by action.

A *scenario* is a dataflow, how many workers run it, and what clients do at each of them. A *state* is what
all workers, the wires between them and the clients are in; from it leads every action that some worker
could perform now (`timely/running/checking/actions.py`), and every next act of a client. The explorer goes to
each state that can be reached, and looks at it once:

    every state       the predicates of progress tracking (`protocol_state.py`), on what is there by looking;
                      trackers and frontiers against their definitions
    every transition  S1 to S3; B0 of an activation; and of a notification that is given to a vertex: that
                      nothing outstanding, on any worker or wire, can lead to a message at or before its time
    every end         where nothing can happen any more all is complete, and the outputs are as expected

What is not as it must be ends in a `Counterexample`, which lists the actions that lead there: as few as
possible, for states are visited in the order of their distance from the first.

How so many states are got through: an action concerns one worker. What it makes of this worker, and what
it sends, is computed once for each state *of the worker*, by a copy of it, whatever the others do meanwhile.
That is right if a worker's compared state decides all that it will do, which `test_comparable.py` tests.
Predicates are evaluated once for all states that do not differ in what they speak of.

Numbers of progress payloads grow for ever, so that no two states would be the same. They count for their
order alone, so all workers count anew after each action (`_count_anew`); that they are checked is tested
elsewhere.

With `orderly` fewer states are visited: what a worker does by itself it does in the order of a step. Free are
still who is next, when a message is received and of which peer, and when clients act; all that can happen on
workers that only ever step, stopped anywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reference.monitor import believed_by, frontiers_of, under_way, untold
from reference.protocol_state import ProtocolState, failures, failures_between

from progress.checking.predicates import Counts, frontier_of, total, unearned, unheld
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.times.timestamp import Timestamp
from timely import Dataflow
from timely.building.freeze import FrozenDataflow
from timely.running.checking.actions import Action, Activate, Receive
from timely.running.checking.comparable import comparable
from timely.running.checking.snapshot import counted, owned, view
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import DataHeader, ProgressHeader, read_header
from timely.wire.batch import Frame
from timely.wire.transport import Lent

__all__ = ["Client", "Counterexample", "Explored", "Explorer", "Message", "Scenario", "Wire"]


@dataclass(frozen=True)
class Client:
    """What a client does at a worker: rows for the open epoch of an input, which ends with them."""

    rows: tuple[object, ...] = ()
    is_last: bool = False
    input: str = "records"

    def __str__(self) -> str:
        what = f"send {list(self.rows)} and " if self.rows else ""
        return f"a client: {what}{'close' if self.is_last else 'seal the epoch of'} {self.input!r}"

    def act(self, instance: Instance) -> None:
        handle = instance.input(self.input)
        if self.rows:
            handle.send(list(self.rows))
        if self.is_last:
            handle.close()
        else:
            handle.seal()


@dataclass(frozen=True)
class Scenario:
    """What is explored.

    build      the dataflow; the same for every worker
    clients    for each worker what clients do there, in this order
    result     of all instances, once all is complete, what shall be compared
    expected   what `result` must be, whatever has happened in which order
    """

    build: Callable[[Dataflow], object]
    clients: Sequence[Sequence[Client]]
    result: Callable[[Sequence[Instance]], object]
    expected: object


class Counterexample(AssertionError):
    """Something is not as it must be; says what, and how to get there."""

    def __init__(self, what: str, steps: Sequence[str]) -> None:
        super().__init__(
            "\n  ".join([what, *(f"{number + 1:3} {step}" for number, step in enumerate(steps))])
        )
        self.what = what
        self.steps = list(steps)


@dataclass
class Explored:
    """How much was looked at."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    worker_states: int = 0

    def __str__(self) -> str:
        return (
            f"{self.states:,} states, {self.transitions:,} transitions, {self.ends:,} ends; "
            f"{self.worker_states:,} states of workers"
        )


Doing: TypeAlias = Action | Client


@dataclass(frozen=True, eq=False)
class Message:
    """Something on a wire; those with the same contents are the same object."""

    frames: list[memoryview]
    payload: list[Counts]
    data: list[Pointstamp]
    sight: int
    """Number of what predicates see of it."""


Wire: TypeAlias = tuple[Message, ...]
"""What is on its way from one worker to another, oldest first."""


class _Door:
    """The transport of a worker for one action: what it may receive, and what it has sent."""

    def __init__(self, arriving: dict[int, Message]) -> None:
        self.arriving = arriving
        self.sent: list[tuple[int, list[memoryview]]] = []

    def heard(self) -> list[int]:
        return sorted(self.arriving)

    def recv_one(self, peer: int) -> list[memoryview]:
        return self.arriving.pop(peer).frames

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        self.sent.append((peer, [memoryview(bytes(frame)) for frame in frames]))

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        raise AssertionError("messages are received one by one")

    def wait(self, timeout_seconds: float) -> None:
        raise AssertionError("nobody waits here")

    def lend(self) -> Lent | None:
        return None

    def take_back(self) -> tuple[int, int]:
        raise AssertionError("nothing was lent")

    def close(self) -> None:
        raise AssertionError("nobody closes it")


@dataclass(frozen=True, eq=False)
class _Local:
    """One worker in one state, never touched again: who acts is a copy of it."""

    worker: Worker
    enabled: list[Action]
    caps: Counts
    temp: Counts
    glob: Counts
    frontiers: list[list[Timestamp]]
    sight: int
    """Number of what predicates see of it."""

    @property
    def instance(self) -> Instance:
        return self.worker.instance()


class _State(NamedTuple):
    """Of all workers, of the wires by (source, target), and how many acts of each client are over."""

    workers: tuple[_Local, ...]
    wires: tuple[Wire, ...]
    acts: tuple[int, ...]


_Move: TypeAlias = tuple[int, Doing]
"""Who does what."""


class Explorer:
    """Explores a scenario: `run` returns how much there was, or raises `Counterexample`.

    More states than `states_max` are an error.
    """

    def __init__(self, scenario: Scenario, orderly: bool = False, states_max: int = 200_000) -> None:
        self.explored = Explored()
        self._scenario = scenario
        self._orderly = orderly
        self._states_max = states_max
        self._size = len(scenario.clients)
        self._locals: dict[Hashable, _Local] = {}
        self._messages: dict[Hashable, Message] = {}
        self._after: dict[Hashable, tuple[_Local, tuple[tuple[int, Message], ...]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._sight_numbers: dict[Hashable, int] = {}
        self._sights: list[ProtocolState] = []
        self._sight_of: dict[_State, int] = {}
        self._judged_pairs: set[Hashable] = set()
        self._came_from: dict[_State, tuple[_State, _Move] | None] = {}
        workers = [Worker(index, self._size, _Door({})) for index in range(self._size)]
        for worker in workers:
            flow = Dataflow("explored")
            scenario.build(flow)
            worker.install(flow.freeze())
        self._frozen: FrozenDataflow = workers[0].instance().frozen
        self._order = PointstampOrder(self._frozen.graph)
        wires: tuple[Wire, ...] = ((),) * (self._size * self._size)
        self._first = _State(tuple(map(self._local, workers)), wires, (0,) * self._size)

    # -- going from state to state --

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        self._came_from[self._first] = None
        self._judge(self._first)
        waiting = deque([self._first])
        while waiting:
            state = waiting.popleft()
            moves = self._moves(state)
            if not moves:
                self._judge_end(state)
            for move in moves:
                if (new := self._go(state, move)) is not None:
                    waiting.append(new)
        self.explored.worker_states = len(self._locals)
        return self.explored

    def _moves(self, state: _State) -> list[_Move]:
        moves: list[_Move] = []
        for who, local in enumerate(state.workers):
            moves += [
                (who, Receive(peer)) for peer in range(self._size) if state.wires[peer * self._size + who]
            ]
            moves += [(who, action) for action in (local.enabled[:1] if self._orderly else local.enabled)]
            acts = self._scenario.clients[who]
            moves += [(who, act) for act in acts[state.acts[who] : state.acts[who] + 1]]
        return moves

    def _go(self, state: _State, move: _Move) -> _State | None:
        """The state after a move, if it is new; looked at."""
        who, doing = move
        wires = list(state.wires)
        message: Message | None = None
        if isinstance(doing, Receive):
            wire = doing.peer * self._size + who
            message, wires[wire] = wires[wire][0], wires[wire][1:]
        local = state.workers[who]
        self._judge_notifications(state, move)
        try:
            made, sent = self._act(local, doing, message)
        except Exception as error:  # whatever the worker or a vertex raises
            raise Counterexample(f"{type(error).__name__}: {error}", self._path(state, move)) from error
        for peer, one in sent:
            wires[who * self._size + peer] = self._put(wires[who * self._size + peer], one)
        acts = list(state.acts)
        acts[who] += isinstance(doing, Client)
        workers = (*state.workers[:who], made, *state.workers[who + 1 :])
        after = _State(workers, tuple(wires), tuple(acts))
        self.explored.transitions += 1
        is_new = after not in self._came_from
        if is_new:
            self._came_from[after] = state, move
            self._judge(after)
        self._judge_pair(state, after, move)
        return after if is_new else None

    def _put(self, wire: Wire, message: Message) -> Wire:
        """A message goes on its way, behind those before it. (A mutant overrides it.)"""
        return (*wire, message)

    def _act(
        self, local: _Local, doing: Doing, message: Message | None
    ) -> tuple[_Local, tuple[tuple[int, Message], ...]]:
        """What becomes of a worker, and what it sends."""
        key = (local, doing, message)
        if key not in self._after:
            door = _Door({doing.peer: message} if isinstance(doing, Receive) and message is not None else {})
            worker = local.worker.fork(door)
            if isinstance(doing, Client):
                doing.act(worker.instance())
            else:
                worker.perform(doing)
            _count_anew(worker)
            sent = tuple((peer, self._message(frames, worker.index)) for peer, frames in door.sent)
            self._after[key] = self._local(worker), sent
        return self._after[key]

    def _local(self, worker: Worker) -> _Local:
        key = worker.index, comparable(worker)
        if key not in self._locals:
            instance = worker.instance()
            frontiers = list(map(sorted, frontiers_of(instance)))
            caps, temp, glob = owned(instance), untold(instance), view(instance)
            sight = self._number((_frozen(caps), _frozen(temp), _frozen(glob), str(frontiers)))
            self._locals[key] = _Local(worker, worker.enabled(), caps, temp, glob, frontiers, sight)
        return self._locals[key]

    def _message(self, frames: list[memoryview], source: int) -> Message:
        payload, data = under_way([frames], source, 0, self._frozen)
        header = read_header(frames[0], source)
        key: Hashable = tuple(map(bytes, frames))
        if isinstance(header, ProgressHeader):
            # Two payloads that tell the same in another order are the same.
            key = (source, _frozen(payload[0]))
        else:
            assert isinstance(header, DataHeader)
        if key not in self._messages:
            sight = self._number((tuple(map(_frozen, payload)), tuple(data)))
            self._messages[key] = Message(frames, payload, data, sight)
        return self._messages[key]

    # -- judging --

    def _number(self, key: Hashable) -> int:
        """The same for what is equal."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _protocol_state(self, state: _State) -> ProtocolState:
        data = [point for wire in state.wires for message in wire for point in message.data]
        caps = [local.caps for local in state.workers]
        records = total(*caps, counted(data))
        everyone = range(self._size)
        return ProtocolState(
            nrec=records,
            records=records,
            caps=caps,
            temp=[local.temp for local in state.workers],
            glob=[local.glob for local in state.workers],
            msg={
                (p, q): [one for message in state.wires[p * self._size + q] for one in message.payload]
                for p in everyone
                for q in everyone
            },
        )

    def _judge(self, state: _State) -> None:
        self.explored.states += 1
        if self.explored.states > self._states_max:
            raise AssertionError(f"more than {self._states_max:,} states: take a smaller scenario")
        key = (
            tuple(local.sight for local in state.workers),
            tuple(tuple(message.sight for message in wire) for wire in state.wires),
        )
        number = self._sight_of[state] = self._sight_numbers.setdefault(key, len(self._sights))
        if number < len(self._sights):
            return
        sight = self._protocol_state(state)
        self._sights.append(sight)
        for label, where, points in failures(sight, self._order):
            self._fail(state, f"{label} {where}", points)
        earliest = self._order.minimal(t for t, count in sight.records.items() if count > 0)
        for who, local in enumerate(state.workers):
            believed = self._order.minimal(believed_by(local.instance, local.glob))
            for number, port in enumerate(local.instance.tracker.watched):
                where = f"at worker {who}, port {number}, whose frontier is {local.frontiers[number]}"
                if local.frontiers[number] != frontier_of(believed, port, self._order):
                    self._fail(state, f"C4 {where}", [])
                points = unheld(earliest, port, local.frontiers[number], self._order)
                if points:
                    self._fail(state, f"E2 {where}", points)

    def _judge_pair(self, before: _State, after: _State, move: _Move) -> None:
        acting = move[0] if isinstance(move[1], Activate) else None
        pair = self._sight_of[before], self._sight_of[after], acting
        if pair in self._judged_pairs:
            return
        self._judged_pairs.add(pair)
        earlier, later = self._sights[pair[0]], self._sights[pair[1]]
        for label, where, points in failures_between(earlier, later, self._order):
            self._fail(before, f"{label} {where}", points, move)
        if acting is not None:
            fresh = {t: count - earlier.records.get(t, 0) for t, count in later.records.items()}
            stages = len(self._frozen.stages)
            points = unearned(fresh, earlier.caps[acting], lambda t: t[0] >= stages, self._order)
            if points:
                self._fail(before, f"B0 at worker {acting}", points, move)

    def _judge_notifications(self, state: _State, move: _Move) -> None:
        """Held against the truth, of which a worker knows a part."""
        who, doing = move
        if not isinstance(doing, Activate):
            return
        instance = state.workers[who].instance
        runner = instance.runners[doing.stage]
        if not runner.due:
            return
        sight = self._sights[self._sight_of[state]]
        shape = runner.code.shape
        for time in map(runner.code.unpack, runner.due):
            for port in runner.ports:
                images = (
                    (point, image)
                    for point in sight.records
                    for image in self._order.images(point, instance.tracker.watched[port])
                )
                points = [point for point, image in images if shape.less_equal(image, time)]
                if points:
                    self._fail(state, f"due: {runner.title()} is notified of {time}", points, move)

    def _judge_end(self, state: _State) -> None:
        self.explored.ends += 1
        instances = [local.instance for local in state.workers]
        for instance in instances:
            if not instance.is_complete():
                left = [
                    instance.tracker.describe(place, word) for place, word, _, _ in instance.tracker.active()
                ]
                self._fail(state, f"nothing can happen, and worker {instance.worker} waits: {left}", [])
        found = self._scenario.result(instances)
        if found != self._scenario.expected:
            self._fail(state, f"the result is {found}, and should be {self._scenario.expected}", [])

    def _fail(
        self, state: _State, what: str, points: Sequence[Pointstamp], move: _Move | None = None
    ) -> None:
        named = f" at {' · '.join(map(self._order.name, points))}" if points else ""
        raise Counterexample(what + named, self._path(state, move))

    def _path(self, state: _State, move: _Move | None) -> list[str]:
        moves = [] if move is None else [move]
        while (step := self._came_from[state]) is not None:
            state, before = step
            moves.append(before)
        return [f"worker {who}: {self._says(doing)}" for who, doing in reversed(moves)]

    def _says(self, doing: Doing) -> str:
        if isinstance(doing, Activate):
            return f"{doing}, {self._frozen.stages[doing.stage].name!r}"
        return str(doing)


def _frozen(counts: Counts) -> frozenset[tuple[Pointstamp, int]]:
    return frozenset(counts.items())


def _count_anew(worker: Worker) -> None:
    """Payloads that are told from here on are the first ones again, on both sides."""
    for broadcaster in worker._broadcasters.values():
        broadcaster._sent = 0
        broadcaster._received = [0] * worker.workers
