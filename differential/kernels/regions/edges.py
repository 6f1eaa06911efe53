"""From what a step makes to the slots where others find it: what a connector does, row by row."""

from __future__ import annotations

import numpy as np

from differential.kernels.overflow import INT64_MIN, checked_add
from differential.kernels.regions.layout import (
    CONSTANT_WORD,
    E_ADD,
    E_IS_ROUND,
    E_KEEP,
    E_LAST,
    E_MASK,
    E_PROJECTION,
    E_ROWS,
    E_SHIFT,
    E_SIGN,
    E_SLOT,
    E_TESTS,
    E_TESTS_COUNT,
    E_WORDS,
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
    X_COUNTERS,
    X_ROWS,
    X_SLOT,
    X_TOLD,
)
from differential.kernels.rows.memory import table_at
from progress.kernel import Int64s, kernel, small_kernel

EQUAL, LESS, AT_MOST = 0, 1, 2
NOT_EQUAL, AT_LEAST, GREATER = 3, 4, 5


@small_kernel
def passes(words: Int64s, row: int, tests: Int64s) -> bool:
    """Whether a row passes all tests; see `layout.py`."""
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
def put_row(words: Int64s, row: int, edge: Int64s, number: int, target: Int64s, at: int) -> None:
    """Write one row as it comes out of an edge; its time is written by whoever calls."""
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
def pass_on(
    words: Int64s, first: int, last: int, edges: Int64s, slots: Int64s, state: Int64s, told: Int64s
) -> int:
    """Put rows into the slots of the edges first … last - 1: 0, or why not. Of what was put in then, `slots`
    and `state` have to be told.
    """
    columns, rows = words.shape
    bound, counters = state[X_BOUND], state[X_COUNTERS]
    for number in range(first, last):
        slot = edges[number, E_SLOT]
        start = slots[slot, S_ROWS]
        if start + rows > slots[slot, S_ROOM]:
            state[X_SLOT] = slot
            state[X_ROWS] = start + rows
            return NO_ROOM
        target = table_at(slots[slot, S_AT], slots[slot, S_COLUMNS], slots[slot, S_ROOM])
        tests = table_at(edges[number, E_TESTS], edges[number, E_TESTS_COUNT], 4)
        keep, add = edges[number, E_KEEP], edges[number, E_ADD]
        shift, mask, final = edges[number, E_SHIFT], edges[number, E_MASK], edges[number, E_LAST]
        at, least, following = start, np.int64(FAR), np.int64(FAR)
        for row in range(rows):
            if not passes(words, row, tests):
                continue
            time = (words[columns - 2, row] & keep) + add
            if (time >> shift) & mask > final:
                return TOO_MUCH
            put_row(words, row, edges, number, target, at)
            target[edges[number, E_WORDS], at] = time
            least = min(least, time)
            if time < bound:
                following = min(following, time & counters)
            at += 1
        slots[slot, S_ROWS] = at
        slots[slot, S_LEAST] = min(slots[slot, S_LEAST], least)
        slots[slot, S_NEXT] = min(slots[slot, S_NEXT], following)
        edges[number, E_ROWS] += at - start
        if edges[number, E_IS_ROUND] != 0 and at > start:
            tell(told, state, number, least, at - start)
    return 0


@kernel
def tell(told: Int64s, state: Int64s, number: int, time: int, rows: int) -> None:
    """Note what has gone round. Requires: there is room, as who opens a gate sees to."""
    at = state[X_TOLD]
    told[0, at] = number
    told[1, at] = time
    told[2, at] = rows
    state[X_TOLD] = at + 1


@kernel
def shifted_by(words: Int64s, edges: Int64s, number: int, state: Int64s, told: Int64s) -> tuple[Int64s, int]:
    """Rows at the times at which an edge brings them to who looks: (rows, 0), or why not."""
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
        tell(told, state, number, least, rows)
    return out, 0
