"""router.py: rows wait for the version of their epoch, and go by that of their own."""

from __future__ import annotations

from reference.dataflow import Cluster
from reference.skew.spread_runs import HASHES, SpreadRun, seal_apart

from differential.skew.running.router import UnitRouterVertex
from timely.routing.announcement import KEY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid

NAME = "join on k: left to units"


def _counters(cluster: Cluster) -> dict[str, int]:
    found = cluster.vertices(NAME)[0]
    assert isinstance(found, UnitRouterVertex)
    return found.counters()


def _waiting(cluster: Cluster) -> int:
    return _counters(cluster)["epochs_waiting"]


def test_rows_wait_until_the_announcements_of_lead_epochs_before_are_sealed() -> None:
    cluster = Cluster(SpreadRun(0, "D-JB", lead=2).build)
    for epoch in range(5):
        cluster.change("a", [((0, epoch), 1)], epoch)
    seal_apart(cluster, 4, -1)
    cluster.run()
    assert _waiting(cluster) == 3, "those of 0 and 1 have left: nothing announced can be about them"
    for sealed in range(3):
        seal_apart(cluster, 4, sealed)
        cluster.run()
        assert _waiting(cluster) == 2 - sealed


def test_versions_are_forgotten_as_they_come_when_there_will_be_no_rows() -> None:
    cluster = Cluster(SpreadRun(0, "D-JB", lead=1).build)
    cluster.instances[0].input("a").close()
    for epoch in range(20):
        moved = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(epoch % 5)})
        cluster.change("routes", [(tuple(row), 1) for row in moved.announcements()], epoch)
        for name in ("b", "routes"):
            cluster.instances[0].input(name).seal(epoch)
        cluster.run()
    assert _counters(cluster)["versions"] == 1


def test_rows_of_one_message_go_by_the_version_of_the_epoch_of_each() -> None:
    """All of them wait, and leave together."""
    cluster = Cluster(SpreadRun(0, "D-JB", lead=1).build)
    for epoch in range(4):
        cluster.change("a", [((0, epoch), 1)], epoch)
    for epoch, unit in ((0, 3), (1, 4), (2, 0)):
        moved = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(unit)})
        cluster.change("routes", [(tuple(row), 1) for row in moved.announcements()], epoch)
    cluster.seal(3)
    cluster.run()
    came = {
        row[1]: time[0]
        for time, rows in cluster.changes("loads").items()
        for row, count in rows.items()
        if row[3] == 0 and count > 0
    }
    assert [came[unit] for unit in (3, 4, 0)] == [1, 2, 3]
