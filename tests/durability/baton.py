"""Threads that run one at a time; each decides where another may go on. One seed decides all of it.

    Baton               the schedule: whose turn it is, and the simulated time
    Turn                one thread, which is a greenlet: to pass the baton costs no time of the system
    SimulatedProcess    threads that end together

A thread passes the baton in `pause` and `wait_until`, and wherever a part of the simulation calls one of
these. No other thread runs between two of them, so its seed repeats a run exactly. If all threads wait, time
goes on to the first one whose wait is over.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from greenlet import getcurrent, greenlet

__all__ = ["Baton", "Killed", "SimulatedCondition", "SimulatedProcess", "Stuck", "Turn"]

_SECONDS_MAX = 3_000.0
_STEP_SECONDS = 1e-5


class Killed(BaseException):
    """The process of this thread has ended."""


class Stuck(AssertionError):
    """Nothing goes on any more."""


class SimulatedProcess:
    """Threads that end together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_killed = False
        self.is_stopped = False
        """True while no thread of it gets a turn, as after SIGSTOP."""
        self.turns: list[Turn] = []

    @property
    def is_over(self) -> bool:
        """True once no thread of it runs any more."""
        return all(turn.is_over for turn in self.turns)

    def on_enter(self) -> None:
        """Called when one of its threads gets the baton."""

    def on_leave(self) -> None:
        """Called when one of its threads has passed it on."""


@dataclass(eq=False)
class Turn:
    """One thread, and what it waits for."""

    process: SimulatedProcess
    name: str
    thread: greenlet
    ready: Callable[[], bool] | None = None
    until: float = 0.0
    is_over: bool = False

    def may_go(self, now: float) -> bool:
        """Return True if it can go on."""
        if self.is_over or (self.process.is_stopped and not self.process.is_killed):
            return False
        return now >= self.until or self.process.is_killed or (self.ready is not None and self.ready())


class Baton:
    """The schedule of one run; the thread that makes it is the first."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1_000.0
        self.switches = 0
        self.errors: list[BaseException] = []
        self.main = Turn(SimulatedProcess("main"), "main", getcurrent())
        self._turns = [self.main]
        self.holder = self.main
        self._ends = self.now + _SECONDS_MAX

    def start(self, process: SimulatedProcess, name: str, run: Callable[[], None]) -> Turn:
        """Let a thread of a process run; it begins when it gets the baton. The process ends with its first
        thread.
        """

        def body(*_: object) -> None:
            try:
                if not process.is_killed:
                    run()
            except Killed:
                pass
            except BaseException as error:
                self.errors.append(error)
            turn.is_over = True
            process.is_killed = process.is_killed or turn is process.turns[0]
            self._turns.remove(turn)
            other = self._next()
            self._note_holder(other)
            turn.thread.parent = other.thread  # which goes on as this one ends

        turn = Turn(process, name, greenlet(body, self.main.thread))
        process.turns.append(turn)
        self._turns.append(turn)
        return turn

    def pause(self) -> None:
        """Let others go on; return when this thread has the baton again."""
        self.wait_until(None, 0.0)

    def wait_until(self, ready: Callable[[], bool] | None, seconds: float) -> None:
        """Return once something is so (None: never), or that time is over. Raise `Killed` if the process has
        ended.
        """
        own = self.holder
        if own.process.is_killed and own is not self.main:
            raise Killed
        own.ready, own.until = ready, self.now + seconds
        other = self._next()
        if other is not own:
            self._note_holder(other)
            other.thread.switch()
        own.ready = None
        if own is self.main and self.errors:
            raise self.errors.pop(0)
        if own.process.is_killed and own is not self.main:
            raise Killed

    def end(self, process: SimulatedProcess) -> None:
        """End a process at once, whatever it does; return when none of its threads runs. A thread of another
        process calls this.
        """
        process.is_killed = True
        while not process.is_over:
            self.pause()

    def end_all(self) -> None:
        """End all threads but the first, which calls this."""
        while others := [turn for turn in self._turns if turn is not self.main]:
            self.errors.clear()
            for turn in others:
                turn.process.is_killed = True
            self.pause()

    def _next(self) -> Turn:
        self.switches += 1
        self.now += _STEP_SECONDS
        while True:
            able = [turn for turn in self._turns if turn.may_go(self.now)]
            if self.now > self._ends:
                return self._stuck()
            if able:
                return able[self.random.randrange(len(able))] if len(able) > 1 else able[0]
            waits = [turn.until for turn in self._turns if not turn.process.is_stopped]
            if not waits:
                return self._stuck()
            self.now = max(self.now, min(waits))

    def _stuck(self) -> Turn:
        names = ", ".join(f"{turn.process.name}: {turn.name}" for turn in self._turns)
        self.errors.append(Stuck(f"nothing goes on at {self.now:.0f} s; there are {names}"))
        self._ends = float("inf")
        return self.main

    def _note_holder(self, other: Turn) -> None:
        self.holder.process.on_leave()
        self.holder = other
        other.process.on_enter()


class SimulatedCondition:
    """A `threading.Condition` whose waits pass the baton."""

    def __init__(self, baton: Baton, lock: threading.Lock) -> None:
        self._baton = baton
        self._lock = lock
        self._waiting: list[list[bool]] = []

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *about: object) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        """See `threading.Condition`."""
        told = [False]
        self._waiting.append(told)
        self._lock.release()
        try:
            self._baton.wait_until(lambda: told[0], float("inf") if timeout is None else max(0.0, timeout))
        finally:
            assert self._lock.acquire(blocking=False), "no thread passes the baton with a lock"
            self._waiting = [other for other in self._waiting if other is not told]
        return told[0]

    def wait_for(self, is_so: Callable[[], bool], timeout: float | None = None) -> bool:
        """See `threading.Condition`."""
        until = self._baton.now + (float("inf") if timeout is None else timeout)
        while not is_so() and self._baton.now < until:
            self.wait(until - self._baton.now)
        return is_so()

    def notify(self, count: int = 1) -> None:
        """See `threading.Condition`."""
        for told in [told for told in self._waiting if not told[0]][:count]:
            told[0] = True

    def notify_all(self) -> None:
        """See `threading.Condition`."""
        self.notify(len(self._waiting))
