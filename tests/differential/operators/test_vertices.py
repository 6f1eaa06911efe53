"""operators/vertices.py: the machines of join, reduce and consolidate in a dataflow.

holds_*     exactly the capabilities at which something may still be sent
envelope_*  rows go out under the minimal ones of their times
memory_*    a window that slides for long takes no more room than one that slid for a while
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import groupby
from typing import cast

import numpy as np
import pytest
from reference import collection as plainly
from reference.collection import History, Time, history
from reference.dataflow import (
    Build,
    Change,
    Cluster,
    TimedCaptureVertex,
    TimedSourceVertex,
    check_at_times,
    compact_traces,
    nested_loops,
    timed_capture,
    timed_source,
    trace_rows,
    traces,
)
from strategies_collections import NUMBERS

import differential as dd
import timely
from differential import Collection, col
from differential.algorithms import connected_components
from differential.operators import join as join_module
from differential.operators.join_vertex import JoinVertex
from differential.operators.vertices import MachineVertex, OperatorVertex
from timely.building.dataflow import Dataflow


class _Steps:
    """One operator at times (epoch, i), on one worker, moved by hand."""

    def __init__(self, build: Build, inputs: int = 1) -> None:
        def build_all(flow: Dataflow) -> None:
            loops = nested_loops(flow, 2)
            sources = [timed_source(flow, f"source {n}", NUMBERS, loops) for n in range(inputs)]
            timed_capture(build(*sources))

        self.cluster = Cluster(build_all)
        for handle in self.cluster.instances[0].inputs.values():
            handle.send([0])
            handle.close()
        self.cluster.run()
        self.sources = [
            cast(TimedSourceVertex, self.cluster.vertices(f"source {n}")[0]) for n in range(inputs)
        ]
        self.capture = cast(TimedCaptureVertex, self.cluster.vertices("capture")[0])

    def emit(self, *changes: Change, source: int = 0) -> None:
        self.sources[source].emit(changes, self.sources[source].held[0])
        self.cluster.run()

    def move_to(self, *times: Time, source: int = 0) -> None:
        self.sources[source].move_to(times)
        self.cluster.run()

    def held(self) -> list[Time]:
        """What all operators together hold."""
        runners = self.cluster.instances[0].runners
        operators = [runner for runner in runners if isinstance(runner.vertex, OperatorVertex)]
        return sorted(runner.code.unpack(word) for runner in operators for word in runner.held_words())

    def sent(self) -> History:
        return history(self.capture.changes)


# holds_


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c.distinct(),
        lambda c: c.group_by("k").agg(v=dd.min("v")),
        lambda c: c.group_by("k").agg(v=dd.count()),
        lambda c: c.group_by("k").reduce(lambda key, rows: [1], "v: int"),
    ],
    ids=["distinct", "min", "count", "reduce"],
)
def test_holds_an_interesting_time_at_which_nothing_arrived(
    build: Callable[[Collection], Collection],
) -> None:
    """+1 at (1, 0) and -1 at (0, 1): all that came in is answered, and (1, 1) still to be corrected."""
    steps = _Steps(build)
    steps.emit(((1, 1), (1, 0), 1), ((1, 1), (0, 1), -1))
    assert steps.held() == [(0, 1), (1, 0)]
    steps.move_to((1, 1))
    assert steps.held() == [(1, 1)]
    assert not steps.capture.is_complete((1, 1)) and steps.capture.is_complete((1, 0))
    before = steps.sent()
    assert (1, 1) not in before and (1, 0) in before
    steps.move_to()
    assert steps.held() == []
    assert plainly.accumulated_at(steps.sent(), (1, 1)) == plainly.collection([])
    assert steps.cluster.instances[0].is_complete()


def test_holds_only_the_minimal_ones_of_the_times_that_wait() -> None:
    for build in (lambda c: c.consolidate(), lambda c: c.distinct()):
        steps = _Steps(build)
        steps.emit(((1, 1), (2, 0), 1), ((1, 2), (2, 5), 1), ((2, 2), (0, 3), 1), ((2, 2), (1, 3), 1))
        assert steps.held() == [(0, 3), (2, 0)]
        steps.move_to((2, 1), (0, 4))
        assert steps.held() == [(2, 5)]
        steps.move_to()
        assert steps.held() == []


def test_holds_nothing_for_a_join() -> None:
    """Pairs go out in the activation that made them."""
    steps = _Steps(BUILD_JOIN, inputs=2)
    steps.emit(((1, 1), (2, 0), 1))
    steps.emit(((1, 2), (0, 2), 1), source=1)
    assert steps.held() == [] and steps.sent() == {(2, 2): plainly.collection([(2, 1)])}


def test_holds_the_times_of_what_a_join_has_not_sent_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pieces; rows that come in between wait, and are held for, too."""
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    steps = _Steps(BUILD_JOIN, inputs=2)
    steps.emit(*[((1, value), (0, 0), 1) for value in range(3)])
    left, right = steps.sources
    code = steps.capture.code
    right.emit([((1, 7), (1, 2), 1), ((1, 8), (1, 1), 1), ((1, 9), (2, 0), 1)], right.held[0])
    (join,) = (
        runner for runner in steps.cluster.instances[0].runners if isinstance(runner.vertex, JoinVertex)
    )
    right.move_to([(3, 0)])
    held: list[list[Time]] = []
    sent: list[int] = []
    worker = steps.cluster.workers[0]
    while worker.step():
        held.append(sorted(code.unpack(word) for word in join.held_words()))
        sent.append(sum(sum(rows.values()) for rows in steps.sent().values()))
        if len(held) == 1:
            left.emit([((1, 5), (4, 0), 1)], left.held[0])
    changed = [part for part, _ in groupby(held)]
    assert changed == [[(1, 1), (2, 0)], [(2, 0)], [(4, 0)], []]
    assert [part for part, _ in groupby(sent)] == [3, 6, 9, 12], "a piece is taken before the next is made"


