"""Places of long values: they have the order of the values, stay, and coincide only where no room is left."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.symbols.table import SymbolTable
from differential.operators.ordered import places as places_module
from differential.operators.ordered.places import Places, places_of

BEGIN = b"https://example.org/a/long/path/"


def ask(places: Places, values: list[str], begin: bytes = BEGIN) -> list[int]:
    """The places of values whose symbol is made of them."""
    return places.of([hash(value) for value in values], values, [begin] * len(values))


@given(st.lists(st.lists(st.text("abc", max_size=6), min_size=1, max_size=60), max_size=12))
def test_places_have_the_order_of_values_and_stay_whatever_comes_between(rounds: list[list[str]]) -> None:
    places = Places()
    seen: dict[str, int] = {}
    for values in rounds:
        for value, place in zip(values, ask(places, values), strict=True):
            assert seen.setdefault(value, place) == place
        assert ask(places, sorted(seen)) == [seen[value] for value in sorted(seen)]
        in_order = [seen[value] for value in sorted(seen)]
        assert in_order == sorted(in_order) and all(0 < place < 1 << 62 for place in in_order)


def test_different_values_have_different_places_in_bulk_one_by_one_and_from_either_end() -> None:
    places = Places()
    numbers = [f"{number:06}" for number in range(3000)]
    given = dict(zip(numbers[1000:2000], ask(places, numbers[1000:2000]), strict=True))
    for number in numbers[2000:]:
        given[number] = ask(places, [number])[0]
    for number in reversed(numbers[:1000]):
        given[number] = ask(places, [number])[0]
    between = [f"{number:06}+" for number in range(0, 3000, 7)]
    given.update(zip(between, ask(places, between), strict=True))
    assert [given[value] for value in sorted(given)] == sorted(given.values())
    assert len(set(given.values())) == len(given)


def test_where_no_number_is_left_values_share_the_place_of_the_one_before() -> None:
    places = Places()
    last = ask(places, ["a", "b"])[0]
    for number in range(300):  # each between the one before and "b"
        place = ask(places, ["a" + "z" * (number + 1)])[0]
        assert last <= place < ask(places, ["b"])[0]
        last = place
    assert ask(places, ["a" + "z" * 300]) == ask(places, ["a" + "z" * 299])
    down = Places()
    ask(down, ["b"])
    first = [ask(down, ["a" * 400 + "!" * number])[0] for number in range(300)]
    assert first == sorted(first)


@pytest.mark.parametrize("is_up", [True, False])
def test_at_either_end_of_all_numbers_places_stay_within_them(
    is_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Place 0 is nobody's beginning, and above 2^62 there are no words."""
    monkeypatch.setattr(places_module, "_STEP", 1 << 60)
    places = Places()
    numbers = [f"{number:03}" for number in range(200)]
    found = [ask(places, [number])[0] for number in (numbers if is_up else reversed(numbers))]
    assert found == sorted(found, reverse=not is_up)
    assert min(found) >= 1 and max(found) <= 1 << 62 and len(set(found)) > 60


def test_text_and_bytes_and_other_beginnings_do_not_meet() -> None:
    places = Places()
    text = places.of([1], ["x" * 40], [b"x" * 32])
    assert places.of([2, 3], [b"x" * 40, "y" * 40], [b"x" * 32, b"y" * 32]) == text * 2


def test_places_are_those_of_a_table_and_go_with_it() -> None:
    table = SymbolTable()
    assert places_of(table) is places_of(table) is not places_of(SymbolTable())
    gone = weakref.ref(places_of(table))
    del table
    gc.collect()
    assert gone() is None


def test_places_are_forgotten_with_their_values_and_those_of_others_stay() -> None:
    table = SymbolTable()
    texts = [f"{BEGIN.decode()}{number}" for number in range(6)]
    words = table.intern(texts)
    begins = [BEGIN] * 6
    before = places_of(table).of(words.tolist(), texts, begins)
    marking = table.marking()
    marking.add(words[[1, 4]])
    table.forget(marking)
    places = places_of(table)
    assert places._places == {words[1]: before[1], words[4]: before[4]}
    again = places.of(table.intern(texts).tolist(), texts, begins)
    assert again == sorted(again) and again[1] == before[1] and again[4] == before[4]
    table.forget(table.marking())
    assert not places._places and not places._siblings
