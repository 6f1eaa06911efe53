"""A running cluster folds, and stores answers, when somebody asks for it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_flows import rows_in, totals

import timely
from timely.durable.answers import asking
from timely.durable.answers.asking import ask, await_last_fold, fold_last, fulfil, requests_in
from timely.durable.answers.manifest import declare
from timely.durable.bases.manifest import base_numbers
from timely.durable.commands import main
from timely.durable.folder_store import FolderStore


def test_requests_stay_until_they_are_fulfilled(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert requests_in(store) == []
    first, second = ask(store), ask(store)
    assert sorted(requests_in(store)) == sorted([first, second])
    fulfil(store, [first])
    fulfil(store, [first])
    assert requests_in(store) == [second]


def folding(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "timely.durable", "fold", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: subprocess.Popen[str], meanwhile: Callable[[], object]) -> str:
    deadline = time.monotonic() + 100
    while process.poll() is None:
        assert time.monotonic() < deadline
        meanwhile()
        time.sleep(0.05)  # the program goes on, call by call
    assert process.stdout is not None
    with process.stdout:
        text = process.stdout.read()
    assert process.returncode == 0, text
    return text


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_store_answers_when_they_are_asked(workers: int, tmp_path: Path) -> None:
    with timely.connect(workers=workers, durable=tmp_path, sync="system") as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5), ("bea", 2), ("ada", 30)])
        flow.seal()
        text = ended(folding(tmp_path), lambda: None)
        assert "output 'totals' is stored as of epoch 0: 2 rows, " in text
        assert rows_in(tmp_path) == (0, [("ada", 35), ("bea", 2)])
        flow.input("orders").insert([("cy", 1)])
        flow.seal()
        ended(folding(tmp_path), lambda: None)
        assert rows_in(tmp_path) == (1, [("ada", 35), ("bea", 2), ("cy", 1)])


def test_embedded_workers_store_answers_when_they_are_asked(tmp_path: Path) -> None:
    with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
        ended(folding(tmp_path), flow.wait)
        assert rows_in(tmp_path) == (0, [("ada", 5)])


def test_a_stopped_cluster_is_folded_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with timely.connect(embedded=True, durable=tmp_path, sync="system") as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
    ask(FolderStore(tmp_path))
    assert main(["fold", str(tmp_path)]) == 0
    assert "output 'totals' is stored as of epoch 0: 1 row, " in capsys.readouterr().out


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_store_answers_before_their_program_ends(workers: int, tmp_path: Path) -> None:
    for epoch in range(2):
        with timely.connect(workers=workers, durable=tmp_path, sync="system") as started:
            flow = started.install(totals)
            flow.input("orders").insert([("ada", 5)])
            flow.seal()
        assert rows_in(tmp_path) == (epoch, [("ada", 5 + 5 * epoch)])


def test_nothing_is_awaited_without_stored_outputs(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    await_last_fold(store, lambda: pytest.fail("there is nothing to wait for"))
    declare(store, 0, "orders", "totals")
    asked: list[list[str]] = []

    def goes_on() -> bool:
        asked.append(requests_in(store))
        return len(asked) < 3

    await_last_fold(store, goes_on)
    assert len(asked) == 3 and all(len(each) == 1 for each in asked) and requests_in(store) == []


def test_a_request_for_answers_begins_no_fold_if_all_are_stored(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    with timely.connect(workers=1, durable=tmp_path, sync="system") as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
        for _ in range(3):
            await_last_fold(store, lambda: True)
            assert base_numbers(store) == [1]
    assert base_numbers(store) == [1]


def test_a_last_fold_takes_no_longer_than_it_may_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = FolderStore(tmp_path)
    declare(store, 0, "orders", "totals")
    monkeypatch.setattr(asking, "_LAST_SECONDS", 0.05)
    fold_last(store, lambda: True)
    assert requests_in(store) == [] and "was given up after 0.05 s" in caplog.text
    caplog.clear()
    monkeypatch.setattr(asking, "_LAST_SECONDS", 60.0)
    fold_last(store, lambda: False)
    assert requests_in(store) == [] and not caplog.records

    def full(*_: object) -> bool:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FolderStore, "put_new", full)
    fold_last(store, lambda: True)
    assert "the answers of stored outputs were not stored at the end: " in caplog.text
    assert "No space left" in caplog.text
