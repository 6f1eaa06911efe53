"""Tracker: counts in, frontiers out.

against_*    any sequence of changes, against counting anew from the definitions
frontier_*   what a port's frontier says in a small dataflow with a loop
refuses_*    changes that cannot be
story_*      what it tells about itself
"""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from reference.recount import Recount
from strategies_progress import graphs, random_graph

from progress.errors import GraphError, InternalError, TimeOverflowError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.pointstamp_order import PointstampOrder
from progress.graph.summaries_on_demand import SummariesOnDemand
from progress.graph.summary_table import SummaryTable
from progress.thresholds import FEW_POINTSTAMPS_MAX, TABLE_NODES_MAX
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT, Timestamp
from progress.tracking.count_changes import Change
from progress.tracking.tracker import Tracker

LOOP = ROOT.loop()
INPUT, BODY, OUTPUT, ENTER, FEEDBACK, LEAVE = range(6)
INTO_BODY, INTO_OUTPUT = 0, 1


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


class Loop:
    """A tracker of `one_loop`, told and asked in tuples."""

    def __init__(self) -> None:
        self.graph = one_loop()
        self.tracker = Tracker(self.graph, [[ENTER, FEEDBACK], [LEAVE]])

    def apply(self, *changes: tuple[int, Timestamp, int]) -> list[int]:
        """Apply changes and check all invariants."""
        moved = self.tracker.apply([(at, self.graph.code_of(at).pack(time), n) for at, time, n in changes])
        self.tracker.check_invariants()
        return moved

    def frontier(self, port: int) -> list[Timestamp]:
        """A frontier as tuples."""
        code = self.graph.code_of((ENTER, LEAVE)[port])
        return [code.unpack(word) for word in self.tracker.frontier(port).tolist()]


def ports_of(graph: Graph, rng: random.Random) -> list[list[int]]:
    """The connectors of each input port, and some groups of connectors of one scope."""
    ports: dict[tuple[int, int], list[int]] = {}
    for number, connector in enumerate(graph.connectors):
        ports.setdefault((connector.target, connector.input), []).append(graph.connector_location(number))
    groups = list(ports.values())
    for location in range(graph.location_count):
        alike = [
            each for each in range(graph.location_count) if graph.shape_of(each) == graph.shape_of(location)
        ]
        if rng.random() < 0.2:
            groups.append(sorted(rng.sample(alike, rng.randint(1, min(3, len(alike))))))
    return groups


