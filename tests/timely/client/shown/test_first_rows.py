"""What live tables have in common: the first rows in an order, rows that are summed up, cells as texts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from timely.client.shown import first_rows as module
from timely.client.shown.first_rows import (
    cells_of,
    check_size,
    count_shown,
    first_rows,
    merged_rows,
    shown_columns,
    summed_changes,
)
from timely.errors import MisuseError

LATE = 2**62

NESTED = {
    "list": pa.array([[3], [2], [1]]),
    "fixed": pa.array([[3], [2], [1]], pa.list_(pa.int64(), 1)),
    "struct": pa.array([{"a": 3}, {"a": 2}, None]),
    "map": pa.array([[("a", 3)], [], None], pa.map_(pa.string(), pa.int64())),
    "texts": pa.array(["b", "a", "b"]).dictionary_encode(),
    "half": pa.array([3, 2, 1], pa.float16()),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16] * 3, pa.binary(16))),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("count", [2, 3, 9])
def test_a_column_that_arrow_cannot_sort_by_counts_not(name: str, count: int) -> None:
    table = pa.table({name: NESTED[name], "n": [2, 3, 1]})
    both = [(name, "ascending"), ("n", "descending")]
    for order in (both, both[::-1]):
        assert first_rows(table, count, order).column("n").to_pylist() == [3, 2, 1][:count]
    assert first_rows(table, count, both[:1]).column("n").to_pylist() == [2, 3, 1][:count]


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.decimal128(21, 1), pa.date32(), pa.time64("us"), pa.binary()]
)
def test_columns_of_all_kinds_sort_also_if_there_are_more_rows_than_are_shown(kind: pa.DataType) -> None:
    column = pa.array([True, False] * 5 if pa.types.is_boolean(kind) else [7, 3] * 5)
    if pa.types.is_binary(kind):
        column = column.cast(pa.string())
    column = column.cast(pa.int32()) if pa.types.is_date(kind) else column
    table = pa.table({"c": column.cast(kind), "n": range(10)})
    rows = first_rows(table, 5, [("c", "ascending"), ("n", "ascending")])
    assert rows.column("n").to_pylist() == [1, 3, 5, 7, 9]


def test_changes_of_several_epochs_are_summed_up_with_the_rows() -> None:
    rows = merged_rows(None, summed_changes(pa.table({"k": [1, 2], "diff": [1, 2]})))
    changes = pa.table({"diff": [-1, -1, 1, 1], "epoch": [3, 3, 3, 4], "k": [1, 2, 3, 3]})
    rows = merged_rows(rows, summed_changes(changes))
    assert sorted(zip(*rows.to_pydict().values(), strict=True)) == [(2, 1), (3, 2)]


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIVE_ROWS_MAX", 3)
    monkeypatch.setattr(module, "LIVE_BYTES_MAX", 1 << 20)
    check_size(3, 1 << 20)
    for rows, size in ((4, 0), (1, (1 << 20) + 1)):
        with pytest.raises(MisuseError, match=rf"about {rows} rows.* keeps 3 rows in 1 MiB at most"):
            check_size(rows, size)
    with pytest.raises(MisuseError, match="about 1 rows in 2 MiB"):
        merged_rows(None, summed_changes(pa.table({"text": ["x" * (2 << 20)], "diff": [1]})))


def test_times_that_python_does_not_have_are_texts_wherever_they_are() -> None:
    late = pa.array([LATE], pa.timestamp("us"))
    early = pa.array([0], pa.timestamp("us"))
    nested = {
        "plain": late,
        "list": pa.ListArray.from_arrays([0, 2], pa.concat_arrays([late, early])),
        "struct": pa.StructArray.from_arrays([late, pa.array(["x"])], ["at", "b"]),
        "map": pa.MapArray.from_arrays([0, 1], pa.array(["k"]), late),
        "null": pa.array([None], pa.list_(pa.timestamp("us"))),
    }
    ((plain, list_, struct, map_, null),) = cells_of(pa.table(nested))
    assert plain is not None and str(LATE) in plain and null is None
    assert list_ == f"['{plain}', datetime.datetime(1970, 1, 1, 0, 0)]"
    assert struct == f"{{'at': '{plain}', 'b': 'x'}}" and map_ == f"[('k', '{plain}')]"
    assert cells_of(pa.table({})) == []


def test_columns_have_a_type_and_numbers_stand_at_the_right() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), False), ("b", pa.decimal128(5, 2)), ("c", pa.string())])
    assert [tuple(column) for column in shown_columns(schema)] == [
        ("a", "int64", True), ("b", "decimal128(5, 2)?", True), ("c", "string?", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("most", "columns", "rows"), [(200, 3, 200), (200, 0, 200), (200, 200, 100), (200, 20_001, 1)]
)
def test_a_page_shows_no_more_cells_than_it_can_draw(most: int, columns: int, rows: int) -> None:
    assert count_shown(most, columns) == rows
