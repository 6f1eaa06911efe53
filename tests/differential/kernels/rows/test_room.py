"""Room for many rows: what is behind the rows that it has in the end goes back to the system, and what is
copied.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bench.memory import resident_mib
from differential.kernels.rows.room import give_back, lengthened, mapped_bytes, room_for, shortened
from timely.mapped import mapping_of, release_spare

MIB = 1 << 20


@pytest.mark.parametrize("width", [1, 10, 40_000, 300_000])
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 1])
def test_room_that_is_shortened_has_the_first_rows_of_each_column(
    columns: int, width: int, share: float
) -> None:
    room = room_for(columns, width)
    room[:] = np.arange(columns * width).reshape(columns, width)
    rows = int(share * width)
    wanted = room[:, :rows].copy()
    found = shortened(room, rows)
    assert np.array_equal(found, wanted) and found.flags.c_contiguous and found.flags.writeable


@pytest.mark.parametrize("width", [1, 1000, 40_000, 300_000])
@pytest.mark.parametrize("columns", [1, 3])
def test_room_that_is_lengthened_has_the_rows_that_were_held(columns: int, width: int) -> None:
    for held in (0, width // 2, width):
        room = room_for(columns, width)
        room[:] = np.arange(columns * width).reshape(columns, width)
        wanted = room[:, :held].copy()
        found = lengthened(room, held, 2 * width)
        assert found.shape == (columns, 2 * width) and np.array_equal(found[:, :held], wanted)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes parts of it back")
def test_a_part_that_is_given_back_is_gone_and_what_is_beside_it_is_there() -> None:
    room = room_for(2, 1 << 18)
    room[:] = 5
    give_back(room[1, 1 << 16 : 1 << 17])
    assert (room[0] == 5).all() and (room[1, : 1 << 16] == 5).all() and (room[1, 1 << 17 :] == 5).all()
    assert (room[1, 1 << 16 : 1 << 17] == 0).all()
    few = room_for(1, 10)
    few[:] = 5
    give_back(few)
    assert (few == 5).all(), "what is not mapped stays"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes parts of it back")
def test_what_is_in_no_one_piece_stays() -> None:
    room = room_for(2, 1 << 18)
    room[:] = 5
    give_back(room[:, : 1 << 17])
    assert (room == 5).all()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes parts of it back")
def test_what_is_behind_the_rows_and_what_was_copied_goes_back() -> None:
    release_spare()  # so that what is asked for has no pages yet
    room = room_for(2, 1 << 20)
    room[:] = 5
    before = resident_mib()
    larger = lengthened(room, 1 << 20, 1 << 21)
    assert abs(resident_mib() - before) < 4, "16 MiB of it were touched, and as many are gone"
    short = shortened(larger, 1 << 10)
    assert before - resident_mib() > 12
    assert short.shape == (2, 1 << 10) and (short == 5).all()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes parts of it back")
def test_bytes_that_stay_hold_nothing_beside_them_of_the_memory_that_they_lie_in() -> None:
    release_spare()
    larger = room_for(1, 1 << 20)
    larger[:] = 5
    del larger
    before = resident_mib()
    bytes_ = mapped_bytes(1 << 22)
    assert bytes_.nbytes == 1 << 22 and before - resident_mib() > 3
    memory = mapping_of(bytes_)
    assert memory is not None and len(memory) == 1 << 23, "it was used again"


@pytest.mark.parametrize(
    ("size", "length"),
    [(2 * MIB - 8, 2 * MIB), (2 * MIB, 4 * MIB), (4 * MIB - 8, 4 * MIB), (4 * MIB, 4 * MIB)],
)
def test_room_of_half_of_two_huge_pages_and_more_has_two(size: int, length: int) -> None:
    release_spare()
    memory = mapping_of(room_for(1, size // 8))
    assert memory is not None and len(memory) == length


def test_room_is_as_large_as_it_is_asked_for() -> None:
    for rows in (0, 1, 1 << 17, 1 << 18, (1 << 19) + 1):
        assert room_for(2, rows).shape == (2, rows)
