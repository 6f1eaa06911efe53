"""Write a dataflow's output as Parquet, one commit for each complete epoch.

    DIR/changes/epoch-00000007.parquet     the changes of epoch 7: the output's columns, epoch, diff
    DIR/changes/_job.json                  the job that writes here
    DIR/changes/_lock, _staging/           one writer at a time; files that are not committed yet
    DIR/snapshot/snapshot.parquet          the output as of the last epoch

Spark writes each file into the staging folder; renaming it to its final path is the commit. So a reader of
`DIR/changes` always sees whole epochs from 0 on without a gap, also if the writer was killed at any point. An
epoch without changes is a file without rows. Readers of Parquet ignore names that begin with `_`.

If the same job is started again on the same directory, it checks for each committed epoch that it would write
the same rows, and continues after the last of them. A thread of its own writes, so that the
dataflow does not wait. It writes all waiting epochs by one Spark job (a job costs 0.12 s however little it
writes) and commits them one after another.
"""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from progress.errors import MisuseError, TimelyError
from timely.counted import counted
from timely.limits import UNWRITTEN_EPOCHS_MAX, UNWRITTEN_ROWS_MAX
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.errors import OutputError, SparkLostError, first_line
from timely.spark.frames import frame_of, free_name
from timely.spark.lost import java_watched, spark_lost
from timely.spark.output_folder import OutputFolder

__all__ = ["ChangesSink", "write_snapshot"]

_FILE = "_epoch_file"


class ChangesSink:
    """The change log of one output in `directory`/changes. Use it in a `with` block, from one thread.

    `job` identifies the job by its input, window, …; a directory with the changes of another job is refused.
    Leaving the block waits until the epochs that were handed over are committed, also if an error has ended
    the block: these epochs are complete. Raises `OutputError` if the directory holds other files, or another
    run writes to it.
    """

    def __init__(self, spark: SparkSession, directory: str | Path, job: Mapping[str, object]) -> None:
        self._spark = spark
        self._folder = OutputFolder(Path(directory) / "changes", job)
        self._handed_over = self._folder.committed
        self._waiting: queue.Queue[tuple[int, pa.Table] | None] = queue.Queue(UNWRITTEN_EPOCHS_MAX)
        self._rows = _RowBound(UNWRITTEN_ROWS_MAX)
        self._failure: OutputError | SparkLostError | None = None
        self._nothing: Path | None = None
        self._writer = threading.Thread(target=self._write_until_closed, name="changes sink", daemon=True)
        self._writer.start()

    @property
    def committed(self) -> int:
        """The number of committed epochs; those that wait to be written do not count."""
        return self._folder.committed

    def progress(self) -> str:
        """Return a sentence on how many epochs are committed, for messages on the end of a job."""
        done = self._folder.committed
        if done == 0:
            return f"No epoch is committed in {self._folder.path} yet."
        which = "Epoch 0 is" if done == 1 else f"Epochs 0 to {done - 1} are"
        return (
            f"{which} committed in {self._folder.path}; the same command, given again, goes on behind "
            f"{'it' if done == 1 else 'them'}."
        )

    def commit(self, epoch: int, table: pa.Table) -> bool:
        """Hand over the changes of a complete epoch; return False if an earlier run has committed it.

        `table` has the output's columns and then `epoch` (int64, the same in all rows) and `diff` (int64).
        Epochs come in order, from 0. Raises the error of an earlier epoch if there is one, `MisuseError` for
        an epoch out of order, and `OutputError` if an earlier run has committed other changes for this one.
        Waits while too many epochs or rows wait to be written.
        """
        self._raise_failure()
        _check_changes(epoch, table)
        if epoch < self._folder.committed_before:
            self._folder.check_same(epoch, table)
            return False
        if epoch != self._handed_over:
            raise MisuseError(
                f"epoch {epoch} was handed to {self._folder.path}; the next one is {self._handed_over}"
            )
        self._rows.take(table.num_rows)
        self._waiting.put((epoch, table))
        self._handed_over += 1
        return True

    def flush(self) -> None:
        """Wait until all epochs handed over are committed; raise if one could not be."""
        self._waiting.join()
        self._raise_failure()

    def close(self) -> None:
        """Commit the waiting epochs, then unlock the folder. Raises like `flush`. May be called twice."""
        if self._writer.is_alive():
            self._waiting.put(None)
            self._writer.join()
            self._folder.close()
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            self.close()
        except TimelyError:
            if error is None:  # otherwise the error that ended the block says more
                raise

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write_until_closed(self) -> None:
        closing = False
        while not closing:
            group = [self._waiting.get()]
            while True:
                try:
                    group.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            closing = None in group
            epochs = [entry for entry in group if entry is not None]
            # After a failure the remaining epochs are only taken off the queue: no epoch may be committed
            # without those before it.
            if epochs and self._failure is None:
                self._write_or_fail(epochs)
            self._rows.give_back(sum(table.num_rows for _, table in epochs))
            for _ in group:
                self._waiting.task_done()

    def _write_or_fail(self, epochs: list[tuple[int, pa.Table]]) -> None:
        try:
            self._write(epochs)
        except OutputError as error:
            self._failure = error
        except Exception as error:  # Spark and the JVM raise many kinds; the thread must not die of one
            failure = spark_lost(error) or OutputError(
                f"epoch {self._folder.committed} could not be written to {self._folder.path}: "
                f"{first_line(error)}\n{self.progress()}"
            )
            failure.__cause__ = error
            self._failure = failure

    def _write(self, epochs: list[tuple[int, pa.Table]]) -> None:
        """Write all epochs by one Spark job, then commit each by a rename, in order."""
        staged = self._folder.fresh_staging("epochs")
        changed = [table for _, table in epochs if table.num_rows]
        file = free_name(_FILE, epochs[0][1].column_names)
        if changed:
            frame = frame_of(self._spark, pa.concat_tables(changed)).withColumn(file, F.col(EPOCH))
            _one_file(frame).partitionBy(file).parquet(str(staged))
        for epoch, table in epochs:
            source = (
                _only_part(staged / f"{file}={epoch}") if table.num_rows else self._copy_of_nothing(table)
            )
            self._folder.publish(source, epoch)
        shutil.rmtree(staged, ignore_errors=True)

    def _copy_of_nothing(self, table: pa.Table) -> Path:
        """Return a staged file without rows, copied from one that Spark has written."""
        if self._nothing is None:
            folder = self._folder.fresh_staging("nothing")
            _one_file(frame_of(self._spark, table)).parquet(str(folder))
            self._nothing = _only_part(folder)
        return Path(shutil.copy(self._nothing, self._nothing.with_name("copy.parquet")))


