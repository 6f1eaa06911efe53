"""tables/row_kernels.py: rows are divided as a stable sort of their owners divides them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from timely.building.record_hash import number_of_key
from timely.building.tables.column_hash import numbers_of_integers, order_by_worker
from timely.wire.routing import BUCKETS, Routing


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=60), st.integers(1, 70))
def test_rows_are_in_the_order_of_a_stable_sort(numbers: list[int], workers: int) -> None:
    """Each worker's rows keep their order, with routings of any owners and numbers of all 32 bits."""
    drawn = np.random.default_rng(len(numbers) * 71 + workers).integers(0, workers, BUCKETS)
    for owners in (Routing.default(workers).owner_array_at(0), drawn):
        order, bounds = order_by_worker(np.array(numbers, np.uint32), owners, workers)
        owner_of_row = [int(owners[number % BUCKETS]) for number in numbers]
        assert order.tolist() == sorted(range(len(numbers)), key=lambda row: owner_of_row[row])
        assert np.diff(bounds).tolist() == [owner_of_row.count(worker) for worker in range(workers)]


def test_numbers_of_arrays_that_nobody_may_write_to_and_with_gaps() -> None:
    values = np.arange(-9, 9)
    values.flags.writeable = False
    assert numbers_of_integers(values).tolist() == [number_of_key(value) for value in range(-9, 9)]
    assert numbers_of_integers(values[::2]).tolist() == [number_of_key(value) for value in range(-9, 9, 2)]
    assert numbers_of_integers(values.astype(np.int8)).tolist() == numbers_of_integers(values).tolist()
