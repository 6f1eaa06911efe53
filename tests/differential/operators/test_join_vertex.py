"""operators/join_vertex.py: joins in a dataflow. What they answer: test_collection.py, test_sharing.py.

adopts_*   a join writes its rows in the layout that its only receiver wants
looks_*    what it still asks about follows its frontiers where merges begin, and ends with them
pieces_*   pairs that are too many for one activation
gathers_*  many rows wait until their epoch is complete, and are taken up together
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest
from reference import collection as plainly
from reference.dataflow import (
    Change,
    Cluster,
    TimedCaptureVertex,
    TimedSourceVertex,
    check_at_times,
    nested_loops,
    timed_capture,
    timed_source,
    trace_rows,
)
from strategies_collections import NUMBERS
from words_seen import Seen

import differential as dd
from differential import Collection, col
from differential.columns.packed.parts import Part
from differential.operators import join as join_module
from differential.operators import join_vertex as join_vertex_module
from differential.operators.join_vertex import JoinVertex
from differential.operators.waiting import gathered as gathered_module
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark


def _join_connectors(build: Callable[[Collection, Collection], list[Collection]]) -> list[object]:
    def build_all(flow: Dataflow) -> None:
        inputs = [dd.input(flow, name, NUMBERS) for name in ("left", "right")]
        for number, result in enumerate(build(*inputs)):
            result.output(f"result {number}")

    runners = Cluster(build_all).instances[0].runners
    (join,) = (runner for runner in runners if isinstance(runner.vertex, JoinVertex))
    return [connector.transform for connector in join.outputs[0]]


def _joined(left: Collection, right: Collection) -> Collection:
    return left.join(right.select(k=col.k, w=col.v), on="k")


def test_adopts_the_projection_of_its_only_receiver() -> None:
    assert _join_connectors(lambda a, b: [_joined(a, b).select(v=col.w, one=1, k=col.v)]) == [None]


def test_adopts_nothing_that_computes_negates_or_is_not_the_same_for_all() -> None:
    for build in (
        lambda a, b: [_joined(a, b).select(k=col.v + 1)],
        lambda a, b: [_joined(a, b).filter(col.v > col.w).select(k=col.v)],
        lambda a, b: [_joined(a, b).negate().select(k=col.v)],
    ):
        assert None not in _join_connectors(build)

    def two(a: Collection, b: Collection) -> list[Collection]:
        joined = _joined(a, b)
        return [joined.select(k=col.v), joined.select(k=col.w)]

    assert None not in _join_connectors(two)


@pytest.mark.parametrize("sign", [1, -1])
def test_adopts_without_changing_the_result(sign: int) -> None:
    changes: list[list[Change]] = [
        [((1, 2), (0, 1), 1), ((1, 3), (1, 0), 2), ((2, 2), (0, 0), 1)],
        [((1, 7), (0, 0), 1), ((2, 8), (1, 1), -1), ((1, 9), (0, 2), 3)],
    ]

    def build(left: Collection, right: Collection) -> Collection:
        joined = _joined(left, right).select(v=col.w, five=5, k=col.v, key=col.k)
        return joined if sign == 1 else joined.negate()

    def plain(left: plainly.Collection, right: plainly.Collection) -> plainly.Collection:
        found = plainly.map_rows(plainly.join(left, right), lambda row: (row[2], 5, row[1], row[0]))
        return found if sign == 1 else plainly.negate(found)

    for seed in range(5):
        check_at_times(build, plain, changes, depth=2, seed=seed)


def test_adopts_also_where_a_side_is_kept_wider_than_it_needs() -> None:
    def build(left: Collection, right: Collection) -> list[Collection]:
        wide = left.arrange("k")
        narrow = wide.select("k").join(right.select(k=col.k, w=col.v), on="k")
        return [narrow.select(x=col.w, one=1, y=col.k), _joined(wide, right).select(k=col.v + 1)]

    def build_all(flow: Dataflow) -> None:
        inputs = [dd.input(flow, name, NUMBERS) for name in ("left", "right")]
        for number, result in enumerate(build(*inputs)):
            result.output(f"result {number}")

    cluster = Cluster(build_all)
    cluster.change("left", [((1, 5), 1), ((1, 6), 2)])
    cluster.change("right", [((1, 8), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result 0") == {(8, 1, 1): 3}
    assert cluster.snapshot("result 1") == {(6,): 1, (7,): 2}


# looks_


def _join_of(cluster: Cluster) -> JoinVertex:
    (join,) = (r.vertex for r in cluster.instances[0].runners if isinstance(r.vertex, JoinVertex))
    return join


def _two_inputs() -> Cluster:
    def build(flow: Dataflow) -> None:
        _joined(*(dd.input(flow, name, NUMBERS) for name in ("left", "right"))).output("result")

    return Cluster(build)


def test_looks_where_merges_begin_and_forgets_what_is_past() -> None:
    cluster = _two_inputs()
    for _ in range(9):
        cluster.change("left", [((1, 1), 1)])
        cluster.seal()
        cluster.run()
    left, right = _join_of(cluster).traces()
    assert left.rows == 9 and right.rows == 0
    left.compact()
    assert left.rows == 1, "nine epochs are one, as nobody will ask about them apart"
    cluster.change("right", [((1, 4), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("result") == {(1, 1, 4): 9}


def test_looks_at_the_end_of_an_input_and_keeps_no_more_for_it() -> None:
    cluster = _two_inputs()
    cluster.change("left", [((1, 1), 1)])
    cluster.seal()
    cluster.run()
    cluster.instances[0].input("right").close()
    cluster.run()
    (kept,) = _join_of(cluster).traces()
    assert kept.rows == 0, "rows of the left meet nothing any more; what is left is the side of the right"


# pieces_


def test_pieces_hold_back_who_reads_until_the_last_one_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 10)
    cluster = _two_inputs()
    for name in ("left", "right"):
        cluster.change(name, [((1, number), 1) for number in range(9)])
    cluster.seal()
    result = cluster.instances[0].output("result")
    met = 0
    while cluster.workers[0].step():
        if not _join_of(cluster).machine.is_done:
            met += 1
            assert result.complete_before == 0
    assert met > 3
    assert result.complete_before == 1
    assert len(cluster.snapshot("result")) == 81


# gathers_


@pytest.fixture
def _gathers_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_vertex_module, "GATHERED_ROWS_MIN", 0)


@pytest.mark.usefixtures("_gathers_all")
@pytest.mark.parametrize("workers", [1, 2])
def test_gathers_without_changing_the_result_at_any_time(workers: int) -> None:
    rng = random.Random(5)
    for seed in range(12):
        changes: list[list[Change]] = [
            [
                (
                    (rng.randrange(3), rng.randrange(3)),
                    (rng.randrange(3), rng.randrange(3)),
                    rng.choice([1, 2, -1]),
                )
                for _ in range(rng.randrange(1, 12))
            ]
            for _ in range(2)
        ]

        def plain(left: plainly.Collection, right: plainly.Collection) -> plainly.Collection:
            return plainly.map_rows(plainly.join(left, right), lambda row: (row[0], row[1], row[2]))

        check_at_times(_joined, plain, changes, depth=2, workers=workers, seed=seed)


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_beside_an_arrangement_that_others_read_too() -> None:
    changes: list[list[Change]] = [
        [((1, 2), (0, 1), 1), ((1, 3), (1, 0), 2), ((2, 2), (0, 0), 1)],
        [((1, 7), (0, 0), 1), ((2, 8), (1, 1), -1), ((1, 9), (0, 2), 3)],
    ]

    def build(left: Collection, right: Collection) -> Collection:
        kept = left.arrange("k")
        return _joined(kept, right).concat(_joined(kept, right.negate())).concat(_joined(kept, right))

    for seed in range(8):
        check_at_times(
            build,
            lambda a, b: plainly.map_rows(plainly.join(a, b), lambda row: (row[0], row[1], row[2])),
            changes,
            depth=2,
            seed=seed,
        )


def _many_at_two_workers(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Three rows and more at once wait."""
    monkeypatch.setattr(join_vertex_module, "GATHERED_ROWS_MIN", 3)

    def build(flow: Dataflow) -> None:
        _joined(*(dd.input(flow, name, NUMBERS) for name in ("left", "right"))).output("result")

    cluster = Cluster(build, workers=2)
    for worker in (0, 1):
        for name in ("left", "right"):
            cluster.change(name, [((key, worker), 1) for key in range(40)], worker=worker)
    cluster.seal()
    return cluster


