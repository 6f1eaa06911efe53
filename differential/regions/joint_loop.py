"""A loop as one worker's share of a joint region: it stops at each gate, and rows wait for other workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, packed
from differential.kernels.loading import prepare
from differential.kernels.regions.gates import find_next_in, next_gate
from differential.kernels.regions.layout import (
    DONE,
    FAR,
    NO_TURNS,
    P_PLACES,
    S_COLUMNS,
    S_COMPONENTS,
    S_NEXT,
    WAITS,
    X_BOUND,
    X_FROM,
    X_NOW,
)
from differential.kernels.sums.components import are_components
from differential.operators.waiting.gathered import GATHERED_ROWS_MAX
from differential.regions.beats import BeatBatch, column_of
from differential.regions.by_rings import STOPS, ByRings
from differential.regions.loop_region import LoopRegion
from differential.regions.tables import Parts
from progress.compiled.arrays import Int64s
from progress.errors import PeerError
from timely.operators.region import Going, Said, Went
from timely.wire.batch import Batch

__all__ = ["PACKED_ROWS_MIN", "JointLoop"]

_ANY_NUMBER = 1 << 62

PACKED_ROWS_MIN: Final = 1 << 12
"""So many rows for a slot of another worker go to it packed."""


class JointLoop(LoopRegion):
    """See `JointRegion`."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        gates = {gate.slot: number for number, gate in parts.gates.items()}
        self._to_gates = {out.slot: gates[out.target] for out in parts.outs if out.target in gates}
        """Of slots for other workers whose rows go to gates: which gate."""
        self._elsewhere = [out.slot for out in parts.outs if out.target not in gates]
        self._targets = {out.target for out in parts.outs}
        self._outs: Int64s = np.array([out.slot for out in parts.outs], np.int64)
        prepare(find_next_in, "ltl")
        prepare(next_gate, "tttl")
        self._by_rings = ByRings(parts, self._to_gates, self._state, self._told)

    def close(self, start: int, bound: int) -> None:
        """See `JointRegion`."""
        self._state[X_FROM], self._state[X_BOUND] = start, bound
        self._slots.bound = bound
        find_next_in(self._outs, self._slots.table, self._state)
        self._begin()  # and so found among what is packed, too

    def rests(self) -> bool:
        """Rows of epochs that are still open wait where they came in until these are closed, unless they are
        very many: own rows and those of others are one run then, as `Gathered` has it.
        """
        slots, waiting = self._slots, 0
        for slot in self._parts.passing:
            waiting += slots.rows(slot)
        return waiting + slots.packed_rows < GATHERED_ROWS_MAX

    def pass_on(self) -> None:
        """See `JointRegion`."""
        self._do_all(0)

    def open(self, gate: int, counters: int) -> None:
        """See `JointRegion`."""
        self._do_all(1 if self._here() == (gate, counters) else 0)

    def send(self) -> None:
        """See `JointRegion`."""
        super().send()
        self._slots.tidy()

    def _do_all(self, turns: int) -> None:
        """Open so many gates, and do all that needs none."""
        why = self._work(turns, _ANY_NUMBER)
        assert why in (DONE, NO_TURNS), why

    def _here(self) -> tuple[int, int] | None:
        """The gate that opens next for what waits here."""
        parts = self._parts
        gate = int(next_gate(parts.steps, self._slots.table, parts.fields, self._state))
        return None if gate < 0 else (gate, int(self._state[X_NOW]))

    def next_gate(self) -> tuple[int, int] | None:
        """See `JointRegion`."""
        table, here = self._slots.table, self._here()
        found = [(gate, int(table[slot, S_NEXT])) for slot, gate in self._to_gates.items()]
        found = [each for each in found if each[1] != FAR]
        if here is not None:
            found.append(here)
        return min(found, key=lambda each: self.order(*each), default=None)

    def order(self, gate: int, counters: int) -> tuple[int, ...]:
        """See `comes_first` in `gates.py`."""
        parts = self._parts
        found: list[int] = []
        for level in range(1, parts.levels[gate] + 1):
            shift, mask = parts.fields[:, level].tolist()
            found += [(counters >> shift) & mask, int(parts.steps[gate, P_PLACES + level - 1])]
        return tuple(found)

    def passes(self) -> bool:
        """See `JointRegion`."""
        return any(self._slots.table[slot, S_NEXT] != FAR for slot in self._elsewhere)

    def beat(self, said: Said, peer: int) -> Batch:
        """See `JointRegion`."""
        parts: list[tuple[int, Part]] = []
        symbols: list[Int64s] = []
        for out in self._parts.outs:
            if out.peer == peer and self._slots.rows(out.slot):
                words = sorted(self._parts.symbol_words[out.target])
                for part in _to_send(self._slots.take_parts(out.slot)):
                    parts.append((out.target, part))
                    symbols += [column_of(part, word) for word in words]
        return BeatBatch(said, tuple(parts), tuple(symbols))

    def said(self, beat: Batch) -> Said:
        """See `JointRegion`."""
        assert isinstance(beat, BeatBatch)
        return beat.said

    @property
    def beat_kind(self) -> int:
        """See `JointRegion`."""
        return BeatBatch.KIND

    def go_on(self, going: Going) -> Went:
        """See `JointRegion`."""
        parts, rings = self._parts, self._by_rings
        parts.lend()
        rings.begin(going)
        while True:
            try:
                why = rings.call(self._gates)
            except OverflowError:
                if not self._do_again():
                    raise
                continue
            if why == WAITS and going.lent.looks_out(rings.number):
                continue
            if why in STOPS:
                break
            self._help(why)
        parts.traces.take_back()
        return rings.went(why)

    def hear(self, beat: Batch) -> None:
        """See `JointRegion`."""
        assert isinstance(beat, BeatBatch)
        worker, gate = beat.said.worker, beat.said.gate
        if gate >= 0 and gate not in self._parts.gates:
            raise PeerError(f"worker {worker} named gate {gate} of a loop, which has none such")
        for slot, part in beat.parts:
            columns = part.columns if isinstance(part, Block) else part.shape[0]
            if slot not in self._targets or columns != self._slots.table[slot, S_COLUMNS]:
                raise PeerError(
                    f"worker {worker} sent rows of {columns} words for slot {slot} of a loop, "
                    "which are none of those that come from others"
                )
            components = int(self._slots.table[slot, S_COMPONENTS])
            if components and not are_components(column_of(part, -3).reshape(1, -1), 0, components):
                raise PeerError(
                    f"worker {worker} sent rows for slot {slot} of a loop, which are of none of "
                    f"its {components:,} components"
                )
            if isinstance(part, Block):
                self._slots.put_packed(slot, [part])
            else:
                self._slots.put(slot, np.ascontiguousarray(part))


def _to_send(parts: list[Part]) -> Iterator[Part]:
    """The same rows, packed where they are many: they are a few bytes each on their way, and there."""
    for part in parts:
        if isinstance(part, Block) or part.shape[1] < PACKED_ROWS_MIN:
            yield part
        else:
            yield from packed(part)
