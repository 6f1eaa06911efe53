"""Which times can still be seen, and where?

A *pointstamp* (location, time) stands for events that have not happened yet: messages under way on a
connector, notifications asked for and capabilities held at a stage, open epochs of an input. For each
active pointstamp we keep

    occurrences   how many such events are outstanding
    precursors    how many *other* active pointstamps could result in it

With no precursors a pointstamp is in the *frontier of the dataflow*: nothing outstanding can lead to one
more event there. A *port* is a group of connectors that somebody watches (those into one input of a stage).
Its frontier is the antichain of the earliest times at which a message can still come out of it:

    minimal elements of { s(t) : (l, t) without precursors, s a minimal summary from l to a connector of it }

Invariants (`Tracker.check_invariants` tests them):
  1. active if and only if occurrences is not zero;
  2. precursors is exactly the number of other active pointstamps that could result in it;
  3. while anything is active, some pointstamp has no precursors;
  4. the frontier of a port is what its definition says, computed over *all* active pointstamps.

Occurrences may dip below zero on one worker, since news of a receipt can overtake news of its sending
(which come from different workers); once all news has arrived none is negative.

Cost of `apply`: O(changes · active + ports touched · active), one call of one kernel.

What tells other workers is in `broadcast.py`. What "could result in" means is in `could_result_in.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np

from progress._compile import Int32s, Int64s, kernel
from progress.antichain import insert_word
from progress.count_changes import Change
from progress.errors import InternalError, TimeOverflowError
from progress.graph import Graph
from progress.summary_table import SummaryTable
from progress.time_words import word_less_equal

_LOCATION: Final = 0
_WORD: Final = 1
_OCCURRENCES: Final = 2
_PRECURSORS: Final = 3
_IN_FRONTIER: Final = 4
_TOUCHED: Final = 5
"""Rows of the table of active pointstamps. The last is no property of them, but a list that lives beside."""

_COLUMN: Final = 0
_SIZE: Final = 1
_EDGE: Final = 2
"""Columns of the table of ports: where it stands in the table of summaries, the size of its frontier, and
from the third column on the words of its frontier."""

_ACTIVE_FIRST: Final = 64
_CHANGES_PACKED_MAX: Final = 64
"""Up to here a list of changes is copied by `struct`, which has the smaller fixed cost; beyond by numpy."""

_BAD_LOCATION: Final = -1
_BAD_WORD: Final = -2


class Tracker:
    """Occurrence and precursor counts of one worker's view; counts in, changed frontiers out.

        graph     the dataflow
        watched   for each port, the locations of its connectors (all of one scope, at least one)

    Only `apply` changes the state. Nothing is active at first, so all frontiers are empty: open the first
    epochs of *all* workers' inputs by one `apply` before anything else happens.

    Raises `GraphError` if the graph is too large for its table of summaries, or a port mixes scopes.
    """

    def __init__(self, graph: Graph, watched: Sequence[Sequence[int]]) -> None:
        self.graph = graph
        self.watched = tuple(tuple(port) for port in watched)
        self.table = SummaryTable(graph, self.watched)
        self._scopes: Int64s = np.stack([self.table.guards, self.table.valid])
        self._images_max = int(self.table.sets[:, 0].max(initial=1))
        self._active: Int64s = np.zeros((6, _ACTIVE_FIRST), dtype=np.int64)
        self._changes: Int64s = np.zeros((_CHANGES_PACKED_MAX, 3), dtype=np.int64)
        self._changes_buffer = self._changes.data.cast("B")
        self._packers = tuple(struct.Struct(f"={3 * count}q") for count in range(_CHANGES_PACKED_MAX + 1))
        self._result: Int64s = np.zeros(2 + len(self.watched), dtype=np.int64)
        self._edges: Int64s = np.zeros((len(self.watched) + 1, _EDGE), dtype=np.int64)
        self._edges[:-1, _COLUMN] = self.table.column_of_group
        self._frontiers: list[Int64s | None] = [None] * len(self.watched)
        self._room = 0
        self._active_count = 0
        self._make_room(0)
        assert self._images_max >= 1
        assert self._changes.flags.c_contiguous, "changes are packed into it as bytes"
        assert len(self._packers) == _CHANGES_PACKED_MAX + 1

    # -- the one way in --

    def apply(self, changes: Sequence[Change]) -> list[int]:
        """Take in changes of counts; return the ports whose frontier is now another, ascending.

        The order of the changes is irrelevant: frontiers are compared before the first and after the last.
        Raises `TimeOverflowError` for a word that is no time at its location, `InternalError` for a location
        that does not exist; nothing has changed then.
        """
        count = len(changes)
        if count == 0:
            return []
        if self._active_count + count > self._room:
            self._make_room(count)
        if count <= _CHANGES_PACKED_MAX:
            self._packers[count].pack_into(self._changes_buffer, 0, *chain.from_iterable(changes))
            table = self._changes
        else:
            table = np.fromiter(chain.from_iterable(changes), np.int64, 3 * count).reshape(count, 3)
        moved = apply_changes(
            table,
            count,
            self._active,
            self.table.set_of,
            self.table.sets,
            self._scopes,
            self._edges,
            self._result,
        )
        if moved < 0:
            self._refuse(changes[int(self._result[1])], moved)
        self._active_count = int(self._result[0])
        assert 0 <= self._active_count <= self._room, f"{self._active_count} active, room for {self._room}"
        assert moved <= len(self.watched), f"{moved} ports changed"
        if moved == 0:
            return []
        ports: list[int] = self._result[1 : 1 + moved].tolist()
        for port in ports:
            self._frontiers[port] = None
        return ports

    def _make_room(self, count: int) -> None:
        """Enlarge the tables so that `count` more pointstamps fit."""
        room = max(_ACTIVE_FIRST, self._room)
        while room < self._active_count + count:
            room *= 2
        active = np.zeros((6, room), dtype=np.int64)
        active[:, : self._active.shape[1]] = self._active
        edges = np.zeros((len(self.watched) + 1, _EDGE + room * self._images_max), dtype=np.int64)
        edges[:, : self._edges.shape[1]] = self._edges
        self._active, self._edges, self._room = active, edges, room
        assert self._room >= self._active_count + count
        assert self._edges.shape[1] >= _EDGE + self._room * self._images_max, (
            "every image may be in a frontier"
        )

    def _refuse(self, change: Change, code: int) -> None:
        """Raise what is wrong with a change."""
        assert self._active_count == int(self._result[0]), "a refused change has changed nothing"
        location, word, delta = change
        if code == _BAD_LOCATION:
            raise InternalError(
                f"a count was changed by {delta} at location {location} of {self.graph.location_count}"
            )
        assert code == _BAD_WORD, code
        raise TimeOverflowError(
            f"a count was changed by {delta} at {self.graph.name_of(location)} for the word {word:#x}, which "
            f"is no time there: too many iterations or epochs for {self.graph.layout.level_bits} bits a level"
        )

    # -- what is known --

    def frontier(self, port: int) -> Int64s:
        """The earliest times at which messages can still come at a port, as sorted words.

        The same array until the frontier changes; not to be written to. Empty: the port is complete for ever.
        """
        assert 0 <= port < len(self.watched), port
        known = self._frontiers[port]
        if known is None:
            # Not marked read-only: numba compiles every kernel once more for arrays that are.
            known = self._edges[port, _EDGE : _EDGE + self._edges[port, _SIZE]].copy()
            self._frontiers[port] = known
        assert known.flags.c_contiguous, "one layout, one compiled signature"
        return known

    def is_idle(self) -> bool:
        """Whether nothing is outstanding anywhere: the dataflow is finished."""
        return self._active_count == 0

    def active(self) -> list[tuple[int, int, int, int]]:
        """All active pointstamps as (location, word, occurrences, precursors), sorted."""
        columns = self._active[:_IN_FRONTIER, : self._active_count].T.tolist()
        assert len(columns) == self._active_count
        assert all(row[_OCCURRENCES] != 0 for row in columns), columns
        return sorted((row[_LOCATION], row[_WORD], row[_OCCURRENCES], row[_PRECURSORS]) for row in columns)

    def occurrences(self, location: int, word: int) -> int:
        """How many events are outstanding at a pointstamp; 0 if it is not active."""
        return next((row[2] for row in self.active() if row[:2] == (location, word)), 0)

    def precursors(self, location: int, word: int) -> int:
        """How many other active pointstamps could result in an active one. Requires: active."""
        return next(row[3] for row in self.active() if row[:2] == (location, word))

    def story(self, location: int, word: int) -> str:
        """A pointstamp, and what holds it back, in words."""
        assert 0 <= location < self.graph.location_count, location
        time = self.graph.code_of(location).unpack(word)
        holders = [
            f"{self.graph.name_of(other)} at {self.graph.code_of(other).unpack(earlier)} ×{count}"
            for other, earlier, count, _ in self.active()
            if (other, earlier) != (location, word) and self._could_result_in(other, earlier, location, word)
        ]
        held = "held back by " + " · ".join(holders) if holders else "held back by nothing"
        count = self.occurrences(location, word)
        return f"{self.graph.name_of(location)} at {time}: {count} outstanding, {held}"

    def _could_result_in(self, source: int, earlier: int, target: int, later: int) -> bool:
        guards = int(self.table.guards[target])
        assert earlier & ~int(self.table.valid[source]) == 0, (source, earlier)
        assert later & ~int(self.table.valid[target]) == 0, (target, later)
        images = [(earlier & keep) + add for keep, add in self.table.between(source, target)]
        return any(
            image & ~int(self.table.valid[target]) == 0 and ((later | guards) - image) & guards == guards
            for image in images
        )

    def check_invariants(self) -> None:
        """Assert the invariants of the module, counted anew. Cost: O(active² + ports · active), in Python."""
        active = self.active()
        assert len({row[:2] for row in active}) == len(active), f"a pointstamp is listed twice: {active}"
        for location, word, occurrences, precursors in active:
            assert occurrences != 0, self.story(location, word)
            recounted = sum(
                (other, earlier) != (location, word) and self._could_result_in(other, earlier, location, word)
                for other, earlier, _, _ in active
            )
            assert precursors == recounted, f"{precursors} precursors: {self.story(location, word)}"
        assert not active or any(row[3] == 0 for row in active), f"nothing is in the frontier: {active}"
        for port, group in enumerate(self.watched):
            images: set[int] = set()
            for location, word, _, _ in active:
                for keep, add in (pair for target in group for pair in self.table.between(location, target)):
                    if ((word & keep) + add) & ~int(self.table.valid[group[0]]) == 0:
                        images.add((word & keep) + add)
            guards = int(self.table.guards[group[0]])
            minimal = [
                image
                for image in images
                if not any(o != image and ((image | guards) - o) & guards == guards for o in images)
            ]
            assert self.frontier(port).tolist() == sorted(minimal), f"port {port} of {group}: {active}"


@kernel
def results_in(set_number: int, earlier: int, later: int, sets: Int64s, guards: int, valid: int) -> bool:
    """Whether time `earlier` could result in `later` by one of the summaries of a set.

    A path that leads out of a field can never be gone: whoever sends along it is refused. (In a prioritised
    loop the counter runs over into the priority instead. That is a time before all that could be meant.)
    """
    for index in range(sets[set_number, 0]):
        image = (earlier & sets[set_number, 1 + 2 * index]) + sets[set_number, 2 + 2 * index]
        if image & ~valid == 0 and word_less_equal(image, later, guards):
            return True
    return False


# The three kernels below are called once per `apply` and loop inside, instead of calling one another for each
# pointstamp or port: every array that is handed to a kernel costs two atomic operations (numba counts
# references), which for a port of two pointstamps was 80 ns of 90.


@kernel
def change_counts(
    changes: Int64s, total: int, active: Int64s, set_of: Int32s, sets: Int64s, scopes: Int64s, result: Int64s
) -> int:
    """Add changes to occurrences; pointstamps come and go, and the precursor counts of all others follow.

    Returns how many that went were in the frontier of the dataflow; where is noted in row _TOUCHED.
    """
    count = result[0]
    touched = 0
    for number in range(total):
        here, word, delta = changes[number, 0], changes[number, 1], changes[number, 2]
        if delta == 0:
            continue
        position = 0
        while position < count and (active[_WORD, position] != word or active[_LOCATION, position] != here):
            position += 1
        comes = position == count
        if comes:
            active[_LOCATION, position] = here
            active[_WORD, position] = word
            active[_OCCURRENCES, position] = 0
            active[_IN_FRONTIER, position] = 0
            count += 1
        active[_OCCURRENCES, position] += delta
        goes = active[_OCCURRENCES, position] == 0
        if not comes and not goes:
            continue
        precursors = 0
        for other in range(count):
            if other == position:
                continue
            there, time = active[_LOCATION, other], active[_WORD, other]
            onward, hither = set_of[here, there], set_of[there, here]
            if onward != 0 and results_in(onward, word, time, sets, scopes[0, there], scopes[1, there]):
                active[_PRECURSORS, other] += 1 if comes else -1
            if hither != 0 and results_in(hither, time, word, sets, scopes[0, here], scopes[1, here]):
                precursors += 1
        active[_PRECURSORS, position] = precursors
        if goes:
            if active[_IN_FRONTIER, position] != 0:
                active[_TOUCHED, touched] = here
                touched += 1
            count -= 1
            for row in range(_TOUCHED):
                active[row, position] = active[row, count]
    result[0] = count
    return touched


@kernel
def mark_frontier(count: int, touched: int, active: Int64s) -> int:
    """Note who is in the frontier of the dataflow now; append the locations of those that came or went.

    `active[_TOUCHED, :touched]` is the list so far; returns its new length.
    """
    for position in range(count):
        now = 1 if active[_PRECURSORS, position] == 0 else 0
        if now != active[_IN_FRONTIER, position]:
            active[_IN_FRONTIER, position] = now
            active[_TOUCHED, touched] = active[_LOCATION, position]
            touched += 1
    return touched


@kernel
def recompute_edges(
    touched: int, active: Int64s, set_of: Int32s, sets: Int64s, scopes: Int64s, edges: Int64s, result: Int64s
) -> int:
    """Recompute the frontier of each port that a touched location leads to; return how many changed."""
    count = result[0]
    edge = edges[edges.shape[0] - 1]
    moved = 0
    for port in range(edges.shape[0] - 1):
        column = edges[port, _COLUMN]
        first = 0
        while first < touched and set_of[active[_TOUCHED, first], column] == 0:
            first += 1
        if first == touched:
            continue
        guards, valid = scopes[0, column], scopes[1, column]
        size = 0
        for position in range(count):
            if active[_IN_FRONTIER, position] == 0:
                continue
            number = set_of[active[_LOCATION, position], column]
            word = active[_WORD, position]
            for index in range(sets[number, 0]):
                image = (word & sets[number, 1 + 2 * index]) + sets[number, 2 + 2 * index]
                if image & ~valid != 0:
                    continue
                if size == 0:
                    edge[0] = image
                    size = 1
                elif not word_less_equal(edge[0], image, guards):
                    size = insert_word(edge, size, image, guards)
        differs = edges[port, _SIZE] != size
        for index in range(size):
            differs |= edges[port, _EDGE + index] != edge[index]
            edges[port, _EDGE + index] = edge[index]
        edges[port, _SIZE] = size
        if differs:
            moved += 1
            result[moved] = port
    return moved


@kernel
def apply_changes(
    changes: Int64s,
    total: int,
    active: Int64s,
    set_of: Int32s,
    sets: Int64s,
    scopes: Int64s,
    edges: Int64s,
    result: Int64s,
) -> int:
    """Add changes to the counts, mend precursors, recompute the frontiers that can have changed.

        changes   int64[≥ total, 3]   location, word, delta
        active    int64[6, room]      rows _LOCATION … _TOUCHED; how many are used is in result[0]
        set_of, sets, scopes          see `SummaryTable`; scopes = guards and value bits
        edges     int64[P+1, 2+F]     for each port _COLUMN, _SIZE and from _EDGE on its frontier; the last
                                      row is for our own use
        result    int64[2+P]          the number of active pointstamps, then the ports that changed

    Returns how many ports changed, or a negative code with the number of the bad change in result[1].
    Requires: room for `total` more pointstamps.
    """
    for number in range(total):
        if not 0 <= changes[number, 0] < set_of.shape[0]:
            result[1] = number
            return _BAD_LOCATION
        if changes[number, 1] & ~scopes[1, changes[number, 0]] != 0:
            result[1] = number
            return _BAD_WORD
    touched = change_counts(changes, total, active, set_of, sets, scopes, result)
    touched = mark_frontier(result[0], touched, active)
    if touched == 0:
        return 0
    return recompute_edges(touched, active, set_of, sets, scopes, edges, result)