def _joins_of(cluster: Cluster) -> list[JoinVertex]:
    return [r.vertex for one in cluster.instances for r in one.runners if isinstance(r.vertex, JoinVertex)]


def test_gathers_what_workers_load_into_one_run_of_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    inserted: list[int] = []
    insert = Trace.insert

    def insert_and_tell(trace: Trace, words: Int64s) -> None:
        inserted.append(words.shape[1])
        insert(trace, words)

    monkeypatch.setattr(Trace, "insert", insert_and_tell)
    cluster = _many_at_two_workers(monkeypatch)
    met = 0
    while cluster.step(0) + cluster.step(1) or cluster.network.in_flight():
        met += sum(map(bool, (join._gathered for join in _joins_of(cluster))))
    assert met > 0
    assert len(cluster.snapshot("result")) == 40 * 4
    assert all(join.machine.is_done and not join._gathered for join in _joins_of(cluster))
    of_joins = [
        rows for rows in inserted if rows in {trace.rows for j in _joins_of(cluster) for trace in j.traces()}
    ]
    assert sum(of_joins) == 4 * 40, "each side of each worker is inserted once"


def test_gathers_no_more_than_is_enough_and_then_takes_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_module, "GATHERED_ROWS_MAX", 10)
    cluster = _many_at_two_workers(monkeypatch)
    while cluster.step(0) + cluster.step(1) or cluster.network.in_flight():
        assert all(join._gathered.rows < 10 for join in _joins_of(cluster))
    assert len(cluster.snapshot("result")) == 40 * 4


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_only_what_is_not_complete_and_forgets_nothing_meanwhile() -> None:
    """One side is complete for long, and its rows wait for the other side."""
    cluster = _two_inputs()
    cluster.change("left", [((1, 1), 1), ((1, 2), 1)])
    cluster.instances[0].input("left").seal(4)
    cluster.run()
    join = _join_of(cluster)
    assert join._gathered.rows == 2 and trace_rows(cluster) == 0
    cluster.change("right", [((1, 5), 1)])
    cluster.seal(4)
    cluster.run()
    assert not join._gathered
    assert cluster.snapshot("result") == {(1, 1, 5): 1, (1, 2, 5): 1}
    assert cluster.changes("result").keys() == {(0,)}


