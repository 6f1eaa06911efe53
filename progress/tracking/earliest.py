"""The earliest times at every node of a large graph, spread along its steps.

For each node (a location, or a group of locations; see `word_steps.py`) this keeps

    own        the foremost active times there, as the caller sets them
    earliest   the minimal elements of own, and of s(t) for each step s to the node from one with the earliest
               time t: the earliest times at which an event can still be there

so it knows frontiers without summaries of paths, at a cost that grows with the graph and not its square.
Where own times change, two passes bring the earliest times up to date; both visit nodes in the order of
`WordSteps.order`, so a node outside of loops has its turn after all before it.

    remove   drop each earliest time that has no *support* any more: that is not an own time of its node, and
             that no step makes of an earliest time where it starts. Go on behind nodes that have lost a time.
    insert   at nodes that have lost a time, or have new own times, insert all that own times and steps say.
             Go on behind nodes that have gained a time.

Why no time outlives its reason, also in loops: no time supports itself round a cycle, because cycles advance.
So after the first pass each remaining time leads back to an own one by supports. The second only inserts, and
what goes round a loop comes back later than it was: it ends. If it inserted before all was removed, a loop
would count up to its last iteration instead.

A time whose counter has left its field, by at most half of that, has the guard bit above it. It is stored as
long as it is in the loop, since a path may leave the loop with it. Frontiers have the earliest time behind
it, if there is one: see `word_carried`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final

import numpy as np

from progress.compiled.kernel import Int64s, kernel, small_kernel
from progress.graph.word_steps import WordSteps
from progress.times.word_order import word_carried

# Columns of `nodes`; those of `rows` are the last three of them.
IN: Final = 0
OUT: Final = 1
GUARDS: Final = 2
VALID: Final = 3
PORT: Final = 4
WAITS: Final = 5
AT: Final = 6
ROOM: Final = 7
SIZE: Final = 8
OWN: Final = 3
"""`AT`, `ROOM` and `SIZE` of own times are so many columns behind those of earliest ones."""
_COLUMNS: Final = 12

# Columns of `ports`.
NEXT: Final = 0
TOUCHED: Final = 1
SHOWN: Final = 2
NODE: Final = 5

REMOVE: Final = 0
INSERT: Final = 1
REPORT: Final = 2
MOVED: Final = 3
"""Rows of `lists`: two heaps of nodes, by the pass in which they wait, the ports to look at, and those that
have changed."""

USED: Final = 4
"""In `state`, behind the lengths of the lists: the number of words of the pool that are in use."""

GAINED: Final = 1
NO_ROOM: Final = 2
"""Bits of what inserting returns: something is new · the pool is full, so something is missing."""


class EarliestTimes:
    """The earliest times of the nodes of a graph, and of its groups as ports."""

    def __init__(self, steps: WordSteps) -> None:
        count, ports = steps.count, len(steps.column_of_group)
        rank: Int64s = np.empty(count, dtype=np.int64)
        rank[steps.order] = np.arange(count)
        self._rank: list[int] = rank.tolist()
        out_of, into = rank[steps.sources], rank[steps.steps[:, 0]]
        forward, backward = np.argsort(out_of, kind="stable"), np.argsort(into, kind="stable")
        self._following: Int64s = into[forward]
        keep = steps.steps[:, 1]
        keep = keep | keep << 1 & steps.level_guards  # the guard bit of a level that a step keeps stays, too
        leading = np.stack([out_of, keep, steps.steps[:, 2]], axis=1)
        self._leading: Int64s = leading[backward]
        # One more row, so that the steps of the last node end somewhere, too.
        self._nodes: Int64s = np.zeros((count + 1, _COLUMNS), dtype=np.int64)
        self._nodes[:, IN] = np.searchsorted(into[backward], np.arange(count + 1))
        self._nodes[:, OUT] = np.searchsorted(out_of[forward], np.arange(count + 1))
        self._nodes[:count, GUARDS] = steps.scopes[0, steps.order]
        self._nodes[:count, VALID] = steps.scopes[1, steps.order]
        self._nodes[:count, AT] = np.arange(count)
        self._nodes[:count, ROOM] = 1
        self._nodes[:, PORT] = -1
        self._ports: Int64s = np.zeros((ports, 6), dtype=np.int64)
        for port, column in enumerate(steps.column_of_group):
            self._ports[port, NEXT] = self._nodes[self._rank[column], PORT]
            self._nodes[self._rank[column], PORT] = port
            self._ports[port, NODE] = self._rank[column]
        self._ports[:, SHOWN] = count + np.arange(ports)
        self._ports[:, SHOWN + 1] = 1
        self._pool: Int64s = np.zeros(2 * count + ports + 64, dtype=np.int64)
        self._lists: Int64s = np.zeros((4, max(count, ports, 1)), dtype=np.int64)
        self._state: Int64s = np.array([0, 0, 0, 0, count + ports], dtype=np.int64)
        assert self._leading.shape == steps.steps.shape
        assert int(self._nodes[count, IN]) == int(self._nodes[count, OUT]) == steps.steps.shape[0]

    def set_own(self, own: Sequence[tuple[int, Int64s]]) -> list[int]:
        """Replace the own times of some locations, each an ascending antichain; return the ports whose
        earliest times have changed, ascending.
        """
        listed: list[int] = []
        for location, words in own:
            listed += (self._rank[location], words.shape[0], *words.tolist())
        table = np.array(listed, dtype=np.int64)
        while True:
            moved = spread(
                table,
                self._nodes,
                self._leading,
                self._following,
                self._ports,
                self._pool,
                self._lists,
                self._state,
            )
            if moved >= 0:
                break
            # Nothing is lost: what waits in the lists goes on with the next call.
            self._pool = np.concatenate([self._pool, np.zeros_like(self._pool)])
        ports: list[int] = sorted(self._lists[MOVED, :moved].tolist())
        assert ports == sorted(set(ports)), ports
        return ports

    def of_port(self, port: int) -> Int64s:
        """Return a copy of the earliest times of a port, ascending."""
        assert 0 <= port < self._ports.shape[0], port
        at, _, size = self._ports[port, SHOWN:NODE].tolist()
        assert at + size <= self._pool.shape[0], (at, size)
        return self._pool[at : at + size].copy()

    def first(self, port: int) -> int | None:
        """Return the first of `of_port`; None if there is none."""
        if self._ports.item(port, SHOWN + 2) == 0:
            return None
        first: int = self._pool.item(self._ports.item(port, SHOWN))
        return first

    def not_led_to(self, active: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return those of some active pointstamps, (location, word), that no other one could result in.

        Another thread may ask while times spread; the answer is of no use then, and nothing else happens.
        """
        nodes = self._nodes.copy()  # so that no row of the pool moves while the kernel looks at it
        listed = [(self._rank[location], word) for location, word in active]
        table = np.array(listed, dtype=np.int64).reshape(-1, 2)
        mark_led_to(table, nodes, self._leading, self._pool)
        return [active[number] for number in np.flatnonzero(table[:, 0] >= 0).tolist()]

    def fork(self) -> EarliestTimes:
        """Return an independent copy."""
        copied = copy.copy(self)
        copied._nodes, copied._ports, copied._pool = self._nodes.copy(), self._ports.copy(), self._pool.copy()
        copied._lists, copied._state = self._lists.copy(), self._state.copy()
        assert copied._leading is self._leading, "steps never change"
        return copied


