"""WordSteps: the steps of a graph, as kernels walk along them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies_progress import graphs

from progress.errors import GraphError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.word_steps import WordSteps
from progress.times.path_summary import PathSummary
from progress.times.timestamp import ROOT

LOOP = ROOT.loop()


@given(graphs())
def test_every_step_of_the_graph_is_there_once_where_it_starts(graph: Graph) -> None:
    steps = WordSteps(graph)
    listed = [
        (here, *steps.steps[row].tolist())
        for here in range(steps.count)
        for row in range(int(steps.starts[here]), int(steps.starts[here + 1]))
    ]
    codes = graph.location_codes()
    expected = [
        (here, there, *summary.to_words(codes[here], codes[there])) for here, there, summary in graph.steps
    ]
    assert listed == sorted(expected)
    assert steps.sources.tolist() == [here for here, *_ in listed]


@given(graphs())
def test_outside_of_cycles_the_order_has_a_node_behind_all_that_lead_to_it(graph: Graph) -> None:
    steps = WordSteps(graph)
    rank = np.argsort(steps.order)
    assert sorted(steps.order.tolist()) == list(range(graph.location_count))
    reached = [_reached(steps, here) for here in range(steps.count)]
    for here, (there, _, _) in zip(steps.sources.tolist(), steps.steps.tolist(), strict=True):
        assert rank[here] < rank[there] or here in reached[there]


def _reached(steps: WordSteps, start: int) -> set[int]:
    reached = {start}
    queue = [start]
    for here in queue:
        for there in steps.steps[steps.starts[here] : steps.starts[here + 1], 0].tolist():
            if there not in reached:
                reached.add(there)
                queue.append(there)
    return reached


def test_a_group_is_one_more_node_and_a_group_of_one_is_its_location() -> None:
    stages = [StageSpec("a", ROOT, 0, 1), StageSpec("b", ROOT, 1, 0)]
    way = PathSummary.identity(ROOT)
    steps = WordSteps(Graph(stages, [ConnectorSpec(0, 0, 1, 0, way)] * 2), [[2, 3], [3]])
    assert steps.column_of_group == [4, 3] and steps.count == 5 and steps.location_count == 4
    listed = zip(steps.sources.tolist(), steps.steps.tolist(), strict=True)
    assert [(here, there) for here, (there, _, _) in listed if there > 3] == [(2, 4), (3, 4)]


def test_a_group_has_one_scope() -> None:
    ways = [PathSummary.identity(ROOT), PathSummary.enter(ROOT, LOOP)]
    stages = [StageSpec("a", ROOT, 0, 2), StageSpec("b", ROOT, 1, 0), StageSpec("c", LOOP, 1, 0)]
    graph = Graph(stages, [ConnectorSpec(0, 0, 1 + number, 0, way) for number, way in enumerate(ways)])
    with pytest.raises(GraphError, match="different scopes"):
        WordSteps(graph, [[3, 4]])


def test_the_guard_bits_are_those_of_all_levels() -> None:
    graph = Graph([StageSpec("a", LOOP, 0, 0)], [])
    steps = WordSteps(graph)
    assert steps.level_guards == graph.codes[0].guards and steps.fields == ((0, 29), (30, 32))
