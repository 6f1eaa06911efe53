"""accumulating.py: rows become what they add to their groups, whether they are few or many, packed or not."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from strategies_words import rows

from differential.columns.packed.block import Block
from differential.columns.schema import Schema
from differential.errors import SumOverflowError
from differential.linear import accumulating
from differential.linear.accumulating import AccumulateTransform
from differential.thresholds import MANY_ROWS
from progress.compiled.arrays import Int64s

SCHEMA = Schema.of("key: int, component: int")
COUNT_AND_SUM = ((0, 0, -1, 0), (4, 1, -1, 1))
"""A count, component 0, and the sum of word 1, limbs 1 and 2."""


def _plainly(some: list[Row], key_words: int) -> list[Row]:
    """What COUNT_AND_SUM makes of rows (key, value, time, diff): totals of components, in order."""
    totals: dict[tuple[int, ...], int] = defaultdict(int)
    for *words, time, diff in some:
        value = abs(words[1])
        sign = 1 if words[1] >= 0 else -1
        for component, amount in ((0, 1), (1, sign * (value % 2**32)), (2, sign * (value >> 32))):
            totals[(*words[:key_words], component, time)] += amount * diff
    return sorted((*at, total) for at, total in totals.items() if total)


def _made(words: Int64s, key_words: int) -> list[Row]:
    made = AccumulateTransform(key_words, COUNT_AND_SUM, SCHEMA).compile()(words)
    return [] if made is None else rows_of(made)


@pytest.mark.parametrize("key_words", [0, 1])
@given(some=rows(2, wide=True))
def test_few_rows_add_up(key_words: int, some: list[Row]) -> None:
    some = [(key, max(value, -(2**63) + 1), time, diff % 7 - 3) for key, value, time, diff in some]
    assert _made(as_words(some, 4), key_words) == _plainly(some, key_words)


@pytest.mark.parametrize("keys", [1, 3, 10_000])
@pytest.mark.parametrize("value_max", [1_000, 2**62])
@pytest.mark.parametrize("key_words", [0, 1])
def test_many_rows_add_up_block_by_block(
    keys: int, value_max: int, key_words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulating, "_BLOCK_ROWS", 5_000)
    rng = np.random.default_rng(keys)
    count = MANY_ROWS + 123
    words = np.stack(
        [
            rng.integers(0, keys, count),
            rng.integers(-value_max, value_max, count),
            rng.integers(0, 2, count),
            rng.choice([-1, 1, 1], count),
        ]
    )
    assert _made(words, key_words) == _plainly(rows_of(words), key_words)


def test_rows_that_cancel_leave_nothing() -> None:
    few = as_words([(1, 5, 0, 2), (1, 5, 0, -2)], 4)
    many = np.repeat(few, MANY_ROWS, axis=1)
    for words in (few, many):
        assert AccumulateTransform(1, COUNT_AND_SUM, SCHEMA).compile()(words) is None


@pytest.mark.parametrize("left", [0, 1])
def test_rows_that_cancel_within_their_groups_leave_nothing_of_a_block(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a group differ, so that all are there until they are added up."""

    def packs(words: Int64s) -> Block:
        assert words.shape[1], "without rows there is no first one, which is read"
        return Block(words)

    monkeypatch.setattr(accumulating, "_BLOCK_ROWS", 3_000)
    monkeypatch.setattr(accumulating, "Block", packs)
    some: list[Row] = [(key, 5, 0, 1) for key in range(-left, 0)]
    for key in range(MANY_ROWS // 3 + 1):
        some += [(key, 1, 0, 1), (key, 2, 0, -2), (key, 3, 0, 1)]
    some += [(MANY_ROWS, 5, 0, 1)] * left
    assert _made(as_words(some, 4), 1) == _plainly(some, 1)
    assert len(_plainly(some, 1)) == 4 * left


@pytest.mark.parametrize("copies", [1, MANY_ROWS])
def test_a_sum_beyond_64_bits_is_an_error(copies: int) -> None:
    words = np.repeat(as_words([(1, 2**40, 0, 2**62)], 4), copies, axis=1)
    with pytest.raises(SumOverflowError):
        AccumulateTransform(1, COUNT_AND_SUM, SCHEMA).compile()(words)


@given(st.integers(1, 40))
def test_blocks_do_not_divide_a_key_that_fits(rows_a_key: int) -> None:
    """So what is made of them is in order at once, and is not sorted again."""
    count = MANY_ROWS + 7
    words = np.stack(
        [
            np.arange(count) // rows_a_key,
            np.arange(count) % 977,
            np.zeros(count, np.int64),
            np.ones(count, np.int64),
        ]
    )
    # All lie in the same memory, one after another.
    blocks = [block.copy() for block in AccumulateTransform(1, COUNT_AND_SUM, SCHEMA)._blocks(words)]
    assert len(blocks) == 2 and count > accumulating._BLOCK_ROWS
    assert sum(block.shape[1] for block in blocks) == count
    assert len({int(key) for block in blocks for key in {*block[0].tolist()}}) == sum(
        len({*block[0].tolist()}) for block in blocks
    )


def _blocks_of(words: Int64s) -> list[Block]:
    """In blocks of different sizes."""
    bounds = [0, 1, words.shape[1] // 3, words.shape[1]]
    return [
        Block(np.ascontiguousarray(words[:, start:stop]))
        for start, stop in itertools.pairwise(bounds)
        if start < stop
    ]


def _keyed(count: int, keys: int, value_max: int = 1_000) -> Int64s:
    rng = np.random.default_rng(keys)
    found: Int64s = np.stack(
        [
            rng.integers(0, keys, count),
            rng.integers(-value_max, value_max, count),
            np.full(count, 7),
            rng.choice([-1, 1, 1], count),
        ]
    )
    return found


@pytest.mark.parametrize("keys", [10_000, 3, 1])
def test_many_packed_rows_add_up_to_packed_rows_in_order(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of few keys are in several pieces, whose sums add up."""
    monkeypatch.setattr(accumulating, "_BLOCK_ROWS", 5_000)
    monkeypatch.setattr(accumulating, "_PACKED_ROWS", 7_000)
    words = _keyed(MANY_ROWS + 123, keys, MANY_ROWS)
    made = AccumulateTransform(1, COUNT_AND_SUM, SCHEMA).packed(_blocks_of(words))
    assert made is not None and (len(made) > 1) == (keys == 10_000)
    assert [row for block in made for row in rows_of(block.words())] == _plainly(rows_of(words), 1)


def test_packed_rows_that_cancel_leave_no_block() -> None:
    words = _keyed(MANY_ROWS, 10_000)
    both = np.concatenate([words, words * np.array([[1], [1], [1], [-1]])], axis=1)
    assert AccumulateTransform(1, COUNT_AND_SUM, SCHEMA).packed(_blocks_of(both)) == []


@pytest.mark.parametrize(
    ("key_words", "count", "keys", "value_max"),
    [
        (0, MANY_ROWS, 9, 1_000),
        (1, MANY_ROWS - 1, 9, 1_000),
        (1, MANY_ROWS, 9, 2**62),
    ],
    ids=["no key", "few", "rows of more than a word"],
)
def test_what_packed_rows_add_up_to_is_left_to_who_has_words(
    key_words: int, count: int, keys: int, value_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulating, "_BLOCK_ROWS", 5_000)
    words = _keyed(count, keys, value_max)
    assert AccumulateTransform(key_words, COUNT_AND_SUM, SCHEMA).packed(_blocks_of(words)) is None


def test_a_sum_of_packed_rows_beyond_64_bits_is_left_to_who_says_whose_it_is() -> None:
    words = np.repeat(as_words([(1, 2**40, 0, 2**62)], 4), MANY_ROWS, axis=1)
    assert AccumulateTransform(1, COUNT_AND_SUM, SCHEMA).packed(_blocks_of(words)) is None
