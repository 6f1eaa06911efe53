"""A driver of its own, which `test_masters.py` leads step by step.

    python spark_cluster_job.py OPTIONS        OPTIONS: settings of Spark, JSON

Each line that it is told is a step, after which it prints a line of JSON:

    start       {"started": processes of workers, "tasks": those above them, "addresses", "threads" that each
                may use, and as "stranger" what a client without keys is told}; again: after `restart`
    feed        {"same": whether the answers are those of the embedded run}
    pages       {"pages": what Spark has shown, with the length of each, "secrets": which of them shows one}
    wait        {"lost": the one error}
    close       {"closed": whether the log of events shows no secret}; the session goes on

Nothing else may come out of it.
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
import timely.spark
from differential.algorithms import connected_components
from timely.keys import ClusterKeys
from timely.spark.delivering import EpochFeed
from timely.spark.epochs import EpochRows, epoch_rows
from timely.spark.errors import ClusterLostError
from timely.spark.scheduled.job import SparkJob
from timely.spark.scheduled.starting import ScheduledCluster
from timely.spark.session import local_session

EPOCHS = 6


def components(dataflow: timely.Dataflow) -> None:
    """The query of the main job."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    connected_components(edges).output("components")


def mentions() -> list[tuple[int, int, int, int]]:
    """Edges that come in one epoch and go two later, so that components grow and fall apart: src, dst, epoch,
    diff.
    """
    coming = [(id % 61, id * 7 % 61, id % EPOCHS, 1) for id in range(300)]
    going = [(src, dst, epoch + 2, -1) for src, dst, epoch, _ in coming if epoch < EPOCHS - 2]
    return coming + going


def frame(spark: SparkSession) -> DataFrame:
    """The same on executors."""
    made: DataFrame = spark.createDataFrame(mentions(), "src long, dst long, epoch long, diff long")
    return made


def fed(cluster: timely.Cluster, rows: EpochRows) -> Counter[tuple[int, int, int]]:
    """The changes of all epochs, fed by executors in two jobs."""
    flow = cluster.install(components)
    feed = EpochFeed(rows, "edges", cluster.append_target(flow.index))
    for chunk in (range(3), range(3, EPOCHS)):
        receipts = feed.send(chunk)
        for epoch in chunk:
            flow.seal(expected=[one for receipt in receipts[epoch] for one in receipt.expected("edges")])
    return _changes(flow)


def twin() -> Counter[tuple[int, int, int]]:
    """The same in this process."""
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(components)
        for epoch in range(EPOCHS):
            mine = [(src, dst, diff) for src, dst, at, diff in mentions() if at == epoch]
            flow.input("edges").insert([(src, dst) for src, dst, diff in mine if diff > 0])
            flow.input("edges").remove([(src, dst) for src, dst, diff in mine if diff < 0])
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


def lost(cluster: timely.Cluster) -> str:
    """What a call says that waits for an epoch which nobody seals."""
    try:
        cluster.flow().wait(EPOCHS)
    except ClusterLostError as error:
        return str(error)
    return ""


def secrets_of(cluster: ScheduledCluster) -> list[str]:
    """The secret keys of the cluster and of this client, in all spellings in which something might show them:
    a part of one is enough.
    """
    job = cluster._job
    assert isinstance(job, SparkJob), "the cluster has no store"
    keys = [ClusterKeys.from_text(job._task._keys).pair, cluster._workers.keys.pair]  # type: ignore[attr-defined]
    found = {pair.secret.reveal() for pair in keys}
    assert len(found) == 2 and all(len(secret) == 40 for secret in found)
    return [spelling for secret in found for spelling in (secret[:12], json.dumps(secret)[1:13])]


def pages(spark: SparkSession) -> dict[str, str]:
    """What Spark shows of itself, and of the jobs so far."""
    context = spark.sparkContext
    # Its address is the driver's host; `local_session` lets it listen on this machine alone.
    port = urllib.parse.urlsplit(context.uiWebUrl).port
    base = f"http://127.0.0.1:{port}/api/v1/applications/{context.applicationId}"
    named = ("environment", "jobs", "stages?details=true", "sql?details=true&planDescription=true")
    shown = {name: urllib.request.urlopen(f"{base}/{name}").read().decode() for name in named}
    return {"settings": repr(context.getConf().getAll()), **shown}


def main(options: dict[str, str]) -> None:
    """All steps."""
    spark = local_session(cores=2, options=options)
    rows = epoch_rows(frame(spark), diff="diff", writers=2)
    wanted = twin()
    assert wanted
    cluster: ScheduledCluster | None = None
    secrets: list[str] = []
    for line in sys.stdin:
        step = line.strip()
        if step == "start":
            cluster = cluster.restart() if cluster else timely.spark.cluster(spark, workers=2, wait=60)
            secrets += secrets_of(cluster)
            started(cluster)
            continue
        assert cluster is not None
        if step == "feed":
            say(same=fed(cluster, rows) == wanted)
        elif step == "wait":
            say(lost=lost(cluster))
        elif step == "pages":
            shown = pages(spark)
            lengths = {name: len(text) for name, text in shown.items()}
            say(pages=lengths, secrets=[name for name, text in shown.items() if _shows(text, secrets)])
        elif step == "close":
            cluster.close()
            say(closed=not _shows(_log_of_events(options), secrets))


def _log_of_events(options: dict[str, str]) -> str:
    folder = Path(urllib.parse.urlparse(options["spark.eventLog.dir"]).path)
    text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "mapPartitions" in text, "it has seen the job"
    return text


def _shows(text: str, secrets: list[str]) -> bool:
    return any(secret in text for secret in secrets)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
