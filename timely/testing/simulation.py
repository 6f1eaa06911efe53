"""A cluster from a seed: workers that take turns in one process, in an order that the seed decides.

The seed decides who is next and what it does, how late messages are, when acts happen and where, and whether
and when workers crash. So the same seed, with the same program, gives the same run: nothing depends on the
clock. Alarms may ring at any moment; coroutines have a clock of their own, which goes on where they sleep.

A `Monitor` evaluates all predicates of progress tracking after each action.

After a crash, vertices of the other workers hear of the end. Then all workers begin anew, as in a durable
cluster do, and the same acts happen again. What clients could read before must come out once more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf

from progress.checking.counterexample import Counterexample
from progress.errors import PeerError

from ..building.dataflow import Dataflow
from ..operators.awaiting.event_loop import EventLoop
from ..running.checking.actions import Action, Activate, Idle, Receive
from ..running.checking.monitor import Monitor
from ..running.core import Worker
from ..running.instance import Instance
from ..wire.transport.memory import MemoryNetwork
from .acts import UserAct, closed, distributed, vertex_of
from .describing import action_in_words, error_in_words, lengths_of, sendings
from .exploring import Invariant, broken_by, check_forgotten, held_for_ever
from .guards import guarded, state_of
from .moment import Moment, Outputs, difference

__all__ = ["SimulatedRun", "SimulationPlan", "simulated"]

_ACTIONS_MAX = 20_000
"""A run with more actions counts as one that does not end."""

_LAST_STEPS = 40
_CRASHES = 0.02
"""How often an action is followed by a crash, until there was one."""


@dataclass(frozen=True)
class SimulationPlan:
    """What is run: see `Scenario`."""

    build: Callable[[Dataflow], object]
    acts: Sequence[UserAct]
    workers: int
    expected: Outputs | None = None
    invariant: Invariant | None = None
    forgets: Sequence[str] = ()
    crash: bool = False


@dataclass
class SimulatedRun:
    """What a run was like.

    `digest` is the same for two runs if and only if the same actions happened in the same order.
    """

    seed: int | None
    actions: int = 0
    crashes: int = 0
    outputs: Outputs = field(default_factory=dict)
    digest: str = ""

    def __str__(self) -> str:
        crashed = f", {self.crashes} crash" if self.crashes else ""
        return f"seed {self.seed}: {self.actions:,} actions{crashed}, run {self.digest}"


class _Clock:
    """The clock of coroutines."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class _GoOn:
    """Coroutines of a worker go on, after they have slept."""

    def __str__(self) -> str:
        return "lets coroutines go on"


