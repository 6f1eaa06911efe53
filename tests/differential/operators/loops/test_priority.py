"""operators/loops/priority.py: when rows come into a loop.

turns_*   a row is in the loop from the iteration of its class on, and not before
room_*    all classes fit the counter, however few bits it has
parts_*   many rows go in parts of one time each
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import accumulated_at, history
from reference.dataflow import Change, run_at_times
from strategies_collections import examples, histories

from differential import Collection, col
from differential.operators.loops.priority import CLASSES, ITERATIONS_TO_COME_IN, by_time, spacing_of

workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("depth", [1, 2])
def test_turns_rows_are_there_from_their_iteration_on(depth: int) -> None:
    seen: list[Change] = []

    def look(row: tuple[object, ...], time: tuple[int, ...], diff: int) -> None:
        seen.append(((row[0], row[1]), time, diff))

    def build(start: Collection) -> Collection:
        return start.prioritized_iterate(lambda x, own: own.inspect(look), priority=col.k * 3)

    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        seen.clear()
        run_at_times(build, [changes], depth=depth, workers=workers, seed=seed)
        given_, found = history(changes), history(seen)
        for time in {time for _, time, _ in changes}:
            outer = accumulated_at(given_, time)
            for number in (0, 1, 255, 256, 511, 512, 768, 2_000):
                due = {
                    row: count
                    for row, count in outer.items()
                    if max(int(str(row[0])) * 3, 0).bit_length() * 256 <= number
                }
                assert accumulated_at(found, (*time, number)) == due, (time, number)

    holds()


@pytest.mark.parametrize("bits", range(1, 63))
def test_room_for_all_classes_in_half_of_a_counter(bits: int) -> None:
    spacing = spacing_of(bits)
    assert spacing >= 1 and (CLASSES - 1) * spacing <= ITERATIONS_TO_COME_IN
    assert (CLASSES - 1) * spacing <= (1 << bits) // 2 or spacing == 1


def test_parts_of_one_time_each_have_all_rows_in_their_order() -> None:
    times = np.arange(5_000) * 7919 % 11 * 256
    words = np.array([np.arange(5_000), times, np.ones(5_000, np.int64)])
    parts = list(by_time(words))
    assert [sorted({*part[-2].tolist()}) for part in parts] == [[at * 256] for at in range(11)]
    for part in parts:
        assert part.flags.c_contiguous and (np.diff(part[0]) > 0).all()
    assert sorted(np.concatenate([part[0] for part in parts]).tolist()) == words[0].tolist()


@pytest.mark.parametrize(("rows", "times"), [(999, 11), (5_000, 5_000)])
def test_parts_few_rows_and_very_many_times_stay_one(rows: int, times: int) -> None:
    words = np.array([np.arange(rows), np.arange(rows) % times, np.ones(rows, np.int64)])
    (part,) = by_time(words)
    assert part is words
