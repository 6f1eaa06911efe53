"""A frame has the first rows in the chosen order, and marks what has changed since the frame before.

frame_*   against a plain list of rows, sorted
marks_*   which cells
limits_*  what is refused
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.client.shown import first_rows
from timely.client.shown.live_rows import LiveRows, RowOrder
from timely.errors import MisuseError
from timely.limits import LIVE_CELLS_COUNT_MAX, LIVE_SHOWN_ROWS_MAX

SCHEMA = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])

Row = tuple[int, str | None]


def table(rows: list[tuple[Row, int]], epoch: int) -> pa.Table:
    columns = {
        "k": pa.array([row[0] for row, _ in rows], pa.int64()),
        "v": pa.array([row[1] for row, _ in rows], pa.string()),
        "epoch": pa.array([epoch] * len(rows), pa.int64()),
        "diff": pa.array([diff for _, diff in rows], pa.int64()),
    }
    return pa.table(columns)


def shown(rows: LiveRows) -> list[list[str]]:
    return rows.frame()["rows"]  # type: ignore[return-value]


def marked(rows: LiveRows) -> list[tuple[str, ...]]:
    """The texts of the marked cells, row by row."""
    frame = rows.frame()
    cells: list[list[str]] = frame["rows"]  # type: ignore[assignment]
    return [tuple(cells[at][column] for at, column in frame["marks"])]  # type: ignore[attr-defined]


@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.integers(0, 3), st.none() | st.sampled_from("ab<")), st.integers(1, 3), max_size=5
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from("kv"),
    st.booleans(),
    st.integers(1, 6),
)
def test_frame_is_the_first_rows_in_order(
    collections: list[dict[Row, int]], by: str, descending: bool, most: int
) -> None:
    rows = LiveRows(SCHEMA, most, RowOrder(by, descending))
    before: Counter[Row] = Counter()
    for epoch, collection in enumerate(collections):
        now = Counter(collection)
        if epoch == 0:
            rows.begin(table(list(now.items()), 0), 0)
        else:
            changes = [(row, now[row] - before[row]) for row in {**now, **before} if now[row] != before[row]]
            rows.change(table(changes, epoch))
        before = now
        frame = rows.frame()
        column = 0 if by == "k" else 1

        def place(row: Row, column: int = column) -> tuple[bool, float, tuple[int, bool, str]]:
            value = row[column]
            number = float(ord(value)) if isinstance(value, str) else float(value or 0)
            rest = (row[0], row[1] is None, row[1] or "")
            return value is None, -number if descending else number, rest

        expected = sorted(now.elements(), key=place)[:most]
        assert frame["rows"] == [[str(k), "null" if v is None else v] for k, v in expected]
        assert frame["total"] == sum(now.values())


def test_marks_are_the_cells_that_differ_from_the_row_with_that_key() -> None:
    rows = LiveRows(SCHEMA, 5)
    rows.begin(table([((1, "a"), 1), ((2, "b"), 1)], 0), 0)
    assert marked(rows) == [()], "nothing was shown before"
    rows.change(table([((2, "b"), -1), ((2, "c"), 1), ((3, "d"), 1)], 1))
    assert marked(rows) == [("c", "3", "d")]
    assert marked(rows) == [()], "a mark is for one frame"
    assert rows.frame()["epoch"] == 1


def test_marks_are_not_for_rows_that_another_order_brings_up() -> None:
    rows = LiveRows(SCHEMA, 1)
    rows.begin(table([((1, "a"), 1), ((2, "b"), 1)], 0), 0)
    assert shown(rows) == [["1", "a"]]
    assert rows.sort(RowOrder("k", descending=True))
    assert marked(rows) == [()] and shown(rows) == [["2", "b"]]
    assert not rows.sort(RowOrder("nothing")), "a page may ask for anything"


def test_a_key_of_several_columns_tells_rows_apart() -> None:
    rows = LiveRows(SCHEMA, 5, key=("k", "v"))
    rows.begin(table([((1, "a"), 1), ((1, "b"), 1)], 0), 0)
    rows.frame()
    rows.change(table([((1, "a"), -1), ((1, "c"), 1)], 1))
    assert marked(rows) == [("1", "c")]


def test_rows_that_arrow_cannot_sort_come_as_they_are() -> None:
    schema = pa.schema([("flags", pa.bool_()), ("at", pa.timestamp("us"))])
    rows = LiveRows(schema, 5, RowOrder("flags", descending=True))
    data = {"flags": [True, False], "at": [datetime(2024, 1, 2), None], "epoch": [0, 0], "diff": [1, 1]}
    rows.begin(pa.table(data), 0)
    assert sorted(shown(rows)) == [["false", "null"], ["true", "2024-01-02 00:00:00"]]


def test_rows_without_columns_are_counted() -> None:
    rows = LiveRows(pa.schema([]), 5)
    rows.begin(pa.table({"epoch": [0], "diff": [3]}), 0)
    assert rows.frame()["total"] == 3


def test_limits_of_rows_and_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MisuseError, match=r"no column 'x'; there are k, v"):
        LiveRows(SCHEMA, 5, RowOrder("x"))
    for wrong in (0, LIVE_SHOWN_ROWS_MAX + 1):
        with pytest.raises(MisuseError, match="live shows 1 to 1,000 rows"):
            LiveRows(SCHEMA, wrong)
    wide = pa.schema([(f"c{n}", pa.int64()) for n in range(200)])
    rows = LiveRows(wide, 1_000)
    data = {f"c{n}": list(range(500)) for n in range(200)}
    rows.begin(pa.table({**data, "epoch": [0] * 500, "diff": [1] * 500}), 0)
    assert len(shown(rows)) * 200 <= LIVE_CELLS_COUNT_MAX
    monkeypatch.setattr(first_rows, "LIVE_ROWS_MAX", 2)
    small = LiveRows(SCHEMA, 5)
    small.begin(table([((1, "a"), 1), ((2, "b"), 1)], 0), 0)
    with pytest.raises(MisuseError, match="about 3 rows.* keeps 2 rows in 256 MiB at most"):
        small.change(table([((3, "c"), 1)], 1))
    assert shown(small) == []