class AgainstRecount(RuleBasedStateMachine):
    """Changes of any kind; after each call everything is compared with counting anew."""

    few_max = FEW_POINTSTAMPS_MAX
    table_max = TABLE_NODES_MAX

    @initialize(seed=st.integers(0, 10**6))
    def build(self, seed: int) -> None:
        rng = random.Random(seed)
        self.graph = random_graph(rng, stages_max=5)
        ports = ports_of(self.graph, rng)
        self.tracker = Tracker(self.graph, ports, self.few_max, table_max=self.table_max)
        self.recount = Recount(self.graph, ports)

    @rule(data=st.data())
    def change_counts(self, data: st.DataObject) -> None:
        changes: list[Change] = []
        for _ in range(data.draw(st.integers(1, 5))):
            location = data.draw(st.integers(0, self.graph.location_count - 1))
            code = self.graph.code_of(location)
            time = data.draw(st.tuples(*[st.integers(0, 2)] * code.shape.coordinates))
            delta = data.draw(st.integers(-2, 2))
            changes.append((location, code.pack(time), delta))
            self.recount.change(location, time, delta)
        self._apply(changes)

    @rule(data=st.data())
    def take_back_what_is_active(self, data: st.DataObject) -> None:
        active = sorted(self.recount.counts.items())
        chosen = data.draw(st.lists(st.sampled_from(active), unique=True)) if active else []
        changes: list[Change] = []
        for (location, time), count in chosen:
            changes.append((location, self.graph.code_of(location).pack(time), -count))
            self.recount.change(location, time, -count)
        self._apply(changes)

    def _apply(self, changes: list[Change]) -> None:
        ports = range(len(self.recount.watched))
        before = [self.tracker.frontier(port) for port in ports]
        moved = self.tracker.apply(changes)
        after = [self.tracker.frontier(port) for port in ports]
        assert moved == [port for port in ports if before[port].tolist() != after[port].tolist()]
        assert all((before[port] is after[port]) == (port not in moved) for port in ports)

    @invariant()
    def everything_is_as_counted_anew(self) -> None:
        if not hasattr(self, "tracker"):
            return
        self.tracker.check_invariants()
        active = {
            (location, self.graph.code_of(location).unpack(word)): (occurrences, precursors)
            for location, word, occurrences, precursors in self.tracker.active()
        }
        expected = {
            each: (count, self.recount.precursors(each)) for each, count in self.recount.counts.items()
        }
        assert active == expected
        unled = [(at, self.graph.code_of(at).unpack(word)) for at, word in self.tracker.without_precursors()]
        assert unled == sorted(each for each, (_, precursors) in expected.items() if precursors == 0)
        assert self.tracker.is_idle() == (not expected)
        for port, group in enumerate(self.recount.watched):
            code = self.graph.code_of(group[0])
            frontier = [code.unpack(word) for word in self.tracker.frontier(port).tolist()]
            assert frontier == self.recount.frontier(port).elements()
            first = self.tracker.first(port)
            assert ([] if first is None else [first]) == self.tracker.frontier(port).tolist()[:1]


TestAgainstRecount = AgainstRecount.TestCase
TestAgainstRecount.settings = settings(max_examples=60, stateful_step_count=15)


class AgainstRecountWithMany(AgainstRecount):
    """The same where more than four pointstamps are a crowd: it is turned to and left all the time."""

    few_max = 4


TestAgainstRecountWithMany = AgainstRecountWithMany.TestCase
TestAgainstRecountWithMany.settings = settings(max_examples=60, stateful_step_count=15)


class AgainstRecountWithoutTable(AgainstRecount):
    """The same where times spread step by step, as in a large graph."""

    table_max = 0


TestAgainstRecountWithoutTable = AgainstRecountWithoutTable.TestCase
TestAgainstRecountWithoutTable.settings = settings(max_examples=60, stateful_step_count=15)


@pytest.mark.parametrize(
    ("few_max", "table_max"), [(1, 600), (8, 600), (FEW_POINTSTAMPS_MAX, 600), (FEW_POINTSTAMPS_MAX, 0)]
)
def test_against_recount_while_many_times_come_and_go(few_max: int, table_max: int, seed: int) -> None:
    """Incomparable ones in a loop, in both counts and frontiers, through all ways of keeping them."""
    rng = random.Random(f"{seed} {few_max}")
    graph = one_loop()
    ports = [[ENTER, FEEDBACK], [LEAVE], [FEEDBACK]]
    tracker, recount = Tracker(graph, ports, few_max, table_max=table_max), Recount(graph, ports)
    for wanted in (3, 60, 20, 330, 2, 90, 0):
        changes: list[Change] = []
        for at, time in [(BODY, (e, 400 - e + rng.randint(0, 2))) for e in rng.sample(range(400), wanted)]:
            changes.append((at, graph.code_of(at).pack(time), 1))
            recount.change(at, time, 1)
        gone = rng.sample(sorted(recount.counts), max(0, len(recount.counts) - wanted))
        for at, time in gone:
            changes.append((at, graph.code_of(at).pack(time), -recount.counts[at, time]))
            recount.change(at, time, -recount.counts[at, time])
        before = [tracker.frontier(port).tolist() for port in range(3)]
        moved = tracker.apply(changes)
        after = [tracker.frontier(port).tolist() for port in range(3)]
        assert moved == [port for port in range(3) if before[port] != after[port]]
        assert tracker.active_count == len(recount.counts) and tracker.is_idle() == (wanted == 0)
        assert tracker.least_word() == min(
            (graph.code_of(at).pack(time) for at, time in recount.counts), default=None
        )
        for port, group in enumerate(ports):
            code = graph.code_of(group[0])
            assert [code.unpack(word) for word in after[port]] == recount.frontier(port).elements()
        if wanted <= 90:
            tracker.check_invariants()


