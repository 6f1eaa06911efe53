"""Edges: they bring the rows that a step makes to the slots of later steps, as connectors do, row by row."""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.layout import (
    BY_KEY,
    CONSTANT_WORD,
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
    E_ROWS,
    E_SHIFT,
    E_SIGN,
    E_SLOT,
    E_TESTS,
    E_TESTS_COUNT,
    E_WORDS,
    E_WORKERS,
    FAR,
    NO_ROOM,
    S_AT,
    S_COLUMNS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    SUM_WORD,
    TOO_MUCH,
    X_BOUND,
    X_COUNTED,
    X_COUNTERS,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.overflow import INT64_MIN, checked_add
from differential.kernels.rows.hashing import hash_of_key
from differential.kernels.rows.memory import table_at
from progress.compiled.kernel import Int64s, kernel, small_kernel

EQUAL, LESS, AT_MOST = 0, 1, 2
NOT_EQUAL, AT_LEAST, GREATER = 3, 4, 5


@small_kernel
def passes(words: Int64s, row: int, tests: Int64s) -> bool:
    """Return True if a row passes all tests; see `layout.py`."""
    for test in range(tests.shape[0]):
        left = words[tests[test, 1], row]
        right = tests[test, 3] if tests[test, 2] < 0 else words[tests[test, 2], row]
        kind = tests[test, 0]
        if kind == EQUAL:
            holds = left == right
        elif kind == LESS:
            holds = left < right
        elif kind == AT_MOST:
            holds = left <= right
        elif kind == NOT_EQUAL:
            holds = left != right
        elif kind == AT_LEAST:
            holds = left >= right
        else:
            holds = left > right
        if not holds:
            return False
    return True


@small_kernel
def count_passing(words: Int64s, number: int, edges: Int64s) -> int:
    """Return how many rows an edge lets through."""
    tests = table_at(edges[number, E_TESTS], edges[number, E_TESTS_COUNT], 4)
    count = 0
    for row in range(words.shape[1]):
        if passes(words, row, tests):
            count += 1
    return count


@small_kernel
def put_row(words: Int64s, row: int, edge: Int64s, number: int, target: Int64s, at: int) -> None:
    """Write one row as it comes out of an edge; the caller writes its time."""
    columns = words.shape[0]
    count = edge[number, E_WORDS]
    if edge[number, E_PROJECTION] == 0:
        for word in range(count):
            target[word, at] = words[word, row]
    else:
        projection = table_at(edge[number, E_PROJECTION], 2, count)
        for word in range(count):
            source = projection[0, word]
            if source >= 0:
                target[word, at] = words[source, row]
            elif source == CONSTANT_WORD:
                target[word, at] = projection[1, word]
            else:
                target[word, at] = checked_add(words[SUM_WORD - source, row], projection[1, word])
    diff = words[columns - 1, row]
    if edge[number, E_SIGN] == 1:
        target[count + 1, at] = diff
    else:
        if diff == INT64_MIN:
            raise OverflowError("a number without its negative")
        target[count + 1, at] = -diff


@kernel
def carry_rows(words: Int64s, number: int, edges: Int64s, target: Int64s, start: int) -> int:
    """Write the rows that an edge lets through, as they arrive, from column `start` on.

    Return the column behind the last one; -1 if a row is of an iteration that is left to Python.
    """
    columns, rows = words.shape
    tests = table_at(edges[number, E_TESTS], edges[number, E_TESTS_COUNT], 4)
    keep, add = edges[number, E_KEEP], edges[number, E_ADD]
    shift, mask, final = edges[number, E_SHIFT], edges[number, E_MASK], edges[number, E_LAST]
    at = start
    for row in range(rows):
        if not passes(words, row, tests):
            continue
        time = (words[columns - 2, row] & keep) + add
        if (time >> shift) & mask > final:
            return -1
        put_row(words, row, edges, number, target, at)
        target[edges[number, E_WORDS], at] = time
        at += 1
    return at


@small_kernel
def note_rows(slots: Int64s, slot: int, target: Int64s, start: int, stop: int, state: Int64s) -> int:
    """Update a slot after writing rows to its columns start … stop - 1; return the least of their times."""
    bound, counters = state[X_BOUND], state[X_COUNTERS]
    least, following = np.int64(FAR), np.int64(FAR)
    times = target.shape[0] - 2
    for at in range(start, stop):
        time = target[times, at]
        least = min(least, time)
        if time < bound:
            following = min(following, time & counters)
    slots[slot, S_ROWS] = stop
    slots[slot, S_LEAST] = min(slots[slot, S_LEAST], least)
    slots[slot, S_NEXT] = min(slots[slot, S_NEXT], following)
    return least


@kernel
def divide(words: Int64s, number: int, edges: Int64s, slots: Int64s, state: Int64s) -> int:
    """Put rows as they arrive by an edge into the slots of their workers; return 0, or a reason."""
    columns, rows = words.shape
    owners = table_at(edges[number, E_OWNERS], 1, edges[number, E_BUCKETS])
    workers = edges[number, E_WORKERS]
    outs = table_at(edges[number, E_OUTS], 1, workers)
    by, low_bits = edges[number, E_ROUTED_BY], edges[number, E_BUCKETS] - 1
    owner = np.empty(rows, np.int64)
    count = np.zeros(workers, np.int64)
    for row in range(rows):
        if edges[number, E_ROUTE] == BY_KEY:
            owner[row] = owners[0, hash_of_key(words, row, by) & low_bits]
        else:
            owner[row] = owners[0, words[by, row] & low_bits]
        count[owner[row]] += 1
    for worker in range(workers):
        slot = outs[0, worker]
        start = slots[slot, S_ROWS]
        if start + count[worker] > slots[slot, S_ROOM]:
            state[X_SLOT] = slot
            state[X_ROWS] = start + count[worker]
            return NO_ROOM
        if count[worker] == 0:
            continue
        target = table_at(slots[slot, S_AT], slots[slot, S_COLUMNS], slots[slot, S_ROOM])
        at = start
        for row in range(rows):
            if owner[row] == worker:
                for column in range(columns):
                    target[column, at] = words[column, row]
                at += 1
        note_rows(slots, slot, target, start, at, state)
    return 0


@kernel
def pass_on(
    words: Int64s, first: int, last: int, edges: Int64s, slots: Int64s, state: Int64s, round_counts: Int64s
) -> int:
    """Put rows into the slots of the edges first … last - 1; return 0, or a reason.

    After a reason the caller has to undo in `slots` and `state` what was put in before.
    """
    rows = words.shape[1]
    for number in range(first, last):
        slot = edges[number, E_SLOT]
        least, carried = np.int64(FAR), np.int64(0)
        if edges[number, E_ROUTE] != 0:
            arriving = np.empty((edges[number, E_WORDS] + 2, rows), np.int64)
            carried = carry_rows(words, number, edges, arriving, np.int64(0))
            if carried < 0:
                return TOO_MUCH
            for row in range(carried):
                least = min(least, arriving[arriving.shape[0] - 2, row])
            why = divide(arriving[:, :carried].copy(), number, edges, slots, state)
            if why != 0:
                return why
        else:
            start = slots[slot, S_ROWS]
            if start + rows > slots[slot, S_ROOM]:
                # For an edge that lets few rows through, such as one for rows that fail, the slot stays
                # small.
                needed = start + rows
                if edges[number, E_TESTS_COUNT] > 0:
                    needed = start + count_passing(words, number, edges)
                if needed > slots[slot, S_ROOM]:
                    state[X_SLOT] = slot
                    state[X_ROWS] = needed
                    return NO_ROOM
            target = table_at(slots[slot, S_AT], slots[slot, S_COLUMNS], slots[slot, S_ROOM])
            stop = carry_rows(words, number, edges, target, start)
            if stop < 0:
                return TOO_MUCH
            least = note_rows(slots, slot, target, start, stop, state)
            carried = stop - start
        edges[number, E_ROWS] += carried
        if edges[number, E_IS_ROUND] != 0 and carried > 0:
            count_round(round_counts, state, number, least, carried)
    return 0


@kernel
def count_round(round_counts: Int64s, state: Int64s, number: int, time: int, rows: int) -> None:
    """Note how many rows have gone round. Requires: there is room, which `run_loop` ensures."""
    at = state[X_COUNTED]
    round_counts[0, at] = number
    round_counts[1, at] = time
    round_counts[2, at] = rows
    state[X_COUNTED] = at + 1


@kernel
def shifted_by(
    words: Int64s, edges: Int64s, number: int, state: Int64s, round_counts: Int64s
) -> tuple[Int64s, int]:
    """Return (rows at the times at which an edge brings them to a lookup, 0), or a reason instead of 0."""
    columns, rows = words.shape
    keep, add = edges[number, E_KEEP], edges[number, E_ADD]
    shift, mask, final = edges[number, E_SHIFT], edges[number, E_MASK], edges[number, E_LAST]
    edges[number, E_ROWS] += rows
    out = np.empty((columns, rows), np.int64)
    least = np.int64(FAR)
    for column in range(columns):
        for row in range(rows):
            out[column, row] = words[column, row]
    for row in range(rows):
        time = (words[columns - 2, row] & keep) + add
        if (time >> shift) & mask > final:
            return out, TOO_MUCH
        out[columns - 2, row] = time
        least = min(least, time)
    if edges[number, E_IS_ROUND] != 0 and rows > 0:
        count_round(round_counts, state, number, least, rows)
    return out, 0
