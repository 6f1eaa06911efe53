"""Which worker takes an append: the same everywhere, and about as many for each."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from timely.appends import new_writer, place_of


def test_the_place_depends_on_writer_and_sequence_alone_also_in_another_process() -> None:
    program = "from timely.appends import place_of; print([place_of('spark-3', s, 5) for s in range(20)])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str([place_of("spark-3", sequence, 5) for sequence in range(20)])


def test_places_are_spread_over_all_workers() -> None:
    places = Counter(
        place_of(f"writer {writer}", sequence, 4) for writer in range(50) for sequence in range(20)
    )
    assert sorted(places) == [0, 1, 2, 3]
    assert max(places.values()) < 1.3 * min(places.values())


def test_writers_never_share_a_name() -> None:
    assert len({new_writer() for _ in range(100)}) == 100
