"""could_result_in: may an event at p still lead to an event at q?

law_*       reflexive, transitive, and never both ways between different pointstamps
loop_*      what entering, advancing and leaving a loop does
against_*   the precomputed summaries, on tuples and on words, against walking the graph event by event
limit_*     what is refused
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import paths
from strategies_progress import graphs, times

from progress.could_result_in import LOCATIONS_MAX, MinimalSummaries, SummaryTable
from progress.errors import GraphError
from progress.graph import ConnectorSpec, Graph, StageSpec
from progress.path_summary import PathSummary
from progress.time_words import TimeLayout
from progress.timestamp import ROOT, Timestamp

LOOP = ROOT.loop()
INPUT, BODY, OUTPUT, ENTER, FEEDBACK, LEAVE = range(6)


def one_loop(layout: TimeLayout | None = None) -> Graph:
    """input → body (a loop) → output."""
    return Graph(
        [StageSpec("input", ROOT, 0, 1), StageSpec("body", LOOP, 2, 1), StageSpec("output", ROOT, 1, 0)],
        [
            ConnectorSpec(0, 0, 1, 0, PathSummary.enter(ROOT, LOOP)),
            ConnectorSpec(1, 0, 1, 1, PathSummary.feedback(LOOP)),
            ConnectorSpec(1, 0, 2, 0, PathSummary.leave(ROOT)),
        ],
        layout,
    )


def _pointstamp(data: st.DataObject, graph: Graph) -> tuple[int, Timestamp]:
    location = data.draw(st.integers(0, graph.location_count - 1))
    return location, data.draw(times(graph.shape_of(location)))


@given(st.data(), graphs())
def test_law_reflexive_and_transitive(data: st.DataObject, graph: Graph) -> None:
    relation = MinimalSummaries(graph).could_result_in
    a, b, c = (_pointstamp(data, graph) for _ in range(3))
    assert relation(a, a)
    if relation(a, b) and relation(b, c):
        assert relation(a, c)


@given(st.data(), graphs())
def test_law_two_different_pointstamps_never_result_in_each_other(data: st.DataObject, graph: Graph) -> None:
    relation = MinimalSummaries(graph).could_result_in
    a, b = _pointstamp(data, graph), _pointstamp(data, graph)
    assert not (relation(a, b) and relation(b, a)) or a == b


@given(graphs())
def test_law_no_minimal_summary_is_below_another(graph: Graph) -> None:
    summaries = MinimalSummaries(graph)
    for source in range(graph.location_count):
        assert PathSummary.identity(graph.shape_of(source)) in summaries.between(source, source)
        for target in range(graph.location_count):
            found = summaries.between(source, target)
            shape = graph.shape_of(target)
            assert not any(a != b and a.less_equal(b, shape) for a in found for b in found)


@given(graphs())
def test_law_compositions_are_above_some_minimal_summary(graph: Graph) -> None:
    summaries = MinimalSummaries(graph)
    for source in range(graph.location_count):
        for here, there, step in graph.steps:
            for summary in summaries.between(source, here):
                through = summary.then(step)
                shape = graph.shape_of(there)
                assert any(other.less_equal(through, shape) for other in summaries.between(source, there))


@given(st.data(), graphs())
def test_against_walking_event_by_event(data: st.DataObject, graph: Graph) -> None:
    relation = MinimalSummaries(graph).could_result_in
    for _ in range(5):
        a, b = _pointstamp(data, graph), _pointstamp(data, graph)
        assert relation(a, b) == paths.could_result_in(graph, a, b), (a, b)


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


def test_loop_the_second_iteration_cannot_result_in_the_first() -> None:
    relation = MinimalSummaries(one_loop()).could_result_in
    assert relation((BODY, (0, 0)), (BODY, (0, 1)))
    assert not relation((BODY, (0, 1)), (BODY, (0, 0)))


def test_loop_leaving_forgets_the_counter() -> None:
    relation = MinimalSummaries(one_loop()).could_result_in
    assert relation((BODY, (3, 70)), (OUTPUT, (3,)))
    assert relation((FEEDBACK, (3, 70)), (LEAVE, (3,)))


def test_loop_a_later_epoch_never_results_in_an_earlier_one_even_through_feedback() -> None:
    summaries = MinimalSummaries(one_loop())
    for source in range(6):
        for target in range(6):
            early = summaries.graph.shape_of(target).coordinates
            late = (1,) + (0,) * (summaries.graph.shape_of(source).coordinates - 1)
            assert not summaries.could_result_in((source, late), (target, (0,) + (99,) * (early - 1)))


def test_loop_a_message_under_way_results_in_a_notification_at_its_own_time() -> None:
    relation = MinimalSummaries(one_loop()).could_result_in
    assert relation((ENTER, (0, 4)), (BODY, (0, 4)))
    assert not relation((BODY, (0, 4)), (ENTER, (0, 4)))
    assert not relation((BODY, (0, 4)), (FEEDBACK, (0, 4)))


def test_loop_nested_loops_leave_two_ways_back_but_lexicographic_ones_only_the_inner() -> None:
    for inner, ways in ((LOOP.loop(), 2), (LOOP.lexicographic_loop(), 1)):
        graph = Graph(
            [StageSpec("input", ROOT, 0, 1), StageSpec("first", inner, 3, 1), StageSpec("last", inner, 1, 1)],
            [
                ConnectorSpec(0, 0, 1, 0, PathSummary.enter(ROOT, inner)),
                ConnectorSpec(1, 0, 2, 0, PathSummary.identity(inner)),
                ConnectorSpec(2, 0, 1, 1, PathSummary.feedback(inner)),
                ConnectorSpec(2, 0, 1, 2, PathSummary(2, 1, (0,))),
            ],
        )
        assert len(MinimalSummaries(graph).between(2, 1)) == ways
        assert len(SummaryTable(graph).between(2, 1)) == ways


def test_limit_delays_that_no_counter_can_hold_are_refused() -> None:
    stages = [StageSpec(f"s{i}", ROOT, 1, 1) for i in range(6)]
    delays = [ConnectorSpec(i, 0, i + 1, 0, PathSummary(1, 2)) for i in range(5)]
    assert SummaryTable(Graph(stages, delays, TimeLayout((5,)))).between(0, 5) == ((31, 10),)
    with pytest.raises(GraphError, match="half"):
        SummaryTable(Graph(stages, delays, TimeLayout((4,))))


def test_limit_dataflows_beyond_the_table_are_refused() -> None:
    stages = [StageSpec("s", ROOT, 0, 0)] * (LOCATIONS_MAX + 1)
    with pytest.raises(GraphError, match="supported"):
        SummaryTable(Graph(stages, []))


def test_limit_groups_of_different_scopes_are_refused() -> None:
    with pytest.raises(GraphError, match="different scopes"):
        SummaryTable(one_loop(), [[ENTER, LEAVE]])


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
