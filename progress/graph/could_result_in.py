"""May an event at one pointstamp still lead to an event at another?

A *pointstamp* is a time at a location. Its *minimal summaries* to another location are the path summaries of
all paths between the two, without those for which another one is ≤. With them

    (l1, t1) could result in (l2, t2)   iff   for some minimal summary s from l1 to l2: s(t1) ≤ t2

The relation is reflexive (the empty path) and transitive, and never holds both ways between different
pointstamps, because `graph.py` refuses cycles that do not advance.

This module works on tuples, and computes from one source at a time on demand: to be read, and to test
against. No running dataflow uses it: the tracker has the same on words, all pairs at once, compiled, in
`summary_table.py`.
"""

from __future__ import annotations

from functools import cached_property

from progress.graph.graph import Graph
from progress.times.path_summary import PathSummary
from progress.times.timestamp import Timestamp


class MinimalSummaries:
    """The minimal summaries between all locations of a graph, on tuples.

    Laws: from a location to itself the identity, and no other that leads to a time ≤ the start, but maybe
    incomparable ones (once round an outer loop, the inner counter starts at 0 again) · for a → b → c, every
    composition has a minimal summary from a to c that is ≤ it · no summary is ≤ another of its pair
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._from: dict[int, dict[int, tuple[PathSummary, ...]]] = {}

    def between(self, source: int, target: int) -> tuple[PathSummary, ...]:
        """Return the minimal summaries of all paths from `source` to `target`, in a fixed order; () if no
        path.
        """
        assert 0 <= source < self.graph.location_count, source
        assert 0 <= target < self.graph.location_count, target
        if source not in self._from:
            self._from[source] = self._reach(source)
        return self._from[source].get(target, ())

    def could_result_in(self, a: tuple[int, Timestamp], b: tuple[int, Timestamp]) -> bool:
        """Return True if an event at pointstamp `a` can lead to one at `b`. Reflexive."""
        (source, earlier), (target, later) = a, b
        shape = self.graph.shape_of(target)
        assert self.graph.shape_of(source).is_timestamp(earlier), (a, b)
        assert shape.is_timestamp(later), (a, b)
        return any(
            shape.less_equal(summary.apply(earlier), later) for summary in self.between(source, target)
        )

    @cached_property
    def _following(self) -> list[list[tuple[int, PathSummary]]]:
        following: list[list[tuple[int, PathSummary]]] = [[] for _ in range(self.graph.location_count)]
        for here, there, summary in self.graph.steps:
            following[here].append((there, summary))
        assert len(following) == self.graph.location_count
        assert sum(map(len, following)) == len(self.graph.steps)
        return following

    def _reach(self, source: int) -> dict[int, tuple[PathSummary, ...]]:
        """Walk on from `source` as long as a walk yields a summary that is not ≥ an earlier one."""
        reached: dict[int, list[PathSummary]] = {source: [PathSummary.identity(self.graph.shape_of(source))]}
        queue = [source]
        waiting = {source}
        for here in queue:
            waiting.discard(here)
            for there, step in self._following[here]:
                shape = self.graph.shape_of(there)
                minimal = reached.setdefault(there, [])
                for summary in [before.then(step) for before in reached[here]]:
                    if any(other.less_equal(summary, shape) for other in minimal):
                        continue
                    minimal[:] = [other for other in minimal if not summary.less_equal(other, shape)]
                    minimal.append(summary)
                    if there not in waiting:
                        waiting.add(there)
                        queue.append(there)
        # Once round an outer loop the inner counter is 0 again, so the identity need not be alone.
        assert reached[source][0] == PathSummary.identity(self.graph.shape_of(source)), reached[source]
        assert all(reached.values()), "a location is reached by some path"
        return {target: tuple(sorted(minimal, key=_fixed_order)) for target, minimal in reached.items()}


def _fixed_order(summary: PathSummary) -> tuple[int, int, tuple[int, ...]]:
    return summary.kept_coordinates, summary.add, summary.appended
