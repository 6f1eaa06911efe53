"""Rows between bounds: the join of many rows with few, without keys, whose condition compares one word of a
row with the few.

The rows are kept in the order of that word. Each of the few rows becomes bounds (low, high): the words for
which the condition is true. When the few rows change, the old bounds and the new ones add up, and only rows
whose word lies where the sum is not 0 are read: for `x > limit` those between the old limit and the new one.
A row that comes in meets all bounds, which are few.

`kernels/history/within.py` does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from differential.columns.overflow import row_overflow
from differential.columns.packed.parts import Part, each_in
from differential.columns.schema import Schema
from differential.expressions.projection import TRAILING_WORDS
from differential.kernels.history.match import FROM_DELTA, FROM_TRACE
from differential.kernels.history.within import (
    LEAST,
    MOST,
    match_bounds,
    match_steps,
    prepare_within,
    steps_of,
)
from differential.kernels.rows.sort import PackedRows, sort_consolidate
from differential.operators.join import (
    LEFT,
    MATCHED_PIECE_ROWS,
    RIGHT,
    JoinInput,
    JoinMachine,
    Source,
    projection_array,
    whole_pairs,
)
from differential.operators.join_vertex import JoinPort, JoinVertex
from differential.trace.run import Run
from progress.compiled.arrays import Int64s

__all__ = ["BOUNDS", "BoundTest", "BoundedJoinMachine", "BoundedJoinVertex", "bounds_of"]

BOUNDS: Final = Schema.of("low: int, high: int")
"""The columns of bounds, for messages."""

BoundTest = tuple[Literal["<", "<=", ">", ">=", "=="], int]
"""How the word of a row compares with a word of one of the few rows, by its place there."""


def bounds_of(rows: Int64s, tests: Sequence[BoundTest]) -> Int64s:
    """Return the bounds (low, high, time, diff) of rows: for words from low to high all tests are true. A row
    for which there is no such word has none.
    """
    low, high = np.full(rows.shape[1], LEAST, np.int64), np.full(rows.shape[1], MOST, np.int64)
    is_some = np.ones(rows.shape[1], np.bool_)
    for op, place in tests:
        words = rows[place]
        if op == ">":
            is_some &= words < MOST
            low = np.maximum(low, words + (words < MOST))
        elif op == "<":
            is_some &= words > LEAST
            high = np.minimum(high, words - (words > LEAST))
        if op in (">=", "=="):
            low = np.maximum(low, words)
        if op in ("<=", "=="):
            high = np.minimum(high, words)
    is_some &= low <= high
    return np.stack([low, high, *rows[-TRAILING_WORDS:]])[:, is_some]


class BoundedJoinMachine(JoinMachine):
    """Joins rows (the left) with bounds (the right), and puts out words of rows; see `JoinMachine`."""

    def __init__(
        self,
        vw: int,
        tests: Sequence[BoundTest],
        guards: int,
        projection: Sequence[Source],
        inputs: Sequence[JoinInput],
    ) -> None:
        """`vw`: words of a row behind the one that is compared."""
        super().__init__(1, vw, 1, guards, projection, inputs)
        prepare_within()
        self._tests = tuple(tests)
        of_trace = projection_array(projection, 1, RIGHT)
        of_trace[0, of_trace[0] == FROM_DELTA] = FROM_TRACE  # also the key, which bounds do not have
        self.projections = [projection_array(projection, 1, LEFT), of_trace]

    def _sorted(self, side: int, parts: list[Part]) -> PackedRows | Int64s:
        if side == LEFT:
            return super()._sorted(side, parts)
        bounds = np.concatenate([bounds_of(words, self._tests) for words in each_in(parts)], axis=1)
        try:
            return sort_consolidate(np.ascontiguousarray(bounds))
        except OverflowError:
            raise row_overflow([bounds], self._shows[side]) from None

    def _accepted(self, side: int, delta: Int64s | Run) -> Int64s:
        if side == RIGHT:
            delta = np.ascontiguousarray(steps_of(delta.words() if isinstance(delta, Run) else delta))
        return super()._accepted(side, delta)

    def _matched(self, side: int, delta: Int64s, start: int, lines: Int64s) -> tuple[Int64s, int]:
        meet = match_bounds if side == LEFT else match_steps
        return meet(delta, start, lines, self.projections[side], self.guards, MATCHED_PIECE_ROWS)


class BoundedJoinVertex(JoinVertex):
    """Joins rows of its own (port 0) with few rows (port 1), which become bounds by `tests`."""

    def __init__(self, schema: Schema, tests: Sequence[BoundTest]) -> None:
        """`schema`: the columns of the rows, the compared one first."""
        ports = (JoinPort(LEFT, False), JoinPort(RIGHT, False))
        words = schema.width - 1
        super().__init__(1, words, 1, (schema, BOUNDS), ports, whole_pairs(1, words, 0))
        self._tests = tuple(tests)

    def _machine_of(self, projection: Sequence[Source], inputs: Sequence[JoinInput]) -> JoinMachine:
        return BoundedJoinMachine(self._widths[1], self._tests, self.code.guards, projection, inputs)
