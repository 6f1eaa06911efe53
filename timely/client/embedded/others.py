"""Can what a thread waits for still come, and when is it worth looking again?

Embedded workers work while they are asked, and then do all that there is to do. What has not come by that can
come only by a call of another thread of the program, which seals, say. If there is none that could make one,
waiting is an error at once. Else the thread that waits has no turn, so that others can have theirs, and looks
again when one of them has asked for anything.

Which threads may make such a call? Those that have asked this cluster before, and those that were started
since it was made, for they may be about to. A thread that was there before and has never asked, such as one
of a notebook or of a debugger, is none of them; nor is one in which a worker works.
"""

from __future__ import annotations

import threading
from weakref import WeakSet

from .crew import is_of_a_crew

__all__ = ["Others"]


class Others:
    """The threads of this program, as one of them sees the others."""

    def __init__(self) -> None:
        self._before = WeakSet(threading.enumerate())
        self._have_asked: set[int] = set()
        self.last = 0
        """The thread that has asked last, of which nothing more need be noted."""
        self._asleep: list[threading.Event] = []

    def note(self, thread: int) -> None:
        """This thread, the current one, asks."""
        self._have_asked.add(thread)
        self.last = thread

    def may_ask(self) -> bool:
        """Whether there is another thread that may ask for something."""
        return any(
            (thread.ident in self._have_asked or thread not in self._before) and not is_of_a_crew(thread)
            for thread in threading.enumerate()
            if thread.ident != threading.get_ident()
        )

    def lie_down(self) -> threading.Event:
        """What the current thread is to wait for, without its turn; called within it, so that nothing happens
        unseen.
        """
        event = threading.Event()
        self._asleep.append(event)
        return event

    def wake(self) -> None:
        """Something may have come: who waits looks again. Who only looks again wakes nobody, for it does
        nothing that others would not see for themselves.
        """
        asleep, self._asleep = self._asleep, []
        for event in asleep:
            event.set()
