"""Whole numbers that may not leave 64 bits: the same as Python's, or an error; and so in every kernel that
adds or multiplies.

numbers_*   the two-word sums and products by themselves
kernels_*   a kernel raises exactly if a result leaves 64 bits, whatever its partial sums do
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, consolidated, reduced, rows_of
from strategies_words import CODES

from differential.kernels import overflow
from differential.kernels.history.groups import COUNT, LEAST, reduce_groups
from differential.kernels.history.history import LARGEST, check_key, consolidate_key, gathered
from differential.kernels.history.match import FROM_DELTA, FROM_TRACE, match
from differential.kernels.least.least import reduce_least
from differential.kernels.merging.merge import insert_into_head, merge
from differential.kernels.merging.merge_runs import sort_times
from differential.kernels.rows.memory import HEADER
from differential.kernels.rows.packing import survey
from differential.kernels.rows.search import cursors_of
from differential.kernels.rows.sort import sort_consolidate, sort_indexed, sort_parts
from differential.kernels.sums.accumulated import TOTAL
from differential.kernels.sums.reduce_sums import reduce_sums
from differential.thresholds import MANY_ROWS
from differential.trace.merging import Merging
from differential.trace.run import Run
from differential.trace.trace import Trace
from progress.compiled.kernel import kernel

CODE = CODES[2]
GUARDS = CODE.guards
MIN, MAX = -(2**63), 2**63 - 1
LARGE = st.sampled_from([MIN, MIN + 1, -(2**62), -1, 1, 2, 2**62, 2**62 + 1, MAX - 1, MAX])
WORD = LARGE | st.integers(MIN, MAX)
TIME = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(CODE.pack)
NONE = np.empty((2, 0), np.int64)


def fits(number: int) -> bool:
    return MIN <= number <= MAX


def split(number: int) -> tuple[int, int]:
    low = number & (2**64 - 1)
    return number >> 64, low - 2**64 if low >= 2**63 else low


def raises_or(expected: bool, call: Callable[[], object]) -> object:
    """What `call` returns if `expected`; otherwise it must find an overflow."""
    if expected:
        return call()
    with pytest.raises(OverflowError):
        call()
    return None


@given(st.integers(-(2**126), 2**126), WORD, WORD)
def test_numbers_in_two_words_are_those_of_python(number: int, a: int, b: int) -> None:
    high, low = split(number)
    assert overflow.wide_add(high, low, a) == split(number + a)
    assert overflow.wide_multiply(a, b) == split(a * b)
    assert (overflow.excess(*split(a * b)) == 0) == fits(a * b)
    assert overflow.is_positive(high, low) == (number > 0)


@given(WORD, WORD)
def test_numbers_that_are_added_fit_or_are_refused(a: int, b: int) -> None:
    assert raises_or(fits(a + b), lambda: overflow.checked_add(a, b)) == (a + b if fits(a + b) else None)
    assert 2 ** overflow.magnitude(a).bit_length() >= abs(a)
    assert raises_or(a == 0, lambda: overflow.refuse(a)) is None


@kernel
def add_positive(a: int, b: int) -> int:
    """A caller from which the compiler knows that no operand is below 0."""
    return overflow.checked_add(a, b) if a >= 0 and b >= 0 else np.int64(0)


@kernel
def distance(a: int, b: int) -> tuple[int, bool]:
    """A caller from which the compiler knows which one is less."""
    apart = overflow.wrapped_subtract(b, a) if a < b else np.int64(0)
    return apart, apart < 0


@given(WORD, WORD)
def test_numbers_of_known_signs_fit_or_are_refused(a: int, b: int) -> None:
    """The compiler may take it for granted that sums of signed numbers fit, and leave the question out."""
    if a >= 0 and b >= 0:
        assert raises_or(fits(a + b), lambda: add_positive(a, b)) == (a + b if fits(a + b) else None)
    assert distance(a, b) == ((split(b - a)[1], not fits(b - a)) if a < b else (0, False))
    assert overflow.wrapped_add(a, b) == split(a + b)[1]


@given(st.lists(WORD, max_size=4))
def test_numbers_change_their_sign_unless_there_is_none(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    raises_or(MIN not in numbers, lambda: overflow.negate_all(values))
    if MIN not in numbers:
        assert values.tolist() == [-number for number in numbers]


def _rows(words: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(*[st.integers(0, 1)] * words, TIME, LARGE), max_size=8)


def _fit(rows: list[Row]) -> bool:
    return all(fits(row[-1]) for row in consolidated(rows))


@given(_rows(1), st.booleans())
def test_kernels_sorting(some: list[Row], wide: bool) -> None:
    if wide:  # no bits to spare for packing
        some = [((value - 1) << 62 | 1, time, diff) for value, time, diff in some]
    found = raises_or(_fit(some), lambda: rows_of(sort_consolidate(as_words(some, 3))))
    assert found is None or found == consolidated(some)
    if some:
        seen = np.empty((4, 3), np.int64)
        survey(as_words(some, 3), seen, 1)
        found = raises_or(_fit(some), lambda: rows_of(sort_indexed(as_words(some, 3), seen)))
        assert found is None or found == consolidated(some)


@pytest.mark.parametrize("large", [3 * 2**40, 2**55, 2**62])
def test_kernels_sorting_many_rows_leaves_the_rows_in_question_behind(large: int) -> None:
    """Packed or by index; what is left is enough to say which row it is."""
    count = MANY_ROWS
    words = np.stack([np.arange(count) % 100, np.zeros(count, np.int64), np.full(count, large // 2**15)])
    words[2, words[0] == 7] = large
    wrong = large * int((words[0] == 7).sum())
    parts = [np.ascontiguousarray(words[:, :5]), np.ascontiguousarray(words[:, 5:])]
    if fits(wrong):
        assert sort_parts(parts)[2, 7] == wrong
        return
    with pytest.raises(OverflowError):
        sort_parts(parts)
    left = np.concatenate(parts, axis=1)
    assert sum(left[2, left[0] == 7].tolist()) == wrong


@given(_rows(1), _rows(1))
@example([(0, 0, MIN)], [(0, 0, MIN)])  # their sum wraps to 0, which is no row
def test_kernels_merging_and_inserting(one: list[Row], other: list[Row]) -> None:
    one, other = consolidated(one), consolidated(other)
    if not (_fit(one) and _fit(other)):
        return
    ok = _fit(one + other)
    a, b = as_words(one, 3), as_words(other, 3)
    found = raises_or(ok, lambda: rows_of(merge(a, b)))
    assert found is None or found == consolidated(one + other)
    head, table = np.empty((6, 64), np.int64), np.zeros((1, HEADER + 9), np.int64)
    insert_into_head(head, table, 0, a, GUARDS)
    raises_or(ok, lambda: insert_into_head(head, table, 0, b, GUARDS))


@given(_rows(1).filter(consolidated), st.integers(1, 9))
def test_kernels_compacting_a_run(some: list[Row], budget: int) -> None:
    some = consolidated(some)
    if not _fit(some):
        return
    since = np.array([CODE.pack((2, 2))])
    moved = [(row[0], int(since[0]), row[-1]) for row in some]
    merging = Merging(Run.from_words(as_words(some, 3), GUARDS), None, since, GUARDS)

    def compact() -> list[Row]:
        while not merging.is_done:
            merging.work(budget)
        result = merging.result()
        return [] if result is None else rows_of(result.words())

    found = raises_or(_fit(moved), compact)
    assert found is None or found == consolidated(moved)


@given(st.lists(st.tuples(st.integers(0, 1), LARGE), max_size=6))
def test_kernels_summing_times(pairs: list[tuple[int, int]]) -> None:
    times = np.array([time for time, _ in pairs], np.int64)
    diffs = np.array([diff for _, diff in pairs], np.int64)
    raises_or(_fit(list(pairs)), lambda: sort_times(times, diffs, 0, len(pairs)))


@given(LARGE, LARGE)
def test_kernels_matching(one: int, other: int) -> None:
    trace = Trace(1, 0, GUARDS)
    trace.insert(as_words([(1, 0, other)], 3))
    delta, projection = as_words([(1, 0, one)], 3), np.array([[FROM_DELTA, FROM_TRACE], [0, 0]])
    found = raises_or(
        fits(one * other), lambda: rows_of(match(delta, 0, trace.table, 1, projection, GUARDS, 9)[0])
    )
    assert found is None or found == [(1, 1, 0, one * other)]


AGGREGATES = [[("count", 0)], [("count", 0), ("min", 0)], [("min", 0)], []]


@given(st.lists(st.tuples(st.just(1), LARGE, TIME, LARGE), max_size=6), st.sampled_from(AGGREGATES))
def test_kernels_of_groups_are_right_at_every_time_or_refuse(
    some: list[Row], parts: list[tuple[str, int]]
) -> None:
    """Refused are counts beyond 64 bits at some time, and rows whose own changes are."""
    kinds = {"count": COUNT, "min": LEAST}
    aggregates = np.array([(kinds[kind], word) for kind, word in parts], np.int64).reshape(-1, 2).T.copy()
    trace, answers = Trace(1, 1, GUARDS), Trace(1, 1, GUARDS)
    some = consolidated(some)
    if _fit(some):
        trace.insert(as_words(some[::2], 4))

    def run(new: np.ndarray, frontier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = np.array([1, 1, GUARDS, aggregates.shape[1], -1])
        return reduce_groups(new, NONE, trace.table, answers.table, frontier, shape, aggregates)

    _right_or_refused(some, some[1::2], run, lambda rows: reduced(rows, 1, parts))


@given(st.lists(st.tuples(st.just(1), st.integers(0, 2), TIME, LARGE), max_size=6))
def test_kernels_of_sums_are_right_at_every_time_or_refuse(some: list[Row]) -> None:
    """As above, of a sum: how often component 1 is there, and 2³² times component 2."""

    def plain(rows: dict[Row, int]) -> dict[Row, int]:
        there, low, high = (rows.get((1, component), 0) for component in range(3))
        return {(1, low + (high << 32)): 1} if there else {}

    def run(new: np.ndarray, frontier: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return reduce_sums(new, NONE, Trace(1, 1, GUARDS).table, frontier, SUM_SHAPE, SUM)

    some = consolidated(some)
    _right_or_refused(some, some, run, plain)


SUM = np.array([[TOTAL, 1, -1, 0, 0, 3, 1]]).T.copy()
SUM_SHAPE = np.array([1, 1, GUARDS, 1, -1, 1])


def _right_or_refused(
    some: list[Row],
    new: list[Row],
    reduce: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    plain: Callable[[dict[Row, int]], dict[Row, int]],
) -> None:
    """What `reduce` says of new rows makes answers those of `plain` at every time, unless a number leaves 64
    bits."""
    if not _fit(some) or not some:
        return
    seeds = [row[2] for row in new]
    times = [CODE.pack((epoch, i)) for epoch in range(3) for i in range(3)]
    after = [time for time in times if any(_behind(seed, time) for seed in seeds)]
    held = {time: accumulated(some, time, GUARDS) for time in after}
    numbers = [count for rows in held.values() for count in rows.values()]
    answered = {time: plain(rows) for time, rows in held.items()}
    numbers += [word for rows in answered.values() for row in rows for word in row[1:]]

    def run() -> list[Row]:
        out, pended = reduce(as_words(new, 4), np.empty(0, np.int64))
        assert pended.shape[1] == 0
        return rows_of(out)

    try:
        out = run()
    except OverflowError:
        floor = [(*row[:2], CODE.pack(_lub(row[2], _floor(seeds))), row[3]) for row in some]
        assert not all(map(fits, numbers)) or not _fit(floor)
        return
    assert all(map(fits, numbers))
    for time in after:
        assert accumulated(out, time, GUARDS) == answered[time]


def test_kernels_of_groups_look_at_rows_that_are_new() -> None:
    """Two large ones at two times, of a key without a history."""
    times = [CODE.pack((0, 0)), CODE.pack((0, 1))]
    trace, frontier, shape = Trace(1, 1, GUARDS), np.empty(0, np.int64), np.array([1, 1, GUARDS, 1, -1])
    new = as_words([(1, 1, time, MAX) for time in times], 4)
    with pytest.raises(OverflowError):
        reduce_groups(new, NONE, trace.table, trace.table, frontier, shape, np.array([[COUNT], [0]]))
    with pytest.raises(OverflowError):
        reduce_sums(new, NONE, trace.table, frontier, SUM_SHAPE, SUM)


def _behind(earlier: int, later: int) -> bool:
    return all(a <= b for a, b in zip(CODE.unpack(earlier), CODE.unpack(later), strict=True))


def _floor(times: list[int]) -> tuple[int, ...]:
    return tuple(map(min, zip(*map(CODE.unpack, times), strict=True)))


def _lub(time: int, other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(max, CODE.unpack(time), other))


@given(st.lists(st.tuples(st.just(1), st.integers(0, 1), TIME, LARGE), max_size=6))
def test_kernels_of_the_least_are_right_although_sums_wrap(some: list[Row]) -> None:
    """Only the sign of a multiplicity counts, and that of a large one is right too."""
    some = consolidated(some)
    if not _fit(some):
        return
    trace, answers = Trace(1, 1, GUARDS), Trace(1, 1, GUARDS)
    out, _ = reduce_least(
        as_words(some, 4),
        NONE,
        trace.table,
        answers.table,
        np.empty(0, np.int64),
        np.array([1, GUARDS, 0, -1]),
    )
    for time in [CODE.pack((epoch, i)) for epoch in range(3) for i in range(3)]:
        want = reduced(accumulated(some, time, GUARDS), 1, [("min", 0)])
        assert accumulated(rows_of(out), time, GUARDS) == want


@pytest.mark.parametrize("packed", [False, True])
def test_kernels_know_the_large_diffs_of_a_run_packed_or_not(packed: bool) -> None:
    rows = [(1, value, 0, 2**40 + value % 3) for value in range(5)]
    run = Run.from_words(as_words(rows, 4), GUARDS, packed)
    state = np.zeros(5, np.int64)
    table = run.line.reshape(1, -1)
    room = gathered(
        table, cursors_of(table), np.array([[1]]), 0, 1, state, GUARDS, np.empty((3, 1), np.int64)
    )
    assert int(state[LARGEST]).bit_length() == 41
    assert consolidate_key(room, state) == 5
    times = np.zeros((3, 1), np.int64)
    state[0] = 1
    check_key(room, 5, times, state, GUARDS)
    room[2, :2], room[0, :2] = MAX, 0
    with pytest.raises(OverflowError):
        check_key(room, 5, times, state, GUARDS)
    with pytest.raises(OverflowError):
        check_key(room, 2, times, state, GUARDS)
