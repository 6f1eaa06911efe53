"""Old answers go; the one that a reader may have just found stays, and so does all that is not known."""

from __future__ import annotations

import os
import time
from pathlib import Path
from uuid import uuid4

import pytest
from stored_flows import cluster, rows_in, totals

import timely
from timely.durable import stored
from timely.durable.answers import old
from timely.durable.answers.manifest import Answer, answer_numbers, write_answer
from timely.durable.answers.old import prune_answers
from timely.durable.folder_store import FolderStore
from timely.durable.store import fence_path

PLACE = "0-out"


def put(store: FolderStore, number: int, stored_at: float) -> str:
    """Store an answer of one file; return its folder."""
    folder = f"answers/{PLACE}.{number:06}-epoch-{number}-ab12"
    store.put_new(f"{folder}/part-0000.parquet", b"rows")
    assert write_answer(store, Answer(number, 0, "key", "out", number, 1, folder, (), stored_at))
    return folder


def numbers(store: FolderStore) -> list[int]:
    return answer_numbers(store)[PLACE]


def test_answers_stay_until_they_have_been_replaced_for_a_while(tmp_path: Path) -> None:
    store, now = FolderStore(tmp_path), time.time()
    folders = [put(store, number, now - 100 * (6 - number)) for number in range(1, 6)]
    # Answer 2 was replaced 300 s ago, and answer 3 200 s ago.
    assert prune_answers(store, 1, seconds=250) == [
        f"answers/{PLACE}.000001.json",
        f"answers/{PLACE}.000002.json",
        *(path for folder in folders[:2] for path in (f"{folder}/part-0000.parquet", folder)),
    ]
    assert numbers(store) == [3, 4, 5]
    assert [store.exists(folder) for folder in folders] == [False, False, True, True, True]
    prune_answers(store, 1, seconds=0)
    assert numbers(store) == [4, 5]
    prune_answers(store, 1, seconds=0, count=1)
    assert numbers(store) == [5]
    assert prune_answers(store, 1, seconds=0, count=1) == []


def test_not_very_many_answers_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old, "ANSWERS_COUNT_MAX", 3)
    store = FolderStore(tmp_path)
    for number in range(6):
        put(store, number, time.time())
    prune_answers(store, 1, seconds=1_000)
    assert numbers(store) == [3, 4, 5]


def test_what_a_killed_fold_has_left_goes_when_a_later_one_has_stored(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    left = f"answers/{PLACE}.000002-epoch-9-cd34"
    store.put_new(f"{left}/part-0000.parquet", b"half")
    put(store, 1, time.time())
    assert prune_answers(store, 1) == []  # a fold may be writing it
    put(store, 2, time.time())
    assert prune_answers(store, 1) == [f"{left}/part-0000.parquet", left]
    assert numbers(store) == [1, 2]


def test_nothing_goes_once_a_later_incarnation_is_announced(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for number in range(4):
        put(store, number, 0.0)
    store.put_new(fence_path(2), b"{}")
    assert prune_answers(store, 1, seconds=0) == []
    assert len(prune_answers(store, 2, seconds=0)) == 6


def test_folders_stay_that_a_damaged_manifest_may_name(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    folders = [put(store, number, 0.0) for number in range(4)]
    (tmp_path / "answers" / f"{PLACE}.000002.json").write_text("{")
    prune_answers(store, 1, seconds=0)
    assert numbers(store) == [2, 3] and all(store.exists(folder) for folder in folders)


def test_the_answer_before_stays_for_its_readers(tmp_path: Path) -> None:
    answers: list[timely.durable.StoredAnswer] = []
    for number in range(3):
        with cluster(tmp_path) as started:
            flow = started.install(totals)
            flow.input("orders").insert([("ada", number)])
            flow.seal()
        answers.append(stored(tmp_path, "totals"))
    assert all(Path(answer.path).is_dir() for answer in answers)
    assert rows_in(tmp_path) == (2, [("ada", 3)])


def test_what_a_killed_fold_has_begun_to_write_hinders_no_later_fold(tmp_path: Path) -> None:
    """A temporary file is in no list, so that the folder seems to be empty."""
    store = FolderStore(tmp_path)
    folder = tmp_path / "answers" / f"{PLACE}.000001-epoch-7-cd34"
    folder.mkdir(mode=0o700, parents=True)
    begun = folder / f".part-0000.parquet.{uuid4().hex}"
    begun.write_bytes(b"some of the rows")
    put(store, 2, time.time())
    assert prune_answers(store, 1) == [] and begun.exists()
    os.utime(begun, (0, 0))
    store.remove_unfinished()
    assert prune_answers(store, 1) == [f"answers/{folder.name}"]
    assert not folder.exists() and numbers(store) == [2]
