"""Steps of a compiled loop in Python: each does what its vertex would, with the same machines.

A kernel does the same if little is to be done; see `differential/kernels/compiled_loops`. Both use the same
slots and traces, so that either may do any step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from differential.columns.overflow import row_overflow
from differential.columns.packed.parts import each_in, in_order, rows_in, words_in
from differential.columns.update_batch import PackedBatch, UpdateBatch, words_of
from differential.compiled_loops.slots import Slots
from differential.kernels.rows.sort import unpacked
from differential.linear.failures.failing import Failed
from differential.linear.transform import ChainFailures, LinearTransform
from differential.operators.arrangement import ArrangedBatch, arranged
from differential.operators.join import JoinMachine
from differential.operators.machine import Machine
from differential.operators.reduce import ReduceMachine
from differential.operators.vertices import MachineVertex, PassingVertex
from differential.trace.shared import SharedTrace
from progress.compiled.arrays import Int64s
from timely.operators.compiled_loop import LinkUse
from timely.wire.batch import Batch

__all__ = [
    "ArrangeStep",
    "Barrier",
    "Edge",
    "FailedGroups",
    "Failing",
    "FailingStep",
    "IgnoredPort",
    "JoinStep",
    "Look",
    "OtherStep",
    "Step",
    "TransformStep",
    "pass_all",
    "pass_on",
]


class Failing(NamedTuple):
    """A slot in which failures of a chain wait until they leave the loop, as rows of `FAILURES`.

    `rounds`: see `FailureTransform`.
    """

    failures: ChainFailures
    slot: int
    rounds: int

    def take(self, slots: Slots) -> None:
        """Put the failures of the last batch into the slot."""
        self.put(self.failures.take_all(), slots)

    def put(self, failed: Sequence[Failed], slots: Slots) -> None:
        """Put failures into the slot."""
        batch = self.failures.as_batch(failed, self.rounds)
        if batch is not None:
            slots.put(self.slot, batch.words)


class Edge:
    """A connector within a compiled loop, or one that leaves it: from the output of a stage to a slot.

    `use` is None if the edge only passes rows on, unchanged. `outs`: for each worker the slot of its rows, if
    they are divided. `failing`: slots for the failures of rows that the connector has no answer for.
    """

    __slots__ = ("failing", "outs", "slot", "use")

    def __init__(
        self, slot: int, use: LinkUse | None, outs: Sequence[int] = (), failing: Sequence[Failing] = ()
    ) -> None:
        self.slot = slot
        self.use = use
        self.outs = outs
        self.failing = failing

    def carry(self, words: Int64s, slots: Slots) -> None:
        """Put rows into the slot, as they arrive behind the connector."""
        if self.use is None:
            slots.put(self.slot, words)
            return
        if words.shape[1] == 0:
            return
        for failing in self.failing:  # drop failures left by another connector with the same chain
            failing.failures.clear()
        carried = self.use.carry(UpdateBatch(words), int(words[-2].min()))
        for failing in self.failing:
            failing.take(slots)
        if carried is None:
            return
        if not self.outs:
            slots.put(self.slot, words_of(carried[0]))
            return
        for slot, part in zip(self.outs, self.use.divided(*carried), strict=True):
            if isinstance(part, PackedBatch):
                slots.put_packed(slot, part.packed())
            elif part is not None:
                slots.put(slot, words_of(part))


def pass_on(words: Int64s, edges: Iterable[Edge], slots: Slots) -> None:
    """Put rows into all slots that edges lead to."""
    for edge in edges:
        edge.carry(words, slots)


class Step(Protocol):
    """The work on rows of a slot."""

    slot: int
    stage: int

    def work(self, slots: Slots) -> None:
        """Take all rows from the slot and do the step for them."""
        ...


class JoinStep:
    """Rows that a join keeps itself, at one of its ports."""

    def __init__(self, stage: int, slot: int, machine: JoinMachine, port: int, edges: Sequence[Edge]) -> None:
        self.stage = stage
        self.slot = slot
        self.machine = machine
        self.port = port
        self.edges = edges

    def work(self, slots: Slots) -> None:
        """Find matches of the rows, and keep the rows."""
        pairs = self.machine.recv_parts(self.port, slots.take_parts(self.slot))
        pass_all(self.machine, pairs, self.edges, slots)


class Look:
    """A join that reads an arrangement at one of its ports; `use` is the connector between."""

    def __init__(
        self, machine: JoinMachine, port: int, use: LinkUse | None, edges: Sequence[Edge], stage: int
    ) -> None:
        self.machine = machine
        self.port = port
        self.use = use
        self.edges = edges
        self.stage = stage

    def take(self, batch: Batch, slots: Slots) -> None:
        """Find matches of the inserted rows."""
        if self.use is not None:
            carried = self.use.carry(batch, int(arranged(batch).words[-2].min()))
            assert carried is not None, "connectors of an arrangement do not filter"
            batch = carried[0]
        pairs = self.machine.recv_arranged(self.port, [arranged(batch)])
        pass_all(self.machine, pairs, self.edges, slots)


class IgnoredPort:
    """A port for inserts of an arrangement whose reader ignores them: it looks rows up by their times."""

    def __init__(self, stage: int) -> None:
        self.stage = stage

    def take(self, batch: Batch, slots: Slots) -> None:
        """Do nothing."""


def pass_all(machine: JoinMachine, pairs: Int64s, edges: Sequence[Edge], slots: Slots) -> None:
    """Put all pairs of the rows that a join has accepted into slots, piece by piece."""
    pass_on(pairs, edges, slots)
    while not machine.is_done:
        pass_on(machine.work(), edges, slots)


class ArrangeStep:
    """Inserts rows into a trace that others read, and lets each reader look."""

    def __init__(
        self, stage: int, slot: int, trace: SharedTrace, looks: Sequence[Look], edges: Sequence[Edge]
    ) -> None:
        self.stage = stage
        self.slot = slot
        self.trace = trace
        self.looks = looks
        self.edges = edges

    def work(self, slots: Slots) -> None:
        """Insert the rows, and let all readers look."""
        parts = slots.take_parts(self.slot)
        try:
            ordered = in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), self.trace.show) from None
        words = unpacked(ordered)
        del ordered
        if words.shape[1] == 0:
            return
        batch = ArrangedBatch(words, self.trace.add(words))
        for look in self.looks:
            look.take(batch, slots)
        pass_on(words, self.edges, slots)


class TransformStep:
    """Rows on a connector whose transform no kernel supports."""

    def __init__(self, stage: int, slot: int, edge: Edge) -> None:
        self.stage = stage
        self.slot = slot
        self.edge = edge

    def work(self, slots: Slots) -> None:
        """Do what the connector does."""
        for words in each_in(slots.take_parts(self.slot)):
            self.edge.carry(words, slots)


class FailingStep:
    """Rows that, as a kernel has found, a connector may have no answer for."""

    def __init__(self, stage: int, slot: int, transform: LinearTransform, failing: Failing) -> None:
        self.stage = stage
        self.slot = slot
        self.transform = transform
        self.failing = failing

    def work(self, slots: Slots) -> None:
        """Put a failure into the slot for each row without an answer."""
        for words in each_in(slots.take_parts(self.slot)):
            self.failing.put(self.transform.apart(words).failed, slots)


class OtherStep:
    """A vertex without state of its own."""

    def __init__(self, stage: int, slot: int, vertex: PassingVertex, edges: Sequence[Edge]) -> None:
        self.stage = stage
        self.slot = slot
        self.vertex = vertex
        self.edges = edges

    def work(self, slots: Slots) -> None:
        """Do what the vertex does."""
        for words in each_in(slots.take_parts(self.slot)):
            for part in self.vertex.passed(words):
                pass_on(part, self.edges, slots)


class FailedGroups(NamedTuple):
    """A reduce that may have groups without an answer, and the slot in which these wait to leave the loop."""

    vertex: MachineVertex
    slot: int


class Barrier:
    """A reduce, first rows, a lookup or a consolidation: rows wait here until their times are complete."""

    def __init__(
        self,
        stage: int,
        slot: int,
        pending: int,
        machine: Machine,
        edges: Sequence[Edge],
        failed: FailedGroups | None = None,
    ) -> None:
        self.failed = failed
        self.stage = stage
        self.slot = slot
        self.pending = pending
        self.machine = machine
        self.edges = edges
        self.held: Int64s = np.empty(0, np.int64)
        """The minimal times of rows that wait in the machine."""

    def open(self, frontier: Int64s, slots: Slots) -> None:
        """Answer for all times that are complete."""
        machine = self.machine
        # The list has the only references to the parts, so that the machine can free them while it sums.
        machine.recv(0, [part for part in slots.take_parts(self.slot) if rows_in([part])])
        if self.pending >= 0 and slots.rows(self.pending):
            assert isinstance(machine, ReduceMachine)
            machine.recv_pending(np.ascontiguousarray(slots.take(self.pending)))
        machine.advance(frontier)
        while (rows := machine.work()) is not None:
            pass_on(rows, self.edges, slots)
        if self.failed is not None:
            words = self.failed.vertex.failures()
            if words is not None:
                slots.put(self.failed.slot, words)
        self.held = machine.needs()