@pytest.mark.parametrize("count", [1, 2, 9, 200])
def test_the_least_word_is_found_wherever_it_stands(count: int) -> None:
    graph = one_loop()
    pack = graph.code_of(BODY).pack
    for least in {0, count // 2, count - 1}:
        tracker = Tracker(graph, [[FEEDBACK]])
        assert tracker.least_word() is None
        epochs = [epoch + 1 if epoch != least else 0 for epoch in range(count)]
        tracker.apply([(BODY, pack((epoch, 0)), 1) for epoch in epochs])
        assert tracker.least_word() == pack((0, 0))


def test_against_memory_ports_times_pointstamps_are_not_kept() -> None:
    """100,000 open epochs in front of 200 ports: rows of all of them would be 160 MB."""
    stages = [StageSpec("input", ROOT, 0, 1), *[StageSpec(f"s{n}", ROOT, 1, 1) for n in range(200)]]
    graph = Graph(stages, [ConnectorSpec(n, 0, n + 1, 0, PathSummary.identity(ROOT)) for n in range(200)])
    first = graph.connector_location(0)
    tracker = Tracker(graph, [[first + n] for n in range(200)])
    tracemalloc.start()
    tracker.apply([(200, epoch, 1) for epoch in range(100_000)])
    tracker.apply([(0, 0, 1)])
    current, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tracker.active_count == 100_001
    assert all(tracker.frontier(port).tolist() == [0] for port in range(200))
    assert current < 40 * 2**20 and peak < 80 * 2**20, (current, peak)


@given(graphs(stages_max=4), st.randoms(use_true_random=False))
def test_against_one_by_one_the_order_and_grouping_of_changes_is_irrelevant(
    graph: Graph, rng: random.Random
) -> None:
    ports = ports_of(graph, rng)
    at_once, singly = Tracker(graph, ports), Tracker(graph, ports)
    changes: list[Change] = []
    for _ in range(12):
        location = rng.randrange(graph.location_count)
        code = graph.code_of(location)
        time = tuple(rng.randint(0, 2) for _ in range(code.shape.coordinates))
        changes.append((location, code.pack(time), rng.choice((-1, 1, 2))))
    at_once.apply(changes)
    rng.shuffle(changes)
    for change in changes:
        singly.apply([change])
    assert at_once.active() == singly.active()
    for port in range(len(ports)):
        assert at_once.frontier(port).tolist() == singly.frontier(port).tolist()


@pytest.mark.parametrize("table_max", [TABLE_NODES_MAX, 0])
def test_against_one_by_one_a_thousand_changes_at_once_make_room_for_themselves(table_max: int) -> None:
    graph = one_loop()
    at_once, singly = (Tracker(graph, [[ENTER, FEEDBACK], [LEAVE]], table_max=table_max) for _ in range(2))
    code = graph.codes[BODY]
    changes = [(FEEDBACK, code.pack((epoch, 1000 - epoch)), 1 + epoch % 3) for epoch in range(1000)]
    at_once.apply(changes)
    for change in changes:
        singly.apply([change])
    assert len(at_once.frontier(INTO_BODY)) == 1000
    assert at_once.first(INTO_BODY) == int(at_once.frontier(INTO_BODY)[0])
    assert at_once.frontier(INTO_BODY).tolist() == singly.frontier(INTO_BODY).tolist()
    assert at_once.active() == singly.active()
    at_once.apply([(location, word, -delta) for location, word, delta in changes])
    assert at_once.is_idle() and at_once.frontier(INTO_BODY).tolist() == []


def test_frontier_of_an_open_input_is_its_epoch_everywhere() -> None:
    loop = Loop()
    assert loop.frontier(INTO_BODY) == [] == loop.frontier(INTO_OUTPUT)
    assert loop.apply((INPUT, (0,), 2)) == [INTO_BODY, INTO_OUTPUT]
    assert loop.frontier(INTO_BODY) == [(0, 0)] and loop.frontier(INTO_OUTPUT) == [(0,)]


def test_frontier_waits_for_every_worker_s_input() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 2))
    assert loop.apply((INPUT, (1,), 1), (INPUT, (0,), -1)) == []
    assert loop.apply((INPUT, (1,), 1), (INPUT, (0,), -1)) == [INTO_BODY, INTO_OUTPUT]
    assert loop.frontier(INTO_BODY) == [(1, 0)]


