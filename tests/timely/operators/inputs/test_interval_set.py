"""A set of intervals against a plain set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from timely.operators.inputs.deliveries import IntervalSet


def gaps(numbers: set[int]) -> int:
    """Maximal runs of numbers that are not there, between those that are."""
    return sum(number + 1 not in numbers for number in numbers - {max(numbers)}) if numbers else 0


@given(st.lists(st.integers(-6, 12) | st.integers(-(2**62), 2**62), max_size=40))
def test_numbers_are_a_set_in_whatever_order_they_come(added: list[int]) -> None:
    numbers, plain = IntervalSet(), set[int]()
    for number in added:
        numbers.add(number)
        plain.add(number)
        assert numbers.gaps == gaps(plain)
        assert numbers.next == max(plain) + 1
    for number in {near + step for near in [*added, 0] for step in (-1, 0, 1)}:
        assert (number in numbers) == (number in plain), number


@given(st.permutations(range(30)))
def test_numbers_that_follow_one_another_take_the_room_of_one(order: list[int]) -> None:
    numbers = IntervalSet()
    for number in order:
        numbers.add(number)
    assert (numbers._firsts, numbers.lasts) == ([0], [29])
