"""`timely.spark.run` on workers with a store: started again, it goes on with the rows that they have.

on_*      no epoch is sent twice, whatever point the last run has come to
killed_*  workers that are killed in the middle of a run
anew_*    rows that have changed meanwhile: the dataflow begins anew, and what is committed is compared
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
import timely.spark
from differential import Collection
from timely.errors import MisuseError
from timely.spark.delivering import TargetFactory
from timely.spark.errors import OutputError
from timely.spark.jobs.feeding import Layout
from timely.spark.jobs.following import AnswerFeed
from timely.spark.jobs.outputs import Epoch
from timely.spark.jobs.result import Result

Event = tuple[int | None, int, int, int]
"""Key, amount, day, and 1 or -1."""

EVENTS: list[Event] = [
    (1, 5, 0, 1), (2, 7, 0, 1), (None, 1, 0, 1),
    (1, 6, 1, 1), (2, 7, 1, -1),
    (3, 1, 3, 1),
    (1, 5, 4, -1), (3, 2, 4, 1),
]  # fmt: skip


def totals(events: Collection) -> Collection:
    """Rows and sums by key."""
    return events.group_by("key").agg(n=dd.count(), total=dd.sum("amount"))


def wanted_of(events: list[Event]) -> list[Counter[tuple[object, ...]]]:
    """The answer as of each day, computed from scratch."""
    found = []
    for last in sorted({day for _, _, day, _ in events}):
        rows = Counter[tuple[int | None, int]]()
        for key, amount, day, said in events:
            rows[key, amount] += said if day <= last else 0
        answer = Counter[tuple[object, ...]]()
        for key in {key for (key, _), count in rows.items() if count}:
            held = [(amount, count) for (other, amount), count in rows.items() if other == key]
            answer[key, sum(n for _, n in held), sum(amount * n for amount, n in held)] = 1
        found.append(answer)
    return found


def held_of(changes: DataFrame) -> list[Counter[tuple[object, ...]]]:
    """The rows as of each epoch of a change log."""
    log = [tuple(row) for row in changes.collect()]
    found: list[Counter[tuple[object, ...]]] = []
    for epoch in range(max(row[-2] for row in log) + 1):
        held = Counter(found[-1]) if found else Counter[tuple[object, ...]]()
        for *row, at, diff in log:
            held[tuple(row)] += diff if at == epoch else 0
        found.append(Counter({row: count for row, count in held.items() if count}))
    return found


@dataclass
class Jobs:
    """Runs of one job; `sent` has the epochs that each run has sent, and `numbers` the dataflows."""

    spark: SparkSession
    folder: Path
    sent: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def run(self, events: list[Event], *others: object, workers: int = 2, **more: object) -> Result:
        self.sent.clear()
        frame = self.spark.createDataFrame(events, "key: bigint, amount: int, day: int, said: tinyint")
        return timely.spark.run(
            totals,
            {"events": frame},
            epochs="day",
            diff="said",
            outputs=[self.out, *others],
            workers=workers,
            durable=self.store,
            progress=False,
            **more,  # type: ignore[arg-type]
        )

    def committed(self) -> int:
        return len(list((self.out / "changes").glob("epoch-*")))


@pytest.fixture
def jobs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    found = Jobs(spark, tmp_path)
    sends, asks = Layout.send, AnswerFeed.seal

    def send(self: Layout, chunk: range, target: TargetFactory) -> object:
        found.sent += [epoch for epoch in chunk if self.size(epoch).rows]
        return sends(self, chunk, target)

    def seal(self: AnswerFeed, *given: object) -> None:
        found.numbers.append(self.flow.index)
        asks(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Layout, "send", send)
    monkeypatch.setattr(AnswerFeed, "seal", seal)
    return found


class Broken(Exception):
    """Ends a run as a kill would, at some point."""


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str, int], None]:
    """Lets a method of the job raise `Broken` before it is called for so many times."""

    def breaks(owner: type, name: str, calls: int) -> None:
        method = getattr(owner, name)
        left = [calls]

        def breaking(*given: object, **named: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise Broken
            return method(*given, **named)

        monkeypatch.setattr(owner, name, breaking)

    return breaks


def until(day: int) -> list[Event]:
    return [event for event in EVENTS if event[2] <= day]


def test_on_behind_the_last_commit_no_row_is_sent_again(jobs: Jobs) -> None:
    jobs.run(until(1))
    assert jobs.sent == [0, 1]
    files = {path: path.read_bytes() for path in (jobs.out / "changes").glob("epoch-*")}
    assert held_of(jobs.run(EVENTS, workers=1).changes()) == wanted_of(EVENTS)
    assert jobs.sent == [2, 3] and len(set(jobs.numbers)) == 1
    assert {path: path.read_bytes() for path in files} == files
    heard: list[tuple[int, int, int]] = []

    def note(epoch: Epoch, changes: pa.Table) -> None:
        heard.append((epoch, epoch.entered, changes.num_rows))

    answer = jobs.run(EVENTS, note)
    assert jobs.sent == [] and len(set(jobs.numbers)) == 1, "nothing new: the store has all answers"
    assert [(epoch, entered) for epoch, entered, _ in heard] == [(0, 3), (1, 1), (2, 1), (3, 1)]
    assert Counter(map(tuple, answer.to_df().collect())) == wanted_of(EVENTS)[-1]


@pytest.mark.parametrize(
    ("owner", "name", "calls", "sent"),
    [
        (timely.Flow, "seal", 3, [2, 3]),
        (AnswerFeed, "_hand_on", 2, [2, 3]),
    ],
    ids=["sent and not sealed", "sealed and not committed"],
)
def test_on_from_wherever_the_last_run_has_ended(
    jobs: Jobs, breaks: Callable[[type, str, int], None], owner: type, name: str, calls: int, sent: list[int]
) -> None:
    breaks(owner, name, calls)
    with pytest.raises(Broken):
        jobs.run(EVENTS)
    assert jobs.committed() < len(wanted_of(EVENTS))
    assert held_of(jobs.run(EVENTS).changes()) == wanted_of(EVENTS)
    assert jobs.sent == sent and len(set(jobs.numbers)) == 1


def test_killed_workers_start_again_and_the_run_goes_on(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before rows are sent, before an epoch is sealed, and before it is committed."""
    clusters: list[timely.Cluster] = []
    connects = timely.connect

    def connect(*given: object, **named: object) -> timely.Cluster:
        clusters.append(connects(*given, **named))  # type: ignore[arg-type]
        return clusters[-1]

    def kill(owner: type, name: str, workers: list[int]) -> None:
        method = getattr(owner, name)

        def killing(*given: object, **named: object) -> object:
            keeper = getattr(clusters[0]._workers, "_launcher")  # noqa: B009 - behind the curtain
            while workers:
                os.kill(keeper.pids[workers.pop()], signal.SIGKILL)
            return method(*given, **named)

        monkeypatch.setattr(owner, name, killing)

    monkeypatch.setattr(timely, "connect", connect)
    of_each = [[0], [1], [0, 1]]
    for (owner, name), workers in zip(
        [(Layout, "send"), (timely.Flow, "seal"), (AnswerFeed, "_hand_on")], of_each, strict=True
    ):
        kill(owner, name, workers)
    assert held_of(jobs.run(EVENTS).changes()) == wanted_of(EVENTS)
    assert not any(of_each)


