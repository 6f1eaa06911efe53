"""ChangesSink and write_snapshot: results as Parquet, visible epoch by epoch.

commit_*     what a reader of DIR/changes sees, and when
restart_*    the same job on the same directory; other jobs, other content
bound_*      how much may wait, and that room is given back
failure_*    an error of the writing thread
snapshot_*   DIR/snapshot is replaced whole
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import timely.spark.sink
from progress.errors import MisuseError
from timely.spark.errors import OutputError
from timely.spark.sink import ChangesSink, write_snapshot

JOB: dict[str, object] = {"input": "mentions.txt", "window": 24, "kind": None}


def changes(epoch: int, nodes: Sequence[int], diff: int = 1) -> pa.Table:
    n = len(nodes)
    columns = {"node": nodes, "component": [0] * n, "epoch": [epoch] * n, "diff": [diff] * n}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def read(spark: SparkSession, folder: Path) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in spark.read.parquet(str(folder)).collect())


def test_commit_makes_whole_epochs_visible_with_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    with ChangesSink(spark, tmp_path, JOB) as sink:
        assert sink.commit(0, changes(0, [1, 2]))
        sink.flush()
        assert sink.committed == 1
        frame = spark.read.parquet(str(tmp_path / "changes"))
        assert frame.dtypes == [(name, "bigint") for name in ("node", "component", "epoch", "diff")]
        assert read(spark, tmp_path / "changes") == [(1, 0, 0, 1), (2, 0, 0, 1)]
        assert sink.commit(1, changes(1, []))
        assert sink.commit(2, changes(2, [2], diff=-1))
    assert read(spark, tmp_path / "changes") == [(1, 0, 0, 1), (2, 0, 0, 1), (2, 0, 2, -1)]
    visible = sorted(file.name for file in (tmp_path / "changes").iterdir() if not file.name.startswith("_"))
    assert visible == [f"epoch-0000000{epoch}.parquet" for epoch in range(3)]
    assert not (tmp_path / "changes" / "_staging").exists()


def test_commit_of_many_epochs_at_once_is_still_one_file_each(spark: SparkSession, tmp_path: Path) -> None:
    with ChangesSink(spark, tmp_path, JOB) as sink:
        for epoch in range(40):
            sink.commit(epoch, changes(epoch, range(epoch % 4)))
    assert read(spark, tmp_path / "changes") == sorted((n, 0, e, 1) for e in range(40) for n in range(e % 4))
    for epoch in range(40):
        table = pq.read_table(tmp_path / "changes" / f"epoch-{epoch:08}.parquet")
        assert table.column_names == ["node", "component", "epoch", "diff"]
        assert set(table.column("epoch").to_pylist()) == ({epoch} if epoch % 4 else set())


def test_commit_of_a_column_that_is_called_as_ours(spark: SparkSession, tmp_path: Path) -> None:
    names = ["node", "_Epoch_File", "epoch", "diff"]
    with ChangesSink(spark, tmp_path, JOB) as sink:
        for epoch in range(2):
            sink.commit(epoch, changes(epoch, [7]).rename_columns(names))
    assert spark.read.parquet(str(tmp_path / "changes")).columns == names
    assert read(spark, tmp_path / "changes") == [(7, 0, 0, 1), (7, 0, 1, 1)]


def test_commit_of_empty_epochs_only_leaves_a_readable_folder(spark: SparkSession, tmp_path: Path) -> None:
    with ChangesSink(spark, tmp_path, JOB) as sink:
        sink.commit(0, changes(0, []))
    assert spark.read.parquet(str(tmp_path / "changes")).columns == ["node", "component", "epoch", "diff"]


def test_commit_out_of_order_or_of_other_columns_is_misuse(spark: SparkSession, tmp_path: Path) -> None:
    with ChangesSink(spark, tmp_path, JOB) as sink:
        sink.commit(0, changes(0, [1]))
        with pytest.raises(MisuseError, match="epoch 2 was handed to .*; the next one is 1"):
            sink.commit(2, changes(2, [1]))
        with pytest.raises(MisuseError, match="the next one is 1"):
            sink.commit(0, changes(0, [1]))
        with pytest.raises(MisuseError, match=r"hold rows of other epochs: \[7\]"):
            sink.commit(1, changes(7, [1]))
        with pytest.raises(MisuseError, match="then epoch and diff; these have node"):
            sink.commit(1, changes(1, [1]).drop_columns(["diff"]))


def test_restart_goes_on_behind_what_is_committed(spark: SparkSession, tmp_path: Path) -> None:
    with ChangesSink(spark, tmp_path, JOB) as sink:
        for epoch in range(3):
            sink.commit(epoch, changes(epoch, [epoch]))
    with ChangesSink(spark, tmp_path, JOB) as sink:
        assert sink.committed == 3
        assert [sink.commit(epoch, changes(epoch, [epoch])) for epoch in range(5)] == [False] * 3 + [True] * 2
    assert read(spark, tmp_path / "changes") == [(epoch, 0, epoch, 1) for epoch in range(5)]


def test_restart_with_another_input_is_noticed_by_the_changes(spark: SparkSession, tmp_path: Path) -> None:
    """Also if there are as many."""
    with ChangesSink(spark, tmp_path, JOB) as sink:
        sink.commit(0, changes(0, [1, 2]))
    with ChangesSink(spark, tmp_path, JOB) as sink:
        for nodes, which in (([1], "with the row node 2, .* does not find it"), ([1, 3], "row node [23],")):
            with pytest.raises(OutputError, match=rf"has 2 changes for epoch 0, .*{which}"):
                sink.commit(0, changes(0, nodes))
        assert not sink.commit(0, changes(0, [2, 1])), "in another order they are the same"


def test_restart_of_another_job_is_refused_with_the_difference(spark: SparkSession, tmp_path: Path) -> None:
    ChangesSink(spark, tmp_path, JOB).close()
    with pytest.raises(
        OutputError, match="another job:\n  window: 24 there, 12 now\nChoose another --output"
    ):
        ChangesSink(spark, tmp_path, {**JOB, "window": 12})


def test_restart_while_another_run_writes_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with (
        ChangesSink(spark, tmp_path, JOB),
        pytest.raises(OutputError, match=r"another run is writing to .*changes\."),
    ):
        ChangesSink(spark, tmp_path, JOB)
    ChangesSink(spark, tmp_path, JOB).close()


@pytest.mark.parametrize("name", ["thesis.docx", "part-00000-x.parquet", "epoch=3", ".hidden"])
def test_restart_in_a_folder_with_something_else_touches_nothing(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / name).write_text("mine")
    with pytest.raises(OutputError, match="holds something that is not ours: " + name.replace(".", r"\.")):
        ChangesSink(spark, tmp_path, JOB)
    assert [file.name for file in (tmp_path / "changes").iterdir()] == [name]


def test_restart_where_no_folder_can_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="cannot be made: Not a directory"):
        ChangesSink(spark, tmp_path / "file", JOB)


def test_failure_of_the_writer_surfaces_and_keeps_what_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    with (
        pytest.raises(OutputError, match="epoch 1 could not be written to .*changes: "),
        ChangesSink(spark, tmp_path, JOB) as sink,
    ):
        sink.commit(0, changes(0, [1]))
        sink.flush()
        # Two columns of one name cannot be written. It stands for a full disk: the thread fails.
        sink.commit(1, changes(1, [1]).rename_columns(["node", "node", "epoch", "diff"]))
        sink.flush()
    assert read(spark, tmp_path / "changes") == [(1, 0, 0, 1)]
    with ChangesSink(spark, tmp_path, JOB) as sink:
        assert sink.committed == 1


def test_failure_elsewhere_still_commits_the_epochs_that_are_complete(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(ZeroDivisionError), ChangesSink(spark, tmp_path, JOB) as sink:
        sink.commit(0, changes(0, [1]))
        raise ZeroDivisionError
    assert read(spark, tmp_path / "changes") == [(1, 0, 0, 1)]


def committed_in_time(sink: ChangesSink, tables: Sequence[pa.Table], seconds: float = 40) -> bool:
    """Whether all these were taken; without giving room back, the sink would wait for ever."""
    committing = threading.Thread(
        target=lambda: [sink.commit(epoch, table) for epoch, table in enumerate(tables)], daemon=True
    )
    committing.start()
    committing.join(seconds)
    return not committing.is_alive()


def test_bound_of_rows_is_given_back_when_they_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timely.spark.sink, "UNWRITTEN_ROWS_MAX", 5)
    with ChangesSink(spark, tmp_path, JOB) as sink:
        assert committed_in_time(sink, [changes(epoch, [1, 2, 3]) for epoch in range(4)])
    assert len(read(spark, tmp_path / "changes")) == 12


def test_bound_of_rows_is_given_back_when_they_cannot_be_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timely.spark.sink, "UNWRITTEN_ROWS_MAX", 5)
    monkeypatch.setattr(ChangesSink, "_write", _disk_full)
    taken: list[int] = []
    with pytest.raises(OutputError, match="disk full"), ChangesSink(spark, tmp_path, JOB) as sink:

        def commit_all() -> None:
            with contextlib.suppress(OutputError):
                for epoch in range(9):
                    sink.commit(epoch, changes(epoch, [1, 2, 3]))
                    taken.append(epoch)

        committing = threading.Thread(target=commit_all, daemon=True)
        committing.start()
        committing.join(60)
        assert not committing.is_alive() and taken


def _disk_full(sink: ChangesSink, epochs: object) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize(
    ("limit", "value", "rows"), [("UNWRITTEN_ROWS_MAX", 5, 3), ("UNWRITTEN_EPOCHS_MAX", 2, 0)]
)
def test_bound_of_what_waits_makes_commit_wait(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, rows: int
) -> None:
    monkeypatch.setattr(timely.spark.sink, limit, value)
    may_write, write = threading.Event(), ChangesSink._write

    def wait_and_write(sink: ChangesSink, epochs: list[tuple[int, pa.Table]]) -> None:
        assert may_write.wait(60)
        write(sink, epochs)

    monkeypatch.setattr(ChangesSink, "_write", wait_and_write)
    taken: list[int] = []
    with ChangesSink(spark, tmp_path, JOB) as sink:

        def commit_all() -> None:
            for epoch in range(8):
                sink.commit(epoch, changes(epoch, range(rows)))
                taken.append(epoch)

        committing = threading.Thread(target=commit_all, daemon=True)
        committing.start()
        committing.join(0.5)
        assert committing.is_alive(), "nothing was written, so not all can be taken"
        assert len(taken) <= 4
        may_write.set()
        committing.join(60)
        assert not committing.is_alive()
    assert len(list((tmp_path / "changes").glob("epoch-*"))) == 8


def test_bound_of_rows_lets_a_larger_epoch_wait_alone() -> None:
    bound = timely.spark.sink._RowBound(5)
    bound.take(9)
    bound.give_back(9)
    bound.take(3)
    bound.take(2)
    waiting = threading.Thread(target=bound.take, args=(1,), daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    bound.give_back(2)
    waiting.join(60)
    assert not waiting.is_alive()


def test_progress_says_how_far_the_commits_have_come(spark: SparkSession, tmp_path: Path) -> None:
    said = f" committed in {tmp_path / 'changes'}; the same command, given again, goes on behind "
    with ChangesSink(spark, tmp_path, JOB) as sink:
        assert sink.progress() == f"No epoch is committed in {tmp_path / 'changes'} yet."
        sink.commit(0, changes(0, [1]))
        sink.flush()
        assert sink.progress() == f"Epoch 0 is{said}it."
        sink.commit(1, changes(1, [1]))
        sink.flush()
        assert sink.progress() == f"Epochs 0 to 1 are{said}them."


class Looking:
    """Looks into a folder again and again, in a thread: what it finds is what a kill would leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, int] = {}
        self.wrong: list[str] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ends.is_set():
            names = sorted(file.name for file in self.folder.iterdir() if file.name[0] != "_")
            if names != [f"epoch-{epoch:08}.parquet" for epoch in range(len(names))]:
                self.wrong.append(f"a gap, or no epoch: {names}")
            for name in names:
                try:
                    rows = pq.read_table(self.folder / name).num_rows
                except (pa.ArrowException, OSError) as error:
                    self.wrong.append(f"{name} is not whole: {error}")
                else:
                    if self.seen.setdefault(name, rows) != rows:
                        self.wrong.append(f"{name} has {rows} rows, and had {self.seen[name]}")