def test_frontier_a_message_going_round_holds_its_epoch_back_but_not_the_next_iteration_of_others() -> None:
    loop = Loop()
    loop.apply((INPUT, (1,), 1), (FEEDBACK, (0, 3), 1))
    assert loop.frontier(INTO_BODY) == [(0, 3), (1, 0)]
    assert loop.frontier(INTO_OUTPUT) == [(0,)]
    assert loop.apply((FEEDBACK, (0, 4), 1), (FEEDBACK, (0, 3), -1)) == [INTO_BODY]
    assert loop.frontier(INTO_BODY) == [(0, 4), (1, 0)]
    assert loop.apply((FEEDBACK, (0, 4), -1)) == [INTO_BODY, INTO_OUTPUT]
    assert loop.frontier(INTO_OUTPUT) == [(1,)]


def test_frontier_a_capability_in_the_loop_allows_the_next_iteration_not_its_own() -> None:
    """A stage sends to itself through feedback only, so its own notification is not in its own way."""
    loop = Loop()
    loop.apply((BODY, (0, 2), 1))
    assert loop.frontier(INTO_BODY) == [(0, 3)]


def test_frontier_a_finished_dataflow_has_empty_frontiers_for_ever() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 1))
    assert loop.apply((INPUT, (0,), -1)) == [INTO_BODY, INTO_OUTPUT]
    assert loop.frontier(INTO_BODY) == [] and loop.tracker.is_idle()


def test_frontier_news_of_a_receipt_may_overtake_news_of_the_sending() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 1))
    assert loop.apply((ENTER, (0, 0), -1)) == []
    assert loop.frontier(INTO_BODY) == [(0, 0)]
    loop.apply((ENTER, (0, 0), 1))
    assert loop.tracker.active() == [(INPUT, 0, 1, 0)]


def test_frontier_nothing_done_moves_nothing() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 1))
    before = loop.tracker.frontier(INTO_BODY)
    assert loop.tracker.apply([]) == [] == loop.apply((INPUT, (0,), 0))
    assert loop.tracker.frontier(INTO_BODY) is before and before.dtype == np.int64


def test_frontier_arrays_suit_kernels() -> None:
    """An array marked read-only would be another type to numba: every kernel would compile twice."""
    frontier = Loop().tracker.frontier(INTO_BODY)
    assert frontier.flags.writeable and frontier.flags.c_contiguous


