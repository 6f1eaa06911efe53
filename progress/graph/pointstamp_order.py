"""Which pointstamp comes before which, and which earliest times could result from a pointstamp at a port?

The order `≤` of pointstamps is *could result in*: (l, t) ≤ (m, u) iff some minimal summary s from l to m has
s(t) ≤ u. It is a partial order, because no path leads from a pointstamp back to it (`graph.py` refuses cycles
that do not advance). The predicates of `predicates.py` are stated with it.

Answers come from `could_result_in.py`, on tuples, and are remembered: slow, obvious, and independent of the
table that the tracker computes with, so that a test can compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from progress.graph.could_result_in import MinimalSummaries
from progress.graph.graph import Graph
from progress.times.antichain import Antichain
from progress.times.path_summary import PathSummary
from progress.times.timestamp import Timestamp

Pointstamp: TypeAlias = tuple[int, int]
"""(location, word of the time, which counts from epoch 0 and may be wide)."""

REMEMBERED_MAX: Final = 200_000
"""Largest number of remembered answers: a cluster that is checked for days must not fill its memory."""


MARKED_MAX: Final = 2_000
"""Points that can be marked before all marks are forgotten: a mark is one bit of a number."""


class Order(dict[tuple[Pointstamp, Pointstamp], bool]):
    """A partial order: `order[a, b]` is True if a ≤ b.

    The predicates ask of many points whether one of a set comes before them. So a set is first *marked*: each
    point has a bit, and for each later point the order remembers the bits of those that come before it.

    Laws: `is_after(t, mark(points))` iff `order[s, t]` for some s of `points`
    """

    def __init__(self, pairs: Mapping[tuple[Pointstamp, Pointstamp], bool] | None = None) -> None:
        super().__init__(pairs or {})
        self._bits: dict[Pointstamp, int] = {}
        self._marked: list[Pointstamp] = []
        self._before: dict[Pointstamp, tuple[int, int]] = {}
        """The bits of the points that were compared with each, and of those that come before it."""

    def mark(self, points: Iterable[Pointstamp]) -> int:
        """Return the bits of some points. They are valid until the next call."""
        if len(self._marked) >= MARKED_MAX:
            self._bits, self._marked, self._before = {}, [], {}
        marks, bits = 0, self._bits
        for point in points:
            bit = bits.get(point)
            if bit is None:
                bit = bits[point] = 1 << len(self._marked)
                self._marked.append(point)
            marks |= bit
        return marks

    def is_after(self, t: Pointstamp, marks: int, *, strictly: bool = False) -> bool:
        """Return True if a marked point is ≤ t; with `strictly`, if another one than t is."""
        if strictly:
            marks &= ~self._bits.get(t, 0)
        compared, before = self._before.get(t, (0, 0))
        if before & marks:
            return True
        unknown = marks & ~compared
        while unknown:
            bit = unknown & -unknown
            unknown ^= bit
            compared |= bit
            if self[self._marked[bit.bit_length() - 1], t]:
                before |= bit
                break
        self._before[t] = compared, before
        return before & marks != 0


class PointstampOrder(Order):
    """The order of the pointstamps of one graph. It fills on demand.

    Laws: reflexive, transitive, antisymmetric · a ≤ b iff some image of a at b's location is ≤ b's time
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self._summaries = MinimalSummaries(graph)
        self._shapes = [graph.shape_of(location) for location in range(graph.location_count)]
        self._times: dict[Pointstamp, Timestamp] = {}
        self._images: dict[tuple[Pointstamp, tuple[int, ...]], tuple[Timestamp, ...]] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> PointstampOrder:
        """Return itself: what it knows never changes, and copies of a worker need not find it out again."""
        return self

    def __missing__(self, key: tuple[Pointstamp, Pointstamp]) -> bool:
        if len(self) >= REMEMBERED_MAX:
            self.clear()
        a, b = key
        earlier, later = self.time(a), self.time(b)
        shape = self._shapes[b[0]]
        paths = self._summaries.between(a[0], b[0])
        is_before = any(shape.less_equal(path.apply(earlier), later) for path in paths)
        assert is_before or a != b, "the empty path leads from every pointstamp to itself"
        self[key] = is_before
        return is_before

    def minimal(self, points: Iterable[Pointstamp]) -> list[Pointstamp]:
        """Return the points that none of the others comes before, sorted."""
        among = sorted(points)
        marks = self.mark(among)
        return [t for t in among if not self.is_after(t, marks, strictly=True)]

    def time(self, point: Pointstamp) -> Timestamp:
        """Return the time of a pointstamp."""
        time = self._times.get(point)
        if time is None:
            if len(self._times) >= REMEMBERED_MAX:
                self._times.clear()
            time = self._times[point] = self.graph.code_of(point[0]).unpack_wide(point[1])
        return time

    def images(self, point: Pointstamp, port: tuple[int, ...]) -> tuple[Timestamp, ...]:
        """Return the earliest times at a port, a group of locations of one scope, that `point` could result
        in.

        Times with a counter that does not fit its field are left out: sending along such a path is refused.
        """
        images = self._images.get((point, port))
        if images is None:
            if len(self._images) >= REMEMBERED_MAX:
                self._images.clear()
            fields = self.graph.code_of(port[0]).fields
            start = self.time(point)
            candidates = {
                summary.apply(start) for end in port for summary in self._summaries.between(point[0], end)
            }
            images = tuple(
                time
                for time in Antichain(self.graph.shape_of(port[0]), candidates)
                if all(value >> bits == 0 for value, (_, bits) in zip(time[1:], fields[1:], strict=True))
            )
            self._images[point, port] = images
        return images

    def standing_pairs(self) -> list[Pointstamp]:
        """Return pairs of locations between which some path there and back does not advance.

        Each pair violates the law of no zero cycle, without which the order is no order. Cost: every pair of
        locations.
        """
        pairs: list[tuple[int, int]] = []
        locations = range(self.graph.location_count)
        for here in locations:
            shape = self.graph.shape_of(here)
            stay = PathSummary.identity(shape)
            assert stay in self._summaries.between(here, here), "the empty path"
            for there in range(here):
                onward, back = self._summaries.between(here, there), self._summaries.between(there, here)
                if any(out.then(home).less_equal(stay, shape) for out in onward for home in back):
                    pairs.append((there, here))
        return pairs

    def name(self, point: Pointstamp) -> str:
        """Return the name of a pointstamp for messages."""
        return f"{self.graph.name_of(point[0])} at {self.time(point)}"
