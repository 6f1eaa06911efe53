"""Failures of an older version, as a restart knows them, against a list of what holds in each epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progress.errors import InternalError
from timely.durable.versions import ToldFailure
from timely.operators.outputs.told_failures import ToldFailures, told
from timely.wire.batch import Records

KINDS = ["", "MisuseError", "VertexError"]
STATES = st.lists(st.sampled_from(KINDS), max_size=9)


def failures_of(states: list[str]) -> ToldFailures:
    """Failures that hold in epochs 0, 1, 2, …, told where they change; none behind them."""
    told_: list[ToldFailure] = []
    before = ""
    for epoch, state in enumerate([*states, ""]):
        if state != before:
            told_.append(ToldFailure(epoch, state and f"{state} since {epoch}", (state,) if state else (), 1))
        before = state
    return ToldFailures(told_)


@given(STATES, st.integers(0, 12), st.integers(0, 12))
def test_what_holds_in_each_epoch(states: list[str], start: int, stop: int) -> None:
    failures = failures_of(states)
    in_epoch = [*states, *[""] * 20]
    for epoch in range(14):
        error = failures.error_at(epoch)
        assert (type(error).__name__ if error else "") == in_epoch[epoch]
    without = failures.without(start, stop)
    assert {e for each in without for e in range(each.start, each.stop)} == {
        epoch for epoch in range(start, stop) if in_epoch[epoch]
    }
    assert all(in_epoch[each.since] == type(each.error).__name__ for each in without)
    good = next((epoch for epoch in range(start, stop) if not in_epoch[epoch]), None)
    assert failures.good_from(start, stop) == good


@given(STATES, st.integers(0, 12))
def test_what_is_told_of_them_holds_again(states: list[str], stop: int) -> None:
    again = ToldFailures(told(failures_of(states), stop))
    for epoch in range(14):
        error, before = again.error_at(epoch), failures_of(states).error_at(epoch)
        assert str(error) == (str(before) if epoch < stop else "None")


@given(STATES, st.integers(0, 9))
def test_none_are_left_behind_their_end(states: list[str], end: int) -> None:
    failures = failures_of(states)
    failures.end(end)
    assert failures.changed_before() == end + 1
    in_epoch = [*states[:end], *[""] * 20]
    failures.forget(min(end, 3))
    for epoch in range(min(end, 3), 14):
        error = failures.error_at(epoch)
        assert (type(error).__name__ if error else "") == in_epoch[epoch]


def test_nothing_comes_to_them() -> None:
    failures = ToldFailures([])
    failures.settle()
    failures.complete(3)
    assert failures.is_settled and failures.changed_before() == 0 and told(None, 4) == ()
    with pytest.raises(InternalError, match="1 failures come to an output whose version is gone"):
        failures.add(Records(["row"]))
    with pytest.raises(InternalError, match="was to take over"):
        failures.take_over(None, 3)


@given(STATES, st.integers(0, 12))
def test_what_holds_right_before_what_is_kept_is_not_forgotten(states: list[str], stop: int) -> None:
    """A snapshot as of that epoch has all changes that it needs."""
    failures = failures_of(states)
    failures.forget(stop)
    for epoch in range(max(0, stop - 1), 14):
        assert str(failures.error_at(epoch)) == str(failures_of(states).error_at(epoch))
