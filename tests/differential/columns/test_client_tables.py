"""What a client's data become before they are sent: the columns that the worker declared, or an error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns import client_tables
from differential.columns.client_tables import client_table, to_pylist
from differential.columns.schema import Schema
from differential.errors import SchemaError
from progress.errors import InternalError

DAY = dt.date(2024, 2, 29)
EVERY_TYPE = "a: int, b: float?, c: bool, d: timestamp, e: string?, f: bytes, g: any"


def test_a_schema_survives_its_way_to_the_client() -> None:
    schema = Schema.of("src: int, weight: float?, name: string")
    table = client_table([(1, None, "x"), (2, 0.5, "y")], schema.to_arrow(), "edges")
    assert table.schema == schema.to_arrow()
    assert table.to_pylist()[0] == {"src": 1, "weight": None, "name": "x"}


def test_every_type_that_is_declared_is_known_to_clients() -> None:
    schema = Schema.of(EVERY_TYPE)
    assert client_table([], schema.to_arrow(), "all").schema == schema.to_arrow()


def test_a_null_where_none_may_be_is_named_before_anything_is_sent() -> None:
    def build(flow: timely.Dataflow) -> None:
        dd.input(flow, "edges", "src: int, dst: int").output("same")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        with pytest.raises(SchemaError, match=r"input 'edges', column 'dst' \(int\), row 1: None"):
            flow.input("edges").insert([(1, 2), (3, None)])
        flow.seal()
        assert flow.output("same").changes().num_rows == 0


def test_a_type_that_no_column_has_is_our_own_mistake() -> None:
    with pytest.raises(InternalError, match="duration"):
        client_table([], pa.schema([pa.field("x", pa.duration("s"))]), "odd")


def test_lists_and_other_values_of_any_type_come_back_as_they_are() -> None:
    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "key: int, value: any?, text: string")
        rows.output("rows")
        rows.group_by("key").agg(texts=dd.collect("text")).output("texts")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(1, [1, {"k": None}], "b"), (1, None, "a"), (2, "plain", "c")])
        flow.seal()
        changes = flow.output("rows").changes()
        values = sorted((row["value"] for row in to_pylist(changes)), key=str)
        assert values == [(1, {"k": None}), None, "plain"]
        assert to_pylist(changes.drop_columns(["value"])) == changes.drop_columns(["value"]).to_pylist()
        assert [row["texts"] for row in dd.to_pylist(flow.output("texts").snapshot())] == [["a", "b"], ["c"]]


def _build(flow: timely.Dataflow) -> None:
    """Rows as they came, and the values of each key."""
    rows = dd.input(flow, "rows", "k: int, a: any?, b: bytes, day: date, price: decimal(5, 2)?")
    rows.output("rows")
    rows.group_by("k").agg(days=dd.collect("day"), b=dd.collect_set("b")).output("collected")


@pytest.mark.parametrize("workers", [1, 2])
def test_any_values_are_what_they_were_and_bytes_stay_bytes(workers: int) -> None:
    given = [
        {"k": 1, "a": (1, ("x", None)), "b": b"\x93\x01\x02\x03", "day": DAY, "price": Decimal("1.50")},
        {"k": 1, "a": {"m": 2.5}, "b": b"", "day": DAY, "price": None},
        {"k": 2, "a": None, "b": b"z", "day": DAY, "price": None},
    ]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(_build)
        flow.input("rows").insert(given)
        flow.wait(flow.seal())
        snapshot = dd.to_pylist(flow.output("rows").snapshot())
        changes = dd.to_pylist(flow.output("rows").changes())
        collected = dd.to_pylist(flow.output("collected").snapshot())
    assert sorted(snapshot, key=str) == sorted(given, key=str)
    assert sorted(changes, key=str) == sorted(({"epoch": 0, **row, "diff": 1} for row in given), key=str)
    assert {row["k"]: row["days"] for row in collected} == {1: [DAY, DAY], 2: [DAY]}
    assert {row["k"]: row["b"] for row in collected} == {1: [b"", b"\x93\x01\x02\x03"], 2: [b"z"]}


def test_a_table_of_others_is_read_as_it_is() -> None:
    table = pa.table({"a": [1, None], "b": [b"\x01", b"\x02"]})
    assert dd.to_pylist(table) == [{"a": 1, "b": b"\x01"}, {"a": None, "b": b"\x02"}]
    assert dd.to_pylist(table.slice(0, 0)) == []


def test_each_schema_has_its_own_columns_however_many_there_are() -> None:
    declared = [
        Schema.of(f"c{number}: int, d: {kind}").to_arrow()
        for number in range(300)
        for kind in ("any", "bytes")
    ]
    for schema in (*declared, *declared[:3]):
        assert client_table([], schema, "all").schema.equals(schema, check_metadata=True)
    assert len(client_tables._schemas) <= client_tables._SCHEMAS_MAX
