"""Clients of a durable cluster go on after a restart, whatever request or answer it has swallowed.

The cluster is the one of `kept_cluster.py`, which keeps all that a durable cluster keeps.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, TypeAlias

import pyarrow as pa
import pytest
from kept_cluster import KeptCluster, shown, table, workers_of

import timely
from timely.client.connection import append_target
from timely.client.remote import resuming
from timely.client.remote.channel import Channel
from timely.client.remote.resuming import DurableWorkers
from timely.client.remote.searching import Search
from timely.client.session import Flow
from timely.wire.requests import (
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Hello,
    Missing,
    Progress,
    Read,
    Replace,
    Reply,
    Request,
    Shutdown,
    Uninstall,
)
from timely.wire.transport import zeromq
from timely.worker.answers.later import Later

Falls: TypeAlias = Callable[[int, Request], str]


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


def once(kind: type[Request], when: str, worker: int | None = None) -> Falls:
    """Fall at the first request of this kind."""
    fallen: list[Request] = []

    def falls(at: int, request: Request) -> str:
        if fallen or not isinstance(request, kind) or worker not in (None, at):
            return ""
        fallen.append(request)
        return when

    return falls


def _insert(flow: Flow) -> list[tuple[int, int]]:
    flow.input("rows").insert([(0, 1)])
    flow.input("rows").insert([(0, 2)])
    assert flow.seal() == 0
    return [(1, 0), (2, 0)]


def _insert_named(flow: Flow) -> list[tuple[int, int]]:
    flow.input("rows").insert([(0, 1)], writer="w", sequence=0)
    assert flow.seal(wait=True) == 0
    return [(1, 0)]


def _insert_table(flow: Flow) -> list[tuple[int, int]]:
    flow.input("rows").insert(table(*range(500)))
    assert flow.seal() == 0
    return [(n, 0) for n in range(500)]


def _insert_parts(flow: Flow) -> list[tuple[int, int]]:
    flow.input("rows").insert(table(*range(9_000)))
    assert flow.seal() == 0
    return [(n, 0) for n in range(9_000)]


def _append(flow: Flow) -> list[tuple[int, int]]:
    rows = table(7, 8).append_column("diff", pa.array([1, 1], pa.int64()))
    assert flow.input("rows").append(rows, epoch=1)
    assert flow.input("rows").append(rows.slice(0, 0), writer="w", sequence=0)
    assert flow.seal(through=1, expected=[("rows", "w", 0)] if flow.epoch else ()) == 1
    return [(7, 1), (8, 1)]


def _append_client(flow: Flow) -> list[tuple[int, int]]:
    rows = table(7, 8).append_column("diff", pa.array([1, 1], pa.int64()))
    with append_target(flow._workers.addresses, flow.index, incarnation=1)() as client:
        for sequence in range(4):
            client.append("rows", 0, "w", sequence, rows.slice(sequence % 2, sequence < 2))
    assert flow.seal([("rows", "w", sequence) for sequence in range(4)]) == 0
    return [(7, 0), (8, 0)]


def _close(flow: Flow) -> list[tuple[int, int]]:
    flow.input("rows").insert([(0, 1)])
    assert flow.finish() == 1
    return [(1, 0)]


CALLS = [_insert, _insert_named, _insert_table, _insert_parts, _append, _append_client, _close]
KINDS = [Deliver, Decide, Missing, Progress, Read, Describe, Hello]


@pytest.mark.parametrize("when", ["before", "telling", "behind"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_each_row_counts_once_in_its_epoch(
    call: Callable[[Flow], list[tuple[int, int]]],
    kind: type[Request],
    when: str,
    flow: Flow,
    kept_cluster: KeptCluster,
) -> None:
    kept_cluster.falls = once(kind, when)
    assert shown(flow) == [] if kind is Read and not flow.epoch else True
    expected = call(flow)
    assert shown(flow) == expected
    assert flow._workers.incarnation == kept_cluster.incarnation or kind not in (Deliver, Decide)


def test_calls_of_every_kind_in_any_order(
    kept_cluster: KeptCluster, flow: Flow, seed: int, effort: int
) -> None:
    """Against what an undisturbed client would get."""
    fate = random.Random(seed)
    numbers = iter(range(10**9))
    kept_cluster.falls = lambda worker, request: (
        fate.choice(["before", "telling", "behind"]) if fate.random() < 0.03 else ""
    )
    expected: Counter[tuple[int, int]] = Counter()
    values: dict[int, int] = {}
    waiting: list[int] = []
    for _ in range(150 * effort):
        choice = fate.randrange(7)
        if choice == 0:
            waiting.append(number := next(numbers))
            flow.input("rows").insert([(0, number)])
        elif choice == 1:
            many = [next(numbers) for _ in range(fate.choice([1, 300, 8_200]))]
            waiting += many
            flow.input("rows").insert(table(*many))
        elif choice == 2:
            key, value = fate.randrange(3), next(numbers)
            flow.input("values").upsert([(key, value)])
            values[key] = value
        elif choice == 3:
            key = fate.randrange(3)
            flow.input("values").delete([key])
            values.pop(key, None)
        elif choice == 4:
            number = next(numbers)
            waiting.append(number)
            rows = table(number).append_column("diff", pa.array([1], pa.int64()))
            flow.input("rows").append(rows)
        else:
            epoch = flow.seal(wait=fate.choice([None, True, False]))
            expected.update((number, epoch) for number in waiting)
            waiting.clear()
            current = flow.output("values").snapshot()
            assert {row["k"]: row["v"] for row in current.to_pylist()} == values
            assert current.num_rows == len(values)
    flow.seal()
    expected.update((number, flow.epoch - 1) for number in waiting)
    assert Counter(shown(flow)) == expected
    assert kept_cluster.incarnation > 5


def test_posts_without_an_answer_are_sent_again_in_their_order(flow: Flow, kept_cluster: KeptCluster) -> None:
    upsert = flow.input("values").upsert
    for value in range(10, 15):
        upsert([(0, value)])
    kept_cluster.fall()
    kept_cluster.served.clear()  # some may have come before
    upsert([(0, 15)])
    flow.seal()
    assert flow.output("values").snapshot().to_pylist() == [{"k": 0, "v": 15}]
    taken = [request.sequence for _, request in kept_cluster.served if isinstance(request, Deliver)]
    assert taken == list(range(6))


def test_posts_of_a_thread_that_has_ended_are_sent_again(flow: Flow, kept_cluster: KeptCluster) -> None:
    kept_cluster.falls = once(Deliver, "before")
    thread = threading.Thread(target=lambda: flow.input("rows").insert([(0, 1)]))
    thread.start()
    thread.join()
    while kept_cluster.incarnation == 1:
        time.sleep(0.001)
    assert flow.seal(wait=True) == 0
    assert shown(flow) == [(1, 0)]


def test_all_threads_go_on(flow: Flow, kept_cluster: KeptCluster) -> None:
    """Each has connections of its own; one looks for the cluster, while the others wait for it."""
    fate = random.Random(3)
    kept_cluster.falls = lambda worker, request: (
        fate.choice(["telling", "behind"]) if fate.random() < 0.05 else ""
    )
    failures: list[BaseException] = []
    ends = threading.Event()

    def inserts(first: int) -> None:
        try:
            for number in range(first, first + 50):
                flow.input("rows").insert([(0, number)])
        except BaseException as error:
            failures.append(error)

    def waits() -> None:
        try:
            epoch = 0
            while not ends.is_set():
                epoch = 1 + flow.wait(epoch)
        except BaseException as error:
            failures.append(error)

    waiting = threading.Thread(target=waits)
    waiting.start()
    threads = [threading.Thread(target=inserts, args=(1_000 * number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    last = 0
    while any(thread.is_alive() for thread in threads):
        before = flow.epoch
        last = flow.seal()
        assert last >= before and flow.epoch > last
    ends.set()
    flow.seal(wait=True)
    waiting.join()
    assert not failures
    assert [n for n, _ in shown(flow)] == [1_000 * at + n for at in range(3) for n in range(50)]
    assert kept_cluster.incarnation > 1


def test_an_insertion_in_parts_begins_anew_as_its_parts_are_gone(
    flow: Flow, kept_cluster: KeptCluster
) -> None:
    kept_cluster.falls = once(Decide, "before")
    flow.input("rows").insert(table(*range(9_000)))
    entering = [request for _, request in kept_cluster.served if isinstance(request, Decide)]
    assert [request.incarnation for request in entering] == [2], "the first one was refused"
    stages = [request for _, request in kept_cluster.served if isinstance(request, Deliver)]
    assert [request.counts for request in stages] == [WHEN_NAMED] * 4
    flow.seal()
    assert len(shown(flow)) == 9_000


def test_what_has_entered_is_not_refused_though_the_client_asks_again(
    flow: Flow, kept_cluster: KeptCluster
) -> None:
    kept_cluster.falls = once(Decide, "behind")
    flow.input("rows").insert(table(*range(9_000)))
    stages = [request for _, request in kept_cluster.served if isinstance(request, Deliver)]
    assert len(stages) == 2, "nothing is sent twice"
    flow.seal()
    assert len(shown(flow)) == 9_000


def test_a_seal_that_did_not_wait_for_the_disk_is_sent_again(flow: Flow, kept_cluster: KeptCluster) -> None:
    """Else whoever waits for its epoch would wait in vain, if it is lost."""
    for number in range(3):
        flow.input("rows").insert([(0, number)])
        assert flow.seal(wait=False) == number
    kept_cluster.fall()
    kept_cluster.served.clear()
    flow.wait(2)
    sealing = [request for _, request in kept_cluster.served if isinstance(request, Decide | Progress)]
    assert sealing[0] == Decide(flow.index, 2, True)
    assert isinstance(sealing[1], Progress)
    assert flow.seal() == 3
    kept_cluster.fall()
    kept_cluster.served.clear()
    flow.wait(3)
    assert not any(isinstance(request, Decide) for _, request in kept_cluster.served)


def test_a_seal_that_a_failing_disk_refuses_after_a_restart_is_sent_again_by_the_next_call(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client knows that it has sealed the epoch. Nobody else would seal it."""
    flow.input("rows").insert([(0, 1)])
    assert flow.seal(wait=False) == 0
    server = kept_cluster._servers[0]
    handle = server.handle

    def fails(request: Request, rows: pa.Table | None) -> Reply | Later:
        if isinstance(request, Decide):
            raise timely.StoreError("the disk is full")
        return handle(request, rows)

    with monkeypatch.context() as patched:
        patched.setattr(server, "handle", fails)
        kept_cluster.fall()
        for _ in range(2):
            with pytest.raises(timely.StoreError, match="full"):
                flow.refresh()
    kept_cluster.served.clear()
    flow.refresh()
    sealing = [request for _, request in kept_cluster.served if isinstance(request, Decide)]
    assert sealing == [Decide(flow.index, 0, True)]


