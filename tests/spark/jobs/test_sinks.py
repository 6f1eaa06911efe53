"""Folders and tables: what is in them, and what may not go on in them.

folder_*     change log, snapshot, epochs; which of them are kept; a disk without room
restart_*    behind what is committed; not with other rows, epochs, or another job
table_*      the same as tables of Spark's catalog
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from timely.errors import MisuseError
from timely.spark.errors import OutputError
from timely.spark.jobs.outputs import Keep, to_parquet, to_table
from timely.spark.jobs.sinks import FolderSink, sink_of

JOB: dict[str, object] = {"query": "a", "columns": "k"}


@dataclass(frozen=True)
class Days:
    """A calendar of these values."""

    days: tuple[str, ...]
    column: str = "day"

    @property
    def count(self) -> int:
        return len(self.days)

    def describe(self) -> str:
        return "days"

    def values(self) -> pa.Array:
        return pa.array(self.days)

    def dated(self, frame: DataFrame, keep: list[str]) -> DataFrame:
        raise NotImplementedError


def changes(epoch: int, *rows: int, diff: int = 1) -> pa.Table:
    n = len(rows)
    columns = {"k": list(rows), "epoch": [epoch] * n, "diff": [diff] * n}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def snapshot(*rows: int) -> Callable[[], pa.Table]:
    return lambda: pa.table({"k": pa.array(rows, pa.int64())})


def folder(spark: SparkSession, path: Path, days: str = "abc", keep: Keep = "both") -> FolderSink:
    return sink_of(spark, to_parquet(path, keep), JOB, Days(tuple(days)))


@pytest.mark.parametrize("keep", ["both", "changes", "snapshot"])
def test_folder_keeps_what_it_is_told_to(spark: SparkSession, tmp_path: Path, keep: Keep) -> None:
    sink = folder(spark, tmp_path, keep=keep)
    assert sink.wants == (3 if keep == "snapshot" else 0)
    for epoch, table in enumerate([changes(0, 1, 2), changes(1), changes(2, 1, diff=-1)]):
        sink.commit(epoch, table)
    sink.finish(snapshot(2))
    sink.close()
    parts = {"both": {"changes", "snapshot", "epochs"}, "changes": {"changes", "epochs"}}
    assert {part.name for part in tmp_path.glob("[!_]*")} == parts.get(keep, {"snapshot", "epochs"})
    assert [tuple(row) for row in sink.snapshot().collect()] == [(2,)]
    epochs = spark.read.parquet(str(tmp_path / "epochs")).orderBy("epoch")
    assert [tuple(row) for row in epochs.collect()] == [(0, "a"), (1, "b"), (2, "c")]
    if keep == "snapshot":
        with pytest.raises(MisuseError, match="keeps no change log"):
            sink.changes()
    else:
        assert sorted(map(tuple, sink.changes().collect())) == [(1, 0, 1), (1, 2, -1), (2, 0, 1)]


def test_folder_of_changes_alone_that_are_no_table_is_not_summed_up_to_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = folder(spark, tmp_path, days="ab", keep="changes")
    sink.commit(0, changes(0, 1, 1, 2))
    sink.commit(1, changes(1, 3, diff=-1))
    sink.close()
    with pytest.raises(PySparkException, match="holds rows a negative number of times"):
        sink.snapshot().collect()
    assert len(sink.changes().collect()) == 4


def committed(spark: SparkSession, path: Path) -> None:
    """Two epochs of three are committed."""
    sink = folder(spark, path, days="ab")
    sink.commit(0, changes(0, 1, 2))
    sink.commit(1, changes(1, 1, diff=-1))
    sink.close()


def test_restart_goes_on_behind_what_is_committed_with_more_epochs(
    spark: SparkSession, tmp_path: Path
) -> None:
    committed(spark, tmp_path)
    sink = folder(spark, tmp_path)
    assert sink.wants == sink.committed == 2
    sink.check_before(lambda: changes(1, 2))
    sink.commit(2, changes(2, 7))
    sink.finish(snapshot(2, 7))
    sink.close()
    assert sorted(map(tuple, sink.changes().collect())) == [(1, 0, 1), (1, 1, -1), (2, 0, 1), (7, 2, 1)]
    assert "Epochs 0 to 2 are committed" in sink.progress()


def test_folder_on_a_disk_without_room_is_one_error_and_goes_on_later(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(OutputError, match="cannot be written: No space left on device. What is") as told:
            folder(spark, tmp_path)
        assert str(tmp_path) in str(told.value) and "\n" not in str(told.value)
    committed(spark, tmp_path)


def test_restart_with_other_rows_or_epochs_is_refused_in_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    committed(spark, tmp_path)
    sink = folder(spark, tmp_path)
    for found, which in (
        (changes(1, 2, 3), "without the row k 3, that this run finds"),
        (
            changes(1, 3, 3),
            "(with the row k 2, that this run does not|without the row k 3, that this run) find",
        ),
        (changes(1), "with the row k 2, that this run does not find"),
        (changes(1, 2, 2), "without the row k 2, that this run finds"),
    ):
        with pytest.raises(OutputError, match=f"epochs up to 1 are committed {which}") as told:
            sink.check_before(lambda found=found: found)  # type: ignore[misc]
        assert "\n" not in str(told.value)
    sink.close()
    with pytest.raises(OutputError, match=r"epoch 1 is committed and was b; .* it would be aa\. New rows"):
        folder(spark, tmp_path, days=("a", "aa", "b"))  # type: ignore[arg-type]
    with pytest.raises(OutputError, match="has 2 epochs, committed by an earlier run, and this run only 1"):
        folder(spark, tmp_path, days="a")
    with pytest.raises(OutputError, match="of another job: query: its steps, functions or constants") as told:
        sink_of(spark, to_parquet(tmp_path), {**JOB, "query": "b"}, Days(tuple("abc")))
    assert "\n" not in str(told.value) and "--output" not in str(told.value)
    with pytest.raises(OutputError, match="of another job: kind: None there, 'MT' now."):
        sink_of(spark, to_parquet(tmp_path, job={"kind": "MT"}), JOB, Days(tuple("abc")))
    folder(spark, tmp_path).close()  # nobody who was refused holds it


@pytest.mark.parametrize("keep", ["both", "changes", "snapshot"])
def test_restart_of_another_job_or_beside_another_run_is_refused_whatever_is_kept(
    spark: SparkSession, tmp_path: Path, keep: Keep
) -> None:
    """A snapshot of the one beside the change log of the other would be taken for its sum."""
    keeps: list[Keep] = ["both", "changes", "snapshot"]
    sink = folder(spark, tmp_path, keep=keep)
    before = sorted(tmp_path.rglob("[!_]*"))
    for other in keeps:
        with pytest.raises(OutputError, match=f"another run is writing to {tmp_path}"):
            folder(spark, tmp_path, keep=other)
    sink.close()
    for other in keeps:
        with pytest.raises(OutputError, match="of another job: query: its steps, functions or constants"):
            sink_of(spark, to_parquet(tmp_path, other), {**JOB, "query": "b"}, Days(("x",)))
    assert sorted(tmp_path.rglob("[!_]*")) == before
    with pytest.raises(MisuseError, match="has query, which the run sets"):
        sink_of(spark, to_parquet(tmp_path, keep, job={"query": "b"}), JOB, Days(tuple("abc")))


def test_table_has_the_snapshot_the_change_log_and_the_epochs(spark: SparkSession) -> None:
    name = f"kept_{secrets.token_hex(4)}"  # tables outlive the session
    for run in range(2):
        sink = sink_of(spark, to_table(name), JOB, Days(tuple("ab"[: run + 1])))
        assert sink.wants == run
        sink.commit(run, changes(run, run))
        sink.finish(snapshot(*range(run + 1)))
        sink.close()
    assert sorted(map(tuple, spark.table(name).collect())) == [(0,), (1,)]
    assert spark.table(f"{name}_changes").count() == spark.table(f"{name}_epochs").count() == 2
    for suffix in ("", "_changes", "_epochs"):
        spark.sql(f"DROP TABLE {name}{suffix}")
    spark.range(3).createOrReplaceTempView(f"{name}_epochs")
    with pytest.raises(OutputError, match=f"there is a table {name}_epochs already, which is not of this"):
        sink_of(spark, to_table(name), JOB, Days(("a",)))
    spark.catalog.dropTempView(f"{name}_epochs")
    with pytest.raises(MisuseError, match="'a b' is no name of a table"):
        sink_of(spark, to_table("a b"), JOB, Days(("a",)))