@pytest.mark.parametrize("table_max", [TABLE_NODES_MAX, 0])
def test_frontier_an_iteration_beyond_the_counter_is_not_waited_for(table_max: int) -> None:
    """It cannot be sent: whoever tries is refused. The last possible one is still waited for."""
    graph = one_loop(TimeLayout((10, 4)))
    code = graph.codes[BODY]
    tracker = Tracker(graph, [[FEEDBACK], [LEAVE]], table_max=table_max)
    assert tracker.apply([(BODY, code.pack((0, 14)), 1)]) == [0, 1]
    assert [code.unpack(word) for word in tracker.frontier(0).tolist()] == [(0, 15)]
    tracker.apply([(FEEDBACK, code.pack((0, 15)), 1), (BODY, code.pack((0, 14)), -1)])
    assert [code.unpack(word) for word in tracker.frontier(0).tolist()] == [(0, 15)]
    tracker.apply([(BODY, code.pack((0, 15)), 1), (FEEDBACK, code.pack((0, 15)), -1)])
    assert tracker.frontier(0).tolist() == [] and tracker.frontier(1).tolist() == [0]
    tracker.check_invariants()


@pytest.mark.parametrize(("few_max", "table_max"), [(1, 600), (FEW_POINTSTAMPS_MAX, 600), (1, 0)])
def test_a_fork_and_its_origin_go_their_own_ways(few_max: int, table_max: int) -> None:
    graph = one_loop()
    tracker = Tracker(graph, [[ENTER, FEEDBACK], [LEAVE]], few_max, table_max=table_max)
    epochs = [graph.codes[INPUT].pack((epoch,)) for epoch in range(4)]
    tracker.apply([(INPUT, epoch, 1) for epoch in epochs])
    other = tracker.fork()
    assert other.apply([(INPUT, epoch, -1) for epoch in epochs[:2]]) == [0, 1]
    assert (tracker.first(1), other.first(1)) == (epochs[0], epochs[2])
    assert tracker.apply([(INPUT, epochs[0], -1)]) == [0, 1]
    assert (tracker.first(1), other.first(1)) == (epochs[1], epochs[2])
    tracker.check_invariants()
    other.check_invariants()


def test_only_a_large_graph_is_without_a_table() -> None:
    graph = one_loop()
    nodes = graph.location_count + 1
    assert isinstance(Tracker(graph, [[ENTER, FEEDBACK]], table_max=nodes).summaries, SummaryTable)
    assert isinstance(Tracker(graph, [[ENTER, FEEDBACK]], table_max=nodes - 1).summaries, SummariesOnDemand)


@pytest.mark.parametrize("table_max", [TABLE_NODES_MAX, 0])
@pytest.mark.parametrize("few_max", [1, FEW_POINTSTAMPS_MAX])
def test_frontier_behind_the_last_inner_iteration_the_next_outer_one_is_waited_for(
    few_max: int, table_max: int
) -> None:
    """In a lexicographic loop that is later: a stage at the last inner iteration may still send then."""
    inner = LOOP.lexicographic_loop()
    stages = [StageSpec("body", inner, 1, 1), StageSpec("behind", inner, 1, 0)]
    ways = [ConnectorSpec(0, 0, target, 0, PathSummary.feedback(inner)) for target in range(2)]
    graph = Graph(stages, ways, TimeLayout((10, 4, 4)))
    code = graph.codes[0]
    tracker = Tracker(graph, [[2], [3]], few_max, table_max=table_max)
    assert tracker.apply([(0, code.pack((3, 1, 15)), 1)]) == [0, 1]
    assert [code.unpack(word) for word in tracker.frontier(1).tolist()] == [(3, 2, 0)]
    assert tracker.apply([(0, code.pack((3, 2, 5)), 1)]) == []
    tracker.check_invariants()
    assert tracker.precursors(0, code.pack((3, 2, 5))) == 1
    assert tracker.apply([(0, code.pack((3, 1, 15)), -1)]) == [0, 1]
    assert [code.unpack(word) for word in tracker.frontier(1).tolist()] == [(3, 2, 6)]
    tracker.apply([(0, code.pack((3, 15, 15)), 1), (0, code.pack((3, 2, 5)), -1)])
    assert tracker.frontier(1).tolist() == [], "no time is later"
    tracker.apply([(0, code.pack((3, 1, 15)), 1), (3, code.pack((2, 2, 0)), 1)])
    assert [code.unpack(word) for word in tracker.frontier(0).tolist()] == [(3, 2, 0)]
    assert [code.unpack(word) for word in tracker.frontier(1).tolist()] == [(2, 2, 0)], "it comes before both"