@pytest.mark.parametrize("is_taken", [True, False])
def test_rows_count_once_whether_a_failing_disk_has_let_the_worker_take_them(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    server = kept_cluster._servers[0]
    handle = server.handle

    def fails(request: Request, rows: pa.Table | None) -> NoReturn:
        if is_taken and isinstance(request, Deliver):
            handle(request, rows)
        raise timely.StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(server, "handle", fails)
        flow.input("rows").insert([(0, 1)])
        flow.input("rows").insert(table(2, 3))
        for call in (flow.seal, flow.refresh, lambda: flow.input("rows").insert([(0, 4)])):
            with pytest.raises(timely.StoreError, match="full") as raised:
                call()
            assert "the next call sends its rows again" in " ".join(raised.value.__notes__)
    flow.input("rows").insert([(0, 4)])
    assert flow.seal() == 0 and shown(flow) == [(1, 0), (2, 0), (3, 0), (4, 0)]


def test_an_uninstall_that_has_taken_effect_is_no_error(flow: Flow, kept_cluster: KeptCluster) -> None:
    kept_cluster.falls = once(Uninstall, "behind")
    flow.uninstall()
    with pytest.raises(timely.UninstalledError):
        flow.uninstall()


def test_a_replacement_is_asked_for_again(flow: Flow, kept_cluster: KeptCluster) -> None:
    """A durable cluster knows whether it has taken effect; these workers refuse it each time."""
    with timely.connect(*kept_cluster.addresses) as cluster:
        asked: list[Replace] = []

        def falls(at: int, request: Request) -> str:
            if isinstance(request, Replace):
                asked.append(request)
            return "behind" if len(asked) == 1 and asked[0] is request else ""

        kept_cluster.falls = falls
        with pytest.raises(timely.MisuseError, match="cannot be replaced: it does not keep"):
            cluster.replace(flow, "kept_cluster:kept", timeout=60)
        first, second = asked
        assert first == Replace(flow.index, "kept_cluster:kept", {}, 60.0)
        assert (second.dataflow, second.spec) == (first.dataflow, first.spec)
        assert 0 < second.timeout_seconds < 60


def test_an_append_whose_order_counts_is_not_made_twice(flow: Flow, kept_cluster: KeptCluster) -> None:
    rows = pa.table({"k": [1], "v": [2], "diff": [1]})
    kept_cluster.falls = once(Deliver, "behind")
    with pytest.raises(timely.PeerError, match="before it answered 'deliver': whether"):
        flow.input("values").append(rows, epoch=0)
    kept_cluster.fall()
    assert flow.input("values").append(rows, epoch=0), "nothing was sent when the client saw that"
    flow.seal()
    assert flow.output("values").snapshot().num_rows == 1


def test_a_shutdown_is_sent_once(flow: Flow, kept_cluster: KeptCluster) -> None:
    asked: list[Request] = []

    def falls(worker: int, request: Request) -> str:
        if isinstance(request, Shutdown):
            asked.append(request)
            return "before"
        return ""

    with timely.connect(*kept_cluster.addresses) as cluster:
        kept_cluster.falls = falls
        cluster.shutdown()
    assert len(asked) == 1


def test_a_wait_with_a_limit_is_over_in_time(flow: Flow, kept_cluster: KeptCluster) -> None:
    kept_cluster.is_down = True
    kept_cluster.fall()
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError, match=r"within 0\.8 s: the cluster is starting again"):
        flow.wait(0, timeout=0.3)
    assert 0.3 <= time.monotonic() - began < 20
    kept_cluster.is_down = False
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError):
        flow.wait(0, timeout=0.3)
    assert time.monotonic() - began < 20
    assert flow.seal() == 0, "and the client goes on"


