"""Clients find a durable cluster that has started again with another number of workers.

whole_*    a call never has answers of two incarnations
found_*    where the workers are
"""

from __future__ import annotations

import pickle
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from shifting_cluster import ShiftingCluster

import timely
from timely.client.connection import AppendClient, workers_at
from timely.client.installed import Members, to_all
from timely.client.remote import channel, resuming
from timely.client.remote.resuming import DurableWorkers
from timely.wire.requests import Describe, Hello, Request, Shutdown, Stats
from timely.wire.transport import zeromq


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to be waited for."""
    monkeypatch.setattr(zeromq, "LOST_SECONDS_MAX", 0.0)
    monkeypatch.setattr(resuming, "_LOOK_SECONDS", 0.002)
    monkeypatch.setattr(channel, "CONNECT_SECONDS_MAX", 0.5)


@pytest.fixture
def shifting(tmp_path: Path) -> Iterator[ShiftingCluster]:
    """Two workers, at first."""
    with ShiftingCluster(tmp_path, 2) as cluster:
        yield cluster


@pytest.fixture
def workers(shifting: ShiftingCluster) -> Iterator[DurableWorkers]:
    """A client that has the addresses of the first two."""
    made = DurableWorkers(shifting.addresses, incarnation=1)
    yield made
    made.close()


def ask_all(workers: DurableWorkers, request: Request | None = None) -> tuple[int, int]:
    """Ask all workers; return how many have answered, and in which incarnation."""
    replies = workers.ask_members(to_all(request or Stats()), 30.0)
    (incarnation,) = {reply.incarnation for reply in replies}
    assert [reply.integer("index") for reply in replies] == list(range(len(replies)))
    assert {reply.integer("workers") for reply in replies} == {len(replies)}
    return len(replies), incarnation


def test_whole_is_each_call_while_the_number_of_workers_changes(
    shifting: ShiftingCluster, seed: int, effort: int
) -> None:
    """Also between the answers of two workers to the same call."""
    fate = random.Random(seed)
    shifting.shifts = lambda worker, request: fate.randrange(1, 5) if fate.random() < 0.1 else 0
    failures: list[BaseException] = []

    def run() -> None:
        own = DurableWorkers(shifting.addresses_of(2), incarnation=1)
        last = 0
        try:
            for _ in range(30 * effort):
                count, incarnation = ask_all(own)
                assert count == shifting.counts[incarnation] and incarnation >= last
                last = incarnation
        except BaseException as error:
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert shifting.incarnation > 5


def test_whole_are_calls_of_several_threads_of_one_client(
    shifting: ShiftingCluster, workers: DurableWorkers, seed: int
) -> None:
    """One may find the new workers while another makes requests for the old ones."""
    fate = random.Random(seed)
    shifting.shifts = lambda worker, request: fate.randrange(1, 4) if fate.random() < 0.05 else 0
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(25):
                count, incarnation = ask_all(workers)
                assert count == shifting.counts[incarnation]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert shifting.incarnation > 2


def test_whole_are_requests_that_another_thread_makes_stale(
    shifting: ShiftingCluster, workers: DurableWorkers
) -> None:
    """It finds the new workers, and connects this thread to them, before the requests are sent."""
    ask_all(workers)
    mine = workers._channel()
    made: list[Members] = []

    def connects() -> None:
        shifting.shift(3)
        ask_all(workers)
        mine.renew(*workers._place)

    def makes(members: Members) -> list[tuple[int, Request, None]]:
        if not made:
            other = threading.Thread(target=connects)
            other.start()
            other.join()
        made.append(members)
        return [(members.count - 1, Describe(0), None)]

    (reply,) = workers.ask_members(makes)
    assert made == [Members(2, 1), Members(3, 2)] and reply.integer("index") == 2
    assert [one[:2] for one in shifting.answered if isinstance(one[2], Describe)] == [(2, 2)]


def test_whole_is_what_was_idle_meanwhile(shifting: ShiftingCluster, workers: DurableWorkers) -> None:
    assert ask_all(workers) == (2, 1)
    for count in (3, 1, 2, 4):
        shifting.shift(count)
    assert ask_all(workers) == (4, 5)
    assert workers.members == Members(4, 5) and workers.count == 4


def test_whole_are_requests_that_were_made_for_workers_that_are_gone(
    shifting: ShiftingCluster, workers: DurableWorkers
) -> None:
    """`ask` cannot make them anew; nobody has carried them out."""
    shifting.shift(3)
    with pytest.raises(timely.RestartedError, match="with 3 workers, and had 2, before it has answered"):
        workers.ask([(1, Describe(7), None)])
    assert not [request for _, _, request in shifting.answered if isinstance(request, Describe)]
    assert workers.ask([(0, Describe(7), None)])[0].incarnation == 2, "worker 0 is always there"
    shifting.shift(3)
    assert workers.ask([(2, Describe(8), None)])[0].incarnation == 3, "as many as before"


def test_whole_is_what_no_worker_is_asked(shifting: ShiftingCluster, workers: DurableWorkers) -> None:
    shifting.shift(1)
    assert workers.ask_members(lambda members: []) == []


def test_whole_is_what_cannot_be_asked_again_and_was_not_sent(
    shifting: ShiftingCluster, workers: DurableWorkers
) -> None:
    ask_all(workers)
    shifting.shift(3)
    own = workers._channel()
    while not own.sockets.has_broken(0):  # until then it could only be sent to the workers that are gone
        time.sleep(0.001)
    workers.ask([(0, Shutdown(), None)])
    assert [one[:2] for one in shifting.answered if isinstance(one[2], Shutdown)] == [(2, 0)]


@pytest.mark.parametrize("count", [1, 3])
def test_found_is_a_cluster_by_addresses_of_long_ago(shifting: ShiftingCluster, count: int) -> None:
    """As tasks of Spark have them."""
    before = shifting.addresses
    shifting.shift(count)
    workers = workers_at(before, None, 2.5, 1)
    assert isinstance(workers, DurableWorkers)
    began = time.monotonic()
    workers.join()
    assert ask_all(workers) == (count, 2)
    assert workers.addresses == shifting.addresses
    assert time.monotonic() - began < 5
    workers.close()


def test_found_is_it_by_clients_that_append(shifting: ShiftingCluster) -> None:
    before = shifting.addresses
    shifting.shift(3)
    with AppendClient(before, incarnation=1) as client:
        assert client._workers.members == Members(3, 2)
    with pytest.raises(timely.PeerError, match="has 3 workers, and had 2: connect to it anew"):
        AppendClient(before, incarnation=1, is_patient=False).__enter__()


def test_found_is_it_by_any_worker_that_is_reached(shifting: ShiftingCluster) -> None:
    """Worker 0 may have moved."""
    elsewhere = [shifting.addresses[0].replace("c0", "gone"), shifting.addresses[1]]
    workers = DurableWorkers(elsewhere, incarnation=1)
    shifting.shift(3)
    assert ask_all(workers, Hello()) == (3, 2)
    assert workers.addresses == shifting.addresses
    workers.close()


def test_found_is_it_though_the_worker_that_is_asked_was_never_reached(
    shifting: ShiftingCluster,
) -> None:
    """There are fewer by now; a thread whose connections are new does not know."""
    shifting.shift(1)
    made = DurableWorkers(shifting.addresses_of(2), incarnation=1)
    (reply,) = made.ask_members(lambda members: [(members.count - 1, Stats(), None)])
    assert (reply.integer("workers"), reply.incarnation) == (1, 2)
    made.close()


def test_found_is_nothing_if_all_have_moved(
    shifting: ShiftingCluster, workers: DurableWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "RESUME_SECONDS_MAX", 0.3)
    ask_all(workers)
    shifting.prefix = "moved"
    shifting.shift(3)
    with pytest.raises(timely.PeerError, match=r"was not back within 0\.3 s: start it again"):
        ask_all(workers)


def test_found_is_not_another_cluster_at_the_address_of_a_worker(
    shifting: ShiftingCluster, workers: DurableWorkers, tmp_path: Path
) -> None:
    """Worker 1 is gone, and a worker 0 of others has come to where it was."""
    ask_all(workers)
    shifting.prefix = "other"
    shifting.shift(1)
    (tmp_path / "c1").unlink(missing_ok=True)
    with ShiftingCluster(tmp_path, 1) as other:
        other.counts = {9: 1}
        other.addresses_of = lambda count: [f"ipc://{tmp_path}/c1"]  # type: ignore[method-assign]
        other.shift(1)
        with pytest.raises(
            timely.WaitTimeoutError, match=r"no answer within 0\.5 s: the cluster is starting"
        ):
            workers.ask_members(to_all(Stats()), 0.5)
        assert not [request for _, _, request in other.answered if isinstance(request, Stats)]


@pytest.mark.parametrize("is_known", [False, True])
def test_found_is_not_another_cluster_in_the_place_of_this_one(
    shifting: ShiftingCluster, is_known: bool
) -> None:
    """Its store is another one. A client that has met this one knows that."""
    workers = DurableWorkers(shifting.addresses, incarnation=1, cluster="it" if is_known else "")
    ask_all(workers)
    if not is_known:
        shifting.shift(2)
        ask_all(workers)
    shifting.identity = "another"
    shifting.shift(2)
    before = len(shifting.answered)
    with pytest.raises(timely.WaitTimeoutError, match=r"within 0\.5 s: the cluster is starting again"):
        workers.ask_members(to_all(Stats()), 0.5)
    assert all(isinstance(request, Hello) for _, _, request in shifting.answered[before:])
    shifting.identity = "it"
    assert ask_all(workers)[0] == 2
    workers.close()


def test_found_is_not_another_cluster_by_a_target_that_was_sent_away(
    shifting: ShiftingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task gets the addresses. When it begins, another cluster may be there, in the same incarnation."""
    monkeypatch.setattr(resuming, "RESUME_SECONDS_MAX", 0.3)
    with timely.connect(*shifting.addresses) as cluster:
        target = pickle.loads(pickle.dumps(cluster.append_target()))
    rows = pa.table({"n": [1], "diff": [1]})
    with target() as client:
        assert client.append("rows", 0, "w", 0, rows)
        shifting.identity = "another"
        before = len(shifting.answered)
        with pytest.raises(timely.PeerError, match="another cluster is at this address"):
            client.append("rows", 0, "w", 1, rows)
    with pytest.raises(timely.PeerError, match="another cluster is at this address"), target():
        pytest.fail("it has let the client in")
    assert all(isinstance(request, Hello) for _, _, request in shifting.answered[before:])


def test_found_is_it_where_its_keeper_says(shifting: ShiftingCluster) -> None:
    keeper = SimpleNamespace(
        descriptors=[],
        knows_best=False,
        starts_again=True,
        addresses=shifting.addresses,
        check=lambda: None,
        stop=lambda: None,
    )
    workers = DurableWorkers(shifting.addresses, keeper, incarnation=1)
    shifting.prefix = "moved"
    shifting.shift(3)
    keeper.addresses = [None, *shifting.addresses[1:]]  # the first is not ready yet
    threading.Timer(0.2, lambda: setattr(keeper, "addresses", shifting.addresses)).start()
    assert ask_all(workers) == (3, 2)
    workers.close()