@pytest.mark.parametrize(
    ("few_max", "table_max"), [(1, 600), (8, 600), (FEW_POINTSTAMPS_MAX, 600), (FEW_POINTSTAMPS_MAX, 0)]
)
def test_against_recount_at_the_ends_of_counters(few_max: int, table_max: int, seed: int) -> None:
    for trial in range(12):
        rng = random.Random(f"{seed} {trial}")
        graph = random_graph(rng, kinds=("product", "lexicographic"))
        levels = max(stage.shape.levels for stage in graph.stages)
        # A path may add so much in such graphs that smaller counters would be refused.
        graph = Graph(graph.stages, graph.connectors, TimeLayout((6,) * levels))
        ports = ports_of(graph, rng)
        tracker = Tracker(graph, ports, few_max, table_max=table_max)
        recount = Recount(graph, ports)
        for _ in range(12):
            changes: list[Change] = []
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(graph.location_count)
                code = graph.code_of(at)
                values = (0, 1, 2, 61, 62, 63)
                time = (rng.choice(values[:-1]), *rng.choices(values, k=code.shape.coordinates - 1))
                changes.append((at, code.pack(time), 1))
                recount.change(at, time, 1)
            for at, time in rng.sample(sorted(recount.counts), min(len(recount.counts), rng.randint(0, 4))):
                changes.append((at, graph.code_of(at).pack(time), -recount.counts[at, time]))
                recount.change(at, time, -recount.counts[at, time])
            before = [tracker.frontier(port).tolist() for port in range(len(ports))]
            moved = tracker.apply(changes)
            after = [tracker.frontier(port).tolist() for port in range(len(ports))]
            assert moved == [port for port in range(len(ports)) if before[port] != after[port]]
            for port, group in enumerate(ports):
                code = graph.code_of(group[0])
                assert [*map(code.unpack, after[port])] == recount.frontier(port).elements()
        expected = [recount.precursors((at, graph.code_of(at).unpack(w))) for at, w, *_ in tracker.active()]
        active = tracker.active()
        assert [precursors for *_, precursors in active] == expected
        assert tracker.without_precursors() == [tuple(row[:2]) for row in active if row[3] == 0]


def test_refuses_a_time_beyond_its_fields_and_changes_nothing() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 1))
    code = loop.graph.codes[BODY]
    too_late = code.pack((0, (1 << code.fields[-1][1]) - 1)) + code.unit
    with pytest.raises(TimeOverflowError, match=r"'body' output 0 → 'body' input 1 .*bits"):
        loop.tracker.apply([(ENTER, 0, 1), (FEEDBACK, too_late, 1)])
    with pytest.raises(TimeOverflowError, match="'input'"):
        loop.tracker.apply([(INPUT, 1, 1)])
    with pytest.raises(TimeOverflowError):
        loop.tracker.apply([(INPUT, -1, 1)])
    assert loop.tracker.active() == [(INPUT, 0, 1, 0)]
    assert loop.apply((INPUT, (0,), -1)) == [INTO_BODY, INTO_OUTPUT]


@pytest.mark.parametrize(("few_max", "table_max"), [(1, 600), (FEW_POINTSTAMPS_MAX, 600), (1, 0)])
def test_refuses_a_bad_change_among_good_ones_however_many_are_active(few_max: int, table_max: int) -> None:
    graph = one_loop()
    tracker = Tracker(graph, [[LEAVE]], few_max, table_max=table_max)
    tracker.apply(
        [(INPUT, graph.codes[INPUT].pack((epoch,)), 1) for epoch in range(5 if few_max == 1 else 1)]
    )
    before = tracker.active()
    with pytest.raises(TimeOverflowError, match="'input'"):
        tracker.apply([(INPUT, graph.codes[INPUT].pack((9,)), 1), (INPUT, -1, 1)])
    with pytest.raises(InternalError, match="location 6"):
        tracker.apply([(INPUT, graph.codes[INPUT].pack((9,)), 1), (6, 0, 1)])
    assert tracker.active() == before
    tracker.check_invariants()


