"""Join: accumulates, at every time, to the plain join of its accumulated inputs (D5).

meaning_*   random rows, frontiers and compactions, times of depth 1 to 3
pieces_*    large outputs come in pieces, memory goes when a side is complete
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from reference.words import Row, accumulated, as_words, closure_of, joined, less_equal, rows_of
from strategies_words import CODES, RandomHistory
from words_seen import Seen

from differential.kernels.rows import sort
from differential.operators import join as join_module
from differential.operators.join import LEFT, RIGHT, JoinMachine, OwnRows
from differential.trace import run as run_module
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

Words = np.typing.NDArray[np.int64]


def _run(rng: random.Random, depth: int, kw: int, values: tuple[int, int]) -> None:
    guards = CODES[depth].guards
    machine = JoinMachine(kw, *values, guards)
    sides = [RandomHistory(rng, depth, kw + vw) for vw in values]
    sent: list[Row] = []
    for _ in range(10):
        port = rng.choice([LEFT, RIGHT])
        for words in _pieces(machine, port, sides[port].next_rows()):
            sent += rows_of(words)
        moving = rng.choice(sides)
        moving.finish() if rng.random() < 0.05 else moving.rise()
        machine.set_frontiers(sides[0].frontier, sides[1].frontier)
        for trace in machine.traces:
            if rng.random() < 0.3:
                trace.compact()
        machine.check_invariants()
    for time in closure_of({row[-2] for side in sides for row in side.rows}, guards):
        left, right = (accumulated(side.rows, time, guards) for side in sides)
        assert accumulated(sent, time, guards) == joined(left, right, kw)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("kw", "values"), [(1, (1, 1)), (0, (1, 1)), (2, (0, 1)), (1, (2, 0))])
def test_meaning_at_every_time(depth: int, kw: int, values: tuple[int, int], seed: int, effort: int) -> None:
    for trial in range(6 * effort):
        _run(random.Random(f"{seed} {trial}"), depth, kw, values)


def _pieces(machine: JoinMachine, port: int, words: Words) -> list[Words]:
    pieces = [machine.recv(port, words)]
    while not machine.is_done:
        pieces.append(machine.work())
    return pieces


def _run_in_pieces(rng: random.Random, depth: int, kw: int, values: tuple[int, int]) -> None:
    """Rows come in and frontiers rise while pieces are left; nothing is sent that was not held for."""
    guards = CODES[depth].guards
    machine = JoinMachine(kw, *values, guards)
    sides = [RandomHistory(rng, depth, kw + vw) for vw in values]
    sent: list[Row] = []
    held: list[int] = []
    came = 0
    while came < 12 or not machine.is_done:
        chosen = rng.randrange(4)
        if chosen == 0 and came < 12:
            came += 1
            port = rng.choice([LEFT, RIGHT])
            rows = sides[port].next_rows(8)
            held += rows[-2].tolist()
            some = rows_of(machine.recv(port, rows))
            assert all(any(less_equal(word, row[-2], guards) for word in held) for row in some)
            sent += some
            held = machine.capabilities().tolist()
        elif chosen == 1:
            moving = rng.choice(sides)
            moving.finish() if rng.random() < 0.05 else moving.rise()
            machine.set_frontiers(sides[0].frontier, sides[1].frontier)
        elif chosen == 2:
            for trace in machine.traces:
                trace.settle(5) if rng.random() < 0.5 else trace.compact()
        elif not machine.is_done:
            some = rows_of(machine.work())
            assert all(any(less_equal(word, row[-2], guards) for word in held) for row in some)
            sent += some
            still = machine.capabilities().tolist()
            assert all(any(less_equal(word, later, guards) for word in held) for later in still)
            held = still
        machine.check_invariants()
    assert held == []
    for time in closure_of({row[-2] for side in sides for row in side.rows}, guards):
        left, right = (accumulated(side.rows, time, guards) for side in sides)
        assert accumulated(sent, time, guards) == joined(left, right, kw)


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("kw", "values"), [(1, (1, 1)), (0, (1, 1))])
def test_meaning_in_pieces_while_more_comes_in_and_frontiers_rise(
    depth: int,
    kw: int,
    values: tuple[int, int],
    limit: int,
    seed: int,
    effort: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", limit)
    for trial in range(6 * effort):
        _run_in_pieces(random.Random(f"{seed} {trial}"), depth, kw, values)


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes in is packed, and matched two rows at a time."""
    monkeypatch.setattr(sort, "MANY_ROWS", 1)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 1)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 1)
    monkeypatch.setattr(join_module, "PACKED_ROWS_MIN", 1)
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 2)


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("kw", "values"), [(1, (1, 1)), (0, (1, 1)), (2, (0, 1))])
def test_meaning_of_many_rows(depth: int, kw: int, values: tuple[int, int], seed: int, effort: int) -> None:
    for trial in range(3 * effort):
        _run(random.Random(f"{seed} {trial}"), depth, kw, values)
        _run_in_pieces(random.Random(f"{seed} {trial}"), depth, kw, values)


