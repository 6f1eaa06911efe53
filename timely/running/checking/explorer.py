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

If workers are `alike`, states that differ only in their names are visited once (`reductions.py`). States
next to visited ones are judged all the same.

Several dataflows may run on the same workers (`beside`): each is judged by itself, until it ends anywhere.

Loops are not compiled here. A subclass that lets them be looks into them as well: it overrides
`_inside_worker`, `_inside_message` and `_failures_inside`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar, Final

from progress.checking.counterexample import Counterexample
from progress.checking.predicates import Counts, frontier_of, total, unearned, unheld
from progress.checking.protocol_state import Failure, ProtocolState, alone, failures, failures_between
from progress.errors import MisuseError
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder

from ...building.dataflow import Dataflow
from ..core import Worker
from ..instance import Instance
from ..progress_messages import DataHeader, Header, ProgressHeader, read_header
from ..sending.telling import Telling
from ..stages.compiled_loop import CompiledLoopRunner
from .actions import Action, Activate, Receive
from .comparable import comparable
from .loops import count_of_hold
from .monitor import believed_by, frontiers_of, under_way, untold
from .reached import (
    Act,
    Client,
    Doing,
    Door,
    Explorable,
    Explored,
    FlowSight,
    Judged,
    Local,
    Message,
    Move,
    Reached,
    Wire,
    WorkOff,
)
from .reductions import Symmetry, longest_path, moves_of_one
from .snapshot import counted, first_epochs, owned, view

__all__ = ["Explorer"]

_WORK_OFF: Final = WorkOff()
_ACTIONS_MAX: Final = 1_000
"""That many actions in one go have no end."""


