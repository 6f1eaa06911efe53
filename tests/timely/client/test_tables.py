"""What users have in hand becomes tables; what workers answer becomes one table."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, namedtuple
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import timely.client.tables
from timely import InternalError, MisuseError
from timely.client.tables import (
    InputForm,
    chunks,
    columns_of,
    expanded,
    is_of_pandas,
    merged_changes,
    records_of,
)

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
FORM = InputForm("in", "a: int, b: string", SCHEMA)
EXPECTED = pa.table({"a": [1, 2], "b": ["x", "y"]}, schema=SCHEMA)


def test_a_pandas_that_another_thread_is_importing_is_none_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_of_pandas(pd.DataFrame(), "DataFrame") and not is_of_pandas(pd.DataFrame(), "Series")
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    assert FORM.to_table([(1, "x"), [2, "y"]]) == EXPECTED


def keep(data: object, schema: pa.Schema | None, name: str) -> object:
    """A converter, as codecs name them."""
    return pa.table({"was": [f"{name}: {data} {schema is not None}"]}) if data != "bad" else data


@pytest.mark.parametrize(
    "data",
    [
        EXPECTED, EXPECTED.to_batches()[0], EXPECTED.to_pandas(), {"a": [1, 2], "b": ["x", "y"]},
        [(1, "x"), [2, "y"]], [{"b": "x", "a": 1}, {"a": 2, "b": "y"}],
        pa.RecordBatchReader.from_batches(SCHEMA, EXPECTED.to_batches()),
    ],
    ids=lambda data: type(data).__name__,
)  # fmt: skip
def test_every_form_of_a_table_is_taken(data: object) -> None:
    assert FORM.to_table(data).select(["a", "b"]).replace_schema_metadata(None) == EXPECTED


def test_a_structured_array_is_a_table() -> None:
    array = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", np.int64), ("f", np.float64)])
    assert InputForm("in", "a, f").to_table(array) == pa.table({"a": [1, 3], "f": [2.5, 4.5]})
    assert InputForm("in", "a").to_table(pd.DataFrame({"a": [1]})).column_names == ["a"]


@pytest.mark.parametrize(
    "data", [[(1,)], [(1, "x", 3)], {"a": [1]}, {"a": ["x"], "b": ["y"]}, 7, [7], ["text"]]
)
def test_what_does_not_fit_is_told_with_the_input(data: object) -> None:
    with pytest.raises(MisuseError, match="input 'in' takes a: int, b: string"):
        FORM.to_table(data)


def test_a_codec_may_name_its_own_converter() -> None:
    form = InputForm("in", "text", None, f"{__name__}:keep")
    import sys

    sys.modules[__name__].keep = keep  # type: ignore[attr-defined]
    assert form.to_table(7).to_pylist() == [{"was": "in: 7 False"}]
    with pytest.raises(InternalError, match="made a str, not an Arrow table"):
        form.to_table("bad")


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**63 - 1),
            st.text(),
            st.none(),
            st.tuples(st.text(), st.floats(allow_nan=False)),
        )
    )
)
def test_records_come_back_with_their_epochs(records: list[object]) -> None:
    table = InputForm("in", "records").to_table(records)
    answer = table.append_column("epoch", pa.array([4] * len(records), pa.int64()))
    assert records_of(answer) == [(4, record) for record in records]


@pytest.mark.parametrize("record", ["text", {"k": 1}, ("ada", 5)])
def test_one_record_in_place_of_a_list_is_refused(record: object) -> None:
    with pytest.raises(MisuseError, match=r"input 'in' takes a list of records, not one .*: write \[record"):
        InputForm("in", "records").to_table(record)
    assert InputForm("in", "records").to_table((("ada", 5), ("bob", 6))).num_rows == 2


def test_a_record_nested_too_deep_is_refused_with_its_place() -> None:
    deep: object = 1
    for _ in range(2_000):
        deep = (deep,)
    for record in (deep, {"k": [deep]}):
        with pytest.raises(MisuseError, match="input 'in', record 2: it is nested more than 100 deep"):
            InputForm("in", "records").to_table([1, (2,), record])


@pytest.mark.parametrize(
    "times", [[2**40], [2**62, 2**62, 2**62], [6, 5]], ids=["2^40", "beyond 64 bits", "together"]
)
def test_a_snapshot_that_would_repeat_rows_without_end_is_refused(
    times: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timely.client.tables, "SNAPSHOT_ROWS_MAX", 10)
    table = pa.table({"a": list(range(len(times))), "diff": times})
    with pytest.raises(MisuseError, match=rf"holds {sum(times):,} rows, {len(times)} of them.*Read changes"):
        expanded([table])


def test_a_snapshot_of_as_many_rows_as_are_allowed_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timely.client.tables, "SNAPSHOT_ROWS_MAX", 10)
    assert expanded([pa.table({"a": [1, 2], "diff": [5, 5]})]).num_rows == 10
    assert expanded([pa.table({"a": list(range(12)), "diff": [1] * 12})]).num_rows == 12, "none is repeated"


@pytest.mark.parametrize("data", ["text", b"bytes", {"a": 1}, 7, [object()], [2**64]])
def test_records_that_are_none_are_refused(data: object) -> None:
    with pytest.raises(MisuseError, match="input 'in'"):
        InputForm("in", "records").to_table(data)


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.integers(0, 2), st.integers(-2, 2)), max_size=12
)


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_changes_of_several_workers_are_summed_and_sorted(
    parts: list[list[tuple[int, str, int, int]]],
) -> None:
    own = [consolidated(part) for part in parts]
    merged = merged_changes([table_of(part) for part in own])
    expected = consolidated([row for part in own for row in part])
    assert [tuple(row.values()) for row in merged.to_pylist()] == sorted(
        expected, key=lambda row: (row[2], row[0], row[1])
    )


@pytest.mark.parametrize("wide", [1, 2**40], ids=["fit a word", "do not"])
@given(
    st.lists(
        st.lists(st.tuples(*[st.integers(-3, 3)] * 3, st.integers(-2, 2)), max_size=12),
        min_size=1,
        max_size=3,
    )
)
def test_changes_of_whole_numbers_are_merged_as_arrow_does(
    wide: int, parts: list[list[tuple[int, int, int, int]]]
) -> None:
    schema = pa.schema([(name, pa.int64()) for name in ("a", "b", "epoch", "diff")])
    tables = []
    for part in parts:
        totals: Counter[tuple[int, int, int]] = Counter()
        for a, b, epoch, diff in part:
            totals[a * wide, b * wide, epoch + 3] += diff
        own = [(*row, diff) for row, diff in totals.items() if diff]
        columns = [[row[at] for row in own] for at in range(4)]
        tables.append(pa.table(columns, schema=schema))
    found = merged_changes(tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timely.client.tables, "_merged", lambda tables, names: None)
        by_arrow = merged_changes(tables)
    assert found.equals(by_arrow)
    assert found.schema == by_arrow.schema


def test_changes_of_whole_numbers_are_merged_without_the_functions_of_arrow() -> None:
    """They are ten MiB, and a twentieth of a second of whoever reads the first change."""
    program = """
