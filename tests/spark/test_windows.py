"""SlidingWindow: which rows enter and leave in each epoch?

twin_*        the Spark expressions against the definition, row by row and window by window
definition_*  small cases that can be checked by hand
limit_*       what is refused
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from timely.spark.errors import InputFormatError
from timely.spark.windows import EPOCHS_MAX, SlidingWindow

Row = tuple[int, int]
"""(source, time)"""


@dataclass(frozen=True)
class Case:
    """A random stream, the window over it, and how many epochs are asked for."""

    rows: tuple[Row, ...]
    window: SlidingWindow
    epochs: int | None


def windows_by_definition(case: Case) -> list[Counter[Row]]:
    """For each epoch the multiset of rows in its window, looked up from scratch."""
    first, last = min(t for _, t in case.rows), max(t for _, t in case.rows)
    windows: list[Counter[Row]] = []
    end = first
    while end < last or not windows:
        end += case.window.slide
        windows.append(Counter(row for row in case.rows if end - case.window.window < row[1] <= end))
    return windows if case.epochs is None else windows[: case.epochs]


def windows_from_changes(changes: list[tuple[Row, int, int]], epochs: int) -> list[Counter[Row]]:
    """(row, epoch, diff) accumulated up to each epoch."""
    total: Counter[Row] = Counter()
    windows = []
    for epoch in range(epochs):
        for row, at, diff in changes:
            if at == epoch:
                total[row] += diff
        assert all(count >= 0 for count in total.values()), "a row left before it had entered"
        windows.append(+total)
    return windows


def random_case(random: random.Random) -> Case:
    """Times close together and far apart, duplicates, windows shorter, longer, as long as the slide."""
    span = random.choice([0, 1, 5, 40, 400])
    first = random.choice([0, 7, 1_341_100_972])
    times = [first + random.randint(0, span) for _ in range(random.randint(1, 30))]
    rows = tuple((random.randint(0, 3), time) for time in times)
    slide = random.choice([1, 2, 7, 60])
    window = random.choice([1, slide, slide + 1, 3 * slide, max(1, slide - 1), 1000])
    return Case(
        rows, SlidingWindow(min(times), max(times), window, slide), random.choice([None, None, 1, 3, 10_000])
    )


def test_twin_spark_sends_what_the_definition_says_for_300_random_streams(
    spark: SparkSession, seed: int
) -> None:
    """All in one Spark job; a number tells their rows apart."""
    source = random.Random(seed)
    cases = [random_case(source) for _ in range(300)]
    frames: dict[tuple[int | None, int], list[int]] = {}
    for number, case in enumerate(cases):
        frames.setdefault((case.window.window, case.window.slide), []).append(number)
    sent: dict[int, list[tuple[Row, int, int]]] = {n: [] for n in range(len(cases))}
    all_changes = reduce(
        DataFrame.unionAll,
        [changes_of_cases(spark, cases, numbers, *window) for window, numbers in frames.items()],
    )
    for number, user, at, epoch, diff in all_changes.collect():
        sent[number].append(((user, at + cases[number].window.first_time), epoch, diff))
    for case, found in zip(cases, sent.values(), strict=True):
        expected = windows_by_definition(case)
        assert case.epochs is not None or case.window.epochs == len(expected), case
        assert windows_from_changes(found, len(expected)) == expected, case


def changes_of_cases(
    spark: SparkSession, cases: list[Case], numbers: list[int], window: int | None, slide: int
) -> DataFrame:
    """One expression serves streams with different first times if each is shifted to begin at 0."""
    table = pa.table(
        {
            "case": [n for n in numbers for _ in cases[n].rows],
            "source": [s for n in numbers for s, _ in cases[n].rows],
            "time": [t - cases[n].window.first_time for n in numbers for _, t in cases[n].rows],
        }
    )
    longest = max(cases[n].window.last_time - cases[n].window.first_time for n in numbers)
    rows = spark.createDataFrame(table).withColumn("at", F.col("time"))
    return SlidingWindow(0, longest, window, slide).changes(rows, keep=("case", "source", "at"))


@given(st.randoms(use_true_random=False))
def test_twin_the_plain_epochs_of_a_row_are_those_of_the_definition(random: random.Random) -> None:
    case = random_case(random)
    window = case.window
    expected = windows_by_definition(Case(case.rows, window, None))
    assert window.epochs == len(expected)
    assert window.end(window.epochs - 1) >= window.last_time
    for row in case.rows:
        inside = [epoch for epoch, rows in enumerate(expected) if row in rows]
        assert window.window is not None
        left = -(-(row[1] - window.first_time + window.window) // window.slide) - 1
        stay = range(window.enter_epoch(row[1]), min(left, window.epochs))
        assert inside == list(stay)


def changes_of(
    spark: SparkSession, window: SlidingWindow, times: list[int], epochs: int | None = None
) -> list[Row]:
    rows = spark.createDataFrame(pa.table({"source": times, "target": [0] * len(times), "time": times}))
    changes = window.changes(rows, epochs=epochs)
    assert changes.dtypes == [
        ("source", "bigint"),
        ("target", "bigint"),
        ("epoch", "bigint"),
        ("diff", "bigint"),
    ]
    return sorted((source * diff, epoch) for source, _, epoch, diff in changes.collect())


def test_definition_rows_enter_and_leave_at_the_ends_of_epochs(spark: SparkSession) -> None:
    """First time 100, window 20, slide 10: epochs end at 110, 120, 130, and a row stays for two of them."""
    window = SlidingWindow(100, 125, window=20, slide=10)
    assert [window.end(epoch) for epoch in range(window.epochs)] == [110, 120, 130]
    assert changes_of(spark, window, [100, 101, 110, 111, 125, 125]) == sorted(
        # 100 and 110 lie on a boundary: windows are open at their beginning and closed at their end.
        [(100, 0), (-100, 1), (101, 0), (-101, 2), (110, 0), (-110, 2), (111, 1), (125, 2), (125, 2)]
    )


def test_definition_a_row_between_two_windows_sends_nothing(spark: SparkSession) -> None:
    window = SlidingWindow(0, 30, window=3, slide=10)
    assert changes_of(spark, window, [7, 8, 10, 0, 30]) == sorted(
        [(8, 0), (-8, 1), (10, 0), (-10, 1), (30, 2)]
    )


def test_definition_one_row_makes_one_epoch(spark: SparkSession) -> None:
    window = SlidingWindow(5, 5, window=11, slide=10)
    assert (window.epochs, changes_of(spark, window, [5])) == (1, [(5, 0)])


def test_definition_a_window_as_long_as_the_slide_begins_after_the_first_time(spark: SparkSession) -> None:
    """T_0 - window is then the first time itself, and windows are open at their beginning."""
    assert changes_of(spark, SlidingWindow(5, 14, window=10, slide=10), [5, 6, 14]) == [(6, 0), (14, 0)]


def test_definition_only_the_epochs_asked_for_are_sent(spark: SparkSession) -> None:
    window = SlidingWindow(0, 100, window=10, slide=10)
    assert changes_of(spark, window, [1, 11, 99], epochs=2) == sorted([(1, 0), (-1, 1), (11, 1)])


def test_limit_times_in_milliseconds_are_noticed_by_the_number_of_epochs() -> None:
    with pytest.raises(InputFormatError, match="Are the times in seconds"):
        SlidingWindow(0, EPOCHS_MAX * 60 + 61, window=60, slide=60)


@pytest.mark.parametrize(("window", "slide"), [(0, 1), (1, 0), (-5, 3)])
def test_limit_lengths_are_positive(window: int, slide: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        SlidingWindow(0, 10, window, slide)
