"""A worker drops what absent readers and writers have left behind, even if nothing else happens.

A worker that has work does so as it goes along; one that waits looks from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...limits import READING_SECONDS_MAX
from ...running.core import Worker

__all__ = ["Tidying"]


class Tidying:
    """Looks through the inputs and outputs of one worker, not more often than is worth it.

    Before `look_at`, by the clock, `look` does nothing: the loop of a worker compares that first, without a
    call.

    Args:
        worker: the worker.
        clock: seconds, only their differences count.
    """

    def __init__(self, worker: Worker, clock: Callable[[], float] = time.monotonic) -> None:
        self._worker = worker
        self._clock = clock
        self.look_at = clock() + READING_SECONDS_MAX

    def look(self) -> None:
        """Drop what has waited for too long, if it is time to look."""
        now = self._clock()
        if now < self.look_at:
            return
        self.look_at = now + READING_SECONDS_MAX
        for number, instance in list(self._worker.instances.items()):
            try:
                for handle in instance.inputs.values():
                    handle.tidy()
                for name in instance.frozen.outputs:
                    instance.output(name).log.tidy()
            except BaseException as error:  # of a log that a user wrote
                self._worker.fail(number, error)
