"""Can what a thread waits for still come, and when is it worth looking again?

Embedded workers work during a call, and then do all that there is to do. If the answer has not come by that,
only a call of another thread of the program can bring it, one that seals, for example. If no thread could
make such a call, waiting is an error at once. Otherwise the waiting thread gives up its turn, so that others
can have theirs, and looks again when one of them has made a call.

A vertex that has set an alarm (`Vertex.activate`) brings something itself: then the thread looks again when
that is due. A thread that rings for a vertex (`Activator`) wakes those that wait, as a call would; some
thread may do so as long as a dataflow has an activator.

Which threads may make such a call? Those that have called this cluster before, and those that were started
since it was made, since they may be about to. A thread that was there before and has never called, such as
one of a notebook or of a debugger, does not count; nor does a thread in which a worker works, nor one that
keeps a live table current (`only_reads`), nor one that waits here itself, without a limit: if all threads
that could bring something wait for one another, the last one gets an error. One thing nobody can know: that a
thread waits for something else, such as the end of one that waits here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import Final, Protocol
from weakref import WeakSet

from ...errors import WaitTimeoutError
from ...failure import add_note
from ...operators.alarms import seconds_to_alarm
from ...operators.awaiting.event_loop import EventLoop
from ...operators.awaiting.loops_event import LoopsEvent
from ...running.core import Worker
from .answers import Answers
from .threads.worker_threads import is_worker_thread

__all__ = ["Turn", "WaitingThreads"]

_LOOK_SECONDS: Final = 1.0


class Turn(Protocol):
    """A lock that knows which thread has it (`threading.RLock`)."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it."""
        ...

    def release(self) -> None:
        """Give it back; raise `RuntimeError` if another thread has it."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class WaitingThreads:
    """The threads of this program that wait for answers of one embedded cluster, and those that may bring
    them.
    """

    def __init__(self, workers: Sequence[Worker] = ()) -> None:
        self._workers = workers
        for worker in workers:
            worker.acting.on_wake = self.wake
        self._before = WeakSet(threading.enumerate())
        self.callers: set[int] = set()
        """The threads that have made a call: each adds itself."""
        self.asleep: dict[threading.Event, int] = {}
        """The threads that wait, by the event that each waits for: its number if it waits without a limit,
        else 0. `wake` has nobody to wake if this is empty.
        """

    @staticmethod
    def may_begin(turn: Turn, until: float) -> bool:
        """Return whether the turn is free before `until`, which is finite: a thread keeps its turn as long as
        it has work. The caller takes the turn afterwards, and waits at most for threads that came in between.
        """
        try:
            is_free = turn.acquire(timeout=min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX))
            if is_free:
                turn.release()
        except BaseException:
            # A thread interrupted (Ctrl-C) as `acquire` returns would hold the turn for ever.
            with suppress(RuntimeError):
                turn.release()
            raise
        return is_free

    @staticmethod
    def not_begun() -> WaitTimeoutError:
        """Return the error to raise if the turn is not free in time."""
        return WaitTimeoutError(
            "the time is over, and another thread of this program is at work with these workers: this call "
            "has done nothing. Repeat it, or take workers in processes, connect(workers=…), which answer "
            "each thread by itself"
        )

    def may_ask(self) -> bool:
        """Return True if another thread may make a call."""
        asleep = set(self.asleep.copy().values())
        return any(
            (thread.ident in self.callers or thread not in self._before)
            and thread.ident not in asleep
            and not (is_worker_thread(thread) or getattr(thread, "only_reads", False))
            for thread in threading.enumerate()
            if thread.ident != threading.get_ident()
        )

    def why_not(self) -> str:
        """Return, for a message, what keeps other threads from calls; empty if there are no others."""
        asleep = self.asleep.copy().values()  # others get up without a turn
        waiting = {each for each in asleep if each not in (0, threading.get_ident())}
        count = len(waiting)
        return f": {count} wait{'s' * (count == 1)} as this one does, without a limit" if count else ""

    def patience(self, answers: Answers) -> float:
        """Return for how long other threads may bring the missing answers, in seconds. Raise the error of an
        answer, or that an answer is late: at once if no thread could bring it.
        """
        if answers.failure is not None:
            raise answers.failure
        dataflows = [each for worker in self._workers for each in worker.instances.values()]
        loops = self._loops()
        left = min([seconds_to_alarm(dataflows), *(loop.seconds for loop in loops)])
        may_ring = left < inf or bool(loops) or any(each.alarms.activators for each in dataflows)
        if not (may_ring or self.may_ask()):
            late = answers.late()
            add_note(
                late,
                "it was not waited for: these workers work while this program asks them, and no other thread "
                f"of it does{self.why_not()}. Seal first, or ask for what is sealed",
            )
            raise late
        seconds = min(later.deadline for later in answers.waiting.values()) - time.monotonic()
        if seconds <= 0:
            raise answers.late()
        return min(seconds, left)

    def lie_down(self, is_for_ever: bool) -> threading.Event:
        """Return the event that the current thread is to wait for, without its turn; called within the turn,
        so that nothing happens unseen. `is_for_ever`: it waits until it is woken, or interrupted.
        """
        loops = self._loops()
        event = LoopsEvent([loop.descriptor for loop in loops]) if loops else threading.Event()
        self.asleep[event] = threading.get_ident() if is_for_ever else 0
        return event

    def await_news(self, event: threading.Event, seconds: float) -> None:
        """Wait for the event of `lie_down`, for `seconds`, or until no thread is left that could bring news:
        a thread that ends tells nobody.
        """
        until = time.monotonic() + seconds
        while not event.wait(min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))):
            if time.monotonic() >= until or not self.may_ask():
                return

    def get_up(self, event: threading.Event) -> None:
        """Note that the current thread does not wait for an event any more."""
        self.asleep.pop(event, None)

    def _loops(self) -> list[EventLoop]:
        """Return the event loops in which coroutines of vertices run."""
        return [loop for worker in self._workers if (loop := worker.acting.running_loop) is not None]

    def wake(self) -> None:
        """Wake all waiting threads, which look again: something may have come. A thread that only looks again
        wakes nobody, since it does nothing that others would not see for themselves.
        """
        asleep, self.asleep = self.asleep, {}
        for event in list(asleep):  # another thread may be lying down
            event.set()
