"""A set of times of which none comes before another: the lower edge of what can still happen.

A *frontier* is an antichain F read as the set of times beyond it: { t : some f in F is ≤ t }. At the frontier
{minimum} everything can still happen, at the empty one nothing.

This module works on tuples; `word_antichain.py` has the same on words, compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from progress.times.timestamp import TimeShape, Timestamp


class Antichain:
    """The minimal elements of the times inserted so far.

    Laws: no element is ≤ another · is_beyond(t) iff some inserted time is ≤ t · order of insertion is
    irrelevant
    """

    __slots__ = ("_elements", "shape")

    def __init__(self, shape: TimeShape, times: Iterable[Timestamp] = ()) -> None:
        self.shape = shape
        self._elements: list[Timestamp] = []
        for time in times:
            self.insert(time)

    def insert(self, time: Timestamp) -> bool:
        """Add a time and drop the elements after it; return True if it was minimal."""
        assert self.shape.is_timestamp(time), f"{time} is no time of scope {self.shape}"
        if self.is_beyond(time):
            return False
        self._elements = [element for element in self._elements if not self.shape.less_equal(time, element)]
        self._elements.append(time)
        assert self.is_beyond(time)
        return True

    def is_beyond(self, time: Timestamp) -> bool:
        """Return True if some element is ≤ `time`."""
        assert self.shape.is_timestamp(time), f"{time} is no time of scope {self.shape}"
        return any(self.shape.less_equal(element, time) for element in self._elements)

    def elements(self) -> list[Timestamp]:
        """Return the elements, sorted."""
        assert len(set(self._elements)) == len(self._elements), self._elements
        assert all(self.shape.is_timestamp(element) for element in self._elements), self._elements
        return sorted(self._elements, key=self.shape.sort_key)

    def check_invariants(self) -> None:
        """Assert that no element comes before another."""
        for index, element in enumerate(self._elements):
            assert self.shape.is_timestamp(element), element
            others = self._elements[:index] + self._elements[index + 1 :]
            assert not any(self.shape.less_equal(other, element) for other in others), self

    def __iter__(self) -> Iterator[Timestamp]:
        return iter(self.elements())

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Antichain) and self.shape == other.shape and self.elements() == other.elements()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "{" + ", ".join(map(str, self.elements())) + "}"
