"""`timely.spark.run`: from DataFrames to DataFrames in one call, on real workers fed by Spark's executors.

answers_*   the same, epoch by epoch, as computing each from scratch
outputs_*   folders, callbacks; going on behind the last commit
errors_*    in one line, with nothing left running and nothing committed lost
"""

from __future__ import annotations

import random
import threading
import traceback
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import differential as dd
import timely
import timely.spark
from differential import Collection, col
from differential.errors import ExpressionError
from timely.errors import MisuseError
from timely.spark.errors import InputFormatError, OutputError
from timely.spark.jobs.feeding import Layout
from timely.spark.jobs.outputs import Epoch
from timely.spark.jobs.result import Result
from timely.spark.jobs.run import _meanwhile

Event = tuple[int | None, int, int, int]
"""Key, amount, day, how often."""


def totals(events: Collection) -> Collection:
    """Rows and sums by key."""
    return events.group_by("key").agg(n=dd.count(), total=dd.sum("amount"))


def random_events(seed: int, days: int = 7) -> list[Event]:
    """What comes, and of that some goes again later."""
    source = random.Random(seed)
    events: list[Event] = []
    for day in range(days):
        if day != 3:  # a day without any makes no epoch
            events += [
                (source.choice([1, 2, 3, None]), source.randint(-5, 5), 10 * day, 1) for _ in range(20)
            ]
            gone = [event for event in events if event[3] == 1 and source.random() < 0.1]
            events += [(key, amount, 10 * day + 5, -1) for key, amount, _, _ in gone if day == days - 1]
    return events


def frame_of(spark: SparkSession, events: list[Event]) -> DataFrame:
    return spark.createDataFrame(events, "key: bigint, amount: int, day: int, said: tinyint")


def totals_by_day(events: list[Event]) -> list[set[tuple[int | None, int, int]]]:
    """The answer of `totals` as of each day, from scratch."""
    found = []
    for last in sorted({day for _, _, day, _ in events}):
        rows: Counter[tuple[int | None, int]] = Counter()
        for key, amount, day, said in events:
            rows[key, amount] += said if day <= last else 0
        keys = {key for (key, _), count in rows.items() if count}
        found.append(
            {
                (
                    key,
                    sum(n for (k, _), n in rows.items() if k == key),
                    sum(n * amount for (k, amount), n in rows.items() if k == key),
                )
                for key in keys
            }
        )
    return found


def states(log: DataFrame, epochs: int) -> list[set[tuple[object, ...]]]:
    """The rows as of each epoch, from a change log."""
    held: Counter[tuple[object, ...]] = Counter()
    found = []
    changes = [tuple(row) for row in log.collect()]
    for epoch in range(epochs):
        for *row, at, diff in changes:
            if at == epoch:
                held[tuple(row)] += diff
        assert set(held.values()) <= {0, 1}
        found.append({row for row, count in held.items() if count})
    return found