@small_kernel
def comes_before(a: int, b: int, guards: int) -> bool:
    """Return True if a ≤ b. Unlike `word_less_equal` this is right with guard bits set, too."""
    if (a | b) & guards == 0:
        return ((b | guards) - a) & guards == guards
    low = 1
    rest = guards
    while rest != 0:
        guard = rest & -rest
        field = (guard << 1) - low
        if a & field > b & field:
            return False
        low = guard << 1
        rest ^= guard
    return True


@small_kernel
def is_among(word: int, keep: int, add: int, pool: Int64s, at: int, size: int) -> bool:
    """Return True if (t & keep) + add is `word` for one of the ascending words t = pool[at:at+size]."""
    low = at
    high = at + size
    while low < high:
        middle = (low + high) >> 1
        if (pool[middle] & keep) + add < word:
            low = middle + 1
        else:
            high = middle
    return low < at + size and (pool[low] & keep) + add == word


@small_kernel
def make_room(rows: Int64s, row: int, first: int, size: int, pool: Int64s, state: Int64s) -> bool:
    """Let a row of the pool have room for `size` words; return False if the pool is full. `rows[row, first:]`
    has its place, its room and its size.
    """
    room = rows[row, first + 1]
    if size <= room:
        return True
    room = max(size, 2 * room)
    at = state[USED]
    if at + room > pool.shape[0]:
        return False
    for index in range(rows[row, first + 2]):
        pool[at + index] = pool[rows[row, first] + index]
    rows[row, first] = at
    rows[row, first + 1] = room
    state[USED] = at + room
    return True


