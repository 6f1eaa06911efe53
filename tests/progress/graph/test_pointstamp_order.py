"""The order of pointstamps: a partial order, the same that the tracker computes with.

laws_*    of a partial order, on random dataflows
twin_*    against the compiled table, and the images against it
"""

from __future__ import annotations

import random
from itertools import product

import pytest
from strategies_progress import random_graph

from progress.graph import graph as graphs
from progress.graph import pointstamp_order
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.graph.summary_table import SummaryTable
from progress.times.path_summary import PathSummary
from progress.times.timestamp import ROOT


def some_points(graph: Graph, choice: random.Random, count: int = 10) -> list[Pointstamp]:
    found = []
    for _ in range(count):
        location = choice.randrange(graph.location_count)
        code = graph.code_of(location)
        found.append(
            (location, code.pack(tuple(choice.randint(0, 2) for _ in range(code.shape.coordinates))))
        )
    return sorted(set(found))


@pytest.mark.parametrize("number", range(20))
def test_laws_of_a_partial_order(number: int) -> None:
    choice = random.Random(number)
    graph = random_graph(choice, stages_max=4, depth_max=2)
    order, points = PointstampOrder(graph), some_points(graph, choice)
    assert all(order[a, a] for a in points)
    assert not any(a != b and order[a, b] and order[b, a] for a, b in product(points, points))
    for a, b, c in product(points, points, points):
        if order[a, b] and order[b, c]:
            assert order[a, c], (a, b, c)
    assert order.standing_pairs() == []
    minimal = order.minimal(points)
    assert all(any(order[m, t] for m in minimal) for t in points)
    assert not any(a != b and order[a, b] for a, b in product(minimal, minimal))


@pytest.mark.parametrize("number", range(20))
def test_twin_the_tracker_s_table_gives_the_same_order_and_images(number: int) -> None:
    choice = random.Random(number)
    graph = random_graph(choice, stages_max=4, depth_max=2)
    order, points = PointstampOrder(graph), some_points(graph, choice)
    table = SummaryTable(graph, [])
    for (here, early), (there, late) in product(points, points):
        guards, valid = int(table.guards[there]), int(table.valid[there])
        images = [(early & keep) + add for keep, add in table.between(here, there)]
        wanted = any(image & ~valid == 0 and ((late | guards) - image) & guards == guards for image in images)
        assert order[(here, early), (there, late)] == wanted
        shape = graph.shape_of(there)
        reached = order.images((here, early), (there,))
        assert wanted == any(shape.less_equal(time, graph.code_of(there).unpack(late)) for time in reached)


def test_twin_images_that_no_word_holds_are_left_out() -> None:
    loop = ROOT.loop()
    graph = Graph([StageSpec("body", loop, 1, 1)], [ConnectorSpec(0, 0, 0, 0, PathSummary.feedback(loop))])
    code = graph.codes[0]
    order = PointstampOrder(graph)
    assert order.images((0, code.pack((0, 5))), (1,)) == ((0, 6),)
    assert order.images((0, code.pack((0, (1 << code.fields[-1][1]) - 1))), (1,)) == ()


def test_laws_a_cycle_that_does_not_advance_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_standing_cycle", lambda locations, steps: None)
    same = PathSummary.identity(ROOT)
    graph = Graph([StageSpec("body", ROOT, 1, 1)], [ConnectorSpec(0, 0, 0, 0, same)])
    assert PointstampOrder(graph).standing_pairs() == [(0, 1)]


@pytest.mark.parametrize("number", range(10))
def test_laws_marks_stand_for_the_points_whatever_was_marked_before(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointstamp_order, "MARKED_MAX", 7)
    choice = random.Random(number)
    graph = random_graph(choice, stages_max=4, depth_max=2)
    order, points = PointstampOrder(graph), some_points(graph, choice, 20)
    for _ in range(20):
        some = choice.sample(points, choice.randint(0, min(5, len(points))))
        marks = order.mark(some)
        for t in points:
            assert order.is_after(t, marks) == any(order[s, t] for s in some)
            assert order.is_after(t, marks, strictly=True) == any(s != t and order[s, t] for s in some)
        assert len(order._marked) <= 7 + len(some)


def test_laws_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointstamp_order, "REMEMBERED_MAX", 10)
    graph = Graph([StageSpec("only", ROOT, 0, 0)], [])
    order, code = PointstampOrder(graph), graph.codes[0]
    for epoch in range(40):
        point = (0, code.pack((epoch,)))
        assert order[(0, 0), point] and order.images(point, (0,)) == ((epoch,),)
        assert len(order) <= 10
    assert order.name((0, code.pack((3,)))) == "'only' (stage 0) at (3,)"
