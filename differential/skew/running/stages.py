"""From two sides and announcements to stages: a router for each side, and the units in a loop of their own.

    left   ─ router ─┬─ kept ────┐ (e, 1)
                     └─ probing ─┤
    announcements ───────────────┼─ units ─┬─ pairs
    right  ─ router ─┬─ kept ────┤    ↑    ├─ loads
                     └─ probing ─┘    └────┴─ moving rows: sent at (v, 0), there at (v, 1)

Rows come into the loop one iteration late. So rows that move at v, which are sent at (v, 0), are there at the
time of those rows and not behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from differential.columns.routes import UnitRoute
from differential.columns.schema import Schema
from differential.linear.placing import placed
from timely.building.exchange import Broadcast
from timely.building.loop import Loop
from timely.building.stream import Feed, Stream
from timely.routing.table import SIDES

from ..placements.placement import Placement
from . import router
from .router import UnitRouterVertex
from .units import Shape
from .units_vertex import ARRIVING, CONTROL, KEPT, LEAVING, LOADS, OUTPUTS, PROBING, UnitsVertex

__all__ = ["SpreadStreams", "UnitsJoin"]


class SpreadStreams(NamedTuple):
    """The streams of a join in units: its pairs, and the loads of units."""

    pairs: Stream
    loads: Stream


@dataclass(frozen=True)
class UnitsJoin:
    """A join in units. `schemas`: the columns of either side, keys first; `lead`: see `schedule.py`."""

    name: str
    schemas: tuple[Schema, Schema]
    shape: Shape
    placement: Placement
    lead: int

    def stages(
        self, sides: tuple[Sequence[Feed], Sequence[Feed]], announcements: Sequence[Feed]
    ) -> SpreadStreams:
        """Make its stages, all in the root scope; feeds bring rows laid out keys first."""
        flow = announcements[0].stream.dataflow
        loop = Loop.inside(flow, announcements[0].stream.scope, "units")
        feeds = [
            replace(feed, stream=loop.enter(feed.stream), port=CONTROL, route=Broadcast())
            for feed in announcements
        ]
        back = [loop.feedback() for _ in SIDES]
        for side in SIDES:
            rows = placed(self.schemas[side])
            route = UnitRoute(rows.symbol_words, 0, rows.width)
            moved = replace(route, width=rows.width + 1)  # with an age
            stored, probing = self._routed(side, sides[side], announcements)
            feeds.append(_later(loop, stored).feed(KEPT[side], route=route))
            feeds.append(back[side].stream.feed(ARRIVING[side], route=moved))
            if not self.placement.is_cells:
                feeds.append(_later(loop, probing).feed(PROBING[side], route=route))
        shape, placement, lead = self.shape, self.placement, self.lead
        row_schemas = placed(self.schemas[0]), placed(self.schemas[1])
        outputs = flow.stage(
            f"{self.name} in units",
            lambda: UnitsVertex(shape, placement, lead, row_schemas),
            feeds,
            outputs=OUTPUTS,
            detail=f"{self._detail()} {shape}",
        )
        for side in SIDES:
            back[side].connect(outputs[LEAVING[side]])
        loop.check_connected()
        return SpreadStreams(loop.leave(outputs[0]), loop.leave(outputs[LOADS]))

    def _routed(
        self, side: int, rows: Sequence[Feed], announcements: Sequence[Feed]
    ) -> tuple[Stream, Stream]:
        """Make the router of a side; return the stream of rows to be stored, and that of rows that probe."""
        keys, placement, lead = self.shape.keys, self.placement, self.lead
        feeds = [replace(feed, port=router.ROWS, route=None) for feed in rows]
        feeds += [replace(feed, port=router.CONTROL, route=Broadcast()) for feed in announcements]
        stored, probing = rows[0].stream.dataflow.stage(
            f"{self.name}: {('left', 'right')[side]} to units",
            lambda: UnitRouterVertex(side, keys, placement, lead),
            feeds,
            outputs=2,
            detail=f"{self._detail()} {side}",
        )
        return stored, probing

    def _detail(self) -> str:
        scheme, units = self.placement.name, self.placement.first.units
        return f"{scheme}, {units} units, lead {self.lead}, ({self.schemas[0]}) with ({self.schemas[1]})"


def _later(loop: Loop, stream: Stream) -> Stream:
    """Return `stream` within the loop, one iteration late."""
    late = loop.feedback()
    late.connect(loop.enter(stream))
    return late.stream
