"""How a worker process becomes part of an incarnation, before anybody hears of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulated_store import SimulatedStore

from timely.durable.bases.facts import FoldFacts
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, read_log
from timely.durable.log import Log
from timely.errors import StoreError
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.durability import beginning
from timely.worker.durability.beginning import begun
from timely.worker.durability.durability import Durability
from timely.worker.settings import WorkerSettings


def settings(folder: Path, index: int, workers: int, sync: str = "disk") -> WorkerSettings:
    return WorkerSettings(index, workers, (), (), "", durable=str(folder), sync=sync)


def begin(folder: Path, index: int, workers: int, incarnation: int = 0) -> Durability:
    network = MemoryNetwork(workers)
    worker = Worker(index, workers, network.transport(index) if workers > 1 else None)
    return begun(settings(folder, index, workers), worker, incarnation, lambda: None)


def test_worker_0_makes_the_incarnation_and_the_others_join_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    durable = [begin(folder, 0, 3)]
    durable += [begin(folder, index, 3, durable[0].number) for index in (1, 2)]
    assert [each.number for each in durable] == [1, 1, 1]
    assert [each.journal.worker for each in durable] == [0, 1, 2]
    store = FolderStore(folder)
    assert store.list("log/000001") == [f"p{process}-000000.log" for process in range(3)]
    assert store.list("members") == ["000001.begin.json", "000001.hello.json", "000001.json"]
    for each in durable:
        assert each.log.told == each.log.position == 1, "its `hello` is durable before anybody hears of it"
        each.log.close()
    second = begin(folder, 0, 1)
    assert second.number == 2
    second.log.close()
    begin_of_2 = json.loads(bytes(store.read("members/000002.begin.json") or b""))
    assert [log[:3] for log in begin_of_2["logs"]] == [[1, 0, 3], [1, 1, 3], [1, 2, 3]]
    assert (begin_of_2["workers"], begin_of_2["processes"]) == (1, 1)


def test_worker_reads_what_counts_before_it_begins(tmp_path: Path) -> None:
    first = begin(tmp_path / "store", 0, 1)
    first.journal.flow(4, ["m:f", b"", "key", (), 0, "print", [], FoldFacts().plain()])
    first.log.close()
    durable = [begin(tmp_path / "store", 0, 2)]
    durable.append(begin(tmp_path / "store", 1, 2, 2))
    for each in durable:
        assert list(each.past.flows) == [4] and each.past.next_number == 5
        assert each.number_of("key") == 4
        each.log.close()


def test_worker_that_joins_what_has_not_begun_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="incarnation 3 has no `begin`"):
        begin(tmp_path / "store", 1, 2, 3)


def test_worker_calls_on_news_of_its_log(tmp_path: Path) -> None:
    heard: list[bool] = []
    each = begun(settings(tmp_path / "store", 0, 1), Worker(), 0, lambda: heard.append(True))
    before = len(heard)
    each.log.wait(each.log.add(["x"]), 20.0)
    each.log.close()
    assert len(heard) > before > 0


@pytest.mark.parametrize(("sync", "syncs"), [("disk", True), ("system", False)])
def test_worker_syncs_as_it_is_told(monkeypatch: pytest.MonkeyPatch, sync: str, syncs: bool) -> None:
    store = SimulatedStore()
    monkeypatch.setattr(beginning, "FolderStore", lambda folder: store)
    each = begun(settings(Path("/store"), 0, 1, sync), Worker(), 0, lambda: None)
    each.log.close()
    log_syncs = [path for what, path in store.operations if what == "sync" and path.startswith("log/")]
    assert bool(log_syncs) is syncs


def test_hello_names_the_incarnation_its_workers_and_the_process(tmp_path: Path) -> None:
    durable = [begin(tmp_path / "store", 0, 2)]
    durable.append(begin(tmp_path / "store", 1, 2, 1))
    for each in durable:
        each.log.close()
    store = FolderStore(tmp_path / "store")
    present = announce(store, 1)
    assert [(log.incarnation, log.process, log.workers) for log in present.logs] == [(1, 0, 2), (1, 1, 2)]
    assert [list(read_log(store, log)) for log in present.logs] == [[], []]
    assert isinstance(durable[0].log, Log)
