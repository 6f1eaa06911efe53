"""failures.py: what an output whose failures somebody keeps says of epochs without an answer.

record_*   of records, which do not accumulate
first_*    an epoch is complete once it is at both ports
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timely
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode
from timely.building.dataflow import Dataflow
from timely.building.stream import Feed
from timely.client.embedded.workers import EmbeddedWorkers
from timely.dictionaries import Mark
from timely.errors import MisuseError, TimelyError
from timely.operators.failures import FAILURES_PORT, FailureLog, Without
from timely.wire.batch import Batch, Records


class PlainFailures:
    """Epochs without an answer are the records that come in."""

    is_strict = False
    is_settled = True

    def __init__(self) -> None:
        self.epochs: set[int] = set()
        self.complete_before = 0

    def start(self, code: TimeCode) -> None: ...

    def add(self, batch: Batch) -> None:
        assert isinstance(batch, Records)
        self.epochs |= {int(str(record)) for record in batch.records}

    def complete(self, epoch: int) -> None:
        self.complete_before = epoch

    def settle(self) -> None: ...

    def error_at(self, epoch: int) -> TimelyError | None:
        assert epoch < self.complete_before
        return MisuseError(f"nothing at {epoch}") if epoch in self.epochs else None

    def good_from(self, epoch: int, stop: int) -> int | None:
        return next((each for each in range(epoch, stop) if each not in self.epochs), None)

    def without(self, start: int, stop: int) -> list[Without]:
        last = min(stop, self.complete_before)
        return [
            Without(epoch, epoch + 1, MisuseError(f"nothing at {epoch}"), epoch)
            for epoch in sorted(self.epochs)
            if start <= epoch < last
        ]

    def take_over(self, other: FailureLog | None, epoch: int) -> None: ...

    def end(self, epoch: int) -> None: ...

    def forget(self, stop: int) -> None:
        self.epochs = {epoch for epoch in self.epochs if epoch >= stop}

    def rebase(self, by: Rebase) -> None: ...

    def symbols(self, mark: Mark) -> None: ...


class PlainLogs:
    """Makes them."""

    def new_log(self) -> FailureLog:
        return PlainFailures()

    def describe(self) -> str:
        return "plain failures"


def build(flow: Dataflow) -> None:
    rows, failing = flow.input("rows"), flow.input("failing")
    flow.output("out", rows)
    flow.output("beside", rows)
    flow.add_failures("out", PlainLogs(), [Feed(failing, FAILURES_PORT, timely.Broadcast())])


@pytest.fixture(params=[1, 2, 3])
def flow(request: pytest.FixtureRequest) -> Iterator[timely.Flow]:
    with timely.Cluster(EmbeddedWorkers(request.param)) as cluster:
        yield cluster.install(build)


def test_record_of_an_epoch_without_an_answer_comes_at_no_other(flow: timely.Flow) -> None:
    for epoch in range(4):
        flow.input("rows").insert([epoch * 10, epoch * 10 + 1])
        if epoch in (1, 3):
            flow.input("failing").insert([epoch])
        flow.seal()
    output = flow.output("out")
    for start, stop, first in ((0, 2, 1), (0, 3, 1), (1, 2, 1), (2, 4, 3), (0, 4, 1)):
        with pytest.raises(MisuseError, match=f"nothing at {first}"):
            output.changes(start, stop)
    with pytest.raises(MisuseError, match="nothing at 1"):
        output.changes()
    assert output.changes(2, 3) == [(2, 20), (2, 21)] and output.changes(0, 1) == [(0, 0), (0, 1)]
    found = []
    tail = output.follow(timeout=60)
    for _ in range(4):
        epoch, records = next(tail)
        found.append((epoch, str(records) if isinstance(records, TimelyError) else sorted(records)))
    assert found == [(0, [0, 1]), (1, "nothing at 1"), (2, [20, 21]), (3, "nothing at 3")]
    assert len(flow.output("beside").changes()) == 8, "others have all answers"


def test_first_both_ports_have_an_epoch_and_then_it_is_complete(flow: timely.Flow) -> None:
    flow.input("rows").close()
    assert flow.output("beside").complete_before() > 1, "nothing comes any more"
    assert flow.output("out").complete_before() == 0, "but something may still fail"
    flow.input("failing").insert([0])
    flow.seal()
    with pytest.raises(MisuseError, match="nothing at 0"):
        flow.output("out").changes(0, 1)


def test_first_of_all_failures_are_added_once(flow: timely.Flow) -> None:
    def twice(flow: Dataflow) -> None:
        build(flow)
        flow.add_failures("out", PlainLogs(), [])

    with pytest.raises(AssertionError, match="has failures already"):
        twice(Dataflow("twice"))
