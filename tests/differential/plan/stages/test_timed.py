"""timed.py: which vertex an operator that looks at epochs becomes, and what stands behind an input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from differential import col
from differential.columns.schema import Schema
from differential.operators.edge.table_in import TableIn
from differential.operators.machine import Machine
from differential.operators.timed.during import DuringVertex, OnTimeVertex
from differential.operators.timed.keyed_io import KeyedTableIn
from differential.operators.timed.latest import CheckedMachine, LatestMachine
from differential.operators.vertices import MachineVertex
from differential.plan import nodes as n
from differential.plan.stages.timed import content_of, input_codec, input_stage, timed_stage
from timely.operators.vertex import Vertex


def _machine(vertex: Vertex) -> Machine:
    """The machine of a vertex that has not started."""
    assert isinstance(vertex, MachineVertex)
    place = SimpleNamespace(code=SimpleNamespace(guards=1 << 62))
    return vertex._make(cast("MachineVertex", place))


AB = n.Input(Schema.of("a: int, b: int"), "ab")


def test_operators_that_look_at_epochs_have_a_stage_where_the_rows_are() -> None:
    bounded = n.Select(AB, (("a", col.a), ("start", col.b), ("stop", col.b + 1)))
    for node, vertex in (
        (n.During(bounded), DuringVertex),
        (n.OnTime(AB, "late"), OnTimeVertex),
    ):
        stage = timed_stage(node, node.source.schema)
        assert stage is not None and stage.keys is None and isinstance(stage.vertex(), vertex)
    assert timed_stage(n.Negate(AB), AB.schema) is None


def test_inputs_have_a_stage_that_keeps_what_was_said_by_key() -> None:
    assert input_stage(AB) is None and isinstance(input_codec(AB), TableIn)
    upsert = n.Input(Schema.of("a: int, b: int"), "ab", "upsert", ("b",))
    stage = input_stage(upsert)
    assert stage is not None and isinstance(_machine(stage.vertex()), LatestMachine)
    assert stage.keys == ("b",) and stage.gives.names == ("b", "a") and stage.columns.width == 5
    assert isinstance(input_codec(upsert), KeyedTableIn)
    checked = n.Input(Schema.of("a: int, refused: bool"), "ab", "checked")
    stage = input_stage(checked)
    assert stage is not None and isinstance(_machine(stage.vertex()), CheckedMachine)
    assert stage.keys == ("a",) and stage.gives == checked.schema
    assert input_codec(checked).describe() == "table (a: int)"


def test_what_is_all_of_an_input_and_no_more() -> None:
    upsert = n.Input(Schema.of("a: int, b: int"), "values", "upsert", ("b",))
    checked = n.Input(Schema.of("a: int, b: int, (refused): bool"), "rows", "checked")
    rows, refused = (n.Filter(checked, kept) for kept in (~col("(refused)"), col("(refused)")))
    whole, turned = (("a", col.a), ("b", col.b)), (("a", col.b), ("b", col.a))
    assert content_of(AB) == "ab" and content_of(upsert) == "values"
    assert content_of(n.Select(rows, whole)) == "rows"
    for less in (checked, rows, n.Negate(AB), n.Select(refused, whole), n.Select(rows, turned)):
        assert content_of(less) == ""
    assert content_of(n.Select(rows, whole[:1])) == content_of(n.Select(n.Filter(AB, col.a > 1), whole)) == ""
