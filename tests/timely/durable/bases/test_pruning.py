"""What is removed: only what no kept base needs, and nothing once a later incarnation has begun."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_store import SimulatedStore

from timely.durable.bases.manifest import (
    Base,
    BaseFile,
    FlowBase,
    InputBase,
    SegmentName,
    manifest_path,
    write_base,
)
from timely.durable.bases.pruning import prune
from timely.durable.bases.rows_form import BucketRange
from timely.durable.folder_store import FolderStore
from timely.durable.store import begin_path, fence_path, hello_path, segment_path


@pytest.fixture
def store() -> SimulatedStore:
    """Three bases; each has a file of its own, and the last two share one. Base n stands for n segments."""
    store = SimulatedStore()
    for number in range(1, 4):
        paths = [f"base/00000{number}-a-own", "base/000002-a-shared"][: 1 + (number > 1)]
        for path in (*paths, f"base/00000{number}-b-left-over", "base/000009-b-of-a-fold-at-work"):
            store.put_new(path, b"data")
        files = [BaseFile(path, 4, 0, 1, BucketRange(0, 1), (0, 0)) for path in paths]
        base = Base(number, {0: FlowBase([], inputs={"in": InputBase(files)})}, {(1, 0): number - 1})
        if number > 1:
            base.pinned[SegmentName(1, 0, 0)] = "log/000001/p0-000000.log", 4
        write_base(store, base)
    for number in range(5):
        store.put_new(f"log/000001/p0-{number:06}.log", b"data")
    store.put_new("log/000001/p0-000001.log.000002", b"data")
    store.put_new("log/000001/p1-000000.log", b"data")
    return store


def test_pruned_of_all_but_two_bases(store: SimulatedStore) -> None:
    removed = prune(store, 1)
    assert sorted(removed) == [
        "base/000001-a-own",
        "base/000001-b-left-over",
        "base/000001.manifest",
        "base/000002-b-left-over",
        "base/000003-b-left-over",
        "log/000001/p0-000001.log",
        "log/000001/p0-000001.log.000002",
    ]
    assert not any(store.exists(path) for path in removed)
    assert prune(store, 1) == []


def test_pruned_folders_of_logs_that_are_empty_go(tmp_path: Path) -> None:
    """A program that cron starts every minute leaves half a million of them in a year."""
    store = FolderStore(tmp_path)
    for number in range(1, 4):
        store.put_new(segment_path(number, 0, 0), b"data")
    store.put_new(segment_path(2, 0, 1), b"data")
    for base in (1, 2):
        write_base(store, Base(base, {}, {(number, 0): 0 for number in range(1, 4)}))
    prune(store, 3)
    assert store.list("log") == ["000002", "000003"], "one has a file, and one is that of the caller"


def test_pruned_of_all_but_one_base(store: SimulatedStore) -> None:
    removed = prune(store, 1, count=1)
    assert {"base/000002-a-own", manifest_path(2), "log/000001/p0-000002.log"} <= set(removed)
    assert "base/000002-a-shared" not in removed


def test_pruned_around_a_base_that_is_in_use(store: SimulatedStore) -> None:
    removed = prune(store, 1, in_use=[1, 7])
    assert not [path for path in removed if not path.endswith("left-over")]


def test_pruned_of_no_log_while_somebody_reads_all_of_them(store: SimulatedStore) -> None:
    removed = prune(store, 1, in_use=[0])
    assert manifest_path(1) in removed and not [path for path in removed if path.startswith("log")]


def test_pruned_of_nothing_once_a_later_incarnation_has_begun(store: SimulatedStore) -> None:
    store.put_new(fence_path(2), b"")
    assert prune(store, 1) == []


def test_pruned_of_nothing_without_a_base() -> None:
    store = SimulatedStore()
    store.put_new("log/000001/p0-000000.log", b"data")
    assert prune(store, 1) == []


def test_pruned_of_what_old_incarnations_have_said_when_they_began(store: SimulatedStore) -> None:
    for number in range(1, 6):
        for path in (fence_path(number), begin_path(number), hello_path(number)):
            store.put_new(path, b"{}")
    removed = prune(store, 5)
    assert {path for path in removed if path.startswith("members/")} == {
        path(number) for path in (begin_path, hello_path) for number in (1, 2, 3)
    }
    left = [f"00000{number}.{what}json" for number in (4, 5) for what in ("begin.", "hello.", "")]
    assert store.list("members") == ["000001.json", "000002.json", "000003.json", *left]
