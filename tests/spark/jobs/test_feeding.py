"""Rows of all inputs, laid out by epoch.

diff_*        what comes and what goes
condensed_*   epochs that are not needed one by one
"""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from timely.spark.epochs import EpochRows, EpochSize
from timely.spark.errors import InputFormatError
from timely.spark.jobs import feeding
from timely.spark.jobs.calendar import calendar_of
from timely.spark.jobs.columns import input_fields
from timely.spark.jobs.feeding import Layout, lay_out


def laid(frame: DataFrame, diff: str | None = None, condensed: int = 0) -> Layout:
    fields = {"rows": input_fields("rows", frame, ["at", "said"])}
    calendar = calendar_of({"rows": frame}, "at", None)
    return lay_out({"rows": frame}, fields, calendar, diff, condensed)


def rows_of(layout: Layout) -> list[tuple[object, ...]]:
    found = sorted(tuple(row) for row in layout.rows["rows"].frame.collect())
    layout.release()
    return found


WORDS = "'insert', 'remove'", "'INSERT', ' delete '", "'update_postimage', 'update_preimage'", "'+', '-'"


@pytest.mark.parametrize("said", [("1, -1",), WORDS], ids=["numbers", "words"])
def test_diff_says_in_numbers_or_words_what_comes_and_goes(
    spark: SparkSession, said: tuple[str, ...]
) -> None:
    """One row that comes and one that goes for each."""
    rows = []
    for key, (comes, goes) in enumerate(pair.split(", ") for pair in said):
        rows += [f"({key}, 1, {comes})", f"({key}, 2, {goes})"]
    frame = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t(k, at, said)")
    layout = laid(frame, "said")
    assert layout.size(0) == EpochSize(len(said), 0) and layout.size(1) == EpochSize(0, len(said))
    assert rows_of(layout) == sorted(
        (key, epoch, diff) for key in range(len(said)) for epoch, diff in ((0, 1), (1, -1))
    )


def test_diff_of_another_word_is_refused_with_those_that_are_taken(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (5, 1, 'perhaps'), (6, 1, 'perhaps'), (7, 1, null), (8, 1, 'insert') "
        "AS t(k, at, said)"
    )
    with pytest.raises(InputFormatError, match="input 'rows': the column 'said', which diff= names") as told:
        laid(frame, "said")
    message = str(told.value)
    assert "is 'perhaps' in 2 rows, null in 1 row. Rows that come have 'insert', '+'" in message
    assert "rows that go 'remove', 'delete'" in message and "\n" not in message
    assert "df.replace({'perhaps': 'insert'}, subset=['said'])" in message


def test_diff_of_very_many_words_shows_the_most_frequent(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id AS k, 1 AS at, concat('word', int(sqrt(id))) AS said FROM range(100)")
    with pytest.raises(
        InputFormatError, match=r"is 'word9' in 19 rows, .*'word6' in 13 rows, and others\. Rows"
    ):
        laid(frame, "said")


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("double", "1.5D", r"col\('said'\)\.cast\('bigint'\)"),
        ("boolean", "true", r"when\(col\('said'\), 1\)\.otherwise\(-1\)"),
        ("date", "date'2024-01-01'", "…"),
    ],
)
def test_diff_of_another_type_is_refused_with_what_to_write(
    spark: SparkSession, kind: str, value: str, written: str
) -> None:
    frame = spark.sql(f"SELECT 5 AS k, 1 AS at, {value} AS said")
    with pytest.raises(InputFormatError, match=f"'said', which diff= names, is {kind}.*{written}"):
        laid(frame, "said")


@pytest.mark.parametrize(("value", "told"), [("0", "is 0 in 1 row"), ("null", "is null in 1 row")])
def test_diff_of_no_use_is_refused_by_the_name_that_the_user_knows(
    spark: SparkSession, value: str, told: str
) -> None:
    frame = spark.sql(f"SELECT * FROM VALUES (5, 1, 1), (6, 1, {value}) AS t(k, at, said)")
    with pytest.raises(InputFormatError, match=rf"{told}\. It says how often .*where\('said != 0'\)"):
        laid(frame, "said")


