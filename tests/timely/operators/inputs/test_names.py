"""How deliveries are named, and which worker takes one.

places_*    the same everywhere, and about as many for each
names_*     what is one
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from timely import MisuseError
from timely.operators.inputs.names import (
    UNNAMED,
    DeliveryName,
    name_of,
    named,
    new_writer,
    worker_of,
)


def test_places_depend_on_writer_and_sequence_alone_also_in_another_process() -> None:
    """Python's own hash of texts is another in each."""
    found = [worker_of("spark-3", sequence, 5) for sequence in range(20)]
    assert found == [1, 1, 1, 4, 3, 3, 2, 3, 1, 4, 2, 4, 1, 3, 0, 0, 1, 1, 1, 1]


def test_places_are_spread_over_all_workers() -> None:
    places = Counter(
        worker_of(f"writer {writer}", sequence, 4) for writer in range(50) for sequence in range(20)
    )
    assert sorted(places) == [0, 1, 2, 3]
    assert max(places.values()) < 1.3 * min(places.values())


def test_places_are_also_known_of_names_that_are_no_text_of_utf_8() -> None:
    assert worker_of("\ud800", 0, 2) in (0, 1)


def test_names_are_a_text_and_a_number_that_a_request_carries() -> None:
    assert named("w", np.int32(7)) == ("w", 7)
    assert named("", 2**62) == ("", 2**62)
    for sequence in -1, 2**62 + 1, True, 1.0, None:
        with pytest.raises(MisuseError, match=r"from 0 to 2⁶²: not by writer='w', sequence="):
            named("w", sequence)
    with pytest.raises(MisuseError, match="writer=b'w'"):
        named(b"w", 0)


def test_what_has_no_name_is_new_each_time() -> None:
    assert name_of("w", UNNAMED) is None
    assert name_of("w", 0) == DeliveryName("w", 0)


def test_writers_never_share_a_name() -> None:
    assert len({new_writer() for _ in range(100)}) == 100
