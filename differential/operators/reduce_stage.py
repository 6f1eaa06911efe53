"""Reduce as a stage: of rows that come to it, or of an arrangement; its answers may be an arrangement,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from differential.columns.schema import Schema
from differential.operators.arrange import Arranged, arrangement_feed
from differential.operators.arrangement import Arrangement, read_arrangement
from differential.operators.ordered.layout import InOrder
from differential.operators.ordered.machine import FirstMachine
from differential.operators.ordered.windows import WindowOrder
from differential.operators.reduce import Accumulation, Aggregates, GroupFunction, ReduceMachine
from differential.operators.reducing.failed_groups import GroupFailures
from differential.operators.reducing.group_values import GroupAnswers
from differential.operators.timed.sweep import SweepFunction
from differential.operators.vertices import Components, MachineVertex, show_schema
from timely.building.stream import Feed, Stream

__all__ = ["DisplaySchemas", "ReduceStreams", "reduce_stage"]


class ReduceStreams(NamedTuple):
    """The streams of a reduce: changes of its answers, their arrangement, if it shares them, and its
    failures, if there may be any.
    """

    rows: Stream
    answers: Arranged | None
    failures: Stream | None


class DisplaySchemas(NamedTuple):
    """The schemas with which messages of a reduce show keys, rows and answers, and the names of
    aggregates.
    """

    key: Schema
    row: Schema
    answer: Schema
    names: tuple[str, ...] = ()


def reduce_stage(
    source: Arranged | Sequence[Feed],
    widths: tuple[int, int],
    aggregate: Aggregates | Accumulation | GroupFunction | SweepFunction | GroupAnswers | InOrder,
    shown: DisplaySchemas | None = None,
    *,
    shares: bool,
    name: str = "",
    detail: str = "",
) -> ReduceStreams:
    """Add a stage that keeps the answer of each group right; `shares`: the answers are an arrangement, too.

    source   an arrangement; or feeds to port 0 (rows key first, routed by key), which the reduce keeps itself
    widths   key words and value words of its rows
    For a `GroupFunction`, `detail` says what it does, so that workers can compare it.

    A distinct is a reduce whose key is the whole row, without aggregates.
    """
    kw, vw = widths
    reads = isinstance(source, Arranged)
    fails = isinstance(aggregate, Accumulation | WindowOrder) and aggregate.may_overflow
    feeds = [arrangement_feed(source)] if isinstance(source, Arranged) else list(source)
    answer = None if shown is None else shown.answer

    def make(vertex: MachineVertex) -> ReduceMachine | FirstMachine:
        guards = vertex.code.guards
        if isinstance(aggregate, InOrder):
            return FirstMachine(aggregate, guards)
        read = read_arrangement(vertex, 0, by_position=False) if reads else None
        machine = ReduceMachine(kw, vw, guards, aggregate, read, vertex.shared)
        if shown is not None:
            key, row, _, names = shown
            machine.show_rows(show_schema(key), show_schema(row), show_schema(answer), names)
        machine.fails = fails
        return machine

    def vertex() -> MachineVertex:
        arrangement = Arrangement(kw, aggregate.words, show_schema(answer)) if shares else None
        failures = components = None
        if isinstance(aggregate, Accumulation):
            components = Components(aggregate.components, kw)
        if isinstance(aggregate, Accumulation | WindowOrder) and fails:
            names = () if shown is None else shown.names
            failures = GroupFailures(aggregate.formulas, None if shown is None else shown.key, names)
        reading = (0,) if reads else ()
        return MachineVertex(make, arrangement, reading, failures=failures, components=components)

    assert not (reads and isinstance(aggregate, InOrder)), "an arrangement has another order"
    outputs = feeds[0].stream.dataflow.stage(
        name or "reduce",
        vertex,
        feeds,
        outputs=1 + shares + fails,
        detail=f"{kw} key and {vw} value words, {detail or aggregate}",
    )
    answers = Arranged(outputs[1], kw, aggregate.words, answer) if shares else None
    return ReduceStreams(outputs[0], answers, outputs[-1] if fails else None)
