"""Sources of collections: inputs, other dataflows, stages that were written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from timely.building.dataflow import Dataflow
from timely.building.loop import Loop
from timely.building.scope import Scope
from timely.building.stream import Stream
from timely.counted import counted
from timely.user_code.call_site import call_site

from ..columns.client_tables import client_table
from ..columns.column_types import boolean
from ..columns.foreign.schemas import foreign_fields
from ..columns.schema import Column, Schema, SchemaSpec
from ..errors import ONE_COLUMN, SchemaError, no_columns, shown
from ..expressions.expression import col
from ..operators.edge.records import OutOfRecordsVertex
from ..operators.table_io import DIFF, EPOCH
from ..other_spellings import written_as
from ..plan.building import Plan, loop_of
from ..plan.nodes import CONSTANT_BYTES_MAX, ConstantRows, FromStream, Import, Input
from ..plan.sketching import Sketch
from ..plan.stages.timed import input_codec
from ..skew.running.schedule import ANNOUNCED
from .collection import Collection
from .handle import Names, names_of

__all__ = ["announcements", "checked_input", "collection", "constant", "from_stream", "imported", "input"]

_REFUSED = "(refused)"


@written_as("input(flow, 'orders', 'customer: string, cents: int')")
def input(
    dataflow: Dataflow,
    name: str,
    schema: SchemaSpec,
    *,
    key: Names = (),
    mode: Literal["append", "upsert"] = "append",
    defaults: Mapping[str, object] | None = None,
) -> Collection:
    """A named input of `dataflow` as a collection with the columns of `schema`.

    mode    "append": clients insert and remove rows. "upsert": clients set the values of keys by
            `upsert(rows)`, or `delete(keys)`, and the collection holds the last value of each `key`, a column
            or several: at every complete epoch the last one up to it. Within an epoch the order of calls
            decides.
    defaults
            values of columns that older rows lack: those of a version that this one replaces, and of tables
            of clients of that version. `{"country": None}` lets such tables lack a column that may be null

    An upsert costs a search for its key, at the worker of the key, where the current values are stored once.
    Flink, Materialize: an upsert source; Rust: `arrange::upsert`.
    Raises SchemaError for a key that is no column, or missing where it is needed.
    """
    declared = _declared(schema, name)
    keys = names_of(key, "input")
    if (mode == "upsert") != bool(keys) or mode not in ("append", "upsert"):
        raise SchemaError(
            f"input {name!r}: write key='id', mode='upsert' for the last value of each key, or neither for "
            f"rows that "
            "are inserted and removed; removals are checked by dd.checked_input(…)"
        )
    for one in keys:
        declared.offset(one)
    if len(set(keys)) != len(keys):
        raise SchemaError(f"input {name!r}: a key is named twice in {', '.join(keys)}")
    return _input(dataflow, Input(declared, name, mode, keys, (), _defaults(declared, name, keys, defaults)))


@written_as("checked_input(flow, 'orders', 'customer: string, cents: int')")
def checked_input(
    dataflow: Dataflow,
    name: str,
    schema: SchemaSpec,
    *,
    refusal: Literal["row", "error"] = "row",
    defaults: Mapping[str, object] | None = None,
) -> tuple[Collection, Collection]:
    """(rows, refused): a named input whose rows are never there less than 0 times.

    A removal of a row that is not there has no effect on `rows`; the row is in `refused` from that epoch on,
    once for each removal in vain. All changes of a row in one epoch count together. Each row costs a search,
    at the worker of the row, where all rows are stored.

    With `refusal="error"` each row in `refused` is a failure, as of `refused.assert_empty()`: from that epoch
    on the outputs that read `refused`, or all if none does, have no answer, but a NotEmptyError that names
    the row. Answers of earlier epochs stay right. `defaults`: as of `dd.input`.
    """
    if refusal not in ("row", "error"):
        raise SchemaError(f"input {name!r}: refusal is 'row' or 'error', not {refusal!r}")
    declared = _declared(schema, name)
    whole = Schema((*declared.columns, Column(_REFUSED, boolean)))
    older = _defaults(declared, name, (), defaults)
    both = _input(dataflow, Input(whole, name, "checked", (), (), older))
    rows = both.filter(~col(_REFUSED)).select(*declared.names)
    refused = both.filter(col(_REFUSED)).select(*declared.names)
    if refusal == "error":
        refused = refused.assert_empty(f"input {name!r} ({call_site()}): that what is removed is there")
    return rows, refused


def _declared(schema: SchemaSpec, name: str) -> Schema:
    declared = Schema.of(schema)
    if not declared.columns:
        raise no_columns(f"input {name!r}", ONE_COLUMN)
    for reserved in (DIFF, EPOCH):
        if reserved in declared.names:
            raise SchemaError(
                f"input {name!r}: a column cannot be called {reserved!r}, which tables of changes use"
                f": declare another name, such as '{reserved}_'"
            )
    return declared


def _defaults(
    declared: Schema, name: str, keys: Sequence[str], defaults: Mapping[str, object] | None
) -> ConstantRows | None:
    """Return the row of default values; raise SchemaError if one does not fit its column."""
    if not defaults:
        return None
    for column in defaults:
        declared.offset(column)
        if column in keys:
            raise SchemaError(f"input {name!r}: the key {column!r} says which row it is, and has no default")
    columns = declared.picked([each for each in declared.names if each in defaults])
    where = f"defaults of input {name!r}"
    table = client_table([tuple(defaults[each] for each in columns.names)], columns.to_arrow(), where)
    return ConstantRows.of(table, columns, where)


def _input(dataflow: Dataflow, node: Input) -> Collection:
    stream = dataflow.input(node.name, input_codec(node))
    plan = Plan.of(dataflow)
    return Collection(plan, plan.leaf(node, stream))


@written_as("constant(flow, [('PT', 'Portugal')], 'code: string, name: string')")
def constant(dataflow: Dataflow, rows: object, schema: SchemaSpec | None = None) -> Collection:
    """Rows that are there from the first epoch on and never change: a small table that a query looks up.

    rows     what an input takes: tuples, dicts, a table, a frame. A row that is written twice is there twice
    schema   its columns; may be left out for a table or frame, which has its own

    The rows are part of the query, and travel with it: up to 1 MiB of them. For more, or for rows that
    change, declare an input. SQL: VALUES. Rust: `to_stream` of an iterator.
    Raises SchemaError for rows that do not fit.
    """
    site = call_site()
    if schema is None and foreign_fields(rows) is None:
        raise SchemaError(
            f"dd.constant ({site}): write the columns of these rows behind them, such as "
            f"dd.constant(flow, rows, 'code: string, name: string'); {shown(rows)} does not say which it has"
        )
    declared = Schema.of(rows if schema is None else schema)
    if not declared.columns:
        raise no_columns("dd.constant(flow, rows, schema)", ONE_COLUMN)
    table = client_table(rows, declared.to_arrow(), f"constant ({site})")
    node = ConstantRows.of(table, declared, f"constant ({site})")
    if len(node.written) > CONSTANT_BYTES_MAX:
        raise SchemaError(
            f"dd.constant ({site}): {counted(table.num_rows, 'row')} take {len(node.written):,} bytes, and a "
            f"query may have {CONSTANT_BYTES_MAX:,} in one constant. Declare an input, and insert them there"
        )
    plan = Plan.of(dataflow)
    return Collection(plan, plan.add(node))


def announcements(dataflow: Dataflow, name: str = "routes") -> Collection:
    """A named input of changes of routing, for joins with `balance=dd.Routed(…)`: rows of eight integers.

    `timely.routing.announcement.Changes` makes these rows.
    """
    return input(dataflow, name, ANNOUNCED)


def imported(flow: Dataflow, owner: int | str, name: str, schema: SchemaSpec) -> Collection:
    """A collection that the dataflow `owner` of this cluster exports as `name`, from its present state on.

    `owner` is its number (`Flow.index`) or its name; the last part of the name will do: `mentions` for
    "my_queries:mentions". The columns are those of `schema`, in that order. Its epochs are those of this
    dataflow, whose own inputs begin with the same one.
    """
    declared = Schema.of(schema)
    plan = Plan.of(flow)
    node = Import(declared, owner, name)
    if node.digest not in plan.streams:
        node = plan.imported(node)
    return Collection(plan, plan.add(node))


@written_as("collection(stream, 'customer: string, cents: int')")
def collection(stream: Stream, schema: SchemaSpec) -> Collection:
    """A stream of records (row, diff), of the input or of a stage written by hand, as a collection.

    A row is a tuple, or a list, of values in the order of the columns of `schema`. It comes `diff` times, or
    goes if `diff` is below 0, at the time of its record: a stream in a loop gives a collection in that loop.
    A record that does not fit ends the dataflow with a SchemaError, which shows it. The way back:
    `collection.stream()`.
    """
    handed_in: object = stream
    if not isinstance(handed_in, Stream) or not isinstance(stream.dataflow, Dataflow | Sketch):
        what = "is a collection already" if isinstance(handed_in, Collection) else "is no stream"
        raise SchemaError(
            f"dd.collection(stream, schema) ({call_site()}) takes a stream of records (row, diff), such as "
            f"dataflow.input(name), what a stage returns, or collection.stream(); {shown(handed_in)} {what}"
        )
    declared, site = Schema.of(schema), str(call_site())
    if not declared.columns:
        raise no_columns("dd.collection(stream, schema)", ONE_COLUMN)
    (rows,) = stream.dataflow.stage(
        "collection", lambda: OutOfRecordsVertex(declared, site), [stream.feed()], detail=f"({declared})"
    )
    if isinstance(stream.dataflow, Sketch):
        loop = loop_of(stream.dataflow)
        node = loop.plan.by_hand(stream.dataflow, rows.stage_index, 0, declared)
        return Collection(loop.plan, node, loop.loop_path)
    return from_stream(stream.dataflow, rows, declared, _loops_around(stream.dataflow, stream.scope))


def _loops_around(dataflow: Dataflow, scope: Scope) -> tuple[Loop, ...]:
    """Return the loops that a scope is in, outermost first."""
    if scope.parent is None:
        return ()
    return (*_loops_around(dataflow, scope.parent), Loop(dataflow, scope))


def from_stream(
    dataflow: Dataflow, stream: Stream, schema: SchemaSpec, loops: tuple[Loop, ...] = ()
) -> Collection:
    """The output of a hand-written stage (update batches with the columns of `schema`) as a collection.

    `loops` are those that the stream is in, outermost first.
    """
    plan = Plan.of(dataflow)
    leaf = FromStream(Schema.of(schema), plan.from_stream_serial())
    return Collection(plan, plan.leaf(leaf, stream, loops), loops)
