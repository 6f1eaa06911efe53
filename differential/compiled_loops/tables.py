"""A compiled loop as tables, with the Python object behind each of its steps.

`layout.py` in `differential/kernels/compiled_loops` describes the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from differential.compiled_loops.carrying import Carrying
from differential.compiled_loops.copying import copied
from differential.compiled_loops.slots import Slots
from differential.compiled_loops.steps import Barrier, IgnoredPort, Look, Step
from differential.compiled_loops.traces import Traces
from differential.kernels.compiled_loops.layout import (
    E_ADD,
    E_BUCKETS,
    E_IS_ROUND,
    E_KEEP,
    E_LAST,
    E_MASK,
    E_OUTS,
    E_OWNERS,
    E_PROJECTION,
    E_ROUTE,
    E_ROUTED_BY,
    E_SHIFT,
    E_SIGN,
    E_SLOT,
    E_TESTS,
    E_TESTS_COUNT,
    E_WORDS,
    E_WORKERS,
    EDGE,
    FAR,
    M_EDGE,
    M_EDGES,
    M_PROJECTION,
    M_VIA,
    MATCH,
    P_EDGE,
    P_EDGES,
    P_MATCH,
    P_MATCHES,
    P_PARTS,
    P_SHAPE,
    STEP,
)
from progress.compiled.arrays import Int64s
from timely.operators.compiled_loop import LinkUse
from timely.operators.vertex import Vertex

__all__ = ["EdgeRoute", "GrowingTable", "Leaving", "Out", "Parts", "Refresher"]


class Out(NamedTuple):
    """A slot for rows that go to another worker.

    slot     where they wait here
    peer     the worker that they go to
    target   the slot in which they wait there
    """

    slot: int
    peer: int
    target: int


class EdgeRoute(NamedTuple):
    """How an edge divides its rows between workers.

    kind     `BY_KEY` or `BY_UNIT`; by: number of key words, or the word that has the bucket
    owners   int64[1, buckets]: the worker of each bucket
    slots    by worker: the slot in which its rows wait here
    """

    kind: int
    by: int
    owners: Int64s
    slots: Sequence[int]


class Leaving(NamedTuple):
    """Rows that wait in a slot to leave by connectors, all of which move times to `(t & keep) + add`.

    way   "summed": with the iterations of each epoch added up; "as they are"; or "made": as they are, with
          the connectors' transforms applied already
    """

    slot: int
    uses: list[LinkUse]
    keep: int
    add: int
    way: Literal["summed", "as they are", "made"] = "summed"


class GrowingTable:
    """A table that grows line by line."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._lines: list[Int64s] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self) -> Int64s:
        """Add a line of zeros and return it, to be written to."""
        self._lines.append(np.zeros(self._width, np.int64))
        return self._lines[-1]

    def drop(self) -> None:
        """Drop all lines."""
        self._lines.clear()

    def table(self) -> Int64s:
        """Return all lines as one array."""
        return np.array(self._lines, np.int64).reshape(len(self._lines), self._width)


class Refresher(Protocol):
    """Lets a step name the trace that is still used; an object, so that the copy of a loop has its own."""

    def __call__(self, parts: Parts) -> None:
        """Write to the tables of `parts`."""
        ...


