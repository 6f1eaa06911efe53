"""A crowd of pointstamps: counts by location, and the foremost times.

What the tracker makes of it is in `test_tracker.py`, against counting anew.
"""

from __future__ import annotations

import random

from reference.recount import Recount
from strategies_progress import random_graph

from progress.graph.summary_table import SummaryTable
from progress.times.antichain import Antichain
from progress.tracking.count_changes import Change
from progress.tracking.crowd import Crowd, edge_of


def test_counts_foremost_times_and_edges_are_as_counted_anew(seed: int, effort: int) -> None:
    for trial in range(15 * effort):
        rng = random.Random(f"{seed} {trial}")
        graph = random_graph(rng, stages_max=4)
        ports = [[location] for location in range(graph.location_count)]
        table, recount = SummaryTable(graph), Recount(graph, ports)
        crowd = Crowd(table.guards.tolist(), [])
        for _ in range(8):
            changes: list[Change] = []
            for _ in range(rng.randint(1, 12)):
                location = rng.randrange(graph.location_count)
                code = graph.code_of(location)
                time = tuple(rng.randint(0, 3) for _ in range(code.shape.coordinates))
                delta = rng.randint(-2, 2)
                changes.append((location, code.pack(time), delta))
                recount.change(location, time, delta)
            before = foremost(crowd)
            touched = crowd.apply(changes)
            after = foremost(crowd)
            assert touched == sorted(
                at for at in {*before, *after} if before.get(at, []) != after.get(at, [])
            )
            crowd.check_invariants()
            expected = sorted(
                (at, graph.code_of(at).pack(time), count) for (at, time), count in recount.counts.items()
            )
            assert crowd.counts() == expected and len(crowd) == len(expected)
            assert not expected or crowd.least_word() == min(word for _, word, _ in expected)
            for at, words in after.items():
                shape = graph.shape_of(at)
                times = Antichain(shape, [time for there, time in recount.counts if there == at])
                assert [graph.code_of(at).unpack(word) for word in words] == times.elements()
            for location in range(graph.location_count):
                found = edge_of(*crowd.foremost(), table, location).tolist()
                edge = [graph.code_of(location).unpack(word) for word in found]
                assert edge == recount.frontier(location).elements()
            assert Crowd(table.guards.tolist(), crowd.counts()).counts() == expected


def foremost(crowd: Crowd) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for location, word in zip(*(column.tolist() for column in crowd.foremost()), strict=True):
        found.setdefault(location, []).append(word)
    return found
