"""Answers of a durable worker that leave once what they rest on is in the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...durable.log import Log
from ...errors import FencedError, StoreError, TimelyError
from ...failure import fresh_copy
from ...wire.requests import Decide, Progress, Read, Request, Stats

__all__ = ["WaitingReplies", "rests_on_log"]


def rests_on_log(request: Request) -> bool:
    """Return True if the answer rests on what this worker has logged by now. Answers about outputs rest on
    durable epochs, whatever was logged since; only the place of a reader is in the log. A client may want to
    hear of a decision early. Counters promise nothing, and say why the log cannot be written.
    """
    if isinstance(request, Read | Progress):
        return bool(request.reader)
    return not (isinstance(request, Stats) or (isinstance(request, Decide) and request.early))


class _Waiting(NamedTuple):
    """An answer that waits until the log has told so many records; it is refused if the log fails, but not
    for a failure of before so many tries.
    """

    position: int
    tries: int
    send: Callable[[], None]
    refuse: Callable[[TimelyError], None]


class WaitingReplies:
    """The answers that wait for the log, oldest first."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def send(self, send: Callable[[], None], refuse: Callable[[TimelyError], None]) -> None:
        """Call `send` once the log has told all that it has by now; if it fails, `refuse` with its error. If
        it fails already, it tries once more before that: there may be room by now.
        """
        if self._log.told >= self._log.position:
            send()
        else:
            self._waiting.append(_Waiting(self._log.position, self._log.try_soon(), send, refuse))

    def look(self) -> bool:
        """Let answers leave; return True if any did. Raise the error of a log that will not go on, as after a
        fence: then nobody hears anything any more.
        """
        tries = (
            self._log.tries
        )  # first: a try that ends from here on may succeed, and `error` is one of before
        error = self._log.error
        if error is not None and (isinstance(error, FencedError) or not isinstance(error, StoreError)):
            raise fresh_copy(error)
        left = len(self._waiting)
        while self._waiting and self._waiting[0].position <= self._log.told:
            self._waiting.popleft().send()
        if error is not None:
            # What was taken stays in memory, and is written once there is room: a repetition counts once.
            waiting, self._waiting = self._waiting, deque[_Waiting]()
            for each in waiting:
                if each.tries <= tries:
                    each.refuse(fresh_copy(error))
                else:
                    self._waiting.append(each)
        return len(self._waiting) < left