def test_anew_rows_of_an_epoch_that_was_sent_and_not_sealed_count_as_they_are_now(
    jobs: Jobs, breaks: Callable[[type, str, int], None]
) -> None:
    breaks(timely.Flow, "seal", 3)
    with pytest.raises(Broken):
        jobs.run(EVENTS)
    changed: list[Event] = [*EVENTS, (9, 9, 4, 1)]
    assert held_of(jobs.run(changed).changes()) == wanted_of(changed)
    assert len(set(jobs.numbers)) == 2
    assert jobs.sent == [1, 2, 3], "all before the first epoch that is wanted as one sum"


def test_anew_rows_of_committed_epochs_are_refused_if_they_change_the_answer(jobs: Jobs) -> None:
    jobs.run(until(3))
    with pytest.raises(OutputError, match="are committed with the row .* that this run does not find"):
        jobs.run([*EVENTS, (1, 1, 1, 1)])
    assert held_of(jobs.run(EVENTS).changes()) == wanted_of(EVENTS), "without that row it goes on"


def test_anew_what_others_have_fed_is_left_alone(jobs: Jobs) -> None:
    jobs.run(EVENTS)
    (jobs.out / "_fed.json").unlink()
    with pytest.raises(MisuseError, match=r"dataflow 0 \(totals\) with rows that no job .*uninstall\(\)"):
        jobs.run(EVENTS)
    with timely.connect(workers=1, durable=jobs.store) as cluster:
        assert cluster.flow(0).epoch == len(wanted_of(EVENTS))
        cluster.flow(0).uninstall()
    assert held_of(jobs.run(EVENTS).changes()) == wanted_of(EVENTS)


