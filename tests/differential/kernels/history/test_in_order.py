"""Values of a key come in order from all runs, symbols by rank. That it gives the right answers is in
`tests/differential/operators/test_reduce.py`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from differential.kernels.history.in_order import NOTHING, SYMBOLS, begin, next_step, with_symbols
from differential.kernels.rows.search import cursors_of, locate
from differential.trace.trace import Trace

GUARDS = 1 << 62


def _walked(
    rows: list[tuple[int, ...]], symbols: list[tuple[int, int]], ranks: dict[int, int]
) -> list[object]:
    """The values of key 1 in the order in which they come, and symbols whose rank was missing."""
    vw = len(rows[0]) - 1
    trace = Trace(1, vw, GUARDS)
    for start in range(0, len(rows), 7):
        some = sorted(set(rows[start : start + 7]))
        words = np.array([(*row, 0, 1) for row in some], np.int64).T.copy()
        trace.insert(words)
        trace.freeze_head()
    lines = trace.lines
    levels = np.array([*symbols, (vw, 0)], np.int64).T.copy()
    known = np.array(sorted(ranks.items()), np.int64).reshape(-1, 2).T.copy()
    located, key = cursors_of(lines), np.array([[1], [0], [0]], np.int64)
    locate(lines, located, key, 0, 1)
    cursors = np.zeros((4 * levels.shape[1], lines.shape[0]), np.int64)
    waiting, marks = np.empty((2, 1), np.int64), np.zeros(levels.shape[1] + 3, np.int64)
    begin(cursors, located, marks)
    value, found = np.empty(vw, np.int64), []
    source = (lines, levels, known, 1)
    while (step := next_step(source, cursors, waiting, marks, value)) != NOTHING:
        if step == SYMBOLS:
            waiting = with_symbols(source, cursors, waiting, marks)
        else:
            blocks = cursors[-2:]
            assert (blocks[1] >= blocks[0]).all() and (blocks[1] > blocks[0]).any()
            found.append(tuple(value.tolist()))
    return [found, sorted(set(waiting[1, : marks[2]].tolist()))]


@pytest.mark.parametrize("symbols", [[], [(1, 1)], [(1, -1)], [(1, 1), (3, -1)], [(3, 1)]], ids=str)
def test_each_different_value_once_in_order(symbols: list[tuple[int, int]], seed: int) -> None:
    rng = random.Random(seed)
    ranks = {symbol: rank for rank, symbol in enumerate(rng.sample(range(-5, 5), 10))}
    rows = [tuple(rng.randrange(-5, 5) for _ in range(5)) for _ in range(300)]
    rows = [(1, row[0] // 4, row[1], row[2] // 4, row[3]) for row in rows] + [
        (0, 0, 0, 0, 0),
        (2, 0, 0, 0, 0),
    ]
    turned = dict(symbols)

    def place(row: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(turned[at] * ranks[word] if at in turned else word for at, word in enumerate(row))

    want = sorted({row[1:] for row in rows if row[0] == 1}, key=place)
    assert _walked(rows, symbols, ranks) == [want, []]


def test_ranks_are_missing_only_where_two_symbols_begin_alike() -> None:
    rows = [(1, 0, 8), (1, 1, 5), (1, 1, 6), (1, 2, 9)]
    assert _walked(rows, [(1, 1)], {}) == [[(0, 8), (1, 5), (1, 6), (2, 9)], [5, 6]]
    assert _walked(rows, [(1, 1)], {5: 1, 6: 0}) == [[(0, 8), (1, 6), (1, 5), (2, 9)], []]
