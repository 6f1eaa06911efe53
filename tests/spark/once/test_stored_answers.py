"""Spark reads the stored answer of a cluster that has ended, as any program does."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from stored_flows import cluster, totals

from timely.durable import stored


def test_read_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5), ("bea", 2), ("ada", 30), ("ada", 30)])
        flow.seal()
    by_spark = spark.read.parquet(stored(tmp_path, "orders").path)
    assert by_spark.columns == ["customer", "cents"]
    assert by_spark.groupBy().sum("cents").collect()[0][0] == 67
