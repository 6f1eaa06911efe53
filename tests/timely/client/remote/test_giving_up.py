"""How long does a client of a durable cluster go on after losses, and when does it give up?

The cluster is the one of `kept_cluster.py`, which keeps all that a durable cluster keeps.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from kept_cluster import KeptCluster, shown, table, workers_of

import timely
from timely.client.feeding import appending
from timely.client.remote import resuming
from timely.client.remote.resuming import DurableWorkers
from timely.client.session import Flow
from timely.wire.requests import Deliver, Stats
from timely.wire.transport import zeromq


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to be waited for."""
    monkeypatch.setattr(zeromq, "LOST_SECONDS_MAX", 0.0)
    monkeypatch.setattr(resuming, "_LOOK_SECONDS", 0.005)


@pytest.fixture
def kept_cluster(tmp_path: Path) -> Iterator[KeptCluster]:
    """Two workers."""
    with KeptCluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def flow(kept_cluster: KeptCluster) -> Iterator[Flow]:
    """`kept`, by a client of the cluster."""
    with timely.connect(*kept_cluster.addresses) as cluster:
        yield cluster.install("kept_cluster:kept")


def test_an_insertion_in_parts_that_ends_the_cluster_each_time_is_given_up(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "RESUMES_COUNT_MAX", 3)
    kept_cluster.falls = lambda worker, request: "before" if isinstance(request, Deliver) else ""
    with pytest.raises(timely.RestartedError):
        flow.input("rows").insert(table(*range(9_000)))
    assert kept_cluster.incarnation == 5
    kept_cluster.falls = lambda worker, request: ""
    flow.input("rows").insert(table(*range(9_000)))
    assert flow.seal() == 0 and len(shown(flow)) == 9_000


def test_who_does_not_come_back_ends_the_connection(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "RESUME_SECONDS_MAX", 0.3)
    kept_cluster.is_down = True
    kept_cluster.fall()
    with pytest.raises(timely.PeerError, match=r"was not back within 0\.3 s: start it again"):
        flow.wait(0)
    kept_cluster.is_down = False
    with pytest.raises(timely.PeerError, match="was not back within"):
        flow.seal()


def test_a_connection_that_breaks_while_the_cluster_goes_on_is_made_anew(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "RESUME_SECONDS_MAX", 2.0)
    flow.input("rows").insert([(0, 1)])
    with monkeypatch.context() as patched:
        patched.setattr(workers_of(flow)._channel().sockets, "has_broken", lambda worker: True)
        flow.input("rows").insert([(0, 2)])
        assert flow.seal() == 0
    assert shown(flow) == [(1, 0), (2, 0)]
    assert workers_of(flow).incarnation == kept_cluster.incarnation == 1


def test_workers_may_take_long_while_this_program_starts_them(
    kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that wait for the one that looks do not give up before it."""
    monkeypatch.setattr(resuming, "RESUME_SECONDS_MAX", 0.2)
    keeper = Starting(kept_cluster)
    cluster = timely.Cluster(DurableWorkers(kept_cluster.addresses, keeper, incarnation=1))
    flow = cluster.install("kept_cluster:kept")
    flow.input("rows").insert([(0, 1)], writer="w", sequence=0)
    keeper.is_starting = kept_cluster.is_down = True
    kept_cluster.fall()
    threading.Timer(0.7, keeper.are_ready).start()
    other = threading.Thread(target=flow.refresh)
    other.start()
    assert flow.seal() == 0 and not keeper.is_starting
    other.join()
    keeper.is_starting = kept_cluster.is_down = True
    kept_cluster.fall()
    keeper.is_starting = False
    with pytest.raises(timely.PeerError, match=r"was not back within 0\.2 s"):
        flow.seal()
    kept_cluster.is_down = False
    cluster.close()


class Starting:
    """A keeper that starts workers again. Implements `Keeper`."""

    descriptors: ClassVar[list[int]] = []
    knows_best = False
    starts_again = True

    def __init__(self, cluster: KeptCluster) -> None:
        self._cluster = cluster
        self.is_starting = False

    @property
    def addresses(self) -> Sequence[str]:
        """See `Keeper`."""
        return self._cluster.addresses

    def are_ready(self) -> None:
        """The workers are ready again."""
        self._cluster.is_down = self.is_starting = False

    def check(self) -> None:
        """See `Keeper`."""
        if self.is_starting:
            raise timely.PeerError("a worker has ended")

    def stop(self) -> None:
        """See `Keeper`."""


def test_a_call_that_ends_the_cluster_each_time_is_given_up(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "RESUMES_COUNT_MAX", 4)
    kept_cluster.falls = lambda worker, request: "before" if isinstance(request, Stats) else ""
    with pytest.raises(timely.PeerError, match="lost the cluster 5 times in a row"):
        flow._workers.ask([(0, Stats(), None)])
