"""`stored` finds the answer that is meant, or says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from timely.durable import StoredAnswer, stored
from timely.durable.answers.manifest import Answer, AnswerFile, write_answer
from timely.durable.folder_store import FolderStore
from timely.errors import StoreError


def put(
    store: FolderStore, number: int, key: str, output: str, epoch: int, count: int = 1, why: str = ""
) -> None:
    folder = f"answers/{number}-{output}-{count}" if epoch >= 0 else ""
    files = (AnswerFile(f"{folder}/part-0000.parquet", 10, 0, 3),) if folder else ()
    write_answer(
        store, Answer(count, number, key, output, epoch, 1, folder, files, 0.0, why, 9 if why else -1)
    )


def test_the_newest_answer_of_the_output_is_found(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    put(store, 0, "orders", "totals", 3)
    put(store, 0, "orders", "totals", 7, count=2)
    put(store, 0, "orders", "other", 4, why="it fails")
    assert stored(tmp_path, "totals") == StoredAnswer(str(tmp_path / "answers/0-totals-2"), 7, 3, 10, "")
    assert stored(str(tmp_path), "other").why == "it fails"


def test_several_dataflows_have_an_output_of_this_name(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    put(store, 0, "orders", "totals", 3)
    put(store, 1, "returns", "totals", 5)
    put(store, 2, "orders", "totals", 8)  # takes the place of 0
    with pytest.raises(StoreError, match=r"dataflows 2 \(orders\), 1 \(returns\) have .*dataflow="):
        stored(tmp_path, "totals")
    assert stored(tmp_path, "totals", dataflow="orders").epoch == 8
    assert stored(tmp_path, "totals", dataflow="returns").epoch == 5
    assert stored(tmp_path, "totals", dataflow=0).epoch == 3


def test_nothing_is_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        stored(tmp_path / "nothing", "totals")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StoreError, match="no stored answer of an output 'totals': it has none at all"):
        stored(tmp_path, "totals")
    store = FolderStore(tmp_path)
    put(store, 0, "orders", "totals", -1, why="it has no answer: it fails")
    with pytest.raises(StoreError, match="has no stored answer: at epoch 9 it has no answer: it fails"):
        stored(tmp_path, "totals")
    with pytest.raises(StoreError, match=r"it has 'totals' of 0 \(orders\)"):
        stored(tmp_path, "total")
    with pytest.raises(StoreError, match="no stored answer"):
        stored(tmp_path, "totals", dataflow="returns")