@pytest.mark.usefixtures("_few_are_many")
def test_pieces_of_many_rows_move_to_a_later_anchor_and_show_their_words() -> None:
    code = CODES[1]
    by = Rebase(1, code.unit.bit_length() - 1)
    first, second = code.pack((1,)), code.pack((3,))
    machine = JoinMachine(1, 1, 1, code.guards)
    _pieces(machine, LEFT, as_words([(key, 10 + key, first, 1) for key in range(9)], 4))
    sent = rows_of(machine.recv(RIGHT, as_words([(key, 20 + key, second, 1) for key in range(9)], 4)))
    assert 0 < len(sent) < 9
    assert machine.capabilities().tolist() == [second]
    seen = Seen()
    machine.symbols(Mark([seen]))
    assert seen.words >= {20 + key for key in range(len(sent), 9)}
    for trace in machine.traces:
        trace.rebase(by)
    machine.rebase(by)
    assert machine.capabilities().tolist() == [by.word(second)]
    later: list[Row] = []
    while not machine.is_done:
        later += rows_of(machine.work())
    assert sorted(row[:3] for row in sent + later) == [(key, 10 + key, 20 + key) for key in range(9)]
    assert {row[3] for row in later} == {by.word(second)}


@pytest.mark.usefixtures("_few_are_many")
def test_pieces_of_many_rows_that_are_kept_nowhere_else_show_their_words() -> None:
    code = CODES[1]
    machine = JoinMachine(1, 1, 1, code.guards)
    time = code.pack((1,))
    _pieces(machine, LEFT, as_words([(key, 10 + key, time, 1) for key in range(9)], 4))
    sent = machine.recv(RIGHT, as_words([(key, 20 + key, time, 1) for key in range(9)], 4)).shape[1]
    assert 0 < sent < 9
    nothing = np.empty(0, np.int64)
    machine.set_frontiers(nothing, nothing)
    assert not machine.traces
    seen = Seen()
    machine.symbols(Mark([seen]))
    assert seen.words >= {20 + key for key in range(sent, 9)}


@pytest.mark.usefixtures("_few_are_many")
def test_pieces_of_many_rows_hold_the_minimal_times_of_those_that_are_left() -> None:
    code = CODES[1]
    machine = JoinMachine(1, 1, 1, code.guards)
    times = [code.pack((epoch,)) for epoch in (0, 2, 2, 5, 7, 3, 9, 9, 8)]
    _pieces(machine, LEFT, as_words([(key, 10, times[0], 1) for key in range(9)], 4))
    sent = machine.recv(RIGHT, as_words([(key, 20, time, 1) for key, time in enumerate(times)], 4)).shape[1]
    while not machine.is_done:
        assert machine.capabilities().tolist() == [min(times[sent:])]
        sent += machine.work().shape[1]
    assert sent == 9


@pytest.mark.usefixtures("_few_are_many")
def test_pieces_of_many_rows_are_behind_those_that_wait_already() -> None:
    code = CODES[1]
    machine = JoinMachine(1, 1, 1, code.guards)
    time = code.pack((1,))
    _pieces(machine, LEFT, as_words([(key, 10, time, 1) for key in range(9)], 4))
    first = rows_of(machine.recv(RIGHT, as_words([(key, 20, time, 1) for key in range(9)], 4)))
    assert 0 < len(first) < 9
    assert machine.recv(RIGHT, as_words([(key, 30, time, 1) for key in range(9)], 4)).shape[1] == 0
    while not machine.is_done:
        first += rows_of(machine.work())
    assert [row[2] for row in first] == [20] * 9 + [30] * 9


@pytest.mark.usefixtures("_few_are_many")
def test_many_rows_of_which_a_key_is_null_match_nothing_and_are_not_kept() -> None:
    code = CODES[1]
    machine = JoinMachine(2, 1, 1, code.guards, flags=(0,))
    time = code.pack((1,))
    rows = [(key % 2, key, 7, time, 1) for key in range(6)]
    sent: list[Row] = []
    for port in (LEFT, RIGHT):
        for words in _pieces(machine, port, as_words(rows, 5)):
            sent += rows_of(words)
    assert sorted(row[:2] for row in sent) == [(1, 1), (1, 3), (1, 5)]
    assert [trace.rows for trace in machine.traces] == [3, 3]


