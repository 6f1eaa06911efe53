"""window_machine.py: the work of a change follows the stretch that it touches."""

from __future__ import annotations

import numpy as np
import pytest

from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_consolidate
from differential.operators.ordered.window_machine import WindowMachine, turns
from differential.operators.reducing import stretches
from differential.operators.reducing.window_parts import Frame, WindowFunctions, WindowPart

EPOCHS = 1 << 62
SIZE = 40_000

SUM = WindowPart("sum", value=1)
NUMBER = WindowPart("row_number")
MOST = WindowPart("max", value=1)
FOURTHS = WindowPart("ntile", amount=4)
RANKS = WindowPart("percent_rank")
ALL = Frame("rows", None, None)


def rows_of(lines: list[tuple[int, int, int, int, int]]) -> Int64s:
    """Rows (key, order, value, epoch, diff)."""
    return sort_consolidate(np.array(lines, np.int64).reshape(-1, 5).T.copy())


def corrected(machine: WindowMachine, rows: Int64s, *until: int) -> Int64s:
    """All corrections up to an epoch; without one these are the last rows."""
    machine.recv(0, [rows])
    machine.advance(np.array(until, np.int64))
    parts = []
    while (part := machine.work()) is not None:
        parts.append(part)
    return np.concatenate(parts, axis=1)


def loaded(*parts: WindowPart, frame: Frame | None = None) -> WindowMachine:
    machine = WindowMachine(1, 2, EPOCHS, WindowFunctions(parts, frame or Frame(), 2, 1))
    lines = np.zeros((5, SIZE), np.int64)
    lines[1], lines[2], lines[4] = np.arange(SIZE) * 2, np.arange(SIZE) % 7, 1
    assert corrected(machine, lines, 1).shape[1] == SIZE
    return machine


@pytest.mark.parametrize(
    ("part", "lines", "changed", "read"),
    [
        (FOURTHS, [(0, 1, 5)], 3, 7_000),  # one at each bound but the first
        (FOURTHS, [(0, 41_001, 5)], 5, 7_000),
        (RANKS, [(0, 20_000, 4, -1), (0, 20_000, 3)], 2, 5_000),
        (RANKS, [(0, 20_000, 4, -1), (0, 20_011, 3)], 12, 5_000),
        (RANKS, [(0, 20_001, 4)], 2 * SIZE - 2, 3 * SIZE),
        ((MOST, ALL), [(0, 20_001, 4)], 1, 5_000),
        ((MOST, ALL), [(0, 20_001, 9)], 2 * SIZE, 3 * SIZE),
        (SUM, [(0, 2 * SIZE - 401, 1)], 401, 1_500),  # in the last 200 rows, all of which change
        (SUM, [(0, 1, 1)], 2 * SIZE - 1, SIZE + 60_000),
        (SUM, [(0, 1, 5), (0, 3, -5)], 4, 3_000),  # behind both nothing changes
        (NUMBER, [(0, 20_000, 4, -1), (0, 20_000, 3)], 2, 3_000),
        (NUMBER, [(0, 20_000, 4, -1), (0, 60_001, 3)], 40_002, SIZE + 60_000),
        (MOST, [(0, 20_001, 4)], 1, 3_000),
        (MOST, [(0, 20_001, 9)], 60_000, SIZE + 60_000),
    ],
)
def test_a_change_reads_little_more_than_the_rows_that_it_changes(
    monkeypatch: pytest.MonkeyPatch,
    part: WindowPart | tuple[WindowPart, Frame],
    lines: list[tuple[int, ...]],
    changed: int,
    read: int,
) -> None:
    machine = loaded(part) if isinstance(part, WindowPart) else loaded(part[0], frame=part[1])
    rows_read: list[int] = []
    stretch_rows = stretches.stretch_rows

    def noted(*arguments: Int64s) -> tuple[Int64s, Int64s]:
        rows, spans = stretch_rows(*arguments)
        rows_read.append(rows.shape[1])
        return rows, spans

    monkeypatch.setattr(stretches, "stretch_rows", noted)
    rows = rows_of([(line[0], line[1], line[2], 1, *(line[3:] or (1,))) for line in lines])
    back = rows.copy()
    back[3], back[4] = 2, -rows[4]
    out = []
    for until, change in ((2, rows), (3, back)):  # the second time by marks of the first
        out.append(corrected(machine, change, until))
        assert abs(out[-1].shape[1] - changed) <= 2
        assert sum(rows_read) <= read
        rows_read.clear()
    both = np.concatenate(out, axis=1)
    both[-2] = 0
    assert sort_consolidate(both).shape[1] == 0, "all is as it was"


def test_rows_of_several_epochs_come_in_turns() -> None:
    rows = rows_of([(0, 1, 1, 3, 1), (0, 2, 1, 5, 1), (0, 4, 1, 5, 1), (1, 1, 1, 5, 1), (1, 2, 2, 9, 1)])
    parts = [(part.T.tolist(), until.tolist()) for part, until in turns(rows, 1, np.array([10]))]
    assert parts == [
        ([[0, 1, 1, 3, 1], [1, 1, 1, 5, 1]], [5]),
        ([[0, 2, 1, 5, 1], [0, 4, 1, 5, 1], [1, 2, 2, 9, 1]], [10]),
    ]
    one = rows_of([(0, 1, 1, 3, 1), (1, 1, 1, 3, 1)])
    assert [part.shape[1] for part, _ in turns(one, 1, np.array([10]))] == [2]


def test_all_turns_are_worked_off_at_the_last_frontier_too() -> None:
    machine = WindowMachine(1, 2, EPOCHS, WindowFunctions((NUMBER,), Frame(), 2, 1))
    rows = rows_of([(0, 1, 1, 3, 1), (0, 1, 1, 5, -2)])
    assert corrected(machine, rows).T.tolist() == [[0, 1, 1, 1, 3, 1], [0, 1, 1, 1, 5, -1]]


def test_no_answers_are_kept_outside_of_loops() -> None:
    machine = loaded(NUMBER)
    assert not machine.keeps_answers and machine.output.rows == 0
    assert WindowMachine(1, 2, EPOCHS | 1 << 30, WindowFunctions((NUMBER,), Frame(), 2, 1)).keeps_answers
