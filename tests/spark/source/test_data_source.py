"""`format("naiad")` as a user meets it: found, and refused in one line.

found_*     without and with registering
refused_*   no traceback, the cause in one line
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import ROOT
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import differential as dd
import timely
from timely.client.session import Flow
from timely.spark.source.data_source import NaiadSource, register

LOOK_UP = """
import io
from pyspark.sql.worker.lookup_data_sources import _main
found = io.BytesIO()
_main(io.BytesIO(), found)
print(b"naiad" in found.getvalue())
"""


@pytest.fixture(scope="module")
def flow() -> Iterator[Flow]:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")

    with timely.connect(workers=2) as cluster:
        flow = cluster.install(passed_on)
        flow.input("rows").insert([(1, "a"), (2, "b")])
        flow.seal()
        yield flow


def look_up(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", LOOK_UP], env=environment, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_found_by_the_module_that_an_installation_puts_beside_the_packages(tmp_path: Path) -> None:
    (line,) = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if "pyspark_naiad" in line]
    source, name = (part.strip().strip('"') for part in line.split("="))
    shutil.copy(ROOT / source, tmp_path / name)
    assert look_up(tmp_path) == "True"


def test_found_once_it_is_registered(spark: SparkSession, flow: Flow) -> None:
    register(spark)
    assert NaiadSource.name() == "naiad"
    frame = spark.read.format("Naiad").options(cluster=flow._workers.addresses[0], output="rows").load()
    assert frame.count() == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output": "row"}, "has no output 'row': there are 'rows'"),
        ({}, "the option 'output' is missing: write .option('output', 'components')"),
        ({"output": "rows", "dataflow": "other"}, "no dataflows are called 'other'"),
        ({"output": "rows", "epoch": "9", "timeout": "0.2"}, "epoch 9 of output 'rows' is not complete"),
        ({"output": "rows", "columns": "n, m"}, "the output has no column 'm'; there are n, text"),
        ({"ouput": "rows"}, "there is no option 'ouput' of naiad: write 'output'"),
        ({"output": "rows", "cluster": "127.0.0.1:9"}, "is a cluster running there?"),
        ({"output": "rows", "cluster": "here"}, "'here' is no address of a worker"),
    ],
)
def test_refused_in_one_line(spark: SparkSession, flow: Flow, options: dict[str, str], said: str) -> None:
    register(spark)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("naiad").options(
            **{"cluster": flow._workers.addresses[0], **options}
        ).load().count()
    message = str(raised.value)
    assert said in message and "Traceback" not in message
    lines = [line for line in message.splitlines() if line.strip() and "SQLSTATE" not in line]
    assert len(lines) == 1, message


def test_refused_schema_is_told_column_by_column(spark: SparkSession, flow: Flow) -> None:
    register(spark)
    reader = spark.read.format("naiad").options(cluster=flow._workers.addresses[0], output="rows")
    assert sorted(reader.schema("text string").load().collect()) == [("a",), ("b",)]
    with pytest.raises(PySparkException, match="'n' is bigint, not string; 'm' is not there"):
        reader.schema("n string, text string, m int").load().count()


def test_refused_what_is_forgotten(spark: SparkSession, flow: Flow) -> None:
    register(spark)
    flow.output("rows").forget(flow.epoch)
    reader = spark.read.format("naiad").options(cluster=flow._workers.addresses[0], output="rows")
    with pytest.raises(PySparkException, match="changes of epochs before 1 are no longer kept") as raised:
        reader.option("startingEpoch", 0).load().count()
    assert "Traceback" not in str(raised.value)


def test_refused_when_the_cluster_has_gone_after_the_frame_was_made(spark: SparkSession) -> None:
    register(spark)

    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    with timely.connect(workers=1) as cluster:
        cluster.install(passed_on)
        frame = spark.read.format("naiad").options(cluster=cluster.addresses[0], output="rows").load()
    with pytest.raises(
        PySparkException, match="no worker can be reached at .* is the cluster gone"
    ) as raised:
        frame.count()
    assert "Traceback" not in str(raised.value)
