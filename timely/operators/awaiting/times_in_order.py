"""Times, each as often as it is put in, in an order in which those before a time come first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator

from progress.times.timestamp import Timestamp

__all__ = ["TimesInOrder"]


class TimesInOrder:
    """Many times, in an order that gives the first ones.

    Tuples in order are in an order that goes on with that of times: one that is at or before another stands
    in front of it. So only the front is looked at, which is short where times are told in order.
    """

    def __init__(self) -> None:
        self._times: list[Timestamp] = []

    def __contains__(self, time: Timestamp) -> bool:
        at = bisect_left(self._times, time)
        return at < len(self._times) and self._times[at] == time

    def __iter__(self) -> Iterator[Timestamp]:
        return iter(self._times)

    def add(self, time: Timestamp) -> None:
        """Put a time in once more."""
        insort(self._times, time)

    def discard(self, time: Timestamp) -> None:
        """Take a time out once, if it is there."""
        if time in self:
            del self._times[bisect_left(self._times, time)]

    def has_up_to(self, time: Timestamp, less_equal: Callable[[Timestamp, Timestamp], bool]) -> bool:
        """Return True if some time is at or before this one."""
        end = bisect_right(self._times, time)
        return any(less_equal(self._times[at], time) for at in range(end))
