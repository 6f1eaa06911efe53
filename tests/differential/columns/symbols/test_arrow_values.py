"""Values of `any` columns in what clients are given: one `to_pylist` for all of it, and back into inputs.

given_*      tables, columns, rows, outputs: by Arrow's own methods and by ours
back_*       what an output gives is taken by inputs
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import differential as dd
import timely
from differential import col
from differential.columns.column_types import ANY_METADATA
from differential.columns.symbols.arrow_values import AnyType, with_values
from differential.columns.symbols.packing import pack
from differential.errors import SchemaError
from timely.client.connection import AppendClient

VALUES = [(1, "a"), {"x": [1, 2]}, None, "text", b"bytes", 7]
EXPECTED = [(1, "a"), {"x": (1, 2)}, None, "text", b"bytes", 7]
ROWS = [{"k": number, "v": value} for number, value in enumerate(EXPECTED)]


def query(dataflow: timely.Dataflow) -> dict[str, dd.Collection]:
    """Rows as they come, and their lists."""
    rows = dd.input(dataflow, "rows", "k: int, v: any?")
    return {"rows": rows, "numbers": rows.select("k")}


@pytest.fixture(scope="module", params=["embedded", "processes"])
def flow(request: pytest.FixtureRequest) -> Iterator[timely.Flow]:
    """A dataflow with these rows in it."""
    with timely.connect(workers=1, embedded=request.param == "embedded") as cluster:
        made = cluster.install(query)
        made.input("rows").insert(list(enumerate(VALUES)))
        made.seal()
        yield made


def test_given_values_by_every_way_of_reading(flow: timely.Flow) -> None:
    output = flow.output("rows")
    assert output.snapshot().to_pylist() == output.to_pylist() == ROWS
    assert output.to_arrow().equals(output.snapshot())
    changes = output.changes(0, 1)
    assert sorted(changes.to_pylist(), key=lambda row: row["k"]) == [
        {**row, "epoch": 0, "diff": 1} for row in ROWS
    ]
    epoch, first = next(output.follow(start=0))
    assert epoch == 0 and sorted(first.column("k").to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert {repr(value) for value in first["v"].to_pylist()} == {repr(value) for value in EXPECTED}
    _, whole = next(output.follow(snapshot=True))
    assert whole.column("v").type == AnyType()


def test_given_values_without_looking_for_modules_each_time(
    flow: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = flow.output("rows").to_pylist()
    monkeypatch.setattr(importlib, "invalidate_caches", lambda: pytest.fail("a module is loaded"))
    assert flow.output("rows").to_pylist() == wanted


def test_given_column_row_slice_and_batch(flow: timely.Flow) -> None:
    table = flow.output("rows").snapshot()
    assert table["v"].to_pylist() == EXPECTED
    assert [value.as_py() for value in table["v"]] == EXPECTED
    assert table.slice(1, 1).to_pylist() == [ROWS[1]]
    assert table.to_batches()[0].to_pylist() == ROWS


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        (lambda flow: flow.output("rows"), ROWS),
        (lambda flow: flow.output("rows").snapshot(), ROWS),
        (lambda flow: flow.output("rows").snapshot().to_batches()[0], ROWS),
        (lambda flow: flow.output("rows").snapshot()["v"], EXPECTED),
        (lambda flow: flow.output("rows").snapshot()["v"].chunk(0), EXPECTED),
        (lambda flow: flow.output("numbers").snapshot()["k"], [0, 1, 2, 3, 4, 5]),
        (lambda flow: [(0, "record")], [(0, "record")]),
    ],
)
def test_given_one_function_for_all(
    part: Callable[[timely.Flow], object], wanted: list[object], flow: timely.Flow
) -> None:
    assert dd.to_pylist(part(flow)) == wanted


def test_given_bytes_that_are_packed_are_values_too() -> None:
    field = pa.field("v", pa.binary(), metadata={**ANY_METADATA, b"PARQUET:field_id": b"1"})
    packed = pa.table([pa.array([pack([1]), None])], schema=pa.schema([field]))
    assert dd.to_pylist(packed) == with_values(packed).to_pylist() == [{"v": (1,)}, {"v": None}]
    assert dd.to_arrow(packed).column("v").to_pylist() == [(1,), None]
    large = packed.cast(pa.schema([pa.field("v", pa.large_binary(), metadata=ANY_METADATA)]))
    assert dd.to_pylist(large) == [{"v": (1,)}, {"v": None}], "as Polars has bytes"
    plain = pa.table({"v": pa.array([b"\x91\x01"])})
    assert dd.to_pylist(plain) == [{"v": b"\x91\x01"}], "bytes of a user stay bytes"


def test_given_frames_of_pandas_have_values(flow: timely.Flow) -> None:
    for frame in (flow.output("rows").to_pandas(), dd.to_pandas(flow.output("rows").snapshot())):
        assert list(frame.columns) == ["k", "v"] and list(frame["v"]) == EXPECTED  # type: ignore[attr-defined, index]
    assert dd.to_arrow(dd.to_pandas(flow.output("numbers"))).to_pylist() == [{"k": k} for k in range(6)]


def test_given_frames_of_pandas_have_the_values_and_none_that_numpy_makes_of_them() -> None:
    field = pa.field("v", pa.binary(), metadata=ANY_METADATA)
    packed = pa.table([pa.array([pack(1 + (1 << 60)), None])], schema=pa.schema([field]))
    values = list(dd.to_pandas(packed)["v"])  # type: ignore[index]
    assert values == [1 + (1 << 60), None], "and no floats"


def test_given_by_a_look_that_does_not_wait() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("rows").insert([(0, [1])])
        flow.seal(wait=True)
        assert flow.output("rows").changes_nowait()["v"].to_pylist() == [(1,)]


def test_given_through_a_file_of_parquet(flow: timely.Flow, tmp_path: Path) -> None:
    pq.write_table(flow.output("rows").snapshot(), tmp_path / "rows.parquet")
    assert dd.to_pylist(pq.read_table(tmp_path / "rows.parquet")) == ROWS


def test_given_through_polars_which_stores_bytes_otherwise(flow: timely.Flow) -> None:
    frame = polars.from_arrow(flow.output("rows").snapshot())
    assert isinstance(frame, polars.DataFrame)
    file = io.BytesIO()
    frame.write_ipc(file)
    for table in (frame.to_arrow(), pa.table(frame), pa.ipc.open_file(file.getvalue()).read_all()):
        table.validate(full=True)
        assert isinstance(table.schema.field("v").type, AnyType)
        assert table.schema.field("v").type.storage_type != pa.binary(), "what this test is about"
        assert dd.to_pylist(table) == table.to_pylist() == ROWS
        rows = flow.input("rows")
        rows.remove(table)
        flow.seal()
        assert flow.output("rows").to_pylist() == []
        rows.insert(table)
        flow.seal()
        assert flow.output("rows").to_pylist() == ROWS


def test_given_values_that_are_stored_as_no_bytes_are_refused() -> None:
    named = {b"ARROW:extension:name": b"differential.any", b"ARROW:extension:metadata": b""}
    schema = pa.schema([pa.field("v", pa.int64(), metadata=named)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.table({"v": [1]}, schema=schema))
    with pytest.raises(TypeError, match="stored as bytes, not as int64"):
        pa.ipc.open_stream(sink.getvalue()).read_all()


@pytest.mark.parametrize("call", [dd.to_pylist, dd.to_arrow, dd.to_pandas])
def test_given_what_is_no_result_is_refused(call: Callable[[object], object]) -> None:
    with pytest.raises(SchemaError, match=r"take?s? a table of an output"):
        call(col.k)


@pytest.mark.parametrize("embedded", [True, False])
def test_back_into_inputs(embedded: bool) -> None:
    with timely.connect(workers=1, embedded=embedded) as cluster:
        flow = cluster.install(query)
        rows = flow.input("rows")
        rows.insert(list(enumerate(VALUES)))
        flow.seal()
        table = flow.output("rows").snapshot()
        rows.remove(table)
        rows.insert(table)
        rows.insert(pa.table({"k": table["k"], "v": table["v"]}))
        flow.seal()
        changes = flow.output("rows").changes(1, 2)
        assert changes["diff"].to_pylist() == [1] * 6
        rows.append(changes.drop_columns(["epoch"]))
        flow.seal()
        assert len(flow.output("rows").to_pylist()) == 18
        assert flow.output("rows").snapshot().slice(0, 3)["v"].to_pylist() == [(1, "a")] * 3
        if not embedded:
            with AppendClient(cluster.addresses, flow.index) as client:
                assert client.append(
                    "rows", flow.epoch, "another process", 0, changes.drop_columns(["epoch"])
                )
            flow.seal()
            assert flow.output("rows").snapshot().slice(0, 4)["v"].to_pylist() == [(1, "a")] * 4
