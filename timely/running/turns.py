"""Turns: the run queue of one dataflow on one worker.

An *actor* is a stage with its vertex, or a compiled loop. Actors with work are *ready* and run in the order
of their numbers, which is topological; compiled loops come last. Others wait beside them: *patient* ones
until nothing is ready, or for some steps; those that *resume* until the next `run`; and those that have
work for idle moments.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Final, TypeAlias

from ..failure import add_note
from ..operators.alarms import Alarms
from ..wire.batch import Batch
from .gate import Gate
from .stages.compiled_loop import CompiledLoopRunner
from .stages.connector import Target
from .stages.vertex_runner import VertexRunner
from .timings import Timings

__all__ = ["PATIENCE_STEPS", "Actor", "Turns"]

PATIENCE_STEPS: Final = 16
"""Steps for which patient vertices wait for others: an output of a loop has one turn in 16 iterations
then."""

Actor: TypeAlias = VertexRunner | CompiledLoopRunner


class Turns:
    """The turns of one dataflow on one worker."""

    def __init__(self, gate: Gate | None = None, timings: Timings | None = None) -> None:
        self.gate = Gate() if gate is None else gate
        self.timings = Timings() if timings is None else timings
        self.actors: list[Actor] = []
        """The actor of each stage, and then the compiled loops, which have their turns last."""
        self.ready: list[int] = []
        self._turns: deque[int] = deque()  # stages that the last `run` left waiting
        self.resumed: list[Actor] = []
        self.patient: list[int] = []  # stages that wait until nothing is ready
        self._postponed = 0  # steps for which they have waited
        self.alarms = Alarms()
        self.has_failed = False
        self.busy: list[int] = []
        """For each actor the nanoseconds of all its turns and idle moments, with what it sent in them."""
        self.elsewhere = 0
        """How much of the present turn was spent on other workers of the thread, in nanoseconds."""
        self.ran_from = self.ran_until = 0
        """When the last `run` began, and when its last turn was over, by `perf_counter_ns`."""
        self.mergers: list[VertexRunner] = []  # runners whose vertices have a use for idle moments
        self.idle_runners: list[VertexRunner] = []

    def add_actors(self, actors: Sequence[Actor]) -> None:
        """Add actors, behind those that there are."""
        self.actors += actors
        self.busy += [0] * len(actors)

    def enqueue(self, target: Target, port: int, location: int, word: int, batch: Batch) -> None:
        """Put a message into the inbox of `target`, and let it have a turn."""
        target.inbox.append((port, location, word, batch))
        if not target.is_queued:
            target.is_queued = True
            if target.is_patient:
                self.patient.append(target.stage)
            else:
                heapq.heappush(self.ready, target.stage)

    def wake(self, runner: Actor) -> None:
        """Let a stage have its turn."""
        if not runner.is_queued:
            runner.is_queued = True
            heapq.heappush(self.ready, runner.stage)

    def resume_later(self, runner: Actor) -> None:
        """Let `runner` go on in the next `run`: others come first, and so do sockets and progress."""
        self.resumed.append(runner)

    def take_out(self, runner: Actor) -> None:
        """Let a stage wait for no turn any more: another actor has taken its place."""
        if runner.is_queued:
            runner.is_queued = False
            self.ready.remove(runner.stage)
            heapq.heapify(self.ready)

    def run(self, activations: int) -> int:
        """Activate up to `activations` vertices, topologically first ones first; return how many ran.

        Actors that the last call left waiting have one turn first, so that a loop that never rests does not
        starve the stages behind it. None runs while the worker has no credit.
        """
        gate = self.gate
        if not gate.has_credit:
            return 0
        if self.resumed:
            for runner in self.resumed.copy():
                self.let_resume(runner)
        ready, turns, runners, busy = self.ready, self._turns, self.actors, self.busy
        patient = self.patient
        if self.patient:
            self._postponed += 1
            if not ready or self._postponed >= PATIENCE_STEPS:
                self._let_patient()
        ran = 0
        times = self.timings.callback
        counts = times.counts
        began = then = perf_counter_ns()
        while ready and ran < activations and gate.has_credit:
            stage = turns.popleft() if turns else heapq.heappop(ready)
            runner = runners[stage]
            # An actor that has had its turn out of order is still listed, but not queued any more. Or it is
            # queued again among the patient ones, and waits there.
            if runner.is_queued and not (patient and stage in patient):
                self._activate(runner)
                ran += 1
                now = perf_counter_ns()
                taken, then = now - then, now
                if self.elsewhere:
                    taken -= self.elsewhere
                    self.elsewhere = 0
                counts[(taken * taken).bit_length()] += 1  # `Histogram.add`, without a call
                busy[stage] += taken
        times.total += then - began
        self.ran_from, self.ran_until = began, then
        if ready and not turns:
            # List each once: an actor that had a turn out of order and waits again is listed twice by now,
            # and would be once more for each turn behind a loop that never rests.
            ready[:] = sorted({stage for stage in ready if runners[stage].is_queued})
            turns.extend(ready)
        if ran:
            self.idle_runners = self.mergers.copy()
        return ran

    def take_up_votes(self, loop: int) -> bool:
        """Let a compiled loop go on outside of its turns; see `CompiledLoopRunner.take_up_votes`."""
        runner = self.actors[loop]
        assert isinstance(runner, CompiledLoopRunner)
        began = perf_counter_ns()
        try:
            return runner.take_up_votes()
        except BaseException as error:
            self._note_failure(runner, error)
            raise
        finally:
            self.busy[loop] += perf_counter_ns() - began - self.elsewhere
            self.elsewhere = 0

    def _let_patient(self) -> None:
        """Let patient vertices have their turn: they have waited long enough."""
        for stage in self.patient:
            heapq.heappush(self.ready, stage)
        self.patient.clear()
        self._postponed = 0

    def let_resume(self, runner: Actor) -> None:
        """Let a stage that asked for another turn have it."""
        self.resumed.remove(runner)
        runner.may_resume = True
        self.wake(runner)

    def take_alarms(self) -> None:
        """Let stages whose alarms are due have a turn."""
        self.ring(self.alarms.take())
        self.timings.take_alarms(self.alarms.seconds_late)

    def ring(self, stages: Sequence[int]) -> None:
        """Let stages have a turn in which their vertices hear of an alarm."""
        for stage in stages:
            actor = self.actors[stage]
            if isinstance(actor, VertexRunner):
                actor.wants_activation = True
                self.wake(actor)

    def ring_one(self, stage: int) -> None:
        """Let the first alarm of a stage be due."""
        self.alarms.take_of(stage)
        self.ring([stage])

    def resume(self, stage: int) -> None:
        """Let a stage, or compiled loop, that asked for another turn have it, by its number."""
        self.let_resume(self.actors[stage])

    def activate(self, stage: int) -> None:
        """Run one queued stage, also if others would come before it."""
        if stage in self.patient:
            self.patient.remove(stage)
        else:
            self.ready.remove(stage)
            heapq.heapify(self.ready)
        self._activate(self.actors[stage])
        self.idle_runners = self.mergers.copy()

    def _activate(self, runner: Actor) -> None:
        runner.is_queued = False
        try:
            runner.activate()
        except BaseException as error:
            self._note_failure(runner, error)
            raise

    def _note_failure(self, runner: Actor, error: BaseException) -> None:
        self.has_failed = True
        add_note(error, f"while {runner.title()} ran, built at {runner.site}")

    def idle(self) -> bool:
        """Give one idle moment to the next vertex that wants it; return True if any vertex wants another."""
        waiting, busy = self.idle_runners, self.busy
        while waiting:
            runner = waiting[-1]
            began = perf_counter_ns()
            try:
                wants_more = runner.vertex is not None and runner.vertex.on_idle()
            except BaseException as error:
                add_note(error, f"while {runner.title()} was idle, built at {runner.site}")
                raise
            busy[runner.stage] += perf_counter_ns() - began
            if wants_more:
                return True
            waiting.pop()
        return False

    def rest(self) -> None:
        """Tell vertices that nothing has happened for a while: in idle moments they may do work that does
        not pay earlier.
        """
        for runner in self.mergers:
            try:
                if runner.vertex is not None:
                    runner.vertex.on_rest()
            except BaseException as error:
                add_note(error, f"while {runner.title()} rested, built at {runner.site}")
                raise
        self.idle_runners = self.mergers.copy()

    def compared(self) -> object:
        """Return all that decides what it will do; the dataflow compares the actors."""
        return (
            (sorted(self.ready), self._turns, sorted(self.patient), self._postponed, self.has_failed),
            [sorted(runner.stage for runner in listed) for listed in (self.resumed, self.idle_runners)],
            self.alarms,
        )

    def drop(self) -> None:
        """Drop everything: nobody has a turn any more."""
        for listed in (self.actors, self.mergers, self.idle_runners, self.resumed):
            listed.clear()
        self.busy = []  # the list itself may belong to a turn that is under way
        self.alarms.drop()
        for waiting in (self.ready, self.patient, self._turns):
            waiting.clear()
