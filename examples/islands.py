"""Islands of a road map: what can be reached from a seed, in a loop in a loop.

    python examples/islands.py [--workers 2] [FILE]

Each line is a road, `a b`; an empty line ends an epoch, which is a map of its own. In the outer loop a vertex
takes the smallest place that nobody has reached yet; in the inner loop its island is what can be reached from
there.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from typing import cast

import timely

TEXT = """1 2
2 3
4 5
6 6

1 2
2 3
3 4
4 5
"""
Time = tuple[int, ...]


class SeedVertex(timely.Vertex):
    """In the outer loop, on one worker: takes the smallest place left, when the island before is whole.

    Input 0 is all places of a map, input 1 the places that the last round has reached.
    """

    def __init__(self) -> None:
        self.left: dict[int, set[int]] = {}  # by epoch: places without an island
        self.reached: defaultdict[Time, list[int]] = defaultdict(list)

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Collect places; decide when no more of this round can come."""
        places = [int(str(place)) for place in message]
        if edge == 0:
            self.left.setdefault(time[0], set()).update(places)
        else:
            self.reached[time].extend(places)
        self.notify_at(time)

    def on_notify(self, time: Time) -> None:
        """The inner loop of the round before is over: nothing of it can come any more."""
        left = self.left[time[0]]
        left.difference_update(self.reached.pop(time, []))
        if left:
            self.send_by(0, [min(left)], time)
        else:
            del self.left[time[0]]


class SpreadVertex(timely.Vertex):
    """In the inner loop: the places that a seed reaches, iteration by iteration.

    Input 0 is the roads of a map, input 1 places to go on from, each with its seed.
    """

    def __init__(self) -> None:
        self.roads: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        self.seen: set[tuple[int, int]] = set()
        self.waiting: defaultdict[Time, list[tuple[int, int]]] = defaultdict(list)

    def on_recv(self, edge: int, message: list[object], time: Time) -> None:
        """Keep roads; let places wait until all roads are there."""
        for a, b in cast("list[tuple[int, int]]", message):
            if edge == 0:
                self.roads[time[0], a].add(b)
            else:
                self.waiting[time].append((a, b))
                self.notify_at(time)

    def on_notify(self, time: Time) -> None:
        """Go one road on from each place that was not reached before."""
        epoch = time[0]
        new = {(place, seed) for place, seed in self.waiting.pop(time) if (epoch, place) not in self.seen}
        self.seen.update((epoch, place) for place, _ in new)
        further = [(b, seed) for place, seed in new for b in self.roads[epoch, place]]
        self.send_by(0, further, time)
        self.send_by(1, list(new), time)


def both_ways(line: str) -> list[tuple[int, int]]:
    """Return a road from each of its ends."""
    a, b = (int(place) for place in line.split())
    return [(a, b), (b, a)]


def first(pair: tuple[int, int]) -> int:
    """Return the place that a road begins at, or that was reached."""
    return pair[0]


def twice(place: int) -> tuple[int, int]:
    """Return a seed as a place that is reached from itself."""
    return place, place


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """Lines in, (place, smallest place of its island) out."""
    roads = dataflow.input("lines").flat_map(both_ways)
    with dataflow.loop("rounds") as outer:
        reached_before = outer.feedback()
        (seeds,) = dataflow.stage(
            "seed",
            SeedVertex,
            [
                outer.enter(roads.map(first)).feed(0, exchange=timely.ToWorker(0)),
                reached_before.stream.feed(1, exchange=timely.ToWorker(0)),
            ],
        )
        roads_inside = outer.enter(roads)
        with outer.loop("spread") as inner:
            back = inner.feedback()
            further, reached = dataflow.stage(
                "spread",
                SpreadVertex,
                [
                    inner.enter(roads_inside).feed(0, exchange=timely.by(0)),
                    inner.enter(seeds.map(twice)).feed(1, exchange=timely.by(0)),
                    back.stream.feed(1, exchange=timely.by(0)),
                ],
                outputs=2,
            )
            back.connect(further)
            islands = inner.leave(reached)
        reached_before.connect(islands.map(first))
        result = outer.leave(islands)
    dataflow.output("islands", result)


def plainly(lines: list[str]) -> list[tuple[int, int]]:
    """Return the same by union of sets."""
    sets: dict[int, set[int]] = {}
    for a, b in (pair for line in lines for pair in both_ways(line)):
        joined = sets.get(a, {a}) | sets.get(b, {b})
        sets.update(dict.fromkeys(joined, joined))
    return sorted((place, min(island)) for place, island in sets.items())


def main() -> None:
    """Feed the maps, print the islands of each."""
    parser = argparse.ArgumentParser(description="Find the islands of maps, one after the other.")
    parser.add_argument("file", nargs="?", type=Path, help="roads; without it a few of our own")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    given = parser.parse_args()
    text = given.file.read_text() if given.file else TEXT
    with timely.connect(workers=given.workers or 1, embedded=given.workers == 0) as cluster:
        flow = cluster.install(build)
        for part in text.split("\n\n"):
            lines = part.splitlines()
            flow.input("lines").insert(lines)
            epoch = flow.seal()
            found = sorted(pair for _, pair in flow.output("islands").changes())
            if found != plainly(lines):
                sys.exit(f"islands: epoch {epoch} differs from the plain computation: {found}")
            islands: defaultdict[int, list[int]] = defaultdict(list)
            for place, seed in found:
                islands[seed].append(place)
            print(f"epoch {epoch}  ", "   ".join(str(island) for island in islands.values()))


if __name__ == "__main__":
    try:
        main()
    except (OSError, timely.TimelyError) as error:
        sys.exit(f"islands: {error}")
