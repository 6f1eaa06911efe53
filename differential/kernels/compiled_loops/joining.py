"""Joins in compiled loops: match arriving rows with the other side's trace, and put them into their own."""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.edges import pass_on, shifted_by
from differential.kernels.compiled_loops.layout import (
    FAR,
    HEAD_IS_FULL,
    M_DELAY,
    M_EDGE,
    M_EDGES,
    M_GUARDS,
    M_KW,
    M_PROJECTION,
    M_TRACE,
    M_VIA,
    M_WORDS,
    P_EDGE,
    P_EDGES,
    P_MATCH,
    P_MATCHES,
    P_SLOT,
    P_TRACE,
    PAIRS_LIMIT,
    S_LEAST,
    S_NEXT,
    S_ROWS,
    T_COLUMNS,
    T_GUARDS,
    T_HEAD,
    T_INSERTED,
    T_INSERTS,
    T_LINES,
    T_ROOM,
    T_TABLE,
    T_WIDTH,
    TOO_MUCH,
    X_ROWS,
    X_SLOT,
)
from differential.kernels.compiled_loops.slots import rows_of
from differential.kernels.history.match import match
from differential.kernels.merging.merge import insert_into_head
from differential.kernels.rows.memory import HEADER, LUB, ROWS, table_at
from differential.kernels.rows.sort import sort_words
from differential.thresholds import STEP_ROWS_MAX
from progress.compiled.kernel import Int64s, kernel, large_kernel


@kernel
def has_room(traces: Int64s, trace: int, rows: int, state: Int64s) -> bool:
    """Return True if the head of a trace has room for `rows` more rows; if not, note that in `state`."""
    if trace < 0:
        return True
    table = table_at(traces[trace, T_TABLE], traces[trace, T_LINES], traces[trace, T_WIDTH])
    if table[table.shape[0] - 1, ROWS] + rows <= traces[trace, T_ROOM]:
        return True
    state[X_SLOT] = trace
    state[X_ROWS] = rows
    return False


@kernel
def put_into(traces: Int64s, trace: int, words: Int64s) -> None:
    """Insert rows, sorted and consolidated. Requires: `has_room`."""
    table = table_at(traces[trace, T_TABLE], traces[trace, T_LINES], traces[trace, T_WIDTH])
    head = table_at(traces[trace, T_HEAD], 2 * traces[trace, T_COLUMNS], traces[trace, T_ROOM])
    insert_into_head(head, table, table.shape[0] - 1, words, traces[trace, T_GUARDS])
    traces[trace, T_INSERTED] += words.shape[1]
    traces[trace, T_INSERTS] += 1


@kernel
def lines_of(traces: Int64s, trace: int, delay: int) -> Int64s:
    """Return the run table of a trace; a copy with later times, if there is a delay."""
    table = table_at(traces[trace, T_TABLE], traces[trace, T_LINES], traces[trace, T_WIDTH])
    if delay == 0:
        return table
    later = np.empty(table.shape, np.int64)
    time = HEADER + 3 * ((table.shape[1] - HEADER) // 3 - 2)
    for line in range(table.shape[0]):
        for column in range(table.shape[1]):
            later[line, column] = table[line, column]
        later[line, time + 2] += delay
        later[line, LUB] += delay
    return later


@kernel
def look_up(
    delta: Int64s,
    number: int,
    matches: Int64s,
    edges: Int64s,
    traces: Int64s,
    slots: Int64s,
    state: Int64s,
    round_counts: Int64s,
) -> int:
    """Match rows with one trace and pass the pairs on; return 0, or a reason."""
    via = matches[number, M_VIA]
    if via >= 0:
        delta, why = shifted_by(delta, edges, via, state, round_counts)
        if why != 0:
            return why
    lines = lines_of(traces, matches[number, M_TRACE], matches[number, M_DELAY])
    projection = table_at(matches[number, M_PROJECTION], 2, matches[number, M_WORDS])
    kw, guards = matches[number, M_KW], matches[number, M_GUARDS]
    pairs, stop = match(delta, np.int64(0), lines, kw, projection, guards, np.int64(PAIRS_LIMIT))
    if stop < delta.shape[1]:
        return TOO_MUCH
    return pass_on(
        pairs, matches[number, M_EDGE], matches[number, M_EDGES], edges, slots, state, round_counts
    )


@large_kernel
def take_in(
    step: int,
    steps: Int64s,
    matches: Int64s,
    edges: Int64s,
    traces: Int64s,
    slots: Int64s,
    state: Int64s,
    round_counts: Int64s,
) -> int:
    """Match and store the rows in the slot of a join's port, or of an arrangement; return 0, or a reason."""
    slot, trace = steps[step, P_SLOT], steps[step, P_TRACE]
    rows = slots[slot, S_ROWS]
    if rows > STEP_ROWS_MAX:
        return TOO_MUCH
    if not has_room(traces, trace, rows, state):
        return HEAD_IS_FULL
    delta = sort_words(rows_of(slots, slot))
    if delta.shape[1] > 0:
        for number in range(steps[step, P_MATCH], steps[step, P_MATCHES]):
            why = look_up(delta, number, matches, edges, traces, slots, state, round_counts)
            if why != 0:
                return why
        why = pass_on(delta, steps[step, P_EDGE], steps[step, P_EDGES], edges, slots, state, round_counts)
        if why != 0:
            return why
        if trace >= 0:
            put_into(traces, trace, delta)
    slots[slot, S_ROWS] = 0
    slots[slot, S_LEAST] = slots[slot, S_NEXT] = FAR
    return 0
