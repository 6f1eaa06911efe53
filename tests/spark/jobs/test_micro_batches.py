"""A stream: batch number = epoch, each once, and on behind the last commit.

taken_*     the same answers as of the rows that have come
again_*     a stream that is started again; batches that are repeated, or missing
refused_*   streams that have no epochs in common, epochs that are none of a stream's
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
import timely.spark
from differential import Collection, col
from timely.errors import MisuseError
from timely.spark.errors import InputFormatError, OutputError
from timely.spark.jobs.micro_batches import micro_batches, stream_of
from timely.spark.jobs.outputs import Epoch
from timely.spark.jobs.result import Result

COLUMNS = "word string, said bigint"


def counts(words: Collection, weights: Collection) -> Collection:
    """How much each word weighs."""
    weighed = words.join(weights, on="word")
    return weighed.group_by("word").agg(n=dd.sum("weight")).filter(col.n > 0)


class Words:
    """A folder whose files are a stream, one batch each, and a query over it with an output in another."""

    def __init__(self, spark: SparkSession, cluster: timely.Cluster, folder: Path) -> None:
        self.spark, self.cluster, self.folder = spark, cluster, folder
        self.out = folder / "out"
        (folder / "in").mkdir(parents=True)
        self.heard: list[int] = []

    def add(self, *rows: tuple[str, int]) -> None:
        """One more file."""
        number = len(list((self.folder / "in").iterdir()))
        table = pa.table({"word": [word for word, _ in rows], "said": [said for _, said in rows]})
        file = self.folder / "in" / f"{number}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # by which Spark takes them

    def forget_commit(self, batch: int) -> None:
        """As if Spark had been killed before it noted that the batch is done."""
        commits = self.out / "stream" / "checkpoint" / "commits"
        (commits / f"{batch}").unlink()
        (commits / f".{batch}.crc").unlink(missing_ok=True)

    def stream(self) -> DataFrame:
        files = self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        return files.parquet(str(self.folder / "in"))

    def note(self, epoch: Epoch, changes: pa.Table) -> None:
        self.heard.append(int(epoch))

    def run(self, *outputs: object) -> Result:
        weights = self.spark.createDataFrame([("a", 1), ("b", 10)], "word: string, weight: bigint")
        return timely.spark.run(
            counts,
            {"words": self.stream(), "weights": weights},
            diff="said",
            workers=self.cluster,
            outputs=list(outputs),
        )


@pytest.fixture
def words(spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path) -> Words:
    """Two batches, of which nothing has been taken yet."""
    found = Words(spark, two_workers, tmp_path)
    found.add(("a", 1), ("b", 1))
    found.add(("a", 2), ("c", 1))
    return found


@pytest.fixture(scope="module")
def taken_once(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Words:
    """Two batches that are committed in `out`, and a copy of all files beside them."""
    found = Words(spark, two_workers, tmp_path_factory.mktemp("taken") / "now")
    found.add(("a", 1), ("b", 1))
    found.add(("a", 2), ("c", 1))
    assert changes(found.run(found.out)) == FIRST
    shutil.copytree(found.folder, found.folder.with_name("then"))
    return found


@pytest.fixture
def taken(taken_once: Words) -> Words:
    """The same, whatever the test before has made of it: Spark knows files by where they are."""
    shutil.rmtree(taken_once.folder)
    shutil.copytree(taken_once.folder.with_name("then"), taken_once.folder)
    taken_once.heard.clear()
    return taken_once


def changes(result: Result) -> list[tuple[object, ...]]:
    return sorted(map(tuple, result.changes().collect()), key=lambda row: (row[2], row[0], row[3]))


FIRST = [("a", 1, 0, 1), ("b", 10, 0, 1), ("a", 1, 1, -1), ("a", 3, 1, 1)]
THIRD = [("a", 3, 2, -1), ("a", 4, 2, 1), ("b", 10, 2, -1)]


def test_taken_without_outputs_a_stream_is_what_it_has_by_now(words: Words) -> None:
    found = changes(words.run())
    assert found == sorted(FIRST, key=lambda row: (row[2], row[0], row[3]))


def test_again_it_goes_on_behind_the_last_commit_and_callbacks_hear_of_all(taken: Words) -> None:
    taken.add(("a", 1), ("b", -1))
    assert changes(taken.run(taken.out)) == FIRST + THIRD
    found = taken.run(taken.out, taken.note)
    assert taken.heard == [0, 1, 2], "with nothing new they hear what was written"
    assert sorted(map(tuple, found.to_df().collect())) == [("a", 4)]


def test_again_a_batch_that_spark_does_not_know_to_be_done_counts_once(taken: Words) -> None:
    taken.forget_commit(1)
    taken.add(("a", 1), ("b", -1))
    assert changes(taken.run(taken.out)) == FIRST + THIRD


def test_again_a_batch_that_was_written_and_not_committed_is_taken_anew(taken: Words) -> None:
    taken.forget_commit(1)
    (taken.out / "changes" / "epoch-00000001.parquet").unlink()
    assert changes(taken.run(taken.out)) == FIRST


def test_again_with_one_more_output_it_has_all_and_the_first_stays_what_it_is(taken: Words) -> None:
    """Nothing new has come: what the first one has committed is all that there is for the second."""
    other = taken.folder / "other"
    assert changes(taken.run(other, taken.out)) == FIRST
    last = taken.spark.read.parquet(str(taken.out / "snapshot"))
    assert sorted(map(tuple, last.collect())) == [("a", 3), ("b", 10)]
    assert not (other / "stream").exists(), "it is kept once"


def test_again_batches_that_are_missing_are_refused_in_one_line(taken: Words) -> None:
    shutil.rmtree(taken.out / "changes")
    with pytest.raises(OutputError, match="batch 2 of 'words' comes where 0 is next") as told:
        taken.run(taken.out)
    assert "\n" not in str(told.value) and told.value.__suppress_context__


def test_again_without_what_was_written_it_cannot_go_on(taken: Words) -> None:
    shutil.rmtree(taken.out / "stream" / "checkpoint")
    with pytest.raises(
        OutputError, match="2 epochs of the stream 'words' are committed, and .*checkpoint is"
    ):
        taken.run(taken.out)


def test_taken_a_query_that_fails_in_a_batch_keeps_what_is_committed(words: Words) -> None:
    def failing(words: Collection) -> Collection:
        return words.select(x=1 // (2 - col.said))

    with pytest.raises(timely.TimelyError, match=r"test_micro_batches\.py:\d+") as told:
        timely.spark.run(failing, {"words": words.stream()}, workers=words.cluster, outputs=words.out)
    assert told.value.__suppress_context__
    assert [tuple(row) for row in words.spark.read.parquet(str(words.out / "changes")).collect()] == [
        (1, 0, 2)
    ]
    assert words.cluster.flows() == {}


def test_taken_until_it_is_stopped_as_batches_come(words: Words) -> None:
    class Enough(Exception):
        """Ends the stream."""

    def note(epoch: Epoch, changes: pa.Table) -> None:
        words.note(epoch, changes)
        waited = ["Spark, to read a batch", "Spark, to send rows", "workers", "Spark, to commit"]
        assert [what for what in epoch.spent if what in waited] == waited
        if epoch == 1:
            words.add(("b", 1))
        if epoch == 2:
            raise Enough

    with pytest.raises(Enough):
        timely.spark.run(
            lambda words: words,
            {"words": words.stream()},
            epochs=micro_batches(),
            workers=words.cluster,
            outputs=note,
        )
    assert words.heard == [0, 1, 2]


def test_refused_by_spark_a_stream_is_one_line(words: Words) -> None:
    counted = words.stream().groupBy("word").count()
    with pytest.raises(InputFormatError, match="the stream 'words' cannot be started: .*watermark") as told:
        timely.spark.run(lambda words: words, {"words": counted}, workers=words.cluster)
    assert "\n" not in str(told.value) and told.value.__suppress_context__
    for file in (words.folder / "in").iterdir():
        file.write_text("broken")
    with pytest.raises(InputFormatError, match="batch 0 of the stream 'words' cannot be read: ") as told:
        timely.spark.run(lambda words: words, {"words": words.stream()}, workers=words.cluster)
    assert "\n" not in str(told.value) and told.value.__suppress_context__


def test_refused_two_streams_and_epochs_of_something_else(words: Words) -> None:
    stream, fixed = words.stream(), words.spark.range(1)
    assert stream_of({"a": fixed, "b": stream}, None, None) == "b"
    assert stream_of({"a": fixed}, "id", None) is None
    with pytest.raises(MisuseError, match="a and b are streams, whose micro-batches have nothing"):
        stream_of({"a": stream, "b": stream}, None, None)
    with pytest.raises(MisuseError, match="epochs of the stream 'a' are its micro-batches"):
        stream_of({"a": stream}, "word", None)
    with pytest.raises(MisuseError, match=r"micro_batches\(\) is for a stream, and none of a is one"):
        stream_of({"a": fixed}, micro_batches("10 seconds"), None)
    with pytest.raises(MisuseError, match="a stream goes on behind its change log"):
        words.run(timely.spark.to_parquet(words.out, keep="snapshot"))


def test_refused_is_a_stream_whose_columns_differ_by_capitals_alone(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate").load().toDF("a", "A")
    with pytest.raises(InputFormatError, match="input 'rows' has the columns 'a' and 'A', which Spark takes"):
        timely.spark.run(lambda rows: rows.distinct(), {"rows": stream}, workers=two_workers)


def test_stream_of_columns_with_dots(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"Sepal.Length": [0.5], "x y": [1]}), _folder(tmp_path / "in") / "0.parquet")
    stream = spark.readStream.schema("`Sepal.Length` double, `x y` bigint").parquet(str(tmp_path / "in"))
    answer = timely.spark.run(
        lambda rows: rows.distinct(), {"rows": stream}, outputs=tmp_path / "out", workers=two_workers
    )
    assert [row.asDict() for row in answer.to_df().collect()] == [{"Sepal.Length": 0.5, "x y": 1}]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
