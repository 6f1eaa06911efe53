"""Two tables with the same rows, and with others.

same_*    rows in another order, cut otherwise, or as a file reads them back
other_*   what differs is shown
"""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from timely.spark.once.contents import difference

MOON = dt.datetime(1969, 7, 20, 20, 17, 40, 123456)
FAR = dt.datetime(2262, 1, 1)
ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, 2], pa.int64()),
        "x": [1.5, float("nan"), None, float("nan")],
        "text": ["a", "ä", None, "ä"],
        "bytes": [b"", b"\0", None, b"\0"],
        "flag": [True, False, None, False],
        "day": [dt.date(1900, 1, 1), dt.date(2024, 2, 29), None, dt.date(2024, 2, 29)],
        "at": pa.array([MOON, FAR, None, FAR], pa.timestamp("us", "UTC")),
        "price": pa.array([*map(decimal.Decimal, ("1.25", "-3.10")), None, decimal.Decimal("-3.10")]),
        "nested": [[{"a": 1}], [], None, []],
        "epoch": [7, 7, 7, 7],
        "diff": [1, -1, 3, 2],
    }
)


def test_same_rows_in_another_order_and_with_their_diffs_taken_apart() -> None:
    cut = pa.concat_tables([ROWS.slice(2), ROWS.slice(1, 1), ROWS.slice(0, 1)])
    assert difference(ROWS, cut) is None
    summed = ROWS.slice(0, 3).set_column(10, "diff", pa.array([1, 1, 3]))
    assert difference(ROWS, summed) is None and difference(summed, ROWS) is None
    nothing = ROWS.slice(0, 0)
    assert difference(nothing, nothing) is None


@pytest.mark.parametrize("is_of_spark", [False, True])
def test_same_rows_as_a_file_has_them(tmp_path: Path, is_of_spark: bool) -> None:
    pq.write_table(ROWS, tmp_path / "rows", use_deprecated_int96_timestamps=is_of_spark)
    assert difference(pq.read_table(tmp_path / "rows"), ROWS) is None


def test_other_rows_are_shown_though_there_are_as_many() -> None:
    for name, value in {"n": 3, "x": 0.0, "text": "a ", "flag": True, "nested": [{"a": 2}]}.items():
        at = ROWS.column_names.index(name)
        values = ROWS.column(name).to_pylist()
        values[1] = value
        now = ROWS.set_column(at, name, pa.array(values, ROWS.column(name).type))
        differs = difference(ROWS, now)
        assert differs is not None, name
        row, more = differs
        assert f"{name} " in row and abs(more) == 1
    row, more = difference(ROWS, ROWS.set_column(10, "diff", pa.array([1, -1, 4, 2]))) or ("", 0)
    assert row.startswith("n None, x None") and more == -1


def test_other_is_a_row_that_one_has_and_the_other_lacks() -> None:
    row, more = difference(ROWS.slice(0, 1), ROWS.slice(0, 0)) or ("", 0)
    assert row.startswith("n 1, x 1.5, text 'a'") and more == 1
    row, more = difference(ROWS.slice(0, 0), ROWS.slice(0, 1)) or ("", 0)
    assert row.startswith("n 1, x 1.5, text 'a'") and more == -1
