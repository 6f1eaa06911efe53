"""What workers in this process say about an epoch that is not complete, also while another thread works with
them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final

from ...limits import BUSY_SECONDS_MAX
from ...running.instance import Instance
from ...running.stages.rights import Acting
from ...wire.reasons import Reason
from ...wire.requests import Decide, Deliver, Drop, Missing, Probe, Reply, Value, Why
from ...worker.answers.inputs import with_open
from ...worker.server import Server
from ..posting import Poster
from .waiting_threads import Turn

__all__ = ["OF_NO_WORK", "Asked", "note_entered"]

OF_NO_WORK: Final = (Deliver, Decide, Missing, Drop, Probe)
"""Requests whose answers depend only on the inputs of a dataflow, not on its work; and those about probes,
which may be answered before all work is done: a loop may never come to rest.
"""

_PENDING: Final = (
    "these workers are in this program, and work while it waits or reads: they have work that no such call "
    "has let them finish"
)


def note_entered(instance: Instance, poster: Poster, name: str, epoch: int) -> None:
    """Tell a client that rows for the input `name` have entered a later epoch than it took for the open
    one.
    """
    poster.on_answer(with_open(Reply({"is_new": True, "epoch": epoch}), instance, name, poster.epoch))


class Asked:
    """The part of embedded workers that answers what holds an epoch, and does no work for it."""

    _servers: Sequence[Server]
    _lock: Turn
    _acting: Acting

    def reasons(self, request: Why) -> list[Reply | str]:
        """See `Workers`."""
        if not self._lock.acquire(timeout=BUSY_SECONDS_MAX):
            seconds = _seconds_in_call(self._acting.thread)
            return [server.reasons.answer_from_outside(request, seconds) for server in self._servers]
        try:
            return [_with_pending(server, request) for server in self._servers]
        finally:
            self._lock.release()


def _with_pending(server: Server, request: Why) -> Reply:
    """Return the answer of a worker, and also that it has work, if it has."""
    answer = server.reasons.answer(request)
    if server.reasons.has_work(request.dataflow) and answer.integer("complete") <= request.epoch:
        reasons: list[Value] = answer.items("reasons")
        answer.values["reasons"] = [*reasons, Reason("pending", detail=_PENDING).values()]
    return answer


def _seconds_in_call(thread: int) -> float:
    """Return for how long a thread has been in a call to these workers, as the call itself has noted; -1 if
    it has not.
    """
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_globals.get("__name__") == "timely.client.installed":
            began: object = frame.f_locals.get("began")
            if isinstance(began, float):
                return time.monotonic() - began
        frame = frame.f_back
    return -1.0
