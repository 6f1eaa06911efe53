"""Which bucket does a key belong to, and which rows go to which worker?

A hash of all key words, the same on every machine and in every version: rows that were stored with one number
of workers must be found after a restart. Mixing is that of splitmix64.
"""

from __future__ import annotations

import numpy as np

from progress.compiled.kernel import Int64s, kernel, small_kernel


@small_kernel
def mix(word: int) -> int:
    """Return a word whose bits all depend on all bits of `word`; one to one."""
    mixed = np.uint64(word)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(mixed ^ (mixed >> np.uint64(31)))


@small_kernel
def hash_of_key(words: Int64s, row: int, kw: int) -> int:
    """Return the hash of a row's key, ≥ 0; 0 if there are no key words."""
    state = np.int64(0)
    for column in range(kw):
        state = mix((state ^ words[column, row]) + np.int64(0x1E3779B97F4A7C15))
    return state & np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def hashes_of(words: Int64s, columns: Int64s) -> Int64s:
    """Return `hash_of_key` of each row, as if these were its first words."""
    hashes = np.zeros(words.shape[1], np.int64)
    for column in columns:
        for row in range(words.shape[1]):
            hashes[row] = mix((hashes[row] ^ words[column, row]) + np.int64(0x1E3779B97F4A7C15))
    return hashes & np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def version_at(starts: Int64s, time: int) -> int:
    """Return the number of the version that holds at a time: of the last of `starts` that is ≤ it."""
    version = starts.shape[0] - 1
    while version > 0 and time < starts[version]:
        version -= 1
    return version


@kernel
def grouped_by_owner(words: Int64s, owner: Int64s, workers: int) -> tuple[Int64s, Int64s]:
    """Return the rows grouped by worker, in their order: (words, bounds).

    Worker w has the rows [bounds[w], bounds[w + 1]). Cost: a pass and one array.
    """
    columns, rows = words.shape
    bounds = np.zeros(workers + 1, np.int64)
    for row in range(rows):
        bounds[owner[row] + 1] += 1
    for worker in range(workers):
        bounds[worker + 1] += bounds[worker]
    next_row = bounds.copy()
    out = np.empty((columns, rows), np.int64)
    for row in range(rows):
        at = next_row[owner[row]]
        next_row[owner[row]] = at + 1
        for column in range(columns):
            out[column, at] = words[column, row]
    return out, bounds


@kernel
def partition_by_key_hash(
    words: Int64s, kw: int, workers: int, starts: Int64s, owners: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the rows grouped by worker, as `grouped_by_owner` does.

    The low bits of the key's hash are its bucket; the number of buckets is a power of two. The worker of a
    bucket is in the line of `owners` for the last of `starts` that is ≤ the row's time, which is the last
    word but one. Cost: two passes and two arrays.
    """
    columns, rows = words.shape
    low_bits = owners.shape[1] - 1
    owner = np.empty(rows, np.int64)
    for row in range(rows):
        version = version_at(starts, words[columns - 2, row])
        owner[row] = owners[version, hash_of_key(words, row, kw) & low_bits]
    return grouped_by_owner(words, owner, workers)


@kernel
def partition_by_unit(
    words: Int64s, at: int, workers: int, starts: Int64s, owners: Int64s
) -> tuple[Int64s, Int64s]:
    """Do `partition_by_key_hash` for rows that have their bucket in word `at`."""
    columns, rows = words.shape
    low_bits = owners.shape[1] - 1
    owner = np.empty(rows, np.int64)
    for row in range(rows):
        owner[row] = owners[version_at(starts, words[columns - 2, row]), words[at, row] & low_bits]
    return grouped_by_owner(words, owner, workers)


@kernel
def divided_by_owner(words: Int64s, first: int, owner: Int64s, out: Int64s, bounds: Int64s) -> None:
    """Write the rows of `words` from `first` on, grouped by worker, in their order, and without their time,
    to `out`.

    `owner` has the worker of each row. `bounds` gets the bounds of each group, as in `grouped_by_owner`. The
    rows of worker w are a table of their own in `out`, from word bounds[w] * (columns - 1) on.
    """
    columns, rows, workers = words.shape[0], owner.shape[0], bounds.shape[0] - 1
    bounds[:] = 0
    for row in range(rows):
        bounds[owner[row] + 1] += 1
    for worker in range(workers):
        bounds[worker + 1] += bounds[worker]
    next_word = np.empty(workers, np.int64)
    to = np.int64(0)
    for column in range(columns):
        if column == columns - 2:
            continue
        for worker in range(workers):
            count = bounds[worker + 1] - bounds[worker]
            next_word[worker] = bounds[worker] * (columns - 1) + to * count
        for row in range(rows):
            at = next_word[owner[row]]
            next_word[owner[row]] = at + 1
            out[at] = words[column, first + row]
        to += 1


@kernel
def divide_by_key_hash(
    words: Int64s,
    first: int,
    rows: int,
    kw: int,
    starts: Int64s,
    owners: Int64s,
    out: Int64s,
    bounds: Int64s,
) -> None:
    """Do `divided_by_owner` for `rows` rows from `first` on, with the workers of `partition_by_key_hash`.

    All rows are at the time of the first.
    """
    version = version_at(starts, words[words.shape[0] - 2, first])
    low_bits = owners.shape[1] - 1
    owner = np.empty(rows, np.int64)
    for row in range(rows):
        owner[row] = owners[version, hash_of_key(words, first + row, kw) & low_bits]
    divided_by_owner(words, first, owner, out, bounds)


@kernel
def divide_by_unit(
    words: Int64s,
    first: int,
    rows: int,
    at: int,
    starts: Int64s,
    owners: Int64s,
    out: Int64s,
    bounds: Int64s,
) -> None:
    """Do `divided_by_owner` for `rows` rows from `first` on, with the workers of `partition_by_unit`.

    All rows are at the time of the first.
    """
    version = version_at(starts, words[words.shape[0] - 2, first])
    low_bits = owners.shape[1] - 1
    owner = np.empty(rows, np.int64)
    for row in range(rows):
        owner[row] = owners[version, words[at, first + row] & low_bits]
    divided_by_owner(words, first, owner, out, bounds)
