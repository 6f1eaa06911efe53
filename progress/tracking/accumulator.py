"""Changes that a worker holds back from others while nobody's frontier can depend on them.

In eager mode a worker tells the others of its changes after each step. In the other modes changes add up here
first, of one worker or of all workers of a host (a *group*), until they are *pressing*:

    a net decrement at t is pressing unless something that the group still believes outstanding leads to t,
    or the group itself still owns a right at t

Increments alone are never pressing: a view that lacks them is late, and what they stand for follows an event
that the view still has. What leaves is always everything that has added up, never a part. Why this is safe,
and why nobody waits for ever: `docs/progress_modes.md`.

The group's own rights are counted here: a right at a stage stays with the worker that has it, so the group's
changes at stages add up to what it owns there. Messages move between workers, so nothing is known of
connectors.

Words count from epoch 0, whatever the anchor is (`anchor.py`), so that changes of several steps and workers
add up.

Pure: takes changes, returns changes. Looks at no tracker: the caller asks that whether points are led to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from progress.tracking.count_changes import Change

__all__ = ["HELD_COUNT_MAX", "Accumulator", "increments_first", "minus"]

HELD_COUNT_MAX: Final = 256
"""Pointstamps whose changes a group holds back. More are pressing, whatever they are: this bounds the memory
for them, and the time that it takes to find out whether they are pressing."""


class Accumulator:
    """What a group of workers holds back.

        stages   the number of stages: locations below it are stages
        rights   what the group owns at first, (location, word, count)

    Laws: taken changes plus those held add up to those added · `own` is rights plus all changes at stages ·
    no held change is 0
    """

    def __init__(self, stages: int, rights: Iterable[Change]) -> None:
        assert stages >= 1, stages
        self._stages = stages
        self.held: dict[tuple[int, int], int] = {}
        self.own: dict[tuple[int, int], int] = {}
        for location, word, count in rights:
            assert location < stages, "rights are at stages"
            self.own[location, word] = self.own.get((location, word), 0) + count

    def add(self, changes: Iterable[Change]) -> None:
        """Take in changes of a worker of the group."""
        stages = self._stages
        for location, word, delta in changes:
            key = location, word
            _add(self.held, key, delta)
            if location < stages:
                _add(self.own, key, delta)

    def candidates(self) -> list[tuple[int, int]]:
        """Return the pointstamps whose decrements are pressing unless something leads to them."""
        own = self.own
        return [key for key, delta in self.held.items() if delta < 0 and own.get(key, 0) <= 0]

    @property
    def is_full(self) -> bool:
        """True if too much is held back: everything is pressing."""
        return len(self.held) > HELD_COUNT_MAX

    def take(self) -> list[Change]:
        """Return all that is held, increments first, and hold nothing."""
        changes = increments_first(self.held)
        self.held = {}
        return changes

    def check_invariants(self) -> None:
        """Assert the laws that can be seen."""
        assert all(self.held.values()), self.held
        assert all(self.own.values()), self.own
        assert all(0 <= location < self._stages for location, _ in self.own), self.own


def increments_first(counts: dict[tuple[int, int], int]) -> list[Change]:
    """Return counts by pointstamp as changes."""
    raised = [(location, word, delta) for (location, word), delta in counts.items() if delta > 0]
    return raised + [(location, word, delta) for (location, word), delta in counts.items() if delta < 0]


def minus(changes: Iterable[Change], own: Iterable[Sequence[Change]]) -> list[Change]:
    """Return `changes` without those of `own`, increments first."""
    left: dict[tuple[int, int], int] = {}
    for location, word, delta in changes:
        _add(left, (location, word), delta)
    for part in own:
        for location, word, delta in part:
            _add(left, (location, word), -delta)
    return increments_first(left)


def _add(counts: dict[tuple[int, int], int], key: tuple[int, int], delta: int) -> None:
    count = counts.get(key, 0) + delta
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
