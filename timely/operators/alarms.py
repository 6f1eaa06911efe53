"""Alarms of one dataflow on one worker: what lets a vertex have a turn although nothing has come in.

    a moment    `Vertex.activate(after=…)`: the worker sleeps until then at most
    a ring      `Activator.activate()`, from any thread: it wakes the worker

Both end in one call of `on_activate` for each vertex that has any. A worker takes them at the beginning of a
step, and looks at its clock only while there are moments.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from typing import Protocol

__all__ = ["Alarms", "HasAlarms", "seconds_to_alarm"]


class Alarms:
    """The moments and rings of one dataflow on one worker."""

    def __init__(self) -> None:
        self.moments: list[tuple[float, int]] = []
        """A heap of (moment on the monotonic clock, stage)."""
        self.rung: set[int] = set()
        """The stages that have been rung for; any thread adds to it."""
        self.activators = 0
        """How many activators were made, by which some thread may ring."""
        self.seconds_late = 0.0
        """How long before the last `take` the first of its moments was; 0: it took none."""

    @property
    def are_due(self) -> bool:
        """True if `take` would return a stage."""
        return bool(self.rung or (self.moments and self.moments[0][0] <= time.monotonic()))

    def set(self, stage: int, moment: float | None) -> None:
        """Let a stage have a turn at a moment; None: in the next step."""
        if moment is None:
            self.rung.add(stage)
        else:
            heapq.heappush(self.moments, (moment, stage))

    def take(self) -> list[int]:
        """Return the stages whose alarms are due, each once, in order; these are over then."""
        stages: set[int] = set()
        self.seconds_late = 0.0
        while self.rung:
            stages.add(self.rung.pop())
        if self.moments:
            now = time.monotonic()
            self.seconds_late = max(0.0, now - self.moments[0][0])
            while self.moments and self.moments[0][0] <= now:
                stages.add(heapq.heappop(self.moments)[1])
        return sorted(stages)

    def stages(self) -> list[int]:
        """Return the stages that have an alarm, be it due or not."""
        return sorted({*self.rung, *(stage for _, stage in self.moments)})

    def take_of(self, stage: int) -> None:
        """End the first alarm of a stage, as if its moment had come."""
        if stage in self.rung:
            self.rung.remove(stage)
        else:
            self.moments.remove(min(each for each in self.moments if each[1] == stage))
            heapq.heapify(self.moments)

    def compared(self) -> object:
        """Return all that decides what may happen: a moment may come at any time."""
        return sorted(self.rung), [stage for _, stage in sorted(self.moments)]

    def drop(self) -> None:
        """End all alarms."""
        self.moments.clear()
        self.rung.clear()


class HasAlarms(Protocol):
    """A dataflow: see `instance.py`."""

    @property
    def alarms(self) -> Alarms:
        """Its alarms."""
        ...


def seconds_to_alarm(dataflows: Iterable[HasAlarms]) -> float:
    """Return after how many seconds the first alarm of these dataflows is due, 0 if one is; infinity if there
    is none.
    """
    first = float("inf")
    for each in dataflows:
        alarms = each.alarms
        if alarms.rung:
            return 0.0
        if alarms.moments and alarms.moments[0][0] < first:
            first = alarms.moments[0][0]
    return first if first == float("inf") else max(0.0, first - time.monotonic())
