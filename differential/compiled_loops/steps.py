"""What a step of a compiled loop does when Python does it: as its vertex would, and with the same machines.

A kernel does the same where little is to be done; see `differential/kernels/compiled_loops`. Both find rows
in the same slots and traces, so that either may do any step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from differential.columns.overflow import row_overflow
from differential.columns.packed.parts import each_in, in_order, rows_in, words_in
from differential.columns.update_batch import PackedBatch, UpdateBatch, words_of
from differential.compiled_loops.slots import Slots
from differential.kernels.rows.sort import PackedRows
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
    "JoinStep",
    "Look",
    "OtherStep",
    "Step",
    "TransformStep",
    "Unheard",
    "pass_all",
    "pass_on",
]


class Failing(NamedTuple):
    """Where the failures of a chain wait until they leave the compiled loop, as rows of `FAILURES`. `rounds`:
    see `FailureTransform`.
    """

    failures: ChainFailures
    slot: int
    rounds: int

    def take(self, slots: Slots) -> None:
        """Put what has failed of the last batch into the slot."""
        self.put(self.failures.take_all(), slots)

    def put(self, failed: Sequence[Failed], slots: Slots) -> None:
        """Put what has failed into the slot."""
        batch = self.failures.as_batch(failed, self.rounds)
        if batch is not None:
            slots.put(self.slot, batch.words)


class Edge:
    """A connector within a compiled loop, or one that leaves it: from what a stage sends to a slot.

    `use` is None if it is only a way: what is put in comes out. `outs`: for each worker the slot of its
    rows, if they are divided. `failing`: where rows go that the connector has no answer for.
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
        """Put rows into the slot, as they arrive there."""
        if self.use is None:
            slots.put(self.slot, words)
            return
        if words.shape[1] == 0:
            return
        for failing in self.failing:  # what another connector with the same chain has found
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
    """What is done with the rows of a slot."""

    slot: int
    stage: int

    def work(self, slots: Slots) -> None:
        """Take up all that waits in the slot."""
        ...


class JoinStep:
    """Rows of a join's own, at one of its ports."""

    def __init__(self, stage: int, slot: int, machine: JoinMachine, port: int, edges: Sequence[Edge]) -> None:
        self.stage = stage
        self.slot = slot
        self.machine = machine
        self.port = port
        self.edges = edges

    def work(self, slots: Slots) -> None:
        """Match and keep them."""
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
        """Match what was inserted."""
        if self.use is not None:
            carried = self.use.carry(batch, int(arranged(batch).words[-2].min()))
            assert carried is not None, "rows of an arrangement are not filtered on their way"
            batch = carried[0]
        pairs = self.machine.recv_arranged(self.port, [arranged(batch)])
        pass_all(self.machine, pairs, self.edges, slots)


class Unheard:
    """A port of an arrangement whose reader sees all rows by their times, and hears of no insert."""

    def __init__(self, stage: int) -> None:
        self.stage = stage

    def take(self, batch: Batch, slots: Slots) -> None:
        """Do nothing."""


def pass_all(machine: JoinMachine, pairs: Int64s, edges: Sequence[Edge], slots: Slots) -> None:
    """Put all pairs of what a join has accepted into slots, piece by piece."""
    pass_on(pairs, edges, slots)
    while not machine.is_done:
        pass_on(machine.work(), edges, slots)


class ArrangeStep:
    """Rows go into a trace that others read, each of whom is told."""

    def __init__(
        self, stage: int, slot: int, trace: SharedTrace, looks: Sequence[Look], edges: Sequence[Edge]
    ) -> None:
        self.stage = stage
        self.slot = slot
        self.trace = trace
        self.looks = looks
        self.edges = edges

    def work(self, slots: Slots) -> None:
        """Insert, and let all look."""
        parts = slots.take_parts(self.slot)
        try:
            found = in_order(parts)
        except OverflowError:
            raise row_overflow(words_in(parts), self.trace.show) from None
        words = found.unpack(0, found.rows) if isinstance(found, PackedRows) else found
        del found
        if words.shape[1] == 0:
            return
        batch = ArrangedBatch(words, self.trace.add(words))
        for look in self.looks:
            look.take(batch, slots)
        pass_on(words, self.edges, slots)


class TransformStep:
    """Rows on a connector whose transform no kernel knows."""

    def __init__(self, stage: int, slot: int, edge: Edge) -> None:
        self.stage = stage
        self.slot = slot
        self.edge = edge

    def work(self, slots: Slots) -> None:
        """As the connector does."""
        for words in each_in(slots.take_parts(self.slot)):
            self.edge.carry(words, slots)


class FailingStep:
    """Rows of which a kernel has found that a connector may have no answer for them."""

    def __init__(self, stage: int, slot: int, transform: LinearTransform, failing: Failing) -> None:
        self.stage = stage
        self.slot = slot
        self.transform = transform
        self.failing = failing

    def work(self, slots: Slots) -> None:
        """Say of each why."""
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
        """As the vertex does."""
        for words in each_in(slots.take_parts(self.slot)):
            for part in self.vertex.passed(words):
                pass_on(part, self.edges, slots)


class FailedGroups(NamedTuple):
    """A reduce that may find groups without an answer, and where these wait until they leave the loop."""

    vertex: MachineVertex
    slot: int


class Barrier:
    """A reduce or a consolidation: rows wait until their times are complete."""

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
        """The minimal times of what waits in the machine."""

    def open(self, frontier: Int64s, slots: Slots) -> None:
        """Answer what is complete."""
        machine = self.machine
        # Nobody else holds the parts where the machine sums them, and lets go of them.
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
