"""What workers tell of the epochs, inputs and readers of a dataflow, put together: the slowest one counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ...operators.capture import FOREVER
from ...wire.requests import Value

__all__ = ["Told", "behind_seconds", "epoch_seconds", "reader_lags", "waiting_at_inputs"]

Told: TypeAlias = Mapping[object, Value]
"""What one worker tells of a dataflow: `dataflows` of `cluster.stats()`, under its number."""

_SHARES: Final = (0.5, 0.99)


def behind_seconds(news: Sequence[Told], complete: int) -> float:
    """Return how long ago the first epoch was sealed, with any worker, that is not complete with all:
    `complete`. 0 if there is none.
    """
    return max((sealed for new in news for epoch, sealed, _ in _dated(new) if epoch > complete), default=0.0)


def epoch_seconds(news: Sequence[Told]) -> list[tuple[float, float]]:
    """Return (share, seconds): within so long that share of the last epochs was complete after it was sealed.
    Of each epoch the worker counts that took longest.
    """
    longest: dict[int, float] = {}
    for new in news:
        for epoch, sealed, complete in _dated(new):
            if complete is not None:
                longest[epoch] = max(longest.get(epoch, 0.0), sealed - complete)
    taken = sorted(longest.values())
    return [(share, taken[min(len(taken) - 1, int(share * len(taken)))]) for share in _SHARES if taken]


def waiting_at_inputs(news: Sequence[Told], unit: str) -> dict[str, int]:
    """Return for each input the rows or bytes (`unit`) that wait there, with all workers."""
    waiting: dict[str, int] = {}
    for new in news:
        for entry in _items(new, "inputs"):
            match entry:
                case {"name": str(name), **counts}:
                    count = counts.get(f"{unit}_waiting")
                    waiting[name] = waiting.get(name, 0) + (count if isinstance(count, int) else 0)
    return waiting


def reader_lags(news: Sequence[Told]) -> dict[str, int]:
    """Return for each output that has readers how many complete epochs the last one has not read."""
    lags: dict[str, int] = {}
    for new in news:
        for output in _items(new, "outputs"):
            match output:
                case {"name": str(name), "complete_before": int(complete), "readers": [*readers]}:
                    for lag in _lags(complete, readers):
                        lags[name] = max(lags.get(name, 0), lag)
    return lags


def _lags(complete: int, readers: Sequence[Value]) -> Iterator[int]:
    for reader in readers:
        match reader:
            case {"epoch": int(epoch)} if complete < FOREVER:
                yield max(0, complete - epoch)


def _dated(new: Told) -> Iterator[tuple[int, float, float | None]]:
    """Yield each epoch, how long ago it was sealed, and how long ago it was complete, if it is."""
    for entry in _items(new, "epochs"):
        match entry:
            case [int(epoch), float(sealed), float() | None as complete]:
                yield epoch, sealed, complete


def _items(new: Told, name: str) -> Sequence[Value]:
    match new.get(name):
        case [*items]:
            return items
        case _:
            return []