@pytest.mark.parametrize("workers", [1, 2])
def test_holds_while_a_join_is_cut_change_nothing(
    workers: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 2)
    rng = random.Random(seed)
    for trial in range(4 * effort):
        changes: list[list[Change]] = [
            [
                (
                    (rng.randrange(2), rng.randrange(3)),
                    (rng.randrange(3), rng.randrange(3)),
                    rng.choice([1, -1, 2]),
                )
                for _ in range(8)
            ]
            for _ in range(2)
        ]

        def plain(left: plainly.Collection, right: plainly.Collection) -> plainly.Collection:
            return plainly.map_rows(plainly.join(left, right), lambda row: (row[2], row[1]))

        check_at_times(BUILD_JOIN, plain, changes, depth=2, seed=trial, workers=workers)


def BUILD_JOIN(left: Collection, right: Collection) -> Collection:
    return left.join(right.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)


# envelope_


def test_envelope_is_each_minimal_time_of_the_rows() -> None:
    seen: list[tuple[Time, list[Time]]] = []
    steps = _Steps(BUILD_JOIN, inputs=2)
    original = steps.capture.recv_all

    def watch(port: int, messages: list[tuple[int, object]]) -> None:
        for word, batch in messages:
            times = [steps.capture.code.unpack(time) for time in batch.words[-2].tolist()]  # type: ignore[attr-defined]
            seen.append((steps.capture.code.unpack(word), sorted(times)))
        original(port, messages)  # type: ignore[arg-type]

    steps.capture.recv_all = watch  # type: ignore[method-assign,assignment]
    steps.emit(((1, 1), (2, 0), 1), ((1, 2), (0, 2), 1), ((1, 3), (2, 3), 1))
    steps.emit(((1, 5), (0, 0), 1), source=1)
    assert sorted(seen) == [((0, 2), [(0, 2), (2, 3)]), ((2, 0), [(2, 0)])]


# memory_


