"""The sinks that store answers: folders and tables with commits, or the memory of the driver.

    DIR/changes/     the change log, one commit for each epoch          timely/spark/sink.py
    DIR/snapshot/    the rows as of the last epoch
    DIR/epochs/      the number and the value of each epoch: a value of the column, or the window's end

    DIR/_job.json, _lock     the job of the folder, for any `keep`, and the lock of the run that writes there

`wants` of a sink is the first epoch whose changes it needs: the one after those that an earlier run has
committed. A sink compares the committed state with this run: the job's description, the values of epochs, and
each row as of the last committed epoch. Otherwise a run could append changes to a log that they do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from timely.counted import counted
from timely.errors import MisuseError
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.errors import OutputError, first_line
from timely.spark.frames import frame_of, quoted, read_folders
from timely.spark.lost import spark_errors_as
from timely.spark.output_folder import OutputFolder
from timely.spark.sink import ChangesSink, write_snapshot

from .calendar import Calendar
from .outputs import Keep, ToParquet, ToTable

__all__ = ["FolderSink", "MemorySink", "Sink", "TableSink", "sink_of"]

R = TypeVar("R")

_NO_TABLE = "the collection holds rows a negative number of times, so it is no table: read changes()"
_TABLES = {"": "snapshot", "_changes": "changes", "_epochs": "epochs"}
"""The suffix of a table's name, and the folder with its rows."""


class Sink(Protocol):
    """Takes the changes of one output, epoch by epoch."""

    wants: int
    """The first epoch that it needs; those before are committed."""

    each_epoch: bool
    """It is finished after each epoch, and not only after the last one."""

    @property
    def committed(self) -> int:
        """Epochs before this one are committed."""
        ...

    def commit(self, epoch: int, changes: pa.Table) -> None:
        """Take the changes of the next epoch, or of one that is committed already."""
        ...

    def check_before(self, rows_before: Callable[[], pa.Table]) -> None:
        """Compare the committed rows with those as of the epoch before `wants`, which `rows_before` returns
        (columns, epoch, diff); that epoch has been answered.
        """
        ...

    def flush(self) -> None:
        """Wait until the epochs handed over are committed."""
        ...

    def finish(self, snapshot: Callable[[], pa.Table]) -> None:
        """After the last epoch was handed over: commit all epochs, and the snapshot, if the sink has one."""
        ...

    def close(self) -> None:
        """Commit the epochs handed over, and release the sink."""
        ...

    def snapshot(self) -> DataFrame:
        """Return the rows as of the last epoch."""
        ...

    def changes(self) -> DataFrame:
        """Return the change log."""
        ...


class MemorySink:
    """A sink in the driver's memory, for a run without outputs."""

    wants = 0
    each_epoch = False

    def __init__(self, spark: SparkSession, nothing: pa.Table) -> None:
        """Args: `nothing`: a change log without rows."""
        self._spark = spark
        self._log = [nothing]
        self._snapshot = nothing.drop_columns([EPOCH, DIFF])

    @property
    def committed(self) -> int:
        """More than any epoch: they are all committed at once."""
        return 1 << 62

    def commit(self, epoch: int, changes: pa.Table) -> None:
        """See `Sink`."""
        del epoch
        if changes.num_rows:
            self._log.append(changes)

    def check_before(self, rows_before: Callable[[], pa.Table]) -> None:
        """Do nothing: there are no earlier commits."""

    def flush(self) -> None:
        """Do nothing: changes are committed at once."""

    def finish(self, snapshot: Callable[[], pa.Table]) -> None:
        """See `Sink`."""
        self._snapshot = snapshot()

    def close(self) -> None:
        """Do nothing: the result reads the rows later."""

    def snapshot(self) -> DataFrame:
        """See `Sink`."""
        return frame_of(self._spark, self._snapshot)

    def changes(self) -> DataFrame:
        """See `Sink`."""
        changes = pa.concat_tables([table.cast(self._log[0].schema) for table in self._log])
        return frame_of(self._spark, changes)


