"""Can what a thread waits for still come, and when is it worth looking again?

Embedded workers work while they are asked, and then do all that there is to do. What has not come by that can
come only by a call of another thread of the program, which seals, say. If there is none that could make one,
waiting is an error at once. Else the thread that waits has no turn, so that others can have theirs, and looks
again when one of them has asked for anything.

Which threads may make such a call? Those that have asked this cluster before, and those that were started
since it was made, for they may be about to. A thread that was there before and has never asked, such as one
of a notebook or of a debugger, is none of them; nor is one in which a worker works, nor one that waits here
itself, and without a limit: if all that could bring something wait for one another, the last one is told.
Of a thread that waits for something else, such as the end of one that waits here, nobody knows.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Protocol
from weakref import WeakSet

from ...errors import WaitTimeoutError
from ...failure import add_note
from .answers import Answers
from .crew import is_of_a_crew

__all__ = ["Others", "Turn"]

_LOOK_SECONDS: Final = 1.0


class Turn(Protocol):
    """A lock that knows which thread has it (`threading.RLock`)."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it."""
        ...

    def release(self) -> None:
        """Give it back; `RuntimeError` if it is another's."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Others:
    """The threads of this program, as one of them sees the others."""

    def __init__(self) -> None:
        self._before = WeakSet(threading.enumerate())
        self.have_asked: set[int] = set()
        """The threads that have: each adds itself as it asks."""
        self.asleep: dict[threading.Event, int] = {}
        """The threads that wait, by the event that each waits for: its number if it waits without a limit,
        else 0. `wake` has nobody to wake if this is empty.
        """

    @staticmethod
    def may_begin(turn: Turn, until: float) -> bool:
        """Whether a turn could be had before a time that is not for ever: it lasts as long as there is work
        for who has it. Who takes it now waits for who came in between at the most.
        """
        try:
            is_free = turn.acquire(timeout=min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX))
            if is_free:
                turn.release()
        except BaseException:
            # Who is interrupted (Ctrl-C) as `acquire` returns would hold it for ever.
            with suppress(RuntimeError):
                turn.release()
            raise
        return is_free

    @staticmethod
    def not_begun() -> WaitTimeoutError:
        """What to raise if it could not."""
        return WaitTimeoutError(
            "the time is over, and another thread of this program is at work with these workers: nothing of "
            "what was asked for was done. Ask again, or take workers in processes, connect(workers=…), which "
            "answer each thread by itself"
        )

    def may_ask(self) -> bool:
        """Whether there is another thread that may ask for something."""
        asleep = set(self.asleep.copy().values())
        return any(
            (thread.ident in self.have_asked or thread not in self._before)
            and thread.ident not in asleep
            and not is_of_a_crew(thread)
            for thread in threading.enumerate()
            if thread.ident != threading.get_ident()
        )

    def why_not(self) -> str:
        """What keeps others from asking, for a message; empty where there are none."""
        asleep = self.asleep.copy().values()  # others get up without a turn
        waiting = {each for each in asleep if each not in (0, threading.get_ident())}
        count = len(waiting)
        return f": {count} wait{'s' * (count == 1)} as this one does, without a limit" if count else ""

    def patience(self, answers: Answers) -> float:
        """For how long other threads may bring what these wait for. Raises that it is late,
        at once where nobody could bring it, or what some are not known for.
        """
        if answers.failure is not None:
            raise answers.failure
        if not self.may_ask():
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
        return seconds

    def lie_down(self, is_for_ever: bool) -> threading.Event:
        """What the current thread is to wait for, without its turn; called within it, so that nothing happens
        unseen. `is_for_ever`: until it is woken, or gets up by being interrupted.
        """
        event = threading.Event()
        self.asleep[event] = threading.get_ident() if is_for_ever else 0
        return event

    def await_news(self, event: threading.Event, seconds: float) -> None:
        """Wait for what `lie_down` has said, for so many seconds, or until nobody is left who could bring it;
        who has gone says so to nobody.
        """
        until = time.monotonic() + seconds
        while not event.wait(min(_LOOK_SECONDS, max(0.0, until - time.monotonic()))):
            if time.monotonic() >= until or not self.may_ask():
                return

    def get_up(self, event: threading.Event) -> None:
        """The current thread does not wait for it any more."""
        self.asleep.pop(event, None)

    def wake(self) -> None:
        """Something may have come: who waits looks again. Who only looks again wakes nobody, for it does
        nothing that others would not see for themselves.
        """
        asleep, self.asleep = self.asleep, {}
        for event in asleep:
            event.set()
