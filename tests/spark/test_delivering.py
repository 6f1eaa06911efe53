"""EpochFeed: the rows of epochs go from executors to workers, each of them counting once.

sent_*      everything arrives, in the right epoch, as the receipts say
retried_*   a task that fails in the middle and is tried again repeats identical appends
failed_*    what goes wrong reaches the driver as one error
cut_*       appends are cut at the same rows, however the rows came in
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from timely.errors import InputClosedError, PeerError
from timely.spark import delivering
from timely.spark.delivering import AppendTarget, EpochFeed, Receipt, _by_epoch, _cut, _Task
from timely.spark.epochs import EpochRows, chunks_of, epoch_rows

# An executor cannot import a test file by its name.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class FileTarget:
    """Stands for a worker: each append becomes a file named by its identity; a repeated one must be equal.

    `fail_once`: raise OSError at this many appends, once for all tasks. `refuse`: an epoch that is sealed.
    """

    folder: str
    fail_once_at: int | None = None
    refuse: int | None = None

    def __call__(self) -> AbstractContextManager[AppendTarget]:
        @contextmanager
        def opened() -> Iterator[AppendTarget]:
            yield _FileConnection(self)

        return opened()


@dataclass
class _FileConnection:
    target: FileTarget
    appends: int = 0

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> None:
        folder = Path(self.target.folder)
        if epoch == self.target.refuse:
            raise InputClosedError(f"epoch {epoch} of {input!r} is sealed")
        if self.appends == self.target.fail_once_at and not (folder / "failed").exists():
            (folder / "failed").touch()
            raise OSError("the network is gone")
        self.appends += 1
        file = folder / f"{input}!{epoch}!{writer.replace('/', '!')}!{sequence}.arrow"
        if file.exists():
            assert pa.ipc.open_file(str(file)).read_all().equals(table), f"{file} is repeated with other rows"
            file.with_suffix(".repeated").touch()
        with pa.ipc.new_file(str(file), table.schema) as sink:
            sink.write_table(table)


def arrived(folder: Path) -> Counter[tuple[int, int, int, int]]:
    """(source, target, epoch, diff) of all appends."""
    rows: Counter[tuple[int, int, int, int]] = Counter()
    for file in folder.glob("*.arrow"):
        epoch = int(file.name.split("!")[1])
        table = pa.ipc.open_file(str(file)).read_all()
        assert table.column_names == ["source", "target", "diff"]
        rows.update((r["source"], r["target"], epoch, r["diff"]) for r in table.to_pylist())
    return rows


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> EpochRows:
    """5,000 rows with duplicates in epochs 0 to 11; none in 5, half of all in 8."""
    frame = spark.range(5000).selectExpr(
        "id * 7919 % 101 AS source",
        "id % 13 AS target",
        "CASE WHEN id % 2 = 0 THEN 8 WHEN id % 12 = 5 THEN 6 ELSE id % 12 END AS epoch",
        "CASE WHEN id % 5 = 0 THEN -1 ELSE 1 END AS diff",
    )
    return epoch_rows(frame, diff="diff", writers=2)


def wanted(rows: EpochRows) -> Counter[tuple[int, int, int, int]]:
    return Counter((row[0], row[1], row[2], row[3]) for row in rows.frame.collect())


def test_sent_chunk_by_chunk_every_row_arrives_once_and_the_receipts_say_so(
    rows: EpochRows, tmp_path: Path
) -> None:
    feed = EpochFeed(rows, "mentions", FileTarget(str(tmp_path)), rows_per_append=400)
    chunks = chunks_of({epoch: size.rows for epoch, size in rows.sizes.items()}, range(12), 1500)
    assert len(chunks) > 2
    receipts: dict[int, tuple[Receipt, ...]] = {}
    for chunk in chunks:
        receipts |= feed.send(chunk)
    assert list(receipts) == list(range(12))
    assert arrived(tmp_path) == wanted(rows)
    assert receipts[5] == ()
    assert {epoch: sum(r.rows for r in found) for epoch, found in receipts.items() if found} == {
        epoch: size.rows for epoch, size in rows.sizes.items()
    }
    expected = [
        (epoch, *id_) for epoch, found in receipts.items() for r in found for id_ in r.expected("mentions")
    ]
    names = [tuple(file.stem.split("!")) for file in tmp_path.glob("*.arrow")]
    assert sorted((str(e), i, w, str(s)) for e, i, w, s in expected) == sorted(
        (name[1], name[0], "/".join(name[2:-1]), name[-1]) for name in names
    )
    assert max(r.appends for r in receipts[8]) > 2, "a large epoch travels in several appends"


def test_sent_again_it_is_the_same_appends_whatever_the_chunks(rows: EpochRows, tmp_path: Path) -> None:
    """A driver that starts again may cut its epochs otherwise."""
    feed = EpochFeed(rows, "mentions", FileTarget(str(tmp_path)), rows_per_append=400)
    first = feed.send(range(12))
    again = {
        epoch: found
        for chunk in (range(8), range(8, 9), range(9, 12))
        for epoch, found in feed.send(chunk).items()
    }
    assert again == first
    assert len(list(tmp_path.glob("*.repeated"))) == len(list(tmp_path.glob("*.arrow")))
    assert arrived(tmp_path) == wanted(rows)


def test_sent_by_other_writers_if_the_rows_are_cut_otherwise(rows: EpochRows, tmp_path: Path) -> None:
    """The same name and number must mean the same rows: whoever cuts otherwise is another writer."""
    target = FileTarget(str(tmp_path))
    fewer = EpochRows(rows.frame.coalesce(1).sortWithinPartitions("epoch"), rows.columns, 1, rows.sizes)
    feeds = {
        "as it is": EpochFeed(rows, "mentions", target, rows_per_append=400),
        "other appends": EpochFeed(rows, "mentions", target, rows_per_append=401),
        "other partitions": EpochFeed(fewer, "mentions", target, rows_per_append=400),
        "another name": EpochFeed(rows, "mentions", target, "other", 400),
    }
    writers = {
        how: {receipt.writer for found in feed.send(range(12)).values() for receipt in found}
        for how, feed in feeds.items()
    }
    assert [len(names) for names in writers.values()] == [2, 2, 1, 2]
    assert len(set.union(*writers.values())) == 7, writers
    assert not list(tmp_path.glob("*.repeated"))


def test_retried_task_repeats_its_appends_and_each_counts_once(rows: EpochRows, tmp_path: Path) -> None:
    feed = EpochFeed(rows, "mentions", FileTarget(str(tmp_path), fail_once_at=3), rows_per_append=400)
    receipts = feed.send(range(12))
    assert (tmp_path / "failed").exists(), "the failure was meant to happen"
    assert len(list(tmp_path.glob("*.repeated"))) >= 3
    assert arrived(tmp_path) == wanted(rows)
    assert sum(r.rows for found in receipts.values() for r in found) == wanted(rows).total()


def test_failed_epoch_that_is_sealed_comes_back_as_the_error_of_the_worker(
    rows: EpochRows, tmp_path: Path
) -> None:
    with pytest.raises(InputClosedError, match=r"^epoch 8 of 'mentions' is sealed$"):
        EpochFeed(rows, "mentions", FileTarget(str(tmp_path), refuse=8)).send(range(12))


def cannot_connect() -> AbstractContextManager[AppendTarget]:
    raise ConnectionRefusedError("no worker listens at localhost:2101")


def test_failed_for_good_a_job_is_one_error_with_its_reason(rows: EpochRows) -> None:
    with pytest.raises(PeerError) as raised:
        EpochFeed(rows, "mentions", cannot_connect).send(range(4))
    assert str(raised.value) == (
        "Spark could not send epochs 0 to 3 of input 'mentions': "
        "ConnectionRefusedError: no worker listens at localhost:2101"
    )


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), max_size=60).map(sorted),
    st.lists(st.integers(1, 60), max_size=8).map(lambda cuts: sorted(set(cuts))),
    st.integers(1, 9),
)
def test_cut_does_not_depend_on_how_rows_come_in_batches(
    rows: list[tuple[int, int]], cuts: list[int], rows_max: int
) -> None:
    def appends(starts: list[int]) -> list[tuple[int, list[int]]]:
        bounds = [0, *(cut for cut in starts if cut < len(rows)), len(rows)]
        batches = [
            pa.record_batch({"user": [u for _, u in rows[a:b]], "epoch": [e for e, _ in rows[a:b]]})
            for a, b in zip(bounds, bounds[1:], strict=False)
            if b > a
        ]
        return [
            (epoch, table.column("user").to_pylist())
            for epoch, pieces in _by_epoch(iter(batches))
            for table in _cut(pieces, rows_max)
        ]

    whole = appends([])
    assert appends(cuts) == whole
    assert [(epoch, user) for epoch, users in whole for user in users] == rows
    assert all(len(users) <= rows_max for _, users in whole)
    assert all(
        len(users) == rows_max or epoch != follower
        for (epoch, users), (follower, _) in zip(whole, whole[1:], strict=False)
    )


@given(
    st.lists(st.none() | st.integers(0, 60).map("x".__mul__), min_size=1, max_size=60)
    | st.tuples(st.sampled_from([500, 3000]), st.integers(1, 30), st.integers(1, 30)).map(
        lambda of: ["w" * of[0]] * of[1] + ["x"] * of[2]
    ),
    st.lists(st.integers(1, 60), max_size=8).map(lambda cuts: sorted(set(cuts))),
    st.integers(1, 60),
)
def test_cut_of_wide_rows_is_by_their_bytes_and_follows_from_the_rows_alone(
    texts: list[str | None], cuts: list[int], rows_max: int
) -> None:
    whole = pa.table({"text": pa.array(texts, pa.string()), "n": range(len(texts))})

    def appends(starts: list[int]) -> list[list[int]]:
        bounds = [0, *(cut for cut in starts if cut < len(texts)), len(texts)]
        pieces = (whole.slice(a, b - a) for a, b in zip(bounds, bounds[1:], strict=False))
        return [table.column("n").to_pylist() for table in _cut(pieces, rows_max)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivering, "APPEND_BYTES_MAX", 600)
        found = appends([])
        assert appends(cuts) == found
        assert [n for numbers in found for n in numbers] == list(range(len(texts)))
        for numbers in found:
            some = whole.take(numbers).combine_chunks()
            (batch,) = some.to_batches()
            assert len(numbers) == 1 or pa.ipc.get_record_batch_size(batch) < 2 * 600
        patch.setattr(delivering, "APPEND_BYTES_MAX", 1 << 20)
        assert [len(numbers) for numbers in appends(cuts)[:-1]] == [rows_max] * (len(appends(cuts)) - 1)
        if len(texts) > 40 <= rows_max:
            patch.setattr(delivering, "APPEND_BYTES_MAX", 100)
            assert len(appends(cuts)) > 1, "short ones are cut, too, if there are more than fit"


def test_failed_partition_that_is_not_sorted_is_a_bug_and_says_so(tmp_path: Path) -> None:
    task = _Task("mentions", ("user", "epoch", "diff"), FileTarget(str(tmp_path)), "spark", 10)
    batch = pa.record_batch({"user": [1, 2, 3], "epoch": [1, 0, 1], "diff": [1, 1, 1]})
    *_, answer = pa.Table.from_batches(task(iter([batch]))).to_pylist()
    assert re.search("not sorted by epoch: 0 comes after 1", answer["message"])
    assert answer["error"].startswith("InternalError")


def test_sent_a_partition_without_rows_opens_no_connection(spark: SparkSession) -> None:
    few = epoch_rows(spark.sql("SELECT 1 AS user, 3 AS epoch"), writers=2)
    receipts = EpochFeed(few, "mentions", cannot_connect).send(range(3))
    assert receipts == {0: (), 1: (), 2: ()}
    assert few.frame.where(F.col("epoch") == 3).count() == 1


def test_a_module_that_executors_lack_is_told_with_their_python() -> None:
    line = delivering._advised("ModuleNotFoundError: No module named 'numpy'")
    assert "No module named 'numpy'. Spark's executors run another Python" in line
    assert f"PYSPARK_PYTHON, or spark.pyspark.python, to one that has it, as {sys.executable} here" in line
    assert delivering._advised("ValueError: 7") == "ValueError: 7"
