"""What the functions of a window have come to at each row: states, from which a later row can go on.

    state    int64[2 + 3 · parts]: the number of rows up to and with the row; that of their groups of peers;
             and for each part whose frames begin with the group:
             sums, counts, extremes   as `kernels/sweeps/running.py` has them, but 1 in place of the number
                                      of values of a sum or an extreme
             nth_value, first_value   the number of rows, `amount` at the most; whether the value in row
                                      number `amount` is not null; its word
             last_value               1; the same of the row itself

The answer of a row is the state at the last row of its frame.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.columns.float_words import floats_to_words, words_to_floats
from differential.columns.wide.wide_words import of_halves
from differential.expressions.arithmetic.wide_numbers import Numbers, computed, rescaled
from differential.kernels.sweeps.running import FLOAT_SUM, GREATEST, LEAST, WHOLE_SUM, run_on
from differential.operators.reducing.window_parts import (
    NO_SUM,
    Copies,
    Frame,
    WindowFunctions,
    WindowPart,
)

__all__ = [
    "arguments_of",
    "at_frame_ends",
    "flagged",
    "is_value_in",
    "peers_upto",
    "run_states",
    "running_answer",
    "states_at",
]

_OF_SOME: Final = ("sum", "min", "max")
"""Of these it matters whether there are values, and not how many: states are equal more often."""


def is_value_in(flags: Int64s) -> Bools:
    """Return which rows have a value: flags are 0 and 1, or inverted, -1 and -2."""
    is_value: Bools = (flags == 1) | (flags == -2)
    return is_value


def arguments_of(part: WindowPart, copies: Copies) -> tuple[Int64s, Int64s]:
    """Return for each copy whether the argument is not null (1 or 0), and its word, or its two words."""
    count = copies.number.shape[0]
    ones = np.ones(count, np.int64)
    there = ones if part.flag < 0 else is_value_in(copies.word(part.flag)) + np.int64(0)
    if part.value < 0:
        return there, ones
    values = copies.word(part.value)
    if part.is_wide:
        values = np.array([values, copies.word(part.value + 1)], np.int64)
    return there, ~values if part.inverted else values


def peers_upto(copies: Copies) -> Int64s:
    """Return the number of the group of peers of each copy, from 1 on."""
    upto = np.zeros(copies.number.shape[0], np.int64)
    if upto.shape[0]:
        upto[copies.peers[0]] = 1
        np.cumsum(upto, out=upto)
        upto -= upto[copies.groups[0]] - 1
    return upto


def run_states(copies: Copies, functions: WindowFunctions, before: Int64s) -> list[Int64s]:
    """Return for each part what it has come to at each copy: int64[3, n]; nothing for parts that do not run.

    before   int64[2 + 3 · parts, g]: the states before each group
    """
    nothing = np.empty((3, 0), np.int64)
    out: list[Int64s] = []
    for at, (part, runs) in enumerate(zip(functions.parts, functions.runs, strict=True)):
        state = np.ascontiguousarray(before[2 + 3 * at :][:3])
        out.append(_run(part, copies, before[0], state) if runs else nothing)
    return out


def _run(part: WindowPart, copies: Copies, rows_before: Int64s, state: Int64s) -> Int64s:
    there, values = arguments_of(part, copies)
    if part.kind == "last_value":
        return np.array([np.ones(there.shape[0], np.int64), there, values * there], np.int64)
    if part.kind in ("first_value", "nth_value"):
        return _picked(part, copies, rows_before, state)
    if part.kind in ("min", "max"):
        kind = LEAST if part.kind == "min" else GREATEST
    elif part.is_float and part.kind != "count":
        values, kind = words_to_floats(np.ascontiguousarray(values)).view(np.int64), FLOAT_SUM
    else:
        kind = WHOLE_SUM
    return run_on(np.ascontiguousarray(values), there, copies.number, state, kind)


def _picked(part: WindowPart, copies: Copies, rows_before: Int64s, state: Int64s) -> Int64s:
    """Return the states of a value in one row of each group."""
    there, values = arguments_of(part, copies)
    wanted = part.amount if part.kind == "nth_value" else 1
    start, number = copies.groups[0], copies.number
    place: Int64s = np.arange(number.shape[0]) - start
    earlier = np.minimum(rows_before[number], wanted)
    ahead = wanted - 1 - earlier  # how many rows behind the first of its group
    out = state[:, number]
    out[0] = np.minimum(place + 1 + earlier, wanted)
    is_here = (ahead >= 0) & (place >= ahead)
    at = np.where(is_here, start + ahead, 0)
    if at.shape[0]:
        out[1] = np.where(is_here, there[at], out[1])
        out[2] = np.where(is_here, values[at] * there[at], out[2])
    return out


def at_frame_ends(copies: Copies, frame: Frame, stops: Int64s, states: Int64s, before: Int64s) -> Int64s:
    """Return the states of a part at the ends of frames: int64[3, n].

    stops    where the frame of each copy ends
    states   at each copy; `before`: before each group
    """
    is_own = frame.unit == "rows" and frame.stop == 0
    if is_own or (stops == np.arange(1, stops.shape[0] + 1)).all():
        return states
    is_empty = stops <= copies.groups[0]
    out = states[:, np.where(is_empty, 0, stops - 1)]
    if is_empty.any():
        out[:, is_empty] = before[:, copies.number[is_empty]]
    return out


def running_answer(part: WindowPart, states: Int64s) -> Int64s:
    """Return the answers of a part that runs, from the states at the ends of frames: int64[1 to 3, n]."""
    counts, high, low = states
    if part.kind == "count":
        answer: Int64s = counts.reshape(1, -1)
        return answer
    if part.kind in ("first_value", "last_value", "nth_value"):
        wanted = part.amount if part.kind == "nth_value" else 1
        has = high * (counts >= wanted)
        return np.array([has, low * has], np.int64)
    out = np.empty((2, counts.shape[0]), np.int64)
    out[0] = counts > 0
    if part.kind in ("min", "max"):
        out[1] = low
    elif part.of is not None:
        return _of_decimals(part, states)
    elif part.is_float:
        total = low.view(np.float64)
        if part.kind == "avg":
            total = total / np.maximum(counts, 1)
        out[1] = floats_to_words(np.ascontiguousarray(total))
        out[1] *= out[0]
    else:
        _put_whole(part, states, out)
    return out


def _of_decimals(part: WindowPart, states: Int64s) -> Int64s:
    """Return sums or means of decimals of one word, in the type of the answer."""
    assert part.of is not None and part.to is not None
    counts, high, low = states
    words = np.empty((2, counts.shape[0]), np.int64)
    of_halves(np.array([low, high], np.int64).T, words)
    totals = Numbers(words, part.of.scale, True)
    if part.kind == "avg":
        result = computed("/", totals, Numbers(np.maximum(counts, 1), 0, False), part.to)
    else:
        result = rescaled(totals, part.to)
    return flagged(counts > 0, *result)


def flagged(has_values: Bools, words: Int64s, failing: Bools | None) -> Int64s:
    """Return answers about decimals with the flag that says whether there is a value, and whether it fits."""
    flags = has_values.astype(np.int64)
    answer = np.vstack([flags, words * flags])
    if failing is not None:
        answer[:, failing & has_values] = 0
        answer[0, failing & has_values] = NO_SUM
    return answer


def _put_whole(part: WindowPart, states: Int64s, out: Int64s) -> None:
    """Write the answers of a sum or a mean of whole numbers."""
    counts, high, low = states
    fits = high == low >> 63
    if part.kind == "sum":
        out[0][~fits] = NO_SUM
        out[1] = low
        return
    total = low.astype(np.float64)
    for at in np.flatnonzero(~fits).tolist():
        total[at] = float((int(high[at]) << 64) + (int(low[at]) & (1 << 64) - 1))
    out[1] = floats_to_words(total / np.maximum(counts, 1))
    out[1] *= out[0]


def states_at(
    copies: Copies, functions: WindowFunctions, states: list[Int64s], before: Int64s, at: Int64s
) -> Int64s:
    """Return the states of all functions at some copies: int64[2 + 3 · parts, len(at)]."""
    number = copies.number[at]
    out = np.zeros((2 + 3 * len(functions.parts), at.shape[0]), np.int64)
    out[0] = at - copies.groups[0, at] + 1 + before[0, number]
    if functions.compared[1]:
        out[1] = peers_upto(copies)[at] + before[1, number]
    for place, (part, runs) in enumerate(zip(functions.parts, functions.runs, strict=True)):
        if runs:
            out[2 + 3 * place : 5 + 3 * place] = states[place][:, at]
            if part.kind in _OF_SOME:
                out[2 + 3 * place] = np.minimum(out[2 + 3 * place], 1)
    return out
