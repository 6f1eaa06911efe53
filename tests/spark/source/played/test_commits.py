"""What the driver asks of workers to commit a batch, with workers that are played here.

batch_*     what is asked, in which order
killed_*    what fails before the commit
refused_*   what is none
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fixed_members import FixedMembers

from timely.errors import InternalError, MisuseError, WaitTimeoutError
from timely.limits import ATTEMPT_SECONDS_MAX
from timely.spark import delivering
from timely.spark.delivering import Staged
from timely.spark.source.connecting import Whereabouts
from timely.spark.source.writing import BatchWriter, StreamWriter, WritePlan
from timely.wire.requests import Decide, Missing, Progress, Reply, Request


def state(
    last: int,
    rows: int = 0,
    opened: int = 0,
    seconds: int = 0,
    missing: Sequence[str] = (),
    is_new: bool = True,
) -> Reply:
    """What a worker answers of a query that writes, and, if it is asked to commit, of that."""
    return Reply(
        {
            "missing": list(missing),
            "queries": [[last, rows, opened, seconds]],
            "entered": [[is_new, opened]],
        }
    )


class Told(FixedMembers):
    """Workers of which the first says that batch 0 is committed; the second has not heard of that."""

    count = 2

    def __init__(self) -> None:
        self.committed: list[Decide] = []
        self.seconds: set[float] = set()

    def ask(self, requests: Sequence[tuple[int, Request, object]], seconds: float = 300.0) -> list[Reply]:
        self.seconds.add(seconds)
        self.committed += [request for _, request, _ in requests if isinstance(request, Decide)]
        replies = [state(0, missing=["a"], is_new=False), state(-1)]
        return replies[: len(requests)]


PLAN = WritePlan(Whereabouts(()), 0, "rows", None, "q", True, False, 8, 0.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Workers that are asked by whoever writes, and not asked twice."""
    workers = Told()
    monkeypatch.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(workers))
    monkeypatch.setattr("timely.spark.delivering._HEARD_SECONDS_MAX", 0.0)
    return workers


def test_batch_that_comes_again_is_none_though_not_all_workers_have_heard_of_its_commit(
    told: Told,
) -> None:
    BatchWriter(PLAN).commit([Staged("q", 0, "a", (1, 1), 2)])
    with pytest.raises(MisuseError, match="batch 1 of query q is not committed"):
        StreamWriter(PLAN).commit([Staged("q", 1, "a", (1, 1), 2)], 1)


class Hearing(FixedMembers):
    """Two workers that are told of the commit of batch 0, the second one somewhat later."""

    count = 2

    def __init__(self) -> None:
        self.looks = 0

    def ask(self, requests: Sequence[tuple[int, Request, object]], seconds: float = 300.0) -> list[Reply]:
        if isinstance(requests[0][1], Decide):
            return [state(0, is_new=False)]
        self.looks += 1
        has_heard = self.looks > 2
        return [state(0, 2, 1), state(has_heard - 1, 3 * has_heard)]


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_refused_is_another_batch_also_where_a_worker_hears_of_the_first_a_moment_later(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    hearing = Hearing()
    monkeypatch.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(hearing))
    monkeypatch.setattr("timely.spark.delivering._HEARD_SECONDS_MAX", 60.0)
    writer = BatchWriter(WritePlan(Whereabouts(()), 0, "rows", None, "q", True, False, 8, 0.0))
    raised = nullcontext() if rows == 5 else pytest.raises(MisuseError, match="with 5 rows, and now has")
    with raised:
        writer.commit([Staged("q", 0, "a", (1, 1), rows)])
    assert hearing.looks >= 3


def test_batch_is_looked_at_before_its_commit_as_long_ago_as_that_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others may have answered at once, and worker 0, whose clock counts, after all that time."""
    committed: list[Decide] = []
    now = [50.0]

    class Late(FixedMembers):
        count = 2

        def ask(self, requests: Sequence[tuple[int, Request, object]], seconds: float = 0.0) -> list[Reply]:
            committed.extend(request for _, request, _ in requests if isinstance(request, Decide))
            now[0] += 7.2
            return [state(-1, seconds=1_000)] * len(requests)

    monkeypatch.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(Late()))
    monkeypatch.setattr(delivering, "time", SimpleNamespace(monotonic=lambda: now[0]))
    BatchWriter(PLAN).commit([Staged("q", 0, "a", (1, 1), 2)])
    assert [request.enter[0][-1] for request in committed] == [992]  # type: ignore[index]


def test_batch_rows_are_in_the_order_of_partitions_and_who_has_none_is_not_named(
    told: Told,
) -> None:
    ran = {"000002/x": 1, "000000/z": 3, "000010/a": 2, "000001/y": 0}
    BatchWriter(PLAN).commit([Staged("q", 0, name, (1, 1), rows) for name, rows in ran.items()])
    assert [request.enter[0][3] for request in told.committed] == [["000000/z", "000002/x", "000010/a"]]
    assert told.seconds == {300.0}
    BatchWriter(replace(PLAN, timeout_seconds=900.0)).commit([])
    assert told.seconds == {300.0, 900.0}, "a worker that computes is waited for as long as the user says"


def test_killed_is_a_batch_before_its_commit_by_workers_that_are_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that raised when the rows are in would have the user write them again."""
    asked: list[type[Request]] = []
    waited: list[float] = []

    class Slow(FixedMembers):
        count = 2

        def ask(self, requests: Sequence[tuple[int, Request, object]], seconds: float = 0.0) -> list[Reply]:
            asked.extend(type(request) for _, request, _ in requests)
            if isinstance(requests[0][1], Progress):
                assert requests[0][1].beyond == 5
                waited.append(requests[0][1].timeout_seconds)
                raise WaitTimeoutError("epoch 5 is not complete")
            return [state(-1, opened=8)] * len(requests)

    monkeypatch.setattr("timely.spark.source.writing.workers_at", lambda at: nullcontext(Slow()))
    plan = WritePlan(Whereabouts(()), 0, "rows", None, "q", True, False, 3, 0.0)
    with pytest.raises(WaitTimeoutError):
        BatchWriter(plan).commit([])
    assert asked == [Missing] * 2 + [Progress] * 2
    with pytest.raises(WaitTimeoutError):
        BatchWriter(replace(plan, timeout_seconds=float("inf"))).commit([])
    assert waited == [0.0, ATTEMPT_SECONDS_MAX / 2], "longer than that nothing of the batch is kept"
    for more in ({"lag": 9}, {"lag": 0}, {"seals": False}):
        asked.clear()
        BatchWriter(replace(plan, **more)).commit([])  # type: ignore[arg-type]
        assert asked == [Missing] * 2 + [Decide], more


def test_refused_is_a_commit_that_no_task_has_named_its_query_for() -> None:
    plan = WritePlan(Whereabouts(()), 0, "rows", None, "", True, False, 8, 0.0)
    with pytest.raises(InternalError, match="no task has reported the query of batch 3"):
        StreamWriter(plan).commit([None], 3)