def test_anew_if_the_outputs_have_more_than_the_store(jobs: Jobs) -> None:
    """Such as after a crash of the machine with sync="system", or in another folder."""
    jobs.run(EVENTS)
    jobs.store.rename(jobs.folder / "lost")
    later: list[Event] = [*EVENTS, (7, 7, 9, 1)]
    assert held_of(jobs.run(later).changes()) == wanted_of(later)
    assert jobs.sent == [3, 4], "the sum of what is committed, and the rest"


@dataclass
class Streams(Jobs):
    """The same with a stream of files, of which each is a batch, and a table that never changes."""

    def add(self, *rows: tuple[int, int]) -> None:
        """Another file: keys, and whether they come or go."""
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        number = len(list(folder.iterdir()))
        keys, said = zip(*rows, strict=True)
        pq.write_table(pa.table({"key": keys, "said": said}), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)

    def follow(self, weight: int = 10) -> list[Counter[tuple[object, ...]]]:
        """Take what the stream has by now; return the answer as of each batch."""
        self.sent.clear()
        files = self.spark.readStream.schema("key bigint, said bigint").option("maxFilesPerTrigger", 1)
        weights = self.spark.createDataFrame([(1, 1), (2, weight)], "key: bigint, weight: bigint")
        answer = timely.spark.run(
            weighed,
            {"keys": files.parquet(str(self.folder / "in")), "weights": weights},
            diff="said",
            outputs=self.out,
            workers=1,
            durable=self.store,
            progress=False,
        )
        return held_of(answer.changes())


def weighed(keys: Collection, weights: Collection) -> Collection:
    """How much all keys weigh."""
    return keys.join(weights, on="key").group_by("key").agg(total=dd.sum("weight"))


@pytest.fixture
def streams(jobs: Jobs) -> Streams:
    found = Streams(jobs.spark, jobs.folder, jobs.sent, jobs.numbers)
    found.add((1, 1), (2, 1))
    found.add((1, 1), (1, 1))
    found.add((2, -1))
    return found


BATCHES = [Counter({(1, 1): 1, (2, 10): 1}), Counter({(1, 3): 1, (2, 10): 1}), Counter({(1, 3): 1})]


def test_on_with_the_batch_of_a_stream_that_was_sealed_and_not_committed(
    streams: Streams, breaks: Callable[[type, str, int], None]
) -> None:
    breaks(AnswerFeed, "_hand_on", 2)
    with pytest.raises(Broken):
        streams.follow()
    assert streams.follow() == BATCHES
    assert streams.sent == [2] and len(set(streams.numbers)) == 1
    streams.add((2, 1))
    assert streams.follow() == [*BATCHES, Counter({(1, 3): 1, (2, 10): 1})]
    assert streams.sent == [3] and len(set(streams.numbers)) == 1


def test_anew_if_what_is_beside_a_stream_has_changed(streams: Streams) -> None:
    assert streams.follow() == BATCHES
    assert streams.follow(weight=20) == BATCHES and len(set(streams.numbers)) == 2, "nothing of it is left"
    streams.add((2, 1))
    assert streams.follow(weight=20)[-1] == Counter({(1, 3): 1, (2, 20): 1})


@pytest.fixture(scope="module")
def durable_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, durable=tmp_path_factory.mktemp("store")) as cluster:
        yield cluster


def test_on_in_a_cluster_of_the_caller_the_dataflow_stays_with_outputs_in_a_folder(
    jobs: Jobs, durable_cluster: timely.Cluster
) -> None:
    frame = jobs.spark.createDataFrame(EVENTS, "key: bigint, amount: int, day: int, said: tinyint")

    def run(outputs: object) -> Result:
        return timely.spark.run(
            totals,
            {"events": frame},
            epochs="day",
            diff="said",
            outputs=outputs,
            workers=durable_cluster,
            progress=False,
        )

    assert held_of(run(None).changes()) == wanted_of(EVENTS) and not durable_cluster.flows()
    assert held_of(run(jobs.out).changes()) == wanted_of(EVENTS)
    (number,) = durable_cluster.flows()
    jobs.sent.clear()
    assert held_of(run(jobs.out).changes()) == wanted_of(EVENTS) and not jobs.sent
    with pytest.raises(MisuseError, match=rf"the dataflow {number} \(totals\) with rows that no job"):
        run(None)
    with pytest.raises(MisuseError, match="durable= is for workers that the call starts"):
        timely.spark.run(totals, {"events": frame}, workers=durable_cluster, durable=jobs.store)
    durable_cluster.flow(number).uninstall()
