"""could_result_in: may an event at p still lead to an event at q?

law_*       reflexive, transitive, and never both ways between different pointstamps
loop_*      what entering, advancing and leaving a loop does
against_*   the minimal summaries against walking the graph event by event
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from reference import paths
from strategies_progress import graphs, times

from progress.graph.could_result_in import MinimalSummaries
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.summary_table import SummaryTable
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT, Timestamp

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
