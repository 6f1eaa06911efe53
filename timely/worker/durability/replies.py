"""Answers of a durable worker that leave once what they rest on is in the log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ...durable.log import Log
from ...errors import FencedError, StoreError, TimelyError
from ...failure import fresh_copy
from ...wire.requests import Decide, Progress, Read, Request, Stats

__all__ = ["WaitingReplies", "rests_on_log"]

_HOLD_SECONDS: Final = 1e-3
"""For so long records wait while the loop works, so that the rows of an epoch and its digest share a sync."""


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

    def __init__(self, log: Log, is_under_way: Callable[[], bool] = lambda: False) -> None:
        """`is_under_way`: True if an epoch is sealed whose digest is to come; see `flush`."""
        self._log = log
        self._is_under_way = is_under_way
        self._waiting: deque[_Waiting] = deque()
        self._flush_at = 0.0
        """When to hand over what is held; 0: nothing is."""
        self._tries = 0
        """How often the log had tried at the last `look`."""

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

    def flush(self, served: bool, worked: bool, is_awaited: bool) -> bool:
        """Hand what the loop has logged to the disk, and return True if the log has news for `look`.

        First comes the step behind the requests that were `served`, for which other workers wait. If the
        thread of the log is to write, what is logged also waits a little while the loop has `worked`, and
        while an epoch is under way for which somebody waits: its digest then needs no sync of its own.
        """
        log = self._log
        if log.is_to_flush:
            is_apart = not log.flushes_here
            if is_apart and (served or worked or (is_awaited and self._is_under_way())):
                now = time.monotonic()
                self._flush_at = self._flush_at or now + _HOLD_SECONDS
                if now < self._flush_at:
                    return False
            log.flush()
        self._flush_at = 0.0
        return log.tries != self._tries

    def within(self, seconds: float) -> float:
        """Return how long the loop may wait, at most so many seconds, before it calls `flush`. Hand over what
        was logged since the last `flush`: a worker that waits for others to begin calls none.
        """
        if self._flush_at:
            return min(seconds, max(0.0, self._flush_at - time.monotonic()))
        if self._log.is_to_flush:
            self._log.flush()
            return 0.0
        return seconds

    def look(self) -> bool:
        """Let answers leave; return True if any did. Raise the error of a log that will not go on, as after a
        fence: then nobody hears anything any more.
        """
        # First: a try that ends from here on may succeed, and `error` is one of before.
        self._tries = tries = self._log.tries
        error = self._log.error
        if error is None and not self._waiting:  # Fast path.
            return False
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
