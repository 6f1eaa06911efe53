"""The peers in Python: do they get the inputs of the others, and is what they print believed?

None of them runs: what is tried is what they have in common.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench.cases import SMALL, Case
from bench.peers.python.harness import NOBODY, Inputs, Measured, Run, drawn, printed
from bench.recomputation import believed, distances_from_zero, joined, least_labels
from bench.workloads import Check
from bench.workloads import count as count_workload


def run_of(case: Case) -> Run:
    return Run(tuple(case.words.split()), case.sizes, 1, case.batch)


def small(family: str) -> Case:
    return next(case for case in SMALL if case.family == family)


def present(inputs: Inputs, changes: int) -> dict[str, list[tuple[int, ...]]]:
    """What is there after so many changes, by handing over what the programs do."""
    rows = {(name, number): row for name, number, row in inputs.loaded()}
    for change in range(changes):
        gone, come = inputs.changed(change)
        for name, number, row in gone:
            assert rows.pop((name, number)) == row, "only what is there goes"
        for name, number, row in come:
            assert rows.setdefault((name, number), row) is row, "no row comes twice"
    found: dict[str, list[tuple[int, ...]]] = {}
    for (name, _), row in sorted(rows.items()):
        found.setdefault(name, []).append(row)
    return found


def answer(family: str, rows: dict[str, list[tuple[int, ...]]], nodes: int) -> set[tuple[int, ...]]:
    """By the twins of the workloads."""
    columns = {name: np.array(listed).T for name, listed in rows.items()}
    match family:
        case "wcc":
            labels = least_labels(nodes, *columns["edges"])
            return set(zip(range(nodes), labels.tolist(), strict=True))
        case "bfs":
            distances = distances_from_zero(nodes, *columns["edges"])
            return {(node, int(far)) for node, far in enumerate(distances) if far >= 0}
        case "join":
            left, right = rows["left"], rows["right"]
            pairs = zip(*joined(columns["left"][0], columns["right"][0]), strict=True)
            return {(left[a][0], left[a][1], right[b][1]) for a, b in pairs}
        case _:
            totals: dict[int, int] = {}
            for key, *value in rows["rows"]:
                totals[key] = totals.get(key, 0) + (value[0] if value else 1)
            return set(totals.items())


@pytest.mark.parametrize("family", ["wcc", "bfs", "count", "sum", "join"])
def test_what_is_handed_over_has_the_answer_that_is_believed(family: str) -> None:
    case = small(family)
    inputs = drawn(run_of(case))
    before = answer(family, present(inputs, 0), case.sizes[0])
    after = answer(family, present(inputs, inputs.schedule.changes), case.sizes[0])
    measured = Measured(2.0, [3.0, 1.0, 2.0], peak_mib=9.0)
    measured.output = [(row, 1) for row in sorted(before)] + [((NOBODY, 0, 0)[: len(min(before))], 1)]
    measured.loaded = len(measured.output)
    measured.output += [(row, -1) for row in before - after] + [(row, 1) for row in after - before]
    said = json.loads(printed("told 1.0", run_of(case), measured, 4.0))
    agreed = believed(case.workload)
    found = [Check.from_json(said[key]) for key in ("check_load", "check_changes")]
    assert found == [agreed.load, agreed.changes]
    assert (said["workload"], said["workers"], said["batch"]) == (case.workload, 1, 1)
    assert (said["load_seconds"], said["change_ms_median"], said["change_ms_p99"]) == (2.0, 2.0, 3.0)
    assert (said["idle_mib"], said["peak_mib"]) == (4.0, 9.0)


def test_rows_are_values_of_python_and_numbered_as_they_were_drawn() -> None:
    case = small("count")
    inputs = drawn(run_of(case))
    key = count_workload(*case.sizes).key
    _, come = inputs.changed(2)
    first = inputs.schedule.inserted(2).start
    assert come[0] == ("rows", first, (int(key[first]),))
    assert all(type(value) is int for _, _, row in come for value in row)


def test_a_node_and_an_edge_of_the_same_number_are_told_apart() -> None:
    loaded = drawn(run_of(small("bfs"))).loaded()
    assert loaded[0] == ("nodes", 0, (0,)) and loaded[1][:2] == ("edges", 0)
