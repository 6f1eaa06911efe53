"""Graph: the shape of a dataflow, and what cannot be built.

refuses_*       cycles that do not advance, ports and scopes that do not fit
holds_*         when a message may be kept as a capability
fingerprint_*   equal iff built alike; the first difference can be shown
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import paths
from strategies_progress import graphs, random_graph, times

from progress.errors import GraphError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT

LOOP = ROOT.loop()
INNER = LOOP.loop()
IDENTITY = PathSummary.identity


def in_a_row(back: PathSummary) -> Graph:
    """first → second → third → first again, all in one loop."""
    names = ("first", "second", "third")
    return Graph(
        [StageSpec(name, LOOP, 1, 1) for name in names],
        [ConnectorSpec(i, 0, (i + 1) % 3, 0, back if i == 2 else IDENTITY(LOOP)) for i in range(3)],
    )


def test_refuses_a_cycle_without_feedback_and_names_its_stages_in_order() -> None:
    with pytest.raises(GraphError, match="feedback") as caught:
        in_a_row(IDENTITY(LOOP))
    named = re.findall(r"'(\w+)' \(stage \d\)", str(caught.value))
    start = ("first", "second", "third").index(named[0])
    assert named == [("first", "second", "third")[(start + step) % 3] for step in range(4)]


def test_refuses_a_stage_that_feeds_itself() -> None:
    with pytest.raises(GraphError, match="'a' .*→ 'a'"):
        Graph([StageSpec("a", ROOT, 1, 1)], [ConnectorSpec(0, 0, 0, 0, IDENTITY(ROOT))])


def test_refuses_a_cycle_at_the_root_but_not_one_through_a_later_epoch() -> None:
    stages = [StageSpec("a", ROOT, 1, 1)]
    Graph(stages, [ConnectorSpec(0, 0, 0, 0, PathSummary(1, 1))])
    with pytest.raises(GraphError):
        Graph(stages, [ConnectorSpec(0, 0, 0, 0, PathSummary(1, 0))])


def test_refuses_to_go_round_the_outer_loop_when_only_the_inner_counter_advances() -> None:
    """The inner counter is forgotten on the way, so what it gained is lost."""
    stages = [StageSpec("outer", LOOP, 1, 1), StageSpec("inner", INNER, 1, 1)]
    into, out = PathSummary.enter(LOOP, INNER), PathSummary.leave(LOOP)
    with pytest.raises(GraphError, match="'outer'"):
        Graph(stages, [ConnectorSpec(0, 0, 1, 0, PathSummary(2, 0, (1,))), ConnectorSpec(1, 0, 0, 0, out)])
    Graph(stages, [ConnectorSpec(0, 0, 1, 0, into), ConnectorSpec(1, 0, 0, 0, PathSummary(2, 1))])


def test_accepts_a_cycle_whose_stage_advances_inside() -> None:
    internal = {(0, 0): PathSummary.feedback(LOOP)}
    Graph([StageSpec("a", LOOP, 1, 1, internal)], [ConnectorSpec(0, 0, 0, 0, IDENTITY(LOOP))])


def test_accepts_a_cycle_that_a_stage_interrupts() -> None:
    Graph([StageSpec("a", LOOP, 1, 1, {(0, 0): None})], [ConnectorSpec(0, 0, 0, 0, IDENTITY(LOOP))])


@given(st.data(), graphs())
def test_accepted_graphs_lead_no_event_to_itself_or_earlier(data: st.DataObject, graph: Graph) -> None:
    location = data.draw(st.integers(0, graph.location_count - 1))
    time = data.draw(times(graph.shape_of(location)))
    caused = {
        later
        for first in paths.next_pointstamps(graph, (location, time))
        for later in paths.reachable(graph, first, 8)
    }
    shape = graph.shape_of(location)
    assert not any(where == location and shape.less_equal(then, time) for where, then in caused)


@given(st.integers(0, 10_000))
def test_refuses_exactly_the_graphs_in_which_an_event_can_lead_to_itself(seed: int) -> None:
    """Take the advance away from one connector of a good graph, and compare with walking it."""
    rng = random.Random(seed)
    good = random_graph(rng, stages_max=4, depth_max=2)
    number = rng.randrange(len(good.connectors)) if good.connectors else 0
    connectors = list(good.connectors)
    if connectors:
        connectors[number] = replace(connectors[number], summary=replace(connectors[number].summary, add=0))
    try:
        Graph(good.stages, connectors, good.layout)
    except GraphError:
        stands = True
    else:
        stands = False
    assert stands == _leads_to_itself(good, connectors)


def _leads_to_itself(good: Graph, connectors: list[ConnectorSpec]) -> bool:
    """Whether from (l, 5, 5, …) one gets to l again at no later time; 5 exceeds every constant."""
    broken = object.__new__(Graph)
    broken.__dict__.update(good.__dict__, connectors=tuple(connectors))
    for location in range(good.location_count):
        shape = good.shape_of(location)
        time = (5,) * shape.coordinates
        for first in paths.next_pointstamps(broken, (location, time)):
            for where, then in paths.reachable(broken, first, 9):
                if where == location and shape.less_equal(then, time):
                    return True
    return False


@pytest.mark.parametrize(
    ("connector", "message"),
    [
        (ConnectorSpec(0, 1, 1, 0, IDENTITY(ROOT)), "'a' has 1 outputs"),
        (ConnectorSpec(0, 0, 1, 1, IDENTITY(ROOT)), "'b' has 1 inputs"),
        (ConnectorSpec(0, 0, 2, 0, IDENTITY(ROOT)), "do not exist"),
        (ConnectorSpec(0, 0, 1, 0, PathSummary.enter(ROOT, LOOP)), "enter or leave"),
    ],
)
def test_refuses_connectors_that_do_not_fit(connector: ConnectorSpec, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph([StageSpec("a", ROOT, 0, 1), StageSpec("b", ROOT, 1, 0)], [connector])


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (StageSpec("a", ROOT, 1, 1, {(1, 0): None}), "from input 1"),
        (StageSpec("a", ROOT, 1, 1, {(0, 0): PathSummary(1, 0, (0,))}), "does not keep"),
        (StageSpec("a", LOOP, 1, 1, {(0, 0): PathSummary(1, 0, (0,))}), "back in time"),
        (StageSpec("a", ROOT, -1, 1), "negative"),
    ],
)
def test_refuses_stages_that_contradict_themselves(stage: StageSpec, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph([stage], [])


def test_refuses_scopes_that_the_layout_cannot_hold() -> None:
    with pytest.raises(GraphError, match="levels"):
        Graph([StageSpec("a", INNER, 0, 0)], [], TimeLayout((32, 29)))


def test_holds_a_message_at_its_own_time_unless_something_is_declared() -> None:
    graph = Graph([StageSpec("a", LOOP, 1, 2), StageSpec("sink", ROOT, 1, 0)], [])
    assert graph.hold_summary(0, 0) == IDENTITY(LOOP)
    assert graph.hold_summary(1, 0) == IDENTITY(ROOT)


def test_holds_nothing_of_an_input_that_leads_to_some_outputs_only() -> None:
    """A capability is a right to send on every output."""
    graph = Graph([StageSpec("a", LOOP, 1, 2, {(0, 1): None})], [])
    assert graph.hold_summary(0, 0) is None
    assert graph.steps == ()


def test_holds_a_message_from_when_it_may_lead_to_all_outputs() -> None:
    later = PathSummary.feedback(LOOP)
    graph = Graph([StageSpec("a", LOOP, 1, 2, {(0, 1): later})], [])
    assert graph.hold_summary(0, 0) == later


def test_locations_are_stages_then_connectors() -> None:
    graph = in_a_row(PathSummary.feedback(LOOP))
    assert graph.location_count == 6 and graph.connector_location(2) == 5
    assert graph.stage_of(5) == 0 and graph.shape_of(5) == LOOP and graph.code_of(5) is graph.codes[0]
    assert graph.name_of(1) == "'second' (stage 1)"
    assert graph.name_of(5) == "'third' output 0 → 'first' input 0 (connector 2)"


def test_fingerprint_is_equal_for_what_was_built_alike() -> None:
    built = [random_graph(random.Random(3), stages_max=8) for _ in range(2)]
    assert built[0].fingerprint() == built[1].fingerprint()
    assert built[0].describe() == built[1].describe()
    assert len(built[0].describe()) == 1 + len(built[0].stages)


def test_fingerprint_tells_apart_whatever_workers_must_agree_on() -> None:
    stage = StageSpec("a", LOOP, 2, 2)
    sink = StageSpec("b", LOOP, 1, 0)
    wire = ConnectorSpec(0, 0, 1, 0, IDENTITY(LOOP))
    variants = [
        Graph([stage, sink], [wire]),
        Graph([replace(stage, name="c"), sink], [wire]),
        Graph([replace(stage, detail="sum"), sink], [wire]),
        Graph([replace(stage, inputs=3), sink], [wire]),
        Graph([replace(stage, internal={(0, 0): None}), sink], [wire]),
        Graph([stage, sink], [replace(wire, output=1)]),
        Graph([stage, sink], [replace(wire, detail="by key")]),
        Graph([stage, sink], [replace(wire, summary=PathSummary.feedback(LOOP))]),
        Graph([stage, sink], [wire, wire]),
        Graph([stage, sink], []),
        Graph([stage, sink], [wire], TimeLayout((30, 29))),
    ]
    assert len({graph.fingerprint() for graph in variants}) == len(variants)


def test_fingerprint_the_first_differing_line_names_the_stage() -> None:
    wire = ConnectorSpec(0, 0, 1, 0, IDENTITY(ROOT))
    plain = Graph([StageSpec("a", ROOT, 0, 1), StageSpec("b", ROOT, 1, 0)], [wire])
    other = Graph([StageSpec("a", ROOT, 0, 1), StageSpec("b", ROOT, 1, 0, detail="max")], [wire])
    lines = [pair for pair in zip(plain.describe(), other.describe(), strict=True) if pair[0] != pair[1]]
    assert len(lines) == 1 and "'b'" in lines[0][0]


def test_a_long_chain_is_built_without_deep_recursion() -> None:
    count = 3_000
    stages = [StageSpec(f"s{i}", LOOP, 1, 1) for i in range(count)]
    back = PathSummary.feedback(LOOP)
    links = [
        ConnectorSpec(i, 0, (i + 1) % count, 0, back if i == count - 1 else IDENTITY(LOOP))
        for i in range(count)
    ]
    assert Graph(stages, links).location_count == 2 * count
    with pytest.raises(GraphError, match="does not advance"):
        Graph(stages, [replace(link, summary=IDENTITY(LOOP)) for link in links])