@small_kernel
def insert_time(word: int, at: int, size: int, guards: int, pool: Int64s) -> int:
    """Insert `word` into the ascending antichain pool[at:at+size]; return the new size, -1 if nothing has
    changed. Requires: room for one more.
    """
    position = 0
    while position < size and pool[at + position] <= word:
        if comes_before(pool[at + position], word, guards):
            return -1
        position += 1
    # A time after `word` is after it as an integer, too.
    end = position
    for index in range(position, size):
        if not comes_before(word, pool[at + index], guards):
            pool[at + end] = pool[at + index]
            end += 1
    for index in range(end, position, -1):
        pool[at + index] = pool[at + index - 1]
    pool[at + position] = word
    return end + 1


@small_kernel
def put(node: int, pass_: int, nodes: Int64s, lists: Int64s, state: Int64s) -> None:
    """Let a node wait for its turn in a pass, unless it does."""
    if nodes[node, WAITS] >> pass_ & 1 != 0:
        return
    nodes[node, WAITS] |= 1 << pass_
    child = state[pass_]
    state[pass_] += 1
    while child > 0:
        parent = (child - 1) >> 1
        if lists[pass_, parent] <= node:
            break
        lists[pass_, child] = lists[pass_, parent]
        child = parent
    lists[pass_, child] = node


@small_kernel
def take(pass_: int, nodes: Int64s, lists: Int64s, state: Int64s) -> None:
    """Remove the first node that waits for its turn in a pass."""
    nodes[lists[pass_, 0], WAITS] ^= 1 << pass_
    count = state[pass_] - 1
    state[pass_] = count
    last = lists[pass_, count]
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= count:
            break
        if child + 1 < count and lists[pass_, child + 1] < lists[pass_, child]:
            child += 1
        if last <= lists[pass_, child]:
            break
        lists[pass_, parent] = lists[pass_, child]
        parent = child
    lists[pass_, parent] = last


@small_kernel
def touch(node: int, nodes: Int64s, ports: Int64s, lists: Int64s, state: Int64s) -> None:
    """Note that the earliest times of the ports at a node may have changed."""
    port = nodes[node, PORT]
    while port >= 0:
        if ports[port, TOUCHED] == 0:
            ports[port, TOUCHED] = 1
            lists[REPORT, state[REPORT]] = port
            state[REPORT] += 1
        port = ports[port, NEXT]


