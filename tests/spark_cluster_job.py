"""A driver of its own: what `test_masters.py` runs on each kind of master, step by step.

    python spark_cluster_job.py OPTIONS        OPTIONS: settings of Spark, JSON

It prints a line of JSON after each step: {"started": processes of workers and tasks, addresses, and as
"stranger" what a client without keys is told}, {"same": whether the answers are those of the embedded run},
{"lost": the one error}, and again {"started"}, {"same"}; then it waits for a line, and ends:
{"closed": true}. Nothing else may come out of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
import timely.spark
from differential.algorithms import connected_components
from timely.spark.epochs import EpochRows, epoch_rows
from timely.spark.errors import ClusterLostError
from timely.spark.feed import EpochFeed
from timely.spark.session import local_session

EPOCHS = 6


def components(dataflow: timely.Dataflow) -> None:
    """The query of the main job."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    connected_components(edges).output("components")


def mentions(spark: SparkSession) -> DataFrame:
    """Edges that come in one epoch and go two later, so that components grow and fall apart."""
    coming = "id % 61 AS src, id * 7 % 61 AS dst, id % 6 AS epoch, 1 AS diff"
    going = "id % 61 AS src, id * 7 % 61 AS dst, id % 6 + 2 AS epoch, -1 AS diff"
    rows = spark.range(300)
    frame: DataFrame = rows.selectExpr(*coming.split(", ")).union(
        rows.where("id % 6 < 4").selectExpr(*going.split(", "))
    )
    return frame


def fed(cluster: timely.Cluster, rows: EpochRows) -> Counter[tuple[int, int, int]]:
    """The changes of all epochs, fed by executors in two jobs."""
    flow = cluster.install(components)
    feed = EpochFeed(rows, "edges", cluster.append_target(flow.index))
    for chunk in (range(3), range(3, EPOCHS)):
        receipts = feed.send(chunk)
        for epoch in chunk:
            flow.seal(expected=[one for receipt in receipts[epoch] for one in receipt.expected("edges")])
    return _changes(flow)


def twin(rows: EpochRows) -> Counter[tuple[int, int, int]]:
    """The same in this process."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(components)
        for epoch in range(EPOCHS):
            mine = rows.frame.where(f"epoch = {epoch}").collect()
            coming = [(row["src"], row["dst"]) for row in mine if row["diff"] > 0]
            going = [(row["src"], row["dst"]) for row in mine if row["diff"] < 0]
            flow.input("edges").insert(coming)
            flow.input("edges").remove(going)
            flow.seal()
        return _changes(flow)


def _changes(flow: timely.Flow) -> Counter[tuple[int, int, int]]:
    table = flow.output("components").changes(0, EPOCHS)
    found: Counter[tuple[int, int, int]] = Counter()
    for node, label, epoch, diff in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[node, label, epoch] += diff
    return found


def say(**values: object) -> None:
    """One line, for the test."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def started(cluster: timely.Cluster) -> None:
    """Which processes there are, and how clients reach them."""
    workers = [int(str(counters["process"])) for counters in cluster.stats()]
    environments = [Path(f"/proc/{worker}/environ").read_bytes().split(b"\0") for worker in workers]
    threads = [one for found in environments for one in found if one.startswith(b"OMP_NUM_THREADS")]
    say(
        started=workers,
        tasks=[_parent(worker) for worker in workers],
        addresses=cluster.addresses,
        stranger=_stranger(cluster.addresses[0]),
        threads=[one.decode().partition("=")[2] for one in threads],
    )


def _stranger(address: str) -> str:
    """What a client hears that has nothing but the address."""
    try:
        with timely.connect(address):
            return "welcome"
    except timely.TimelyError as error:
        return type(error).__name__


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def main(options: dict[str, str]) -> None:
    """All steps."""
    spark = local_session(cores=2, options=options)
    rows = epoch_rows(mentions(spark), diff="diff", writers=2)
    wanted = twin(rows)
    assert wanted
    cluster = timely.spark.cluster(spark, workers=2, wait=60)
    started(cluster)
    say(same=fed(cluster, rows) == wanted)
    try:
        flow = cluster.flow()
        flow.wait(EPOCHS)  # nobody seals it
    except ClusterLostError as error:
        say(lost=str(error))
    cluster = cluster.restart()
    started(cluster)
    say(same=fed(cluster, rows) == wanted)
    sys.stdin.readline()
    cluster.close()
    spark.stop()
    say(closed=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
