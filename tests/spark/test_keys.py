"""Keys and Spark: clusters in Spark have some, tasks get those of the driver, and Spark shows none of them.

Spark's own view is asked for in a process of its own: a session has pages and a log only from its beginning.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import ROOT
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from two_hosts import aliases, free_ports, ready, started

import timely
import timely.spark
from timely.client.connection import AppendClient, append_target
from timely.keys import ClientKeys, load_client
from timely.keys.folder import add_client, make_cluster, revoke_client
from timely.spark.epochs import epoch_rows
from timely.spark.feed import EpochFeed
from timely.spark.source.data_source import register


@contextlib.contextmanager
def cluster_with_keys(folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of a worker that another host could reach, and a client's folder."""
    make_cluster(folder / "cluster")
    add_client(folder / "cluster", "ada", folder / "ada")
    host, _ = aliases()
    port = free_ports([host], 2)
    (folder / "hosts.txt").write_text(f"{host.at(port)}\n")
    arguments = ("-h", str(folder / "hosts.txt"), "--keys", str(folder / "cluster"), "--json")
    more = ("--client-port", str(port + 1), "--install", "collection_flows:mentions")
    with started(host, "-m", "timely.worker", *arguments, *more) as process:
        yield ready(process, 1)[0], folder / "ada"


def test_executors_feed_and_read_with_the_keys_that_the_driver_hands_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAIAD_KEYS", raising=False)
    register(spark)
    with cluster_with_keys(tmp_path) as (address, ada):
        with timely.connect(address, keys=ada) as cluster:
            flow = cluster.flow(0)
            said = spark.range(50).selectExpr("'ada' AS who", "string(id % 5) AS text", "id div 25 AS epoch")
            rows = epoch_rows(said, writers=2)
            EpochFeed(rows, "said", cluster.append_target(0)).send(range(2))
            rows.release()
            flow.seal()
            flow.seal()
        options = {"cluster": address, "output": "counts"}
        frame = spark.read.format("naiad").options(keys=str(ada), **options).load()
        assert sorted(tuple(row) for row in frame.collect()) == [(str(k), 10) for k in range(5)]
        secret = load_client(ada).pair.secret.reveal()
        plan = frame._jdf.queryExecution().toString()
        assert secret not in plan and secret[:10] not in plan
        with pytest.raises(PySparkException, match="take only clients with keys"):
            spark.read.format("naiad").options(**options).load()
        with (
            pytest.raises(timely.RefusedError, match="take only clients with keys"),
            append_target([address])(),
        ):
            pass
        revoke_client(tmp_path / "cluster", "ada")
        with pytest.raises(PySparkException, match="key 'ada'"):
            spark.read.format("naiad").options(keys=str(ada), **options).load()


def test_a_cluster_in_spark_takes_nobody_but_who_has_started_it(spark: SparkSession) -> None:
    with timely.spark.cluster(spark, workers=1, wait=60) as cluster:
        assert cluster.flows() == {}
        target = cluster.append_target()
        with pytest.raises(timely.RefusedError, match="take only clients with keys"):
            timely.connect(*cluster.addresses)
        with target() as client:
            assert isinstance(client, AppendClient)
        assert isinstance(target.keys, ClientKeys) and "<secret>" not in repr(target)


SHOWS = """
import json, sys, urllib.request
from pathlib import Path
import differential as dd, timely, timely.spark
from timely.spark.session import local_session
from timely.spark.epochs import epoch_rows
from timely.spark.feed import EpochFeed

def totals(dataflow):
    dd.input(dataflow, "rows", "key: int").group_by("key").agg(n=dd.count()).output("totals")

log = Path(sys.argv[1])
spark = local_session(2, options={
    "spark.ui.enabled": "true", "spark.ui.port": "0", "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": log.as_uri(), "spark.eventLog.compress": "false",
})
context = spark.sparkContext
with timely.spark.cluster(spark, workers=1) as cluster:
    flow = cluster.install(totals)
    rows = epoch_rows(spark.range(20).selectExpr("id % 2 AS key", "0L AS epoch"), writers=1)
    sent = EpochFeed(rows, "rows", cluster.append_target(flow.index)).send(range(1))
    flow.seal()
    assert sorted(map(tuple, (row.values() for row in flow.output("totals").snapshot().to_pylist())))
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    pages = {"conf": repr(context.getConf().getAll())}
    for page in ("environment", "jobs", "stages?details=true", "sql?details=true&planDescription=true"):
        pages[page] = urllib.request.urlopen(f"{base}/{page}").read().decode()
    secrets = [cluster._workers.keys.pair.secret.reveal(), json.loads(cluster._job._task._keys)["pair"][1]]
spark.stop()
pages["event log"] = "".join(path.read_text() for path in log.rglob("*") if path.is_file())
assert all(len(page) > 100 for page in pages.values()), {name: len(page) for name, page in pages.items()}
assert "mapPartitions" in pages["event log"] or "naiad" in pages["event log"]
assert len(set(secrets)) == 2 and all(len(secret) == 40 for secret in secrets)
for name, page in pages.items():
    for secret in secrets:
        for shown in (secret, json.dumps(secret)[1:-1], secret[:12]):
            assert shown not in page, name
print("shown nowhere")
"""


@pytest.mark.timeout(300)
def test_no_page_log_plan_or_setting_of_spark_shows_a_secret(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWS, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "shown nowhere\n"
