"""units_vertex.py: what a vertex of units keeps and lets go, and what errors say."""

from __future__ import annotations

import pytest
from reference.dataflow import Cluster
from reference.skew.spread_runs import HASHES, SpreadRun

import differential as dd
import timely
from differential.skew.running.units import ARRIVED, KEPT_ROWS
from differential.skew.running.units_vertex import UnitsVertex
from progress.times.anchor import EPOCH_MAX
from timely.errors import MisuseError
from timely.routing.announcement import KEY, Announcement, RoutingCell, RoutingChanges
from timely.routing.grid import Grid

NAME = "join on k in units"


def _vertices(cluster: Cluster) -> list[UnitsVertex]:
    found = cluster.vertices(NAME)
    assert all(isinstance(vertex, UnitsVertex) for vertex in found)
    return [vertex for vertex in found if isinstance(vertex, UnitsVertex)]


def _rows(cluster: Cluster) -> list[int]:
    return [vertex.counters()["trace_rows"] for vertex in _vertices(cluster)]


def _announce(cluster: Cluster, changes: RoutingChanges, epoch: int) -> None:
    cluster.change("routes", [(tuple(row), 1) for row in changes.announcements()], epoch)


def test_rows_go_to_the_worker_of_their_new_unit_and_nothing_stays_behind() -> None:
    cluster = Cluster(SpreadRun(0, "D-JB").build, 2)
    cluster.change("a", [((0, value), 1) for value in range(10)], 0)
    _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(0)}), 0)
    _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(1)}), 3)
    for epoch, wanted in ((2, [10, 0]), (3, [10, 0]), (5, [0, 10])):
        cluster.seal(epoch)
        cluster.run()
        for worker in (0, 1):
            cluster.compact(worker)
        assert _rows(cluster) == wanted


def test_nothing_is_kept_once_all_inputs_are_closed() -> None:
    cluster = Cluster(SpreadRun(0, "JB6").build, 2)
    cluster.change("a", [((0, value), 1) for value in range(10)], 0)
    cluster.change("b", [((0, value), 1) for value in range(10)], 0)
    cluster.close()
    cluster.run()
    assert cluster.snapshot("pairs").total() == 100 and _rows(cluster) == [0, 0]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("lead", [0, 5, 1000])
def test_ends_when_inputs_close_before_a_version_of_which_there_are_no_words_yet(
    workers: int, lead: int
) -> None:
    cluster = Cluster(SpreadRun(0, "D-JB", lead, bits=3).build, workers)
    cluster.change("a", [((0, 1), 1)], 0)
    _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(3)}), 2)
    cluster.seal(1)
    cluster.run()
    cluster.change("b", [((0, 7), 1)], 3)
    cluster.close()
    cluster.run()
    assert all(instance.is_complete() for instance in cluster.instances)
    assert cluster.snapshot("pairs") == {(0, 1, 7): 1}
    loads = cluster.changes("loads").items()
    moved = [epoch for (epoch,), rows in loads if any(row[3] == ARRIVED for row in rows)]
    assert moved == [2 + lead] and _rows(cluster) == [0] * workers


def test_a_version_for_which_there_will_never_be_rows_holds_nothing() -> None:
    cluster = Cluster(SpreadRun(0, "D-JB", 1000, bits=3).build)
    cluster.change("a", [((0, 1), 1)], 0)
    cluster.seal(EPOCH_MAX - 999)
    cluster.run()
    _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(3)}), EPOCH_MAX - 998)
    cluster.seal(EPOCH_MAX - 998)
    cluster.run()
    assert cluster.instances[0].epochs_done() == EPOCH_MAX - 997
    cluster.close()
    cluster.run()
    assert cluster.instances[0].is_complete()


