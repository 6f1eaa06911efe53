"""Names of deliveries for a base: the numbers of each writer, as intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Interval", "TakenNames", "merged"]

Interval = tuple[int, int]
"""The first and the last of numbers that follow one another."""


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the numbers of all these intervals, as few intervals, ascending."""
    result: list[Interval] = []
    for first, last in sorted(intervals):
        if result and first <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(result[-1][1], last)
        else:
            result.append((first, last))
    return result


class TakenNames:
    """The names that were taken for whichever epoch was open, by writer; those heard of last come last."""

    def __init__(self, plain: Iterable[Sequence[object]] = ()) -> None:
        """`plain`: what `plain` has returned."""
        self._numbers: dict[str, list[Interval]] = {}
        self._epochs: dict[str, int] = {}
        for writer, (epoch, numbers) in _named(plain).items():
            self._numbers[writer], self._epochs[writer] = numbers, epoch

    def __contains__(self, name: tuple[str, int]) -> bool:
        writer, sequence = name
        return any(first <= sequence <= last for first, last in self._numbers.get(writer, ()))

    def take(self, writer: str, sequence: int, epoch: int) -> None:
        """Note that a delivery has entered `epoch`."""
        numbers = self._numbers.pop(writer, [])
        self._numbers[writer] = numbers
        self._epochs[writer] = max(epoch, self._epochs.get(writer, -1))
        if numbers and sequence == numbers[-1][1] + 1:  # Fast path: they follow one another.
            numbers[-1] = numbers[-1][0], sequence
        else:
            numbers.append((sequence, sequence))

    def take_in(self, plain: Iterable[Sequence[object]]) -> None:
        """Note what `plain` of another one has returned; either may have the same names."""
        for writer, (epoch, numbers) in _named(plain).items():
            before = self._numbers.pop(writer, [])
            self._numbers[writer] = merged([*before, *numbers])
            self._epochs[writer] = max(epoch, self._epochs.get(writer, -1))

    def plain(self) -> list[list[object]]:
        """Return writer, last epoch and intervals of each writer."""
        return [
            [writer, self._epochs[writer], [list(each) for each in merged(numbers)]]
            for writer, numbers in self._numbers.items()
        ]


def _named(plain: Iterable[Sequence[object]]) -> dict[str, tuple[int, list[Interval]]]:
    """Return, by writer, the last epoch and the intervals of numbers."""
    result: dict[str, tuple[int, list[Interval]]] = {}
    for writer, epoch, intervals in plain:
        assert isinstance(writer, str) and isinstance(epoch, int) and isinstance(intervals, list)
        result[writer] = epoch, [(first, last) for first, last in intervals]
    return result