class FolderSink:
    """A sink of Parquet files below a folder; raises OutputError if they are of another job, or another
    input. `is_refused`: `check_before` has raised it.
    """

    each_epoch = False

    def __init__(
        self, spark: SparkSession, folder: Path, keep: Keep, job: Mapping[str, object], calendar: Calendar
    ) -> None:
        self.folder = folder.expanduser().absolute()
        self.keep = keep
        self._spark = spark
        self._log: ChangesSink | None = None
        self.is_refused = False
        self.wants = calendar.count
        self._whole = _in_one_line(self.folder, lambda: OutputFolder(self.folder, job, beside=True))
        try:
            if keep != "snapshot":
                self._log = _in_one_line(self.folder, lambda: ChangesSink(spark, self.folder, job))
                self.wants = self._log.committed
            _in_one_line(self.folder, lambda: self._note_epochs(calendar))
        except BaseException:
            self.close()
            raise

    @property
    def committed(self) -> int:
        """See `Sink`; snapshots alone have no commits."""
        return 1 << 62 if self._log is None else self._log.committed

    def commit(self, epoch: int, changes: pa.Table) -> None:
        """See `Sink`."""
        if self._log is not None:
            self._log.commit(int(epoch), changes)

    def check_before(self, rows_before: Callable[[], pa.Table]) -> None:
        """See `Sink`; costs a Spark job over the change log."""
        if self._log is None:
            return
        with spark_errors_as(f"{self.folder} cannot be held against this run", OutputError):
            difference = _difference(self.changes(), frame_of(self._spark, rows_before()))
        if difference is None:
            return
        self.is_refused = True
        row, is_there = difference
        which = ("with", "that this run does not find") if is_there else ("without", "that this run finds")
        raise OutputError(
            f"{self.folder}: the epochs up to {self.wants - 1} are committed {which[0]} the row {row}, "
            f"{which[1]}. New rows must come in later epochs. Remove the folder, or give another. If rows of "
            f"epoch {self.wants - 1} were still arriving when it was committed, end each run at a complete "
            "epoch: last= of a window is the end of one, or filter"
        )

    def flush(self) -> None:
        """See `Sink`."""
        if self._log is not None:
            self._log.flush()

    def finish(self, snapshot: Callable[[], pa.Table]) -> None:
        """See `Sink`."""
        self.flush()
        if self.keep != "changes":
            write_snapshot(self._spark, self.folder, snapshot())

    def close(self) -> None:
        """See `Sink`."""
        try:
            if self._log is not None:
                self._log.close()
        finally:
            self._whole.close()

    def progress(self) -> str:
        """Return a sentence on how many epochs are committed; "" without a change log."""
        return "" if self._log is None else self._log.progress()

    def snapshot(self) -> DataFrame:
        """See `Sink`; computed from the change log if the folder has only that."""
        if self.keep != "changes":
            return read_folders(self._spark, self.folder / "snapshot")
        return _accumulated(self.changes())

    def changes(self) -> DataFrame:
        """See `Sink`."""
        if self._log is None:
            raise MisuseError(f"{self.folder} keeps no change log: write to_parquet(…, keep='both')")
        return read_folders(self._spark, self.folder / "changes")

    def _note_epochs(self, calendar: Calendar) -> None:
        """Write the value of each epoch, after comparing those of committed epochs with the earlier
        values.
        """
        committed = 0 if self._log is None else self._log.committed
        if committed > calendar.count:
            raise OutputError(
                f"{self.folder} has {counted(committed, 'epoch')}, committed by an earlier run, and this run "
                f"only {calendar.count}: the input has changed since. Remove the folder, or give another"
            )
        values = calendar.values()
        if values is None:
            return
        folder = OutputFolder(self.folder / "epochs", job=None)
        try:
            numbers = pa.array(range(calendar.count), pa.int64())
            _check_values(self.folder, folder.path / "snapshot.parquet", values, committed)
            staged = folder.fresh_staging("epochs").with_suffix(".parquet")
            pq.write_table(pa.Table.from_arrays([numbers, values], names=[EPOCH, calendar.column]), staged)
            folder.replace_snapshot(staged)
        finally:
            folder.close()


class TableSink(FolderSink):
    """A sink of the same folders, at the location of the table's database, as tables of Spark's catalog."""

    def __init__(
        self, spark: SparkSession, target: ToTable, job: Mapping[str, object], calendar: Calendar
    ) -> None:
        self.name = target.name
        folder = _location(spark, target.name)
        for suffix, part in _TABLES.items():  # check now: at the end the error would come after all the work
            _check_table(spark, self.name + suffix, folder / part)
        super().__init__(spark, folder, target.keep, job, calendar)
        self.each_epoch = target.each_epoch

    def finish(self, snapshot: Callable[[], pa.Table]) -> None:
        """See `Sink`."""
        super().finish(snapshot)
        for suffix, part in _TABLES.items():
            if any((self.folder / part).glob("*.parquet")):
                self._register(self.name + suffix, self.folder / part)

    def _register(self, table: str, folder: Path) -> None:
        if _check_table(self._spark, table, folder):
            self._spark.catalog.refreshTable(table)
        else:
            self._spark.catalog.createTable(table, path=folder.as_uri(), source="parquet")


