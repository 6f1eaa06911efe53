"""Where collections come from: inputs, other dataflows, stages that were written by hand."""

from __future__ import annotations

from timely.building.dataflow import Dataflow
from timely.building.loop import Loop
from timely.building.stream import Stream

from ..columns.schema import Schema, SchemaSpec
from ..errors import SchemaError
from ..operators.between.imports import TableImport
from ..operators.table_io import DIFF, EPOCH, TableIn
from ..plan.building import Plan
from ..plan.nodes import FromStream, Import, Input
from .collection import Collection

__all__ = ["from_stream", "imported", "input"]


def input(dataflow: Dataflow, name: str, schema: SchemaSpec) -> Collection:
    """A named input of `dataflow` as a collection with the columns of `schema`."""
    declared = Schema.of(schema)
    for reserved in (DIFF, EPOCH):
        if reserved in declared.names:
            raise SchemaError(
                f"input {name!r}: a column cannot be called {reserved!r}, which tables of changes use"
            )
    stream = dataflow.input(name, TableIn(declared, name))
    plan = Plan.of(dataflow)
    return Collection(plan, plan.leaf(Input(declared, name), stream))


def imported(flow: Dataflow, owner: int | str, name: str, schema: SchemaSpec) -> Collection:
    """What the dataflow `owner` of the same cluster exports as `name`, from its present state on.

    `owner` is its number (`Flow.index`) or its name, of which the last part does: `mentions` for
    "my_queries:mentions". The columns are those of `schema`, in that order. Its epochs are those of this
    dataflow, whose own inputs begin with the same one.
    """
    declared = Schema.of(schema)
    plan = Plan.of(flow)
    node = Import(declared, owner, name)
    if node.digest not in plan.streams:
        node = plan.leaf(node, flow.imported(owner, name, TableImport(declared)))
    return Collection(plan, plan.add(node))


def from_stream(
    dataflow: Dataflow, stream: Stream, schema: SchemaSpec, loops: tuple[Loop, ...] = ()
) -> Collection:
    """What a stage that was written by hand puts out (update batches with the columns of `schema`) as a
    collection; `loops` are those that the stream is in, outermost first.
    """
    plan = Plan.of(dataflow)
    leaf = FromStream(Schema.of(schema), plan.from_stream_serial())
    return Collection(plan, plan.leaf(leaf, stream, loops), loops)
