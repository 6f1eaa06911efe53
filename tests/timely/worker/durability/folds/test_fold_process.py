"""The process that folds: what becomes of one that others leave no time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import Popen

import pytest

from timely.durable.folder_store import FolderStore
from timely.worker.durability.folds import fold_process
from timely.worker.durability.folds.fold_process import Before, FoldProcess

SLEEPS = ["-c", "import time; time.sleep(600)"]
ENDS = ["-c", "print(7)"]

Starts = list[Sequence[str]]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """On a machine with idle cores the first fold sleeps and all others end; how they are started."""
    commands: Starts = []
    start = fold_process.start_python

    def noting(command: Sequence[str], environment: Mapping[str, str]) -> Popen[str]:
        commands.append(command)
        return start(SLEEPS if len(commands) == 1 else ENDS, environment)

    monkeypatch.setattr(fold_process, "start_python", noting)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    return commands


def begun(folder: Path) -> FoldProcess:
    folds = FoldProcess(str(folder), FolderStore(folder), Before(1, 0, 10, 0))
    folds.note_size(0, 5)
    folds.note_cut(0, folds.new_cut([0]), [])
    return folds


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 100
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


needs_idle_class = pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="the system has no such class")


@needs_idle_class
def test_a_fold_that_others_leave_no_time_begins_again_with_a_low_priority(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_process, "_STARVED_SECONDS", 0.05)
    monkeypatch.setattr(fold_process, "_seconds_of", lambda pid: 0.0)
    folds = begun(tmp_path)
    first = folds._process
    assert first is not None and os.sched_getscheduler(first.pid) == os.SCHED_IDLE
    policies: list[int] = []
    yields = fold_process._yield_to_others

    def noted(pid: int, entirely: bool) -> bool:
        yielded = yields(pid, entirely)
        policies.append(os.sched_getscheduler(pid))
        return yielded

    monkeypatch.setattr(fold_process, "_yield_to_others", noted)
    until(folds.look)
    assert first.poll() is not None
    assert [*starts[0], "--nice", "10"] == starts[1] and len(starts) == 2 and policies == [os.SCHED_OTHER]
    assert not folds.has_failed and folds.logged_bytes() == 0  # the second one has ended well


@needs_idle_class
def test_a_fold_that_has_its_time_goes_on_however_long_it_takes(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_process, "_STARVED_SECONDS", 0.0)
    monkeypatch.setattr(fold_process, "_seconds_of", lambda pid: 1_000.0)
    folds = begun(tmp_path)
    assert not folds.look()
    monkeypatch.setattr(fold_process, "_seconds_of", lambda pid: 0.0)
    assert not folds.look() and folds.is_running and len(starts) == 1
    folds.wait(0.0)
    assert not folds.is_running


def test_the_time_of_a_process_is_what_the_system_has_counted() -> None:
    before = fold_process._seconds_of(os.getpid())
    if not sys.platform.startswith("linux"):
        assert before == float("inf")
        return
    until(lambda: fold_process._seconds_of(os.getpid()) >= before + 0.05)
    assert fold_process._seconds_of(os.getpid()) <= sum(os.times()[:2]) + 0.05
    assert fold_process._seconds_of(2**22 + 1) == float("inf")  # no such process
