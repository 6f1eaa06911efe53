"""After a restart a dataflow shows what it has shown, or ends with `NotRepeatableError`.

same_*      queries that depend on their rows alone never end, with other numbers of workers
changed_*   a query that gives other answers ends on all workers, and keeps its rows
written_*   what is written before an epoch is shown, and what is compared
again_*     no question about an output has an answer before it is as far as somebody may have seen
"""

from __future__ import annotations

import os
import random
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack

import pytest
from simulated_store import SimulatedStore

import differential as dd
import timely
from differential import col
from timely import NotRepeatableError
from timely.client.embedded.workers import EmbeddedWorkers
from timely.client.session import Flow
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.facts import FoldFacts
from timely.durable.bases.manifest import FlowBase
from timely.durable.commands import run_command
from timely.durable.digests import PastDigests
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, read_log
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.durable.past import Past, PastFlow, read_orders
from timely.durable.records import records_in
from timely.running.core import Worker
from timely.wire.handshake import Digested
from timely.wire.requests import Progress, Read, Reply
from timely.worker.answers.later import Later
from timely.worker.durability import digests
from timely.worker.durability.build import own_build
from timely.worker.durability.digests import DigestChecks

OUTSIDE = "NAIAD_TEST_OUTSIDE"
"""What the answers of some functions depend on: a number in the environment, which belongs to no query."""


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setenv(OUTSIDE, "0")
    return lambda number: monkeypatch.setenv(OUTSIDE, str(number))


def _counting(key: object, rows: list[object]) -> list[int]:
    os.environ[OUTSIDE] = str(int(os.environ[OUTSIDE]) + 1)
    return [int(os.environ[OUTSIDE])]


def _changing(key: object, rows: list[object]) -> list[int]:
    return [len(rows) + int(os.environ[OUTSIDE])]


def _by_chance(key: object, rows: list[object]) -> list[int]:
    return [random.getrandbits(60)]


def _of_now(key: object, rows: list[object]) -> list[int]:
    return [time.time_ns()]


