"""SummariesOnDemand: the same summaries as the table's, one target at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies_progress import graphs

from progress.errors import GraphError
from progress.graph import summaries_on_demand
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.summaries_on_demand import SummariesOnDemand
from progress.graph.summary_table import SummaryTable
from progress.graph.word_steps import WordSteps
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT


@given(graphs())
def test_they_are_those_of_the_table(graph: Graph) -> None:
    groups = [
        [0],
        [location for location in range(graph.location_count) if graph.code_of(location) is graph.codes[0]],
    ]
    table, asked = SummaryTable(graph, groups), SummariesOnDemand(WordSteps(graph, groups))
    for target in range(asked.word_steps.count):
        for source in range(graph.location_count):
            assert asked.between(source, target) == table.between(source, target)


def test_many_incomparable_ways_ask_for_more_room() -> None:
    deep = ROOT.loop().loop().loop()
    ways = [PathSummary(1, 0, (9 - k, k, 0)) for k in range(9)]
    graph = Graph(
        [StageSpec("a", ROOT, 0, 1), StageSpec("b", deep, 9, 0)],
        [ConnectorSpec(0, 0, 1, k, way) for k, way in enumerate(ways)],
    )
    assert len(SummariesOnDemand(WordSteps(graph)).between(0, 1)) == 9


def test_delays_that_no_counter_can_hold_are_refused_and_others_are_not() -> None:
    stages = [StageSpec(f"s{i}", ROOT, 1, 1) for i in range(6)]
    delays = [ConnectorSpec(i, 0, i + 1, 0, PathSummary(1, 2)) for i in range(5)]
    assert SummariesOnDemand(WordSteps(Graph(stages, delays, TimeLayout((5,))))).between(0, 5) == ((31, 10),)
    with pytest.raises(GraphError, match="half"):
        SummariesOnDemand(WordSteps(Graph(stages, delays, TimeLayout((4,)))))
    with pytest.raises(GraphError, match="half"):
        SummariesOnDemand(WordSteps(Graph(stages[:5], delays[:4], TimeLayout((4,)))))
    apart = [ConnectorSpec(0, 0, i + 1, 0, PathSummary(1, 2)) for i in range(5)]
    assert SummariesOnDemand(WordSteps(Graph(stages, apart, TimeLayout((4,))))).between(0, 5) == ((15, 2),)


def test_two_threads_may_ask_for_different_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's question in the midst of the worker's: each gets its own answer, then and later."""
    stages = [StageSpec(f"s{i}", ROOT, 1, 1) for i in range(3)]
    ways = [ConnectorSpec(i, 0, i + 1, 0, PathSummary(1, i + 1)) for i in range(2)]
    asked = SummariesOnDemand(WordSteps(Graph(stages, ways)))
    first, second = asked.between(0, 1), asked.between(0, 2)
    kernel = summaries_on_demand.reach_to
    heard: list[tuple[tuple[int, int], ...]] = []

    def interrupted(*arguments: int) -> int:
        code = kernel(*arguments)  # type: ignore[arg-type]
        if not heard:
            heard.append(())
            heard.append(asked.between(0, 2))
        return code

    asked.between(0, 0)
    monkeypatch.setattr(summaries_on_demand, "reach_to", interrupted)
    assert asked.between(0, 1) == first and heard[1] == second
    assert (asked.between(0, 1), asked.between(0, 2), asked.between(0, 1)) == (first, second, first)
