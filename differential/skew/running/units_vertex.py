"""Units as a vertex: its messages, frontiers and rights. The logic is in `units.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from differential.columns.overflow import show_words
from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch, words_of
from differential.operators.vertices import OperatorVertex, joined_words, show_schema
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.wire.batch import Batch

from ..placements.placement import Placement
from .schedule import Schedule
from .units import Shape, SideFrontiers, ToTheFirst, Units

__all__ = ["ARRIVING", "CONTROL", "KEPT", "LEAVING", "LOADS", "OUTPUTS", "PROBING", "UnitsVertex"]

CONTROL: Final = 0
KEPT: Final = (1, 2)
ARRIVING: Final = (3, 4)
PROBING: Final = (5, 6)
"""Input ports, of the left and the right; in cells no row only probes."""
LEAVING: Final = (1, 2)
LOADS: Final = 3
OUTPUTS: Final = 4
"""Outputs; the first one has the pairs."""

_ROWS_ENOUGH: Final = 4_096
"""Number of pairs that is enough for one activation: small pieces leave together."""


class UnitsVertex(OperatorVertex):
    """All units of a worker."""

    wants_frontier: ClassVar[bool] = True

    def __init__(
        self, shape: Shape, placement: Placement, lead: int, schemas: tuple[Schema, Schema] | None = None
    ) -> None:
        """`schemas`: of the rows of either side, the unit in front, for messages."""
        super().__init__()
        self._shape = shape
        self._placement = placement
        self._lead = lead
        self._schemas = schemas

    def on_start(self) -> None:
        """Make the units, which need to know how times are made."""
        shift, bits = self.code.fields[0]
        code = (self.code.guards, shift, (1 << bits) - 2, self.code.unit)
        schedule = Schedule(self._placement, self._lead, shift, self.code.anchor)
        self._units = Units(self._shape, schedule, code, counts=bool(self.connectors(LOADS)))
        schemas = self._schemas
        self._units.show_rows(
            (show_words, show_words) if schemas is None else [show_schema(each) for each in schemas]
        )

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Store rows, let rows probe or arrive, or note announcements."""
        units = self._units
        if port == CONTROL:
            for _, batch in messages:
                units.note(words_of(batch))
        elif port in KEPT:
            units.keep(KEPT.index(port), joined_words(messages))
        elif port in ARRIVING:
            units.arrive(ARRIVING.index(port), joined_words(messages))
        else:
            units.probe(PROBING.index(port), joined_words(messages))
        # Frontiers alone decide which rows may be answered, and which leave: they move when this is done.
        self._let_go()

    def on_frontier(self) -> None:
        """Let rows leave, and answer others."""
        self._go_on()

    def on_resume(self) -> None:
        """Make the next piece."""
        self._go_on()

    def _go_on(self) -> None:
        units = self._units
        ports: tuple[Sequence[int], ...] = (KEPT, () if self._placement.is_cells else PROBING, ARRIVING)
        stored, probing, arriving = ([self.frontier_words(port) for port in each] for each in ports)
        units.advance(SideFrontiers(stored, probing, arriving, self.frontier_words(CONTROL)))
        pieces: list[Int64s] = []
        while not units.is_idle and sum(piece.shape[1] for piece in pieces) < _ROWS_ENOUGH:
            pieces.append(units.work())
        if pieces:
            self.send_rows(pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1))
        for moved in units.moved:
            self.send(LEAVING[moved.side], UpdateBatch(moved.words), moved.time)
        units.moved.clear()
        self._let_go()
        if not units.is_idle:
            self.resume()

    def _let_go(self) -> None:
        """Send the loads that have come up, and hold the times that are needed."""
        units = self._units
        if units.loads:
            loads = np.concatenate(units.loads, axis=1)
            units.loads.clear()
            for envelope, rows in self.parts_by_envelope(np.ascontiguousarray(loads)):
                self.send(LOADS, UpdateBatch(rows), envelope)
        self.hold_words(units.capabilities())

    def rebase(self, by: Rebase) -> None:
        """Rebase stored rows and versions; a version without a time of its own until now may be due."""
        super().rebase(ToTheFirst(by.epochs, self.code.fields[0][0]))
        self._units.rebase(by)
        self.resume()

    def symbols(self, mark: Mark) -> None:
        """Show the words of stored and waiting rows."""
        self._units.symbols(mark)

    def traces(self) -> list[Trace]:
        """The traces of either side."""
        return self._units.traces
