"""Work that embedded workers have taken and not done yet: its amount, and how it is done at the end.

Embedded workers work while a call needs an answer that depends on their work. Sealed epochs wait until then
as *pending* work. Much work done at once costs less for each epoch, but takes memory, and delays effects of
the user's own code (files, prints). So pending work has bounds, and a seal that reaches one works it off.

A program that ends without closing its cluster still gets the answers to what it has sealed: this module
holds clusters with pending work until the interpreter ends, and then lets them do it. A forked child does not
do the work of its parent.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from ...limits import PENDING_BYTES_MAX, PENDING_EPOCHS_MAX, PENDING_ROWS_MAX, PENDING_SECONDS_MAX
from ...wire.requests import Decide, Deliver, Request

__all__ = ["HasWork", "PendingWork", "work_off_all"]


class HasWork(Protocol):
    """An embedded cluster, which may have pending work."""

    def work_off(self) -> None:
        """Do all pending work."""
        ...


class PendingWork:
    """The pending work of `owner`.

    Args:
        owner: works it off when the interpreter ends.
        clock: seconds, only their differences count.
    """

    def __init__(self, owner: HasWork, clock: Callable[[], float] = time.monotonic) -> None:
        self._owner = owner
        self._name = id(owner)
        self._clock = clock
        self._unsealed: dict[int, tuple[int, int]] = {}  # rows and bytes since the last seal, by dataflow
        self._sealed_by: dict[int, tuple[int, int, int]] = {}  # epochs, rows and bytes, by dataflow
        self._since = 0.0
        self.epochs = 0
        self.rows = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        """Return True if any work is pending."""
        return self.epochs > 0

    def give(self, dataflow: int, rows: int, size_bytes: int) -> None:
        """Note rows that are not sealed yet: no work is pending for them."""
        before = self._unsealed.get(dataflow)
        if before is not None:
            rows, size_bytes = rows + before[0], size_bytes + before[1]
        self._unsealed[dataflow] = rows, size_bytes

    def seal(self, dataflow: int) -> None:
        """Note that an epoch of a dataflow is sealed: work on its rows is pending now."""
        if not self.epochs:
            self._since = self._clock()
            _with_work[self._name] = self._owner
        rows, size_bytes = self._unsealed.pop(dataflow, (0, 0))
        epochs, rows_before, bytes_before = self._sealed_by.get(dataflow, (0, 0, 0))
        self._sealed_by[dataflow] = epochs + 1, rows_before + rows, bytes_before + size_bytes
        self.epochs += 1
        self.rows += rows
        self.bytes += size_bytes

    def note(self, request: Request, table: pa.Table | None) -> None:
        """Note the rows that a request brings, or that it completes an epoch."""
        if isinstance(request, Deliver):
            rows = len(request.rows) if table is None else table.num_rows
            self.give(request.dataflow, rows, 0 if table is None else table.get_total_buffer_size())
        elif isinstance(request, Decide) and (request.seals or request.close):
            self.seal(request.dataflow)

    def is_too_much(self) -> bool:
        """Return True if one of the bounds is reached."""
        return self._is_large() or (self.epochs > 0 and self._clock() - self._since >= PENDING_SECONDS_MAX)

    def _is_large(self) -> bool:
        return self.epochs > 0 and (
            self.epochs >= PENDING_EPOCHS_MAX
            or self.rows >= PENDING_ROWS_MAX
            or self.bytes >= PENDING_BYTES_MAX
        )

    def seconds_of_seal(self, seconds_max: float, is_late: bool) -> float:
        """Return how long a seal works off what is too much: `seconds_max`. If the work is late, because an
        earlier call has hit its time limit, it may never end: then briefly, unless it is large.
        """
        return PENDING_SECONDS_MAX if is_late and not self._is_large() else seconds_max

    def clear(self, dataflows: Iterable[int] | None = None) -> None:
        """Forget all work, or that of some dataflows, since it is done or never will be. The age of the other
        work counts from now.
        """
        for dataflow in () if dataflows is None else dataflows:
            epochs, rows, size_bytes = self._sealed_by.pop(dataflow, (0, 0, 0))
            self.epochs -= epochs
            self.rows -= rows
            self.bytes -= size_bytes
        if dataflows is not None and self.epochs:
            self._since = self._clock()
            return
        self._sealed_by.clear()
        self.epochs = self.rows = self.bytes = 0
        _with_work.pop(self._name, None)


_with_work: dict[int, HasWork] = {}
"""By identity. This refers to the clusters, so that their work is done even if nothing else refers to
them.
"""


def work_off_all() -> None:
    """Let all clusters do their pending work; then raise the first error, if any."""
    failure: BaseException | None = None
    for cluster in list(_with_work.values()):
        try:
            cluster.work_off()
        except BaseException as error:
            failure = failure or error
        _with_work.pop(id(cluster), None)
    if failure is not None:
        raise failure


atexit.register(work_off_all)
os.register_at_fork(after_in_child=_with_work.clear)