def test_the_time_of_a_wait_goes_on_during_a_restart(flow: Flow, kept_cluster: KeptCluster) -> None:
    kept_cluster.down_seconds = 0.5
    kept_cluster.falls = once(Progress, "before")
    began = time.monotonic()
    with pytest.raises(timely.WaitTimeoutError, match="not complete on worker . after 1 s"):
        flow.wait(0, timeout=1.0)
    assert 1.0 <= time.monotonic() - began < 1.9


def test_an_interrupt_ends_the_wait_for_the_cluster(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_cluster.is_down = True
    kept_cluster.fall()

    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Search, "look", interrupts)
        with pytest.raises(KeyboardInterrupt) as raised:
            flow.wait(0)
    assert "waiting for the cluster" in " ".join(raised.value.__notes__)
    kept_cluster.is_down = False
    assert flow.seal(wait=True) == 0


def test_who_is_closed_waits_no_longer(flow: Flow, kept_cluster: KeptCluster) -> None:
    kept_cluster.is_down = True
    kept_cluster.fall()
    raised: list[BaseException] = []

    def waits() -> None:
        try:
            flow.wait(0)
        except timely.TimelyError as error:
            raised.append(error)

    thread = threading.Thread(target=waits)
    thread.start()
    time.sleep(0.1)
    flow._workers.close()
    thread.join(5)
    assert not thread.is_alive() and isinstance(raised[0], timely.MisuseError)


