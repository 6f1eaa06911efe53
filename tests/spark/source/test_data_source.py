"""`format("naiad")` as a user meets it: found, and refused in one line.

found_*     without and with registering
refused_*   no traceback, the cause in one line
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from house import ROOT
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import InputPartition

import differential as dd
import timely
from timely.client.remote.workers import RemoteWorkers
from timely.client.session import Flow
from timely.errors import ForgottenError, MisuseError, PeerError, TimelyError
from timely.spark.source.connecting import Whereabouts
from timely.spark.source.data_source import NaiadSource, register
from timely.spark.source.streaming import RefusedStream

LOOK_UP = """
import io
from pyspark.sql.worker import lookup_data_sources as worker
for name in vars(worker):  # what PySpark 4.1 is told besides
    if name in ("check_python_version", "setup_spark_files", "setup_broadcasts", "send_accumulator_updates"):
        setattr(worker, name, lambda *given: None)
found = io.BytesIO()
getattr(worker, "_main", worker.main)(io.BytesIO(b"\\xff\\xff\\xff\\xfc"), found)  # its end
print(b"naiad" in found.getvalue())
"""


@pytest.fixture(scope="module")
def flow(cluster: timely.Cluster) -> Flow:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int, text: string").output("rows")

    flow = cluster.install(passed_on)
    flow.input("rows").insert([(1, "a"), (2, "b")])
    flow.seal()
    return flow


def options(flow: Flow, **more: str) -> dict[str, str]:
    named = {"cluster": flow._workers.addresses[0], "dataflow": str(flow.index), "output": "rows"}
    return {name: value for name, value in {**named, **more}.items() if value}


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
    assert spark.read.format("Naiad").options(**options(flow)).load().count() == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"output": "row"}, "has no output 'row': there are 'rows'"),
        ({"output": ""}, r"the option 'output' is missing: write .option\('output', 'components'\)"),
        ({"dataflow": "other"}, "no dataflows are called 'other': there are '"),
        ({"columns": "n, m"}, "the output has no column 'm'; there are n, text"),
        ({"output": "", "ouput": "rows"}, "there is no option 'ouput' of naiad: write 'output'"),
        ({"cluster": "here"}, "'here' is no address of a worker"),
    ],
)
def test_refused_before_there_is_a_frame(flow: Flow, more: dict[str, str], said: str) -> None:
    with pytest.raises(TimelyError, match=said):
        NaiadSource(options(flow, **more)).schema()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"output": "row"}, "has no output 'row': there are 'rows'"),
        ({"epoch": "9", "timeout": "0.2"}, "epoch 9 of output 'rows' is not complete"),
    ],
)
def test_refused_in_one_line(session: SparkSession, flow: Flow, more: dict[str, str], said: str) -> None:
    """By the process that makes the source, and by that which plans a query."""
    with pytest.raises(PySparkException) as raised:
        session.read.format("naiad").options(**options(flow, **more)).load().count()
    message = str(raised.value)
    assert said in message and "Traceback" not in message
    lines = [line for line in message.splitlines() if line.strip() and "SQLSTATE" not in line]
    assert len(lines) == 1, message


def test_refused_is_a_path_and_said_what_to_write(session: SparkSession, flow: Flow) -> None:
    """As one reads files, or another source's tables: taken for nothing, it were of another output."""
    with pytest.raises(PySparkException, match=r"naiad reads and writes no path, 'rows': write \.option"):
        session.read.format("naiad").options(**options(flow)).load("rows").count()
    frame = session.createDataFrame([(1, "a")], "n long, text string")
    with pytest.raises(PySparkException, match="naiad reads and writes no path, 'rows'"):
        frame.write.format("naiad").mode("append").options(**options(flow, input="rows")).save("rows")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "a stream of an output is its changes: say from where"),
        (
            {"startingEpoch": "0", "epochsPerBatch": "1.5"},
            "'epochsPerBatch' is a whole number, 0 or more, not",
        ),
        ({"startingEpoch": "0", "restarted": "yes"}, "'restarted' is 'refuse' or 'allow', not 'yes'"),
    ],
)
def test_refused_streams_in_one_line(
    session: SparkSession, flow: Flow, more: dict[str, str], said: str, tmp_path: Path
) -> None:
    stream = session.readStream.format("naiad").options(**options(flow, **more)).load().writeStream
    query = stream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException) as raised:
        query.awaitTermination(60)
    (line,) = [line for line in str(raised.value).splitlines() if "STREAM_FAILED" in line]
    assert said in line and "Traceback" not in str(raised.value)


def test_refused_streams_say_why_whatever_they_are_asked(flow: Flow) -> None:
    source = NaiadSource(options(flow))
    refused = source.streamReader(source.schema())
    assert isinstance(refused, RefusedStream)
    for ask in (
        refused.initialOffset,
        refused.latestOffset,
        lambda: refused.partitions({}, {}),
        lambda: refused.read(InputPartition(0)),
    ):
        with pytest.raises(MisuseError, match="say from where"):
            ask()
    refused.stop()


def test_found_rows_are_as_of_when_the_frame_was_made_though_its_schema_was_given(flow: Flow) -> None:
    """Step by step as PySpark does it, which then never asks for the schema."""
    source = NaiadSource(options(flow))
    before = flow.refresh()
    flow.seal()
    there = [pickle.loads(pickle.dumps(source)).reader(T.StructType().add("n", "long")) for _ in range(2)]
    assert [reader.plan.epoch for reader in there] == [before - 1] * 2
    assert there[0].plan.reader == there[1].plan.reader, "one place for all queries of the frame"


def test_refused_schema_is_told_column_by_column(session: SparkSession, flow: Flow) -> None:
    reader = session.read.format("naiad").options(**options(flow))
    assert sorted(reader.schema("text string").load().collect()) == [("a",), ("b",)]
    asked = T.StructType().add("n", "string").add("text", "string").add("m", "integer")
    with pytest.raises(MisuseError, match="'n' is bigint, not string; 'm' is not there"):
        NaiadSource(options(flow)).reader(asked)


def test_refused_what_is_forgotten(flow: Flow) -> None:
    flow.output("rows").forget(flow.refresh())
    source = NaiadSource(options(flow, startingEpoch="0"))
    with pytest.raises(ForgottenError, match="changes of epochs before .* are no longer kept"):
        source.reader(source.schema()).partitions()


def test_refused_when_the_cluster_has_gone_after_the_frame_was_made(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = NaiadSource(options(flow))
    reader = source.reader(source.schema())
    reader.plan = replace(reader.plan, at=Whereabouts(("127.0.0.1:9",)))
    monkeypatch.setattr(RemoteWorkers.join, "__defaults__", (0.1,))
    with pytest.raises(PeerError, match="no worker can be reached at .* is the cluster gone"):
        reader.partitions()