@pytest.mark.usefixtures("_gathers_all")
@pytest.mark.parametrize("sizes", [(30, 2), (2, 30), (5, 6)])
def test_gathers_and_looks_few_rows_up_in_many(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int]
) -> None:
    """Where there are about as many, those of the left in the right one's: pairs come in order then."""
    cluster, order = _two_inputs(), list[int]()
    join = _join_of(cluster)
    accept = join.machine.recv_parts

    def accept_and_tell(port: int, parts: list[Part]) -> Int64s:
        order.append(port)
        return accept(port, parts)

    monkeypatch.setattr(join.machine, "recv_parts", accept_and_tell)
    for name, rows in zip(("left", "right"), sizes, strict=True):
        cluster.change(name, [((number % 3, number), 1) for number in range(rows)])
    cluster.seal()
    cluster.run()
    assert order == ([0, 1] if sizes[0] > 4 * sizes[1] else [1, 0])
    assert len(cluster.snapshot("result")) == sum(
        a % 3 == b % 3 for a in range(sizes[0]) for b in range(sizes[1])
    )


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_also_where_an_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _two_inputs()
    for name in ("left", "right"):
        cluster.change(name, [((1, 1), 1)])
    cluster.close()
    cluster.run()
    assert cluster.snapshot("result") == {(1, 1, 1): 1}
    assert _join_of(cluster).traces() == []


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_nothing_in_the_midst_of_a_loop() -> None:
    cluster, left, right = _emitting()
    left.emit([((1, 1), (0, 1), 1)], (0, 1))
    cluster.run()
    assert not _join_of(cluster)._gathered and trace_rows(cluster) == 1
    right.emit([((1, 1), (0, 0), 1)], (0, 0))
    cluster.run()
    assert _join_of(cluster)._gathered.rows == 1 and trace_rows(cluster) == 1