@java_watched()
def write_snapshot(spark: SparkSession, directory: str | Path, table: pa.Table) -> Path:
    """Write `table` as `directory`/snapshot, in place of an earlier one; a reader sees one of the two, whole.

    Return the folder, which `spark.read.parquet` reads. Raises `OutputError` if it holds any other file.
    """
    folder = OutputFolder(Path(directory) / "snapshot", job=None)
    try:
        staged = folder.fresh_staging("snapshot")
        _one_file(frame_of(spark, table)).parquet(str(staged))
        folder.replace_snapshot(_only_part(staged))
        shutil.rmtree(staged, ignore_errors=True)
    except TimelyError:
        raise
    except Exception as error:  # the file system's, Spark's, the JVM's
        raise OutputError(
            f"the snapshot could not be written to {folder.path}: {first_line(error)}"
        ) from error
    finally:
        folder.close()
    return folder.path


def _check_changes(epoch: int, table: pa.Table) -> None:
    names: list[str] = table.column_names
    if names[-2:] != [EPOCH, DIFF]:
        raise MisuseError(
            f"changes have the output's columns, then epoch and diff; these have {', '.join(names)}"
        )
    others = set(table.column(EPOCH).unique().to_pylist()) - {epoch}
    if others:
        raise MisuseError(f"the changes of epoch {epoch} hold rows of other epochs: {sorted(others)[:5]}")


def _one_file(frame: DataFrame) -> DataFrameWriter:
    """Return a writer of one file, or one for each partition, whatever limit the session sets on file
    sizes.
    """
    return frame.coalesce(1).write.option("maxRecordsPerFile", 0)


def _only_part(folder: Path) -> Path:
    """Return the only Parquet file in a folder that Spark has written."""
    parts = sorted(folder.glob("part-*.parquet"))
    if len(parts) != 1:
        raise OutputError(f"Spark wrote {counted(len(parts), 'file')} to {folder} where one was expected")
    return parts[0]


class _RowBound:
    """Limits the number of waiting rows to `rows_max`; an epoch with more rows than that waits alone."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._rows = 0
        self._changed = threading.Condition()

    def take(self, rows: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._rows == 0 or self._rows + rows <= self._rows_max)
            self._rows += rows

    def give_back(self, rows: int) -> None:
        with self._changed:
            self._rows -= rows
            self._changed.notify_all()
