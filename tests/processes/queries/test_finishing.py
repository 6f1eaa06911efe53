"""`finish` means all: what follows from the rows is complete and readable, wherever the workers are.

finishing_*   one worker, several in threads, several processes
unfinished_*  what is told who waits in vain
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from exporting_flows import importer, owner

import differential as dd
import timely

WORKERS = {
    "one": {"workers": 1, "embedded": True},
    "threads": {"workers": 2, "threads": True},
    "processes": {"workers": 2},
}


def slowly(k: int) -> int:
    import time

    time.sleep(0.05)
    return k


def validity(flow: timely.Dataflow) -> None:
    """Rows that come and go at epochs later than any that is sealed, and take their time."""
    rows = dd.input(flow, "rows", "k: int, start: int, stop: int")
    others = dd.input(flow, "others", "k: int")
    valid = rows.during("start", "stop").consolidate().map(lambda row: slowly(row.k), "k: int")
    valid.concat(others).output("valid")
    others.output("others")


@pytest.mark.parametrize("where", WORKERS)
def test_finishing_completes_epochs_behind_those_that_were_sealed(where: str) -> None:
    with timely.connect(**WORKERS[where]) as cluster:  # type: ignore[arg-type]  # as a user writes it
        flow = cluster.install(validity)
        flow.input("rows").insert([(k, 3 * k, 3 * k + 100) for k in range(6)] + [(7, 200, 10**9)])
        flow.seal()
        flow.input("others").insert([(8,), (9,)])
        assert flow.finish(timeout=100) == 10**9 + 1, "the epoch behind the last change"
        changes = flow.output("valid").changes(timeout=0)
        assert isinstance(changes, pa.Table)
        wanted = [(k, epoch, diff) for k in range(6) for epoch, diff in ((3 * k, 1), (3 * k + 100, -1))]
        wanted += [(7, 200, 1), (7, 10**9, -1), (8, 1, 1), (9, 1, 1)]
        assert sorted(tuple(row.values()) for row in changes.to_pylist()) == sorted(wanted)
        assert flow.output("valid").snapshot(timeout=0).to_pylist() == [{"k": 8}, {"k": 9}]
        assert flow.output("others").changes(timeout=0).num_rows == 2
        assert flow.finish() == flow.epoch == 10**9 + 1, "finished is finished"
        assert flow.output("valid").changes(timeout=0).num_rows == 0
        with pytest.raises(timely.InputClosedError):
            flow.input("others").insert([(1,)])


@pytest.mark.parametrize("where", WORKERS)
def test_finishing_a_flow_without_rows(where: str) -> None:
    with timely.connect(**WORKERS[where]) as cluster:  # type: ignore[arg-type]  # as a user writes it
        flow = cluster.install(validity)
        assert flow.finish(timeout=100) == 1
        assert flow.output("valid").changes(timeout=0).num_rows == 0


@pytest.mark.parametrize("where", WORKERS)
def test_unfinished_is_a_flow_that_reads_one_which_goes_on(where: str) -> None:
    with timely.connect(**WORKERS[where]) as cluster:  # type: ignore[arg-type]  # as a user writes it
        first = cluster.install(owner)
        second = cluster.install(importer, of=first.index)
        first.input("edges").insert([(1, 2)])
        first.seal()
        with pytest.raises(timely.WaitTimeoutError, match=r"dataflow 1 is not finished .*finish these first"):
            second.finish(timeout=0.2)
        first.finish(timeout=100)
        second.finish(timeout=100)
        assert second.output("out").changes(timeout=0).num_rows == 1


def test_unfinished_is_what_takes_longer_than_the_limit() -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(validity)
        flow.input("rows").insert([(k, k, k + 100) for k in range(40)])
        with pytest.raises(
            timely.WaitTimeoutError, match="the work on it is not done yet|does not answer: it computes"
        ):
            flow.finish(timeout=0.2)
        flow.finish(timeout=100)
        assert flow.output("valid").changes(timeout=0).num_rows == 80