def test_refuses_a_location_that_does_not_exist() -> None:
    for location in (-1, 6):
        with pytest.raises(InternalError, match=f"location {location}"):
            Loop().tracker.apply([(location, 0, 1)])


def test_refuses_a_port_of_several_scopes() -> None:
    with pytest.raises(GraphError, match="scopes"):
        Tracker(one_loop(), [[ENTER, LEAVE]])


def test_story_says_what_holds_a_pointstamp_back() -> None:
    loop = Loop()
    loop.apply((INPUT, (0,), 1), (FEEDBACK, (0, 2), 5))
    word = loop.graph.codes[BODY].pack((0, 2))
    story = loop.tracker.describe(FEEDBACK, word)
    assert "at (0, 2): 5 outstanding" in story and "'input' (stage 0) at (0,) ×1" in story
    assert loop.tracker.describe(INPUT, 0).endswith("held back by nothing")
    assert loop.tracker.occurrences(FEEDBACK, word) == 5 and loop.tracker.precursors(FEEDBACK, word) == 1
    assert loop.tracker.occurrences(LEAVE, 0) == 0


def test_story_without_ports_there_are_counts_all_the_same() -> None:
    tracker = Tracker(one_loop(), [])
    assert tracker.apply([(INPUT, 0, 1)]) == []
    assert not tracker.is_idle()


def test_story_of_an_empty_dataflow_is_short() -> None:
    tracker = Tracker(Graph([], []), [])
    assert tracker.is_idle() and tracker.active() == [] == tracker.apply([])
    tracker.check_invariants()


@pytest.mark.parametrize("few_max", [FEW_POINTSTAMPS_MAX, 1])
@pytest.mark.parametrize("weakly", [False, True])
def test_led_to_is_what_a_positive_count_comes_before(few_max: int, weakly: bool, seed: int) -> None:
    asked = Counter[bool]()
    for number in range(12):
        rng = random.Random(f"{seed} {number}")
        graph = random_graph(rng, stages_max=4)
        tracker, order = Tracker(graph, [], few_max), PointstampOrder(graph)

        def some(rng: random.Random = rng, graph: Graph = graph) -> tuple[int, int]:
            at = rng.randrange(graph.location_count)
            code = graph.code_of(at)
            return at, code.pack(tuple(rng.randint(0, 2) for _ in range(code.shape.coordinates)))

        active = {some() for _ in range(rng.randint(0, 6))}
        tracker.apply([(*point, 1) for point in sorted(active)])
        for point in (some() for _ in range(30)):
            led_to = any(order[s, point] and (weakly or s != point) for s in active)
            assert tracker.are_led_to([point], weakly) == led_to, (graph, active, point)
            asked[led_to] += 1
        points = [some() for _ in range(3)]
        assert tracker.are_led_to(points, weakly) == all(tracker.are_led_to([one], weakly) for one in points)
    assert tracker.are_led_to([], weakly), "of none there is none that nothing leads to"
    assert asked[True] and asked[False]


def test_led_to_negative_counts_lead_nowhere_and_in_a_large_graph_nothing_is_known() -> None:
    graph = one_loop()
    tracker = Tracker(graph, [[ENTER], [LEAVE]])
    tracker.apply([(0, 0, -1)])
    assert not tracker.are_led_to([(ENTER, 0)])
    tracker.apply([(0, 0, 2)])
    assert tracker.are_led_to([(ENTER, 0)])
    large = Tracker(graph, [[ENTER], [LEAVE]], table_max=0)
    large.apply([(0, 0, 1)])
    assert not large.are_led_to([(ENTER, 0)])
