"""Change feeds as inputs of runs, beside a plain loop over the changes in their order.

keyed_*     the last value of each key, as of each epoch
unkeyed_*   rows that come and go
refused_*   one error, which names what cannot be taken
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import differential as dd
import timely
import timely.spark
from differential import Collection
from timely.errors import MisuseError
from timely.spark.errors import InputFormatError
from timely.spark.feeds.change_feed import ChangeFeed

Row = tuple[int, str | None, int]
Change = tuple[int, int, str, Row | None, Row | None]
"""Day, offset, operation, row before, row after."""

ROW = "struct<id: bigint, city: string, cents: bigint>"
ENVELOPE = f"day int, source struct<lsn: bigint>, op string, before {ROW}, after {ROW}"


def kept(orders: Collection) -> Collection:
    """The rows themselves."""
    return orders


def random_changes(seed: int, days: int = 4) -> list[Change]:
    """What a database with the key `id` would say, and some of it twice; its log is not in its order."""
    source, rows, changes = random.Random(seed), dict[int, Row](), list[Change]()
    for offset in range(60):
        day, key = offset * days // 60, source.randrange(6)
        row = (key, source.choice(["rom", "oslo", None]), source.randrange(3))
        before = rows.get(key)
        if before is None:
            changes.append((day, offset, source.choice("cr"), None, row))
            rows[key] = row
        elif source.random() < 0.35:
            changes += [(day, offset, "d", before, None)]
            del rows[key]
        elif source.random() < 0.2 and all(other not in rows for other in (key + 6,)):
            moved = (key + 6, *row[1:])  # to another key
            changes.append((day, offset, "u", before, moved))
            del rows[key]
            rows[key + 6] = moved
        else:
            changes.append((day, offset, "u", source.choice([before, None]), row))
            rows[key] = row
    changes += source.sample(changes, 10)
    source.shuffle(changes)
    return changes


def states(changes: list[Change]) -> list[Counter[Row]]:
    """The rows as of each day, one change after the other."""
    rows, found = dict[int, Row](), list[Counter[Row]]()
    for day in range(1 + max(change[0] for change in changes)):
        for at, _, op, before, after in sorted(changes, key=lambda change: change[1]):
            if at == day and before is not None:
                rows.pop(before[0], None)
            if at == day and after is not None and op != "d":
                rows[after[0]] = after
        found.append(Counter(rows.values()))
    return found


def answers(log: DataFrame, epochs: int) -> list[Counter[Row]]:
    """The rows as of each epoch, of a change log."""
    held, found = Counter[Row](), list[Counter[Row]]()
    taken = [tuple(row) for row in log.collect()]
    for epoch in range(epochs):
        for *row, at, diff in taken:
            held[tuple(row)] += diff if at == epoch else 0
        found.append(+held)
        assert not -held, "a row is there less than 0 times"
    return found


def enveloped(spark: SparkSession, changes: list[Change]) -> DataFrame:
    """As Debezium sends them, with tombstones between, of which nothing but the day is known."""
    rows: list[tuple[object, ...]] = [(day, (lsn,), op, *sides) for day, lsn, op, *sides in changes]
    return spark.createDataFrame([*rows, (0, None, None, None, None)], ENVELOPE)


def flat(spark: SparkSession, changes: list[Change]) -> DataFrame:
    """As a changelog of Flink has them: an update is -U, if the row before is known, and +U behind it."""
    rows = list[tuple[object, ...]]()
    for day, lsn, op, before, after in changes:
        if op in "ud" and before is not None:
            rows.append((*before, day, 2 * lsn, "-D" if op == "d" else "-U"))
        if after is not None:
            rows.append((*after, day, 2 * lsn + 1, "+U" if op == "u" else "+I"))
    return spark.createDataFrame(rows, "id bigint, city string, cents bigint, day int, lsn bigint, op string")


@pytest.mark.parametrize("form", ["envelope", "flat"])
def test_keyed_feed_has_the_last_value_of_each_key_as_of_each_epoch(
    spark: SparkSession, two_workers: timely.Cluster, form: str
) -> None:
    changes = random_changes(918273 + len(form))
    if form == "envelope":
        feed = timely.spark.change_feed(enveloped(spark, changes), key="id", order="source.lsn")
    else:
        feed = timely.spark.change_feed(flat(spark, changes), key="id", order="lsn")
    answer = timely.spark.run(kept, {"orders": feed}, epochs="day", workers=two_workers, progress=False)
    assert answer.values == [0, 1, 2, 3]
    assert answers(answer.changes(), 4) == states(changes)


def test_keyed_feed_goes_on_behind_what_is_committed_with_workers_that_keep_it_or_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The third run has no workers that know anything: it condenses what was committed."""
    changes = random_changes(5)

    def run(last: int, durable: str | None) -> None:
        feed = enveloped(spark, [change for change in changes if change[0] <= last])
        orders = timely.spark.change_feed(feed, key="id", order="source.lsn")
        timely.spark.run(
            kept,
            {"orders": orders},
            epochs="day",
            outputs=str(tmp_path / "out"),
            workers=1,
            durable=durable,
            progress=False,
        )

    store = str(tmp_path / "store")
    run(1, store)
    run(2, store)
    run(3, None)
    assert answers(spark.read.parquet(str(tmp_path / "out" / "changes")), 4) == states(changes)


