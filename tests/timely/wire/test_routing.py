"""Owners of buckets: the default, versions, which of them holds when.

default_*   for ever, even
version_*   against a list of all changes, looked through from the first on
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.limits import WORKERS_MAX
from timely.wire.routing import BUCKETS, Routing

CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 2))), max_size=5
)
"""(steps after the change before it, changed owners); the first may be at the very beginning."""


@pytest.mark.parametrize("workers", [1, 2, 3, 7, WORKERS_MAX])
def test_default_every_worker_has_as_many_buckets_as_any_other_or_one_more(workers: int) -> None:
    routing = Routing.default(workers)
    sizes = Counter(routing.owners_at(0))
    assert set(sizes) == set(range(workers)) and max(sizes.values()) - min(sizes.values()) <= 1
    assert routing.owners_at(2**62) == routing.owners_at(0) == [bucket % workers for bucket in range(BUCKETS)]


def test_default_is_one_object_and_costs_nothing_to_ask_for() -> None:
    assert Routing.default(5) is Routing.default(5)


@given(CHANGES, st.integers(0, 30))
def test_version_an_owner_is_that_of_the_last_change_that_is_not_later(
    changes: list[tuple[int, dict[int, int]]], word: int
) -> None:
    routing, start, expected = Routing.default(3), 0, [bucket % 3 for bucket in range(BUCKETS)]
    for steps, changed in changes:
        start += steps
        routing = routing.changed(start, changed)
        if start <= word:
            for bucket, worker in changed.items():
                expected[bucket] = worker
    assert routing.owners_at(word) == expected
    assert routing.versions == len({0, *accumulate(steps for steps, _ in changes)})


@given(CHANGES, st.integers(0, 30), st.integers(0, 30))
def test_version_forgetting_those_that_nobody_can_see_changes_nothing_later(
    changes: list[tuple[int, dict[int, int]]], word: int, later: int
) -> None:
    routing, start = Routing.default(3), 0
    for steps, changed in changes:
        start += steps
        routing = routing.changed(start, changed)
    kept = routing.since(word)
    assert kept.owners_at(word + later) == routing.owners_at(word + later)
    assert kept.starts[1:].tolist() == [start for start in routing.starts.tolist() if start > word]


def test_version_one_that_is_known_is_never_overtaken_by_an_earlier_one() -> None:
    routing = Routing.default(2).changed(5, {0: 1}).changed(8, {0: 1})
    for earlier in (4, 5):
        with pytest.raises(AssertionError):
            routing.changed(earlier, {1: 0})
    with pytest.raises(AssertionError):
        routing.changed(9, {1: 2})
