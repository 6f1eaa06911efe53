"""SummaryTable: the minimal summaries between all locations, as kernels use them.

against_*   the compiled closure against the one on tuples
limit_*     what is refused, and what makes room for itself
sets_*      how pairs share
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_progress import graphs, times

from progress.errors import GraphError
from progress.graph.could_result_in import MinimalSummaries
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.summary_table import SummaryTable
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT

LOOP = ROOT.loop()


@given(graphs())
def test_against_tuples_the_compiled_table_holds_the_same_summaries(graph: Graph) -> None:
    summaries, table = MinimalSummaries(graph), SummaryTable(graph)
    for source in range(graph.location_count):
        for target in range(graph.location_count):
            codes = graph.code_of(source), graph.code_of(target)
            expected = {summary.to_words(*codes) for summary in summaries.between(source, target)}
            assert set(table.between(source, target)) == expected
            assert len(table.between(source, target)) == len(expected)


@given(st.data(), graphs())
def test_against_its_members_a_group_is_reached_like_the_first_of_them(
    data: st.DataObject, graph: Graph
) -> None:
    first = data.draw(st.integers(0, graph.location_count - 1))
    alike = [each for each in range(graph.location_count) if graph.shape_of(each) == graph.shape_of(first)]
    group = data.draw(st.lists(st.sampled_from(alike), min_size=1, max_size=4, unique=True))
    table = SummaryTable(graph, [group, [first]])
    plain = SummaryTable(graph)
    (column, single) = table.column_of_group
    assert single == first
    guards, code = int(table.guards[column]), graph.code_of(first)
    for source in range(graph.location_count):
        time = graph.code_of(source).pack(data.draw(times(graph.shape_of(source))))
        images = {(time & k) + a for member in group for k, a in plain.between(source, member)}
        reached = {(time & k) + a for k, a in table.between(source, column)}
        assert reached <= images
        for image in images:
            assert any(((image | guards) - other) & guards == guards for other in reached), code.unpack(image)


def test_limit_delays_that_no_counter_can_hold_are_refused() -> None:
    stages = [StageSpec(f"s{i}", ROOT, 1, 1) for i in range(6)]
    delays = [ConnectorSpec(i, 0, i + 1, 0, PathSummary(1, 2)) for i in range(5)]
    assert SummaryTable(Graph(stages, delays, TimeLayout((5,)))).between(0, 5) == ((31, 10),)
    with pytest.raises(GraphError, match="half"):
        SummaryTable(Graph(stages, delays, TimeLayout((4,))))


def test_limit_groups_of_different_scopes_are_refused() -> None:
    ways = [PathSummary.identity(ROOT), PathSummary.enter(ROOT, LOOP)]
    stages = [StageSpec("a", ROOT, 0, 2), StageSpec("b", ROOT, 1, 0), StageSpec("c", LOOP, 1, 0)]
    graph = Graph(stages, [ConnectorSpec(0, 0, 1 + number, 0, way) for number, way in enumerate(ways)])
    with pytest.raises(GraphError, match="different scopes"):
        SummaryTable(graph, [[3, 4]])


def test_limit_many_incomparable_ways_ask_for_more_room() -> None:
    """Five ways between two stages, none of which is always the earliest."""
    deep = LOOP.loop().loop()
    ways = [PathSummary(1, 0, (9 - k, k, 0)) for k in range(9)]
    graph = Graph(
        [StageSpec("a", ROOT, 0, 1), StageSpec("b", deep, 9, 0)],
        [ConnectorSpec(0, 0, 1, k, way) for k, way in enumerate(ways)],
    )
    assert len(SummaryTable(graph).between(0, 1)) == 9 == len(MinimalSummaries(graph).between(0, 1))


def test_limit_many_different_sets_ask_for_more_room() -> None:
    stages = [StageSpec(f"s{i}", ROOT, 1, 1) for i in range(100)]
    graph = Graph(stages, [ConnectorSpec(i, 0, i + 1, 0, PathSummary(1, 1)) for i in range(99)])
    table = SummaryTable(graph)
    assert table.sets.shape[0] == 101
    assert table.between(0, 99) == ((graph.codes[0].valid, 99),)


def test_sets_are_shared_between_pairs() -> None:
    count = 50
    stages = [StageSpec(f"s{i}", LOOP, 1, 1) for i in range(count)]
    links = [
        ConnectorSpec(i, 0, (i + 1) % count, 0, PathSummary(2, int(i == count - 1))) for i in range(count)
    ]
    table = SummaryTable(Graph(stages, links))
    assert int(np.count_nonzero(table.set_of)) == (2 * count) ** 2
    assert table.sets.tolist()[1:] == [[1, table.valid[0], add, *[0] * 6] for add in (0, 1)]
