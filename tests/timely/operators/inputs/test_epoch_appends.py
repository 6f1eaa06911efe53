"""Appends to named epochs: repeated, repeated in part, expected, forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import MisuseError
from timely.operators.inputs.appends import AppendId
from timely.operators.inputs.epoch_appends import EpochAppends

A, B, C = (AppendId("w", number) for number in range(3))


def test_one_is_known_in_each_of_its_epochs_as_long_as_that_may_be_asked_for() -> None:
    appends = EpochAppends()
    appends.add([3, 5], A)
    appends.add([3], B)
    assert [appends.has(epoch, A) for epoch in (2, 3, 4, 5)] == [False, True, False, True]
    appends.forget_before(3)
    assert appends.has(3, B) and len(appends) == 2
    appends.forget_before(4)
    assert not appends.has(3, A) and not appends.has(3, B) and appends.has(5, A) and len(appends) == 1
    appends.forget_before(99)
    assert len(appends) == 0 and appends.missing(99, [A]) == [A]


def test_what_repeats_is_known_by_the_epochs_that_are_not_forgotten() -> None:
    appends = EpochAppends()
    appends.add([3, 5, 7], A)
    assert appends.has_all([3, 5, 7], A) and not appends.has_all([3, 5, 7], B) and not appends.has_all([], A)
    appends.forget_before(5)
    assert appends.has_all([3, 5, 7], A) and not appends.has_all([3], A)


@pytest.mark.parametrize("epochs", [[3, 4], [4, 5], [3, 4, 5], [5, 8]])
def test_what_has_come_in_part_is_another_append(epochs: list[int]) -> None:
    """Its rows would be lost in silence if it counted as a repetition."""
    appends = EpochAppends()
    appends.add([3, 5], A)
    lacks = next(epoch for epoch in epochs if epoch not in (3, 5))
    has = next(epoch for epoch in epochs if epoch in (3, 5))
    with pytest.raises(MisuseError, match=f"append 0 of writer 'w' .* epoch {has} and none of epoch {lacks}"):
        appends.has_all(epochs, A)


def test_expected_appends_of_several_epochs_have_come_to_all() -> None:
    """Also to one of which they have no rows: who completes that cannot wait for any."""
    appends = EpochAppends()
    appends.add([3, 5], A)
    appends.add([3], B)
    appends.add([4], C)
    assert appends.missing(4, [A, B, C]) == [B], "another of this name may be missing for epoch 4"
    assert appends.missing(9, [A, C]) == [C]
    appends.add([4, 8], A)
    appends.forget_before(6)
    assert appends.missing(9, [A, C]) == [C]
    appends.forget_before(9)
    assert appends.missing(9, [A, C]) == [A, C]


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 9), min_size=1), st.sampled_from([A, B, C])), max_size=9),
    st.lists(st.integers(0, 10)),
)
def test_as_told_plainly(calls: list[tuple[set[int], AppendId]], forgotten: list[int]) -> None:
    appends = EpochAppends()
    came: set[tuple[int, AppendId]] = set()
    for (epochs, identity), since in zip(calls, [*sorted(forgotten), *[10] * len(calls)], strict=False):
        appends.add(sorted(epochs), identity)
        came |= {(epoch, identity) for epoch in epochs}
        appends.forget_before(since)
        came = {(epoch, known) for epoch, known in came if epoch >= since}
        assert len(appends) == len({epoch for epoch, _ in came})
        assert all(
            appends.has(epoch, known) == ((epoch, known) in came)
            for epoch in range(10)
            for known in (A, B, C)
        )
