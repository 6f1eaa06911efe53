"""EarliestTimes: what spreads step by step is what the table of all pairs says.

`test_tracker.py` holds both against counting anew, in small graphs; here graphs are larger.
"""

from __future__ import annotations

import random
import time as clock

import numpy as np
import pytest
from strategies_progress import random_graph

from progress.compiled.arrays import Int64s
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.word_steps import WordSteps
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeLayout
from progress.times.timestamp import ROOT
from progress.tracking.count_changes import Change
from progress.tracking.earliest import EarliestTimes
from progress.tracking.tracker import Tracker

LOOP = ROOT.loop()
SAME = PathSummary.identity(ROOT)


def words(*values: int) -> Int64s:
    return np.array(values, dtype=np.int64)


def chain(count: int) -> Graph:
    """An input and `count` stages, one behind the other."""
    stages = [StageSpec("input", ROOT, 0, 1), *[StageSpec(f"s{n}", ROOT, 1, 1) for n in range(count)]]
    return Graph(stages, [ConnectorSpec(n, 0, n + 1, 0, SAME) for n in range(count)])


def ring(count: int, layout: TimeLayout | None = None) -> Graph:
    """An input, and a loop of `count` stages behind it."""
    stages = [StageSpec("input", ROOT, 0, 1), *[StageSpec(f"s{n}", LOOP, 2, 1) for n in range(count)]]
    ways = [ConnectorSpec(n, 0, n + 1, 1, PathSummary.identity(LOOP)) for n in range(1, count)]
    back = ConnectorSpec(count, 0, 1, 1, PathSummary.feedback(LOOP))
    return Graph(stages, [ConnectorSpec(0, 0, 1, 0, PathSummary.enter(ROOT, LOOP)), *ways, back], layout)


def test_in_larger_graphs_frontiers_are_those_of_the_table(seed: int, effort: int) -> None:
    for trial in range(6 * effort):
        rng = random.Random(f"{seed} {trial}")
        graph = random_graph(rng, stages_max=30)
        ports = [[location] for location in range(graph.location_count)]
        table, steps = Tracker(graph, ports), Tracker(graph, ports, table_max=0)
        active: list[Change] = []
        for _ in range(40):
            changes: list[Change] = []
            for _ in range(rng.randint(0, 4)):
                location = rng.randrange(graph.location_count)
                code = graph.code_of(location)
                time = tuple(rng.randint(0, 4) for _ in range(code.shape.coordinates))
                changes.append((location, code.pack(time), 1))
            active += changes
            rng.shuffle(active)
            for _ in range(min(len(active), rng.randint(0, 4))):
                location, word, _ = active.pop()
                changes.append((location, word, -1))
            assert table.apply(changes) == steps.apply(changes)
            for port in range(len(ports)):
                assert table.frontier(port).tolist() == steps.frontier(port).tolist()
        assert table.active() == steps.active()


def test_a_loop_does_not_count_up_to_its_end_when_a_time_goes() -> None:
    """Each time in it has another as its only reason; all of them go at once, and what remains is the later
    epoch.
    """
    graph = ring(5)
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(5)]]))
    pack = graph.codes[1].pack
    assert earliest.set_own([(0, words(graph.codes[0].pack((3,))))]) == [0]
    assert earliest.of_port(0).tolist() == [pack((3, 1))] and earliest.first(0) == pack((3, 1))
    assert earliest.set_own([(2, words(pack((1, 7))))]) == [0]
    assert earliest.of_port(0).tolist() == [pack((1, 8)), pack((3, 1))]
    assert earliest.set_own([(2, words())]) == [0]
    assert earliest.of_port(0).tolist() == [pack((3, 1))]
    assert earliest.set_own([(0, words())]) == [0]
    assert earliest.of_port(0).tolist() == [] and earliest.first(0) is None


def test_nothing_is_reported_where_another_time_says_the_same() -> None:
    graph = chain(3)
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(2)]]))
    assert earliest.set_own([(0, words(4))]) == [0]
    assert earliest.set_own([(1, words(4))]) == [] == earliest.set_own([(1, words(9))])
    assert earliest.set_own([(1, words(2))]) == [0]
    assert earliest.set_own([(0, words(5)), (1, words(2))]) == []
    assert earliest.of_port(0).tolist() == [2]


@pytest.mark.parametrize("count", [300, 3_000])
def test_wide_antichains_make_room_for_themselves(count: int) -> None:
    graph = ring(3)
    pack = graph.codes[1].pack
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(3)]]))
    at = words(*[pack((epoch, count - epoch)) for epoch in range(count)])
    assert earliest.set_own([(2, at)]) == [0]
    assert earliest.of_port(0).tolist() == [pack((epoch, count - epoch + 1)) for epoch in range(count)]
    assert earliest.set_own([(2, at[1:])]) == [0]
    assert earliest.of_port(0).tolist() == [pack((epoch, count - epoch + 1)) for epoch in range(1, count)]


def test_a_counter_beyond_its_field_is_in_no_frontier_but_leaves_the_loop() -> None:
    stages = [StageSpec("a", LOOP, 0, 1), StageSpec("b", LOOP, 1, 1), StageSpec("c", ROOT, 1, 0)]
    ways = [
        ConnectorSpec(0, 0, 1, 0, PathSummary.feedback(LOOP)),
        ConnectorSpec(1, 0, 2, 0, PathSummary.leave(ROOT)),
    ]
    graph = Graph(stages, ways, TimeLayout((10, 4)))
    earliest = EarliestTimes(WordSteps(graph, [[3], [4]]))
    assert earliest.set_own([(0, words(graph.codes[0].pack((2, 15))))]) == [1]
    assert earliest.of_port(0).tolist() == [] and earliest.of_port(1).tolist() == [graph.codes[2].pack((2,))]