def _of(reduce):  # type: ignore[no-untyped-def]
    def query(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        edges.group_by("src").reduce(reduce, "n: int").output("reduced")
        edges.group_by("src").agg(n=dd.count(), mean=dd.mean("dst")).output("counted")

    return query


@contextmanager
def cluster_of(folder: Path, workers: int) -> Iterator[timely.Cluster]:
    with timely.connect(workers=workers, embedded=True, durable=folder / "store", sync="system") as cluster:
        yield cluster


def feed(flow: Flow, epochs: int) -> None:
    for _ in range(epochs):
        epoch = flow.epoch
        flow.input("edges").insert([(epoch % 3, epoch), (epoch % 5, -epoch)])
        flow.seal(wait=True)


def past_of(folder: Path) -> PastFlow:
    store = FolderStore(folder / "store")
    (flow,) = read_orders(logs_of(store, announce(store, 1))).flows.values()
    return flow


def records(folder: Path, kind: str) -> list[list[object]]:
    store = FolderStore(folder / "store")
    logs = announce(store, 1).logs
    return [record.head for log in logs for record in read_log(store, log) if record.head[0] == kind]


def test_same_answers_are_shown_with_any_number_of_workers(tmp_path: Path) -> None:
    shown = {}
    for workers in (1, 3, 2, 1):
        with cluster_of(tmp_path, workers) as cluster:
            flow = cluster.install(_of(_changing))
            for output, changes in shown.items():
                assert sorted(flow.output(output).changes(0).to_pylist(), key=str) == changes
            feed(flow, 4)
            for output in ("reduced", "counted"):
                shown[output] = sorted(flow.output(output).changes(0).to_pylist(), key=str)
    assert {output: past.before for output, past in past_of(tmp_path).digests.items()} == {
        "reduced": 16,
        "counted": 16,
    }


@pytest.mark.parametrize("reduce", [_counting, _by_chance, _of_now, _changing])
@pytest.mark.parametrize("workers", [1, 3])
def test_changed_answers_end_the_dataflow_and_keep_its_rows(  # type: ignore[no-untyped-def]
    tmp_path: Path, outside: Callable[[int], None], reduce, workers: int
) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        feed(cluster.install(_of(reduce)), 3)
    before = past_of(tmp_path)
    outside(1_000)
    for _ in range(2):  # not even a second start shows anything else
        with cluster_of(tmp_path, workers) as cluster:
            with pytest.raises(NotRepeatableError, match=r"output 'reduced' .* changed at epoch \d"):
                cluster.install(_of(reduce)).output("reduced").snapshot()
            with pytest.raises(NotRepeatableError, match="same rows"):
                cluster.install(_of(reduce))
    after = past_of(tmp_path)
    assert (after.number, after.digests["reduced"].sums) == (before.number, before.digests["reduced"].sums)
    outside(0)
    if reduce is _changing:
        with cluster_of(tmp_path, workers) as cluster:
            flow = cluster.install(_of(reduce))
            assert flow.epoch == 3 and flow.output("reduced").changes(0).num_rows == 3


def test_changed_answers_are_accepted_and_count_from_then_on(
    tmp_path: Path, outside: Callable[[int], None]
) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        feed(cluster.install(_of(_changing)), 3)
    outside(1)
    with cluster_of(tmp_path, 1) as cluster, pytest.raises(NotRepeatableError) as raised:
        cluster.install(_of(_changing)).output("reduced").snapshot()
    (command,) = re.findall(r"python -m timely.durable (accept \S+ \d+)", str(raised.value))
    run_command(shlex.split(command))
    for workers in (1, 2):
        with cluster_of(tmp_path, workers) as cluster:
            flow = cluster.install(_of(_changing))
            assert sorted(row["n"] for row in flow.output("reduced").snapshot().to_pylist()) == [2, 3, 3]
    outside(0)
    with cluster_of(tmp_path, 1) as cluster, pytest.raises(NotRepeatableError):
        cluster.install(_of(_changing)).output("reduced").snapshot()


def test_changed_answers_of_another_release_are_told_with_both(
    tmp_path: Path, outside: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        feed(cluster.install(_of(_changing)), 2)
    outside(1)
    monkeypatch.setattr(digests, "own_build", lambda: "release 9.9 on a toaster")
    with cluster_of(tmp_path, 2) as cluster, pytest.raises(NotRepeatableError) as raised:
        cluster.install(_of(_changing)).output("reduced").snapshot()
    assert f"made by {own_build()}\n  and that of now by release 9.9 on a toaster" in str(raised.value)


def test_changed_answers_that_nobody_has_asked_for_end_nothing(
    tmp_path: Path, outside: Callable[[int], None]
) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        flow = cluster.install(_of(_changing))
        flow.input("edges").insert([(1, 1)])
        flow.seal()
    outside(1)
    with cluster_of(tmp_path, 2) as cluster:
        assert cluster.install(_of(_changing)).output("reduced").changes(0).num_rows == 1


def test_written_digests_are_few(tmp_path: Path) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        flow = cluster.install(_of(_changing))
        for epoch in range(100):
            flow.input("edges").insert([(epoch, 1)])
            flow.seal(wait=False)
        flow.wait(99)
    assert len(records(tmp_path, "digest")) == 2 * 2  # of two outputs on two workers
    past = past_of(tmp_path).digests["counted"]
    assert past.before == 100 and len(past.sums) == 100


def test_written_digests_come_before_what_is_shown(tmp_path: Path) -> None:
    """Whatever a client has seen of an epoch, the digests of all workers were in the log by then."""
    with cluster_of(tmp_path, 3) as cluster:
        flow = cluster.install(_of(_changing))
        for epoch in range(5):
            flow.input("edges").insert([(epoch, 1), (epoch + 1, 2)])
            flow.seal(wait=False)
            flow.output("reduced").changes(epoch)
            told = [head for head in _told_records(tmp_path) if head[0] == "digest" and head[3] == "reduced"]
            before = {worker: max(each[4] for each in told if each[1] == worker) for worker in range(3)}
            assert min(before.values()) > epoch


def test_written_digests_are_waited_for_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seal that waits has no need to ask a second time."""
    with cluster_of(tmp_path, 2) as cluster:
        flow = cluster.install(_of(_changing))
        monkeypatch.setattr(EmbeddedWorkers, "ask", None)
        feed(flow, 3)
        monkeypatch.undo()


def _told_records(folder: Path) -> list[list[object]]:
    """The whole records that are in the files now."""
    store = FolderStore(folder / "store")
    heads = []
    for name in store.list("log/000001"):
        data = store.read(f"log/000001/{name}")
        heads += [record.head for record in records_in(data, name, None, True)]
    return heads


def test_written_for_an_epoch_without_an_answer(tmp_path: Path) -> None:
    def query(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "a: int, b: int")
        numbers.select(c=col.a // col.b).output("divided")

    shown = []
    for workers in (2, 3):
        with cluster_of(tmp_path, workers) as cluster:
            flow = cluster.install(query)
            if workers == 2:
                for row in [(6, 3), (1, 0), (8, 4)]:
                    flow.input("numbers").insert([row])
                    flow.seal()
                with pytest.raises(timely.TimelyError, match="no answer"):
                    flow.output("divided").changes(0, 3)
                flow.input("numbers").remove([(1, 0)])
                flow.seal()
            shown.append(flow.output("divided").snapshot().to_pylist())
            flow.input("numbers").insert([(5, 5)])
            flow.seal(wait=True)
    past = past_of(tmp_path).digests["divided"]
    assert shown == [[{"c": 2}] * 2, [{"c": 1}, *[{"c": 2}] * 2]]
    assert set(past.sums) == {0, 1, 3, 4, 5}


def test_again_no_frontier_and_no_collection_goes_back(tmp_path: Path) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        flow = cluster.install(_of(_changing))
        feed(flow, 3)
        assert flow.output("counted").complete_before() == 3
    with cluster_of(tmp_path, 2) as cluster:
        flow = cluster.install(_of(_changing))
        workers = cluster._workers
        assert isinstance(workers, EmbeddedWorkers)
        for request in (
            Progress(flow.index, "counted"),
            Progress(flow.index, ""),
            Progress(flow.index, "counted", timeout_seconds=0.0, extent=True),
            Read(flow.index, "counted", 0, 0, 0.0),
            Read(flow.index, "counted", -1, 0, 0.0),
        ):
            answer = workers._servers[0].handle(request)  # before they have worked
            assert isinstance(answer, Later) and answer.ready() is None and answer.deadline > 1e9
        assert flow.output("counted").complete_before() == 3
        assert flow.wait(2) == 2, "the other outputs are made again, too"
        for request in (Progress(flow.index, "counted"), Progress(flow.index, "")):
            assert isinstance(workers._servers[0].handle(request), Reply)


def test_a_base_that_has_all_that_was_shown_leaves_nothing_to_agree_about(tmp_path: Path) -> None:
    """Nobody makes the epochs of a base again, so nobody may wait until they are made."""
    store = str(tmp_path / "store")

    def query(flow: timely.Dataflow) -> None:
        dd.input(flow, "in", "a: int").group_by("a").agg(n=dd.count()).output("out")

    with timely.connect(embedded=True, durable=store, sync="system") as cluster:
        flow = cluster.install(query)
        for epoch in range(3):
            flow.input("in").insert([(epoch,)])
            flow.seal(wait=True)
    run_command(["fold", store, "--forget"])
    for workers in (2, 1):
        with timely.connect(workers=workers, embedded=True, durable=store, sync="system") as cluster:
            flow = cluster.install(query)
            flow.input("in").insert([(0,)])
            epoch = flow.seal(wait=True, timeout=10)
            assert len(flow.output("out").snapshot(as_of=epoch)) == 3


def test_again_a_question_that_the_disk_keeps_waiting_hears_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of(tmp_path, 1) as cluster:
        flow = cluster.install(_of(_changing))
        workers = cluster._workers
        assert isinstance(workers, EmbeddedWorkers)
        server, now = workers._servers[0], [0.0]
        monkeypatch.setattr(server._outputs, "_clock", lambda: now[0])
        answer = server.handle(Progress(flow.index, "counted", beyond=0))
        assert isinstance(answer, Later) and server.durability is not None
        with monkeypatch.context() as context:
            context.setattr(server.durability.log, "error", timely.StoreError("the disk is full"))
            now[0] = 4.9
            assert answer.ready() is None, "it may recover"
            now[0] = 5.1
            with pytest.raises(timely.StoreError, match="the disk is full"):
                answer.ready()
        assert answer.ready() is None


def test_changed_answers_of_what_a_base_has_summed_up_are_found(
    tmp_path: Path, outside: Callable[[int], None]
) -> None:
    with cluster_of(tmp_path, 2) as cluster:
        feed(cluster.install(_of(_changing)), 6)
    run_command(["fold", str(tmp_path / "store"), "--forget"])
    with cluster_of(tmp_path, 1) as cluster:
        feed(cluster.install(_of(_changing)), 1)
    outside(1)
    with cluster_of(tmp_path, 3) as cluster, pytest.raises(NotRepeatableError, match="changed at epoch 5, "):
        cluster.install(_of(_changing)).output("reduced").snapshot()
    outside(0)
    with cluster_of(tmp_path, 3) as cluster:
        assert cluster.install(_of(_changing)).output("reduced").snapshot().num_rows == 5


def test_same_answers_are_shown_from_bases_with_any_number_of_workers(tmp_path: Path) -> None:
    """Also of outputs that fail where a base begins, look back, or were not read when it was written."""

    def query(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "a: int, b: int")
        numbers.select(c=col.a // col.b).output("divided")
        numbers.delay(2).group_by("a").agg(n=dd.count()).output("delayed")
        numbers.group_by("b").agg(mean=dd.mean("a")).output("unread")

    for number, workers in enumerate((2, 3, 1, 2, 3, 1, 2)):
        with cluster_of(tmp_path, workers) as cluster:
            flow = cluster.install(query)
            numbers = flow.input("numbers")
            for row in [(6 + number, 3), (number, 0), (8, 4 + number)]:
                numbers.insert([row])
                flow.seal()
            if number % 3 == 2:
                numbers.remove([(earlier, 0) for earlier in range(number - 2, number + 1)])
                flow.seal()
            for name in flow.outputs if number > 3 else ("divided", "delayed"):
                while flow.output(name).complete_before() < flow.epoch:
                    flow.wait()
        run_command(["fold", str(tmp_path / "store"), *(["--forget"] if number % 2 else [])])
    with cluster_of(tmp_path, 3) as cluster:
        flow = cluster.install(query)
        flow.input("numbers").remove([(6, 0)])
        flow.seal(wait=True)
        assert flow.output("divided").snapshot().num_rows == 14


def test_again_a_worker_that_is_not_through_the_base_is_waited_for() -> None:
    """What a base has summed up comes as one change: earlier on there is nothing to compare."""
    flow = PastFlow(0, "", b"", "query", (), 0, "", (), FoldFacts().plain())
    flow.base = FlowBase([], summed=4, right_from=4)
    flow.digests["out"] = PastDigests(before=9, sums={4: 7, 6: 1}, makers=[(9, 1)])
    store, worker = SimulatedStore(), Worker()
    log = Log(store, "cluster", 1, 0)
    checks = DigestChecks(worker, Journal(log, 0), Past({0: flow}), store.name)
    for before, sums in (4, []), (5, [(4, 7)]), (9, [(6, 1)]):
        checks.on_digested(0, Digested(0, "out", before, b"".join(pack("<qq", *each) for each in sums)))
        assert not worker.ended
    assert checks._comparisons[0, "out"].agreed == 9
    log.close()
