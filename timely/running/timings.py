"""How long steps, callbacks, the collector, sends and wakes of a worker take, as histograms.

    step        a round of the worker's loop in which anything happened
    callback    a turn of a vertex or compiled loop, with what it sends
    collector   a look for garbage between two steps (`collecting.py`)
    send        handing a message for another worker to its transport
    wake        from when an alarm is due, or a thread rings, until the worker knows: it may sleep, or be busy

A bucket is half an octave: the square of its nanoseconds has one number of bits, so that adding a time is an
index into a list. Clocks are read twice for a step, twice for a message to another worker, and once for each
turn, whose end is the beginning of the next. Times only grow; nothing that a worker does depends on them.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

from ..wire.requests import Value

__all__ = ["NAMES", "Histogram", "Timings"]

_BUCKETS: Final = 128
"""The last one begins at 2⁶³ ns."""

_SHARES: Final = (0.5, 0.99, 0.999)

NAMES: Final = ("step", "callback", "collector", "send", "wake")
"""The attributes of `Timings`, as `stats()` names them."""


class Histogram:
    """Times by size: `counts[k]` of them have squares of k bits, in nanoseconds; `total`: their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * _BUCKETS
        self.total = 0

    def add(self, taken: int) -> None:
        """Count a time of so many nanoseconds."""
        self.counts[(taken * taken).bit_length()] += 1
        self.total += taken

    def within_ns(self, share: float) -> float:
        """Return the upper end of the bucket within which this share of all times is; 0 without times."""
        wanted, seen = share * sum(self.counts), 0
        for bits, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return float(2 ** (bits / 2))
        return 0.0

    def report(self) -> dict[str, Value]:
        """Return what `stats()` says of it, in seconds."""
        buckets = [[2 ** (bits / 2) / 1e9, count] for bits, count in enumerate(self.counts) if count]
        return {
            "count": sum(self.counts),
            "seconds": self.total / 1e9,
            "within": [[share, self.within_ns(share) / 1e9] for share in _SHARES],
            "buckets": buckets,
        }


class Timings:
    """The histograms of one worker."""

    __slots__ = ("callback", "collector", "rung_at", "send", "step", "wake")

    def __init__(self) -> None:
        self.step = Histogram()
        self.callback = Histogram()
        self.collector = Histogram()
        self.send = Histogram()
        self.wake = Histogram()
        self.rung_at = 0
        """When a thread has rung and the worker does not know yet; 0: none has. Any thread writes it."""

    def ring(self) -> None:
        """Note that a thread rings. If several ring at once, the time is of one of them."""
        if not self.rung_at:
            self.rung_at = perf_counter_ns()

    def take_alarms(self, seconds_late: float) -> None:
        """Note that the worker knows of all that has rung, and of alarms of which the first is so late."""
        rung_at, self.rung_at = self.rung_at, 0
        if rung_at:
            self.wake.add(perf_counter_ns() - rung_at)
        if seconds_late > 0.0:
            self.wake.add(int(seconds_late * 1e9))

    def report(self) -> list[Value]:
        """Return what `stats()` says."""
        named = (self.step, self.callback, self.collector, self.send, self.wake)
        return [{"name": name, **times.report()} for name, times in zip(NAMES, named, strict=True)]
