"""Which core a worker has to itself."""

from __future__ import annotations

import os
import threading

import pytest

from timely import cores
from timely.cores import ANY_CORE, keep_to, shared_out


@pytest.fixture
def three_cores(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A host that lets this program run on three of its cores."""
    found = [1, 4, 6]
    monkeypatch.setattr(cores, "cores", lambda: found)
    return found


def test_cores_are_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {66, 1, 4}, raising=False)
    assert cores.cores() == [1, 4, 66]


def test_as_many_workers_as_cores_have_one_each(three_cores: list[int]) -> None:
    assert shared_out(3) == three_cores


@pytest.mark.parametrize("workers", [1, 2, 4, 7])
def test_fewer_and_more_run_anywhere(three_cores: list[int], workers: int) -> None:
    assert shared_out(workers) == [ANY_CORE] * workers


def test_one_worker_on_one_core_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "cores", lambda: [5])
    assert shared_out(1) == [ANY_CORE]


@pytest.mark.parametrize(("said", "is_wanted"), [("0", False), ("", False), ("1", True)])
def test_the_environment_may_ask_for_none(
    three_cores: list[int], monkeypatch: pytest.MonkeyPatch, said: str, is_wanted: bool
) -> None:
    monkeypatch.setenv("NAIAD_OWN_CORES", said)
    assert shared_out(3) == (three_cores if is_wanted else [ANY_CORE] * 3)


def test_a_system_that_names_no_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert shared_out(2) == [ANY_CORE] * 2


def test_keeps_to_a_core_and_no_other_thread_does() -> None:
    found: list[list[int]] = []

    def run() -> None:
        keep_to(cores.cores()[-1])
        found.append(cores.cores())

    before = cores.cores()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before[-1:]]
    assert cores.cores() == before


def test_any_core_changes_nothing() -> None:
    before = cores.cores()
    keep_to(ANY_CORE)
    assert cores.cores() == before


def test_a_core_that_is_gone_is_no_error() -> None:
    before = cores.cores()
    keep_to(100_000)
    assert cores.cores() == before
