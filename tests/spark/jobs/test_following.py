"""Who is handed which epoch, and when callbacks hear of it."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.symbols.packing import unpack
from timely.client.pieces import hold_everywhere
from timely.spark.epochs import EpochSize
from timely.spark.errors import OutputError
from timely.spark.jobs.columns import SparkForm
from timely.spark.jobs.following import AnswerFeed, OneOutput, call_back_last, close_all
from timely.spark.jobs.outputs import Epoch
from timely.spark.jobs.shown import Screen
from timely.spark.stopping import Stopped
from timely.wire.requests import Progress


@dataclass
class Listed:
    """A sink that notes what it is given; it commits when it is told to."""

    wants: int = 0
    committed: int = 0
    fails: bool = False
    given: list[tuple[int, int]] = field(default_factory=list)
    before: list[list[tuple[int, ...]]] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)

    def commit(self, epoch: int, changes: pa.Table) -> None:
        self.given.append((epoch, changes.num_rows))

    def check_before(self, rows_before: Callable[[], pa.Table]) -> None:
        self.before.append(sorted(tuple(row.values()) for row in rows_before().to_pylist()))

    def finish(self, snapshot: Callable[[], pa.Table]) -> None:
        self.snapshots.append(snapshot().num_rows)
        self.committed = 1 << 62

    def close(self) -> None:
        if self.fails:
            raise OutputError("the disk is full")
        self.committed = 1 << 62

    def snapshot(self) -> object:
        raise NotImplementedError

    changes = snapshot


def passing(dataflow: timely.Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "k: int")
    rows.output("rows")
    rows.output("unread")


def form() -> SparkForm:
    return SparkForm("rows", {}, unpack)


def answers_of(cluster: timely.Cluster, output: OneOutput, wants: int = 0) -> tuple[timely.Flow, AnswerFeed]:
    flow = cluster.install(passing)
    return flow, AnswerFeed(flow, [output], Screen(False), wants, ["unread"])


def test_callbacks_hear_of_an_epoch_when_all_sinks_have_committed_it() -> None:
    slow, heard = Listed(), list[tuple[int, object, int, int]]()
    spent = list[set[str]]()

    def note(epoch: Epoch, changes: pa.Table) -> None:
        heard.append((int(epoch), epoch.value, epoch.entered, changes.num_rows))
        spent.append({what for what, seconds in epoch.spent.items() if seconds > 0.0})

    with timely.connect(embedded=True) as cluster:
        flow, answers = answers_of(cluster, OneOutput("rows", form(), [Listed(committed=9), slow], [note]))  # type: ignore[list-item]
        for epoch, value in enumerate("abc"):
            flow.input("rows").insert([(epoch,), (7,)])
            answers.seal(epoch, value, EpochSize(2, 0), ())
        assert heard == [] and slow.given == [(0, 2), (1, 2), (2, 2)]
        slow.committed = 2
        answers.call_back()
        assert heard == [(0, "a", 2, 2), (1, "b", 2, 2)]
        answers.finish()
        assert heard[2:] == [(2, "c", 2, 2)] and slow.snapshots == [6]
    parts = {"workers", "Spark, to commit"}
    assert spent == [{"starting", *parts}, parts, {"Spark, to write snapshots", *parts}]


def test_an_epoch_is_forgotten_once_all_sinks_have_committed_it() -> None:
    """Without callbacks, which come behind the commit anyway."""
    quick, slow = Listed(committed=9), Listed()
    with timely.connect(embedded=True) as cluster:
        flow, answers = answers_of(cluster, OneOutput("rows", form(), [quick, slow]))  # type: ignore[list-item]

        def kept() -> int | None:
            request = Progress(flow.index, "rows", keep_from=0, extent=True)
            return hold_everywhere(flow._workers, request).kept

        for epoch in range(3):
            flow.input("rows").insert([(epoch,)])
            answers.seal(epoch, None, EpochSize(1, 0), ())
            assert kept() == 0, "a job that is started again reads it once more"
        slow.committed = 2
        answers.forget_committed()
        assert kept() == 2
        answers.finish()
        assert kept() == 3


def test_an_epoch_is_forgotten_once_all_sinks_have_committed_it_and_callbacks_have_had_it() -> None:
    quick, slow = Listed(committed=9), Listed()
    calls: list[int] = []
    with timely.connect(embedded=True) as cluster:
        sinks = [quick, slow]
        flow, answers = answers_of(
            cluster,
            OneOutput("rows", form(), sinks, [lambda epoch, rows: calls.append(epoch)]),  # type: ignore[arg-type]
        )

        def kept() -> list[int]:
            return [
                hold_everywhere(flow._workers, Progress(flow.index, name, keep_from=0, extent=True)).kept
                for name in ("rows", "unread")
            ]

        for epoch in range(3):
            flow.input("rows").insert([(epoch,)])
            answers.seal(epoch, None, EpochSize(1, 0), ())
        assert kept() == [0, 0] and calls == []
        slow.committed = 2
        answers.forget_committed()
        assert kept() == [0, 0], "the callbacks come first"
        answers.call_back()
        answers.forget_committed()
        assert kept() == [2, 2] and calls == [0, 1]
        answers.finish()
        assert kept() == [3, 3] and calls == [0, 1, 2]


@pytest.mark.parametrize("wants", [3, 0], ids=["summed up", "one by one"])
def test_what_is_committed_is_held_against_all_rows_as_of_then(wants: int) -> None:
    """The sum of it is not handed over again; and a sink that has more than another is asked later."""
    behind, before = Listed(wants=3), Listed(wants=4)
    with timely.connect(embedded=True) as cluster:
        flow, answers = answers_of(cluster, OneOutput("rows", form(), [behind, before]), wants)  # type: ignore[list-item]
        rows = pa.table({"k": [1, 2], "diff": [-1, 2]})
        flow.input("rows").append(rows, epoch=2, writer="w", sequence=0)
        answers.seal(2, None, EpochSize(2, 1), [("rows", "w", 0)])
        for epoch in (3, 4, 5):
            flow.input("rows").insert([(7,)])
            answers.seal(epoch, None, EpochSize(1, 0), ())
    assert behind.before == [[(1, 2, -1), (2, 2, 2)]]
    assert before.before == [[(1, 3, -1), (2, 3, 2), (7, 3, 1)]]
    assert behind.given == before.given == [(2, 2), (3, 1), (4, 1), (5, 1)][1 if wants else 0 :]


def test_what_is_there_before_the_first_row_is_part_of_the_sum() -> None:
    """An aggregate of all rows has a row from epoch 0 on, and the sum of what is committed comes later."""

    def counted(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "k: int").agg(n=dd.count()).output("rows")

    sink = Listed(wants=3)
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(counted)
        answers = AnswerFeed(flow, [OneOutput("rows", form(), [sink])], Screen(False), wants=3)  # type: ignore[list-item]
        flow.input("rows").append(pa.table({"k": [1, 2], "diff": [1, 1]}), epoch=2, writer="w", sequence=0)
        answers.seal(2, None, EpochSize(2, 0), [("rows", "w", 0)])
    held = Counter[int]()
    for n, _, diff in sink.before[0]:
        held[n] += diff
    assert {n: diff for n, diff in held.items() if diff} == {2: 1}


@pytest.mark.parametrize(
    ("error", "heard"),
    [(ZeroDivisionError(), [0]), (SystemExit(), [0]), (Stopped(signal.SIGTERM), [0, 1])],
    ids=["an error", "the end", "a signal"],
)
def test_a_callback_that_raises_is_not_called_again_on_the_way_out_but_one_that_a_signal_meets(
    error: BaseException, heard: list[int]
) -> None:
    called: list[int] = []
    slow = Listed()

    def fail(epoch: Epoch, changes: pa.Table) -> None:
        called.append(epoch)
        if epoch == 0:
            raise error

    with timely.connect(embedded=True) as cluster:
        _, answers = answers_of(cluster, OneOutput("rows", form(), [slow], [fail]))  # type: ignore[list-item]
        for epoch in range(2):
            answers.seal(epoch, None, EpochSize(0, 0), ())
        slow.committed = 1
        with pytest.raises(type(error)):
            answers.call_back()
        slow.close()
        call_back_last([answers])
    assert called == heard


def test_closing_lets_go_of_all_sinks_and_tells_the_first_failure_unless_something_else_has_failed() -> None:
    last = Listed()
    outputs = [OneOutput("rows", form(), [Listed(fails=True), last])]  # type: ignore[list-item]
    with pytest.raises(OutputError, match="the disk is full"):
        close_all(outputs, is_failing=False)
    assert last.committed
    close_all(outputs, is_failing=True)


def test_the_error_of_an_epoch_without_an_answer_says_how_the_job_goes_on() -> None:
    def divides(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "k: int").select(k=6 // dd.col.k).output("rows")

    sink = Listed()
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(divides)
        answers = AnswerFeed(flow, [OneOutput("rows", form(), [sink])], Screen(False))  # type: ignore[list-item]
        flow.input("rows").insert([(2,)])
        answers.seal(0, "a", EpochSize(1, 0), ())
        flow.input("rows").insert([(0,)])
        with pytest.raises(
            timely.TimelyError, match="no answer at epoch 1: .* in the row with k=0"
        ) as raised:
            answers.seal(1, "b", EpochSize(1, 0), ())
        assert "start the job again with the same outputs" in "".join(raised.value.__notes__)
        assert sink.given == [(0, 1)], "epoch 1 is not committed"
