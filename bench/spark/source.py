"""How many rows a second go through `format("naiad")`, in and out, beside feeding by hand?

A dataflow on two worker processes that keeps its input as it is, of rows of two integers; Spark with two
cores beside it. Each way takes the same files of Parquet, and is over when its last epoch is complete:

    writeStream     two files a micro-batch, which is an epoch (availableNow)
    by hand         `epoch_rows` lays all out, an `EpochFeed` sends it, the driver seals: told apart
    write           all files in one `df.write`, one epoch

Then the whole output is read into Spark's sink that drops everything, three times, for the first time the
workers add up what is in it; beside it, for what Spark takes of that, as many rows that Spark makes itself go
through a Python function that passes Arrow on.

    python -m bench.spark.source [--rows 10000000] [--epochs 10] [--rounds 3] [--write FILE]

Sums of all rows are compared; a way that loses one does not count. The ways run in turn, in one session.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import differential as dd
import timely
from bench.machine import versions
from timely.spark.delivering import EpochFeed
from timely.spark.epochs import epoch_rows
from timely.spark.session import local_session
from timely.spark.source import register

__all__ = ["Rounds", "main"]

_COLUMNS = "a: int, b: int"


@timely.builder
def passed_on(dataflow: timely.Dataflow) -> None:
    """A dataflow whose output is its input."""
    dd.input(dataflow, "rows", _COLUMNS).output("rows")


class Rounds:
    """Rows on disk, and the ways in which they go in and out of a dataflow. `seconds`: what each took."""

    def __init__(
        self, spark: SparkSession, cluster: timely.Cluster, folder: Path, rows: int, epochs: int
    ) -> None:
        self._spark = spark
        self._cluster = cluster
        self._epochs = epochs
        self._folder = folder
        self.rows = rows // epochs * epochs
        self.seconds: dict[str, list[float]] = {}
        for epoch in range(epochs):
            each = rows // epochs
            made = spark.range(epoch * each, (epoch + 1) * each, 1, 2)
            made = made.selectExpr("id AS a", "id * 7 % 1000003 AS b", f"{epoch}L AS epoch")
            made.write.parquet(str(self._folder / "rows" / f"{epoch:04d}"))
        self._wanted = _sums(self._files())

    def run(self) -> None:
        """All ways, once."""
        for way in (self._stream, self._by_hand, self._write):
            flow = self._cluster.install(passed_on)
            way(flow)
            found = self._read(flow)
            if found != self._wanted:
                raise SystemExit(f"{way.__name__}: {found} came out of {self._wanted}")
            flow.uninstall()

    def _files(self) -> DataFrame:
        return self._spark.read.parquet(str(self._folder / "rows" / "*"))

    def _timed(self, name: str, work: Callable[[], object]) -> None:
        begin = time.perf_counter()
        work()
        self.seconds.setdefault(name, []).append(time.perf_counter() - begin)

    def _options(self, flow: timely.Flow) -> dict[str, str]:
        return {"cluster": self._cluster.addresses[0], "dataflow": str(flow.index)}

    def _stream(self, flow: timely.Flow) -> None:
        files = self._spark.readStream.schema(self._files().schema).option("maxFilesPerTrigger", 2)
        rows = files.parquet(str(self._folder / "rows" / "*")).drop("epoch")
        writing = rows.writeStream.format("naiad").options(**self._options(flow), input="rows")
        kept = tempfile.mkdtemp(dir=self._folder)

        def work() -> None:
            query = writing.option("checkpointLocation", kept).trigger(availableNow=True).start()
            query.awaitTermination()
            flow.refresh()
            flow.wait(flow.epoch - 1)
            spent = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress]
            median = statistics.median(spent) * self._epochs
            self.seconds.setdefault("writeStream, micro-batches only", []).append(median)

        self._timed("writeStream", work)

    def _by_hand(self, flow: timely.Flow) -> None:
        laid_out = []
        self._timed("by hand: laying out", lambda: laid_out.append(epoch_rows(self._files())))
        feed = EpochFeed(laid_out[0], "rows", self._cluster.append_target(flow.index))

        def work() -> None:
            for epoch in range(self._epochs):
                receipts = feed.send(range(epoch, epoch + 1))[epoch]
                flow.seal(expected=[each for receipt in receipts for each in receipt.expected("rows")])
            flow.wait(self._epochs - 1)

        self._timed("by hand: sending", work)
        laid_out[0].release()

    def _write(self, flow: timely.Flow) -> None:
        writing = self._files().drop("epoch").write.format("naiad").options(**self._options(flow))

        def work() -> None:
            writing.option("input", "rows").mode("append").save()
            flow.refresh()
            flow.wait(flow.epoch - 1)

        self._timed("write", work)

    def _read(self, flow: timely.Flow) -> tuple[int, ...]:
        reading = self._spark.read.format("naiad").options(**self._options(flow), output="rows")
        frame = reading.load()
        self._timed("read, for the first time", lambda: _dropped(frame))
        for _ in range(3):
            self._timed("read", lambda: _dropped(frame))
        made = self._spark.range(0, self.rows, 1, 2).selectExpr("id AS a", "id AS b")
        self._timed("Spark's own, passed on", lambda: _dropped(made.mapInArrow(_passed, made.schema)))
        return _sums(frame)


def _dropped(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _sums(frame: DataFrame) -> tuple[int, ...]:
    (found,) = frame.agg(F.count("*"), F.sum("a"), F.sum("b"), F.sum(F.expr("a * b % 1000003"))).collect()
    return tuple(found)


def _table(rounds: Rounds, epochs: int) -> str:
    lines = [
        f"{rounds.rows:,} rows of two integers, {epochs} epochs, two workers, Spark with two cores; medians "
        f"of {len(rounds.seconds['write'])} rounds. {versions()}",
        "",
        "| | seconds | range | million rows a second |",
        "|---|---|---|---|",
    ]
    for name, seconds in rounds.seconds.items():
        middle = statistics.median(seconds)
        spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
        lines.append(f"| {name} | {middle:.2f} | {spread} | {rounds.rows / middle / 1e6:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    spark = local_session(long_jobs=True, options={"spark.driver.memory": "4g"})
    register(spark)
    with tempfile.TemporaryDirectory(prefix="naiad-bench-") as named, timely.connect(workers=2) as cluster:
        folder = Path(named)
        # Spark's code and the workers' kernels are ready after this.
        Rounds(spark, cluster, folder / "first", 20_000, 2).run()
        rounds = Rounds(spark, cluster, folder / "counted", options.rows, options.epochs)
        for number in range(options.rounds):
            sys.stderr.write(f"round {number + 1} of {options.rounds}\n")
            rounds.run()
        text = _table(rounds, options.epochs)
        print(text)
        if options.write is not None:
            options.write.write_text(text)
    spark.stop()


if __name__ == "__main__":
    main()
