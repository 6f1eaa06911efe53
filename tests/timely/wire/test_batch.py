"""What travels between vertices: records, and how any batch comes back from its frames.

records_*   the batch of Python records
kinds_*     the number that names a batch class on the wire
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import pytest

from progress.errors import InternalError, MisuseError, PeerError
from timely.wire.batch import Frame, Records, absorb, decode, frames_of, register


def views(frames: list[Frame]) -> list[memoryview]:
    return [memoryview(bytes(frame)) for frame in frames]


def test_records_come_back_from_their_frames_with_tuples_for_lists() -> None:
    sent: list[object] = [
        None,
        True,
        3,
        -(2**63),
        2.5,
        "é",
        b"\x00",
        (1, ("a", None)),
        {"k": (1, 2)},
        {3: "x"},
    ]
    assert Records.from_frames(views(Records(sent).to_frames(1)), 0).records == sent


def deep(levels: int) -> object:
    """A list in a list in a list …"""
    value: object = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("record", [object(), 2**64, {1, 2}, "\ud800", deep(2_000)])
def test_records_that_cannot_travel_are_refused_by_their_sender(record: object) -> None:
    with pytest.raises(MisuseError, match="cannot be sent to another worker"):
        Records([record]).to_frames(1)


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"\xc1"],
        [b"\x07"],
        [b"\x90", b"\x90"],
        [b"\x92\x01"],
        [b"\x91\x81\x80\x01"],
        [b"\x91" * 200_000],
        [b"\xdd\xff\xff\xff\xff"],
        [b"\x91\xd7\xff" + b"\xff" * 8],
    ],
    ids=["none", "never", "a number", "two", "cut off", "a map as a key", "nested", "too long", "no time"],
)
def test_records_from_malformed_frames_are_an_error_of_the_peer(frames: list[bytes]) -> None:
    with pytest.raises(PeerError, match="worker 4 sent"):
        Records.from_frames([memoryview(frame) for frame in frames], 4)


def test_records_have_no_times_so_shifting_changes_nothing() -> None:
    batch = Records([1])
    assert batch.shifted(0, 5) is batch


def test_kinds_lead_back_to_the_class() -> None:
    assert decode(Records.KIND, views(Records([1]).to_frames(1)), 0).rows == 1


def test_kinds_that_nobody_registered_are_an_error_of_the_peer() -> None:
    with pytest.raises(PeerError, match="batch kind 65000, which this process does not know"):
        decode(65_000, [], 1)
    with pytest.raises(PeerError, match="worker 1 sent a message with batch kind 65000"):
        absorb(65_000, [], 1)


def test_kinds_are_those_of_a_class_that_is_defined_anew() -> None:
    """As a cell of a notebook does: peers have the class by its name. Another class is refused."""
    again = type("Records", (Records,), {})
    assert list(frames_of(again([1]), 1)) == list(Records([1]).to_frames(1))
    other = type("Others", (Records,), {})
    with pytest.raises(MisuseError, match="a Others is sent to another worker, and no worker could read it"):
        frames_of(other([1]), 1)


def test_kinds_cannot_be_taken_twice() -> None:
    class Other:
        KIND: ClassVar[int] = Records.KIND

        @property
        def rows(self) -> int:
            return 0

        def shifted(self, keep: int, add: int) -> Self:
            return self

        def to_frames(self, peer: int) -> list[Frame]:
            return []

        def on_sent(self, peer: int) -> None: ...

        @classmethod
        def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
            return cls()

        @classmethod
        def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
            return frames

    with pytest.raises(InternalError, match="is taken by Records"):
        register(Other)