import sys
import pyarrow as pa
from timely.client.tables import merged_changes
from timely.wire.arrow import int64_array, int64s_of
import numpy as np
columns = [[[2, 1], [3, 3], [1, diff]] for diff in (1, -1)]
parts = [
    pa.Table.from_arrays([int64_array(np.array(each)) for each in part], ["a", "epoch", "diff"])
    for part in columns
]
found = merged_changes(parts)
print([int64s_of(column).tolist() for column in found.columns], "pyarrow.compute" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "[[2], [3], [2]] False\n"


def test_changes_of_several_workers_that_cancel_are_left_out() -> None:
    parts = [{"k": [1, 2, 2], "epoch": [3, 3, 4], "diff": diffs} for diffs in ([1, 1, 2], [1, -1, -2])]
    merged = merged_changes([pa.table(part) for part in parts])
    assert merged.to_pydict() == {"k": [1], "epoch": [3], "diff": [2]}
    merged = merged_changes([pa.table({"k": [1], "diff": [diff]}) for diff in (1, -1)])
    assert merged.to_pydict() == {"k": [], "diff": []}


@pytest.mark.parametrize("bits", [62, 63, 64, 65])
def test_changes_are_in_order_whether_rows_fit_a_word_or_not(bits: int) -> None:
    """Values as far apart as so many bits allow, in three columns."""
    last, first = (1 << (bits - 42)) - 1, (1 << 21) - 1
    rows = [(a, epoch, b, 1) for a in (-first, 0) for epoch in (5, 5 + first) for b in (-1, last - 1, 3)]
    halves = [rows[::2], rows[1::2]]
    parts = [
        pa.table(dict(zip(("a", "epoch", "b", "diff"), zip(*half, strict=True), strict=True)))
        for half in halves
    ]
    found = merged_changes(parts)
    assert [tuple(row.values()) for row in found.to_pylist()] == sorted(
        rows, key=lambda row: (row[1], row[0], row[2])
    )


def test_rows_without_diff_are_sorted_and_all_there() -> None:
    parts = [pa.table({"k": [2, 1], "epoch": [3, 3]}), pa.table({"k": [1, 5], "epoch": [3, 2]})]
    assert merged_changes(parts).to_pydict() == {"k": [5, 1, 1, 2], "epoch": [2, 3, 3, 3]}


@pytest.mark.parametrize("looked_at", [1, 2, 3, 100])
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=9))
def test_rows_in_order_stay_as_they_are_and_others_do_not(
    looked_at: int, rows: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timely.client.tables, "_LOOKED_AT_ROWS", looked_at)
        for some in (rows, sorted(rows)):
            table = pa.table(dict(zip("ab", map(list, zip(*some, strict=True)), strict=True)))
            found = timely.client.tables._sorted(table, ["a", "b"])
            assert (found is table) == (some == sorted(rows))
            assert found.equals(table.sort_by([("a", "ascending"), ("b", "ascending")]))
        for at in range(6):  # in order but for one row
            table = pa.table({"a": [0] * at + [1] + [0] * (6 - at)})
            assert (timely.client.tables._sorted(table, ["a"]) is table) == (at == 6)


