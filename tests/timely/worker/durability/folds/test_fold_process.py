"""The process that folds: what becomes of one that others leave no time."""

from __future__ import annotations

import os
import signal
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


@pytest.fixture
def counts_as_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fold counts as starved at once. It is not, so that tests need no idle core."""
    monkeypatch.setattr(fold_process, "_STARVED_SECONDS", 0.0)
    monkeypatch.setattr(fold_process, "_seconds_of", lambda pid: 0.0)
    monkeypatch.setattr(fold_process, "_yield_to_others", lambda pid, entirely: entirely)


def unkilled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[FoldProcess, Popen[str], list[Popen[str]]]:
    """Folds whose first one does not end when it is killed, as if it got no core for that: who was killed."""
    folds = begun(folder)
    first, killed = folds._process, list[Popen[str]]()
    assert first is not None

    def waits(timeout: float | None = None) -> int:
        raise AssertionError("the worker must not wait for it")

    monkeypatch.setattr(first, "kill", lambda: killed.append(first))
    monkeypatch.setattr(first, "wait", waits)
    return folds, first, killed


@pytest.mark.usefixtures("counts_as_starved")
def test_a_worker_does_not_wait_until_a_fold_without_a_core_has_ended(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds, first, killed = unkilled(tmp_path, monkeypatch)
    for _ in range(3):
        assert not folds.look()
    assert killed == [first] and folds.is_running and len(starts) == 1, "no two run at once"
    os.kill(first.pid, signal.SIGKILL)
    until(folds.look)
    assert len(starts) == 2 and not folds.has_failed and folds.logged_bytes() == 0


@pytest.mark.usefixtures("counts_as_starved")
def test_a_fold_that_has_ended_well_before_it_was_killed_does_not_begin_again(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = tmp_path / "ends"
    waits = f"import os, time\nwhile not os.path.exists({str(ends)!r}): time.sleep(0.01)"
    monkeypatch.setattr(sys.modules[__name__], "SLEEPS", ["-c", waits])
    folds, _, killed = unkilled(tmp_path, monkeypatch)
    assert not folds.look() and killed
    ends.touch()
    until(folds.look)
    assert len(starts) == 1 and not folds.has_failed and folds.logged_bytes() == 0


@pytest.mark.usefixtures("counts_as_starved")
def test_a_worker_that_ends_begins_no_fold_again(
    starts: Starts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folds = begun(tmp_path)
    assert not folds.look()
    folds.wait(100.0)
    assert not folds.is_running and len(starts) == 1 and not caplog.messages


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
