"""Running a loop: open barrier after barrier, and pass the results on, until no rows are left.

The barrier that opens next is the one whose earliest waiting counters come first: by the counter of the
outermost loop, then by the position of the barrier (or of the loop around it) in that loop, and so on
inwards. It opens for all closed epochs at once. All rows that an opened barrier leads to come later in this
order: rows that go round have a larger counter, and the others go to a later position. So when a barrier
opens, the rows that wait there for its counters are all that will ever come for them in these epochs.

A step is done whole or not at all. If a kernel cannot do a step, Python does it: the call ends and names the
step.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compiled_loops.barriers import next_barrier, open_barrier
from differential.kernels.compiled_loops.joining import take_in
from differential.kernels.compiled_loops.layout import (
    COUNTS_ARE_FULL,
    DONE,
    E_ROWS,
    K_ARRANGE,
    K_OTHER,
    NO_TURNS,
    P_KIND,
    P_SLOT,
    S_LEAST,
    S_NEXT,
    S_ROWS,
    TOO_MUCH,
    X_COUNTED,
    X_COUNTS_MAX,
    X_STEP,
    X_TURNS,
)
from progress.compiled.kernel import Int64s, kernel, large_kernel


@kernel
def remember(slots: Int64s, edges: Int64s, state: Int64s, before: Int64s) -> None:
    """Note in `before` int64[4, room] all that a step may change before it is certain to succeed."""
    for slot in range(slots.shape[0]):
        before[0, slot], before[1, slot] = slots[slot, S_ROWS], slots[slot, S_LEAST]
        before[3, slot] = slots[slot, S_NEXT]
    for edge in range(edges.shape[0]):
        before[2, edge] = edges[edge, E_ROWS]
    before[2, edges.shape[0]] = state[X_COUNTED]


@kernel
def undo(slots: Int64s, edges: Int64s, state: Int64s, before: Int64s) -> None:
    """Restore what `remember` noted."""
    for slot in range(slots.shape[0]):
        slots[slot, S_ROWS], slots[slot, S_LEAST] = before[0, slot], before[1, slot]
        slots[slot, S_NEXT] = before[3, slot]
    for edge in range(edges.shape[0]):
        edges[edge, E_ROWS] = before[2, edge]
    state[X_COUNTED] = before[2, edges.shape[0]]


@large_kernel
def run_loop(
    steps: Int64s,
    matches: Int64s,
    edges: Int64s,
    traces: Int64s,
    slots: Int64s,
    fields: Int64s,
    state: Int64s,
    round_counts: Int64s,
) -> int:
    """Do all work in closed epochs, with at most state[X_TURNS] barriers; return the reason to end.

    The tables are described in `layout.py`.
    """
    before = np.empty((4, max(slots.shape[0], edges.shape[0] + 1)), np.int64)
    while True:
        goes_on = True
        while goes_on:  # rows pass from step to step, in whichever order the steps stand
            goes_on = False
            for step in range(steps.shape[0]):
                kind = steps[step, P_KIND]
                if kind > K_ARRANGE or slots[steps[step, P_SLOT], S_ROWS] == 0:
                    continue
                goes_on = True
                state[X_STEP] = step
                if kind == K_OTHER:
                    return TOO_MUCH
                if state[X_COUNTED] + state[X_COUNTS_MAX] > round_counts.shape[1]:
                    return COUNTS_ARE_FULL
                remember(slots, edges, state, before)
                why = take_in(step, steps, matches, edges, traces, slots, state, round_counts)
                if why != 0:
                    undo(slots, edges, state, before)
                    return why
        step = next_barrier(steps, slots, fields, state)
        state[X_STEP] = step
        if step < 0:
            return DONE
        if state[X_TURNS] == 0:
            return NO_TURNS
        if state[X_COUNTED] + state[X_COUNTS_MAX] > round_counts.shape[1]:
            return COUNTS_ARE_FULL
        remember(slots, edges, state, before)
        why = open_barrier(step, steps, edges, traces, slots, fields, state, round_counts)
        if why != 0:
            undo(slots, edges, state, before)
            return why
        state[X_TURNS] -= 1