def children() -> set[str]:
    """Processes that this one has started."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


def command_of(process: str) -> str:
    """Its number and its command line, for a message."""
    try:
        line = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return f"{process}, which has ended since"
    return f"{process}: {line.replace(bytes(1), b' ').decode(errors='replace')}"


NAMES = {
    "dots": ("Sepal.Length", "Sepal.Width", "ep.och", "di.ff"),
    "capitals": ("a", "A", "Day", "SAID", "day", "said"),
    "signs": ("a`b", "a[0]", "a b*", "`"),
}
"""Names that Spark takes for something else, or for one another: of columns, the epoch, and the diff."""


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("form", ["epochs", "window"])
def test_answers_of_columns_whatever_they_are_called(
    spark: SparkSession, two_workers: timely.Cluster, names: tuple[str, ...], form: str
) -> None:
    *columns, when, diff = names
    values = [tuple(range(first, first + len(columns))) for first in (1, 3)]
    rows = [(*values[0], 10, 1), (*values[1], 11, 1), (*values[0], 11, -1)]
    frame = spark.createDataFrame(rows, [f"c{place}" for place in range(len(names))]).toDF(*names)
    window = timely.spark.growing(every=1, on=when) if form == "window" else None
    answer = timely.spark.run(
        lambda rows: rows.distinct(),
        {"rows": frame},
        epochs=None if window else when,
        window=window,
        diff=diff,
        workers=two_workers,
    )
    assert answer.to_df().columns == columns
    assert states(answer.changes(), 2) == [{value} for value in values]


def test_outputs_of_columns_with_dots_go_on_where_they_are(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    def run(*rows: tuple[int, float]) -> DataFrame:
        frame = spark.createDataFrame(rows, "`ep.och` bigint, `Sepal.Length` double")
        inputs, out = {"rows": frame}, timely.spark.to_parquet(tmp_path / "out", keep="changes")
        answer = timely.spark.run(
            lambda rows: rows.distinct(), inputs, epochs="ep.och", outputs=out, workers=two_workers
        )
        return answer.to_df()

    assert [tuple(row) for row in run((1, 0.5)).collect()] == [(0.5,)]
    assert {tuple(row) for row in run((1, 0.5), (2, 1.5)).collect()} == {(0.5,), (1.5,)}


def test_errors_of_outputs_name_columns_that_differ_by_capitals_alone(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([(1, 2)], "a bigint, A bigint")
    said = (
        r"output 'result' has the columns 'a' and 'A', which Spark takes for one.* rename\(\{'A': 'A_2'\}\)"
    )
    with pytest.raises(OutputError, match=said):
        timely.spark.run(
            lambda rows: rows.distinct(), {"rows": frame}, outputs=tmp_path / "out", workers=two_workers
        )
    answer = timely.spark.run(
        lambda rows: rows.rename({"A": "A_2"}), {"rows": frame}, outputs=tmp_path / "out", workers=two_workers
    )
    assert [row.asDict() for row in answer.to_df().collect()] == [{"a": 1, "A_2": 2}]


def test_answers_of_a_column_with_what_comes_and_goes(
    spark: SparkSession, two_workers: timely.Cluster, seed: int
) -> None:
    events = random_events(seed)
    inputs = {"events": frame_of(spark, events)}
    answer = timely.spark.run(totals, inputs, epochs="day", diff="said", workers=two_workers)
    wanted = totals_by_day(events)
    assert answer.values == sorted({day for _, _, day, _ in events}) and answer.epochs == len(wanted)
    assert states(answer.changes(), answer.epochs) == wanted
    assert {tuple(row) for row in answer.to_df().collect()} == wanted[-1]
    assert answer.to_df().dtypes == [("key", "bigint"), ("n", "bigint"), ("total", "bigint")]
    assert two_workers.flows() == {}, "the query is uninstalled"


def test_answers_of_a_window_beside_an_input_that_is_always_there(
    spark: SparkSession, two_workers: timely.Cluster
) -> None:
    times = {1: 0, 2: 3_600, 3: 3_601, 4: 9_000, 5: 20_000}
    seen = spark.createDataFrame(list(times.items()), "who: bigint, at: bigint")
    seen = seen.withColumn("at", F.timestamp_seconds("at"))
    names = spark.createDataFrame([(k, f"n{k}") for k in times], "who: bigint, name: string")

    def named(seen: Collection, names: Collection) -> dict[str, Collection]:
        return {"named": seen.join(names, on="who").select("name"), "all": names}

    heard: list[tuple[int, object, int, int]] = []

    def note(epoch: Epoch, changes: DataFrame) -> None:
        heard.append((int(epoch), epoch.value, epoch.entered, changes.count()))

    window = timely.spark.sliding("2 hours", every="1 hour", on="at")
    told = timely.spark.to_callback(note, as_frame=True)
    inputs = {"seen": seen, "names": names}
    answer = timely.spark.run(
        named, inputs, window=window, workers=two_workers, outputs={"named": [told], "all": []}
    )
    ends = [3_600 * hour for hour in range(7)]
    assert [int(end.timestamp()) for end in answer.values or []] == ends  # type: ignore[attr-defined]
    kept: set[int] = set()
    for (epoch, value, entered, changed), end in zip(heard, ends, strict=True):
        now = {who for who, at in times.items() if end - 7_200 < at <= end}
        assert changed == len(now ^ kept), epoch
        assert entered == len(now - kept) + (5 if epoch == 0 else 0), (epoch, value)
        kept = now
    with pytest.raises(MisuseError, match="output 'named' went to callbacks alone"):
        answer.table("named")


def test_answers_of_all_types_come_back_as_they_were(
    spark: SparkSession, two_workers: timely.Cluster
) -> None:
    rows = spark.sql(
        "SELECT 1 AS k, array('x', null) AS tags, named_struct('a', 1L, 'b', array(2.5D)) AS pair, "
        "date'2024-01-02' AS d, cast(1.25 AS decimal(10, 2)) AS p, timestamp'2024-01-02 03:04:05.678' AS t, "
        "timestamp_ntz'2024-01-02 03:04:05' AS n, cast(null AS string) AS z, true AS b, X'00ff' AS y, "
        "1.5D AS f, cast('-9999999999999999999999999999.0123456789' AS decimal(38, 10)) AS w "
        "UNION ALL SELECT 2, null, null, null, null, null, null, 'z', null, null, null, null"
    )
    answer = timely.spark.run(
        lambda rows: rows.filter(col.k > 0), {"rows": rows}, workers=two_workers
    ).to_df()
    assert dict(answer.dtypes) == {**dict(rows.dtypes), "k": "bigint", "n": "timestamp"}
    found = sorted(answer.collect(), key=lambda row: row["k"])
    assert [row.asDict(True) for row in found] == [row.asDict(True) for row in rows.collect()]
    assert found[0]["p"] == Decimal("1.25")
    nothing = timely.spark.run(lambda rows: rows, {"rows": rows.limit(0)}, workers=two_workers)
    assert nothing.to_df().count() == nothing.changes().count() == 0


def test_outputs_go_on_behind_the_last_commit_whoever_else_listens(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path, seed: int
) -> None:
    events = random_events(seed)
    days = sorted({day for _, _, day, _ in events})
    heard: list[int] = []

    def note(epoch: Epoch, changes: pa.Table) -> None:
        heard.append(int(epoch))

    def follow(until: int, outputs: object) -> Result:
        known = [event for event in events if event[2] <= until]
        return timely.spark.run(
            totals,
            {"events": frame_of(spark, known)},
            epochs="day",
            diff="said",
            workers=two_workers,
            outputs=outputs,
        )

    follow(days[2], tmp_path)
    before = {file.name: file.read_bytes() for file in (tmp_path / "changes").glob("epoch-*")}
    assert len(before) == 3
    follow(days[4], [tmp_path, note])
    assert heard == list(range(5)), "a callback has no memory, and hears of all"
    answer = follow(days[-1], tmp_path)
    assert {name: (tmp_path / "changes" / name).read_bytes() for name in before} == before
    wanted = totals_by_day(events)
    assert states(answer.changes(), len(days)) == wanted
    assert {tuple(row) for row in answer.to_df().collect()} == wanted[-1]
    assert states(follow(days[-1], tmp_path).changes(), len(days)) == wanted, (
        "and once more, with nothing new"
    )
    with pytest.raises(OutputError, match="epoch 1 is committed and was 10; .* it would be 5"):
        events.append((1, 1, 5, 1))
        follow(days[-1], tmp_path)


def test_a_run_that_ended_within_an_epoch_is_refused_and_one_that_ended_with_it_goes_on(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    def follow(times: list[int], folder: str, **ends: int) -> Result:
        rows = spark.createDataFrame([(at, at) for at in times], "k: bigint, at: bigint")
        window = timely.spark.sliding(20, every=10, on="at", first=0, **ends)
        outputs = {name: tmp_path / folder / name for name in ("once", "all")}
        return timely.spark.run(
            lambda rows: {"once": rows.distinct(), "all": rows},
            {"rows": rows},
            window=window,
            outputs=outputs,
            workers=two_workers,
        )

    assert follow([5, 15, 21], "within", last=22).values == [10, 20, 30]
    with pytest.raises(
        OutputError, match="If rows of epoch 2 were still arriving .* last= of a wind"
    ) as told:
        follow([5, 15, 21, 28, 35], "within")
    assert not any("goes on" in note for note in getattr(told.value, "__notes__", []))
    assert follow([5, 15, 21], "complete", last=20).values == [10, 20]
    answer = follow([5, 15, 21, 28, 35], "complete")
    wanted = [{(5,)}, {(5,), (15,)}, {(15,), (21,), (28,)}, {(21,), (28,), (35,)}]
    assert states(answer.changes("once"), 4) == states(answer.changes("all"), 4) == wanted


def test_outputs_of_another_query_or_other_columns_are_refused(
    spark: SparkSession, two_workers: timely.Cluster, tmp_path: Path
) -> None:
    events = frame_of(spark, [(1, 2, 0, 1)])
    timely.spark.run(totals, {"events": events}, outputs=tmp_path, workers=two_workers)

    def others(events: Collection) -> Collection:
        return totals(events).filter(col.n > 1)

    for query, inputs, differing in (
        (others, events, "query: "),
        (lambda events: events, events, "columns: 'key int64, n int64"),
        (totals, events.withColumn("more", F.lit(1)), "inputs: "),
    ):
        with pytest.raises(OutputError, match=f"of another job: .*{differing}") as told:
            timely.spark.run(query, {"events": inputs}, outputs=tmp_path, workers=two_workers)
        assert "\n" not in str(told.value)


def test_errors_of_a_query_that_fails_keep_what_is_committed_and_end_what_was_started(
    spark: SparkSession, two_workers: timely.Cluster, workers_by_command: None, tmp_path: Path
) -> None:
    before = children()  # a worker that is started by its command is one; a forked one is a nursery's
    shares = frame_of(spark, [(1, 4, 0, 2), (1, 4, 1, 1), (1, 4, 2, 0)])
    inputs = {"rows": shares.withColumnRenamed("said", "parts")}
    heard: list[int] = []

    def share(rows: Collection) -> Collection:
        return rows.select(share=col.amount // col.parts)

    def note(epoch: Epoch, changes: pa.Table) -> None:
        heard.append(int(epoch))

    with pytest.raises(timely.TimelyError, match=r"test_run\.py:\d+") as told:
        timely.spark.run(share, inputs, epochs="day", outputs=[tmp_path, note], workers=1)
    assert told.value.__cause__ is None and told.value.__suppress_context__
    left = [command_of(child) for child in children() - before]
    assert not left, f"the worker has not ended: {left}"
    committed = spark.read.parquet(str(tmp_path / "changes")).orderBy("epoch").collect()
    assert [tuple(row) for row in committed] == [(2, 0, 1), (4, 1, 1)]
    assert heard == [0, 1]
    parts = F.expr("if(parts = 0, 1Y, parts)")
    mended = {"rows": inputs["rows"].withColumn("parts", parts)}
    answer = timely.spark.run(share, mended, epochs="day", outputs=tmp_path, workers=two_workers)
    assert sorted(map(tuple, answer.changes().collect())) == [(2, 0, 1), (4, 1, 1), (4, 2, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {}}, "inputs are DataFrames by name"),
        ({"inputs": {"events": [1]}}, "input 'events' is a list, not a DataFrame of Spark"),
        ({"epochs": "month"}, "no input has the column 'month'"),
        ({"diff": "sign"}, "no input has the column 'sign', which diff= names"),
        ({"diff": "Siad"}, r"events has .*said.*\. Did you mean diff='said'\?"),
        ({"diff": True}, r"the name of the column .* 'insert' and 'remove'\), not True: events has .*said"),
        ({"diff": "a column"}, "diff= takes the name of the column .* not Column<'said'>"),
        ({"diff": "day", "epochs": "day"}, "diff= and epochs= name one column, 'day'"),
        ({"epochs": "a column"}, "epochs= takes the name of a column, as epochs='day'.* not Column<'day'>"),
        (
            {"diff": "said", "window": timely.spark.tumbling(10, on="day")},
            "leave a tumbling window by themselves",
        ),
        ({"window": "1 hour"}, r"not '1 hour'\. Write timely\.spark\.tumbling\('1 hour', on='time'\)"),
        ({"outputs": {"sums": "x"}}, "puts out result, and nothing called sums"),
        ({"query": lambda lines: lines}, "does not fit the inputs events"),
        ({"inputs": "a b"}, "input 'a b': the query takes inputs by name"),
        ({"query": lambda events: None}, "returns nothing: return a collection"),
    ],
)
def test_errors_of_a_call_say_what_to_write(
    spark: SparkSession, arguments: dict[str, object], message: str
) -> None:
    frame = frame_of(spark, [(1, 2, 0, 1)])
    call: dict[str, object] = {"query": totals, "inputs": {"events": frame}, **arguments}
    if call["inputs"] == "a b":
        call["inputs"] = {"a b": frame}
    for name, column in (("diff", "said"), ("epochs", "day")):
        if call.get(name) == "a column":  # which is made only while Spark is there
            call[name] = F.col(column)
    with pytest.raises(MisuseError, match=message) as told:
        timely.spark.run(**call)  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


def test_errors_of_a_query_come_with_its_line_and_none_of_ours(spark: SparkSession) -> None:
    def misspelt(events: Collection) -> Collection:
        return events.select("day", x=col.amounts + 1)

    with pytest.raises(ExpressionError, match=r"there is no column 'amounts' .*test_run\.py:\d+") as told:
        timely.spark.run(misspelt, {"events": frame_of(spark, [(1, 2, 0, 1)])})
    shown = [step.name for step in traceback.extract_tb(told.value.__traceback__)]
    assert shown == ["test_errors_of_a_query_come_with_its_line_and_none_of_ours", "misspelt"]


def test_errors_while_rows_are_laid_out_leave_none_of_them_with_spark() -> None:
    may_end, forgotten = threading.Event(), threading.Event()

    class Rows(Layout):
        def release(self) -> None:
            forgotten.set()

    def lay_out() -> Layout:
        assert may_end.wait(60)
        return Rows({}, range(1))

    with pytest.raises(ZeroDivisionError), _meanwhile(lay_out):
        raise ZeroDivisionError
    assert not forgotten.is_set()
    may_end.set()
    assert forgotten.wait(60)


def test_errors_of_spark_are_one_line_without_its_own(
    spark: SparkSession, two_workers: timely.Cluster
) -> None:
    broken = spark.range(3).selectExpr("assert_true(id < 2) AS k", "id")
    with pytest.raises(InputFormatError, match="the inputs cannot be laid out: .*id < 2") as told:
        timely.spark.run(
            lambda rows: rows.select("id"),
            {"rows": broken.selectExpr("id", "string(k) AS k")},
            workers=two_workers,
        )
    assert "\n" not in str(told.value) and told.value.__suppress_context__
