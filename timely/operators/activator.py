"""Activators: how a thread of the user wakes a vertex.

    bell = self.activator()          in a callback
    bell.activate()                  in any thread: `on_activate` of the vertex is called soon

Source: the activators of timely dataflow.
"""

from __future__ import annotations

from math import isfinite
from typing import Protocol

from progress.errors import MisuseError

from ..user_code.spellings import Spelled
from ..user_code.vertex_spellings import OF_ACTIVATORS

__all__ = ["Activator", "Wakes", "seconds_of_clock"]


def seconds_of_clock(call: str, seconds: object) -> float:
    """Return a number of seconds; raise `MisuseError`, which names the call, if it is none."""
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and isfinite(seconds):
        return float(seconds)
    raise MisuseError(
        f"{call} takes seconds, as a number: `after` from now on, `at` of the clock time.monotonic(), not "
        f"{seconds!r:.80}"
    )


class Wakes(Protocol):
    """Wakes a worker that sleeps; `running/stages/rights.py` implements it."""

    def wake(self) -> None:
        """End its sleep; any thread may call this."""
        ...


class Activator(Spelled):
    """Wakes one vertex; `Vertex.activator` makes it. Any thread may use it, as long as it likes."""

    __slots__ = ("_rung", "_stage", "_worker")
    _internal = frozenset({"compared"})
    _spellings = OF_ACTIVATORS

    def __init__(self, rung: set[int], stage: int, worker: Wakes) -> None:
        """`rung`: where the worker looks for stages that were rung for."""
        self._rung = rung
        self._stage = stage
        self._worker = worker

    def activate(self) -> None:
        """Let `on_activate` of the vertex be called once, after this call. Calls that come before the worker
        has got to it count as one. When the dataflow has ended this does nothing.
        """
        if self._stage not in self._rung:  # else the worker knows, and has not got to it
            self._rung.add(self._stage)
            self._worker.wake()

    def _missing(self, name: str) -> str:
        return OF_ACTIVATORS.message(f"an activator has no {name!r}", name, dir(Activator))

    def compared(self) -> object:
        """Return all that decides what it will do: see `Vertex.compared`."""
        return self._stage

    def __repr__(self) -> str:
        return f"Activator(stage {self._stage})"
