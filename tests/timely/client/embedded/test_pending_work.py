"""What embedded workers owe: when it is too much, and who does it at the end of the program."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.client.embedded import pending_work
from timely.client.embedded.pending_work import PendingWork, work_off_all


class HasWork:
    def __init__(self, error: BaseException | None = None) -> None:
        self.calls = 0
        self.error = error

    def work_off(self) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_rows_that_are_not_sealed_are_not_pending() -> None:
    known = PendingWork(HasWork())
    known.give(0, pending_work.PENDING_ROWS_MAX, pending_work.PENDING_BYTES_MAX)
    assert not known
    assert not known.is_too_much()
    known.seal(1)
    assert known
    assert not known.is_too_much(), "another dataflow was sealed"
    known.seal(0)
    assert known.is_too_much()
    known.clear()
    assert not known
    assert (known.epochs, known.rows, known.bytes) == (0, 0, 0)


def test_a_seal_works_briefly_at_what_is_late_unless_it_is_large() -> None:
    known = PendingWork(HasWork())
    known.seal(0)
    assert known.seconds_of_seal(300.0, is_late=False) == 300.0
    assert known.seconds_of_seal(300.0, is_late=True) == pending_work.PENDING_SECONDS_MAX
    known.give(0, pending_work.PENDING_ROWS_MAX, 0)
    known.seal(0)
    assert known.seconds_of_seal(300.0, is_late=True) == 300.0


@pytest.mark.parametrize("bound", ["epochs", "rows", "bytes", "seconds"])
def test_each_bound_is_reached_by_itself(bound: str) -> None:
    clock = Clock()
    known = PendingWork(HasWork(), clock)
    rows = pending_work.PENDING_ROWS_MAX - 1 + (bound == "rows")
    size_bytes = pending_work.PENDING_BYTES_MAX - 1 + (bound == "bytes")
    known.give(0, 1, 1)
    known.give(0, rows - 1, size_bytes - 1)
    for _ in range(pending_work.PENDING_EPOCHS_MAX - 2 + (bound == "epochs")):
        known.seal(7)
    clock.now = pending_work.PENDING_SECONDS_MAX * (0.99 if bound != "seconds" else 1)
    assert known.is_too_much() == (bound == "seconds")
    known.seal(0)
    assert known.is_too_much()
    known.clear()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9))))
def test_pending_is_what_was_added_before_its_seal(
    calls: list[tuple[bool, int, int, int]],
) -> None:
    known = PendingWork(HasWork())
    given_to: dict[int, list[tuple[int, int]]] = {}
    sealed: list[tuple[int, int]] = []
    seals = 0
    for is_seal, dataflow, rows, size_bytes in calls:
        if is_seal:
            known.seal(dataflow)
            sealed += given_to.pop(dataflow, [])
            seals += 1
        else:
            known.give(dataflow, rows, size_bytes)
            given_to.setdefault(dataflow, []).append((rows, size_bytes))
    assert known.epochs == seals
    assert known.rows == sum(rows for rows, _ in sealed)
    assert known.bytes == sum(size_bytes for _, size_bytes in sealed)
    known.clear()


def test_each_cluster_with_pending_work_is_asked_at_the_end_and_only_once() -> None:
    works, paid, fails = HasWork(), HasWork(), HasWork(ValueError("first"))
    pending = [PendingWork(each) for each in (fails, works, paid)]
    for debt in pending:
        debt.seal(0)
    pending[2].clear()
    with pytest.raises(ValueError, match="first"):
        work_off_all()
    work_off_all()
    assert (fails.calls, works.calls, paid.calls) == (1, 1, 0)


PROGRAM = """
import os, sys
sys.path.insert(0, {tests!r})
import timely

class Says(timely.Vertex):
    def on_recv(self, edge, message, time):
        print(time, message, flush=True)

def feeds():
    flow = timely.connect(workers=2, embedded=True).install(
        lambda flow: flow.input("x").stage("says", Says))
    flow.input("x").insert([7])
    flow.seal()

feeds()  # nobody holds the cluster, and nobody closes it
print("fed", flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "if os.fork() == 0: sys.exit()\nos.wait()"])
def test_a_program_that_ends_without_closing_gets_what_it_has_sealed_once(end: str, tmp_path: object) -> None:
    program = PROGRAM.format(tests=str(tmp_path), end=end)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["fed", "(0,) [7]"]
