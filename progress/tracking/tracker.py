"""Which times can still be seen, and where?

A *pointstamp* (location, time) stands for events that have not happened yet: messages under way on a
connector, requested notifications and capabilities held at a stage, open epochs of an input. For each
active pointstamp the tracker counts

    occurrences   how many such events are outstanding
    precursors    how many *other* active pointstamps could result in it

With no precursors a pointstamp is in the *frontier of the dataflow*: nothing outstanding can lead to one
more event there. A *port* is a group of connectors whose frontier is watched (those into one input of a
stage). Its frontier is the antichain of the earliest times at which a message can still come out of it:

    minimal elements of { s(t) : (l, t) without precursors, s a minimal summary from l to a connector of it }

Invariants (`Tracker.check_invariants` tests them):
  1. active if and only if occurrences is not zero;
  2. precursors is exactly the number of other active pointstamps that could result in it;
  3. while anything is active, some pointstamp has no precursors;
  4. the frontier of a port is the one of its definition, computed over *all* active pointstamps.

Occurrences may dip below zero on one worker, since news of a receipt can overtake news of its sending
(they come from different workers); once all news has arrived no count is negative. A pointstamp whose count
is below zero is active like any other: some of the news about it has not arrived.

There are three representations. *Few* pointstamps (up to `FEW_POINTSTAMPS_MAX`) are columns of one table,
looked through pair by pair, with their precursors stored; an `apply` is one call of one kernel, a few
microseconds. *Many* are stored by location (`crowd.py`), and frontiers follow from the foremost times of each
location; precursors are then counted on demand. Both look up what leads from where to where in a table of all
pairs of locations. A *large* graph (more than `TABLE_NODES_MAX`) has no such table: its pointstamps are
always stored by location, and the foremost times spread along the steps of the graph (`earliest.py`). All
give the same answers.

Cost of `apply`:

    few     O(changes · active + ports touched · active)
    many    O(changes · log active + ports touched · foremost)
    large   O(changes · log active + steps from locations whose earliest times change)

Where all times are one chain, a location has one foremost time. If the frontier of a port is an antichain of
n times, `frontier` returns a new array after each change of it, which costs n.

Memory: P ports · min(FEW_POINTSTAMPS_MAX, active) · the summaries of the largest set · 8 bytes, and some 250
bytes for each active pointstamp.

`broadcast.py` sends changes to other workers. The table is in `summary_table.py`; `could_result_in.py`
defines the same on tuples, to be read and to test against.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final, NoReturn

import numpy as np

from progress.compiled.arrays import Int32s, Int64s
from progress.errors import InternalError, TimeOverflowError
from progress.graph.graph import Graph
from progress.graph.summaries_on_demand import SummariesOnDemand
from progress.graph.summary_table import SummaryTable
from progress.graph.word_steps import WordSteps
from progress.thresholds import FEW_POINTSTAMPS_MAX, TABLE_NODES_MAX
from progress.times.anchor import Anchor
from progress.times.timestamp import Timestamp
from progress.times.word_order import word_carried
from progress.tracking.count_changes import Change
from progress.tracking.crowd import Crowd, edge_of
from progress.tracking.earliest import EarliestTimes
from progress.tracking.precursors import (
    COLUMN,
    EDGE,
    IN_FRONTIER,
    LOCATION,
    OCCURRENCES,
    PRECURSORS,
    SIZE,
    TOUCHED,
    WORD,
    apply_changes,
    change_counts,
    count_precursors,
    first_not_led_to,
    mark_frontier,
    recompute_edges,
)

_ROOM_FIRST: Final = 64
_ROW_MAX: Final = 4096
"""Largest number of words in a port's row of the table of ports.

