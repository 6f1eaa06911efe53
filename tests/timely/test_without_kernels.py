"""Who only talks to workers loads nothing that only workers need, and no pandas: a second of each process.

  imported_*   what is loaded by imports alone: of a client, of Spark's drivers and executors, of commands
  used_*       the same, after having done what such a process does

Each in a fresh process, which must not have what another test has loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from house import ROOT

import differential as dd
import timely

HEAVY = ("progress.compiled.kernel", "numba", "llvmlite", "pandas", "scipy", "rich", "pyarrow.compute")
pytestmark = pytest.mark.timeout(300)  # on a fresh machine kernels are compiled


@timely.builder
def passed_on(dataflow: timely.Dataflow) -> None:
    """A collection whose rows come out as they are."""
    dd.input(dataflow, "edges", "source: int, target: int").output("edges")


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    """One worker with a collection in which there is a row."""
    with timely.connect(workers=1) as cluster:
        flow = cluster.install(passed_on)
        flow.input("edges").insert([(1, 2)])
        flow.seal()
        yield cluster


def loaded(program: str, *arguments: str) -> list[str]:
    """Which of `HEAVY` a fresh process has loaded at the end of a program."""
    told = f"{program}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", told, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = done.stdout.strip().strip("[]")
    return [name.strip("' ") for name in names.split(",")] if names else []


@pytest.mark.parametrize(
    "module",
    [
        "progress",
        "timely",
        "timely.client.connection",
        "timely.keys.command",
        "timely.spark",
        "timely.spark.delivering",
        "timely.spark.scheduled.task",
        "timely.spark.source.data_source",
        "timely.worker.__main__",  # starts workers, and waits for them
    ],
)
def test_imported_is_nothing_that_only_workers_need(module: str) -> None:
    assert loaded(f"import {module}") == []


def test_used_to_describe_a_dataflow_by_hand() -> None:
    program = """
import timely
dataflow = timely.Dataflow("described")
dataflow.output("lines", dataflow.input("lines"))
dataflow.freeze()
"""
    assert loaded(program) == []


def test_used_to_append_and_to_read(cluster: timely.Cluster) -> None:
    program = """
import sys
import pyarrow as pa
import timely
with timely.connect(sys.argv[1]) as cluster:
    flow = cluster.flow("passed_on")
    rows = pa.Table.from_batches([flow.output("edges").changes().drop_columns(["epoch"]).to_batches()[0]])
    assert rows.to_pylist() == [{"source": 1, "target": 2, "diff": 1}]
    assert flow.output("edges").snapshot().to_pylist() == [{"source": 1, "target": 2}]
    with cluster.append_target(flow.index)() as target:
        assert target.append("edges", 1, "here", 0, rows)
"""
    # A table is sorted by what computes on tables.
    assert set(loaded(program, *cluster.addresses)) <= {"pyarrow.compute"}


def test_used_as_an_executor_that_feeds() -> None:
    program = """
import contextlib
import pyarrow as pa
import timely
from timely.spark.delivering import _Task
from timely.wire.arrow import int64_array

class Target:
    tables = []
    def append(self, input, epoch, writer, sequence, table):
        if epoch == 3:
            raise timely.InputClosedError("epoch 3 is sealed")
        self.tables.append((epoch, writer, sequence, table.to_pylist()))

rows = {"epoch": int64_array([0, 2, 2, 3]), "n": int64_array([7, 8, 9, 10])}
task = _Task("numbers", ("epoch", "n"), lambda: contextlib.nullcontext(Target()), "spark/1x100", 100)
told = pa.Table.from_batches(task(iter([pa.RecordBatch.from_pydict(rows)]))).to_pylist()
assert Target.tables == [(0, "spark/1x100/0", 0, [{"n": 7}]), (2, "spark/1x100/0", 0, [{"n": 8}, {"n": 9}])]
assert [(row["epoch"], row["rows"]) for row in told] == [(0, 1), (2, 2), (None, None)], told
assert told[-1]["message"] == "epoch 3 is sealed", told
"""
    assert loaded(program) == []


def test_used_as_an_executor_that_reads(cluster: timely.Cluster) -> None:
    program = """
import sys
from pyspark.sql import types as T
from timely.client.pieces import OutputSlice
from timely.spark.source.connecting import Whereabouts
from timely.spark.source.reading import OutputPartition, read_partition

form = T.StructType().add("source", T.LongType()).add("target", T.LongType())
wanted = OutputSlice(0, "edges", "reader", -1, 1, ("source", "target", "diff"), [])
partition = OutputPartition(Whereabouts((sys.argv[1],)), wanted)
rows = [row for batch in read_partition(partition, form) for row in batch.to_pylist()]
assert rows == [{"source": 1, "target": 2}], rows
"""
    assert set(loaded(program, *cluster.addresses)) <= {"pyarrow.compute"}


def test_used_as_a_worker_they_are_loaded() -> None:
    """Without this the others would hold if nothing were ever loaded."""
    program = """
import timely
def lines(dataflow):
    dataflow.output("lines", dataflow.input("lines"))
with timely.connect(embedded=True) as cluster:
    flow = cluster.install(lines)
    flow.input("lines").insert(["a"])
    flow.seal()
    assert flow.output("lines").changes() == [(0, "a")]
"""
    assert "progress.compiled.kernel" in loaded(program)