def test_pieces_hold_the_minimal_times_of_the_rows_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    code = CODES[2]
    first, second, third = (code.pack(time) for time in [(0, 2), (2, 0), (0, 3)])
    machine = JoinMachine(1, 0, 0, code.guards)
    _pieces(machine, LEFT, as_words([(key, 0, 1) for key in range(3)], 3))
    assert machine.capabilities().tolist() == []
    rows = as_words([(2, third, 1), (0, first, 1), (1, second, 1)], 3)
    assert rows_of(machine.recv(RIGHT, rows)) == [(0, first, 1)]
    assert machine.capabilities().tolist() == [third, second]
    assert rows_of(machine.work()) == [(1, second, 1)]
    assert machine.capabilities().tolist() == [third]
    assert machine.recv(LEFT, as_words([(9, 0, 1)], 3)).shape == (1 + 2, 0)
    assert machine.capabilities().tolist() == [0]
    assert rows_of(machine.work()) == [(2, third, 1)]
    assert machine.capabilities().tolist() == [0], "one more waits"
    assert rows_of(machine.work()) == []
    assert machine.capabilities().tolist() == []
    assert machine.is_done


def test_pieces_are_of_one_state_of_the_other_side_and_later_rows_meet_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    machine = JoinMachine(0, 1, 1, CODES[1].guards)
    _pieces(machine, LEFT, as_words([(5, 0, 1)], 3))
    assert rows_of(machine.recv(RIGHT, as_words([(7, 1, 1), (8, 1, 1)], 3))) == [(5, 7, 1, 1)]
    machine.recv(LEFT, as_words([(6, 1, 1)], 3))
    machine.set_frontiers(np.array([9]), np.empty(0, np.int64))
    assert len(machine.traces) == 1, "no row will come in on the right"
    assert rows_of(machine.work()) == [(5, 8, 1, 1)]
    assert rows_of(machine.work()) == [(6, 7, 1, 1), (6, 8, 1, 1)]
    assert machine.is_done


def test_pieces_together_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1000)
    machine = JoinMachine(0, 1, 1, CODES[1].guards, [("left", 0), ("constant", 4), ("right", 0)])
    column = np.arange(100)
    words = np.stack([column, np.zeros_like(column), np.ones_like(column)])
    assert [piece.shape[1] for piece in _pieces(machine, LEFT, words)] == [0]
    pieces = _pieces(machine, RIGHT, words)
    assert [piece.shape[1] for piece in pieces] == [1000] * 10
    pairs = [row[:3] for piece in pieces for row in rows_of(piece)]
    assert sorted(pairs) == [(a, 4, b) for a in range(100) for b in range(100)]


def test_pieces_of_history_that_nobody_will_match_are_dropped() -> None:
    machine = JoinMachine(1, 1, 1, CODES[1].guards)
    words = np.array([[1], [2], [0], [1]])
    _pieces(machine, LEFT, words)
    machine.set_frontiers(np.array([1]), np.empty(0, np.int64))
    assert len(machine.traces) == 1, "no row will come in on the right"
    assert sum(piece.shape[1] for piece in _pieces(machine, LEFT, words)) == 0
    left = machine.inputs[LEFT].source
    assert isinstance(left, OwnRows) and left.trace.rows == 0, "what comes afterwards is not kept at all"


def test_pieces_that_are_done_may_be_of_before_a_later_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody holds their times any more, as they are sent; those behind them in the same array wait."""
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    code = CODES[1]
    machine = JoinMachine(0, 1, 1, code.guards)
    early, late = code.pack((1,)), code.pack((6,))
    _pieces(machine, LEFT, as_words([(7, 0, 1)], 3))
    assert rows_of(machine.recv(RIGHT, as_words([(1, early, 1), (2, late, 1)], 3))) == [(7, 1, early, 1)]
    assert machine.capabilities().tolist() == [late]
    by = Rebase(5, code.layout.shifts[0])
    for trace in machine.traces:
        trace.rebase(by)
    machine.rebase(by)
    assert rows_of(machine.work()) == [(7, 2, by.word(late), 1)] and machine.is_done


def test_pieces_that_are_put_off_move_to_a_later_anchor_and_leave_the_rows_of_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What waits shares its rows with the trace that keeps them, and with views that were pinned later."""
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 1)
    code = CODES[1]
    machine = JoinMachine(0, 1, 1, code.guards)
    first, later = code.pack((6,)), code.pack((8,))
    old = as_words([(number, 0, 1) for number in range(3_000)], 3)  # so many that later ones stay apart
    _pieces(machine, LEFT, old)
    machine.recv(RIGHT, as_words([(1, first, 1), (2, first, 1)], 3))  # pairs are left
    machine.recv(LEFT, as_words([(number, later, 1) for number in range(3_000, 3_600)], 3))
    machine.recv(RIGHT, as_words([(3, first, 1)], 3))
    by = Rebase(5, code.layout.shifts[0])
    for trace in machine.traces:
        trace.rebase(by)
    machine.rebase(by)
    assert machine.capabilities().tolist() == [by.word(first)]
    found = Counter[tuple[int, ...]]()
    while not machine.is_done:
        found.update(row[:3] for row in rows_of(machine.work()))
    wanted = Counter((left, 2, by.word(first)) for left in range(3_000))
    wanted.update((left, 3, by.word(first)) for left in range(3_000))
    wanted.update((left, right, by.word(later)) for left in range(3_000, 3_600) for right in (1, 2, 3))
    assert found == wanted
