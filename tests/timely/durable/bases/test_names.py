"""Names of deliveries in a base: intervals, whatever the order in which they came.

merged_*   intervals
taken_*    names by writer
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from timely.durable.bases.names import TakenNames, merged

NUMBERS = st.lists(st.integers(0, 30))


@given(NUMBERS)
def test_merged_intervals_have_the_numbers_and_are_few(numbers: list[int]) -> None:
    intervals = merged((number, number) for number in numbers)
    assert [number for first, last in intervals for number in range(first, last + 1)] == sorted(set(numbers))
    assert all(last + 1 < first for (_, last), (first, _) in zip(intervals, intervals[1:], strict=False))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.integers(0, 9))))
def test_taken_names_come_back_from_what_a_base_has(names: list[tuple[str, int, int]]) -> None:
    taken = TakenNames()
    for number, (writer, sequence, epoch) in enumerate(names):
        taken.take(writer, sequence, epoch)
        if number % 3 == 0:
            taken = TakenNames(taken.plain())
    for writer in "abc":
        for sequence in range(14):
            assert ((writer, sequence) in taken) == any(name[:2] == (writer, sequence) for name in names)
    plain = taken.plain()
    assert {str(writer): epoch for writer, epoch, _ in plain} == {
        writer: max(epoch for other, _, epoch in names if other == writer) for writer, _, _ in names
    }


def test_taken_names_of_the_writer_heard_of_last_come_last() -> None:
    taken = TakenNames([["a", 0, [[0, 5]]], ["b", 0, [[0, 0]]]])
    taken.take("a", 6, 1)
    assert taken.plain() == [["b", 0, [[0, 0]]], ["a", 1, [[0, 6]]]]