class _Cluster:
    """Workers from their start up to the end of all acts, or to a crash."""

    def __init__(
        self, plan: SimulationPlan, acts: Sequence[Sequence[UserAct]], rng: random.Random | None
    ) -> None:
        self.plan = plan
        self.rng = rng
        self.pending = [list(listed) for listed in acts]
        self.clock = _Clock()
        self.network = MemoryNetwork(plan.workers)
        self.workers = [
            Worker(
                index,
                plan.workers,
                self.network.transport(index) if plan.workers > 1 else None,
                compiled_loops=False,
            )
            for index in range(plan.workers)
        ]
        self.loops = [EventLoop(self.clock) for _ in self.workers]
        Monitor(self.workers, self.network)
        self.instances: list[Instance] = []
        for worker, loop in zip(self.workers, self.loops, strict=True):
            worker.acting.loop, loop.users = loop, 1
            flow = Dataflow("simulated")
            plan.build(flow)
            self.instances.append(worker.install(flow.freeze()))
        self.first = {
            stage: [state_of(vertex_of(instance, stage)) for instance in self.instances]
            for stage in plan.forgets
        }
        # Some workers are slow, and some kinds of actions are rare: runs differ more than if all were alike.
        self.speeds = [1.0 if rng is None else rng.random() ** 2 + 0.02 for _ in self.workers]
        self.hastes = [1.0 if rng is None else rng.random() ** 2 + 0.02 for _ in range(3)]

    def moves(self) -> list[tuple[int, Action | UserAct | _GoOn]]:
        """All that can happen now."""
        moves: list[tuple[int, Action | UserAct | _GoOn]] = []
        for who, worker in enumerate(self.workers):
            enabled = worker.enabled()
            moves += [(who, action) for action in enabled]
            if self.loops[who].seconds < inf:
                moves.append((who, _GoOn()))
            moves += [(who, act) for act in self.pending[who][:1]]
        if self.rng is None:  # in order: acts wait until nothing else can happen
            others = [move for move in moves if not isinstance(move[1], UserAct)]
            return others or moves
        return moves

    def choose(
        self, moves: Sequence[tuple[int, Action | UserAct | _GoOn]]
    ) -> tuple[int, Action | UserAct | _GoOn]:
        """The next one of these."""
        if self.rng is None:
            return moves[0]
        weights = [self.speeds[who] * self.hastes[_kind(doing)] for who, doing in moves]
        return self.rng.choices(moves, weights)[0]

    def perform(self, who: int, doing: Action | UserAct | _GoOn) -> None:
        """Let it happen."""
        worker = self.workers[who]
        if isinstance(doing, _GoOn):
            self.clock.now = max(self.clock.now, self.loops[who].wake_at)
            self.loops[who].run()
        elif isinstance(doing, UserAct):
            del self.pending[who][0]
            doing.act(worker.instance())
        elif isinstance(doing, Activate):
            with guarded(worker.instance(), doing.stage):
                worker.perform(doing)
        else:
            worker.perform(doing)

    def crash(self, lost: int) -> None:
        """Let a worker be gone; vertices of the others hear of the end."""
        for index, worker in enumerate(self.workers):
            if index != lost:
                worker.end(0, PeerError(f"worker {lost} is lost: it has crashed"))

    def close(self) -> None:
        """Let nothing go on."""
        for loop in self.loops:
            loop.close()


