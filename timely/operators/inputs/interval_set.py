"""A set of whole numbers that takes little room while they follow one another, in any order."""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["IntervalSet"]


class IntervalSet:
    """Whole numbers, as intervals."""

    __slots__ = ("_firsts", "lasts", "next")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self.lasts: list[int] = []
        """The last number of each interval."""
        self.next: int | None = None
        """The number right behind the last one; None if there is none."""

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    @property
    def gaps(self) -> int:
        """How many gaps there are between the numbers."""
        return max(0, len(self._firsts) - 1)

    def add(self, number: int) -> None:
        """Put a number in; once is enough."""
        if number == self.next:  # Fast path: numbers follow one another.
            self.lasts[-1] = number
            self.next = number + 1
            return
        at = bisect_right(self._firsts, number) - 1
        if at >= 0 and number <= self.lasts[at]:
            return
        joins_left = at >= 0 and self.lasts[at] == number - 1
        joins_right = at + 1 < len(self._firsts) and self._firsts[at + 1] == number + 1
        if joins_left and joins_right:
            self.lasts[at] = self.lasts.pop(at + 1)
            del self._firsts[at + 1]
        elif joins_left:
            self.lasts[at] = number
        elif joins_right:
            self._firsts[at + 1] = number
        else:
            self._firsts.insert(at + 1, number)
            self.lasts.insert(at + 1, number)
        self.next = self.lasts[-1] + 1

    def compared(self) -> object:
        """The intervals; what is next follows."""
        return self._firsts, self.lasts
