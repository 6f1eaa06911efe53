"""Workers begin folds by themselves, while epochs flow.

embedded_*    workers of a program
processes_*   workers that are processes
many_*        short programs, each of which leaves little
stored_*      what stored outputs hold goes with the folds
"""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers, embedded, words
from folded_flows import folded
from simulated_store import SimulatedDisk
from stored_flows import cluster, has_answer, rows_in, totals

import differential as dd
import timely
from timely.durable.answers import asking
from timely.durable.answers.asking import ask, requests_in
from timely.durable.bases.coverage import incarnations_to_fold
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.bases.manifest import base_numbers, read_base
from timely.durable.commands import main
from timely.durable.folder_store import FolderStore
from timely.errors import StoreError
from timely.wire.handshake import CutLog
from timely.wire.requests import WHEN_NAMED, Decide, Deliver
from timely.worker.durability import fold_turns
from timely.worker.durability.fold_turns import Folds
from timely.worker.durability.folds import cuts as cuts_module
from timely.worker.durability.folds import fold_process
from timely.worker.durability.folds.fold_process import FoldProcess


def sums(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: string")
    rows.group_by("a").agg(n=dd.count(), last=dd.max("a")).output("sums")
    rows.filter(dd.col.b == "a text").output("texts")  # so that the input takes them in


def other(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", "a: int").output("out")


def go_on(flow: timely.Flow, epochs: int) -> None:
    for _ in range(epochs):
        epoch = flow.epoch
        flow.input("rows").insert([(number, f"text {number % 5}") for number in range(30)])
        if epoch:
            flow.input("rows").remove([(number, f"text {number % 5}") for number in range(1, 30)])
        flow.seal()
    flow.wait()


def first_fails(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the first fold fail; return where the names of all cuts are noted."""
    start = FoldProcess._start
    names: list[str] = []

    def wrongly(self: FoldProcess, name: str, in_use: list[int]) -> None:
        names.append(name)
        start(self, "no such cut" if len(names) == 1 else name, in_use)

    monkeypatch.setattr(FoldProcess, "_start", wrongly)
    return names


def until(is_so: Callable[[], bool], meanwhile: Callable[[], object]) -> None:
    deadline = time.monotonic() + 100
    while not is_so():
        assert time.monotonic() < deadline
        meanwhile()
        time.sleep(0.05)  # a fold takes its time, and the epochs meanwhile are to be few


def rows_of(flow: timely.Flow) -> dict[int, int]:
    return {row["a"]: row["n"] for row in flow.output("sums").snapshot().to_pylist()}


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds begin after few bytes."""
    monkeypatch.setattr(fold_process, "FOLD_LOG_BYTES_MIN", 8_000)
    monkeypatch.setattr(fold_turns, "_REPORT_BYTES", 1_000)
    monkeypatch.setattr(fold_turns, "_EMBEDDED_PATIENCE_SECONDS", 0.05)


@pytest.mark.parametrize("threads", [False, True])
def test_embedded_workers_fold_while_epochs_flow(threads: bool, early: None, tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    with timely.connect(
        workers=2, embedded=True, threads=threads, durable=tmp_path, sync="system"
    ) as cluster:
        flow = cluster.install(sums)
        until(lambda: len(base_numbers(store)) > 0, lambda: go_on(flow, 2))
        first = base_numbers(store)[-1]
        until(lambda: base_numbers(store)[-1] > first, lambda: go_on(flow, 2))
        changes = flow.output("sums").changes(0).num_rows
        expected, epochs = rows_of(flow), flow.epoch
    base = read_base(store, base_numbers(store)[-1])
    assert 0 < base.flows[0].summed < epochs
    assert len(store.list("log/000001")) <= 4
    with timely.connect(workers=3, embedded=True, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        assert flow.epoch == epochs and rows_of(flow) == expected
        assert flow.output("sums").changes(0).num_rows == changes


def test_embedded_workers_give_up_a_fold_that_is_stopped_and_begin_another(
    early: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fold_process, "_STOPPED_SECONDS", 0.4)
    monkeypatch.setattr(fold_process, "_FAILED_SECONDS", 0.1)
    start = FoldProcess._start
    stopped: list[int] = []

    def start_stopped(self: FoldProcess, name: str, in_use: list[int]) -> None:
        start(self, name, in_use)
        if not stopped:
            assert self._process is not None
            stopped.append(self._process.pid)
            os.kill(self._process.pid, signal.SIGSTOP)

    monkeypatch.setattr(FoldProcess, "_start", start_stopped)
    store = FolderStore(tmp_path)
    with timely.connect(embedded=True, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        until(lambda: len(base_numbers(store)) > 0, lambda: go_on(flow, 2))
    assert f"were not folded: its process {stopped[0]} was stopped" in caplog.text
    assert not Path(f"/proc/{stopped[0]}").exists()


def test_embedded_dataflow_that_nobody_installs_again_stays_in_bases(early: None, tmp_path: Path) -> None:
    with timely.connect(embedded=True, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(other)
        flow.input("rows").insert([(1,), (2,)])
        flow.seal()
        cluster.install(sums)
    store = FolderStore(tmp_path)
    for _ in range(2):
        with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as cluster:
            flow = cluster.install(sums)
            newest = len(base_numbers(store)) and base_numbers(store)[-1]
            # Two bases: all that is older than both is not kept for their sake.
            until(lambda: base_numbers(store)[-1:] > [newest + 1], lambda: go_on(flow, 2))  # noqa: B023
            used = cluster._workers._durable.first.base  # type: ignore[union-attr]
            assert used == 0 or used in base_numbers(store)
            # It begins from the base that this incarnation has begun with.
            assert cluster.install(other).output("out").snapshot().num_rows == 2
    with timely.connect(embedded=True, durable=tmp_path, sync="system") as cluster:
        assert cluster.install(other).output("out").snapshot().num_rows == 2


def test_embedded_fold_that_fails_is_tried_again(
    early: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fold_process, "_FAILED_SECONDS", 0.0)
    names = first_fails(monkeypatch)
    store = FolderStore(tmp_path)
    with timely.connect(embedded=True, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        until(lambda: len(base_numbers(store)) > 0, lambda: go_on(flow, 2))
    assert len(names) >= 2 and "was not cut for 'no such cut'" in caplog.text


def test_embedded_workers_go_on_folding_though_the_disk_fails_as_the_log_is_cut(
    early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(fold_turns, "_EMBEDDED_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(FoldProcess, "_start", lambda self, name, in_use: started.append(name))
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, _):
        flow = cluster.install(other)
        embedded_log = cluster._workers._durable  # type: ignore[union-attr]
        embedded_log.first.cuts.on_cut = lambda order: disk.failing.update(sync=errno.EIO)
        with pytest.raises(StoreError, match="EIO"):
            for number in range(1_000):
                flow.input("rows").insert([(number,)])
                flow.seal()
        assert not started
        embedded_log.first.cuts.on_cut = None
        disk.failing.clear()
        embedded_log.log.wait(embedded_log.log.position, 20.0)
        flow.wait()
        assert started == ["1-1"]


@pytest.mark.parametrize("is_within", [False, True])
def test_embedded_fold_while_a_reader_forgets_keeps_no_epoch_in_part(
    is_within: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are forgotten when one worker has written all of its own, and the other none; or within."""
    monkeypatch.setattr(cuts_module, "_STEP_SECONDS", 0.0)
    with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        for _ in range(6):
            flow.input("rows").insert([(number, "") for number in range(8)])
            flow.seal()
        flow.wait()
        embedded = cluster._workers._durable  # type: ignore[union-attr]
        assert embedded is not None
        first, second = (durability.cuts for durability in embedded._all)
        for cuts in (first, second):
            cuts.order(CutLog("now", (0,), (5,), ()))
        count = 0
        while second.is_cutting:
            assert second.step()
            count += 1
            if is_within and count == 2:
                flow.output("sums").forget(5)
        assert count > (2 if is_within else 5)
        flow.output("sums").forget(5)
        while first.is_cutting:
            assert first.step()
        embedded.settle()
    folded(tmp_path, forgets=False)
    with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as cluster:
        output = cluster.install(sums).output("sums")
        for epoch in (2, 3):
            with pytest.raises(timely.ForgottenError, match="has those of epochs 4 to 5"):
                output.snapshot(as_of=epoch)
        for epoch in (4, 5):
            assert {row["n"] for row in output.snapshot(as_of=epoch).to_pylist()} == {epoch + 1}


def test_processes_fold_while_epochs_flow(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    numbers = list(range(200_000))

    def load(flow: timely.Flow) -> None:
        texts = [str(hash((number, flow.epoch))) for number in numbers]
        flow.input("rows").insert(pa.table({"a": [number % 100 for number in numbers], "b": texts}))
        flow.seal()
        flow.wait()

    with timely.connect(workers=2, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        load(flow)
        load(flow)
        until(lambda: len(base_numbers(store)) > 0, lambda: None)
        expected = rows_of(flow)
        epochs = flow.epoch
    with timely.connect(workers=1, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(sums)
        assert (flow.epoch, rows_of(flow)) == (epochs, expected)


# stored_


def test_stored_answers_are_renewed_although_little_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_process, "ANSWERS_STORED_SECONDS_DEFAULT", 0.0)
    monkeypatch.setattr(fold_process, "_PAUSE_SHARE", 0.0)
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        for _ in range(2):
            flow.input("orders").insert([("ada", 5)])
            epoch = flow.seal()
            until(lambda: has_answer(tmp_path), flow.wait)
            until(lambda: rows_in(tmp_path)[0] == epoch, flow.wait)  # noqa: B023
            assert rows_in(tmp_path) == (epoch, [("ada", 5 + 5 * epoch)])
            flow.wait()
        number = base_numbers(FolderStore(tmp_path))[-1]
        monkeypatch.setattr(fold_process, "_LOOK_SECONDS", 0.0)
        for _ in range(20):
            flow.wait()  # nothing is sealed, so nothing is stored anew
        assert base_numbers(FolderStore(tmp_path))[-1] == number


@pytest.mark.parametrize("asks", [False, True])
def test_stored_answers_come_with_the_next_fold_if_one_fails(
    asks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sealed meanwhile. The rows are in the log by then, and no fold has read them."""
    monkeypatch.setattr(fold_process, "ANSWERS_STORED_SECONDS_DEFAULT", 3_600.0 if asks else 0.0)
    monkeypatch.setattr(fold_process, "_FAILED_SECONDS", 0.0)
    names = first_fails(monkeypatch)
    store = FolderStore(tmp_path)
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
        if asks:
            store.put_new("requests/answers-test", b"")
        until(lambda: has_answer(tmp_path), flow.wait)
        assert len(names) == 2 and rows_in(tmp_path) == (0, [("ada", 5)])
        until(lambda: not requests_in(store), flow.wait)


def shop(flow: timely.Dataflow) -> None:
    dd.input(flow, "orders", "customer: string, cents: int").export("orders", by="customer")


def rated(flow: timely.Dataflow) -> None:
    orders = dd.imported(flow, "shop", "orders", "customer: string, cents: int")
    rates = dd.input(flow, "rates", "customer: string, rate: int")
    orders.join(rates, on="customer").output("totals", stored=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_stored_answers_do_not_wait_for_epochs_that_what_they_read_has_not_sealed(
    workers: int, tmp_path: Path
) -> None:
    with cluster(tmp_path, workers) as started:
        owner, flow = started.install(shop), started.install(rated)
        flow.input("rates").insert([("ada", 3)])
        flow.seal(through=9)
        for cents in (5, 7):
            owner.input("orders").insert([("ada", cents)])
            owner.seal()
    assert rows_in(tmp_path) == (1, [("ada", 5, 3), ("ada", 7, 3)])


def test_stored_answers_are_those_of_their_epochs_while_a_reader_forgets_all(
    early: None, tmp_path: Path
) -> None:
    """Each epoch is forgotten as soon as it is complete, so no worker has what it was long behind."""
    seen: set[int] = set()
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)

        def change_all() -> None:
            epoch = flow.epoch
            flow.input("orders").insert([(f"customer {number}", epoch) for number in range(20)])
            if epoch:
                flow.input("orders").remove([(f"customer {number}", epoch - 1) for number in range(20)])
            flow.seal()
            flow.wait()
            for name in flow.outputs:
                flow.output(name).forget(flow.epoch)

        def is_stored_twice() -> bool:
            if has_answer(tmp_path):
                epoch, rows = rows_in(tmp_path)
                assert rows == sorted((f"customer {number}", epoch) for number in range(20))
                seen.add(epoch)
            return len(seen) == 2

        until(is_stored_twice, lambda: [change_all() for _ in range(5)])


def test_stored_answers_are_as_of_the_epoch_of_the_order_although_later_ones_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_turns.EmbeddedFolds, "store", lambda self, seconds: True)
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)

        def change() -> None:
            flow.input("orders").insert([("ada", 1), (f"customer {flow.epoch}", flow.epoch)])
            flow.seal()
            flow.wait()

        for _ in range(3):
            change()
        embedded = started._workers._durable  # type: ignore[union-attr]
        assert embedded is not None
        for durability in embedded._all:
            durability.cuts.order(CutLog("now", (0,), (2,), (2,)))
        for _ in range(3):
            change()
        flow.output("totals").forget(6)
        extents = [one._worker.instances[0].output("totals").log.extent()[0] for one in embedded._all]
        assert extents == [3, 3]  # until the rows of epoch 2 are fixed
        for durability in reversed(embedded._all):
            while durability.cuts.is_cutting:
                assert durability.cuts.step() or embedded.settle()
        extents = [one._worker.instances[0].output("totals").log.extent()[0] for one in embedded._all]
        assert extents == [6, 6]
        embedded.settle()
    folded(tmp_path, forgets=False)
    assert rows_in(tmp_path)[0] == 2
    check_totals(*rows_in(tmp_path))


def test_stored_answers_fold_again_only_behind_much_else(early: None, tmp_path: Path) -> None:
    """The rows of an answer are in the logs, and do not make the next fold due."""
    with cluster(tmp_path) as started:
        flow = started.install(totals)
        flow.input("orders").insert([(f"customer {number}", number) for number in range(5_000)])
        flow.seal()
        until(lambda: len(base_numbers(FolderStore(tmp_path))) > 0, flow.wait)
        until(lambda: not started._workers._durable.folds.is_to_look, flow.wait)  # type: ignore[union-attr]
        for _ in range(20):
            flow.input("orders").insert([("ada", 1)])
            flow.seal()
            flow.wait()
        assert base_numbers(FolderStore(tmp_path)) == [1]


def test_stored_answers_at_the_end_of_a_program_are_the_last_though_a_fold_is_under_way(
    early: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_turns, "_CUT_SECONDS", 0.0)
    monkeypatch.setattr(FoldProcess, "_start", lambda self, name, in_use: names.append(name))
    names: list[str] = []
    with embedded(SimulatedDisk()) as (cluster, _):
        flow = cluster.install(totals)
        embedded_log = cluster._workers._durable  # type: ignore[union-attr]
        flow.input("orders").insert([(f"customer {number}", number) for number in range(20_000)])
        flow.seal()
        until(lambda: bool(embedded_log.folds._cutting), flow.wait)
        flow.input("orders").insert([("the last", 7)])
        assert flow.seal() == 1 and embedded_log.folds._cutting
    assert names == ["1-1", "1-2"]
    assert embedded_log.first.cuts._stored == {(0, "totals"): 1, (0, "orders"): 1}


@pytest.mark.parametrize("workers", [1, 2])
def test_stored_answers_survive_kills_of_workers_and_folds(workers: int, tmp_path: Path) -> None:
    rng, store = random.Random(workers), FolderStore(tmp_path)
    stored_epochs = {-1}
    with timely.connect(workers=workers, durable=tmp_path, sync="system") as started:
        flow = started.install(totals)
        for _ in range(6):
            epoch = flow.epoch
            flow.input("orders").insert([("ada", 1), (f"customer {epoch}", epoch)])
            flow.seal()
            ask(store)
            time.sleep(rng.random() * 2)  # anywhere in the cut, in the fold, or behind it
            if has_answer(tmp_path):
                check_totals(*rows_in(tmp_path))
                stored_epochs.add(rows_in(tmp_path)[0])
            process = started.stats()[rng.randrange(workers)]["process"]
            assert isinstance(process, int)
            os.kill(process, signal.SIGKILL)
        flow.wait()
        until(lambda: not requests_in(store), flow.wait)
        assert rows_in(tmp_path)[0] == 5
        check_totals(*rows_in(tmp_path))
    assert main(["verify", str(tmp_path)]) == 0


def check_totals(epoch: int, rows: Sequence[tuple[object, ...]]) -> None:
    """Each epoch adds 1 to one sum, and has a customer of its own."""
    assert dict(rows) == {"ada": epoch + 1, **{f"customer {number}": number for number in range(epoch + 1)}}


def test_many_short_programs_fold_at_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of cron: none of them logs much, or runs for long. One does not install both dataflows."""
    monkeypatch.setattr(fold_process, "FOLD_INCARNATIONS_MAX", 3)
    for run in range(10):
        with timely.connect(workers=1, embedded=True, durable=tmp_path, sync="system") as started:
            flow = started.install(sums)
            if run == 0:
                unused = started.install(other)
                unused.input("rows").insert([(7,)])
                unused.seal()
            assert flow.epoch == run
            go_on(flow, 1)
        assert base_numbers(FolderStore(tmp_path)) == [[], [1], [1, 2], [2, 3]][run // 3]
    assert min(path.name for path in tmp_path.glob("members/*.begin.json")) == "000009.begin.json"
    assert min(path.parent.name for path in tmp_path.glob("log/*/*")) == "000007"
    with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as started:
        assert rows_of(started.install(sums)) == {0: 10, **dict.fromkeys(range(1, 30), 1)}
        assert started.install(other).output("out").snapshot().to_pylist() == [{"a": 7}]


def test_many_short_programs_with_worker_processes_fold_at_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "FOLD_INCARNATIONS_MAX", 2)
    for run in range(3):
        assert base_numbers(FolderStore(tmp_path)) == []
        with timely.connect(workers=2, durable=tmp_path, sync="system") as started:
            flow = started.install(sums)
            assert flow.epoch == run
            go_on(flow, 1)
    assert base_numbers(FolderStore(tmp_path)) == [1]
    assert incarnations_to_fold(FolderStore(tmp_path)) == 0
    with timely.connect(workers=1, durable=tmp_path, sync="system") as started:
        assert rows_of(started.install(sums)) == {0: 3, **dict.fromkeys(range(1, 30), 1)}


def test_processes_cut_their_logs_behind_that_of_the_worker_that_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Worker 0 may take longer to write what its outputs keep, and decide about parts meanwhile."""
    names: list[str] = []
    monkeypatch.setattr(FoldProcess, "_start", lambda self, name, in_use: names.append(name))
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        workers.seal(0)
        folds = [Folds(*each, "simulated") for each in zip(workers.workers, workers.durable, strict=True)]
        for server, each in zip(workers.servers, folds, strict=True):
            server.folds = each
        process = folds[0]._process
        assert process is not None and folds[0]._begin(process)
        for _ in range(3):
            workers.settle()
            folds[1].look(True)
        assert workers.durable[1].cuts.is_cutting, "the first worker has not cut its log yet"
        for worker in range(2):
            part = Deliver(0, "words", "w", 0, WHEN_NAMED, 1, 1)
            workers.ask(part, words(f"from {worker}"), worker)
        assert workers.ask(Decide(0, 1, enter=[["words", "w", 0, 1]], incarnation=1)).items("entered")
        while not names:
            workers.settle()
            for each in folds:
                each.look(True)
        incarnation = workers.durable[0].incarnation
        assert fold(cut_logs(workers.store, incarnation, *names), live=1) is not None
        workers.seal(1)
        before = workers.read("loud", 2)
        assert len(before) == 2
    with DurableWorkers(disk, 3) as workers:
        assert workers.durable[0].incarnation.base == 1 and workers.read("loud", 2) == before
