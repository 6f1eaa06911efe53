"""The gate of a worker: may new work begin, and may vertices run?

Both depend only on what the other workers have received (`running/credits.py`). Inputs, imports and constants
ask the gate before they let rows in; while it is closed they wait there, and have a turn when it opens.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Gate", "Waits"]


class Waits(Protocol):
    """The stage of an input, import or constant."""

    def wake(self) -> None:
        """Ask for an activation."""
        ...


class Gate:
    """The gate of one worker; all its dataflows share it."""

    __slots__ = ("has_credit", "is_open", "waiting")

    def __init__(self) -> None:
        self.is_open = True
        """True if new rows may enter."""
        self.has_credit = True
        """True if vertices may run. If not, the worker receives, and tells what it knows of progress."""
        self.waiting: list[Waits] = []
        """The stages that have found it closed."""

    def wait(self, stage: Waits) -> None:
        """Give a stage a turn when the gate opens. Requires: it is closed."""
        if stage not in self.waiting:
            self.waiting.append(stage)

    def set_open(self, is_open: bool) -> None:
        """Open or close it; stages that wait have a turn when it opens."""
        self.is_open = is_open
        if is_open and self.waiting:
            waiting, self.waiting = self.waiting, []
            for stage in waiting:
                stage.wake()