@small_kernel
def remove_unsupported(node: int, nodes: Int64s, leading: Int64s, pool: Int64s) -> bool:
    """Drop the earliest times of a node that have no support; return True if there were any."""
    at = nodes[node, AT]
    remaining = 0
    for index in range(nodes[node, SIZE]):
        word = pool[at + index]
        supported = is_among(word, -1, 0, pool, nodes[node, AT + OWN], nodes[node, SIZE + OWN])
        step = nodes[node, IN]
        while not supported and step < nodes[node + 1, IN]:
            before = leading[step, 0]
            supported = is_among(
                word, leading[step, 1], leading[step, 2], pool, nodes[before, AT], nodes[before, SIZE]
            )
            step += 1
        if supported:
            pool[at + remaining] = word
            remaining += 1
    has_lost = bool(remaining < nodes[node, SIZE])
    nodes[node, SIZE] = remaining
    return has_lost


@small_kernel
def is_known(word: int, keep: int, add: int, node: int, nodes: Int64s, pool: Int64s) -> bool:
    """Do `is_among` for the earliest times of a node; return False if their row is not in this pool."""
    at, size = nodes[node, AT], nodes[node, SIZE]
    return at + size <= pool.shape[0] and is_among(word, keep, add, pool, at, size)


@kernel
def mark_led_to(points: Int64s, nodes: Int64s, leading: Int64s, pool: Int64s) -> None:
    """Replace the node by -1 in each row (node, word) of `points` where the word is no earliest time of the
    node, or where a step makes it of another node's.
    """
    for number in range(points.shape[0]):
        node, word = points[number, 0], points[number, 1]
        if not is_known(word, -1, 0, node, nodes, pool):
            points[number, 0] = -1
            continue
        for step in range(nodes[node, IN], nodes[node + 1, IN]):
            if is_known(word, leading[step, 1], leading[step, 2], leading[step, 0], nodes, pool):
                points[number, 0] = -1
                break


@small_kernel
def insert_all(
    node: int, before: int, first: int, keep: int, add: int, nodes: Int64s, pool: Int64s, state: Int64s
) -> int:
    """Insert (t & keep) + add into the earliest times of `node`, for the times t of the row of `before` whose
    place is in column `first`. Return bits.
    """
    done = 0
    for index in range(nodes[before, first + 2]):
        word = (pool[nodes[before, first] + index] & keep) + add
        size = nodes[node, SIZE]
        if is_among(word, -1, 0, pool, nodes[node, AT], size):
            continue
        if not make_room(nodes, node, AT, size + 1, pool, state):
            return done | NO_ROOM
        size = insert_time(word, nodes[node, AT], size, nodes[node, GUARDS], pool)
        if size >= 0:
            nodes[node, SIZE] = size
            done |= GAINED
    return done


@kernel
def insert_missing(node: int, nodes: Int64s, leading: Int64s, pool: Int64s, state: Int64s) -> int:
    """Insert all that own times and steps say into the earliest times of a node; return bits."""
    done = insert_all(node, node, AT + OWN, -1, 0, nodes, pool, state)
    for step in range(nodes[node, IN], nodes[node + 1, IN]):
        if done & NO_ROOM != 0:
            break
        done |= insert_all(node, leading[step, 0], AT, leading[step, 1], leading[step, 2], nodes, pool, state)
    return done


@kernel
def show_carried(port: int, nodes: Int64s, ports: Int64s, pool: Int64s) -> int:
    """Do `show` where counters have left their fields. Requires: the row of the port has room."""
    node, at = ports[port, NODE], ports[port, SHOWN]
    guards, valid = nodes[node, GUARDS], nodes[node, VALID]
    words = np.empty(nodes[node, SIZE], np.int64)
    size = 0
    for index in range(nodes[node, SIZE]):
        word = pool[nodes[node, AT] + index]
        if word & ~valid != 0:
            word = word_carried(word, guards, valid)
        if word >= 0:
            size = max(size, insert_time(word, 0, size, guards, words))
    differs = size != ports[port, SHOWN + 2]
    for index in range(size):
        differs |= pool[at + index] != words[index]
        pool[at + index] = words[index]
    ports[port, SHOWN + 2] = size
    return GAINED if differs else 0


