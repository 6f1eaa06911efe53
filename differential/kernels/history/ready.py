"""Which rows are complete, and which earlier times do the others hold open?

A time is *ready* when no time of the frontier is ≤ it. Rows wait in the order of their arrival.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.merging.merge import first_rows
from differential.kernels.rows.sort import sort_packed
from differential.thresholds import SORTED_TIMES_MIN
from progress.compiled.kernel import Int64s, kernel
from progress.times.word_antichain import (
    after_in_order,
    antichain_is_beyond,
    insert_word,
    minimal_words,
    search_from,
)
from progress.times.word_order import word_less_equal


@kernel
def count_ready(words: Int64s, time_column: int, frontier: Int64s, guards: int) -> int:
    """Return how many rows are ready.

    Fast path: most frontiers have one time, and then no row needs a branch, which would be mispredicted where
    times alternate.
    """
    ready = np.int64(0)
    if frontier.shape[0] == 1:
        first = frontier[0]
        for row in range(words.shape[1]):
            ready += ((words[time_column, row] | guards) - first) & guards != guards
        return ready
    last = np.int64(-1)
    beyond = False
    for row in range(words.shape[1]):
        time = words[time_column, row]
        if time != last:
            beyond = antichain_is_beyond(frontier, frontier.shape[0], time, guards)
            last = time
        ready += not beyond
    return ready


@kernel
def split_ready(words: Int64s, time_column: int, frontier: Int64s, guards: int) -> tuple[Int64s, Int64s]:
    """Return (ready rows, later rows), each in their order. If all are of one kind, that one is `words`
    itself.
    """
    columns, rows = words.shape
    ready = count_ready(words, time_column, frontier, guards)
    if ready == rows:
        return words, np.empty((columns, 0), np.int64)
    if ready == 0:
        return np.empty((columns, 0), np.int64), words
    now = np.empty((columns, ready), np.int64)
    later = np.empty((columns, rows - ready), np.int64)
    at_now = np.int64(0)
    at_later = np.int64(0)
    last = np.int64(-1)
    beyond = False
    for row in range(rows):
        time = words[time_column, row]
        if time != last:
            beyond = antichain_is_beyond(frontier, frontier.shape[0], time, guards)
            last = time
        if beyond:
            for column in range(columns):
                later[column, at_later] = words[column, row]
            at_later += 1
        else:
            for column in range(columns):
                now[column, at_now] = words[column, row]
            at_now += 1
    return now, later


@kernel
def work_at_once(words: Int64s, key_words: int, time_column: int) -> int:
    """Return the sum over the keys of sorted rows of (number of rows) · (number of times).

    A time that comes again behind another counts again. That is the work if all of a key's rows meet all its
    times.
    """
    work, begin, times = np.int64(0), np.int64(0), np.int64(1)
    for row in range(1, words.shape[1]):
        is_same = True
        for word in range(key_words):
            is_same = is_same and words[word, row] == words[word, row - 1]
        if not is_same:
            work += (row - begin) * times
            begin, times = np.int64(row), np.int64(1)
        elif words[time_column, row] != words[time_column, row - 1]:
            times += 1
    return work + (words.shape[1] - begin) * times


@kernel
def part_of(values: Int64s, count: int, length: int) -> Int64s:
    """Return an array of `length` whose first `count` values are those of `values`."""
    part = np.empty(length, np.int64)
    for index in range(count):
        part[index] = values[index]
    return part


@kernel
def first_of_all(words: Int64s, time_column: int, guards: int) -> int:
    """Return the time of a row that is before, or equal to, those of all rows; -1 if there is none.

    Requires: rows. Only the least word can be it. It has no branch on a row's time: times of a loop's rounds
    alternate.
    """
    first = words[time_column, 0]
    for row in range(words.shape[1]):
        first = min(first, words[time_column, row])
    guards_left = guards
    for row in range(words.shape[1]):
        guards_left &= (words[time_column, row] | guards) - first
    return first if guards_left & guards == guards else np.int64(-1)


@kernel
def lower_bounds(words: Int64s, time_column: int, bounds: Int64s, guards: int) -> Int64s:
    """Return the minimal antichain of `bounds` (an antichain itself) and the times of a table, ascending.

    Cost: two passes where one time is before all others, else O(changes in the column of times · log
    antichain) in scopes of one and two chains. From `SORTED_TIMES_MIN` elements on times are sorted first:
    inserting each in its place would move a part of the antichain every time.
    """
    count = bounds.shape[0]
    if count == 0 and words.shape[1] > 0:
        first = first_of_all(words, time_column, guards)
        if first >= 0:
            return np.full(1, first)
    if count >= SORTED_TIMES_MIN:
        return sorted_bounds(words, time_column, bounds, guards)
    minimal = part_of(bounds, count, count + 8)
    last = np.int64(-1)
    for row in range(words.shape[1]):
        time = words[time_column, row]
        if time != last:
            last = time
            if count == SORTED_TIMES_MIN:
                return sorted_bounds(words, time_column, bounds, guards)
            if count == minimal.shape[0]:
                minimal = part_of(minimal, count, 2 * count)
            count = insert_word(minimal, count, time, guards)
    return part_of(minimal, count, count)


@kernel
def sorted_bounds(words: Int64s, time_column: int, bounds: Int64s, guards: int) -> Int64s:
    """Return the result of `lower_bounds`, by sorting. Cost: O(n) passes, and that of `minimal_words`."""
    times = np.empty(words.shape[1] + bounds.shape[0], np.int64)
    count = np.int64(0)
    for index in range(bounds.shape[0]):
        times[count] = bounds[index]
        count += 1
    for row in range(words.shape[1]):
        time = words[time_column, row]
        if count == 0 or times[count - 1] != time:
            times[count] = time
            count += 1
    times = part_of(times, count, count)
    return minimal_words(sort_packed(times, np.empty(count, np.int64), 0, 63), guards)


@kernel
def minimal_times(times: Int64s, guards: int) -> Int64s:
    """Return the minimal antichain of a column of times, ascending. Cost: as `lower_bounds`."""
    return lower_bounds(times.reshape(1, times.shape[0]), np.int64(0), np.empty(0, np.int64), guards)


@kernel
def bound_of_rows(words: Int64s, time_column: int, bounds: Int64s, guards: int) -> Int64s:
    """Return for each row the number of a bound that is ≤ its time. Requires: there is one for each.

    Cost: O(changes in the column of times · log bounds) in scopes of one and two chains, else O(… · bounds).
    """
    numbers = np.empty(words.shape[1], np.int64)
    last = np.int64(-1)
    number = np.int64(0)
    for row in range(words.shape[1]):
        time = words[time_column, row]
        if time != last:
            last = time
            if bounds.shape[0] >= search_from(bounds, bounds.shape[0], guards):
                number = after_in_order(bounds, bounds.shape[0], time) - 1
            else:
                number = 0
                while not word_less_equal(bounds[number], time, guards):
                    number += 1
        numbers[row] = number
    return numbers


@kernel
def merge_pending(a: Int64s, b: Int64s) -> Int64s:
    """Return two sorted sets of rows, (key words, time), as one, without duplicates."""
    columns, rows_a = a.shape
    rows_b = b.shape[1]
    out = np.empty((columns, rows_a + rows_b), np.int64)
    i = np.int64(0)
    j = np.int64(0)
    end = np.int64(0)
    while i < rows_a or j < rows_b:
        order = -1 if j == rows_b else 1 if i == rows_a else 0
        column = np.int64(0)
        while order == 0 and column < columns and i < rows_a and j < rows_b:
            if a[column, i] != b[column, j]:
                order = -1 if a[column, i] < b[column, j] else 1
            column += 1
        for column in range(columns):
            out[column, end] = a[column, i] if order <= 0 else b[column, j]
        end += 1
        i += order <= 0
        j += order >= 0
    return first_rows(out, end)
