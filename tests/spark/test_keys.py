"""Keys and Spark: tasks get those of the driver.

Clusters in Spark have keys of their own: `scheduled/test_starting.py`; that Spark shows none of them:
`scheduled/test_masters.py`, in a session that has pages and a log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from two_hosts import aliases, free_ports, ready, started

import timely
from timely.client.connection import append_target
from timely.keys import load_client
from timely.keys.folder import add_client, make_cluster, revoke_client
from timely.spark.delivering import EpochFeed
from timely.spark.epochs import epoch_rows
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
        with pytest.raises(PySparkException, match="takes? only clients with keys"):
            spark.read.format("naiad").options(**options).load()
        with (
            pytest.raises(timely.RefusedError, match="takes? only clients with keys"),
            append_target([address])(),
        ):
            pass
        revoke_client(tmp_path / "cluster", "ada")
        with pytest.raises(PySparkException, match="key 'ada'"):
            spark.read.format("naiad").options(keys=str(ada), **options).load()
