"""Far pointstamps: kept apart, stood in for, and back with the others once words hold them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from progress.times.anchor import Rebase
from progress.times.time_words import TimeLayout
from progress.tracking.count_changes import Change
from progress.tracking.far import FarPointstamps

LAYOUT = TimeLayout((3, 2))
SHIFT = LAYOUT.shifts[0]
LIMIT = LAYOUT.limit

some_changes = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.builds(lambda epoch, rest: (epoch << SHIFT) + rest, st.integers(0, 12), st.integers(0, 3)),
        st.sampled_from([-1, 1, 2]),
    ),
    max_size=8,
)


def summed(changes: list[Change]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for location, word, delta in changes:
        found[location, word] = found.get((location, word), 0) + delta
    return {point: count for point, count in found.items() if count}


@given(st.lists(some_changes, max_size=6), st.integers(1, 9))
def test_same_counts_with_a_stand_in_for_what_is_far_before_and_after_the_anchor_moves(
    steps: list[list[Change]], epochs: int
) -> None:
    far = FarPointstamps(LAYOUT)
    told: list[Change] = []
    for changes in steps:
        told += far.sift(changes)
        far.check_invariants()
    everything = summed([change for changes in steps for change in changes])
    assert_told(far, told, everything)
    by = Rebase(epochs, SHIFT)
    left = {point: count for point, count in everything.items() if point[1] >= by.step}
    # What is before the new anchor is done with.
    told += [(location, word, -count) for (location, word), count in everything.items() if word < by.step]
    if any(word < by.step and word >= LIMIT for _, word in everything):
        far.sift([(at, word, -count) for (at, word), count in everything.items() if LIMIT <= word < by.step])
    counts = sorted((at, word, count) for (at, word), count in summed(told).items() if word <= LIMIT)
    counts = [(at, word, 1) if word == LIMIT else (at, word, count) for at, word, count in counts]
    known = {(at, LIMIT) for at, _, _ in far.counts()}
    counts = [row for row in counts if row[1] < LIMIT or row[:2] in known]
    changes = far.rebase(counts, by)
    far.check_invariants()
    assert_told(far, [*counts, *changes], {(at, word - by.step): count for (at, word), count in left.items()})


def assert_told(far: FarPointstamps, told: list[Change], everything: dict[tuple[int, int], int]) -> None:
    wide = {point: count for point, count in everything.items() if point[1] >= LIMIT}
    near = {point: count for point, count in everything.items() if point[1] < LIMIT}
    assert {(location, word): count for location, word, count in far.counts()} == wide
    assert bool(far.pointstamps) == bool(wide)
    if wide:
        assert far.least_word() == min(word for _, word in wide)
    assert summed(told) == near | {(location, far.stand_in): 1 for location, _ in wide}
    counts = [(at, word, count) for (at, word), count in summed(told).items()]
    assert {(at, word): count for at, word, count in far.without_stand_ins(counts)} == near
