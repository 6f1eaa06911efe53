"""Records that are made often: alike and hashed as frozen dataclasses are, and made with less."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from progress.records import record


@record(frozen=True)
class Point:
    """A record."""

    x: int
    y: int = 0


@record(frozen=True, slots=True, eq=False)
class Thing:
    """One that is known by identity."""

    name: str


def test_they_are_dataclasses_which_are_alike_and_hashed_alike() -> None:
    assert is_dataclass(Point) and [one.name for one in fields(Point)] == ["x", "y"]
    assert Point(1) == Point(1, 0) != Point(1, 1)
    assert len({Point(1), Point(1, 0), Point(1, 1)}) == 2
    assert replace(Point(1), y=3) == Point(1, 3)
    assert repr(Point(1)).endswith("Point(x=1, y=0)")


def test_those_that_are_known_by_identity() -> None:
    one = Thing("a")
    assert one != Thing("a") and len({one, Thing("a")}) == 2
    assert not hasattr(one, "__dict__")


def test_others_are_refused() -> None:
    """Who may be changed is an ordinary dataclass."""
    with pytest.raises(AssertionError):
        record(frozen=False)


def test_fields_are_set_directly() -> None:
    """What this is for: a frozen dataclass would go through `object.__setattr__`, and refuse this."""
    try:
        Point(1).x = 2  # type: ignore[misc]
    except FrozenInstanceError:
        pytest.fail("it is frozen as it runs")