@dataclass
class Parts:
    """The parts of a compiled loop; `arrays` holds the arrays that tables name by address."""

    fields: Int64s
    epoch_shift: int
    traces: Traces = field(default_factory=Traces)
    step_rows: GrowingTable = field(default_factory=lambda: GrowingTable(STEP))
    match_rows: GrowingTable = field(default_factory=lambda: GrowingTable(MATCH))
    edge_rows: GrowingTable = field(default_factory=lambda: GrowingTable(EDGE))
    uses: dict[int, LinkUse] = field(default_factory=dict)
    barriers: dict[int, Barrier] = field(default_factory=dict)
    others: dict[int, Step] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    looks: dict[tuple[int, int], Look | IgnoredPort] = field(default_factory=dict)
    entries: dict[tuple[int, int], int] = field(default_factory=dict)
    passing: list[int] = field(default_factory=list)
    leaving: list[Leaving] = field(default_factory=list)
    outs: list[Out] = field(default_factory=list)
    symbol_words: dict[int, set[int]] = field(default_factory=dict)
    vertices: list[Vertex] = field(default_factory=list)
    refreshers: list[Refresher] = field(default_factory=list)
    arrays: list[Int64s] = field(default_factory=list)
    steps: Int64s = field(default_factory=lambda: np.zeros((0, STEP), np.int64))
    matches: Int64s = field(default_factory=lambda: np.zeros((0, MATCH), np.int64))
    edges: Int64s = field(default_factory=lambda: np.zeros((0, EDGE), np.int64))
    slots: Slots = field(init=False)

    def __post_init__(self) -> None:
        self.slots = Slots((1 << self.epoch_shift) - 1)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the parts of a copied loop: its tables name the copies of `arrays`."""
        parts = copied(self, memo)
        moved = {
            array.ctypes.data: other.ctypes.data
            for array, other in zip(self.arrays, parts.arrays, strict=True)
        }
        moved[0] = 0  # names nothing
        for table, columns in (
            (parts.steps, (P_SHAPE, P_PARTS)),
            (parts.matches, (M_PROJECTION,)),
            (parts.edges, (E_PROJECTION, E_TESTS, E_OWNERS, E_OUTS)),
        ):
            for column in columns:
                table[:, column] = [moved[address] for address in table[:, column].tolist()]
        return parts

    def close(self) -> None:
        """Make arrays of all lines; no line is added after this."""
        self.steps, self.matches = self.step_rows.table(), self.match_rows.table()
        self.edges = self.edge_rows.table()
        for lines in (self.step_rows, self.match_rows, self.edge_rows):
            lines.drop()

    @property
    def counts_max(self) -> int:
        """Most round counts that a step may note: each match has edges of its own."""

        def rounds(first: int, last: int) -> int:
            return int(np.count_nonzero(self.edges[first:last, E_IS_ROUND]))

        looks = [
            rounds(line[M_EDGE], line[M_EDGES]) + (line[M_VIA] >= 0 and rounds(line[M_VIA], line[M_VIA] + 1))
            for line in self.matches.tolist()
        ]
        return max(
            (
                rounds(line[P_EDGE], line[P_EDGES]) + sum(looks[line[P_MATCH] : line[P_MATCHES]])
                for line in self.steps.tolist()
            ),
            default=0,
        )

    def keep(self, array: Int64s) -> int:
        """Hold an array for the life of the loop; return its address."""
        array = np.ascontiguousarray(array)
        self.arrays.append(array)
        return int(array.ctypes.data)

    def add_edge(
        self,
        slot: int,
        words: int,
        carrying: Carrying | None,
        use: LinkUse | None,
        routed: EdgeRoute | None = None,
    ) -> int:
        """Add a line for an edge, and return its number.

        Without `carrying` rows of `words` words arrive unchanged.
        """
        line = self.edge_rows.add()
        number = len(self.edge_rows) - 1
        line[E_SLOT], line[E_WORDS], line[E_KEEP], line[E_SIGN], line[E_LAST] = slot, words, -1, 1, FAR
        if carrying is not None:
            line[E_KEEP], line[E_ADD], line[E_SIGN] = carrying.keep, carrying.add, carrying.sign
            line[E_SHIFT], line[E_MASK], line[E_LAST] = carrying.limit
            line[E_IS_ROUND] = carrying.is_round
            if carrying.words is not None:
                line[E_PROJECTION] = self.keep(carrying.words)
                line[E_WORDS] = carrying.words.shape[1]
            if carrying.tests.shape[0]:
                line[E_TESTS], line[E_TESTS_COUNT] = self.keep(carrying.tests), carrying.tests.shape[0]
        if routed is not None:
            line[E_ROUTE], line[E_ROUTED_BY] = routed.kind, routed.by
            line[E_OWNERS], line[E_BUCKETS] = self.keep(routed.owners), routed.owners.shape[1]
            line[E_OUTS] = self.keep(np.array([routed.slots], np.int64))
            line[E_WORKERS] = len(routed.slots)
        if use is not None:
            self.uses[number] = use
        return number

    def lend(self) -> None:
        """Describe traces as they are now."""
        if self.traces.lend():
            self.refresh()

    def refresh(self) -> None:
        """Let steps name the traces that are still used, after traces have moved to other memory."""
        for refresh in self.refreshers:
            refresh(self)