def _window_queries(flow: Dataflow) -> None:
    edges = dd.input(flow, "edges", "src: int, dst: int")
    connected_components(edges).output("components")
    edges.group_by("src").agg(n=dd.count()).output("degrees")
    edges.join(edges.select(dst=col.src, next=col.dst), on="dst").distinct().output("paths")


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_of_a_window_that_slides_for_long_does_not_grow(workers: int) -> None:
    """90 slides by a tenth of the window, which is replaced nine times over."""
    slides, slide, window = 90, 30, 300
    cluster = Cluster(_window_queries, workers)
    rng = random.Random(7)
    inside: list[tuple[int, int]] = []
    held: list[int] = []
    for epoch in range(slides):
        come = [(rng.randrange(window), rng.randrange(window)) for _ in range(slide)]
        inside += come
        go, inside = inside[: max(0, len(inside) - window)], inside[max(0, len(inside) - window) :]
        cluster.change(
            "edges", [(row, 1) for row in come] + [(row, -1) for row in go], worker=epoch % workers
        )
        cluster.seal()
        cluster.run()
        held.append(trace_rows(cluster))
    third = slides // 3
    assert max(held[2 * third :]) < 1.3 * max(held[third : 2 * third])
    compact_traces(cluster)
    needed = trace_rows(cluster)
    heads = sum(len(each) for instance in cluster.instances for each in traces(instance).values())
    assert max(held[third:]) < 3 * needed + 1024 * heads
    _check_traces(cluster)


def _check_traces(cluster: Cluster) -> None:
    for instance in cluster.instances:
        for each in traces(instance).values():
            for trace in each:
                trace.check_invariants()


def test_memory_is_empty_once_everything_was_removed_again() -> None:
    cluster = Cluster(_window_queries, workers=2, seed=3)
    rows = [(number, (number * 7) % 50) for number in range(50)]
    cluster.change("edges", [(row, 1) for row in rows])
    cluster.seal()
    cluster.run()
    assert trace_rows(cluster) > 0
    cluster.change("edges", [(row, -1) for row in rows], worker=1)
    cluster.seal()
    cluster.run()
    for name in ("components", "degrees", "paths"):
        assert not cluster.snapshot(name)
    compact_traces(cluster)
    assert trace_rows(cluster) == 0


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_memory_is_given_back_when_no_row_can_come_any_more(workers: int) -> None:
    def build(flow: timely.Dataflow) -> None:
        pairs = dd.input(flow, "pairs", "x: int, y: int")
        pairs.distinct().output("distinct")
        pairs.group_by("x").agg(n=dd.count(), least=dd.min("y")).output("groups")

    def held(cluster: timely.Cluster) -> int:
        stages = [
            stage
            for counted in cluster.stats()
            for dataflow in cast(dict[int, dict[str, list[dict[str, int]]]], counted["dataflows"]).values()
            for stage in dataflow["stages"]
        ]
        return sum(stage.get("trace_rows", 0) for stage in stages)

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("pairs").insert([(n % 7, n) for n in range(100)])
        flow.seal()
        assert held(cluster) > 200
        flow.input("pairs").insert([(1, 1000)])
        flow.input("pairs").close()
        assert held(cluster) == 0
        assert flow.output("distinct").snapshot().num_rows == 101


def test_memory_is_counted_for_clients() -> None:
    cluster = Cluster(_window_queries)
    cluster.change("edges", [((1, 2), 1), ((2, 3), 1)])
    cluster.seal()
    cluster.run()
    runners = [runner for runner in cluster.instances[0].runners if isinstance(runner.vertex, OperatorVertex)]
    counted = [runner.vertex.counters() for runner in runners if runner.vertex is not None]
    assert sum(counters["trace_rows"] for counters in counted) == trace_rows(cluster)
    assert all(counters["trace_bytes"] >= 0 for counters in counted)


def test_memory_a_consolidation_keeps_no_trace() -> None:
    steps = _Steps(lambda c: c.consolidate())
    steps.emit(((1, 1), (0, 0), 1))
    steps.move_to()
    assert traces(steps.cluster.instances[0]) == {}
    assert isinstance(steps.cluster.vertices("consolidate")[0], MachineVertex)
    assert np.array_equal(sorted(steps.sent()), [(0, 0)])
