"""How long the epochs of a dataflow take, what waits at its inputs, and how far its readers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..client.reports.figures import Stats
from ..operators.capture import FOREVER
from ..wire.requests import Value

__all__ = ["epoch_seconds", "reader_lags", "rows_at_inputs"]

_SHARES: Final = (0.5, 0.99)


def epoch_seconds(stats: Stats, dataflow: int) -> Iterator[tuple[float, float]]:
    """Yield (share, seconds): within so long that share of the last epochs was complete after it was sealed.
    Of each epoch the worker counts that took longest.
    """
    longest: dict[int, float] = {}
    for flow in _flows(stats, dataflow):
        match flow:
            case {"epochs": [*epochs]}:
                for entry in epochs:
                    match entry:
                        case [int(epoch), float(sealed), float(complete)]:
                            longest[epoch] = max(longest.get(epoch, 0.0), sealed - complete)
    taken = sorted(longest.values())
    if taken:
        for share in _SHARES:
            yield share, taken[min(len(taken) - 1, int(share * len(taken)))]


def rows_at_inputs(stats: Stats, dataflow: int) -> Iterator[tuple[str, int]]:
    """Yield each input with the rows that wait there, with all workers."""
    waiting: dict[str, int] = {}
    for flow in _flows(stats, dataflow):
        match flow:
            case {"inputs": [*inputs]}:
                for entry in inputs:
                    match entry:
                        case {"name": str(name), "rows_waiting": int(rows)}:
                            waiting[name] = waiting.get(name, 0) + rows
    yield from waiting.items()


def reader_lags(stats: Stats, dataflow: int) -> Iterator[tuple[str, int]]:
    """Yield each output that has readers, with the number of complete epochs that the last has not read."""
    lags: dict[str, int] = {}
    for flow in _flows(stats, dataflow):
        match flow:
            case {"outputs": [*outputs]}:
                for output in outputs:
                    match output:
                        case {"name": str(name), "complete_before": int(complete), "readers": [*readers]}:
                            for lag in _lags(complete, readers):
                                lags[name] = max(lags.get(name, 0), lag)
    yield from lags.items()


def _lags(complete: int, readers: Sequence[Value]) -> Iterator[int]:
    for reader in readers:
        match reader:
            case {"epoch": int(epoch)} if complete < FOREVER:
                yield max(0, complete - epoch)


def _flows(stats: Stats, dataflow: int) -> Iterator[Value]:
    for worker in stats:
        match worker:
            case {"dataflows": {**flows}}:
                yield flows.get(dataflow)
