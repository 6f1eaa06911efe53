"""Reduce: accumulates, at every complete time, to the plain aggregate of its accumulated input (D4).

meaning_*    random rows, frontiers, retractions, negative multiplicities, compactions; depth 1 to 3
pending_*    times at which nothing arrives, and the answer changes all the same
held_*       what is sent later was held for
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
import pytest
from machines import advanced
from reference.words import (
    Row,
    accumulated,
    as_words,
    beyond,
    closure_of,
    firsts,
    less_equal,
    reduced,
    rows_of,
)
from strategies_words import CODES, RandomHistory

from differential.kernels.sums.accumulated import COUNT as COUNT_OF
from differential.kernels.sums.accumulated import TOTAL
from differential.operators.reduce import (
    Accumulation,
    Aggregates,
    FirstRows,
    GroupFunction,
    RankKind,
    ReduceMachine,
)

Plain = Callable[[dict[Row, int]], dict[Row, int]]
NOTHING = np.empty(0, np.int64)


def two_least(key: Row, members: list[tuple[Row, int]]) -> list[Row]:
    """The two smallest values present; one that is there twice counts twice."""
    assert members == sorted(members)
    assert all(count != 0 for _, count in members)
    return [values for values, count in members for _ in range(min(count, 2))][:2]


def _plain_function(rows: dict[Row, int], kw: int) -> dict[Row, int]:
    found: dict[Row, int] = {}
    for key in {row[:kw] for row in rows}:
        members = sorted((row[kw:], count) for row, count in rows.items() if row[:kw] == key)
        for values in two_least(key, members):
            found[key + values] = found.get(key + values, 0) + 1
    return found


def _check(
    machine: ReduceMachine,
    plain: Plain,
    rng: random.Random,
    depth: int,
    retract: float,
    compacts: bool = True,
    negative: bool = False,
    least: int = -1,
) -> None:
    """`negative`: most rows are taken away that were never there. `least`: of the words of rows, to 2."""
    guards = CODES[depth].guards
    history, sent = RandomHistory(rng, depth, machine.kw + machine.vw, retract), []
    history.least = least
    if negative:
        history.diffs = [-1, -1, -2, 1, 2]
    for step in range(8):
        machine.recv(0, [history.next_rows()])
        history.rise() if step < 7 else history.finish()
        frontier = history.frontier
        held = machine.needs().tolist()
        some = rows_of(advanced(machine, frontier))
        assert all(any(less_equal(word, row[-2], guards) for word in held) for row in some)
        assert not any(beyond(row[-2], frontier, guards) for row in some)
        assert all(beyond(word, frontier, guards) for word in machine.needs().tolist())
        sent += some
        for trace in (machine.input, machine.output):
            if compacts and rng.random() < 0.3:
                trace.compact()
            elif rng.random() < 0.5:
                trace.freeze_head()
        machine.check_invariants()
        for time in closure_of({row[-2] for row in history.rows}, guards):
            if not beyond(time, frontier, guards):
                want = plain(accumulated(history.rows, time, guards))
                assert accumulated(sent, time, guards) == want, CODES[depth].unpack(time)
    assert machine.needs().shape == (0,)


@pytest.mark.parametrize("retract", [0.1, 0.5])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("kw", "vw", "parts"),
    [
        (1, 1, (("min", 0),)),
        (1, 1, (("max", 0),)),
        (2, 1, (("min", 0),)),
        (0, 1, (("min", 0),)),
        (1, 0, ()),
        (2, 0, ()),
        (1, 0, (("count", 0),)),
        (1, 2, (("count", 0), ("min", 1), ("min", 0), ("max", 1))),
        (0, 1, (("count", 0), ("max", 0))),
    ],
)
def test_meaning_of_built_in_aggregates_at_every_time(
    kw: int, vw: int, parts: tuple[tuple[str, int], ...], depth: int, retract: float, seed: int, effort: int
) -> None:
    for trial in range(8 * effort):
        machine = ReduceMachine(kw, vw, CODES[depth].guards, Aggregates(parts))  # type: ignore[arg-type]
        _check(
            machine, lambda rows: reduced(rows, kw, parts), random.Random(f"{seed} {trial}"), depth, retract
        )


def _plain_sums(rows: dict[Row, int], kw: int) -> dict[Row, int]:
    """By key: how often component 0 is there, and that of component 1 and 2³² times that of 2."""
    found: dict[Row, int] = {}
    for key in {row[:kw] for row in rows}:
        rows_of_key, low, high = (rows.get((*key, component), 0) for component in range(3))
        if rows_of_key:
            found[*key, rows_of_key, low + (high << 32)] = 1
    return found


@pytest.mark.parametrize("retract", [0.1, 0.5])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kw", [0, 1, 2])
def test_meaning_of_sums_of_components_at_every_time(
    kw: int, depth: int, retract: float, seed: int, effort: int
) -> None:
    sums = Accumulation(((COUNT_OF, 0, -1, 0, 0), (TOTAL, 1, -1, 0, 0)), 3, 1)
    for trial in range(8 * effort):
        machine = ReduceMachine(kw, 1, CODES[depth].guards, sums)
        rng = random.Random(f"{seed} {trial}")
        _check(machine, lambda rows: _plain_sums(rows, kw), rng, depth, retract, least=0)


def test_sums_hide_the_symbols_of_rows_that_wait() -> None:
    code = CODES[1]
    formulas = ((COUNT_OF, 0, -1, 0, 0), (TOTAL, 1, -1, 0, 0))
    rows = np.array([[7] * 3, [0, 1, 2], [code.pack((1,))] * 3, [1, 5, 6]], np.int64)
    for symbols in (True, False):
        machine = ReduceMachine(1, 1, code.guards, Accumulation(formulas, 3, 1, symbols))
        assert not machine.hides_words(False)
        assert machine.hides_words(True) == symbols, "a batch has them"
        machine.recv(0, [rows])
        assert machine.hides_words(False) == symbols
        machine.advance(np.array([code.pack((1,))], np.int64))
        while machine.work() is not None:
            pass
        assert machine.hides_words(False) == symbols
        machine.advance(np.array([code.pack((2,))], np.int64))
        assert machine.work() is not None
        assert not machine.hides_words(False)
    counts = ReduceMachine(1, 0, code.guards, Aggregates(()))
    assert not counts.hides_words(True)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("kw", "vw"), [(1, 1), (0, 2), (2, 1)])
def test_meaning_of_a_function_at_every_time(depth: int, kw: int, vw: int, seed: int, effort: int) -> None:
    for trial in range(5 * effort):
        machine = ReduceMachine(kw, vw, CODES[depth].guards, GroupFunction(two_least, vw))
        _check(machine, lambda rows: _plain_function(rows, kw), random.Random(f"{seed} {trial}"), depth, 0.35)


@pytest.mark.parametrize("retract", [0.1, 0.5])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("kw", "first"),
    [
        (1, FirstRows(1, 1)),
        (1, FirstRows(2, 2)),
        (0, FirstRows(1, 3, offset=1)),
        (2, FirstRows(1, 2, offset=2)),
        (1, FirstRows(2, 1 << 40)),
        (1, FirstRows(2, 3, rank="row_number", ordered=1)),
        (1, FirstRows(2, 2, offset=1, rank="rank", ordered=1)),
        (0, FirstRows(2, 1 << 40, rank="dense", ordered=1)),
        (1, FirstRows(2, 2, ordered=1, ties=True)),
        (0, FirstRows(3, 2, offset=1, rank="rank", ordered=1, ties=True)),
        (1, FirstRows(3, 1, rank="dense", ordered=2, ties=True)),
        (1, FirstRows(2, 3, rank="row_number", ordered=1, ties=True)),
    ],
    ids=repr,
)
def test_meaning_of_first_rows_at_every_time(
    kw: int, first: FirstRows, depth: int, retract: float, seed: int, effort: int
) -> None:
    span = (first.offset, first.offset + min(first.limit, 1000))
    plain = partial(firsts, kw=kw, span=span, rank=first.rank, ordered=first.ordered, ties=first.ties)
    for trial in range(6 * effort):
        machine = ReduceMachine(kw, first.width, CODES[depth].guards, first)
        rng = random.Random(f"{seed} {trial}")
        _check(machine, plain, rng, depth, retract, negative=trial % 3 == 2)


PLACES = {-1: 2, 0: 0, 1: 3, 2: 1}
"""The rank of each symbol of a test; its half is what stands before it."""


def ranks_of(symbols: np.ndarray) -> np.ndarray:
    return np.array([PLACES[symbol] for symbol in symbols.tolist()], np.int64)


def _with_beginnings(words: np.ndarray, symbols: list[tuple[int, int]]) -> np.ndarray:
    """Rows of a key and two symbols, each behind the word that it begins with."""
    parts = [words[:1]]
    for line, (_, turn) in zip(words[1:-2], symbols, strict=True):
        begins = np.array([turn * (PLACES[symbol] // 2) for symbol in line.tolist()], np.int64)
        parts += [begins.reshape(1, -1), line.reshape(1, -1)]
    return np.ascontiguousarray(np.concatenate([*parts, words[-2:]]))


@pytest.mark.parametrize("turns", [(1, 1), (-1, 1), (1, -1)])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("rank", [None, "rank"])
def test_meaning_of_first_rows_by_what_symbols_stand_for(
    turns: tuple[int, int], depth: int, rank: RankKind | None, seed: int, effort: int
) -> None:
    symbols = [(1, turns[0]), (3, turns[1])]
    first = FirstRows(4, 2, 1, rank, 2, tuple(symbols), ranks_of)

    def order(row: Row) -> tuple[int, int]:
        return turns[0] * PLACES[row[1]], turns[1] * PLACES[row[3]]

    for trial in range(6 * effort):
        rng = random.Random(f"{seed} {trial}")
        guards = CODES[depth].guards
        machine = ReduceMachine(1, 4, guards, first)
        history, sent, rows = RandomHistory(rng, depth, 3), [], []
        history.diffs = [1, 1, 2, -1] if trial % 2 else [-1, -1, -2, 1, 2]
        for step in range(8):
            some = _with_beginnings(history.next_rows(), symbols)
            rows += rows_of(some)
            machine.recv(0, [some])
            history.rise() if step < 7 else history.finish()
            sent += rows_of(advanced(machine, history.frontier))
            if rng.random() < 0.3:
                machine.input.compact()
            machine.check_invariants()
            for time in closure_of({row[-2] for row in rows}, guards):
                if not beyond(time, history.frontier, guards):
                    want = firsts(accumulated(rows, time, guards), 1, (1, 3), rank, 2, order)
                    assert accumulated(sent, time, guards) == want, CODES[depth].unpack(time)


def how_many(key: Row, members: list[tuple[Row, int]]) -> list[Row]:
    """The count, as a function."""
    del key
    return [(sum(count for _, count in members),)]


COUNT = (0, 0, Aggregates((("count", 0),)), [("count", 0)])
COMPACTED = [
    *[
        (*COUNT, *case)
        for case in [(520, 8, 0.3, 0.3), (524, 8, 0.6, 0.3), (549, 6, 0.3, 0.3), (741, 8, 0.6, 0.0)]
    ],
    *[
        (0, 0, GroupFunction(how_many, 1), [("count", 0)], *case)
        for case in [(520, 8, 0.3, 0.3), (549, 6, 0.3, 0.3)]
    ],
    (1, 0, Aggregates(()), [], 565, 8, 0.6, 0.3),
    (0, 1, Aggregates((("min", 0),)), [("min", 0)], 2628, 8, 0.6, 0.0),
    (1, 1, Aggregates((("min", 0),)), [("min", 0)], 1895, 6, 0.6, 0.0),
]


@pytest.mark.parametrize(("kw", "vw", "aggregate", "parts", "trial", "steps", "often", "retract"), COMPACTED)
def test_meaning_at_depth_3_after_the_input_alone_was_compacted(
    kw: int,
    vw: int,
    aggregate: Aggregates | GroupFunction,
    parts: list[tuple[str, int]],
    trial: int,
    steps: int,
    often: float,
    retract: float,
) -> None:
    """The answer's history then has times that the input's no longer has, and that count all the same.

    Histories for which they do are rare: these were found among thousands, and more are looked at besides.
    """
    for number in (trial, *range(3)):
        rng, guards = random.Random(number), CODES[3].guards
        machine = ReduceMachine(kw, vw, guards, aggregate)
        history, sent = RandomHistory(rng, 3, kw + vw, retract), []
        for step in range(steps):
            machine.recv(0, [history.next_rows(6)])
            history.rise() if step < steps - 1 else history.finish()
            sent += rows_of(advanced(machine, history.frontier))
            if rng.random() < often:
                machine.input.compact()
        for time in closure_of({row[-2] for row in history.rows}, guards):
            want = reduced(accumulated(history.rows, time, guards), kw, parts)
            assert accumulated(sent, time, guards) == want, number


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("vw", [1, 2])
def test_meaning_of_the_least_and_greatest_among_negative_rows_in_several_runs(
    kind: Literal["min", "max"], vw: int, depth: int, seed: int, effort: int
) -> None:
    """With one value word and with two: the two ways in which it is found."""
    for trial in range(5 * effort):
        machine = ReduceMachine(1, vw, CODES[depth].guards, Aggregates(((kind, vw - 1),)))
        plain = partial(reduced, kw=1, parts=[(kind, vw - 1)])
        rng = random.Random(f"{seed} {trial}")
        _check(machine, plain, rng, depth, 0.2, compacts=False, negative=True)


def test_negative_rows_are_no_answer_and_hide_as_many_of_their_value() -> None:
    machine = ReduceMachine(1, 1, CODES[1].guards, Aggregates((("min", 0),)))
    steps: list[tuple[list[Row], list[Row]]] = [
        ([(7, 5, 0, -1)], []),
        ([(7, 9, 1, 1)], [(7, 9, 1, 1)]),
        ([(7, 5, 2, 1)], []),
        ([(7, 5, 3, 1)], [(7, 5, 3, 1), (7, 9, 3, -1)]),
        ([(7, 5, 4, -3)], [(7, 5, 4, -1), (7, 9, 4, 1)]),
        ([(7, 9, 5, -1)], [(7, 9, 5, -1)]),
    ]
    for epoch, (rows, want) in enumerate(steps):
        machine.recv(0, [as_words(rows, 4)])
        assert rows_of(advanced(machine, np.array([epoch + 1]))) == want
        machine.input.freeze_head()


def test_pending_a_time_at_which_nothing_arrives() -> None:
    """One more at (1, 0), one less at (0, 1): nothing changes in sum, but at (1, 1) both are there."""
    code = CODES[2]
    early, late, both = (code.pack(time) for time in [(0, 1), (1, 0), (1, 1)])
    machine = ReduceMachine(1, 0, code.guards, Aggregates(()))
    machine.recv(0, [as_words([(7, late, 1), (7, early, -1)], 3)])
    assert rows_of(advanced(machine, np.array([both]))) == [(7, late, 1)]
    assert machine.needs().tolist() == [both]
    assert rows_of(advanced(machine, NOTHING)) == [(7, both, -1)]
    assert machine.needs().tolist() == []


def test_pending_times_are_given_up_when_a_key_has_nothing_left_to_say() -> None:
    code = CODES[2]
    machine = ReduceMachine(1, 1, code.guards, Aggregates((("min", 0),)))
    machine.recv(0, [as_words([(7, 5, code.pack((0, 0)), 1), (7, 9, code.pack((0, 3)), 1)], 4)])
    advanced(machine, np.array([code.pack((1, 0))]))
    machine.recv(0, [as_words([(7, 8, code.pack((1, 0)), 1)], 4)])
    assert rows_of(advanced(machine, np.array([code.pack((1, 1)), code.pack((2, 0))]))) == []
    assert machine.needs().tolist() == [], "8 is behind 5 at every time"


def test_held_are_exactly_the_minimal_waiting_times() -> None:
    code = CODES[2]
    machine = ReduceMachine(1, 0, code.guards, Aggregates((("count", 0),)))
    times = [code.pack(time) for time in [(2, 1), (1, 2), (2, 2), (3, 0)]]
    machine.recv(0, [as_words([(1, time, 1) for time in times], 3)])
    assert machine.needs().tolist() == [times[1], times[0], times[3]]


def test_a_large_load_at_once_and_a_small_change() -> None:
    rng = np.random.default_rng(11)
    machine = ReduceMachine(1, 1, CODES[1].guards, Aggregates((("min", 0),)))
    words = rng.integers(0, 5_000, (4, 60_000))
    words[2], words[3] = 0, 1
    machine.recv(0, [words])
    sent = rows_of(advanced(machine, np.array([1])))
    least: dict[int, int] = {}
    for key, value, *_ in rows_of(words):
        least[key] = min(least.get(key, value), value)
    assert sent == [(key, value, 0, 1) for key, value in sorted(least.items())]
    machine.recv(0, [as_words([(3, -1, 1, 1)], 4)])
    assert rows_of(advanced(machine, np.array([2]))) == [(3, -1, 1, 1), (3, least[3], 1, -1)]
