"""Which worker a key belongs to: fixed for ever, even, and by the key alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from strategies_words import rows

from differential.kernels.rows.hashing import (
    divide_by_key_hash,
    divide_by_unit,
    hash_of_key,
    hashes_of,
    mix,
    partition_by_key_hash,
    partition_by_unit,
)
from timely.wire.routing import Routing

HASHES = [8172482038030230184, 4403414783606967297]


def _mix(word: int) -> int:
    """splitmix64's finaliser in exact integers."""
    word &= 2**64 - 1
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    word = (word ^ word >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return word ^ word >> 31


@given(st.integers(-(2**63), 2**63 - 1))
def test_mixing_is_that_of_splitmix64(word: int) -> None:
    assert mix(word) & 2**64 - 1 == _mix(word)


def test_the_hash_of_a_key_never_changes() -> None:
    """Rows stored by one version must be found by the next."""
    words = np.array([[1, -5], [2, 0], [0, 0], [1, 1]])
    assert [hash_of_key(words, row, 2) for row in range(2)] == HASHES
    assert hash_of_key(words, 0, 0) == 0


OWNERS = st.lists(st.integers(0, 10**6), min_size=8, max_size=8)
"""Eight buckets are enough for what is claimed here; modulo the number of workers."""


@given(rows(2, wide=True), st.integers(0, 2), st.integers(1, 5), st.lists(OWNERS, min_size=1, max_size=3))
def test_rows_of_one_key_and_version_stay_together_and_in_order(
    some: list[Row], kw: int, workers: int, listed: list[list[int]]
) -> None:
    words = as_words(some, 4)
    times = sorted({row[-2] for row in some} - {0})
    starts = np.array([0, *times[: len(listed) - 1]], dtype=np.int64)
    owners = np.array(listed[: len(starts)], dtype=np.int64) % workers
    grouped, bounds = partition_by_key_hash(words, kw, workers, starts, owners)
    assert bounds[0] == 0
    assert bounds[-1] == len(some)
    owner = [
        owners[max(version for version, start in enumerate(starts) if start <= row[-2])][
            hash_of_key(words, index, kw) % 8
        ]
        for index, row in enumerate(some)
    ]
    for worker in range(workers):
        part = rows_of(grouped)[bounds[worker] : bounds[worker + 1]]
        assert part == [row for row, at in zip(some, owner, strict=True) if at == worker]


@given(
    rows(2, wide=True),
    st.integers(0, 2),
    st.integers(1, 5),
    st.lists(OWNERS, min_size=2, max_size=2),
    st.integers(0, 9),
    st.data(),
)
def test_rows_of_one_time_are_divided_as_they_are_parted(
    some: list[Row], kw: int, workers: int, listed: list[list[int]], time: int, data: st.DataObject
) -> None:
    """In memory that is there, which holds what was there before, and of some of the rows of a table."""
    words = as_words([(*row[:-2], time, row[-1]) for row in some], 4)
    first = data.draw(st.integers(0, max(0, len(some) - 1)))
    rows = data.draw(st.integers(min(1, len(some)), len(some) - first))
    if not rows:
        return
    starts, owners = np.array([0, 5], np.int64), np.array(listed, np.int64) % workers
    chosen = np.ascontiguousarray(words[:, first : first + rows])
    for parted, divide in (
        (
            partition_by_key_hash(chosen, kw, workers, starts, owners),
            lambda *into: divide_by_key_hash(words, first, rows, kw, starts, owners, *into),
        ),
        (
            partition_by_unit(chosen, 1, workers, starts, owners),
            lambda *into: divide_by_unit(words, first, rows, 1, starts, owners, *into),
        ),
    ):
        out, bounds = np.full(3 * rows + 2, 77, np.int64), np.full(workers + 1, 77, np.int64)
        divide(out, bounds)
        grouped, meant = parted
        assert bounds.tolist() == meant.tolist()
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            part = out[3 * start : 3 * stop].reshape(3, stop - start)
            assert part.tolist() == [grouped[word, start:stop].tolist() for word in (0, 1, 3)]
        assert out[3 * rows :].tolist() == [77, 77]


@given(rows(3, wide=True), st.lists(st.integers(0, 2), max_size=3))
def test_hashes_of_columns_anywhere_are_those_of_the_key_that_they_would_be(
    some: list[Row], columns: list[int]
) -> None:
    words = as_words(some, 5)
    keyed = np.ascontiguousarray(words[[*columns, 3, 4]])
    hashes = hashes_of(words, np.array(columns, np.int64))
    assert hashes.tolist() == [hash_of_key(keyed, row, len(columns)) for row in range(len(some))]


@given(rows(2, wide=True), st.integers(0, 1), st.integers(1, 5), st.lists(OWNERS, min_size=1, max_size=3))
def test_rows_go_to_the_owner_of_the_bucket_that_is_a_word_of_theirs_at_their_time(
    some: list[Row], at: int, workers: int, listed: list[list[int]]
) -> None:
    words = as_words(some, 4)
    times = sorted({row[-2] for row in some} - {0})
    starts = np.array([0, *times[: len(listed) - 1]], dtype=np.int64)
    owners = np.array(listed[: len(starts)], dtype=np.int64) % workers
    grouped, bounds = partition_by_unit(words, at, workers, starts, owners)
    for worker in range(workers):
        part = rows_of(grouped)[bounds[worker] : bounds[worker + 1]]
        assert part == [
            row
            for row in some
            if worker == owners[max(n for n, start in enumerate(starts) if start <= row[-2])][row[at] % 8]
        ]
    assert bounds[-1] == len(some)


def test_keys_in_a_row_spread_evenly() -> None:
    words = np.stack([np.arange(30_000), np.zeros(30_000, np.int64), np.ones(30_000, np.int64)])
    default = Routing.default(3)
    _, bounds = partition_by_key_hash(words, 1, 3, default.starts, default.owners)
    assert all(9_500 < size < 10_500 for size in np.diff(bounds).tolist())
