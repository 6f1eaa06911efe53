"""The correction at a time, from the sums at its corners; `reduce_sums.py` defines corners.

sums        int64[2^chains, components]: by *class*, which is the set of chains in which a row is earlier than
            the time; the sum at a corner is that of all classes that contain its chains
aggregates  int64[7, m], as in `accumulated.py`, for components; int64[2, m]: m times the total multiplicity
            of the rows, where that is not 0; m = 0: the group is present if the total is positive
"""

from __future__ import annotations

from typing import Final

import numpy as np

from differential.kernels.overflow import refuse
from differential.kernels.sums.accumulated import COUNT, REFUSED, answer_and_excess
from progress.compiled.kernel import Int64s, kernel, small_kernel

HALF: Final = (1 << 32) - 1


@kernel
def classes_of(guards: int) -> int:
    """Return the number of sets of chains."""
    classes = np.int64(1)
    while guards != 0:
        classes, guards = 2 * classes, guards & (guards - 1)
    return classes


@small_kernel
def class_of(word: int, time: int, guards: int, steps: int) -> int:
    """Return the class of a row at `word`, which is ≤ `time`, as a number with a bit for each chain."""
    earlier = ((time | guards) - steps - word) & guards
    number, bit, rest = np.int64(0), np.int64(1), guards
    while rest != 0:
        if earlier & rest & -rest != 0:
            number |= bit
        bit <<= 1
        rest &= rest - 1
    return number


@small_kernel
def sum_corners(sums: Int64s) -> None:
    """Turn the sums of classes into those of corners, in place: of all classes that contain their chains."""
    classes, step = sums.shape[0], 1
    while step < classes:
        for number in range(classes):
            if number & step == 0:
                for component in range(sums.shape[1]):
                    sums[number, component] += sums[number | step, component]
        step <<= 1


@kernel
def answer_words(sums: Int64s, number: int, aggregates: Int64s, out: Int64s, at: int, column: int) -> None:
    """Write the answer of one line of components into a column of `out`, from line `at` on."""
    line = sums[number]
    for part in range(aggregates.shape[1]):
        word, excess = answer_and_excess(line, aggregates, part)
        if aggregates.shape[0] <= REFUSED:
            refuse(excess)
        elif excess != 0:
            aggregates[REFUSED, 0] = 1
        out[at + part, column] = word


@small_kernel
def answer_of(sums: Int64s, number: int, aggregates: Int64s, out: Int64s, at: int, column: int) -> bool:
    """Write the answer of one line of sums into a column of `out`, from line `at` on.

    Return False if the group is absent there.
    """
    if aggregates.shape[0] == 2:
        total = sums[number, 0]
        for part in range(aggregates.shape[1]):
            out[at + part, column] = total
        if aggregates.shape[1] > 0:
            return total != 0
        high = sums[number, 1] + (total >> 32)
        return high > 0 or (high == 0 and total & HALF != 0)
    for part in range(aggregates[6, 0]):
        if sums[number, part] == 0:
            return False
    for part in range(aggregates.shape[1]):
        if aggregates[0, part] != COUNT or aggregates[2, part] >= 0:
            answer_words(sums, number, aggregates, out, at, column)
            return True
        out[at + part, column] = sums[number, aggregates[1, part]]
    return True


@small_kernel
def put_answer(out: Int64s, kw: int, words: int, start: int, end: int, sign: int) -> int:
    """Add `sign` times the answer in column `end` of `out` to the sorted answers from column `start` on.

    Return their new end.
    """
    at, order = end, 1
    while at > start and order > 0:
        order = 0
        for word in range(kw, kw + words):
            if out[word, at - 1] != out[word, end]:
                order = 1 if out[word, at - 1] > out[word, end] else -1
                break
        at -= order > 0
    if at > start and order == 0:
        out[kw + words + 1, at - 1] += sign
        return end
    if at < end:
        for line in range(kw, kw + words):
            word = out[line, end]
            for row in range(end, at, -1):
                out[line, row] = out[line, row - 1]
            out[line, at] = word
        for row in range(end, at, -1):
            out[kw + words + 1, row] = out[kw + words + 1, row - 1]
    out[kw + words + 1, at] = sign
    return end + 1


@small_kernel
def put_corrections(sums: Int64s, aggregates: Int64s, time: int, out: Int64s, kw: int, start: int) -> int:
    """Write the corrections at a time behind the first `start` rows of `out`, without keys.

    They are sorted and consolidated. Return the row behind them. `sums` are those of corners. Requires: room
    for a row for each corner, and one more.
    """
    words, end = aggregates.shape[1], start
    for number in range(sums.shape[0]):
        if answer_of(sums, number, aggregates, out, kw, end):
            sign, rest = np.int64(1), number
            while rest != 0:
                sign, rest = -sign, rest & (rest - 1)
            end = put_answer(out, kw, words, start, end, sign)
    stop = start
    for row in range(start, end):
        if out[kw + words + 1, row] != 0:
            if stop != row:
                for line in range(kw, kw + words):
                    out[line, stop] = out[line, row]
                out[kw + words + 1, stop] = out[kw + words + 1, row]
            out[kw + words, stop] = time
            stop += 1
    return stop
