"""EpochFeed into real workers: Spark's executors append, the driver seals, and every row counts once.

retried_*   a task that loses its connection in the middle is tried again
refused_*   what the workers refuse reaches the driver as their error
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import differential as dd
import timely
from timely.client.connection import AppendClient, append_target
from timely.errors import InputClosedError, PeerError
from timely.spark.delivering import EpochFeed
from timely.spark.epochs import EpochRows, epoch_rows

cloudpickle.register_pickle_by_value(sys.modules[__name__])

Rows = Counter[tuple[int, int, int]]
"""(source, target, epoch), as often as the diffs add up to."""


@timely.builder
def passed_on(dataflow: timely.Dataflow) -> None:
    """A dataflow whose output is its input."""
    dd.input(dataflow, "mentions", "source: int, target: int").output("mentions")


@dataclass
class Flaky:
    """The real target, but the first task to make its third append loses the connection behind it, once."""

    target: append_target
    folder: str
    client: AppendClient | None = None
    appends: int = 0

    def __call__(self) -> Flaky:
        return Flaky(self.target, self.folder)

    def __enter__(self) -> Self:
        self.client = self.target()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.client is not None
        self.client.close()

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> None:
        assert self.client is not None
        is_new = self.client.append(input, epoch, writer, sequence, table)
        if not is_new:
            (Path(self.folder) / f"repeated {writer.replace('/', ' ')} {epoch} {sequence}").touch()
        self.appends += 1
        if self.appends == 3:
            try:
                (Path(self.folder) / "lost").touch(exist_ok=False)
            except FileExistsError:
                return
            raise OSError("the network is gone")


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> EpochRows:
    """3,000 rows with duplicates in six epochs, half as many leaving as entering."""
    frame = spark.range(3000).selectExpr(
        "id % 1000 % 37 AS source",
        "id % 1000 % 11 AS target",
        "CASE WHEN id < 2000 THEN id % 3 ELSE 3 + id % 3 END AS epoch",
        "CASE WHEN id < 2000 THEN 1 ELSE -1 END AS diff",
    )
    return epoch_rows(frame, diff="diff", writers=2)


def test_retried_tasks_append_again_and_every_row_counts_once(
    rows: EpochRows, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    flow = two_workers.install(passed_on)
    feed = EpochFeed(
        rows, "mentions", Flaky(two_workers.append_target(flow.index), str(tmp_path)), rows_per_append=100
    )
    receipts = feed.send(range(6))
    assert (tmp_path / "lost").exists(), "the failure was meant to happen"
    assert len(list(tmp_path.glob("repeated *"))) >= 3, "and the workers have seen appends twice"
    for epoch in range(6):
        flow.seal(expected=[id_ for receipt in receipts[epoch] for id_ in receipt.expected("mentions")])
    found: Rows = Counter()
    for change in flow.output("mentions").changes(0, 6).to_pylist():
        found[change["source"], change["target"], change["epoch"]] += change["diff"]
    wanted: Rows = Counter()
    for source, target, epoch, diff in rows.frame.collect():
        wanted[source, target, epoch] += diff
    flow.uninstall()
    assert found == wanted


def test_refused_an_epoch_that_is_sealed_is_the_error_of_the_worker(
    rows: EpochRows, two_workers: timely.Cluster
) -> None:
    flow = two_workers.install(passed_on)
    flow.wait(flow.seal())
    with pytest.raises(InputClosedError, match="epoch 0"):
        EpochFeed(rows, "mentions", two_workers.append_target(flow.index)).send(range(1))
    flow.uninstall()


def test_refused_connections_are_one_error_that_names_the_address(rows: EpochRows) -> None:
    with pytest.raises(PeerError, match="localhost:9|127.0.0.1:9"):
        EpochFeed(rows, "mentions", append_target(["localhost:9"])).send(range(1))
