"""How do workers that take turns in one thread run a compiled loop together?

A loop goes from round to round in a kernel, which waits for the votes of other workers. A worker that shares
the thread of those would wait for ever: so it lets them go on. The loop of another worker that waits, too,
since its last turn, takes up the votes that are there. That loop soon waits for the caller, and lets the
kernel of the caller go on, whose call is still under way. So two kernels run in turn, with nothing but two
calls in between; what a kernel leaves to Python is done by the one whose call it is.

To the other worker it is as if it had had a turn meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from time import perf_counter_ns

from ....running.core import Worker

__all__ = ["Meeting", "OthersInTurn"]


class Meeting:
    """The workers of a thread, while they take turns. `until`: the moment of the monotonic clock from which
    on no worker lets others go on.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = workers
        self.until = 0.0
        self.waiting: Callable[[], bool] | None = None
        """Lets the worker go on that waits in a call further up."""
        self.inner = 0
        """For how many nanoseconds it has gone on meanwhile."""


class OthersInTurn:
    """All others, for worker `index`; see `InTurn`."""

    def __init__(self, meeting: Meeting, index: int) -> None:
        self._meeting = meeting
        self._worker = meeting.workers[index]

    def go_on(self, goes_on: Callable[[], bool]) -> bool:
        """See `InTurn`."""
        meeting, worker = self._meeting, self._worker
        if time.monotonic() > meeting.until:
            return False
        began = perf_counter_ns()
        if meeting.waiting is not None:
            try:
                return meeting.waiting()
            finally:
                taken = perf_counter_ns() - began
                meeting.inner += taken
                worker.note_elsewhere(taken)
        meeting.waiting, meeting.inner = goes_on, 0
        try:
            have_gone_on = False
            for other in meeting.workers:
                if other is not worker and other.let_loop_go_on():
                    have_gone_on = True
            return have_gone_on
        finally:
            meeting.waiting = None
            worker.note_elsewhere(perf_counter_ns() - began - meeting.inner)