def sink_of(
    spark: SparkSession, target: ToParquet | ToTable, job: Mapping[str, object], calendar: Calendar
) -> FolderSink:
    """Return the sink of a target; `job` describes the query, its inputs and its epochs."""
    if isinstance(target, ToTable):
        return TableSink(spark, target, job, calendar)
    ours = job.keys() & target.job.keys()
    if ours:
        raise MisuseError(
            f"job= of {target.folder} has {', '.join(sorted(ours))}, which the run sets: use other names"
        )
    return FolderSink(spark, target.folder, target.keep, {**job, **target.job}, calendar)


def _accumulated(log: DataFrame) -> DataFrame:
    names = [name for name in log.columns if name not in (EPOCH, DIFF)]
    by = [quoted(name) for name in names]
    summed = log.groupBy(*by).agg({DIFF: "sum"}).withColumnRenamed(f"sum({DIFF})", DIFF)
    times = F.when(F.col(DIFF) < 0, F.raise_error(F.lit(_NO_TABLE)).cast("int")).otherwise(F.col(DIFF))
    return summed.select(*by, F.explode(F.array_repeat(F.lit(0), times.cast("int")))).select(*by)


def _difference(log: DataFrame, rows: DataFrame) -> tuple[str, bool] | None:
    """Return a row whose multiplicity in the sum of `log` is not that in `rows`, and whether the log has more
    of it; None if there is none.
    """
    names = [name for name in log.columns if name not in (EPOCH, DIFF)]
    by = [quoted(name) for name in names]
    both = log.select(*by, DIFF).unionAll(rows.select(*by, (-F.col(DIFF)).alias(DIFF)))
    summed = both.groupBy(*by).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)
    row = summed.first()
    if row is None:
        return None
    shown = ", ".join(f"{name} {value!r}" for name, value in zip(names, row, strict=False))
    return shorten(shown, 200), row[DIFF] > 0


def _check_values(folder: Path, there: Path, values: pa.Array, committed: int) -> None:
    """Raise OutputError if a committed epoch has another value than before."""
    if not there.exists() or not committed:
        return
    before = pq.read_table(there).column(1).slice(0, committed).to_pylist()
    now = values.slice(0, committed).to_pylist()
    for epoch, (old, new) in enumerate(zip(before, now, strict=False)):
        if old != new:
            raise OutputError(
                f"{folder}: epoch {epoch} is committed and was {old}; with the present input it would be "
                f"{new}. New rows must come in later epochs. Remove the folder, or give another"
            )


def _location(spark: SparkSession, name: str) -> Path:
    """Return the folder for a table: at the location of its database, named after the table."""
    if not re.fullmatch(r"(\w+\.)?\w+", name):
        raise MisuseError(f"{name!r} is no name of a table: write 'table' or 'database.table'")
    database, _, table = name.rpartition(".")
    location = spark.catalog.getDatabase(database or spark.catalog.currentDatabase()).locationUri
    folder = _path_of(location)
    if folder is None:
        raise OutputError(
            f"the database of {name} lies at {location}; commits are made on a file system of this machine. "
            "Write to_parquet(folder)"
        )
    return folder / f"{table}.naiad"


def _check_table(spark: SparkSession, table: str, folder: Path) -> bool:
    """Return True if there is such a table; raises OutputError if it does not lie in `folder`."""
    if not spark.catalog.tableExists(table):
        return False
    locations = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").collect()
    if not locations or _path_of(locations[0]["data_type"]) != folder:
        raise OutputError(f"there is a table {table} already, which is not of this job. Give another name")
    return True


def _path_of(uri: str) -> Path | None:
    parsed = urlparse(uri)
    return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else None


def _in_one_line(where: Path, make: Callable[[], R]) -> R:
    """Return the result of `make`; put the OutputError of a folder, which has several lines, into one, and
    turn an error of the file system into an OutputError.
    """
    try:
        return make()
    except OSError as error:
        raise OutputError(
            f"{where} cannot be written: {error.strerror or first_line(error)}. What is committed there "
            "stays; make room, and start again, or give another folder"
        ) from None
    except OutputError as error:
        first, *more = str(error).replace("another --output", "another folder").split("\n")
        listed = "; ".join(line.strip() for line in more if line.startswith(" "))
        rest = " ".join(line for line in more if not line.startswith(" "))
        message = " ".join(part for part in (first, listed + "." if listed else "", rest) if part)
        raise OutputError(message) from None
