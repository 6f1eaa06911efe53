"""One Spark for all tests of this folder: starting it costs more than any of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from timely.spark.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores, whose tasks may be tried three times."""
    session = local_session(cores=2, app="tests", attempts=3)
    yield session
    session.stop()
