"""How far each client has come in an output: against the plain rule, with a clock of the test's own.

bound_*    what nobody needs any more
silent_*   who is not heard of loses the place
room_*     how many there may be
told_*     what people see of each
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import MisuseError
from timely.limits import READER_SECONDS_MAX, READERS_MAX, REWRITE_SECONDS_MIN
from timely.operators.outputs.places import ReaderPositions, ReaderTold, reader_id


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


STEPS = st.tuples(
    st.sampled_from(["come", "leave", "forget", "pass"]), st.sampled_from("abc"), st.integers(0, 20)
)


@given(st.lists(STEPS, max_size=40))
def test_bound_is_the_first_place_of_all_and_never_beyond_what_was_forgotten(
    steps: list[tuple[str, str, int]],
) -> None:
    clock = Clock()
    places = ReaderPositions(clock)
    plain: dict[str, tuple[int, float]] = {}
    forgotten = dropped = 0
    for what, reader, number in steps:
        if what == "come":
            places.come(reader, number)
            if number >= dropped:
                plain[reader] = number, clock.now
        elif what == "leave":
            places.leave(reader)
            plain.pop(reader, None)
        elif what == "pass":
            clock.now += number * READER_SECONDS_MAX / 10
        else:
            forgotten = max(forgotten, number)
            plain = {
                name: (epoch, seen)
                for name, (epoch, seen) in plain.items()
                if clock.now - seen <= READER_SECONDS_MAX
            }
            bound = min([forgotten, *(epoch for epoch, _ in plain.values())])
            assert places.forget(number) == bound >= dropped
            dropped = bound
            assert len(places) == len(plain)


def test_bound_waits_for_the_slowest_client() -> None:
    places = ReaderPositions(Clock())
    places.come("slow", 2)
    places.come("fast", 9)
    assert places.forget(9) == 2
    places.come("slow", 5)
    assert places.forget(3) == 5, "what somebody gave up before is dropped when the last one has passed it"
    places.leave("slow")
    assert places.forget(0) == 9
    assert places.forget(4) == 9


def test_bound_is_not_held_back_by_who_asks_for_what_is_dropped() -> None:
    places = ReaderPositions(Clock())
    assert places.forget(5) == 5
    places.come("late", 4)
    assert len(places) == 0 and places.forget(6) == 6
    places.come("late", 6)
    places.come("late", 5)
    assert len(places) == 1 and places.forget(9) == 6, "who has a place keeps it"


def test_silent_clients_hold_nothing_back_after_an_hour() -> None:
    clock = Clock()
    places = ReaderPositions(clock)
    places.come("silent", 1)
    places.come("heard", 3)
    clock.now += READER_SECONDS_MAX
    places.come("heard", 4)
    assert places.forget(4) == 1, "an hour is not over yet"
    clock.now += 1
    assert places.forget(4) == 4 and len(places) == 1


def test_room_is_made_by_those_who_fell_silent_and_otherwise_refused() -> None:
    clock = Clock()
    places = ReaderPositions(clock)
    for reader in range(READERS_MAX):
        places.come(str(reader), 0)
    with pytest.raises(MisuseError, match="4,096 clients have places in this output already: let go of one"):
        places.come("one more", 0)
    places.come("7", 3)
    clock.now += READER_SECONDS_MAX + 1
    places.come("one more", 0)
    assert len(places) == 1


def test_silent_a_client_may_ask_for_less_time_and_be_heard_of_where_it_is() -> None:
    clock = Clock()
    places = ReaderPositions(clock)
    places.come("tasks", 2, 60.0)
    for _ in range(3):
        clock.now += 50
        places.hear("tasks")
        assert places.forget(9) == 2
    clock.now += 61
    places.hear("nobody")
    assert places.forget(9) == 9 and not len(places)


def test_room_is_made_by_those_from_before_a_restart_that_were_not_heard_of_since() -> None:
    """The log has many that are gone: in a program that cron starts each run is another client."""
    clock = Clock()
    places = ReaderPositions(clock)
    for reader in range(READERS_MAX):
        places.put_back(str(reader), reader + 10, READER_SECONDS_MAX)
    places.come("0", 10)
    places.hear("1")
    assert places.forget(99_999) == 10, "all are held back for"
    assert [places.written_of(one) for one in ("0", "1", "2", "gone")] == [
        (10, READER_SECONDS_MAX),
        (11, READER_SECONDS_MAX),
        (-1, READER_SECONDS_MAX),
        None,
    ]
    for number in range(READERS_MAX - 2):
        places.come(f"new {number}", 99_999)
        assert len(places) == READERS_MAX
        assert places.of(str(number + 2)) is None, "the first of those that were not heard of"
    assert (places.of("0"), places.of("1")) == ((10, READER_SECONDS_MAX), (11, READER_SECONDS_MAX))
    with pytest.raises(MisuseError, match="4,096 clients have places in this output already"):
        places.come("one more", 99_999)
    clock.now += READER_SECONDS_MAX + 1
    places.come("one more", 99_999)
    assert len(places) == 1


def test_positions_that_do_not_move_are_written_again_now_and_then() -> None:
    """Else a client that waits for very long would count as gone after a restart."""
    clock = Clock()
    places = ReaderPositions(clock)
    places.come("waits", 3, 60.0)
    clock.now += REWRITE_SECONDS_MIN
    assert places.written_of("waits") == (3, 60.0)
    clock.now += 1
    assert places.written_of("waits") == (-1, 60.0)
    places.note_written("waits")
    assert places.written_of("waits") == (3, 60.0)
    places.note_written("nobody")
    assert places.written_of("nobody") is None


def test_a_client_from_before_a_restart_is_where_what_is_left_begins() -> None:
    places = ReaderPositions(Clock())
    places.begin(3)
    places.put_back("ahead", 4, 60.0)
    assert places.forget(6) == 4
    for reader, epoch in (("behind", 2), ("between", 5)):
        places.put_back(reader, epoch, 60.0)
    assert [places.of(reader) for reader in ("ahead", "behind", "between")] == [
        (4, 60.0),
        (4, 60.0),
        (5, 60.0),
    ]


def test_told_is_who_a_client_is_in_short_and_the_whole_name_that_a_program_has_chosen() -> None:
    clock = Clock()
    places = ReaderPositions(clock)
    places.come(reader_id("0123456789abcdef", "process 1 on here", "a.py:3"), 4)
    places.come("the query of a program", 5)
    clock.now += 2.0
    assert places.told() == [
        ReaderTold("01234567", "process 1 on here", "a.py:3", 4, 2.0),
        ReaderTold("the query of a program", "", "", 5, 2.0),
    ]
