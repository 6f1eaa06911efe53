"""Arrangements in dataflows: shared by joins and reduces, at partially ordered times, on several workers.

same_*      whatever is shared with whom: the plain meaning, at every time, as soon as it is complete
once_*      what is kept, counted and merged once, and by whom
loops_*     arrangements of outer scopes, and of the variable, in loops
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest
from arranged_flows import (
    Plan,
    Watch,
    arranged_by,
    collected,
    inside_loop,
    joined,
    labels_in_a_loop,
    left,
    reduced,
    stream_of,
)
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import History, Row
from reference.dataflow import (
    Change,
    Cluster,
    TimedSourceVertex,
    check_at_times,
    nested_loops,
    run_at_times,
    timed_capture,
    timed_source,
)
from strategies_collections import NUMBERS, UNARY, examples, histories

import differential as dd
from differential import Collection, col
from differential.columns.schema import Schema
from differential.operators import join as join_module
from differential.operators.arrange import ArrangeVertex
from differential.operators.vertices import OperatorVertex
from differential.trace import run as run_module
from differential.trace import shared as shared_module
from differential.trace import trace as trace_module
from differential.trace.shared import SharedTrace
from timely.building.dataflow import Dataflow

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


@pytest.fixture(params=["all at once", "one by one"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Few rows fill a head, a run and a tail; pairs come at once, or in pieces that are put off."""
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 8)
    monkeypatch.setattr(trace_module, "HEAD_ROOM_FIRST", 2)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 10)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 10)
    monkeypatch.setattr(shared_module, "TAIL_PIECES_MAX", 1)
    if request.param == "one by one":
        monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    return str(request.param)


