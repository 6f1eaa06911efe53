"""Pairs of pointstamps: who holds whom back, kept while counts change and counted anew.

What becomes of it (frontiers, and all changes against counting anew) is in `test_tracker.py`.
"""

from __future__ import annotations

import random

import numpy as np
from reference.recount import Recount
from strategies_progress import random_graph

from progress.graph.summary_table import SummaryTable
from progress.tracking.precursors import PRECURSORS, WORD, change_counts, count_precursors, mark_frontier


def test_kept_and_counted_anew_are_as_the_definition_says(seed: int, effort: int) -> None:
    for trial in range(10 * effort):
        rng = random.Random(f"{seed} {trial}")
        graph = random_graph(rng, stages_max=4)
        table, recount = SummaryTable(graph), Recount(graph, [])
        scopes = np.stack([table.guards, table.valid])
        active, result = np.zeros((6, 64), dtype=np.int64), np.zeros(2, dtype=np.int64)
        for _ in range(6):
            changes = []
            for _ in range(rng.randint(1, 8)):
                at = rng.randrange(graph.location_count)
                code = graph.code_of(at)
                time = tuple(rng.randint(0, 2) for _ in range(code.shape.coordinates))
                changes.append((at, code.pack(time), rng.choice((-1, 1))))
                recount.change(at, time, changes[-1][2])
            table_of_changes = np.array(changes, dtype=np.int64)
            change_counts(table_of_changes, len(changes), active, table.set_of, table.sets, scopes, result)
            count = int(result[0])
            mark_frontier(count, 0, active)
            expected = sorted(
                (at, graph.code_of(at).pack(time), total, recount.precursors((at, time)))
                for (at, time), total in recount.counts.items()
            )
            kept = active[: PRECURSORS + 1, :count].T.copy()
            assert sorted(map(tuple, kept.tolist())) == expected
            anew = count_precursors(kept[:, : WORD + 1].copy(), table.set_of, table.sets, scopes)
            assert anew.tolist() == kept[:, PRECURSORS].tolist()
