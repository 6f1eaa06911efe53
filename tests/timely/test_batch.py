"""What travels between vertices: records, and how any batch comes back from its frames.

records_*   the batch of Python records
kinds_*     the number that names a batch class on the wire
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import pytest

from progress.errors import InternalError, MisuseError, PeerError
from timely.batch import Frame, Records, decode, register


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
    assert Records.from_frames(views(Records(sent).to_frames())).records == sent


@pytest.mark.parametrize("record", [object(), 2**64, {1, 2}, "\ud800"])
def test_records_that_cannot_travel_are_refused_by_their_sender(record: object) -> None:
    with pytest.raises(MisuseError, match="cannot be sent to another worker"):
        Records([record]).to_frames()


@pytest.mark.parametrize("frames", [[], [b"\xc1"], [b"\x07"], [b"\x90", b"\x90"]])
def test_records_from_malformed_frames_are_an_error_of_the_peer(frames: list[bytes]) -> None:
    with pytest.raises(PeerError):
        Records.from_frames([memoryview(frame) for frame in frames])


def test_records_have_no_times_so_shifting_changes_nothing() -> None:
    batch = Records([1])
    assert batch.shifted(0, 5) is batch


def test_kinds_lead_back_to_the_class() -> None:
    assert decode(Records.KIND, views(Records([1]).to_frames())).rows == 1


def test_kinds_that_nobody_registered_are_an_error_of_the_peer() -> None:
    with pytest.raises(PeerError, match="batch kind 65000, which this process does not know"):
        decode(65_000, [])


def test_kinds_cannot_be_taken_twice() -> None:
    class Other:
        KIND: ClassVar[int] = Records.KIND

        @property
        def rows(self) -> int:
            return 0

        def shifted(self, keep: int, add: int) -> Self:
            return self

        def to_frames(self) -> list[Frame]:
            return []

        @classmethod
        def from_frames(cls, frames: Sequence[memoryview]) -> Self:
            return cls()

    with pytest.raises(InternalError, match="is taken by Records"):
        register(Other)
