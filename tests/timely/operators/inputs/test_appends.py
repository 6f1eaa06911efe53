"""How appends are told apart, and which worker takes one.

places_*    the same everywhere, and about as many for each
numbers_*   a set of intervals against a plain set
writers_*   what is remembered of whom, and for how long
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import MisuseError
from timely.operators.inputs.appends import (
    UNNAMED,
    AppendId,
    Numbers,
    WriterNumbers,
    identity_of,
    named,
    new_writer,
    place_of,
)


def test_places_depend_on_writer_and_sequence_alone_also_in_another_process() -> None:
    """Python's own hash of texts is another in each."""
    found = [place_of("spark-3", sequence, 5) for sequence in range(20)]
    assert found == [1, 1, 1, 4, 3, 3, 2, 3, 1, 4, 2, 4, 1, 3, 0, 0, 1, 1, 1, 1]


def test_places_are_spread_over_all_workers() -> None:
    places = Counter(
        place_of(f"writer {writer}", sequence, 4) for writer in range(50) for sequence in range(20)
    )
    assert sorted(places) == [0, 1, 2, 3]
    assert max(places.values()) < 1.3 * min(places.values())


def test_places_are_also_known_of_names_that_are_no_text_of_utf_8() -> None:
    assert place_of("\ud800", 0, 2) in (0, 1)


def test_names_are_a_text_and_a_number_that_a_request_carries() -> None:
    assert named("w", np.int32(7)) == ("w", 7)
    assert named("", 2**62) == ("", 2**62)
    for sequence in -1, 2**62 + 1, True, 1.0, None:
        with pytest.raises(MisuseError, match=r"from 0 to 2⁶²: not by writer='w', sequence="):
            named("w", sequence)
    with pytest.raises(MisuseError, match="writer=b'w'"):
        named(b"w", 0)


def test_what_has_no_name_is_new_each_time() -> None:
    assert identity_of("w", UNNAMED) is None
    assert identity_of("w", 0) == AppendId("w", 0)


def test_writers_never_share_a_name() -> None:
    assert len({new_writer() for _ in range(100)}) == 100


def gaps(numbers: set[int]) -> int:
    """Maximal runs of numbers that are not there, between those that are."""
    return sum(number + 1 not in numbers for number in numbers - {max(numbers)}) if numbers else 0


@given(st.lists(st.integers(-6, 12) | st.integers(-(2**62), 2**62), max_size=40))
def test_numbers_are_a_set_in_whatever_order_they_come(added: list[int]) -> None:
    numbers, plain = Numbers(), set[int]()
    for number in added:
        numbers.add(number)
        plain.add(number)
        assert numbers.gaps == gaps(plain)
        assert numbers.next == max(plain) + 1
    for number in {near + step for near in [*added, 0] for step in (-1, 0, 1)}:
        assert (number in numbers) == (number in plain), number


@given(st.permutations(range(30)))
def test_numbers_that_follow_one_another_take_the_room_of_one(order: list[int]) -> None:
    numbers = Numbers()
    for number in order:
        numbers.add(number)
    assert (numbers._firsts, numbers._lasts) == ([0], [29])


def test_writers_are_told_apart_and_remembered_for_ever() -> None:
    known = WriterNumbers()
    for sequence in range(1_000):
        known.add("a", sequence)
    known.add("b", 5)
    assert AppendId("a", 0) in known and AppendId("a", 999) in known and AppendId("a", 1_000) not in known
    assert AppendId("b", 5) in known and AppendId("b", 0) not in known and AppendId("c", 5) not in known
    assert len(known) == 2


def test_writers_are_followed_only_by_what_is_right_behind_their_last_number() -> None:
    known = WriterNumbers()
    assert not known.follows("a", 0), "of a writer that is not known nothing is said"
    for sequence, behind in [(3, 4), (4, 5), (9, 10), (5, 10), (0, 10), (9, 10), (10, 11)]:
        known.add("a", sequence)
        assert [number for number in range(-2, 13) if known.follows("a", number)] == [behind]
    assert not known.follows("b", 11)


def test_writers_that_were_silent_longest_are_forgotten_first() -> None:
    known = WriterNumbers(writers_max=2)
    for writer, sequence in [("a", 0), ("b", 0), ("a", 1), ("c", 0)]:
        known.add(writer, sequence)
    assert [AppendId(writer, 0) in known for writer in "abc"] == [True, False, True]
    assert len(known) == 2


def test_writers_that_leave_too_many_gaps_are_told_so_and_may_still_repeat_and_fill() -> None:
    known = WriterNumbers(gaps_max=2)
    for sequence in (0, 2, 4):
        known.check(AppendId("a", sequence))
        known.add("a", sequence)
    with pytest.raises(
        MisuseError, match="has left 2 gaps in the numbers of its insertions: number them 0, 1"
    ):
        known.check(AppendId("a", 6))
    known.check(AppendId("a", 4))
    known.check(AppendId("b", 6))
    for sequence in (1, 3, 5):  # each of these leaves no gap more
        known.check(AppendId("a", sequence))
    assert AppendId("a", 6) not in known


def test_numbers_that_join_what_is_there_on_either_side_leave_no_gap_more() -> None:
    numbers = WriterNumbers(gaps_max=1)
    for sequence in (1, 5):
        numbers.add("w", sequence)
    for sequence in (0, 2, 4, 6):
        numbers.check(AppendId("w", sequence))
    for sequence in (-1, 3, 7):
        with pytest.raises(MisuseError, match="gaps"):
            numbers.check(AppendId("w", sequence))
