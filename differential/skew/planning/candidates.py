"""Which keys may be heavy? A summary of all keys so far, in a fixed number of counters.

The summary of Misra and Gries, merged with the counts of an epoch at once (Agarwal et al., *Mergeable
Summaries*, 2012): counts of equal keys are added; if there are more than `capacity` keys then, the count of
the first that is too many is taken from all, and those that have nothing left are forgotten. What is
forgotten is in `error`:

    counted ≤ true ≤ counted + error        error ≤ all rows / (capacity + 1)

So no key with more than that share of all rows is missed. It proposes keys, and no more: it cannot subtract,
so removals are not fed to it, and what a plan is made of are exact counts of the keys that it proposes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError

__all__ = ["CAPACITY_DEFAULT", "KeySummary"]

CAPACITY_DEFAULT = 4_096
"""Enough for all keys with a sixteenth of a unit's load on 256 units."""


def _none() -> Int64s:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class KeySummary:
    """The keys that had most, in `keys` ascending with their `counts`. Immutable."""

    capacity: int = CAPACITY_DEFAULT
    keys: Int64s = field(default_factory=_none)
    counts: Int64s = field(default_factory=_none)
    error: int = 0

    def __post_init__(self) -> None:
        if self.capacity < 1:
            raise MisuseError(f"a summary of keys has a counter at least, not {self.capacity}")

    def fed(self, keys: Int64s, counts: Int64s) -> KeySummary:
        """With so many more rows (≥ 0 each) of these keys, which may repeat themselves."""
        assert keys.shape == counts.shape and bool((counts >= 0).all()), counts
        all_keys, place = np.unique(np.concatenate((self.keys, keys)), return_inverse=True)
        sums = np.zeros(all_keys.shape[0], np.int64)
        np.add.at(sums, place, np.concatenate((self.counts, counts)))
        taken = 0
        if all_keys.shape[0] > self.capacity:
            taken = int(np.partition(sums, -self.capacity - 1)[-self.capacity - 1])
            sums -= taken
        left = sums > 0
        return KeySummary(self.capacity, all_keys[left], sums[left], self.error + taken)

    def at_least(self, rows: int) -> Int64s:
        """All keys that may have had so many rows; none that has had is missing if `rows` > `error`."""
        return self.keys[self.counts + self.error >= rows]
