"""Manifests of stored answers read as they were written, or are damaged; places are different."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.durable import stored
from timely.durable.answers.manifest import (
    Answer,
    AnswerFile,
    answer_folder,
    answer_numbers,
    answers_by_place,
    declare,
    manifest_path,
    newest_answer,
    place_of,
    read_answer,
    stored_bytes,
    write_answer,
)
from timely.durable.folder_store import FolderStore
from timely.errors import StoreError

ANSWER = Answer(
    3,
    0,
    "module:query",
    "totals",
    12,
    2,
    "answers/x",
    (AnswerFile("answers/x/part-0000.parquet", 9, 7, 5),),
    1.5,
)


def test_manifest_reads_as_it_was_written(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert write_answer(store, ANSWER)
    assert read_answer(store, "0-totals", 3) == ANSWER
    assert (ANSWER.rows, ANSWER.size_bytes, stored_bytes(store)) == (5, 9, 9)
    assert not write_answer(store, ANSWER)
    assert answers_by_place(store) == {"0-totals": ANSWER}


def test_damaged_manifest_is_named_and_the_one_before_counts(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    write_answer(store, ANSWER)
    path = tmp_path / manifest_path("0-totals", 4)
    text = (tmp_path / manifest_path("0-totals", 3)).read_text()
    for damaged in ("", "{}", "[1]", text[:-5], text.replace("12", "13"), text.replace('"rows"', '"other"')):
        path.write_text(damaged)
        if damaged != text:
            with pytest.raises(StoreError, match="000004.json is damaged: .*Remove it"):
                read_answer(store, "0-totals", 4)
    assert newest_answer(store, "0-totals", answer_numbers(store)["0-totals"]) == ANSWER
    path.write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(StoreError, match="has format 2, and this release reads format 1"):
        read_answer(store, "0-totals", 4)
    assert newest_answer(store, "0-totals", [4]) is None


@given(st.integers(0, 99), st.text(min_size=1), st.integers(0, 99), st.text(min_size=1))
def test_places_are_different(number: int, output: str, other_number: int, other: str) -> None:
    assert (place_of(number, output) == place_of(other_number, other)) == (
        (number, output) == (other_number, other)
    )


def test_names_in_the_store(tmp_path: Path) -> None:
    assert place_of(3, "totals") == "3-totals"
    assert place_of(3, "a b") != place_of(3, "a/b") and "/" not in place_of(3, "a/b")
    assert answer_folder("3-totals", 7, 12, "ab12") == "answers/3-totals.000007-epoch-12-ab12"
    store = FolderStore(tmp_path)
    for number in (11, 9, 10):
        write_answer(store, Answer(number, 3, "key", "a b"))
    store.put_new("answers/something.else", b"")
    assert answer_numbers(store) == {place_of(3, "a b"): [9, 10, 11]}


def test_declared_outputs_have_nothing_stored_yet(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    declare(store, 0, "orders", "totals")
    with pytest.raises(StoreError, match="has no stored answer: nothing is stored yet"):
        stored(tmp_path, "totals")
    write_answer(store, ANSWER)
    declare(store, 0, "orders", "totals")
    assert stored(tmp_path, "totals").epoch == 12
