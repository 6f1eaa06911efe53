"""When are two answers the same?"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from bench.sql.answers import difference, rows_of, rows_of_text


def test_rows_in_another_order_are_the_same() -> None:
    assert difference([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]) is None


def test_a_row_counts_as_often_as_it_is_there() -> None:
    said = difference([(1,), (1,)], [(1,), (2,)])
    assert said == "1 rows that should not be there, as [(1,)]; 1 that are missing, as [(2,)]"


def test_floats_may_differ_in_their_last_digits() -> None:
    assert difference([(1, 0.1 + 0.2)], [(1, 0.3)]) is None
    assert difference([(1, 0.3001)], [(1, 0.3)]) is not None
    assert difference([(1, None)], [(1, 0.0)]) is not None


def test_times_dates_and_decimals_are_numbers() -> None:
    table = pa.table(
        {
            "at": pa.array([dt.datetime(1970, 1, 1, 0, 0, 7, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "day": [dt.date(1970, 1, 3)],
            "whole": pa.array([Decimal(7)], pa.decimal128(38, 0)),
            "part": pa.array([Decimal("7.5")], pa.decimal128(9, 1)),
            "word": ["a"],
        }
    )
    assert rows_of(table) == [(7_000, 2, 7, 7.5, "a")]


def test_a_text_is_read_in_the_kinds_of_another_answer(tmp_path: Path) -> None:
    path = tmp_path / "answer.tsv"
    path.write_text("1\t2.5\tx y\n3\t\\N\t\\N\n")
    assert rows_of_text(path, [(None, 1.0, "z"), (0, None, None)]) == [(1, 2.5, "x y"), (3, None, None)]