def test_keyed_stream_takes_each_batch_in_the_order_of_the_feed_and_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    changes = random_changes(7, days=3)
    (tmp_path / "in").mkdir()

    def arrives(day: int) -> None:
        lines = [
            {
                "source": {"lsn": lsn},
                "op": op,
                **{side: row_of(row) for side, row in zip(SIDES, rows, strict=True)},
            }
            for at, lsn, op, *rows in changes
            if at == day
        ]
        (tmp_path / "in" / f"{day}.json").write_text("\n".join(map(json.dumps, lines)))

    def run() -> None:
        log = spark.readStream.schema(ENVELOPE).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        orders = timely.spark.change_feed(log.drop("day"), key="id", order="source.lsn")
        out = str(tmp_path / "out")
        timely.spark.run(kept, {"orders": orders}, outputs=out, workers=1, progress=False)

    arrives(0)
    run()
    arrives(1)
    arrives(2)
    run()
    assert answers(spark.read.parquet(str(tmp_path / "out" / "changes")), 3) == states(changes)


SIDES = ("before", "after")


def row_of(row: Row | None) -> dict[str, object] | None:
    """As JSON has it."""
    return None if row is None else dict(zip(("id", "city", "cents"), row, strict=True))


def declared(dataflow: timely.Dataflow) -> None:
    """A query that knows the key of its input."""
    rows = dd.input(dataflow, "orders", "id: int?, n: int?", key="id", mode="upsert")
    rows.output("rows")


def test_keyed_feed_of_delta_replaces_rows_within_a_commit_for_an_input_that_the_query_declares(
    spark: SparkSession, two_workers: timely.Cluster
) -> None:
    """An overwritten table deletes all rows and inserts new ones, in one version."""
    history = spark.sql("""
        SELECT * FROM VALUES (1, 10, 'insert', 0, 'x'), (2, 20, 'insert', 0, 'x'),
            (1, 11, 'insert', 1, 'x'), (1, 10, 'delete', 1, 'x'), (2, 20, 'delete', 1, 'x'),
            (1, 11, 'update_preimage', 2, 'x'), (1, 12, 'update_postimage', 2, 'x')
        AS t(id, n, _change_type, _commit_version, _commit_timestamp)""").selectExpr(
        "* EXCEPT (id, n)", "bigint(id)", "bigint(n)"
    )
    feed = timely.spark.change_feed(history)
    run = timely.spark.run(
        declared, {"orders": feed}, epochs="_commit_version", workers=two_workers, progress=False
    )
    found = sorted(tuple(row) for row in run.changes().collect())
    assert found == [
        (1, 10, 0, 1),
        (1, 10, 1, -1),
        (1, 11, 1, 1),
        (1, 11, 2, -1),
        (1, 12, 2, 1),
        (2, 20, 0, 1),
        (2, 20, 1, -1),
    ]
    with pytest.raises(
        MisuseError, match="keeps the last value by id in the query, and its change feed names"
    ):
        timely.spark.run(
            declared, {"orders": timely.spark.change_feed(history, key="n")}, workers=two_workers
        )