def test_commit_is_whole_at_every_moment(spark: SparkSession, tmp_path: Path) -> None:
    """So is what a driver leaves that is killed; `tests/examples/test_mention_components.py` kills one."""
    with ChangesSink(spark, tmp_path, JOB) as sink, Looking(tmp_path / "changes") as looking:
        for epoch in range(12):
            sink.commit(epoch, changes(epoch, range(epoch % 3 * 2000)))
            if epoch % 4 == 3:
                sink.flush()
    assert not looking.wrong, looking.wrong[:3]
    assert len(looking.seen) > 3, "it has looked while epochs were committed"


def test_snapshot_is_replaced_whole_and_readable_as_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    for nodes in ([1, 2, 3], [4]):
        folder = write_snapshot(spark, tmp_path, pa.table({"node": nodes, "component": [1] * len(nodes)}))
        assert folder == tmp_path / "snapshot"
        assert read(spark, folder) == [(node, 1) for node in nodes]
    empty = pa.table({"node": pa.array([], pa.int64()), "component": pa.array([], pa.int64())})
    assert read(spark, write_snapshot(spark, tmp_path, empty)) == []


def test_snapshot_does_not_overwrite_what_is_not_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "holiday.jpg").write_text("mine")
    with pytest.raises(OutputError, match=r"not ours: holiday\.jpg"):
        write_snapshot(spark, tmp_path, pa.table({"node": [1]}))
