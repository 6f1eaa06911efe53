"""Merging packed rows: what one sort of all rows makes, whatever the columns, and in whatever pieces."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, consolidated, lub, rows_of
from strategies_words import CODES, Int64s, antichain, frontiers

from differential.columns.packed.block import reserve
from differential.kernels.merging.merge_runs import BLOCK_ROWS
from differential.kernels.merging.merge_words import merge_words, write_packed
from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import ROWS
from differential.trace import merging as merging_module
from differential.trace.merging import Merging, moved_by
from differential.trace.run import Run
from progress.times.time_words import TimeLayout
from progress.times.timestamp import Timestamp
from progress.times.word_order import word_advance

GUARDS = CODES[2].guards
EARLIER, LATER, SINCE = (CODES[2].pack(time) for time in ((0, 3), (2, 0), (2, 3)))
"""Neither of the two is before the other; since is their lub."""

diffs = st.one_of(st.integers(-3, 3), st.integers(-(2**40), 2**40)).filter(bool)


def _rows(words: int) -> st.SearchStrategy[list[Row]]:
    """Rows of so many words, and a diff."""
    word = st.one_of(st.integers(-2, 2), st.integers(-(2**29), 2**29))
    return st.lists(st.tuples(*[word] * words, diffs), max_size=40)


def _merged(one: list[Row], other: list[Row], budget: int, packed: bool) -> tuple[list[Row], bool]:
    """The rows of the merged runs, and whether their rows were packed into words."""
    columns = len(one[0])
    runs = [Run.from_words(as_words(some, columns), GUARDS, packed=packed) for some in (one, other)]
    merge = Merging(runs[0], runs[1], np.array([SINCE]), GUARDS)
    while not merge.is_done:
        assert merge.work(budget) > 0
    result = merge.result()
    if result is not None:
        assert all(lub(time, int(result.line[1]), GUARDS) == result.line[1] for time in result.words()[-2])
    return [] if result is None else rows_of(result.words()), merge.is_packed


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("packed", [True, False])
@given(data=st.data())
def test_packed_rows_become_what_a_sort_makes_of_all(words: int, packed: bool, data: st.DataObject) -> None:
    drawn = data.draw(_rows(words)), data.draw(_rows(words))
    one, other = (
        consolidated((*row[:-1], time, row[-1]) for row in rows)
        for rows, time in zip(drawn, (EARLIER, LATER), strict=True)
    )
    if one and other:
        merged, is_packed = _merged(one, other, data.draw(st.integers(1, 99)), packed)
        assert merged == consolidated((*row[:-2], SINCE, row[-1]) for row in one + other)
        spans = [
            max(row[at] for row in one + other) - min(row[at] for row in one + other) for at in range(words)
        ]
        assert is_packed == (sum(span.bit_length() for span in spans) <= 63)


@pytest.mark.parametrize("budget", [1, 100, 700, 1 << 20])
def test_blocks_that_end_before_others_lose_no_row(budget: int) -> None:
    rng = np.random.default_rng(budget)
    sizes = (2 * BLOCK_ROWS + 1, BLOCK_ROWS)
    one, other = (
        consolidated((int(key), int(key) % 3, time, 1) for key in rng.integers(0, 1500, size))
        for size, time in zip(sizes, (EARLIER, LATER), strict=True)
    )
    merged, is_packed = _merged(one, other, budget, packed=True)
    assert is_packed
    assert merged == consolidated((*row[:-2], SINCE, row[-1]) for row in one + other)


def test_rows_without_keys_and_values_are_one_row() -> None:
    assert _merged([(EARLIER, 5)], [(LATER, -2)], 9, packed=True) == ([(SINCE, 3)], True)
    assert _merged([(EARLIER, 5)], [(LATER, -5)], 9, packed=True) == ([], True)


def _times_of_an_epoch(depth: int) -> st.SearchStrategy[list[int]]:
    """Times that have their first coordinates in common, as those of some iterations."""
    in_common = st.lists(st.integers(0, 4), min_size=1, max_size=depth)
    coordinate = st.integers(0, 4)

    def behind(first: list[int]) -> st.SearchStrategy[list[int]]:
        rest = st.tuples(*[coordinate] * (depth - len(first)))
        return st.lists(rest.map(lambda time: CODES[depth].pack((*first, *time))), min_size=1, max_size=6)

    return in_common.flatmap(behind)


@pytest.mark.parametrize("depth", [1, 2, 3])
@given(data=st.data())
def test_times_that_all_move_by_the_same_are_packed_and_become_what_advancing_makes_of_each(
    depth: int, data: st.DataObject
) -> None:
    guards = CODES[depth].guards
    since = data.draw(frontiers(depth).filter(len))
    tables = [
        consolidated(
            data.draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(times), diffs), max_size=30))
        )
        for times in (data.draw(_times_of_an_epoch(depth)), data.draw(_times_of_an_epoch(depth)))
    ]
    if not all(tables):
        return
    runs = [Run.from_words(as_words(table, 3), guards, packed=True) for table in tables]
    moves = []
    for table in tables:
        times = [row[1] for row in table]
        moves.append(moved_by(min(times), max(times), _least_fields(since, guards), guards))
        for time in times:
            assert moves[-1] in (None, word_advance(time, since, guards) - time)
    merge = Merging(runs[0], runs[1], since, guards)
    assert merge.is_packed == (None not in moves)
    while not merge.is_done:
        assert merge.work(data.draw(st.integers(1, 40))) > 0
    result = merge.result()
    wanted = consolidated(
        (row[0], int(word_advance(row[1], since, guards)), row[2]) for row in tables[0] + tables[1]
    )
    assert wanted == ([] if result is None else rows_of(result.words()))
    if result is not None:
        assert all(lub(time, int(result.line[1]), guards) == result.line[1] for time in result.words()[-2])
        assert result.compacted == since.tobytes()


@pytest.mark.parametrize("chains", [(1, 1, 1), (2, 1), (1, 2), (3,), (1, 1), (2,), (1,)], ids=str)
def test_all_times_between_two_move_by_what_is_said_however_levels_are_chained(
    chains: tuple[int, ...],
) -> None:
    """Levels of one chain, as those of a prioritised loop in a loop, are compared one after another; of all
    fields of two bits some values, the last among them.
    """
    layout = TimeLayout((20, *[2] * (sum(chains) - 1)))
    tops = [sum(chains[:at]) for at in range(len(chains))]
    guards = sum(layout.guard(level) for level in tops)
    values = [(0, 1, 3)] * sum(chains)
    times = sorted(
        sum(value << shift for value, shift in zip(time, layout.shifts, strict=True))
        for time in itertools.product(*values)
    )
    moved = 0
    for since in times:
        moves = [lub(time, since, guards) - time for time in times]
        for first, last in itertools.combinations_with_replacement(range(len(times)), 2):
            by = moved_by(times[first], times[last], since, guards)
            assert by is None or set(moves[first : last + 1]) == {by}
            moved += by is not None and first < last
        assert all(moved_by(time, time, since, guards) == by for time, by in zip(times, moves, strict=True))
    assert moved >= len(times) - 1, "by nothing, where since is the first of all"


def _least_fields(since: Int64s, guards: int) -> int:
    return functools.reduce(lambda one, other: one + other - lub(one, other, guards), since.tolist())


@pytest.mark.parametrize(
    ("depth", "one", "other", "since"),
    [
        pytest.param(2, [(0, 0), (0, 3)], [(0, 4), (0, 7)], [(0, 8), (1, 0)], id="while the loop goes round"),
        pytest.param(2, [(0, 0), (0, 7)], [(1, 0), (1, 9)], [(2, 0)], id="two epochs that are complete"),
        pytest.param(2, [(0, 2), (0, 7)], [(5, 1)], [(6, 1)], id="one of several times, one of one"),
        pytest.param(3, [(0, 2, 0), (0, 2, 9)], [(0, 3, 1)], [(0, 4, 0), (1, 0, 0)], id="in an inner loop"),
        pytest.param(3, [(0, 1, 5), (0, 2, 0)], [(1, 0, 0), (1, 7, 1)], [(3, 0, 0)], id="in both loops"),
    ],
)
def test_iterations_of_an_epoch_are_packed(
    depth: int, one: list[Timestamp], other: list[Timestamp], since: list[Timestamp]
) -> None:
    code = CODES[depth]
    runs = [
        Run.from_words(as_words(consolidated((1, code.pack(time), 1) for time in times), 3), code.guards)
        for times in (one, other)
    ]
    bounds = antichain(since, code)
    merge = Merging(runs[0], runs[1], bounds, code.guards)
    assert merge.is_packed
    while not merge.is_done:
        merge.work(10)
    result = merge.result()
    assert result is not None
    assert rows_of(result.words()) == consolidated(
        (1, int(word_advance(code.pack(time), bounds, code.guards)), 1) for time in one + other
    )


def test_several_times_and_large_words_take_the_other_way() -> None:
    one = [(1, EARLIER, 1), (1, LATER, 1)]
    assert _merged(one, [(1, LATER, 1)], 9, packed=True) == ([(1, SINCE, 3)], False)
    far = [(-(2**63), EARLIER, 1), (2**63 - 1, EARLIER, 1)]
    assert _merged(far, [(1, LATER, 1)], 9, packed=True)[1] is False


@pytest.mark.parametrize("most", [1, 2])
def test_all_bits_that_a_word_has_are_of_use(most: int) -> None:
    """62 of the keys and one of the values; with two of the values there is one too many."""
    one = [(-(2**61), 0, EARLIER, 1), (2**61 - 1, most, EARLIER, 1)]
    other = [(-(2**61), most, LATER, -1), (2**61 - 1, most, LATER, 1)]
    wanted = consolidated((*row[:-2], SINCE, row[-1]) for row in one + other)
    assert _merged(one, other, 9, packed=True) == (wanted, most == 1)


@pytest.mark.parametrize("budget", [1, 7, 100, 700])
def test_no_more_is_done_at_once_than_is_paid_for(budget: int) -> None:
    """Where rows meet, where they take turns, and where one run has come to its end."""
    keys = [*range(900), *range(900, 1800, 2)], [*range(900), *range(901, 1801, 2), *range(1801, 3600)]
    runs = [
        Run.from_words(as_words([(key, time, 1) for key in some], 3), GUARDS, packed=True)
        for some, time in zip(keys, (EARLIER, LATER), strict=True)
    ]
    merge = Merging(*runs, np.array([SINCE]), GUARDS)
    assert merge.is_packed
    while merge.rows:
        assert 0 < merge.work(budget) <= budget + 1
    while not merge.is_done:
        merge.work(budget)
    result = merge.result()
    assert result is not None
    assert rows_of(result.words()) == consolidated((key, SINCE, 1) for some in keys for key in some)


def test_a_sum_that_leaves_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        _merged([(1, EARLIER, 2**62)], [(1, LATER, 2**62)], 9, packed=True)
    with pytest.raises(OverflowError):  # of some rows that are merged together the first
        _merged([(1, EARLIER, 2**62), (2, EARLIER, 1)], [(1, LATER, 2**62), (2, LATER, 1)], 9, packed=True)


@pytest.mark.parametrize("bits", [8, 16, 24, 32, 64])
@pytest.mark.parametrize("negative", [False, True])
def test_a_difference_beyond_its_column_is_not_written_whichever_row_it_is_of(
    bits: int, negative: bool
) -> None:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    line, memory = reserve(3, np.array([[0, 255], [low, high]]))
    assert line[-2] == bits // 8
    table, packing = np.zeros((3, len(line)), np.int64), np.array([[0], [0], [255]])
    table[2] = line
    edge = low if negative else high
    assert write_packed(np.array([[1, 2, 3], [1, edge, 1]]), 3, packing, table, 0)
    table[2, ROWS] = 3
    assert decode_words(table, 2, 2).tolist() == [[1, 2, 3], [1, edge, 1]]
    if bits < 64:
        for beyond in (edge - 1 if negative else edge + 1, -(2**63) if negative else 2**63 - 1):
            assert not write_packed(np.array([[1, 2, 3], [1, beyond, 1]]), 3, packing, table, 0)
    assert memory.nbytes


def test_a_sum_that_outgrows_its_column_begins_again_with_a_wider_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Diffs of ±1 are given a byte, which two such sums would fit: so the first way is told too little."""
    said: list[int] = []

    def told(*arguments: object) -> int:
        done = merge_words(*arguments)  # type: ignore[arg-type]
        if not said:
            arguments[1][4] = 1  # type: ignore[index]
        said.append(done)
        return done

    monkeypatch.setattr(merging_module, "merge_words", told)
    merged, is_packed = _merged([(1, EARLIER, 1)], [(1, LATER, 1), (2, LATER, 1)], 9, packed=True)
    assert (merged, is_packed, len(said)) == ([(1, SINCE, 2), (2, SINCE, 1)], True, 2)
