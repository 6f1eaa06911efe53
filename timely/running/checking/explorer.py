"""All that can happen: real workers, explored action by action.

It is given a dataflow, how many workers run it, and what clients do at each of them. A *state* is what
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
still who is next, when a message is received and from which peer, when clients act; all that can happen on
workers that only ever step, stopped anywhere. With `whole` a worker is not stopped before it has done all it
can do by itself, nor do messages come in meanwhile: still free are who is next, and which messages come
before that.

With `reduced` fewer states are visited, too, by *independent actions*. Actions of two workers never disturb
each other: either order leads to the same state, and neither enables the other unless it sends it a message.
So if the next thing that a worker does is settled but for the order among the workers, it may as well do it
now: from such a state only the actions of that one worker lead on. It is settled if a message of every other
worker waits for it, so that no action of others can give it a choice that it has not got, or if no other
worker can do anything. Every order of events has then one that is visited and differs from it only in what
independent workers do meanwhile, provided that no path goes round for ever, which `run` checks at the end. So
all states *of workers* are visited, and all ends, and whatever a worker can see for itself: its errors, and
what it checks by `--check-progress`, which is switched on. What takes a look at all workers at once is looked
at only in those states that are visited. `test_explored_loops.py` compares both on a small scenario.

Loops are not compiled here. A subclass that lets them be looks into them as well: it overrides
`_inside_worker`, `_inside_message` and `_failures_inside`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import ClassVar, Final

from progress.checking.counterexample import Counterexample
from progress.checking.predicates import Counts, frontier_of, total, unearned, unheld
from progress.checking.protocol_state import Failure, ProtocolState, alone, failures, failures_between
from progress.errors import MisuseError
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder

from ...building.dataflow import Dataflow
from ...building.freeze import FrozenDataflow
from ..core import Worker
from ..instance import Instance
from ..progress_messages import CreditHeader, DataHeader, ProgressHeader, read_header
from ..sending.telling import Telling
from ..stages.compiled_loop import CompiledLoopRunner
from .actions import Action, Activate, Receive
from .comparable import comparable
from .loops import count_of_hold
from .monitor import believed_by, frontiers_of, under_way, untold
from .reached import Act, Doing, Door, Explorable, Explored, Local, Message, Move, Reached, Wire, WorkOff
from .snapshot import counted, owned, view

__all__ = ["Explorer"]

_WORK_OFF: Final = WorkOff()
_ACTIONS_MAX: Final = 1_000
"""That many actions in one go have no end."""


class Explorer:
    """Explores what it is given: `run` returns how much there was, or raises `Counterexample`.

    More states than `states_max` are an error.
    """

    compiles_loops: ClassVar[bool] = False

    def __init__(
        self,
        scenario: Explorable,
        orderly: bool = False,
        states_max: int = 200_000,
        reduced: bool = False,
        whole: bool = False,
    ) -> None:
        self.explored = Explored()
        self._scenario = scenario
        self._orderly = orderly
        self._states_max = states_max
        self._reduced = reduced
        self._whole = whole
        self._leads_to: dict[Reached, list[Reached]] = {}
        self._size = len(scenario.clients)
        self._locals: dict[Hashable, Local] = {}
        self._messages: dict[Hashable, Message] = {}
        self._after: dict[Hashable, tuple[Local, tuple[tuple[int, Message], ...]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._sight_numbers: dict[Hashable, int] = {}
        self._sights: list[ProtocolState] = []
        self._sight_of: dict[Reached, int] = {}
        self._judged_pairs: set[Hashable] = set()
        self._to_do: list[list[Act]] = []
        self._to_do_numbers: dict[tuple[int, ...], int] = {}
        self._came_from: dict[Reached, tuple[Reached, Move] | None] = {}
        workers = [
            Worker(
                index,
                self._size,
                Door({}),
                credit_bytes=scenario.credit_bytes,
                check_progress=reduced,
                compiled_loops=self.compiles_loops,
                telling=Telling(index, self._size, scenario.per_host) if scenario.per_host else None,
            )
            for index in range(self._size)
        ]
        for worker in workers:
            flow = Dataflow("explored")
            scenario.build(flow)
            worker.install(flow.freeze())
        self._frozen: FrozenDataflow = workers[0].instance().frozen
        self._order = PointstampOrder(self._frozen.graph)
        self._shared = [part for worker in workers for part in worker.instance().shared()]
        wires: tuple[Wire, ...] = ((),) * (self._size * self._size)
        locals_ = tuple(map(self._local, workers))
        self._starts = [
            Reached(locals_, wires, tuple(map(self._still_to_do, clients)))
            for clients in (scenario.clients, *scenario.or_clients)
        ]

    # -- going from state to state --

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        waiting: deque[Reached] = deque()
        for start in self._starts:
            if start not in self._came_from:
                self._came_from[start] = None
                self._judge(start)
                waiting.append(start)
        while waiting:
            state = waiting.popleft()
            moves = self._moves(state)
            if not moves:
                self._judge_end(state)
            if self._reduced:
                moves = self._of_one(state, moves)
            for move in moves:
                after, is_new = self._go(state, move)
                if is_new:
                    waiting.append(after)
                if self._reduced:
                    self._leads_to.setdefault(state, []).append(after)
        if self._reduced:
            self._check_no_circle()
        self.explored.worker_states = len(self._locals)
        return self.explored

    def _of_one(self, state: Reached, moves: list[Move]) -> list[Move]:
        """The moves of one worker to which nothing can be added from outside, as few as possible; all moves
        if there is no such worker.
        """
        acting = {who for who, _ in moves}
        chosen = moves
        for who in acting:
            others = [peer for peer in range(self._size) if peer != who]
            if acting == {who} or all(state.wires[peer * self._size + who] for peer in others):
                own = [move for move in moves if move[0] == who]
                chosen = min(chosen, own, key=len)
        return chosen

    def _check_no_circle(self) -> None:
        """Each path comes to an end: else what a worker might do could be put off for ever."""
        entering = Counter(after for every in self._leads_to.values() for after in every)
        free = [start for start in set(self._starts) if not entering[start]]
        left, far = len(self._came_from), dict.fromkeys(free, 0)
        while free:
            state = free.pop()
            left -= 1
            for after in self._leads_to.get(state, ()):
                far[after] = max(far.get(after, 0), far[state] + 1)
                entering[after] -= 1
                if not entering[after]:
                    free.append(after)
        if left:
            raise MisuseError(f"{left} states are on paths that go round: explore without `reduced`")
        self.explored.longest = max(far.values())

    def _moves(self, state: Reached) -> list[Move]:
        moves: list[Move] = []
        for who, local in enumerate(state.workers):
            moves += [
                (who, Receive(peer)) for peer in range(self._size) if state.wires[peer * self._size + who]
            ]
            if self._whole:
                moves += [(who, _WORK_OFF)] if local.enabled else []
            else:
                moves += [(who, action) for action in local.enabled[: 1 if self._orderly else None]]
            moves += [(who, act) for act in self._to_do[state.acts[who]][:1]]
        return moves

    def _still_to_do(self, acts: Sequence[Act]) -> int:
        """The number of these acts in `_to_do`: the same for the same ones."""
        key = tuple(map(id, acts))
        if key not in self._to_do_numbers:
            self._to_do_numbers[key] = len(self._to_do)
            self._to_do.append(list(acts))
        return self._to_do_numbers[key]

    def _go(self, state: Reached, move: Move) -> tuple[Reached, bool]:
        """The state after a move, looked at, and whether it is new."""
        who, doing = move
        wires = list(state.wires)
        message: Message | None = None
        if isinstance(doing, Receive):
            wire = doing.peer * self._size + who
            message, wires[wire] = wires[wire][0], wires[wire][1:]
        local = state.workers[who]
        self._judge_notifications(state, move)
        try:
            acted, sent = self._act(local, doing, message)
        except Exception as error:  # whatever the worker or a vertex raises
            raise self._as_counterexample(error, state, move) from error
        for peer, one in sent:
            wires[who * self._size + peer] = self._put(wires[who * self._size + peer], one)
        acts = list(state.acts)
        if not isinstance(doing, Action | WorkOff):
            acts[who] = self._still_to_do(self._to_do[acts[who]][1:])
        workers = (*state.workers[:who], acted, *state.workers[who + 1 :])
        after = Reached(workers, tuple(wires), tuple(acts))
        self.explored.transitions += 1
        is_new = after not in self._came_from
        if is_new:
            self._came_from[after] = state, move
            self._judge(after)
        self._judge_pair(state, after, move)
        return after, is_new

    def _as_counterexample(self, error: Exception, state: Reached, move: Move) -> Exception:
        """What to raise for an error of a worker or a vertex."""
        return Counterexample(f"{type(error).__name__}: {error}", self._path(state, move))

    def _put(self, wire: Wire, message: Message) -> Wire:
        """A message goes on its way, behind those before it. (A mutant overrides it.)"""
        return (*wire, message)

    def _act(
        self, local: Local, doing: Doing, message: Message | None
    ) -> tuple[Local, tuple[tuple[int, Message], ...]]:
        """What becomes of a worker, and what it sends."""
        key = (local, doing, message)
        if key not in self._after:
            door = Door({doing.peer: message} if isinstance(doing, Receive) and message is not None else {})
            worker = self._fork(local, door)
            self._do(worker, doing)
            _count_anew(worker)
            sent = tuple((peer, self._message(frames, worker.index)) for peer, frames in door.sent)
            self._after[key] = self._local(worker), sent
        return self._after[key]

    def _fork(self, local: Local, door: Door) -> Worker:
        """A copy of a worker that may act."""
        return local.worker.fork(door)

    def _do(self, worker: Worker, doing: Doing) -> None:
        """Let a worker, or a client at it, act."""
        if isinstance(doing, Action):
            worker.perform(doing)
        elif isinstance(doing, WorkOff):
            self._work_off(worker)
        else:
            doing.act(worker.instance())

    def _work_off(self, worker: Worker) -> None:
        for _ in range(_ACTIONS_MAX):
            actions = worker.enabled()
            if not actions:
                return
            self._do(worker, actions[0])
            _count_anew(worker)
        raise AssertionError(f"after {_ACTIONS_MAX:,} actions it has not come to rest")

    def _local(self, worker: Worker) -> Local:
        key = worker.index, comparable(worker, self._shared)
        if key not in self._locals:
            instance = worker.instance()
            frontiers = list(map(sorted, frontiers_of(instance)))
            caps, temp, glob = owned(instance), untold(instance), view(instance)
            held: list[Counts] = [] if worker.telling is None else [worker.telling.held_at(0)]
            inside = self._inside_worker(instance)
            told = _frozen(temp), tuple(map(_frozen, held))
            sight = self._number((_frozen(caps), *told, _frozen(glob), str(frontiers), inside))
            self._locals[key] = Local(
                worker, worker.enabled(), caps, temp, held, glob, frontiers, inside, sight
            )
        return self._locals[key]

    def _message(self, frames: list[memoryview], source: int) -> Message:
        payload, data = under_way([frames], source, 0, self._frozen)
        header = read_header(frames[0], source)
        key: Hashable = tuple(map(bytes, frames))
        if isinstance(header, ProgressHeader):
            # Two payloads that tell the same in another order are the same.
            key = (source, _frozen(payload[0]), *map(bytes, frames[2:]))
        else:
            assert isinstance(header, DataHeader | CreditHeader)
        if key not in self._messages:
            inside = self._inside_message(header, frames, source)
            sight = self._number((tuple(map(_frozen, payload)), tuple(data), inside))
            self._messages[key] = Message(frames, payload, data, sight, inside)
        return self._messages[key]

    def _inside_worker(self, instance: Instance) -> tuple[Hashable, ...]:
        """What a subclass judges of a worker besides."""
        return ()

    def _inside_message(
        self, header: DataHeader | CreditHeader | ProgressHeader, frames: list[memoryview], source: int
    ) -> tuple[Hashable, ...]:
        """What a subclass judges of a message besides."""
        return ()

    # -- judging --

    def _number(self, key: Hashable) -> int:
        """The same for what is equal."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _protocol_state(self, state: Reached) -> ProtocolState:
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
                (p, q): [
                    *(one for message in state.wires[p * self._size + q] for one in message.payload),
                    *(one for one in state.workers[p].held if one and p != q),
                ]
                for p in everyone
                for q in everyone
            },
            hold=count_of_hold(state.workers[0].instance),
        )

    def _judge(self, state: Reached) -> None:
        self.explored.states += 1
        if self.explored.states > self._states_max:
            raise MisuseError(
                f"there are more than {self._states_max:,} states, and nothing is wrong in those that were "
                "visited. Take fewer acts or workers, explore in the order of steps, or allow more states"
            )
        key = (
            tuple(local.sight for local in state.workers),
            tuple(tuple(message.sight for message in wire) for wire in state.wires),
        )
        number = self._sight_of[state] = self._sight_numbers.setdefault(key, len(self._sights))
        if number < len(self._sights):
            return
        sight = self._protocol_state(state)
        self._sights.append(sight)
        is_alone = self._scenario.per_host > 1
        failing = alone(sight, self._order) if is_alone else failures(sight, self._order)
        earliest = self._order.minimal(t for t, count in sight.records.items() if count > 0)
        for label, where, points in chain(failing, self._failures_inside(state, earliest)):
            self._fail(state, f"{label} {where}", points)
        for who, local in enumerate(state.workers):
            believed = self._order.minimal(believed_by(local.instance, local.glob))
            for number, port in enumerate(local.instance.tracker.watched):
                where = f"at worker {who}, port {number}, whose frontier is {local.frontiers[number]}"
                if local.frontiers[number] != frontier_of(believed, port, self._order):
                    self._fail(state, f"C4 {where}", [])
                points = unheld(earliest, port, local.frontiers[number], self._order)
                if points:
                    self._fail(state, f"E2 {where}", points)

    def _failures_inside(self, state: Reached, earliest: Sequence[Pointstamp]) -> Iterable[Failure]:
        """What a subclass finds wrong; `earliest` are the minimal points that are outstanding anywhere."""
        return ()

    def _judge_pair(self, before: Reached, after: Reached, move: Move) -> None:
        acting = move[0] if isinstance(move[1], Activate | WorkOff) else None
        pair = self._sight_of[before], self._sight_of[after], acting
        if pair in self._judged_pairs:
            return
        self._judged_pairs.add(pair)
        earlier, later = self._sights[pair[0]], self._sights[pair[1]]
        for label, where, points in failures_between(earlier, later, self._order):
            self._fail(before, f"{label} {where}", points, move)
        if acting is not None:
            fresh = {t: count - earlier.records.get(t, 0) for t, count in later.records.items()}
            stages, caps, hold = len(self._frozen.stages), earlier.caps[acting], earlier.hold
            points = unearned(
                fresh, caps, lambda t: t[0] >= stages and not 0 < hold <= caps.get(t, 0), self._order
            )
            if points:
                self._fail(before, f"B0 at worker {acting}", points, move)

    def _judge_notifications(self, state: Reached, move: Move) -> None:
        """Compare with the truth; a worker knows a part of it."""
        who, doing = move
        if not isinstance(doing, Activate):
            return
        instance = state.workers[who].instance
        runner = instance.turns.actors[doing.stage]
        if isinstance(runner, CompiledLoopRunner) or not runner.due:
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

    def _judge_end(self, state: Reached) -> None:
        self.explored.ends += 1
        instances = [local.instance for local in state.workers]
        for instance in instances:
            if not instance.is_complete():
                left = [
                    instance.tracker.describe(place, word) for place, word, _, _ in instance.tracker.active()
                ]
                self._fail(state, f"nothing can happen, and worker {instance.worker} waits: {left}", [])
        result = self._scenario.result(instances)
        if result != self._scenario.expected:
            self._fail(state, f"the result is {result}, and should be {self._scenario.expected}", [])

    def _fail(
        self, state: Reached, what: str, points: Sequence[Pointstamp], move: Move | None = None
    ) -> None:
        named = f" at {' · '.join(map(self._order.name, points))}" if points else ""
        raise Counterexample(what + named, self._path(state, move))

    def _path(self, state: Reached, move: Move | None) -> list[str]:
        moves = [] if move is None else [move]
        while (step := self._came_from[state]) is not None:
            state, before = step
            moves.append(before)
        return [f"worker {who}: {self._says(doing)}" for who, doing in reversed(moves)]

    def _says(self, doing: Doing) -> str:
        if isinstance(doing, Activate):
            stages = self._frozen.stages
            name = repr(stages[doing.stage].name) if doing.stage < len(stages) else "a loop"
            return f"{doing}, {name}"
        return str(doing)


def _frozen(counts: Counts) -> frozenset[tuple[Pointstamp, int]]:
    return frozenset(counts.items())


def _count_anew(worker: Worker) -> None:
    """Payloads from here on are the first ones again, on both sides."""
    for broadcaster in worker._broadcasters.values():
        broadcaster._sent = 0
        broadcaster._received = [0] * worker.workers
    for held in worker.telling._flows.values() if worker.telling is not None else ():
        held.down._sent = 0