class _Simulation:
    """One run; with `tells` it notes all steps in words."""

    def __init__(self, plan: SimulationPlan, seed: int | None, tells: bool) -> None:
        self.plan = plan
        self.run = SimulatedRun(seed)
        self.tells = tells
        self.steps: list[str] = []
        self.rng = None if seed is None else random.Random(seed)
        self.digest = blake2b(digest_size=8)
        acts = closed(plan.acts)
        chosen = {id(act): 0 if self.rng is None else self.rng.randrange(plan.workers) for act in acts}
        self.acts = distributed(acts, chosen, plan.workers)

    def go(self) -> SimulatedRun:
        """Run until nothing can happen any more; raise `Counterexample` if something is wrong."""
        shown: Outputs = {}
        if self.plan.crash and self.rng is not None:
            with self._attempt() as attempt:
                if not self._go_on(attempt, _CRASHES):
                    shown = Moment(attempt.instances).outputs()
                    lost = self.rng.randrange(self.plan.workers)
                    self._note(lost, "crashes; all workers begin anew, and the same acts happen again")
                    attempt.crash(lost)
                    self.run.crashes += 1
                else:
                    return self._finished(attempt, shown)
        with self._attempt() as attempt:
            self._go_on(attempt, 0.0)
            return self._finished(attempt, shown)

    @contextmanager
    def _attempt(self) -> Iterator[_Cluster]:
        attempt = _Cluster(self.plan, self.acts, self.rng)
        try:
            yield attempt
        finally:
            attempt.close()

    def _go_on(self, attempt: _Cluster, crashes: float) -> bool:
        """Perform actions; return False where a crash comes."""
        while moves := attempt.moves():
            if self.run.actions >= _ACTIONS_MAX:
                self._fail(f"it does not end: {_ACTIONS_MAX:,} actions have happened, and more can")
            who, doing = attempt.choose(moves)
            self.run.actions += 1
            self.digest.update(f"{who} {doing}\n".encode())
            self._perform(attempt, who, doing)
            if self.plan.invariant is not None:
                wrong = broken_by(self.plan.invariant, Moment(attempt.instances))
                if wrong:
                    self._fail(wrong)
            if crashes and self.rng is not None and self.rng.random() < crashes:
                return False
        return True

    def _perform(self, attempt: _Cluster, who: int, doing: Action | UserAct | _GoOn) -> None:
        instance, before = attempt.instances[who], lengths_of(attempt.instances[who])
        text, sent_before = "", self._waiting(attempt, who)
        if self.tells:
            frames: list[memoryview] = []
            if isinstance(doing, Receive):
                frames = attempt.network.waiting(doing.peer, who)[0]
            text = (
                action_in_words(attempt.workers[who], doing, frames)
                if isinstance(doing, Action)
                else str(doing)
            )
        try:
            attempt.perform(who, doing)
        except Exception as error:  # whatever a worker or a vertex raises
            self._note(who, text)
            what = error.what if isinstance(error, Counterexample) else error_in_words(error)
            self._fail(what, error)
        if self.tells:
            if isinstance(doing, Activate):
                sent = [
                    (peer, frames)
                    for peer, messages in self._waiting(attempt, who).items()
                    for frames in messages[len(sent_before[peer]) :]
                ]
                text += sendings(instance, doing.stage, before, sent)
            if not isinstance(doing, Idle):
                self._note(who, text)

    def _waiting(self, attempt: _Cluster, who: int) -> dict[int, list[list[memoryview]]]:
        if not self.tells:
            return {}
        peers = [peer for peer in range(self.plan.workers) if peer != who]
        return {peer: attempt.network.waiting(who, peer) for peer in peers}

    def _finished(self, attempt: _Cluster, shown: Outputs) -> SimulatedRun:
        instances = attempt.instances
        wrong = held_for_ever(instances)
        for instance in instances:
            if not wrong and not instance.is_complete():
                active = [
                    instance.tracker.describe(place, word) for place, word, _, _ in instance.tracker.active()
                ]
                wrong = f"nothing can happen any more, and worker {instance.worker} waits: {active[:3]}"
        wrong = wrong or check_forgotten(instances, attempt.first)
        self.run.outputs = Moment(instances).outputs()
        if not wrong and self.plan.expected is not None:
            wrong = difference(self.run.outputs, self.plan.expected)
        if not wrong:
            wrong = _not_again(shown, self.run.outputs)
        if wrong:
            self._fail(wrong)
        self.run.digest = self.digest.hexdigest()
        return self.run

    def _note(self, who: int, text: str) -> None:
        if self.tells:
            self.steps.append(f"worker {who}: {text}")

    def _fail(self, what: str, error: Exception | None = None) -> None:
        left_out = len(self.steps) - _LAST_STEPS
        steps = self.steps[-_LAST_STEPS:]
        if left_out > 0:
            steps = [f"({left_out:,} steps before)", *steps]
        again = f"seed {self.run.seed} gives the same run again"
        if self.run.seed is None:
            again = "so it is without any delays"
        raise Counterexample(what, steps, again) from error


def simulated(plan: SimulationPlan, seed: int | None) -> SimulatedRun:
    """Run a plan from a seed; None: all in order, without delays. Raise `Counterexample` if something is
    wrong, with the last steps.
    """
    try:
        return _Simulation(plan, seed, tells=False).go()
    except Counterexample as error:
        first = error
    # Once more, and in words this time: to put each action into words takes longer than to perform it.
    try:
        _Simulation(plan, seed, tells=True).go()
    except Counterexample as error:
        if error.what == first.what:
            raise error from first.__cause__
    raise Counterexample(
        f"{first.what}\n  (and not again in a second run from the same seed: what happens depends on "
        "something else, such as variables outside of vertices, ids, chance or the clock)",
        [],
    ) from first.__cause__


def _not_again(shown: Outputs, outputs: Outputs) -> str:
    """Return what clients could read before a crash, and what is different now."""
    now: Outputs = {}
    for name, entries in shown.items():
        epochs = {entry[0] for entry in entries}
        now[name] = [entry for entry in outputs[name] if entry[0] in epochs]
    wrong = difference(now, shown)
    return f"after the crash, epochs that clients had read are different: {wrong}" if wrong else ""


def _kind(doing: Action | UserAct | _GoOn) -> int:
    return 0 if isinstance(doing, Receive) else 1 if isinstance(doing, UserAct) else 2
