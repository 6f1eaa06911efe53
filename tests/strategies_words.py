"""Rows of words, times of scopes up to three deep, and frontiers, to test kernels and machines with.

Values are few, so that rows meet; `wide` ones have all 64 bits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from reference.words import Row, as_words, less_equal

from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, Timestamp

Int64s = npt.NDArray[np.int64]

WIDE = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.integers(2**40, 2**40 + 5))


def code_of(depth: int) -> TimeCode:
    """The code of a scope with `depth` coordinates in product order."""
    shape = ROOT
    for _ in range(depth - 1):
        shape = shape.loop()
    return TimeCode(TimeLayout.default(depth), shape)


CODES = {depth: code_of(depth) for depth in (1, 2, 3)}


def rows(words: int, depth: int = 2, wide: bool = False, rows_max: int = 40) -> st.SearchStrategy[list[Row]]:
    """Lists of rows of `words` words, a time of that depth, and a diff that is not 0."""
    value = WIDE if wide else st.integers(-2, 3)
    time = st.tuples(*[st.integers(0, 3)] * depth).map(CODES[depth].pack)
    return st.lists(st.tuples(*[value] * words, time, st.sampled_from([1, 1, 2, -1])), max_size=rows_max)


def frontiers(depth: int) -> st.SearchStrategy[Int64s]:
    """Antichains of up to three times, as a machine takes them; also the empty one."""
    times = st.lists(st.tuples(*[st.integers(0, 3)] * depth), max_size=3)
    return times.map(lambda some: antichain(some, CODES[depth]))


def antichain(times: Sequence[Timestamp], code: TimeCode) -> Int64s:
    """The minimal ones of some times, as ascending words."""
    words = {code.pack(time) for time in times}
    return np.array(
        sorted(w for w in words if not any(v != w and less_equal(v, w, code.guards) for v in words)), np.int64
    )


class RandomHistory:
    """Rows and frontiers for one input of a machine: frontiers only rise, rows are never before them.

    `retract`: how often a row takes back an earlier one, at a later or incomparable time.
    """

    def __init__(self, rng: random.Random, depth: int, words: int, retract: float = 0.35) -> None:
        self.rng = rng
        self.code = CODES[depth]
        self.words = words
        self.retract = retract
        self.bounds: list[Timestamp] = [(0,) * depth]
        self.rows: list[Row] = []
        self.diffs = [1, 1, 2, -1]
        self.least = -1

    @property
    def frontier(self) -> Int64s:
        """What may still come: nothing is at a time that is not ≥ one of these."""
        return antichain(self.bounds, self.code)

    def _time(self, reach: int) -> Timestamp:
        return tuple(c + self.rng.randrange(reach) for c in self.rng.choice(self.bounds))

    def next_rows(self, count_max: int = 6) -> Int64s:
        """Some more rows (possibly none; none after `finish`)."""
        some: list[Row] = []
        for _ in range(self.rng.randrange(count_max + 1) if self.bounds else 0):
            time = self.code.pack(self._time(3))
            if self.rows and self.rng.random() < self.retract:
                earlier = self.rng.choice(self.rows)
                some.append((*earlier[:-2], time, -earlier[-1]))
            else:
                values = tuple(self.rng.randrange(self.least, 3) for _ in range(self.words))
                some.append((*values, time, self.rng.choice(self.diffs)))
        self.rows += some
        return as_words(some, self.words + 2)

    def rise(self) -> None:
        """Move the frontier on, possibly not at all."""
        if self.bounds:
            self.bounds = [self._time(2) for _ in range(self.rng.randrange(1, 4))]

    def finish(self) -> None:
        """Nothing more will come."""
        self.bounds = []
