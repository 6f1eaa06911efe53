"""What the tests of the data source share: workers, and a session that knows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import timely
from timely.spark.source.data_source import register


@pytest.fixture(scope="package")
def cluster() -> Iterator[timely.Cluster]:
    """Two workers; each test, or file, installs a dataflow of its own."""
    with timely.connect(workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session(spark: SparkSession) -> SparkSession:
    """The session of all tests of Spark, which knows `format("naiad")`."""
    register(spark)
    return spark
