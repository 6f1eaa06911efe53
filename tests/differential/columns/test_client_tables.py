"""What a client's data become before they are sent: the columns that the worker declared, or an error."""

from __future__ import annotations

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.client_tables import client_table
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
