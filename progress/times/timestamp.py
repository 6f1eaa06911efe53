"""When does one logical time come before another?

A *timestamp* is a flat tuple `(epoch, c1, …, ck)` of integers ≥ 0: one counter per enclosing loop, two for a
prioritised loop. Its scope has a `TimeShape`, which cuts the tuple into *chains*:

    within a chain the order is lexicographic, between chains it is the product order
    a ≤ b   iff   for every chain   a[chain] ≤ b[chain]   as tuples

Each chain is totally ordered, so times form a lattice: `lub` and `glb` take the larger or smaller tuple chain
by chain. A relational join is a join, a lattice join is a `lub`; never the same word.

A *level* is a nesting depth: level 0 the epoch, level 1 a loop, level 2 a loop within it. A level has one
coordinate, or two if it is prioritised. Chains need not follow levels: a lexicographic loop extends the chain
of the loop around it.

Here times are exact and unlimited. The twin `time_words.py` stores one time in one integer, and
`word_order.py` has the compiled comparisons; property tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import ClassVar, TypeAlias

Timestamp: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class TimeShape:
    """The form of the times of one scope, and their order.

        chains              lengths of the chains, in order; the first is the epoch's, of length 1
        level_coordinates   number of coordinates of each nesting level: root 1, loop 1, prioritised loop 2

    Laws: `less_equal` is a partial order · `lub` and `glb` are its least upper and greatest lower bound ·
    `sort_key` is a linear extension · for s beyond F: advance_by(t, F) ≤ s iff t ≤ s
    """

    chains: tuple[int, ...]
    level_coordinates: tuple[int, ...]

    ROOT: ClassVar[TimeShape]

    def __post_init__(self) -> None:
        assert self.chains[0] == 1 == self.level_coordinates[0], "the epoch is a chain of its own"
        assert all(length > 0 for length in self.chains), self.chains
        assert all(count in (1, 2) for count in self.level_coordinates), self.level_coordinates
        assert sum(self.chains) == sum(self.level_coordinates), (self.chains, self.level_coordinates)

    # -- scopes below this one --

    def loop(self) -> TimeShape:
        """Return the scope of a loop in this scope: its counter is a chain of its own (product order)."""
        return TimeShape((*self.chains, 1), (*self.level_coordinates, 1))

    def prioritized_loop(self) -> TimeShape:
        """Return the scope of a prioritised loop: counters (p, i), all of priority p before p + 1."""
        return TimeShape((*self.chains, 2), (*self.level_coordinates, 2))

    def lexicographic_loop(self) -> TimeShape:
        """Return the scope of a loop whose counter extends the last loop's chain; at the root it is as
        `loop`.
        """
        if len(self.chains) == 1:
            return self.loop()
        shape = TimeShape((*self.chains[:-1], self.chains[-1] + 1), (*self.level_coordinates, 1))
        assert shape.chains[0] == 1, "the epoch stays a chain of its own"
        assert shape.coordinates == self.coordinates + 1
        return shape

    # -- measures --

    @cached_property
    def coordinates(self) -> int:
        """Number of integers in a time of this scope."""
        return sum(self.chains)

    @property
    def levels(self) -> int:
        """Number of nesting levels; the root has one."""
        return len(self.level_coordinates)

    @property
    def counter_place(self) -> int:
        """The coordinate by which records enter the innermost loop and leave it: its counter, or its
        priority.
        """
        return self.coordinates - self.level_coordinates[-1]

    @cached_property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """For each chain, the coordinates [start, stop) that it covers."""
        stops = tuple(accumulate(self.chains))
        assert stops[-1] == self.coordinates, "chains cover every coordinate"
        assert len(stops) == len(self.chains)
        return tuple(zip((0, *stops[:-1]), stops, strict=True))

    def is_timestamp(self, value: object) -> bool:
        """Return True if `value` is a time of this scope: a tuple of the right length, of integers ≥ 0."""
        return (
            isinstance(value, tuple)
            and len(value) == self.coordinates
            and all(isinstance(part, int) and part >= 0 for part in value)
        )

    # -- order --

    def minimum(self) -> Timestamp:
        """Return the time before all others."""
        return (0,) * self.coordinates

    def less_equal(self, a: Timestamp, b: Timestamp) -> bool:
        """Return True if `a` comes before `b` or is `b`."""
        assert len(a) == self.coordinates, (a, self)
        assert len(b) == self.coordinates, (b, self)
        for start, stop in self.bounds:
            if not a[start:stop] <= b[start:stop]:
                return False
        return True

    def lub(self, a: Timestamp, b: Timestamp) -> Timestamp:
        """Return the earliest time that both `a` and `b` come before."""
        assert len(a) == self.coordinates, (a, self)
        assert len(b) == self.coordinates, (b, self)
        return tuple(part for start, stop in self.bounds for part in max(a[start:stop], b[start:stop]))

    def glb(self, a: Timestamp, b: Timestamp) -> Timestamp:
        """Return the latest time that comes before both `a` and `b`."""
        assert len(a) == self.coordinates, (a, self)
        assert len(b) == self.coordinates, (b, self)
        return tuple(part for start, stop in self.bounds for part in min(a[start:stop], b[start:stop]))

    def advance_by(self, time: Timestamp, frontier: Iterable[Timestamp]) -> Timestamp:
        """Return the time that stands for `time` once nobody looks before `frontier`: ⋀ over f of (time ∨ f).

        For every s beyond the frontier (some f ≤ s): advanced ≤ s iff time ≤ s. With an empty frontier nobody
        looks at all, and `time` is returned unchanged.
        """
        assert len(time) == self.coordinates, (time, self)
        advanced: Timestamp | None = None
        for element in frontier:
            candidate = self.lub(time, element)
            advanced = candidate if advanced is None else self.glb(advanced, candidate)
        assert advanced is None or self.less_equal(time, advanced)
        return time if advanced is None else advanced

    def sort_key(self, time: Timestamp) -> Timestamp:
        """Return a key that sorts times so that none comes before a smaller one: the tuple itself."""
        assert len(time) == self.coordinates, (time, self)
        assert min(time) >= 0, time
        return time

    def __str__(self) -> str:
        return (
            "×".join(str(length) for length in self.chains) + "/" + "+".join(map(str, self.level_coordinates))
        )


ROOT = TimeShape((1,), (1,))
TimeShape.ROOT = ROOT
