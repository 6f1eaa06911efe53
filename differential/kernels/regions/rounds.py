"""A loop that several workers run: beat after beat is said and heard in one call, gates opened in between.

The same as `timely/running/stages/compiled_loop.py` does with `differential/regions/loop.py`, for
workers that share memory, as long as nothing comes but the beats that are expected. Three phases follow one
another:

    listens   for the beat of each other worker that answers the one that was said last; all or none are taken
    works     opens the gate that all have chosen, or passes on
    says      the next beat to all others, or to none

A stretch begins with the second: what has come in is passed on, and the first beat said.

Whatever is not done here ends the call in front of it, with nothing of it done: another message, a beat with
another bound or with symbols, a step that is Python's, more rows than a kernel takes, no room. Python does
it, or as much as it likes, and calls again.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.regions.gates import comes_first, next_gate
from differential.kernels.regions.layout import (
    DONE,
    ENDS,
    FAR,
    IS_HEARD_ELSEWHERE,
    IS_SAID_ELSEWHERE,
    J_ANCHOR,
    J_ARE_ALIKE,
    J_ENDED,
    J_FIRST_OF_ALL,
    J_KEPT,
    J_LOOKS,
    J_PHASE,
    J_SAID,
    J_SHIFT,
    J_TURNS,
    LISTENS,
    NO_TURNS,
    O_GATE,
    O_SLOT,
    O_SYMBOLS,
    ROWS_MAX,
    S_LEAST,
    S_NEXT,
    S_ROWS,
    SAYS,
    SOMEBODY_SLEEPS,
    W_BOUND,
    W_COUNTERS,
    W_ENDED,
    W_FIRST,
    W_GATE,
    W_IS_EMPTY,
    W_NUMBER,
    W_PASSES,
    WAITS,
    WORKS,
    X_NOW,
    X_TURNS,
)
from differential.kernels.regions.rings import (
    ANOTHER,
    NOTHING,
    any_sleeps,
    next_record,
    start_of,
    take_record,
)
from differential.kernels.regions.round_messages import (
    ended_alike,
    have_room,
    hear,
    is_message,
    is_next,
    read_said,
    sizes_for,
    write_beat,
)
from differential.kernels.regions.run import run_region
from differential.kernels.rows.memory import pause, table_at
from progress.compiled.kernel import Int64s, kernel
from timely.wire.transport.ring import L_PEER

T_STEPS, T_MATCHES, T_EDGES, T_TRACES, T_SLOTS, T_FIELDS, T_STATE, T_TOLD = range(8)
"""The tables of `run_region`, in `tables`: of each its address, lines and columns."""
T_OUTS, T_LINES, T_RECORDS, T_HEADER, T_ENDED = range(8, 13)
"""What goes to others; the lines of rings; room for a record of each; the header of messages that bring
beats; what was said last of what has ended, and what would be said now.
"""
TABLES = 13


@kernel
def table_of(tables: Int64s, number: int) -> Int64s:
    """A table by its number."""
    return table_at(tables[number, 0], tables[number, 1], tables[number, 2])


@kernel
def await_beats(lines: Int64s, joint: Int64s, records: Int64s, header: Int64s, ends: Int64s) -> int:
    """Let the next record of each other worker be a beat that is in `records`: 0, or why not."""
    for line in range(lines.shape[0]):
        looks = np.int64(0)
        while True:
            ends[line] = next_record(lines, line, records)
            if ends[line] != NOTHING:
                break
            if looks >= joint[J_LOOKS]:
                return WAITS
            looks += 1
            pause()
        if ends[line] == ANOTHER or not is_message(np.int64(records[line].ctypes.data), header):
            return IS_HEARD_ELSEWHERE
    return 0


@kernel
def listen(tables: Int64s, joint: Int64s) -> int:
    """Take up the beats of all others: 0, or why not."""
    steps, slots = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_SLOTS))
    outs, lines = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_LINES))
    records, ended = table_of(tables, np.int64(T_RECORDS)), table_of(tables, np.int64(T_ENDED))
    header, fields = table_of(tables, np.int64(T_HEADER)), table_of(tables, np.int64(T_FIELDS))
    state = table_of(tables, np.int64(T_STATE))[0]
    if joint[J_TURNS] == 0:
        return IS_HEARD_ELSEWHERE
    ends, coming = np.empty(lines.shape[0], np.int64), np.zeros(slots.shape[0], np.int64)
    why = await_beats(lines, joint, records, header, ends)
    if why != 0:
        return why
    every = np.empty((lines.shape[0], W_ENDED + 1), np.int64)
    for line in range(lines.shape[0]):
        record, said = np.int64(records[line].ctypes.data), every[line]
        is_whole = read_said(record, records[line, 0], said)
        if not is_whole or not is_next(said, joint, lines[line, L_PEER], steps):
            return IS_HEARD_ELSEWHERE
        why = have_room(record, said, outs, slots, coming, state)
        if why != 0:
            return why
    gate, counters, passes = joint[J_SAID + W_GATE], joint[J_SAID + W_COUNTERS], joint[J_SAID + W_PASSES]
    first, are_alike = joint[J_SAID + W_FIRST], True
    for line in range(lines.shape[0]):
        record, said = np.int64(records[line].ctypes.data), every[line]
        are_alike = ended_alike(record, said, joint, ended) and are_alike
        hear(record, said, slots, state)
        take_record(lines, line, ends[line])
        first, passes = min(first, said[W_FIRST]), passes | said[W_PASSES]
        its, times = said[W_GATE], said[W_COUNTERS]
        if its >= 0 and (gate < 0 or comes_first(steps, its, times, gate, counters, fields)):
            gate, counters = its, times
    joint[J_FIRST_OF_ALL], joint[J_ARE_ALIKE] = first, are_alike
    joint[J_TURNS] -= 1
    state[X_TURNS] = 0
    if passes == 0:
        if gate < 0:
            return ENDS
        here = next_gate(steps, slots, fields, state)
        state[X_TURNS] = here == gate and state[X_NOW] == counters
    return 0


@kernel
def prepare(tables: Int64s, joint: Int64s) -> None:
    """The next beat, as what waits here is now."""
    steps, slots = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_SLOTS))
    outs, fields = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_FIELDS))
    state = table_of(tables, np.int64(T_STATE))[0]
    gate = next_gate(steps, slots, fields, state)
    counters, passes, least = state[X_NOW], False, joint[J_KEPT]
    for out in range(outs.shape[0]):
        slot, its = outs[out, O_SLOT], outs[out, O_GATE]
        times = slots[slot, S_NEXT]
        if times == FAR:
            continue
        if its < 0:
            passes = True
        elif gate < 0 or comes_first(steps, its, times, gate, counters, fields):
            gate, counters = its, times
    for slot in range(slots.shape[0]):
        least = min(least, slots[slot, S_LEAST])
    said = joint[J_SAID:]
    said[W_NUMBER] += 1
    said[W_GATE], said[W_COUNTERS] = gate, counters if gate >= 0 else 0
    said[W_FIRST] = said[W_BOUND]
    if least != FAR:
        said[W_FIRST] = min(said[W_BOUND], joint[J_ANCHOR] + (least >> joint[J_SHIFT]))
    said[W_PASSES], said[W_IS_EMPTY] = passes, least == FAR
    said[W_ENDED] = joint[J_ENDED] if least == FAR else 0


@kernel
def say(tables: Int64s, joint: Int64s) -> int:
    """Say the next beat to all others: 0, or why not."""
    slots, lines = table_of(tables, np.int64(T_SLOTS)), table_of(tables, np.int64(T_LINES))
    outs, header = table_of(tables, np.int64(T_OUTS)), table_of(tables, np.int64(T_HEADER))
    ended = table_of(tables, np.int64(T_ENDED))
    for out in range(outs.shape[0]):
        rows = slots[outs[out, O_SLOT], S_ROWS]
        # Where more than these wait as words, others may be packed (`differential/regions/slots.py`).
        if rows > ROWS_MAX or (outs[out, O_SYMBOLS] != 0 and rows > 0):
            return IS_SAID_ELSEWHERE
    before = joint.copy()
    prepare(tables, joint)
    sizes = np.empty((lines.shape[0], 3), np.int64)
    for line in range(lines.shape[0]):
        if start_of(lines, line, sizes_for(line, joint, outs, slots, sizes)) < 0:
            joint[:] = before
            return IS_SAID_ELSEWHERE
    if joint[J_SAID + W_IS_EMPTY] != 0:
        for port in range(joint[J_ENDED]):
            ended[0, port] = ended[1, port]
    for line in range(lines.shape[0]):
        write_beat(line, lines, joint, header, ended, outs, slots, sizes)
    return SOMEBODY_SLEEPS if any_sleeps(lines) else 0


@kernel
def run_rounds(tables: Int64s, joint: Int64s) -> int:
    """Go on from the phase that `joint` says, for at most joint[J_TURNS] beats: why it has ended."""
    steps, matches = table_of(tables, np.int64(T_STEPS)), table_of(tables, np.int64(T_MATCHES))
    edges, traces = table_of(tables, np.int64(T_EDGES)), table_of(tables, np.int64(T_TRACES))
    slots, fields = table_of(tables, np.int64(T_SLOTS)), table_of(tables, np.int64(T_FIELDS))
    state, told = table_of(tables, np.int64(T_STATE))[0], table_of(tables, np.int64(T_TOLD))
    while True:
        if joint[J_PHASE] == LISTENS:
            why = listen(tables, joint)
            if why != 0:
                return why
            joint[J_PHASE] = WORKS
        if joint[J_PHASE] == WORKS:
            why = run_region(steps, matches, edges, traces, slots, fields, state, told)
            if why not in (DONE, NO_TURNS):
                return why
            joint[J_PHASE] = SAYS
        why = say(tables, joint)
        if why == IS_SAID_ELSEWHERE:
            return why
        joint[J_PHASE] = LISTENS
        if why != 0:
            return why