def test_loads_say_what_moves_when_the_other_side_is_closed_already() -> None:
    cluster = Cluster(SpreadRun(0, "D-JB", 1).build, 2)
    cluster.change("a", [((0, value), 1) for value in range(10)], 0)
    _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(0)}), 0)
    cluster.seal(0)
    for instance in cluster.instances:
        instance.input("b").close()
    cluster.run()
    for epoch, unit in ((2, 1), (4, 2)):
        _announce(cluster, RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(unit)}), epoch)
        for instance in cluster.instances:
            for name in ("a", "routes"):
                instance.input(name).seal(epoch + 1)
        cluster.run()
        kept = {row[1]: count for row, count in cluster.snapshot("loads").items() if row[3] == KEPT_ROWS}
        assert kept == {unit: 10} and sum(_rows(cluster)) > 0
    cluster.close()
    cluster.run()
    assert _rows(cluster) == [0, 0]


def test_texts_of_rows_that_have_moved_are_known_where_they_are() -> None:
    def build(flow: object) -> None:
        import differential as dd
        from timely.building.dataflow import Dataflow

        assert isinstance(flow, Dataflow)
        a, b = dd.input(flow, "a", "k: string, v: string"), dd.input(flow, "b", "k: string, w: string")
        routed = dd.Routed(dd.Balance("JB", units=4), dd.announcements(flow))
        a.join(b, on="k", balance=routed).output("pairs")

    cluster = Cluster(build, 2, own_symbols=True)
    cluster.change("a", [(("key", f"value {n}"), 1) for n in range(8)], 0, 1)
    _announce(cluster, RoutingChanges(None, {RoutingCell(2, 0, 0): Grid.alone(0)}), 0)
    _announce(cluster, RoutingChanges(None, {RoutingCell(2, 0, 0): Grid.alone(1)}), 1)
    cluster.seal(5)
    cluster.run()
    cluster.change("b", [(("key", "other"), 1)], 6)
    cluster.seal(6)
    cluster.run()
    assert cluster.snapshot("pairs") == {("key", f"value {n}", "other"): 1 for n in range(8)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([Announcement(KEY, 0, 5, 0, 0, 2**63 - 1, 2**63 - 1, 99)], "unit 99"),
        ([Announcement(7, 0, 5, 0, 0, 2**63 - 1, 2**63 - 1, 1)], "scope"),
    ],
)
def test_announcements_that_cannot_be_end_the_dataflow_with_their_epoch(
    rows: list[Announcement], message: str
) -> None:
    cluster = Cluster(SpreadRun(0, "D-JB").build)
    cluster.change("routes", [(tuple(row), 1) for row in rows], 4)
    cluster.seal(4)
    with pytest.raises(MisuseError, match=f"announcements of epoch 4: .*{message}"):
        cluster.run()


@pytest.mark.parametrize("workers", [1, 2])
def test_epochs_may_go_as_far_as_anywhere_and_what_was_kept_is_found(workers: int) -> None:
    def build(flow: timely.Dataflow) -> None:
        a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
        routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow))
        a.join(b, on="k", balance=routed).output("pairs")

    pairs = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for turn in range(1, 4):
            flow.input("a").insert([(1, turn)])
            flow.input("b").insert([(1, -turn)])
            moved = RoutingChanges(None, {RoutingCell(KEY, 0, dd.key_hash([1], "k: int")): Grid.alone(turn)})
            flow.input("routes").insert([tuple(row) for row in moved.announcements()])
            flow.seal(through=turn << 40)
            pairs += [(1, turn, -other) for other in range(1, turn)]
            pairs += [(1, other, -turn) for other in range(1, turn + 1)]
            found = flow.output("pairs").snapshot().to_pylist()
            assert sorted((row["k"], row["v"], row["w"]) for row in found) == sorted(pairs)
        with pytest.raises(MisuseError, match=f"announcements of epoch {(3 << 40) + 1}: .*unit 99"):
            flow.input("routes").insert([(KEY, 0, 5, 0, 0, 2**63 - 1, 2**63 - 1, 99)])
            flow.seal()
            flow.wait()
