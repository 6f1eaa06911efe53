"""Folds that die, come too late, or are divided: nothing is lost, and nothing is left behind.

crashed_*    a fold that dies at each of its operations, or comes too late
divided_*    many files, and many passes
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from folded_flows import folded

import differential as dd
import timely
from differential import col
from timely.durable.bases import folding
from timely.durable.bases.coverage import Logs, logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.manifest import Base, base_numbers, manifest_path
from timely.durable.bases.pruning import prune
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce
from timely.durable.store import fence_path
from timely.errors import StoreError


def counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "word: string")
    rows.group_by("word").agg(n=dd.count()).output("counts")


def cluster(folder: Path, workers: int = 1) -> timely.Cluster:
    return timely.connect(workers=workers, embedded=True, durable=folder, sync="system")


def words(flow: timely.Flow) -> dict[str, int]:
    return {row["word"]: row["n"] for row in flow.output("counts").snapshot().to_pylist()}


def restarted(
    folder: Path,
    query: Callable[[timely.Dataflow], None],
    use: Callable[[timely.Flow], None],
    workers: int = 2,
) -> None:
    with cluster(folder, workers) as started:
        use(started.install(query))


# named_


@pytest.fixture
def written_by_workers(tmp_path: Path) -> Path:
    """A store with six epochs, in which the workers have written the changes of four."""
    with cluster(tmp_path, 2) as started:
        flow = started.install(counts)
        for number in range(6):
            flow.input("rows").insert([("ab"[number % 2],), ("c",)])
            flow.seal()
            if number == 3:
                flow.wait(3)
                cut(started, 0, 3)
        flow.wait(5)
    return tmp_path


def cut(started: timely.Cluster, dataflow: int, epoch: int) -> str:
    """Let all workers write what a fold needs up to an epoch."""
    from timely.wire.handshake import CutLog

    embedded = started._workers._durable  # type: ignore[union-attr]
    assert embedded is not None
    started._workers.work_off()  # type: ignore[union-attr]
    for durability in reversed(embedded._all):
        durability.cuts.order(CutLog("now", (dataflow,), (epoch,)))
        while durability.cuts.is_cutting:
            assert durability.cuts.step()
    embedded.settle()
    return "now"


def changes_of(flow: timely.Flow, start: int) -> list[tuple[object, ...]]:
    rows = flow.output("counts").changes(start).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


EXPECTED = [
    ("a", 1, 0, 1), ("a", 1, 2, -1), ("a", 2, 2, 1), ("a", 2, 4, -1), ("a", 3, 4, 1),
    ("b", 1, 1, 1), ("b", 1, 3, -1), ("b", 2, 3, 1), ("b", 2, 5, -1), ("b", 3, 5, 1),
    *(("c", number, epoch, diff) for number in range(1, 7) for epoch, diff in ((number - 1, 1), (number, -1))
      if epoch < 6),
]  # fmt: skip


class Died(BaseException):
    """The fold ends here."""


class DyingStore(FolderStore):
    """A store whose process dies at the operation number `last`."""

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__(folder)
        self.operations: list[tuple[str, str]] = []
        self._last = last

    def _count(self, name: str, path: str) -> None:
        if len(self.operations) == self._last:
            raise Died
        self.operations.append((name, path))

    def put_new(self, path: str, data: bytes) -> bool:
        self._count("put_new", path)
        return super().put_new(path, data)

    def remove(self, path: str) -> None:
        self._count("remove", path)
        super().remove(path)

    def exists(self, path: str) -> bool:
        self._count("exists", path)
        return super().exists(path)


def fold_with(store: FolderStore, incarnation: int, logs: Logs) -> None:
    fold(logs)
    prune(store, incarnation, count=1)


def test_crashed_folds_lose_nothing(
    written_by_workers: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folded(written_by_workers, forgets=False)
    with cluster(written_by_workers, 2) as started:
        flow = started.install(counts)
        flow.input("rows").insert([("c",)])
        flow.seal()
        expected = changes_of(flow, 0)
        cut(started, 0, 6)
    store = FolderStore(written_by_workers)
    incarnation = announce(store, 1, 1)
    last, done = 0, False
    while not done:
        copy = tmp_path_factory.mktemp("copy") / "store"
        shutil.copytree(written_by_workers, copy)
        dying = DyingStore(copy, last)
        try:
            fold_with(dying, incarnation.number, logs_of(dying, incarnation))
            done = True
        except Died:
            pass
        with cluster(copy, 1 + last % 3) as started:
            assert changes_of(started.install(counts), 0) == expected, last
        folded(copy, forgets=False)
        with cluster(copy, 1 + last % 2) as started:
            assert changes_of(started.install(counts), 0) == expected, last
        last += 1
    removed = [number for number, (name, _) in enumerate(dying.operations) if name == "remove"]
    put = dying.operations.index(("put_new", manifest_path(2)))
    looked = dying.operations.index(("exists", fence_path(incarnation.number + 1)))
    assert put < looked < min(removed)
    assert last > 8


def test_crashed_folds_leave_nothing_behind(written_by_workers: Path) -> None:
    store = FolderStore(written_by_workers)
    incarnation = announce(store, 1, 1)
    for last in (1, 2):
        dying = DyingStore(written_by_workers, last)
        with pytest.raises(Died):
            fold(logs_of(dying, incarnation))
    assert len(store.list("base")) == 3
    base = fold(logs_of(store, incarnation))
    assert base is not None
    prune(store, incarnation.number)
    assert {f"base/{name}" for name in store.list("base")} == {manifest_path(1), *base.files()}


def test_crashed_late_fold_of_an_older_incarnation_removes_nothing(written_by_workers: Path) -> None:
    store = FolderStore(written_by_workers)
    folded(written_by_workers, forgets=False)
    old = announce(store, 1, 1)
    late = logs_of(store, old)
    new = announce(store, 1, 1)
    files = {folder: store.list(folder) for folder in ("base", "log/000001")}
    base = fold(late)
    assert base is not None and prune(store, old.number, count=1) == []
    assert set(files["log/000001"]) == set(store.list("log/000001"))
    assert fold(logs_of(store, new)) is not None  # which goes on from the base that it began with
    assert base_numbers(store) == [1, 2, 3]
    with cluster(written_by_workers, 2) as started:
        assert changes_of(started.install(counts), 0) == sorted(EXPECTED)


def test_crashed_disk_damage_is_named_and_the_base_before_is_whole(written_by_workers: Path) -> None:
    folded(written_by_workers, forgets=False)
    with cluster(written_by_workers, 2) as started:
        flow = started.install(counts)
        flow.input("rows").insert([("z",)])
        flow.seal()
        expected = words(flow)
        cut(started, 0, 6)
    base = folded(written_by_workers, forgets=False)
    (file,) = base.flows[0].inputs["rows"].files
    path = written_by_workers / file.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with (
        cluster(written_by_workers, 2) as started,
        pytest.raises(StoreError, match=f"{file.path} is damaged.*remove {written_by_workers}/base/000002"),
    ):
        started.install(counts)
    (written_by_workers / manifest_path(2)).unlink()
    with cluster(written_by_workers, 2) as started:
        flow = started.install(counts)
        assert words(flow) == expected
        assert changes_of(flow, 0)[: len(EXPECTED)] == sorted(EXPECTED)


# divided_


def test_divided_among_files_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: string")
        rows.group_by("a").agg(n=dd.count()).output("counts")
        rows.filter(dd.col.b == "more").output("texts")  # so that the input takes them in

    def use(flow: timely.Flow) -> None:
        numbers = list(range(5_000))
        flow.input("rows").insert(pa.table({"a": [n % 70 for n in numbers], "b": [f"t{n}" for n in numbers]}))
        flow.seal()

    restarted(tmp_path, query, use)
    monkeypatch.setattr(folding, "FOLD_DIVIDED_ROWS_MIN", 1_000)
    files = []
    for bytes_max in (1 << 30, 20_000, 100_000):
        base: Base = folded(tmp_path, forgets=True, bytes_max=bytes_max)
        files.append(len(base.flows[0].inputs["rows"].files))
        assert base.flows[0].inputs["rows"].rows == 5_000
        restarted(tmp_path, query, lambda flow: flow.input("rows").insert([(1, "more")]), workers=3)
        restarted(tmp_path, query, lambda flow: flow.input("rows").remove([(1, "more")]), workers=1)
    assert files[0] == 24 and len(files) == 3

    def later(flow: timely.Flow) -> None:
        flow.seal()
        rows = flow.output("counts").snapshot().to_pylist()
        assert len(rows) == 70 and sum(row["n"] for row in rows) == 5_000

    restarted(tmp_path, query, later, workers=3)
    assert col.a is not None