@kernel
def show(port: int, nodes: Int64s, ports: Int64s, pool: Int64s, state: Int64s) -> int:
    """Let a port show the earliest times of its node, carried; return bits: they are others than before."""
    node = ports[port, NODE]
    if not make_room(ports, port, SHOWN, nodes[node, SIZE], pool, state):
        return NO_ROOM
    for index in range(nodes[node, SIZE]):
        if pool[nodes[node, AT] + index] & ~nodes[node, VALID] != 0:
            return show_carried(port, nodes, ports, pool)
    at = ports[port, SHOWN]
    size = 0
    differs = False
    for index in range(nodes[node, SIZE]):
        word = pool[nodes[node, AT] + index]
        differs |= pool[at + size] != word
        pool[at + size] = word
        size += 1
    differs |= size != ports[port, SHOWN + 2]
    ports[port, SHOWN + 2] = size
    return GAINED if differs else 0


@kernel
def spread(
    own: Int64s,
    nodes: Int64s,
    leading: Int64s,
    following: Int64s,
    ports: Int64s,
    pool: Int64s,
    lists: Int64s,
    state: Int64s,
) -> int:
    """Set own times, and bring earliest ones up to date.

        own        int64[k]          node, number of own times, these times; repeated
        nodes      int64[M+1, 12]    IN, OUT: where the steps to and from it begin; GUARDS, VALID: its scope;
                                     PORT: its first port, or -1; WAITS: bits, by the pass that it waits for;
                                     AT, ROOM, SIZE: its row of the pool, twice
        leading    int64[E, 3]       by next node: the node where a step starts, keep, add
        following  int64[E]          by node: where its steps lead
        ports      int64[P, 6]       NEXT port at its node, or -1; TOUCHED; its row of the pool; NODE
        pool       int64[K]          words
        lists      int64[4, …]       see `REMOVE`
        state      int64[5]          see `USED`

    Return how many ports have changed, with their numbers in `lists`; or -1 if the pool is full: then call
    again with the same own times and a larger pool.
    """
    position = 0
    while position < own.shape[0]:
        node, size = own[position], own[position + 1]
        position += 2
        if not make_room(nodes, node, AT + OWN, size, pool, state):
            return -1
        for index in range(size):
            pool[nodes[node, AT + OWN] + index] = own[position + index]
        nodes[node, SIZE + OWN] = size
        position += size
        put(node, REMOVE, nodes, lists, state)
        put(node, INSERT, nodes, lists, state)
    while state[REMOVE] > 0:
        node = lists[REMOVE, 0]
        take(REMOVE, nodes, lists, state)
        if remove_unsupported(node, nodes, leading, pool):
            touch(node, nodes, ports, lists, state)
            put(node, INSERT, nodes, lists, state)
            for step in range(nodes[node, OUT], nodes[node + 1, OUT]):
                put(following[step], REMOVE, nodes, lists, state)
    while state[INSERT] > 0:
        node = lists[INSERT, 0]
        take(INSERT, nodes, lists, state)
        done = insert_missing(node, nodes, leading, pool, state)
        if done & GAINED != 0:
            touch(node, nodes, ports, lists, state)
            for step in range(nodes[node, OUT], nodes[node + 1, OUT]):
                put(following[step], INSERT, nodes, lists, state)
        if done & NO_ROOM != 0:
            put(node, INSERT, nodes, lists, state)
            return -1
    while state[REPORT] > 0:
        port = lists[REPORT, state[REPORT] - 1]
        done = show(port, nodes, ports, pool, state)
        if done & NO_ROOM != 0:
            return -1
        state[REPORT] -= 1
        ports[port, TOUCHED] = 0
        if done & GAINED != 0:
            lists[MOVED, state[MOVED]] = port
            state[MOVED] += 1
    moved = int(state[MOVED])
    state[MOVED] = 0
    return moved