def test_unkeyed_feed_adds_and_removes_rows(spark: SparkSession, two_workers: timely.Cluster) -> None:
    row, changed = (1, "rom", 3), (1, "oslo", 3)
    changes: list[Change] = [
        (0, 0, "c", None, row),
        (0, 1, "c", None, row),
        (1, 2, "u", row, changed),
        (2, 3, "d", changed, None),
    ]
    feed = timely.spark.change_feed(enveloped(spark, changes).drop("source"))
    run = timely.spark.run(kept, {"orders": feed}, epochs="day", workers=two_workers, progress=False)
    assert answers(run.changes(), 3) == [Counter({row: 2}), Counter([row, changed]), Counter([row])]


def test_latest_change_of_each_key_has_own_spellings_and_no_values_where_it_is_gone(
    spark: SparkSession,
) -> None:
    feed = spark.sql(
        "SELECT * FROM VALUES (1, 'a', 2, 7), (1, 'b', 1, 9), (2, 'c', 2, 1), (2, 'd', 4, 2) "
        "AS t(k, v, what, at)"
    )
    changes = timely.spark.change_feed(
        feed, key="k", op="what", order="at", ops={1: "delete", 2: "insert", 4: "update"}
    )
    assert sorted(map(tuple, changes.latest().collect())) == [(1, None, -1), (2, "d", 1)]


REFUSED = {
    "another operation": (
        "SELECT 1 AS k, 2 AS v, 't' AS op, 1 AS at",
        "its 'op' is 't', which is none of 'insert', 'i'",
    ),
    "no operation": ("SELECT 1 AS k, 2 AS v, string(null) AS op, 1 AS at", "its 'op' is null"),
    "no place": ("SELECT 1 AS k, 2 AS v, 'c' AS op, int(null) AS at", "no place in the order: at is null"),
    "two in one place": (
        "SELECT * FROM VALUES (1, 2, 'c', 5), (1, 3, 'u', 5), (1, 9, 'd', 4) AS t(k, v, op, at)",
        "the same place in the order .at., and another row",
    ),
    "nothing after": (
        "SELECT struct(1 AS k, 2 AS v) AS before, struct(1 AS k, 2 AS v) AS after, 'd' AS op, 1 AS at "
        "UNION ALL SELECT struct(3, 4), null, 'u', 2",
        "its 'after' is null. It is about: k None",
    ),
}


@pytest.mark.parametrize(("rows", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_changes_are_named(spark: SparkSession, rows: str, message: str) -> None:
    with pytest.raises(InputFormatError, match=f"1 change of the feed cannot be taken.*{message}"):
        timely.spark.change_feed(spark.sql(rows), key="k", order="at").latest()


def test_refused_feeds_say_what_to_write(spark: SparkSession, two_workers: timely.Cluster) -> None:
    frame = spark.sql("SELECT 1 AS k, 2 AS v, '+U' AS op, 1 AS at")

    def run(feed: ChangeFeed, **words: object) -> None:
        timely.spark.run(kept, {"orders": feed}, workers=two_workers, progress=False, **words)  # type: ignore[arg-type]

    with pytest.raises(InputFormatError, match="1 update of epoch 0 of the feed without the row before"):
        run(timely.spark.change_feed(frame))
    with pytest.raises(
        InputFormatError, match=r"say which column gives their order: change_feed\(df, …, order="
    ):
        run(timely.spark.change_feed(frame, key="k"))
    with pytest.raises(InputFormatError, match="the key 'id' is no column of its rows: k, v"):
        run(timely.spark.change_feed(frame, key="id", order="at"))
    with pytest.raises(
        InputFormatError, match="has no column 'what' that says what happened; it has k, v, op, at"
    ):
        timely.spark.change_feed(frame, op="what")
    with pytest.raises(InputFormatError, match="is int: say what its values mean"):
        timely.spark.change_feed(frame, op="v")
    with pytest.raises(MisuseError, match="ops says 'new' for 1: it says insert, update, before or delete"):
        timely.spark.change_feed(frame, ops={1: "new"})  # type: ignore[dict-item]
    window = timely.spark.tumbling("1 hour", on="at")
    with pytest.raises(MisuseError, match="the change feed 'orders', which says when they go, has no place"):
        run(timely.spark.change_feed(frame, key="k", order="at"), window=window)
