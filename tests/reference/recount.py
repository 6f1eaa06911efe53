"""What should the tracker say? Counted anew from the definitions, on tuples.

The slow and obvious twin of `progress/tracking/tracker.py`: it keeps nothing but the counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.graph.could_result_in import MinimalSummaries
from progress.graph.graph import Graph
from progress.times.antichain import Antichain
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp

Pointstamp = tuple[int, Timestamp]


def carried(time: Timestamp, code: TimeCode) -> Timestamp | None:
    """The earliest time at or behind `time` that has a word; None if there is none."""
    for start, stop in code.shape.bounds:
        for at in range(stop - 1, start - 1, -1):
            if time[at] >> code.fields[at][1] == 0:
                continue
            if at == start:
                return None
            time = (*time[: at - 1], time[at - 1] + 1, *[0] * (stop - at), *time[stop:])
    return time


class Recount:
    """Counts by pointstamp; everything else is computed when asked for."""

    def __init__(self, graph: Graph, watched: Sequence[Sequence[int]]) -> None:
        self.graph = graph
        self.watched = watched
        self.summaries = MinimalSummaries(graph)
        self.counts: dict[Pointstamp, int] = {}

    def change(self, location: int, time: Timestamp, delta: int) -> None:
        """Add to a count; what is zero is forgotten."""
        total = self.counts.get((location, time), 0) + delta
        if total:
            self.counts[location, time] = total
        else:
            self.counts.pop((location, time), None)

    def precursors(self, pointstamp: Pointstamp) -> int:
        """How many other active pointstamps could result in this one."""
        return sum(
            other != pointstamp and self.summaries.could_result_in(other, pointstamp) for other in self.counts
        )

    def frontier(self, port: int) -> Antichain:
        """The earliest times at which something active can still arrive at a port."""
        group = self.watched[port]
        earliest = Antichain(self.graph.shape_of(group[0]))
        for location, time in self.counts:
            for target in group:
                for summary in self.summaries.between(location, target):
                    image = carried(summary.apply(time), self.graph.code_of(target))
                    if image is not None:
                        earliest.insert(image)
        return earliest