def test_a_close_sends_posts_again(kept_cluster: KeptCluster, flow: Flow) -> None:
    with timely.connect(*kept_cluster.addresses) as cluster:
        kept_cluster.falls = once(Deliver, "before")
        cluster.flow("kept").input("rows").insert([(0, 1)])
    flow.seal(wait=True)
    assert shown(flow) == [(1, 0)]


def test_followers_see_each_epoch_once(flow: Flow, kept_cluster: KeptCluster) -> None:
    fate = random.Random(5)
    kept_cluster.falls = lambda worker, request: "behind" if fate.random() < 0.05 else ""
    for number in range(20):
        flow.input("rows").insert([(0, number)])
        flow.seal()
    followed = flow.output("rows").follow(timeout=20)
    for number in range(20):
        epoch, changes = next(followed)
        assert isinstance(changes, pa.Table)
        assert (epoch, changes.column("n").to_pylist()) == (number, [number])
    assert kept_cluster.incarnation > 1


def test_workers_of_two_incarnations_are_not_taken_for_a_cluster(
    flow: Flow, kept_cluster: KeptCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old one may still answer while it is about to be killed, and a new one tell why it fails."""
    workers = workers_of(flow)
    kept_cluster.fall()
    hellos = Search._hellos
    answers = [[1, 2], [], [2, 1], [0, 0]]

    def answered(
        search: Search, asked: Channel, requests: Sequence[tuple[int, Request, None]], seconds: float
    ) -> list[Reply]:
        if len(requests) == 1 or not answers:
            return hellos(search, asked, requests, seconds)
        if not answers[0]:
            raise timely.StoreError(f"nothing has begun yet: {answers.pop(0)}")
        return [
            Reply({"incarnation": each, "workers": 2, "index": at, "cluster": ""})
            for at, each in enumerate(answers.pop(0))
        ]

    monkeypatch.setattr(Search, "_hellos", answered)
    assert flow.seal() == 0
    assert not answers and workers.incarnation == 2


def test_workers_that_come_back_elsewhere_are_found_by_who_has_started_them(
    kept_cluster: KeptCluster, tmp_path: Path
) -> None:
    """Posts without an answer go there, too."""
    keeper = SimpleNamespace(
        descriptors=[],
        knows_best=False,
        starts_again=True,
        addresses=[None, None],
        check=lambda: None,
        stop=lambda: None,
    )
    cluster = timely.Cluster(DurableWorkers(kept_cluster.addresses, keeper, incarnation=1))
    flow = cluster.install("kept_cluster:kept")
    flow.input("rows").insert([(0, 1)])
    kept_cluster.addresses = [f"ipc://{tmp_path}/moved{index}" for index in range(2)]
    kept_cluster.fall()
    keeper.addresses = kept_cluster.addresses
    flow.input("rows").insert([(0, 2)])
    assert flow.seal() == 0 and shown(flow) == [(1, 0), (2, 0)]
    assert cluster.addresses == kept_cluster.addresses
    cluster.close()
