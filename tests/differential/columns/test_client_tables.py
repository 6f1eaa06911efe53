"""What a client's data become before they are sent: the columns that the worker declared, or an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.client_tables import client_table, to_pylist
from differential.columns.schema import Schema
from differential.errors import SchemaError
from progress.errors import InternalError

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
        assert [row["texts"] for row in dd.to_pylist(flow.output("texts").snapshot())] == [("a", "b"), ("c",)]