def test_a_copy_goes_its_own_way() -> None:
    graph = chain(3)
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(2)]]))
    earliest.set_own([(0, words(4))])
    other = earliest.fork()
    assert other.set_own([(0, words(6))]) == [0]
    assert (earliest.first(0), other.first(0)) == (4, 6)
    assert earliest.set_own([(0, words())]) == [0]
    assert (earliest.of_port(0).tolist(), other.of_port(0).tolist()) == ([], [6])


def test_a_change_costs_the_steps_that_it_moves_and_no_others() -> None:
    """In a chain of 20,000 stages, at its end and at its beginning: 20,000 times as many nodes."""
    graph = chain(20_000)
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(19_999)]]))
    earliest.set_own([(0, words(0))])
    near, far = (min(_seconds_at(earliest, location) for _ in range(5)) for location in (20_000, 0))
    assert 20 * near < far < 20_000 * near + 0.2, (near, far)


def test_what_has_another_reason_costs_nothing_behind_it() -> None:
    """Two inputs lead to a chain of 20,000 stages; while one holds a time there, or the first stage does, the
    other comes and goes with the same one.
    """
    count = 20_000
    stages = [StageSpec("input", ROOT, 0, 1), *[StageSpec(f"s{n}", ROOT, 1, 1) for n in range(count)]]
    ways = [ConnectorSpec(n, 0, n + 1, 0, SAME) for n in range(count)]
    graph = Graph([*stages, StageSpec("other", ROOT, 0, 1)], [*ways, ConnectorSpec(count + 1, 0, 1, 0, SAME)])
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(count - 1)]]))
    earliest.set_own([(0, words(0))])
    all_move = min(_seconds_at(earliest, 0) for _ in range(3))
    for holds, moves in [(0, count + 1), (count + 1, 0), (1, 0)]:
        earliest.set_own([(location, words()) for location in (0, 1, count + 1)])
        earliest.set_own([(holds, words(0))])
        taken = []
        for _ in range(10):
            begin = clock.process_time()
            assert earliest.set_own([(moves, words(0))]) == [] == earliest.set_own([(moves, words())])
            taken.append(clock.process_time() - begin)
        assert 10 * min(taken) < all_move / 20, (holds, moves, taken, all_move)


def test_a_node_has_its_turn_after_all_before_it() -> None:
    """In a row of 40 diamonds whose one side is later and the other one longer, each turn out of order may
    double all that follow.
    """
    stages, ways = [StageSpec("input", ROOT, 0, 2)], list[ConnectorSpec]()
    for number in range(40):
        here, late = len(stages) - 1, PathSummary(1, 1 << 40 - number)
        stages += [StageSpec("side", ROOT, 1, 1), StageSpec("end", ROOT, 2, 2)]
        ends = [(here, 1, here + 2, 0, late), (here, 0, here + 1, 0, SAME), (here + 1, 0, here + 2, 1, SAME)]
        ways += [ConnectorSpec(*end) for end in (ends if number % 2 else reversed(ends))]
    tracker = Tracker(
        Graph(stages, ways), [[len(stages) + number] for number in range(len(ways))], table_max=0
    )
    begin = clock.process_time()
    for epoch in range(10):
        tracker.apply([(0, tracker.graph.codes[0].pack((epoch + 1,)), 1), (0, epoch, -1 if epoch else 0)])
        assert tracker.first(len(ways) - 1) is not None
    assert clock.process_time() - begin < 1.0


def test_in_a_large_graph_what_has_no_precursors_is_found_without_a_look_at_each_pair() -> None:
    """Of 2,000 among 4,000 nodes: pair by pair, in the interpreter, it took many seconds."""
    tracker = Tracker(chain(2_000), [[2_001]], table_max=0)
    tracker.apply([(location, 5, 1) for location in range(2_000)])
    tracker.apply([(7, 3, 1), (90, 1, 1)])
    begin = clock.process_time()
    assert tracker.without_precursors() == [(0, 5), (7, 3), (90, 1)]
    assert clock.process_time() - begin < 1.0


def test_a_question_in_the_midst_of_a_change_reads_no_memory_that_is_not_there() -> None:
    """A thread that has the pool from before it grew: rows that are not in it are not looked at."""
    graph = ring(3)
    pack = graph.codes[1].pack
    earliest = EarliestTimes(WordSteps(graph, [[graph.connector_location(3)]]))
    earliest.set_own([(2, words(pack((0, 3))))])
    assert earliest.not_led_to([(2, pack((0, 3))), (3, pack((0, 3)))]) == [(2, pack((0, 3)))]
    before = earliest._pool
    many = [pack((epoch, 900 - epoch)) for epoch in range(900)]
    earliest.set_own([(2, words(*many))])
    assert earliest._pool.shape > before.shape
    assert earliest.not_led_to([(2, word) for word in many]) == [(2, word) for word in many]
    earliest._pool = before[:2].copy()
    assert earliest.not_led_to([(2, many[0])]) == []


def _seconds_at(earliest: EarliestTimes, location: int) -> float:
    own = [(0, words(0))] if location == 0 else []
    begin = clock.process_time()
    for count in range(20):
        earliest.set_own([(location, words(count + 1))])
    seconds = clock.process_time() - begin
    earliest.set_own([(location, words()), *own])
    return seconds
