"""One life of a driver: `python -m spark.faults.program LIFE`, where LIFE is JSON; see `Life`.

It does its jobs one after the other, each of which is left out if a life before has done it:

    source       writeStream into a running cluster, and readStream from there into Spark's own sink of files
    stream       `timely.spark.run` over a stream of files, on workers of its own
    column       `timely.spark.run` over a DataFrame whose epochs are a column, on workers of its own
    scheduled    as `stream`, on workers that Spark hosts; started anew when one of their tasks is lost

Ends with status 0 when all are done, with `JAVA_LOST` when Spark's Java was killed, or by a fault.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import differential as dd
import timely
import timely.spark
from differential import Collection
from timely.spark.errors import ClusterLostError, SparkLostError
from timely.spark.java import archive_options, find_java
from timely.spark.lost import end_session, java_watched
from timely.spark.session import java_options, local_session

from .hooks import wrap_all
from .source import FaultySource
from .striking import Fault, Strikes

__all__ = ["JAVA_LOST", "Life", "take_back_unplanned", "totals"]

JAVA_LOST = 3
_TOO_SLOW = ("connect back", "CANNOT_OPEN_SOCKET")
_COLUMNS = "key bigint, amount bigint, said bigint, day bigint"
_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Life:
    """What a driver is told. `folder` has the rows (`in`), the marks of faults (`struck`), and what is
    written (`out`, `kept`); `address` is that of the cluster of the job "source", `flow` its dataflow.
    """

    folder: str
    master: str
    jobs: tuple[str, ...]
    faults: tuple[Fault, ...]
    address: str
    flow: int

    def to_text(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Life:
        """What `to_text` has made."""
        told = json.loads(text)
        return cls(
            **{**told, "jobs": tuple(told["jobs"]), "faults": tuple(Fault(*one) for one in told["faults"])}
        )


def totals(events: Collection) -> Collection:
    """Rows and sums by key."""
    return events.group_by("key").agg(n=dd.count(), total=dd.sum("amount"))


class _Driver:
    def __init__(self, life: Life, spark: SparkSession) -> None:
        self.life = life
        self.spark = spark
        self.folder = Path(life.folder)
        java = SparkContext._gateway.proc.pid  # type: ignore[union-attr]  # it runs
        self._all = Strikes(str(self.folder / "struck"), life.faults, os.getpid(), java)
        self.strikes = self._all

    def run(self) -> None:
        jobs = {"source": self._source, "stream": self._stream, "column": self._column}
        for job in self.life.jobs:
            done = self.folder / "done" / job
            if not done.exists():
                self.strikes = self._all.of(job)
                {**jobs, "scheduled": self._scheduled}[job]()
                done.touch()

    def _rows(self) -> DataFrame:
        files = self.spark.readStream.schema(_COLUMNS).option("maxFilesPerTrigger", 1)
        return files.parquet(str(self.folder / "in")).drop("day")

    def _stream(self, workers: int | timely.Cluster = 2, job: str = "stream") -> None:
        out = self.folder / "out" / job
        timely.spark.run(
            totals, {"events": self._rows()}, diff="said", outputs=out, workers=workers, progress=False
        )

    def _column(self) -> None:
        events = self.spark.read.schema(_COLUMNS).parquet(str(self.folder / "in"))
        timely.spark.run(
            totals,
            {"events": events},
            epochs="day",
            diff="said",
            outputs=self.folder / "out" / "column",
            workers=2,
            progress=False,
        )

    def _scheduled(self) -> None:
        cluster = timely.spark.cluster(self.spark, workers=1, wait=120)
        while True:
            processes = tuple(int(str(counters["process"])) for counters in cluster.stats())
            self.strikes = replace(self._all.of("scheduled"), workers=processes)
            try:
                self._stream(cluster, "scheduled")
                break
            except ClusterLostError:
                cluster = cluster.restart()
        cluster.close()

    @java_watched()
    def _source(self) -> None:
        named = {"cluster": self.life.address, "dataflow": str(self.life.flow)}
        named["strikes"] = self.strikes.to_text()
        files = self._read(named)
        take_back_unplanned(self.folder / "kept" / "writing")
        writing = (
            self._rows()
            .repartition(2)
            .writeStream.format("faulty")
            .options(**named, input="events", diff="said")
            .option("checkpointLocation", str(self.folder / "kept" / "writing"))
            .trigger(availableNow=True)
            .start()
        )
        writing.awaitTermination()
        while True:
            try:
                files.processAllAvailable()
                break
            except StreamingQueryException as error:
                # Spark gives a Python process 10 s to start in, which a busy machine does not always have.
                if not any(said in str(error) for said in _TOO_SLOW):
                    raise
                files = self._read(named)
        files.stop()

    def _read(self, named: Mapping[str, str]) -> StreamingQuery:
        reading = self.spark.readStream.format("faulty").options(**named, output="answer", query="reading")
        return (
            reading.option("startingEpoch", 0)
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self.folder / "kept" / "reading"))
            .start(str(self.folder / "out" / "source"))
        )


def take_back_unplanned(checkpoint: Path) -> None:
    """Let files that belong to no batch yet be new ones again, so that each batch has one file.

    Spark writes down which file comes next (`sources/0/N`) before it plans a batch of it (`offsets`). Of a
    driver that was killed in between, the next life makes one batch of that file and another one. Which is
    right, and not what the judges know of.
    """
    sources = checkpoint / "sources" / "0"
    planned = [int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*")]
    if not sources.exists():
        return
    last = -1
    if planned:
        lines = (checkpoint / "offsets" / str(max(planned))).read_text().splitlines()
        last = int(json.loads(lines[-1])["logOffset"])
    for path in sources.glob("[0-9]*"):
        if int(path.name.split(".")[0]) > last:
            path.unlink()
            (sources / f".{path.name}.crc").unlink(missing_ok=True)


def _settings(life: Life) -> dict[str, str]:
    paths = os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])
    options = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join([*java_options(False), *archive_options(find_java())]),
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.task.maxFailures": "8",
        "spark.local.dir": os.environ["TMPDIR"],
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5",
        "spark.sql.streaming.fileSink.log.compactInterval": "10000",
    }
    return options if life.master == "local" else {**options, "spark.master": life.master}


def main(life: Life) -> int:
    """All jobs."""
    spark = local_session(cores=2, attempts=8, options=_settings(life))
    folder = Path(life.folder)
    with (folder / "applications").open("a") as applications:
        applications.write(f"{spark.sparkContext.applicationId}\n")
    spark.dataSource.register(FaultySource)
    driver = _Driver(life, spark)
    wrap_all(lambda: driver.strikes)
    try:
        driver.run()
    except SparkLostError as error:
        sys.stderr.write(f"{error}\n")
        return JAVA_LOST
    except PySparkException as error:
        sys.stderr.write(f"{error}\n")  # while there is a Java that can say it
        raise
    finally:
        end_session()
    return 0


if __name__ == "__main__":
    sys.exit(main(Life.from_text(sys.argv[1])))