def consolidated(rows: list[tuple[int, str, int, int]]) -> list[tuple[int, str, int, int]]:
    totals: Counter[tuple[int, str, int]] = Counter()
    for a, b, epoch, diff in rows:
        totals[a, b, epoch] += diff
    return [(*row, diff) for row, diff in totals.items() if diff]


def table_of(rows: list[tuple[int, str, int, int]]) -> pa.Table:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("epoch", pa.int64()), ("diff", pa.int64())])
    return pa.Table.from_arrays(
        [pa.array([row[at] for row in rows], schema.field(at).type) for at in range(4)], schema=schema
    )


def test_a_snapshot_repeats_rows_and_sums_over_workers() -> None:
    one = pa.table({"a": [1, 2, 3], "diff": [2, 1, -1]})
    two = pa.table({"a": [3, 4], "diff": [1, 1]})
    assert expanded([one, two]) == pa.table({"a": [1, 1, 2, 4]})
    assert expanded([one.slice(0, 0), two.slice(0, 0)]) == pa.table({"a": pa.array([], pa.int64())})
    assert expanded([pa.table({"a": [2]}), pa.table({"a": [1]})]) == pa.table({"a": [1, 2]})
    with pytest.raises(
        MisuseError, match=r"a negative number of times.* {'a': 3} is there -1 times.*checked_input"
    ):
        expanded([one])
    with pytest.raises(MisuseError, match="one of them is there -1 times"):
        expanded([pa.table({"at": pa.array([2**62], pa.timestamp("us")), "diff": [-1]})])


@pytest.mark.parametrize("combine", [merged_changes, expanded])
def test_sums_over_workers_that_leave_64_bits_are_refused(
    combine: Callable[[list[pa.Table]], pa.Table],
) -> None:
    parts = [pa.table({"k": [7, 8], "diff": [2**62, 1]}) for _ in range(2)]
    with pytest.raises(MisuseError, match=rf"row {{'k': 7}} is there {2**63} times"):
        combine(parts)


def test_sums_over_workers_are_exact_up_to_64_bits() -> None:
    parts = [pa.table({"k": [7, 8], "diff": [diff, 1]}) for diff in (2**62, 2**62, -1, -(2**62))]
    merged = merged_changes(parts)
    assert merged.column("diff").to_pylist() == [2**62 - 1, 4]
    assert merged.schema == parts[0].schema


@given(st.integers(0, 500), st.integers(8, 900))
def test_pieces_hold_all_rows_in_order_and_are_small(rows: int, bytes_max: int) -> None:
    table = pa.table({"a": np.arange(rows)})
    pieces = list(chunks(table, bytes_max))
    assert [value for piece in pieces for value in piece.column("a").to_pylist()] == list(range(rows))
    assert all(piece.nbytes <= max(bytes_max, 8) for piece in pieces)


@given(
    st.lists(st.tuples(*[st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 2**63 - 1])] * 3), max_size=8),
    st.sampled_from(["as they are", "nulls", "other types", "chunks"]),
)
def test_rows_are_sorted_alike_by_numpy_and_by_arrow(rows: list[tuple[int, int, int]], form: str) -> None:
    """Rows of whole numbers are sorted by numpy, also where their values do not fit one word together."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    kinds = [pa.int64(), pa.int32() if form == "other types" else pa.int64(), pa.int64()]
    if form == "other types":
        columns[1] = [value if abs(value) <= 2 else 3 for value in columns[1]]
    if form == "nulls":
        columns[1] = [None if value == 0 else value for value in columns[1]]  # type: ignore[misc]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    fields = [pa.field(name, kind) for name, kind in zip("abc", kinds, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata={"said": "by somebody"}))
    if form == "chunks":
        table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    found = timely.client.tables._sorted(table, ["b", "a", "c"])
    assert found.equals(table.sort_by([(name, "ascending") for name in "bac"]), check_metadata=True)


def test_columns_of_rows_of_one_form_and_none_of_others() -> None:
    """Rows that could be misread are left to be looked at one by one: named tuples, other columns."""
    assert columns_of([(1, "x"), (2, "y")], ["a", "b"]) == [(1, 2), ("x", "y")]
    assert columns_of([{"b": "x", "a": 1}, {"a": 2, "b": None}], ["a", "b"]) == [[1, 2], ["x", None]]
    named = namedtuple("named", ["b", "a"])
    odd: list[list[object]] = [
        [],
        [(1,)],
        [(1, 2), {"a": 1, "b": 2}],
        [{"a": 1}],
        [{"a": 1, "c": 2}],
        [named(1, 2)],
    ]
    for rows in odd:
        assert columns_of(rows, ["a", "b"]) is None
