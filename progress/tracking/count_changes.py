"""The changes of counts that one step makes.

Callbacks only append here: +1 for a message sent, -1 for one consumed, and so on, for a pointstamp
(location, word). Changes of one step are summed up before they leave, so that no tracker, here or on another
worker, hears of a message that was sent and consumed within the step.

Increments leave first. A reader that applied a decrement first could think a time complete that the same step
keeps open.
"""

from __future__ import annotations

from typing import TypeAlias

from progress.times.anchor import Rebase

__all__ = ["Change", "CountChanges", "summed"]

Change: TypeAlias = tuple[int, int, int]
"""(location, word of the time, which may be a wide one, difference of the count)."""


class CountChanges:
    """Changes of occurrence counts, summed up by pointstamp, that travel together.

    Laws: the sum by pointstamp of `consolidated` is that of the added changes · no zero, no pointstamp twice
    · every increment stands before every decrement
    """

    __slots__ = ("deltas",)

    def __init__(self) -> None:
        self.deltas: dict[tuple[int, int], int] = {}
        """By (location, word); a change that has cancelled out is there with 0.

        Callers read this directly: they test several times for each step whether it is empty, and `bool` of
        this object is a call.
        """

    def add(self, location: int, word: int, delta: int) -> None:
        """Change the count of (location, word) by `delta`."""
        key = (location, word)
        self.deltas[key] = self.deltas.get(key, 0) + delta

    def consolidated(self) -> list[Change]:
        """Return the changes since the last `take`: increments first, otherwise in the order in which their
        pointstamps were first added.
        """
        raised: list[Change] = []
        lowered: list[Change] = []
        for (location, word), delta in self.deltas.items():
            assert location >= 0, location
            assert word >= 0, f"word {word:#x} is no time: a counter has left its field"
            if delta > 0:
                raised.append((location, word, delta))
            elif delta < 0:
                lowered.append((location, word, delta))
        return raised + lowered

    def take(self) -> list[Change]:
        """Return `consolidated`, and start afresh."""
        if not self.deltas:
            return []
        changes = self.consolidated()
        self.deltas.clear()
        assert not self.deltas, "no change is taken twice"
        return changes

    def rebase(self, by: Rebase) -> None:
        """Make words count from a later anchor."""
        self.deltas = {(location, by.word(word)): delta for (location, word), delta in self.deltas.items()}

    def __bool__(self) -> bool:
        """True if a change was added since the last `take`, even if it has cancelled out."""
        return bool(self.deltas)

    def check_invariants(self) -> None:
        """Assert the laws of `consolidated`."""
        changes = self.consolidated()
        assert all(delta != 0 for _, _, delta in changes), changes
        assert len({change[:2] for change in changes}) == len(changes), changes
        signs = [delta > 0 for _, _, delta in changes]
        assert signs == sorted(signs, reverse=True), changes


def summed(first: list[Change], second: list[Change]) -> list[Change]:
    """Return the changes of two steps as those of one; both are `consolidated`, and count from one anchor."""
    together = CountChanges()
    for location, word, delta in first + second:
        together.add(location, word, delta)
    return together.consolidated()