class Explorer:
    """Explores what it is given: `run` returns how much there was, or raises `Counterexample`.

    More states than `states_max` are an error. With `enough` it ends once it has visited so many, the nearest
    to the first.
    """

    compiles_loops: ClassVar[bool] = False

    def __init__(
        self,
        scenario: Explorable,
        orderly: bool = False,
        states_max: int = 200_000,
        reduced: bool = False,
        whole: bool = False,
        enough: int = 0,
        alike: Sequence[int] = (),
    ) -> None:
        self.explored = Explored()
        self._scenario = scenario
        self._orderly = orderly
        self._states_max = states_max
        self._reduced = reduced
        self._whole = whole
        self._enough = enough
        self._symmetry = Symmetry(self, len(scenario.clients), alike) if alike else None
        self._leads_to: dict[Reached, list[Reached]] = {}
        self._size = len(scenario.clients)
        self._locals: dict[Hashable, Local] = {}
        self._messages: dict[Hashable, Message] = {}
        self._after: dict[Hashable, tuple[Local, tuple[tuple[int, Message], ...]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._flows: dict[int, Judged] = {}
        self._sight_numbers: dict[Hashable, int] = {}
        self._sights: list[ProtocolState] = []
        self._together: dict[int, dict[int, int]] = {}
        """By dataflow: the number of a state in `_sights`."""
        self._sight_of: dict[Reached, int] = {}
        """The number of each state in `_together`."""
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
        self._shared: list[object] = []
        self._are_shared: set[int] = set()
        for worker in workers:
            self._install(worker)
        wires: tuple[Wire, ...] = ((),) * (self._size * self._size)
        locals_ = tuple(map(self._local, workers))
        self._starts = [
            Reached(locals_, wires, tuple(map(self._still_to_do, clients)))
            for clients in (scenario.clients, *scenario.or_clients)
        ]

    def _install(self, worker: Worker) -> None:
        """Let the dataflows begin on a worker."""
        for build in (self._scenario.build, *self._scenario.beside):
            flow = Dataflow("explored")
            build(flow)
            worker.install(flow.freeze())

    # -- going from state to state --

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        waiting: deque[Reached] = deque()
        for start in self._starts:
            if start not in self._came_from:
                self._came_from[start] = None
                self._count_state()
                self._judge(start)
                if self._symmetry is not None:
                    self._symmetry.begin(start)
                waiting.append(start)
        while waiting:
            state = waiting.popleft()
            if 0 < self._enough <= self.explored.states:
                waiting.append(state)
                break
            moves = self._moves(state)
            if self._symmetry is not None:
                self._symmetry.check_moves(state, moves, self._moves)
            if not moves:
                self._judge_end(state)
            if self._reduced:
                possible, moves = len(moves), moves_of_one(state, moves, self._size)
                self.explored.put_off += possible - len(moves)
            for move in moves:
                after, is_new = self._go(state, move)
                if is_new:
                    waiting.append(after)
                if self._reduced:
                    self._leads_to.setdefault(state, []).append(after)
        if self._reduced and not waiting:
            self.explored.longest = longest_path(self._starts, self._leads_to, self.explored.states)
        self.explored.worker_states = len(self._locals)
        self.explored.images = 0 if self._symmetry is None else self._symmetry.count
        return self.explored

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
        """The state after a move, or the one that is visited in its place, and whether it is new."""
        self._judge_notifications(state, move)
        after = self.after(state, move)
        self.explored.transitions += 1
        is_new = is_first = after not in self._came_from
        if is_first:
            self._came_from[after] = state, move
        visited = after
        if self._symmetry is not None:
            visited, is_new = self._symmetry.visited(state, move, after)
        if is_new:
            self._count_state()
        if is_first:
            self._judge(after)
        self._judge_pair(state, after, move)
        return visited, is_new

    def act_of(self, state: Reached, who: int) -> Doing | None:
        """See `Goes`."""
        return next(iter(self._to_do[state.acts[who]]), None)

    def after(self, state: Reached, move: Move) -> Reached:
        """See `Goes`."""
        who, doing = move
        wires = list(state.wires)
        message: Message | None = None
        if isinstance(doing, Receive):
            wire = doing.peer * self._size + who
            message, wires[wire] = wires[wire][0], wires[wire][1:]
        local = state.workers[who]
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
        return Reached(workers, tuple(wires), tuple(acts))

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
            acted = self._local(worker)
            sent = tuple((peer, self._message(frames, worker.index)) for peer, frames in door.sent)
            self._after[key] = acted, sent
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
            doing.act(worker.instance(doing.dataflow if isinstance(doing, Client) else 0))

    def _work_off(self, worker: Worker) -> None:
        for _ in range(_ACTIONS_MAX):
            actions = worker.enabled()
            if not actions:
                return
            self._do(worker, actions[0])
            _count_anew(worker)
        raise AssertionError(f"after {_ACTIONS_MAX:,} actions it has not come to rest")

    def _local(self, worker: Worker) -> Local:
        for number, instance in worker.instances.items():
            if number not in self._flows:
                self._flows[number] = self._begin(instance)
        for instance in self._instances(worker):
            if id(instance.frozen) not in self._are_shared:
                self._are_shared.add(id(instance.frozen))
                self._shared += instance.shared()
        key = worker.index, comparable(self._compared(worker), self._shared)
        if key not in self._locals:
            self._locals[key] = self._look(worker)
        return self._locals[key]

    def _instances(self, worker: Worker) -> list[Instance]:
        """All dataflows of a worker that are copied with it."""
        return list(worker.instances.values())

    def _compared(self, worker: Worker) -> object:
        """All that decides what a worker will do."""
        return worker

    def _begin(self, instance: Instance) -> Judged:
        frozen, epoch = instance.frozen, instance.first_epoch
        first: list[Counts] = [counted(first_epochs(frozen, worker, epoch)) for worker in range(self._size)]
        return Judged(frozen, PointstampOrder(frozen.graph), first)

    def _look(self, worker: Worker) -> Local:
        """What predicates see of a worker."""
        seen: dict[int, FlowSight] = {}
        sights: dict[int, int] = {}
        early: dict[int, list[tuple[int, Message]]] = {}
        for number, instance in worker.instances.items():
            frontiers = list(map(sorted, frontiers_of(instance)))
            caps, temp, glob = owned(instance), untold(instance), view(instance)
            held: list[Counts] = [] if worker.telling is None else [worker.telling.held_at(number)]
            inside = self._inside_worker(instance)
            told = _frozen(temp), tuple(map(_frozen, held))
            sights[number] = self._number((_frozen(caps), *told, _frozen(glob), str(frontiers), inside))
            seen[number] = FlowSight(caps, temp, held, glob, frontiers, inside)
        for number in self._flows:
            if number not in seen and (waiting := worker.early(number)):
                early[number] = [(peer, self._message(frames, peer)) for peer, frames in waiting]
                sights[number] = self._number(tuple((peer, one.sight) for peer, one in early[number]))
        return Local(worker, worker.enabled(), seen, early, sights)

    def _message(self, frames: list[memoryview], source: int) -> Message:
        header = read_header(frames[0], source)
        is_of_one = isinstance(header, ProgressHeader | DataHeader)
        number = header.dataflow if isinstance(header, ProgressHeader | DataHeader) else -1
        payload, data = (
            under_way([frames], source, number, self._flows[number].frozen) if is_of_one else ([], [])
        )
        key: Hashable = tuple(map(bytes, frames))
        if isinstance(header, ProgressHeader):
            # Two payloads that tell the same in another order are the same.
            key = (source, number, _frozen(payload[0]), *map(bytes, frames[2:]))
        if key not in self._messages:
            inside = self._inside_message(header, frames, source)
            sight = self._number((tuple(map(_frozen, payload)), tuple(data), inside))
            self._messages[key] = Message(frames, number, payload, data, sight, inside)
        return self._messages[key]

    def _inside_worker(self, instance: Instance) -> tuple[Hashable, ...]:
        """What a subclass judges of a worker besides."""
        return ()

    def _inside_message(self, header: Header, frames: list[memoryview], source: int) -> tuple[Hashable, ...]:
        """What a subclass judges of a message besides."""
        return ()

    # -- judging --

    def _number(self, key: Hashable) -> int:
        """The same for what is equal."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _protocol_state(self, state: Reached, number: int) -> ProtocolState:
        """What is so of a dataflow. Where it has not begun, a worker has done nothing, and heard nothing."""
        everyone, flow = range(self._size), self._flows[number]
        arriving = {
            (p, q): [
                *(one for peer, one in state.workers[q].early.get(number, ()) if peer == p),
                *(one for one in state.wires[p * self._size + q] if one.dataflow == number),
            ]
            for p in everyone
            for q in everyone
        }
        nothing = FlowSight({}, {}, [], total(*flow.first), [], ())
        seen = [local.seen.get(number, nothing) for local in state.workers]
        caps = [first if one is nothing else one.caps for first, one in zip(flow.first, seen, strict=True)]
        data = [point for messages in arriving.values() for message in messages for point in message.data]
        records = total(*caps, counted(data))
        begun = next(local.worker for local in state.workers if number in local.seen)
        return ProtocolState(
            nrec=records,
            records=records,
            caps=caps,
            temp=[one.temp for one in seen],
            glob=[one.glob for one in seen],
            msg={
                (p, q): [
                    *(one for message in messages for one in message.payload),
                    *(one for one in seen[p].held if one and p != q),
                ]
                for (p, q), messages in arriving.items()
            },
            hold=count_of_hold(begun.instance(number)),
        )

    def _judged(self, state: Reached) -> Iterator[int]:
        """The dataflows that have begun somewhere, and have not ended anywhere: of those that have, nobody
        tells anything any more.
        """
        for number in self._flows:
            is_over = any(number in local.worker.ended for local in state.workers)
            if not is_over and any(number in local.seen for local in state.workers):
                yield number

    def _count_state(self) -> None:
        self.explored.states += 1
        if self.explored.states > self._states_max:
            raise MisuseError(
                f"there are more than {self._states_max:,} states, and nothing is wrong in those visited. "
                "Take fewer acts or workers, explore in the order of steps, or allow more states"
            )

    def _judge(self, state: Reached) -> None:
        together: dict[int, int] = {}
        for number in self._judged(state):
            key = (
                number,
                tuple((number in local.seen, local.sights.get(number)) for local in state.workers),
                tuple(tuple(one.sight for one in wire if one.dataflow == number) for wire in state.wires),
            )
            together[number] = self._sight_numbers.setdefault(key, len(self._sights))
            if together[number] == len(self._sights):
                self._sights.append(self._protocol_state(state, number))
                self._judge_flow(state, number, self._sights[-1])
        index = self._number(("together", tuple(together.items())))
        self._together.setdefault(index, together)
        self._sight_of[state] = index

    def _judge_flow(self, state: Reached, number: int, sight: ProtocolState) -> None:
        order = self._flows[number].order
        is_alone = self._scenario.per_host > 1
        failing = alone(sight, order) if is_alone else failures(sight, order)
        earliest = order.minimal(t for t, count in sight.records.items() if count > 0)
        for label, where, points in chain(failing, self._failures_inside(state, number, earliest)):
            self._fail(state, f"{label} {where}", points, number=number)
        for who, local in enumerate(state.workers):
            if number not in local.seen:
                continue
            seen, instance = local.seen[number], local.worker.instance(number)
            believed = order.minimal(believed_by(instance, seen.glob))
            for index, port in enumerate(instance.tracker.watched):
                where = f"at worker {who}, port {index}, whose frontier is {seen.frontiers[index]}"
                if seen.frontiers[index] != frontier_of(believed, port, order):
                    self._fail(state, f"C4 {where}", [], number=number)
                points = unheld(earliest, port, seen.frontiers[index], order)
                if points:
                    self._fail(state, f"E2 {where}", points, number=number)

    def _failures_inside(
        self, state: Reached, number: int, earliest: Sequence[Pointstamp]
    ) -> Iterable[Failure]:
        """What a subclass finds wrong with a dataflow; `earliest` are the minimal points that are outstanding
        anywhere.
        """
        return ()

    def _judge_pair(self, before: Reached, after: Reached, move: Move) -> None:
        acting = move[0] if isinstance(move[1], Activate | WorkOff) else None
        pair = self._sight_of[before], self._sight_of[after], acting
        if pair in self._judged_pairs:
            return
        self._judged_pairs.add(pair)
        sooner, later = self._together[pair[0]], self._together[pair[1]]
        for number in sooner.keys() & later.keys():
            if sooner[number] != later[number]:
                pairs = self._sights[sooner[number]], self._sights[later[number]]
                self._judge_change(before, move, number, *pairs)

    def _judge_change(
        self, before: Reached, move: Move, number: int, earlier: ProtocolState, later: ProtocolState
    ) -> None:
        flow = self._flows[number]
        for label, where, points in failures_between(earlier, later, flow.order):
            self._fail(before, f"{label} {where}", points, move, number)
        if isinstance(move[1], Activate | WorkOff):
            acting = move[0]
            fresh = {t: count - earlier.records.get(t, 0) for t, count in later.records.items()}
            stages, caps, hold = len(flow.frozen.stages), earlier.caps[acting], earlier.hold
            points = unearned(
                fresh, caps, lambda t: t[0] >= stages and not 0 < hold <= caps.get(t, 0), flow.order
            )
            if points:
                self._fail(before, f"B0 at worker {acting}", points, move, number)

    def _judge_notifications(self, state: Reached, move: Move) -> None:
        """Compare with the truth; a worker knows a part of it."""
        who, doing = move
        if not isinstance(doing, Activate):
            return
        number = doing.dataflow
        instance = state.workers[who].worker.instance(number)
        runner = instance.turns.actors[doing.stage]
        together = self._together[self._sight_of[state]]
        if isinstance(runner, CompiledLoopRunner) or not runner.due or number not in together:
            return
        sight, order = self._sights[together[number]], self._flows[number].order
        shape = runner.code.shape
        for time in map(runner.code.unpack, runner.due):
            for port in runner.ports:
                images = (
                    (point, image)
                    for point in sight.records
                    for image in order.images(point, instance.tracker.watched[port])
                )
                points = [point for point, image in images if shape.less_equal(image, time)]
                if points:
                    what = f"due: {runner.title()} is notified of {time}"
                    self._fail(state, what, points, move, number)

    def _judge_end(self, state: Reached) -> None:
        self.explored.ends += 1
        for instance in (one for local in state.workers for one in local.worker.instances.values()):
            if not instance.is_complete():
                left = [
                    instance.tracker.describe(place, word) for place, word, _, _ in instance.tracker.active()
                ]
                self._fail(state, f"nothing can happen, and worker {instance.worker} waits: {left}", [])
        self._judge_result(state)

    def _judge_result(self, state: Reached) -> None:
        instances = [one for local in state.workers for one in local.worker.instances.values()]
        result = self._scenario.result(instances)
        if result != self._scenario.expected:
            self._fail(state, f"the result is {result}, and should be {self._scenario.expected}", [])

    def _fail(
        self,
        state: Reached,
        what: str,
        points: Sequence[Pointstamp],
        move: Move | None = None,
        number: int = 0,
    ) -> None:
        named = f" at {' · '.join(map(self._flows[number].order.name, points))}" if points else ""
        raise Counterexample(what + named, self._path(state, move))

    def _path(self, state: Reached, move: Move | None) -> list[str]:
        renaming: Sequence[int] = range(self._size)
        if state not in self._came_from and self._symmetry is not None:
            state, renaming = self._symmetry.visited_for(state)
        moves = [] if move is None else [(renaming.index(move[0]), move[1])]
        while (step := self._came_from[state]) is not None:
            state, before = step
            moves.append(before)
        return [f"worker {renaming[who]}: {self._says(doing)}" for who, doing in reversed(moves)]

    def _says(self, doing: Doing) -> str:
        if isinstance(doing, Activate):
            stages = self._flows[doing.dataflow].frozen.stages
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
