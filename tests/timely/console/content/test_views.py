"""The part of a table that a page sees, against plain Python."""

from __future__ import annotations

import decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from timely.console.content.views import TableView, shown
from timely.limits import LIVE_CELLS_COUNT_MAX, SHOWN_ROWS_MAX

rows = st.lists(
    st.tuples(st.integers(-5, 5), st.sampled_from(["a", "B", "ab", None, "b%"]), st.integers(1, 1))
)


def table(values: list[tuple[int, str | None, int]]) -> pa.Table:
    columns = list(zip(*values, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.string(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, ["k", "text", "diff"])


@given(rows, st.sampled_from(["", "a", "b", "%", "7"]), st.booleans())
def test_rows_are_filtered_and_sorted(
    values: list[tuple[int, str | None, int]], wanted: str, is_descending: bool
) -> None:
    told = shown(table(values), TableView("k", is_descending, wanted))
    match = [
        (k, text)
        for k, text, _ in values
        if wanted.lower() in (text or "").lower() or wanted in str(k) or not wanted
    ]
    assert (told["total"], told["matching"]) == (len(values), len(match))
    keys = [int(row[0]) for row in told["rows"]]  # type: ignore[union-attr,index,call-overload,arg-type]
    assert keys == sorted((k for k, _ in match), reverse=is_descending)
    assert sorted(map(str, told["rows"])) == sorted(str([str(k), text]) for k, text in match)  # type: ignore[arg-type]


def test_the_first_rows_of_many_come_and_the_count_of_copies_if_there_are_any() -> None:
    many = pa.table({"n": list(range(10_000)), "diff": [1] * 9_999 + [3]})
    told = shown(many, TableView("n", True))
    assert told["total"] == 10_000 and len(told["rows"]) == SHOWN_ROWS_MAX  # type: ignore[arg-type]
    assert told["rows"][:2] == [["9999", "3"], ["9998", "1"]]  # type: ignore[index]
    assert [column["name"] for column in told["columns"]] == ["n", "diff"]  # type: ignore[union-attr,index,call-overload]


def test_of_many_columns_fewer_rows_come() -> None:
    wide = pa.table({f"c{n}": list(range(500)) for n in range(300)})
    told = shown(wide, TableView("c0"))
    assert told["matching"] == 500 and len(told["rows"]) == LIVE_CELLS_COUNT_MAX // 300  # type: ignore[arg-type]


def test_columns_that_arrow_neither_sorts_nor_searches_are_shown() -> None:
    odd = pa.table(
        {
            "list": [[1, 2], None, []],
            "struct": [{"a": 1}, None, {"a": 3}],
            "bytes": [b"\x00\xff", b"", None],
            "decimal": [decimal.Decimal("1.50"), None, decimal.Decimal(2)],
            "diff": [1, 1, 1],
        }
    )
    for view in (
        TableView(),
        TableView("list"),
        TableView("struct", True),
        TableView("bytes", False),
        TableView("none of them"),
    ):
        told = shown(odd, view)
        assert sorted(map(str, told["rows"])) == sorted(  # type: ignore[arg-type]
            map(
                str,
                [
                    ["[1, 2]", "{'a': 1}", "00 ff", "1.50"],
                    [None] * 2 + ["", None],
                    ["[]", "{'a': 3}", None, "2.00"],
                ],
            )
        )
    assert shown(odd, TableView(wanted="1.5"))["matching"] == 1
    assert shown(pa.table({"list": [[1]]}), TableView(wanted="1"))["matching"] == 0


def test_no_table_is_no_rows() -> None:
    assert shown(None, TableView())["rows"] == [] and shown(table([]), TableView("k"))["rows"] == []