def _emitting() -> tuple[Cluster, TimedSourceVertex, TimedSourceVertex]:
    """Two sources in a loop, of which a join keeps what comes in until it is told."""

    def build(flow: Dataflow) -> None:
        loops = nested_loops(flow, 2)
        sides = [timed_source(flow, f"source {n}", NUMBERS, loops) for n in range(2)]
        timed_capture(_joined(*sides))

    cluster = Cluster(build)
    for handle in cluster.instances[0].inputs.values():
        handle.send([0])
        handle.close()
    cluster.run()
    left, right = (cast("TimedSourceVertex", cluster.vertices(f"source {n}")[0]) for n in range(2))
    return cluster, left, right


def _captured(cluster: Cluster) -> plainly.History:
    (capture,) = cluster.vertices("capture")
    assert isinstance(capture, TimedCaptureVertex)
    return plainly.history(capture.changes)


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_and_holds_the_times_of_all_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes at a time that is not before the others makes it too much: all is sent, each at its time."""
    monkeypatch.setattr(gathered_module, "GATHERED_ROWS_MAX", 3)
    cluster, left, right = _emitting()
    left.emit([((1, 1), (0, 0), 1)], (0, 0))
    cluster.run()
    right.emit([((1, 2), (0, 1), 1)], (0, 1))
    cluster.run()
    assert _join_of(cluster)._gathered.rows == 2
    left.emit([((2, 1), (1, 0), 1)], (1, 0))
    cluster.run()
    assert not _join_of(cluster)._gathered
    assert _captured(cluster) == {(0, 1): {(1, 1, 2): 1}}


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_what_comes_behind_though_it_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, left, right = _emitting()
    monkeypatch.setattr(join_vertex_module, "GATHERED_ROWS_MIN", 2)
    left.emit([((1, 1), (0, 0), 1), ((1, 2), (0, 0), 1)], (0, 0))
    cluster.run()
    right.emit([((1, 7), (0, 0), 1)], (0, 0))
    cluster.run()
    assert _join_of(cluster)._gathered.rows == 3 and trace_rows(cluster) == 0


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_what_waits_while_words_begin_to_count_from_a_later_epoch() -> None:
    def build(flow: Dataflow) -> None:
        _joined(*(dd.input(flow, name, NUMBERS) for name in ("left", "right"))).output("result")

    cluster = Cluster(build)
    instance = cluster.instances[0]
    window = instance.frozen.layout.window
    near, far = window - 2, window + 2
    cluster.seal(near - 1)
    cluster.change("left", [((1, 1), 1)])
    instance.input("left").seal(near)
    cluster.run()
    assert _join_of(cluster)._gathered.rows == 1 and instance.anchor.epoch == 0
    cluster.change("left", [((1, 2), 1)], epoch=far)
    instance.input("left").seal(far)
    cluster.run()
    assert _join_of(cluster)._gathered.rows == 2 and instance.anchor.epoch > 0
    cluster.change("right", [((1, 5), 1)])
    cluster.seal(far)
    cluster.run()
    assert cluster.changes("result") == {(near,): {(1, 1, 5): 1}, (far,): {(1, 2, 5): 1}}


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_and_forgets_at_last_what_an_input_that_has_ended_meanwhile_would_ask_for() -> None:
    cluster = _two_inputs()
    cluster.change("left", [((1, 1), 1)])
    cluster.instances[0].input("left").close()
    cluster.run()
    join = _join_of(cluster)
    left, _ = join.traces()
    assert join._gathered.rows == 1
    cluster.change("right", [((1, 4), 1)])
    cluster.instances[0].input("right").seal()
    cluster.run()
    assert join.traces() == [left] and left.rows == 1
    assert cluster.snapshot("result") == {(1, 1, 4): 1}


@pytest.mark.usefixtures("_gathers_all")
def test_gathers_and_shows_all_words_meanwhile() -> None:
    cluster, left, _ = _emitting()
    left.emit([((17, 23), (0, 0), 1)], (0, 0))
    cluster.run()
    seen = Seen()
    _join_of(cluster).symbols(Mark([seen]))
    assert seen.words == {17, 23}
