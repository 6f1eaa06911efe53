"""Who has a turn, and in which order: the run queue of one dataflow on one worker.

An *actor* is a stage with its vertex, or a compiled loop. Those with work are *ready* and run in the order of
their numbers, which is topological; compiled loops come last. Others wait beside them: *patient* ones until
nothing is ready, or for some steps; those that *resume* until the next `run`; and those that have work for
idle moments.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final, TypeAlias

from ..failure import add_note
from ..wire.batch import Batch
from .stages.compiled_loop import CompiledLoopRunner
from .stages.connector import Target
from .stages.vertex_runner import VertexRunner

__all__ = ["PATIENCE_STEPS", "Actor", "Turns"]

PATIENCE_STEPS: Final = 16
"""Steps in which patient vertices wait for others: an output of a loop then has a turn in 16 iterations."""

Actor: TypeAlias = VertexRunner | CompiledLoopRunner


class Turns:
    """The turns of one dataflow on one worker."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        """Who has the turns of each stage, and then the compiled loops: these have theirs last."""
        self.ready: list[int] = []
        self._turns: deque[int] = deque()  # stages that were left waiting
        self.resumed: list[Actor] = []
        self.patient: list[int] = []  # stages that wait until nothing is ready, and for how many steps
        self._postponed = 0
        self.has_failed = False
        self.mergers: list[VertexRunner] = []  # those that have a use for idle moments
        self.idle_runners: list[VertexRunner] = []

    def enqueue(self, target: Target, port: int, location: int, word: int, batch: Batch) -> None:
        """A message waits for `target`."""
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
        """`runner` has more to do, in the next `run`: others come first, and so do sockets and progress."""
        self.resumed.append(runner)

    def run(self, activations: int) -> int:
        """Activate up to `activations` vertices, topologically first ones first; returns how many ran.

        Who was left waiting by the last call has one turn before: what lies behind a loop that never rests is
        not starved by it.
        """
        if self.resumed:
            for runner in self.resumed.copy():
                self.let_resume(runner)
        ready, turns, runners = self.ready, self._turns, self.actors
        if self.patient:
            self._postponed += 1
            if not ready or self._postponed >= PATIENCE_STEPS:
                self._let_patient()
        ran = 0
        while ready and ran < activations:
            runner = runners[turns.popleft() if turns else heapq.heappop(ready)]
            # One that has had its turn out of order is still listed: in that case it is not queued any more.
            if runner.is_queued:
                self._activate(runner)
                ran += 1
        if ready and not turns:
            # Once each: who had a turn out of order and waits again is listed twice by now, and would be once
            # more for each turn behind a loop that never rests.
            ready[:] = sorted({stage for stage in ready if runners[stage].is_queued})
            turns.extend(ready)
        if ran:
            self.idle_runners = self.mergers.copy()
        return ran

    def _let_patient(self) -> None:
        """Vertices that can wait have waited long enough."""
        for stage in self.patient:
            heapq.heappush(self.ready, stage)
        self.patient.clear()
        self._postponed = 0

    def let_resume(self, runner: Actor) -> None:
        """Let a stage that asked for another turn have it."""
        self.resumed.remove(runner)
        runner.may_resume = True
        self.wake(runner)

    def resume(self, stage: int) -> None:
        """The same for a stage, or compiled loop, by its number."""
        self.let_resume(self.actors[stage])

    def activate(self, stage: int) -> None:
        """Run one queued stage, whichever others would come before it."""
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
            self.has_failed = True
            add_note(error, f"while {runner.title()} ran, built at {runner.site}")
            raise

    def idle(self) -> bool:
        """One idle moment for the next vertex that wants it; returns whether any vertex wants another."""
        waiting = self.idle_runners
        while waiting:
            runner = waiting[-1]
            try:
                if runner.vertex is not None and runner.vertex.on_idle():
                    return True
            except BaseException as error:
                add_note(error, f"while {runner.title()} was idle, built at {runner.site}")
                raise
            waiting.pop()
        return False

    def rest(self) -> None:
        """Nothing has happened for a while: idle moments may begin what does not pay earlier."""
        for runner in self.mergers:
            try:
                if runner.vertex is not None:
                    runner.vertex.on_rest()
            except BaseException as error:
                add_note(error, f"while {runner.title()} rested, built at {runner.site}")
                raise
        self.idle_runners = self.mergers.copy()

    def compared(self) -> object:
        """All that decides what it will do; who the actors are, the dataflow compares."""
        return (
            (sorted(self.ready), self._turns, sorted(self.patient), self._postponed, self.has_failed),
            [sorted(runner.stage for runner in listed) for listed in (self.resumed, self.idle_runners)],
        )

    def drop(self) -> None:
        """Nobody has a turn any more: give back what is kept."""
        for listed in (self.actors, self.mergers, self.idle_runners, self.resumed):
            listed.clear()
        for waiting in (self.ready, self.patient, self._turns):
            waiting.clear()