With large sets of summaries the limit of few pointstamps is therefore below `FEW_POINTSTAMPS_MAX`.
"""

_CHANGES_PACKED_MAX: Final = 64
"""Up to this length `struct` copies a list of changes (smaller fixed cost); beyond it numpy does."""


class Tracker:
    """Occurrence and precursor counts of one worker's view; counts in, changed frontiers out.

        graph      the dataflow
        watched    for each port, the locations of its connectors (all of one scope, at least one)
        few_max    largest number of pointstamps before they are stored by location; tests choose a small one
        anchor     the epoch from which words count, for error messages
        table_max  largest number of nodes (`word_steps.py`) for which there is a table; tests choose 0

    Only `apply` changes the state. Nothing is active at first, so all frontiers are empty: open the first
    epochs of *all* workers' inputs by one `apply` before anything else happens.

    Raises `GraphError` if a port mixes scopes, or delays along a path sum up to half of a counter.
    """

    def __init__(
        self,
        graph: Graph,
        watched: Sequence[Sequence[int]],
        few_max: int = FEW_POINTSTAMPS_MAX,
        anchor: Anchor | None = None,
        table_max: int = TABLE_NODES_MAX,
    ) -> None:
        assert few_max >= 1, few_max
        self.graph = graph
        self._anchor = Anchor() if anchor is None else anchor
        self.watched = tuple(tuple(port) for port in watched)
        steps = WordSteps(graph, self.watched)
        self._scopes: Int64s = steps.scopes[:2].copy()
        self._guards: list[int] = self._scopes[0].tolist()
        self._valid: list[int] = self._scopes[1].tolist()
        self._crowd: Crowd | None = None
        self._earliest: EarliestTimes | None = None
        self._images_max = 1
        self._set_of: Int32s = np.zeros((0, 0), dtype=np.int32)
        self._sets: Int64s = np.zeros((1, 1), dtype=np.int64)
        self.summaries: SummaryTable | SummariesOnDemand
        if steps.count > table_max:
            self.summaries = SummariesOnDemand(steps)
            self._earliest = EarliestTimes(steps)
            self._crowd = Crowd(self._guards, ())
        else:
            self.summaries = SummaryTable(graph, self.watched, steps)
            self._set_of, self._sets = self.summaries.set_of, self.summaries.sets
            self._images_max = int(self._sets[:, 0].max(initial=1))
        self._few_max = max(1, min(few_max, _ROW_MAX // self._images_max))
        self._few_again = self._few_max // 4
        self._active: Int64s = np.zeros((6, 0), dtype=np.int64)
        self._changes: Int64s = np.zeros((_CHANGES_PACKED_MAX, 3), dtype=np.int64)
        self._changes_buffer = self._changes.data.cast("B")
        self._packers = tuple(struct.Struct(f"={3 * count}q") for count in range(_CHANGES_PACKED_MAX + 1))
        self._result: Int64s = np.zeros(2 + len(self.watched), dtype=np.int64)
        self._edges: Int64s = np.zeros((len(self.watched) + 1, EDGE), dtype=np.int64)
        """The frontiers of ports, in the form that kernels take: see `precursors.py`."""
        self._edges[:-1, COLUMN] = steps.column_of_group
        self._frontiers: list[Int64s | None] = [None] * len(self.watched)
        self._room = 0
        self._active_count = 0
        if self._earliest is None:
            self._make_room(min(_ROOM_FIRST, self._few_max))
        assert self._images_max >= 1
        assert self._changes.flags.c_contiguous, "changes are packed into it as bytes"
        assert len(self._packers) == _CHANGES_PACKED_MAX + 1

    # -- the one way in --

    def apply(self, changes: Sequence[Change]) -> list[int]:
        """Take in changes of counts; return the ports whose frontier has changed, ascending.

        The order of the changes is irrelevant: frontiers are compared before the first and after the last.
        Raises `TimeOverflowError` for a word that is no time at its location, `InternalError` for a location
        that does not exist; in both cases nothing has changed.
        """
        count = len(changes)
        if count == 0:
            return []
        if self._active_count + count > self._room and not self._fits(count):
            return self._apply_to_crowd(changes)
        if count <= _CHANGES_PACKED_MAX:
            self._packers[count].pack_into(self._changes_buffer, 0, *chain.from_iterable(changes))
            table = self._changes
        else:
            table = np.fromiter(chain.from_iterable(changes), np.int64, 3 * count).reshape(count, 3)
        moved = apply_changes(
            table,
            count,
            self._active,
            self._set_of,
            self._sets,
            self._scopes,
            self._edges,
            self._result,
        )
        if moved < 0:
            assert self._active_count == int(self._result[0]), "a refused change has changed nothing"
            self._refuse(changes[int(self._result[1])])
        ports: list[int]
        self._active_count, *ports = self._result[: 1 + moved].tolist()
        assert 0 <= self._active_count <= self._room, f"{self._active_count} active, room for {self._room}"
        assert moved <= len(self.watched), f"{moved} ports changed"
        for port in ports:
            self._frontiers[port] = None
        return ports

    def _fits(self, count: int) -> bool:
        """Return True if `count` more pointstamps are still few, after making room; otherwise switch to a
        crowd.

        With a crowd the table is empty and has no room, so `apply` calls this for every change.
        """
        assert count > 0
        if self._crowd is not None:
            return False
        if self._active_count + count <= self._few_max:
            self._make_room(self._active_count + count)
            return True
        self._crowd = Crowd(self._guards, [row[:3] for row in self.active()])
        self._room = self._active_count = 0
        self._result[0] = 0
        assert not self._fits(count)
        return False

    def _make_room(self, count: int) -> None:
        """Enlarge the tables so that `count` pointstamps fit."""
        room = max(self._room, self._active.shape[1], 1)
        while room < count:
            room *= 2
        room = min(room, self._few_max)
        active = np.zeros((6, room), dtype=np.int64)
        active[:, : self._active.shape[1]] = self._active
        edges = np.zeros((len(self.watched) + 1, EDGE + room * self._images_max), dtype=np.int64)
        edges[:, : self._edges.shape[1]] = self._edges
        self._active, self._edges, self._room = active, edges, room
        assert self._room >= count
        assert self._edges.shape[1] >= EDGE + self._room * self._images_max, (
            "every image may be in a frontier"
        )

    def _apply_to_crowd(self, changes: Sequence[Change]) -> list[int]:
        """Do `apply` when there are many pointstamps."""
        crowd = self._crowd
        assert crowd is not None
        valid, locations = self._valid, self.graph.location_count
        for change in changes:
            if not 0 <= change[0] < locations or change[1] & ~valid[change[0]]:
                self._refuse(change)
        touched = crowd.apply(changes)
        moved: list[int] = []
        if self._earliest is not None:
            if touched:
                moved = self._earliest.set_own([(at, crowd.foremost_at(at)) for at in touched])
                for port in moved:
                    self._frontiers[port] = None
            return moved
        if touched:
            at, words = crowd.foremost()
            # The kernel's table and its rows of ports have room for few; more are merged one port at a time.
            is_few = max(at.shape[0], len(touched)) <= self._active.shape[1]
            moved = (
                self._edges_of_few(at, words, touched) if is_few else self._edges_of_many(at, words, touched)
            )
        if len(crowd) <= self._few_again:
            self._crowd = None
            self._make_room(max(len(crowd), 1))
            back = np.array(crowd.counts(), dtype=np.int64).reshape(-1, 3)
            change_counts(
                back,
                back.shape[0],
                self._active,
                self._set_of,
                self._sets,
                self._scopes,
                self._result,
            )
            self._active_count = int(self._result[0])
            mark_frontier(self._active_count, 0, self._active)
            assert self._active_count == len(crowd)
        return moved

    def _edges_of_few(self, at: Int64s, words: Int64s, touched: list[int]) -> list[int]:
        """Recompute frontiers by the kernel, with all foremost times as pointstamps without precursors."""
        count = at.shape[0]
        assert max(count, len(touched)) <= self._active.shape[1]
        self._active[LOCATION, :count] = at
        self._active[WORD, :count] = words
        self._active[IN_FRONTIER, :count] = 1
        self._active[TOUCHED, : len(touched)] = touched
        self._result[0] = count
        moved = recompute_edges(
            len(touched), self._active, self._set_of, self._sets, self._scopes, self._edges, self._result
        )
        self._result[0] = 0
        ports: list[int] = self._result[1 : 1 + moved].tolist()
        for port in ports:
            self._frontiers[port] = None
        return ports

    def _edges_of_many(self, at: Int64s, words: Int64s, touched: list[int]) -> list[int]:
        """Recompute frontiers that may be too long for their rows; such a row has SIZE -1."""
        table = self.summaries
        assert isinstance(table, SummaryTable)
        moved: list[int] = []
        for port in np.flatnonzero(table.set_of[touched][:, table.column_of_group].any(axis=0)).tolist():
            edge = edge_of(at, words, table, table.column_of_group[port])
            if np.array_equal(edge, self.frontier(port)):
                continue
            moved.append(port)
            self._frontiers[port] = edge
            size = edge.shape[0] if edge.shape[0] <= self._edges.shape[1] - EDGE else -1
            self._edges[port, SIZE] = size
            if size > 0:
                self._edges[port, EDGE : EDGE + size] = edge
        assert moved == sorted(set(moved))
        return moved

    def _refuse(self, change: Change) -> NoReturn:
        """Raise the error for an invalid change."""
        location, word, delta = change
        if not 0 <= location < self.graph.location_count:
            raise InternalError(
                f"a count was changed by {delta} at location {location} of {self.graph.location_count}"
            )
        assert word & ~self._valid[location] != 0, change
        raise TimeOverflowError(
            f"a count was changed by {delta} at {self.graph.name_of(location)} for the word {word:#x}, which "
            f"is no time there: too many iterations or epochs for {self.graph.layout.level_bits} bits a level"
        )

    def fork(self, anchor: Anchor | None = None) -> Tracker:
        """Return an independent copy: changes applied to one from here on do not reach the other.

        Its words count from `anchor`, by default from this tracker's.
        """
        copied = copy.copy(self)
        copied._anchor = self._anchor if anchor is None else anchor
        copied._active, copied._edges, copied._result = (
            self._active.copy(),
            self._edges.copy(),
            self._result.copy(),
        )
        copied._changes = self._changes.copy()
        copied._changes_buffer = copied._changes.data.cast("B")
        copied._frontiers = self._frontiers.copy()
        copied._crowd = copy.deepcopy(self._crowd, {id(self._guards): self._guards})
        copied._earliest = None if self._earliest is None else self._earliest.fork()
        assert copied.active() == self.active(), "a copy knows the same"
        return copied

    # -- queries --

    def frontier(self, port: int) -> Int64s:
        """Return the earliest times at which messages can still come at a port, as sorted words.

        The same array until the frontier changes; not to be written to. Empty: the port is complete for ever.
        """
        assert 0 <= port < len(self.watched), port
        words = self._frontiers[port]
        if words is None and self._earliest is not None:
            words = self._frontiers[port] = self._earliest.of_port(port)
        elif words is None:
            edge = self._edges[port]
            size = int(edge[SIZE])
            assert size >= 0, "`_frontiers` has a frontier that is too long for its row"
            # Not marked read-only: numba would compile every kernel once more for read-only arrays.
            words = edge[EDGE : EDGE + size].copy()
            self._frontiers[port] = words
        assert words.flags.c_contiguous, "one layout, one compiled signature"
        return words

    def first(self, port: int) -> int | None:
        """Return the first word of `frontier`, None if that is empty, without making an array."""
        if self._earliest is not None:
            return self._earliest.first(port)
        size = self._edges.item(port, SIZE)
        if size > 0:
            first: int = self._edges.item(port, EDGE)
            return first
        return int(self.frontier(port)[0]) if size < 0 else None  # -1: too long for its row

    @property
    def active_count(self) -> int:
        """Number of active pointstamps."""
        return self._active_count if self._crowd is None else len(self._crowd)

    def is_idle(self) -> bool:
        """Return True if nothing is outstanding anywhere: the dataflow is finished."""
        return self.active_count == 0

    def least_word(self) -> int | None:
        """Return the least active word as an integer; None if idle. Its epoch is the first that is open
        anywhere.
        """
        if self._crowd is not None:
            return self._crowd.least_word() if len(self._crowd) else None
        count = self._active_count
        if count == 0:
            return None
        # Mostly these are so few that Python's `min` takes less than a call of numpy.
        least: int = min(self._active[WORD, :count].tolist())
        return least

    def active(self) -> list[tuple[int, int, int, int]]:
        """Return all active pointstamps as (location, word, occurrences, precursors), sorted.

        When there are many, precursors are counted for this, at O(active²).
        """
        if self._crowd is not None:
            counts = self._crowd.counts()
            if self._earliest is not None:
                return [(*row, self._precursors_among(counts, row)) for row in counts]
            table = np.array(counts, dtype=np.int64).reshape(-1, 3)
            precursors = count_precursors(table, self._set_of, self._sets, self._scopes).tolist()
            return [(*row, number) for row, number in zip(counts, precursors, strict=True)]
        columns = self._active[:IN_FRONTIER, : self._active_count].T.tolist()
        assert len(columns) == self._active_count
        assert all(row[OCCURRENCES] != 0 for row in columns), columns
        return sorted((row[LOCATION], row[WORD], row[OCCURRENCES], row[PRECURSORS]) for row in columns)

    def without_precursors(self) -> list[tuple[int, int]]:
        """Return the active pointstamps that no other one could result in, as (location, word), sorted."""
        if self._earliest is not None:
            return self._earliest.not_led_to([(location, word) for location, word, _ in self.counts()])
        return [(location, word) for location, word, _, precursors in self.active() if precursors == 0]

    def are_led_to(self, points: Sequence[tuple[int, int]], weakly: bool = False) -> bool:
        """Return True if to each of some points, (location, word), some positive count leads; with `weakly`
        also one at the point itself.

        In a large graph the answer is False: it would cost more than those who ask could gain.
        """
        if not points:
            return True
        if self._earliest is not None:
            return False
        if self._crowd is not None:
            at, words = self._crowd.foremost()
            foremost = list(zip(at.tolist(), words.tolist(), strict=True))
            return all(self._is_led_to(point, foremost, weakly) for point in points)
        table = np.array(points, dtype=np.int64)
        first = first_not_led_to(
            table,
            len(points),
            int(weakly),
            self._active_count,
            self._active,
            self._set_of,
            self._sets,
            self._scopes,
        )
        return first == len(points)

    def _is_led_to(self, point: tuple[int, int], sources: Sequence[tuple[int, int]], weakly: bool) -> bool:
        """Return True if one of `sources` leads to a point. A negative count comes after a positive one, so
        it need not be told from those.
        """
        return any(
            weakly if source == point else self._could_result_in(*source, *point) for source in sources
        )

    def occurrences(self, location: int, word: int) -> int:
        """Return how many events are outstanding at a pointstamp; 0 if it is not active."""
        return next((row[2] for row in self.counts() if row[:2] == (location, word)), 0)

    def precursors(self, location: int, word: int) -> int:
        """Return how many other active pointstamps could result in an active one. Requires: active."""
        counts = self.counts()
        return self._precursors_among(counts, next(row for row in counts if row[:2] == (location, word)))

    def counts(self) -> list[tuple[int, int, int]]:
        """Return all active pointstamps as (location, word, occurrences), sorted; cheaper than `active`."""
        return [row[:3] for row in self.active()] if self._crowd is None else self._crowd.counts()

    def _precursors_among(self, counts: list[tuple[int, int, int]], row: tuple[int, int, int]) -> int:
        location, word, _ = row
        assert row in counts, row
        return sum(
            (other, earlier) != (location, word) and self._could_result_in(other, earlier, location, word)
            for other, earlier, _ in counts
        )

    def describe(self, location: int, word: int) -> str:
        """Return a description of a pointstamp and of what holds it back, for messages."""
        assert 0 <= location < self.graph.location_count, location
        time = self._time(location, word)
        holders = [
            f"{self.graph.name_of(other)} at {self._time(other, earlier)} ×{count}"
            for other, earlier, count in self.counts()
            if (other, earlier) != (location, word) and self._could_result_in(other, earlier, location, word)
        ]
        held = "held back by " + " · ".join(holders) if holders else "held back by nothing"
        count = self.occurrences(location, word)
        return f"{self.graph.name_of(location)} at {time}: {count} outstanding, {held}"

    def _time(self, location: int, word: int) -> Timestamp:
        return self.graph.code_of(location).anchored(self._anchor).unpack(word)

    def _could_result_in(self, source: int, earlier: int, target: int, later: int) -> bool:
        guards = self._guards[target]
        assert earlier & ~self._valid[source] == 0, (source, earlier)
        assert later & ~self._valid[target] == 0, (target, later)
        images = [(earlier & keep) + add for keep, add in self.summaries.between(source, target)]
        return any(image & guards == 0 and ((later | guards) - image) & guards == guards for image in images)

    def check_invariants(self) -> None:
        """Assert the invariants of the module, counted anew. Cost: O(active² + ports · active), in Python."""
        if self._crowd is not None:
            self._crowd.check_invariants()
            assert self._active_count == self._room == 0, "the table of few is not in use"
        active = self.active()
        assert len({row[:2] for row in active}) == len(active), f"a pointstamp is listed twice: {active}"
        counts = [row[:3] for row in active]
        for location, word, occurrences, precursors in active:
            assert occurrences != 0, self.describe(location, word)
            recounted = self._precursors_among(counts, (location, word, occurrences))
            assert precursors == recounted, f"{precursors} precursors: {self.describe(location, word)}"
        assert not active or any(row[3] == 0 for row in active), f"nothing is in the frontier: {active}"
        for port, group in enumerate(self.watched):
            guards, valid = self._guards[group[0]], self._valid[group[0]]
            images = {
                word_carried((word & keep) + add, guards, valid)
                for target in group
                for location, word, _, _ in active
                for keep, add in self.summaries.between(location, target)
            }
            minimal = [
                image
                for image in images
                if image >= 0
                and not any(
                    o != image and o >= 0 and ((image | guards) - o) & guards == guards for o in images
                )
            ]
            assert self.frontier(port).tolist() == sorted(minimal), f"port {port} of {group}: {active}"
