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
from collections.abc import Callable
from math import inf
from typing import Final
from weakref import WeakSet

from ...errors import WaitTimeoutError
from .crew import is_of_a_crew

__all__ = ["Others"]

_LOOK_SECONDS: Final = 1.0

_PAUSE_SECONDS_MIN: Final = 5e-5
_PAUSE_SECONDS_MAX: Final = 5e-3
"""How long who waits for a turn sleeps before it looks again: longer and longer, for turns are short or very
long.
"""


class Others:
    """The threads of this program, as one of them sees the others."""

    def __init__(self) -> None:
        self._before = WeakSet(threading.enumerate())
        self.have_asked: set[int] = set()
        """The threads that have: each adds itself as it asks."""
        self._asleep: dict[threading.Event, int] = {}
        """Who waits, by what it is to wait for: which thread, if it does so without a limit, else 0."""

    @staticmethod
    def await_turn(turn: threading.Lock, until: float, is_within: Callable[[], bool]) -> None:
        """Wait while another thread has its turn, which lasts as long as there is work for it, but not longer
        than `until`: then raise `WaitTimeoutError`. Who is to wait for ever waits for the turn itself, and so
        does who may have none, to be told so.

        Who takes it afterwards may still find it taken, by who came in between. To take it here, with a
        limit, would not do: whoever is interrupted (Ctrl-C) as `acquire` returns would hold it for ever.
        """
        if until == inf or not turn.locked() or is_within():
            return
        pause = _PAUSE_SECONDS_MIN
        while turn.locked():
            if time.monotonic() >= until:
                raise WaitTimeoutError(
                    "the time is over, and another thread of this program is at work with these workers: "
                    "what was asked for may be there when that has ended. Workers in processes, "
                    "connect(workers=…), answer each thread by itself"
                )
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    def may_ask(self) -> bool:
        """Whether there is another thread that may ask for something."""
        asleep = set(self._asleep.copy().values())
        return any(
            (thread.ident in self.have_asked or thread not in self._before)
            and thread.ident not in asleep
            and not is_of_a_crew(thread)
            for thread in threading.enumerate()
            if thread.ident != threading.get_ident()
        )

    def why_not(self) -> str:
        """What keeps others from asking, for a message; empty where there are none."""
        asleep = self._asleep.copy().values()  # others get up without a turn
        waiting = {each for each in asleep if each not in (0, threading.get_ident())}
        count = len(waiting)
        return f": {count} wait{'s' * (count == 1)} as this one does, without a limit" if count else ""

    def lie_down(self, is_for_ever: bool) -> threading.Event:
        """What the current thread is to wait for, without its turn; called within it, so that nothing happens
        unseen. `is_for_ever`: until it is woken, or gets up by being interrupted.
        """
        event = threading.Event()
        self._asleep[event] = threading.get_ident() if is_for_ever else 0
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
        self._asleep.pop(event, None)

    def wake(self) -> None:
        """Something may have come: who waits looks again. Who only looks again wakes nobody, for it does
        nothing that others would not see for themselves.
        """
        asleep, self._asleep = self._asleep, {}
        for event in asleep:
            event.set()
