"""The vertices of operators that look at epochs, and the stages behind inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from timely.operators.vertex import Vertex

from ...columns.schema import Schema
from ...expressions.expression import col
from ...operators.edge.table_in import TableIn
from ...operators.timed.during import DuringVertex, OnTimeVertex
from ...operators.timed.keyed_io import KeyedTableIn, entry_schema
from ...operators.timed.latest import CheckedMachine, LatestMachine
from ...operators.vertices import MachineVertex, show_schema
from ..facts import moves_columns
from ..nodes import During, Filter, Input, Node, OnTime, Select

__all__ = ["InputStage", "TimedStage", "content_of", "input_codec", "input_stage", "timed_stage"]


class TimedStage(NamedTuple):
    """The vertex on each worker, and the columns by which to send rows to it; None: rows stay."""

    vertex: Callable[[], Vertex]
    keys: Sequence[str] | None = None


def timed_stage(node: Node, source: Schema) -> TimedStage | None:
    """Return the stage of `node` over rows of `source`; None if it does not look at epochs."""
    if isinstance(node, During):
        start, stop = source.columns[-2:]
        return TimedStage(lambda: DuringVertex((start.words, stop.words)))
    if isinstance(node, OnTime):
        bound, is_late = source.columns[-1].words, node.which == "late"
        return TimedStage(lambda: OnTimeVertex(bound, is_late, source.width))
    return None


def content_of(node: Node) -> str:
    """Return the input whose rows are exactly those of `node`; "" if there is none.

    For a checked input these are the rows without those that were refused.
    """
    if isinstance(node, Input):
        return "" if node.mode == "checked" else node.name
    if not isinstance(node, Select) or not isinstance(node.source, Filter):
        return ""
    below, columns = node.source.source, moves_columns(node)
    if not isinstance(below, Input) or below.mode != "checked" or columns is None:
        return ""
    *rows, refused = below.schema.names
    is_there = (~col(refused)).equals(node.source.condition)
    return below.name if is_there and columns == {name: name for name in rows} else ""


class InputStage(NamedTuple):
    """The stage between the rows that clients send and the collection of an input.

    columns   the columns that come in
    keys      the columns by which rows are sent to workers
    gives     the columns that the vertex gives, in its order
    """

    columns: Schema
    keys: Sequence[str]
    vertex: Callable[[], Vertex]
    gives: Schema


def input_codec(node: Input) -> TableIn | KeyedTableIn:
    """Return the codec that reads the tables of clients."""
    defaults = None if node.defaults is None else node.defaults.table
    if node.mode == "upsert":
        return KeyedTableIn(node.columns, node.name, node.keys, defaults)
    columns = node.columns.columns
    rows = Schema(columns[:-1]) if node.mode == "checked" else node.columns
    return TableIn(rows, node.name, defaults=defaults)


def input_stage(node: Input) -> InputStage | None:
    """Return the stage behind an input; None for one whose collection is just its rows."""
    if node.mode == "upsert":
        ordered = node.columns.reordered(node.keys)
        kw = ordered.picked(node.keys).width
        vw = ordered.width - kw

        def latest(vertex: MachineVertex) -> LatestMachine:
            machine = LatestMachine(kw, vw, vertex.code.guards)
            machine.show_rows(show_schema(ordered))
            return machine

        return InputStage(entry_schema(node.columns), node.keys, lambda: MachineVertex(latest), ordered)
    if node.mode == "checked":
        rows = Schema(node.columns.columns[:-1])

        def checked(vertex: MachineVertex) -> CheckedMachine:
            machine = CheckedMachine(rows.width, vertex.code.guards)
            machine.show_rows(show_schema(rows))
            return machine

        return InputStage(rows, rows.names, lambda: MachineVertex(checked), node.columns)
    return None
