"""What embedded workers have taken and not worked on yet: how much it is, and who does it at the end.

They work while they are asked something whose answer depends on it. What is sealed until then waits: *owed*
work, which costs less the more of it is done at once, but takes memory, and lets effects of the user's own
code (files, prints) wait. So there are bounds, and whoever seals beyond one works it off.

A program that ends without closing its cluster still gets what it has sealed: clusters that owe something are
held here until the interpreter ends, and asked to do it then; not in a forked child, whose parent does it.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from ...limits import OWED_BYTES_MAX, OWED_EPOCHS_MAX, OWED_ROWS_MAX, OWED_SECONDS_MAX
from ...wire.requests import Decide, Deliver, Request

__all__ = ["Debtor", "Owed", "pay_all"]


class Debtor(Protocol):
    """An embedded cluster, which may owe work."""

    def work_off(self) -> None:
        """Do all that is owed."""
        ...


class Owed:
    """What `debtor` owes.

    Args:
        debtor: who is asked to do it when the interpreter ends.
        clock: seconds, only their differences count.
    """

    def __init__(self, debtor: Debtor, clock: Callable[[], float] = time.monotonic) -> None:
        self._debtor = debtor
        self._name = id(debtor)
        self._clock = clock
        self._given: dict[int, tuple[int, int]] = {}  # rows and bytes since the last seal, by dataflow
        self._owed_by: dict[int, tuple[int, int, int]] = {}  # epochs, rows and bytes, by dataflow
        self._since = 0.0
        self.epochs = 0
        self.rows = 0
        self.bytes = 0

    def __bool__(self) -> bool:
        """Whether anything is owed."""
        return self.epochs > 0

    def give(self, dataflow: int, rows: int, size_bytes: int) -> None:
        """Rows are there that nobody has sealed yet: they wait, and are not owed."""
        known = self._given.get(dataflow)
        if known is not None:
            rows, size_bytes = rows + known[0], size_bytes + known[1]
        self._given[dataflow] = rows, size_bytes

    def seal(self, dataflow: int) -> None:
        """They are sealed: now they are owed."""
        if not self.epochs:
            self._since = self._clock()
            _debtors[self._name] = self._debtor
        rows, size_bytes = self._given.pop(dataflow, (0, 0))
        epochs, rows_before, bytes_before = self._owed_by.get(dataflow, (0, 0, 0))
        self._owed_by[dataflow] = epochs + 1, rows_before + rows, bytes_before + size_bytes
        self.epochs += 1
        self.rows += rows
        self.bytes += size_bytes

    def note(self, request: Request, table: pa.Table | None) -> None:
        """A request was taken: what it gives, or seals."""
        if isinstance(request, Deliver):
            rows = len(request.rows) if table is None else table.num_rows
            self.give(request.dataflow, rows, 0 if table is None else table.get_total_buffer_size())
        elif isinstance(request, Decide) and (request.seals or request.close):
            self.seal(request.dataflow)

    def is_too_much(self) -> bool:
        """Whether one of the bounds is reached."""
        return self.epochs > 0 and (
            self.epochs >= OWED_EPOCHS_MAX
            or self.rows >= OWED_ROWS_MAX
            or self.bytes >= OWED_BYTES_MAX
            or self._clock() - self._since >= OWED_SECONDS_MAX
        )

    def clear(self, dataflows: Iterable[int] | None = None) -> None:
        """All is done, or never will be; or that of some dataflows is, and others begin to owe theirs now."""
        for dataflow in () if dataflows is None else dataflows:
            epochs, rows, size_bytes = self._owed_by.pop(dataflow, (0, 0, 0))
            self.epochs -= epochs
            self.rows -= rows
            self.bytes -= size_bytes
        self._since = self._clock()
        if dataflows is None or not self.epochs:
            self._owed_by.clear()
            self.epochs = self.rows = self.bytes = 0
            _debtors.pop(self._name, None)


_debtors: dict[int, Debtor] = {}
"""By identity. They are held, not looked up: one that nobody else refers to owes its work all the same."""


def pay_all() -> None:
    """Let all debtors do what they owe; the first error is raised when all have had their turn."""
    failure: BaseException | None = None
    for debtor in list(_debtors.values()):
        try:
            debtor.work_off()
        except BaseException as error:
            failure = failure or error
        _debtors.pop(id(debtor), None)
    if failure is not None:
        raise failure


atexit.register(pay_all)
os.register_at_fork(after_in_child=_debtors.clear)