# same_


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_same_as_from_scratch_for_random_queries(depth: int, pieces: str) -> None:
    @examples(1)
    @given(seeds, histories(depth, size_max=8), histories(depth, size_max=8), workers, seeds)
    def holds(plan: int, left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        query = Plan(random.Random(plan), 2, 4)
        check_at_times(query.build, query.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


def _paths(edges: Collection) -> Collection:
    """Two steps: a join of one arrangement with itself."""
    by_key = arranged_by(edges.select(k=col.v, v=col.k).concat(edges), "k")
    return joined(edges, by_key, by_key).select(k=col.v, v=col.w)


def _paths_plainly(rows: Rows) -> Rows:
    both = plainly.concat(rows, plainly.map_rows(rows, lambda row: (row[1], row[0])))
    return plainly.map_rows(plainly.join(both, both), lambda row: (row[1], row[2]))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_same_for_an_arrangement_joined_with_itself(depth: int, pieces: str) -> None:
    @examples(1)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(_paths, _paths_plainly, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def _least_beside_all(source: Collection) -> Collection:
    """Each row with the least of its key: answers that are shared, joined with what they are of."""
    by_key = arranged_by(source, "k")
    least = reduced(by_key, "min")
    assert least.answers is not None
    return joined(source, least.answers, by_key).select(k=col.w, v=col.v)


def _least_beside_all_plainly(rows: Rows) -> Rows:
    least = plainly.aggregate(rows, [("min", 0)])
    return plainly.map_rows(plainly.join(least, rows), lambda row: (row[2], row[1]))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_same_for_answers_joined_with_what_they_are_of(depth: int, pieces: str) -> None:
    @examples(1)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(
            _least_beside_all, _least_beside_all_plainly, [changes], depth=depth, workers=workers, seed=seed
        )

    holds()


@pytest.mark.parametrize("number_of_workers", [2, 3])
def test_same_under_the_predicates_of_progress(number_of_workers: int, seed: int, effort: int) -> None:
    for case in range(3 * effort):
        rng = random.Random(f"{seed} {case}")
        changes: list[list[Change]] = [
            [
                (
                    (rng.randrange(3), rng.randrange(3)),
                    (rng.randrange(3), rng.randrange(3)),
                    rng.choice([1, 2, -1]),
                )
                for _ in range(8)
            ]
            for _ in range(2)
        ]
        query = Plan(rng, 2, 4)
        run_at_times(query.build, changes, depth=2, workers=number_of_workers, seed=case, monitored=True)


# loops_


def _in_a_loop(source: Collection, other: Collection) -> Collection:
    """An outer arrangement that a join and a reduce read in a loop: at iteration 1 and later as at 0."""
    by_key = arranged_by(other, "k")
    loop, inside = inside_loop(source, "around")
    later = loop.feedback()
    later.connect(stream_of(inside))
    both = inside.concat(collected(inside, later.stream, source.schema))
    entered = by_key.entered(loop)
    pairs = left(joined(inside, arranged_by(both, "k"), entered)).select(k=col.v, v=col.w)
    most = collected(inside, reduced(entered, "max", shares=False).rows, Schema.of(NUMBERS))
    return pairs.concat(left(most))


def _in_a_loop_plainly(rows: Rows, other: Rows) -> Rows:
    pairs = plainly.map_rows(plainly.join(rows, other), lambda row: (row[1], row[2]))
    return plainly.concat(pairs, pairs, plainly.aggregate(other, [("max", 0)]))


@pytest.mark.parametrize("depth", [1, 2])
def test_loops_read_an_arrangement_of_the_scope_around_them(depth: int, pieces: str) -> None:
    @examples(1)
    @given(histories(depth), histories(depth), workers, seeds)
    def holds(left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(_in_a_loop, _in_a_loop_plainly, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


@pytest.mark.parametrize("depth", [1, 2])
def test_loops_whose_variable_is_the_arrangement_of_their_result(depth: int, pieces: str) -> None:
    plain = UNARY["least label in a loop"].plain

    @examples(1)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(labels_in_a_loop, plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def _unshared_labels(source: Collection, watch: Watch) -> Collection:
    edges = source.distinct()
    own = edges.select(k=col.k, v=col.k).distinct()
    to = edges.select(k=col.k, w=col.v)
    return own.iterate(
        lambda x: (
            watch(x.join(to, on="k").select(k=col.w, v=col.v)).concat(own).group_by("k").agg(v=dd.min("v"))
        )
    )


def _watching(
    build: Callable[[Collection, Watch], Collection], seen: list[Change]
) -> Callable[[Collection], Collection]:
    """The loop, with all updates of what its join proposes in `seen`."""

    def look(row: tuple[object, ...], time: tuple[int, ...], diff: int) -> None:
        seen.append((cast(Row, row), time, diff))

    return lambda source: build(source, lambda inside: inside.inspect(look))


def _seen(
    build: Callable[[Collection, Watch], Collection],
    changes: list[Change],
    depth: int,
    workers: int,
    seed: int,
) -> History:
    seen: list[Change] = []
    run_at_times(_watching(build, seen), [changes], depth=depth, workers=workers, seed=seed)
    return plainly.history(seen)


@pytest.mark.parametrize("depth", [1, 2])
def test_loops_propose_in_each_iteration_what_unshared_ones_do(depth: int, pieces: str) -> None:
    """What leaves a loop is the same if all of it comes an iteration too early: so it is looked at inside."""

    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        builds = (labels_in_a_loop, _unshared_labels)
        shared, alone = (_seen(build, changes, depth, workers, seed) for build in builds)
        for time in plainly.closure({*shared, *alone}):
            assert plainly.accumulated_at(shared, time) == plainly.accumulated_at(alone, time), time

    holds()


# once_


def _flow(build: Callable[[Collection], Collection]) -> Cluster:
    def build_all(flow: Dataflow) -> None:
        build(dd.input(flow, "rows", NUMBERS)).output("result")

    return Cluster(build_all)


def _shared(cluster: Cluster) -> list[SharedTrace]:
    found = [
        host.vertex.traces()
        for host in cluster.instances[0].runners
        if isinstance(host.vertex, OperatorVertex) and host.vertex.arrangement is not None
    ]
    return [trace for traces in found for trace in traces if isinstance(trace, SharedTrace)]


def _three_readers(source: Collection) -> Collection:
    by_key = arranged_by(source, "k", name="arrange rows")
    pairs = joined(source, by_key, by_key).select(k=col.v, v=col.w)
    least = reduced(by_key, "min", shares=False)
    return pairs.concat(collected(source, least.rows, Schema.of(NUMBERS)))


def _change(cluster: Cluster, *rows: tuple[int, int]) -> None:
    cluster.change("rows", [(row, 1) for row in rows])
    cluster.seal()
    cluster.run()


def test_once_kept_however_many_read() -> None:
    cluster = _flow(_three_readers)
    for epoch in range(5):
        _change(cluster, (1, epoch), (2, epoch))
    (trace,) = _shared(cluster)
    assert trace.rows == 10
    counted = [
        (host.name, host.vertex.counters()["trace_rows"])
        for host in cluster.instances[0].runners
        if isinstance(host.vertex, OperatorVertex)
    ]
    assert dict(counted)["arrange rows"] == 10 and dict(counted)["join"] == 0
    assert dict(counted)["reduce min"] == trace_rows_of_answers(cluster) < 10


def trace_rows_of_answers(cluster: Cluster) -> int:
    (reduce,) = (h.vertex for h in cluster.instances[0].runners if h.name == "reduce min")
    (answers,) = cast(OperatorVertex, reduce).traces()
    return answers.rows


def test_once_merged_by_its_writer_in_idle_moments() -> None:
    cluster = _flow(_three_readers)
    (trace,) = _shared(cluster)
    settled: list[str] = []
    for host in cluster.instances[0].runners:
        if isinstance(host.vertex, OperatorVertex) and trace in host.vertex.traces():
            settled.append(host.name)
    assert settled == ["arrange rows"]


def test_once_accepted_by_all_nothing_is_in_the_tail_and_since_follows() -> None:
    cluster = _flow(_three_readers)
    for epoch in range(4):
        _change(cluster, (1, epoch), (2, 7))
    cluster.instances[0].turns.idle()
    (trace,) = _shared(cluster)
    report = trace.report()
    assert report.name == "arrange rows" and report.tail_bytes == report.pinned_bytes == 0
    assert sorted((reader.name, reader.lag) for reader in report.readers) == [
        ("join", 0),
        ("join", 0),
        ("reduce min", None),
    ]
    code = cluster.vertices("arrange rows")[0].code
    assert [code.unpack(word) for word in report.since] == [(4,)]
    trace.compact()
    assert trace.rows == 5, "(2, 7) came four times"


def test_once_nobody_can_ask_any_more_all_is_dropped() -> None:
    cluster = _flow(_three_readers)
    _change(cluster, (1, 5), (2, 7))
    (trace,) = _shared(cluster)
    assert trace.rows == 2
    cluster.close()
    cluster.run()
    assert trace.rows == 0 and cluster.instances[0].is_complete()


def test_once_one_side_is_complete_the_other_readers_go_on() -> None:
    """The join asks nothing more of the arrangement; the reduce does, and the join still accepts."""

    def build_all(flow: Dataflow) -> None:
        rows, others = dd.input(flow, "rows", NUMBERS), dd.input(flow, "others", NUMBERS)
        by_key = arranged_by(rows, "k", name="arrange rows")
        joined(rows, by_key, arranged_by(others, "k")).output("pairs")
        collected(rows, reduced(by_key, "count", shares=False).rows, Schema.of(NUMBERS)).output("counts")

    cluster = Cluster(build_all)
    cluster.change("others", [((1, 9), 1)])
    _change(cluster, (1, 5))
    cluster.instances[0].input("others").close()
    for epoch in range(20):
        cluster.change("rows", [((1, epoch + 10), 1)])
        cluster.instances[0].input("rows").seal()
        cluster.run()
    (trace,) = (each for each in _shared(cluster) if each.name == "arrange rows")
    assert trace.rows == 21 and trace.report().tail_bytes == 0
    assert sum(cluster.snapshot("pairs").values()) == 21
    assert cluster.snapshot("counts") == {(1, 21): 1}


def test_once_for_each_minimal_time_there_is_an_insert_and_nothing_is_held() -> None:
    def build_all(flow: Dataflow) -> None:
        timed_capture(_three_readers(timed_source(flow, "source", NUMBERS, nested_loops(flow, 2))))

    cluster = Cluster(build_all)
    cluster.instances[0].input("start of source").send([0])
    cluster.close()
    cluster.run()
    source = cast(TimedSourceVertex, cluster.vertices("source")[0])
    source.emit([((1, 1), (2, 0), 1), ((1, 2), (0, 2), 1), ((1, 3), (2, 3), 1)], source.held[0])
    cluster.run()
    (trace,) = _shared(cluster)
    assert trace.sequence == 2, "(2, 0) and (0, 2)"
    (host,) = (h for h in cluster.instances[0].runners if isinstance(h.vertex, ArrangeVertex))
    assert host.held_words() == {}