def test_nulls_are_taken_where_the_column_allows_them_and_refused_where_not(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS at, cast(null AS string) AS k, array(1, null) AS tags")
    assert rows_of(laid(frame)) == [(None, [1, None], 0, 1)]


def test_condensed_epochs_have_the_sum_of_all_up_to_the_last_of_them(spark: SparkSession) -> None:
    values = [(key % 5, at, 1 if (key + at) % 3 else -1) for key in range(40) for at in range(6)]
    listed = ", ".join(map(str, values))
    frame = spark.sql(f"SELECT * FROM VALUES {listed} AS t(k, at, said)")
    layout = laid(frame, "said", condensed=4)
    assert layout.epochs == range(3, 6)
    found: Counter[tuple[object, object]] = Counter()
    for key, epoch, diff in rows_of(layout):
        assert isinstance(diff, int) and diff != 0
        found[key, epoch] += diff
    wanted: Counter[tuple[object, object]] = Counter()
    for key, at, diff in values:
        wanted[key, max(at, 3)] += diff
    assert found == Counter({place: count for place, count in wanted.items() if count})


def test_condensed_a_row_that_does_not_say_how_often_it_comes_is_refused_beside_one_that_does(
    spark: SparkSession,
) -> None:
    frame = spark.sql("SELECT * FROM VALUES (5, 1, 1), (5, 1, null), (6, 2, 1) AS t(k, at, said)")
    with pytest.raises(InputFormatError, match="'said', which diff= names, is null in 1 row"):
        laid(frame, "said", condensed=1)


def test_rows_that_are_laid_out_are_forgotten_when_another_input_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[str] = []

    class Rows:
        """In place of those that Spark keeps."""

        def release(self) -> None:
            forgotten.append("first")
            raise ConnectionError("Java is gone, too")

    found = iter([Rows()])
    monkeypatch.setattr(feeding, "epoch_rows", lambda *given, **named: next(found))
    frame = spark.range(1)
    fields = dict.fromkeys(("a", "b"), input_fields("a", frame, []))
    with pytest.raises(StopIteration):
        lay_out({"a": frame, "b": frame}, fields, calendar_of({"a": frame}, None, None), None)
    assert forgotten == ["first"]


def test_condensed_rows_that_only_come_stay_as_they_are(spark: SparkSession) -> None:
    frame = spark.sql("SELECT * FROM VALUES (5, 1), (5, 2), (5, 3), (6, 1) AS t(k, at)")
    layout = laid(frame, condensed=2)
    assert layout.epochs == range(1, 3)
    assert rows_of(layout) == [(5, 1, 1), (5, 1, 1), (5, 2, 1), (6, 1, 1)]


def test_chunks_cover_the_epochs_that_are_fed_over_the_rows_of_all_inputs() -> None:
    def rows(**sizes: int) -> EpochRows:
        counted = {int(epoch[1:]): EpochSize(size, 0) for epoch, size in sizes.items()}
        return EpochRows(None, ("k",), 1, counted)  # type: ignore[arg-type]  # nobody looks at the rows

    half = 131_072
    layout = Layout({"one": rows(e3=half, e5=1), "two": rows(e3=half, e4=1, e9=7)}, range(2, 8))
    assert layout.size(3) == EpochSize(2 * half, 0) and layout.size(7) == EpochSize(0, 0)
    assert layout.chunks() == [range(2, 4), range(4, 8)]
    assert Layout({}, range(3)).chunks() == [range(3)]


def test_nulls_are_told_with_the_names_that_the_columns_have(spark: SparkSession) -> None:
    """Rows are laid out under other names: Spark takes `a` and `A` for one."""
    frame = spark.sql("SELECT * FROM VALUES (1, 5, 0), (null, 6, 0) AS t(`a.b`, `A.B`, at)")
    fields = {"rows": T.StructType([T.StructField(name, T.LongType(), False) for name in ("a.b", "A.B")])}
    with pytest.raises(InputFormatError, match=r"1 row of .* no value in column 'a\.b'.* a\.b None, A\.B 6"):
        lay_out({"rows": frame}, fields, calendar_of({"rows": frame}, "at", None), None)
