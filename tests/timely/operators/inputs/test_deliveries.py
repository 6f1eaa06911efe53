"""Which deliveries an input remembers and what it stages, call by call; on random histories:
`test_delivery_laws.py`.

writers_*   numbers of a writer, for whichever epoch is open
epochs_*    deliveries to named epochs: repeated, repeated in part, expected, forgotten
staged_*    parts of insertions: which there are, for how long, and their memory
batches_*   what counts of what tasks have staged, and what is refused of a query
"""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import MisuseError, Records
from timely.limits import ATTEMPT_SECONDS_MAX, STAGED_SECONDS_MAX
from timely.operators.inputs.deliveries import (
    COMMIT_SECONDS_MAX,
    ONE_ATTEMPT,
    Deliveries,
    StagedPart,
)
from timely.operators.inputs.names import DeliveryName
from timely.running.checking.comparable import comparable
from timely.wire.requests import WRITES_ONCE

A, B, C = (DeliveryName("w", number) for number in range(3))


def part(row: object, size_bytes: int = 1, rows: int = 1) -> StagedPart:
    return StagedPart(7, [Records([row])], size_bytes, rows)


def name(writer: str, sequence: int = 0) -> DeliveryName:
    return DeliveryName(writer, sequence)


def rows_of(parts: list[tuple[int, StagedPart]]) -> list[tuple[int, object]]:
    return [(number, one.batches[0].records[0]) for number, one in parts]  # type: ignore[attr-defined]


def test_writers_are_told_apart_and_remembered_for_ever() -> None:
    known = Deliveries("in")
    for sequence in range(1_000):
        known.take(name("a", sequence), 3)
    known.take(name("b", 5), 0)
    assert known.is_taken(name("a", 0)) and known.is_taken(name("a", 999))
    assert not known.is_taken(name("a", 1_000)) and known.is_new(name("a", 1_000))
    assert known.is_taken(name("b", 5)) and not known.is_new(name("b", 5))
    assert not known.is_taken(name("b", 0)) and not known.is_taken(name("c", 5))


def test_writers_are_followed_only_by_what_is_right_behind_their_last_number() -> None:
    known = Deliveries("in")
    assert not known.take_next("a", 0, 0), "of a writer that is not known nothing is said"
    for sequence, behind in [(3, 4), (4, 5), (9, 10), (5, 10), (0, 10), (9, 10), (11, 12)]:
        known.take(name("a", sequence), 0)
        others = [number for number in range(-2, 13) if number != behind]
        assert not any(known.take_next("a", number, 0) for number in others)
    assert known.take_next("a", 12, 7) and not known.take_next("a", 12, 7) and not known.take_next("b", 13, 0)
    assert known.is_taken(name("a", 12)) and known.entered_by(name("a", 12)) == 7
    assert not known.is_taken(name("a", 10)) and not known.is_taken(name("a", 13))


def test_writers_tell_the_last_epoch_that_one_of_their_deliveries_has_entered() -> None:
    known = Deliveries("in")
    for sequence, epoch in enumerate((2, 5, 4)):
        known.take(name("a", sequence), epoch)
    assert [known.entered_by(name("a", sequence)) for sequence in range(4)] == [5, 5, 5, None]
    assert known.take_next("a", 3, 4) and known.entered_by(name("a", 3)) == 5
    assert known.take_next("a", 4, 6) and known.entered_by(name("a", 0)) == 6


@pytest.mark.parametrize("is_next", [False, True])
def test_writers_that_were_silent_longest_are_forgotten_first(is_next: bool) -> None:
    known = Deliveries("in", writers_max=2)
    known.take(name("a"), 0)
    known.take(name("b"), 0)
    if is_next:
        assert known.take_next("a", 1, 0)
    else:
        known.take(name("a", 1), 0)
    known.take(name("c"), 0)
    assert [known.is_taken(name(writer)) for writer in "abc"] == [True, False, True]


def test_writers_that_leave_too_many_gaps_are_told_so_and_may_still_repeat_and_fill() -> None:
    known = Deliveries("in", gaps_max=2)
    for sequence in (0, 2, 4):
        assert known.is_new(name("a", sequence))
        known.take(name("a", sequence), 0)
    with pytest.raises(
        MisuseError, match="has left 2 gaps in the numbers of its insertions: number them 0, 1"
    ):
        known.is_new(name("a", 6))
    assert not known.is_new(name("a", 4))
    for other in (name("b", 6), *(name("a", sequence) for sequence in (1, 3, 5))):
        assert known.is_new(other), "each of these leaves no gap more"
    assert not known.is_taken(name("a", 6))


def test_writers_may_join_what_is_there_on_either_side() -> None:
    known = Deliveries("in", gaps_max=1)
    for sequence in (1, 5):
        known.take(name("w", sequence), 0)
    for sequence in (0, 2, 4, 6):
        assert known.is_new(name("w", sequence))
    for sequence in (-1, 3, 7):
        with pytest.raises(MisuseError, match="gaps"):
            known.is_new(name("w", sequence))


def test_epochs_know_their_deliveries_as_long_as_these_may_be_repeated() -> None:
    known = Deliveries("in")
    known.take_in([3, 5], A)
    known.take_in([3], B)
    assert [known.is_taken_in(epoch, A) for epoch in (2, 3, 4, 5)] == [False, True, False, True]
    known.forget_before(3)
    assert known.is_taken_in(3, B) and len(known.named_epochs) == 2
    known.forget_before(4)
    assert not known.is_taken_in(3, A) and not known.is_taken_in(3, B)
    assert known.is_taken_in(5, A) and len(known.named_epochs) == 1
    known.forget_before(99)
    assert len(known.named_epochs) == 0 and known.missing(99, [A]) == [A]


def test_epochs_that_are_not_forgotten_tell_a_repetition() -> None:
    known = Deliveries("in")
    known.take_in([3, 5, 7], A)
    assert known.is_taken_in_all([3, 5, 7], A)
    assert not known.is_taken_in_all([3, 5, 7], B) and not known.is_taken_in_all([], A)
    known.forget_before(5)
    assert known.is_taken_in_all([3, 5, 7], A) and not known.is_taken_in_all([3], A)


@pytest.mark.parametrize("epochs", [[3, 4], [4, 5], [3, 4, 5], [5, 8]])
def test_epochs_of_which_a_delivery_has_come_to_some_refuse_it_as_another(epochs: list[int]) -> None:
    """Its rows would be lost in silence if it counted as a repetition."""
    known = Deliveries("in")
    known.take_in([3, 5], A)
    lacks = next(epoch for epoch in epochs if epoch not in (3, 5))
    has = next(epoch for epoch in epochs if epoch in (3, 5))
    with pytest.raises(MisuseError, match=f"append 0 of writer 'w' .* epoch {has} and none of epoch {lacks}"):
        known.is_taken_in_all(epochs, A)


def test_epochs_expect_nothing_more_of_a_delivery_to_several() -> None:
    """Also an epoch of which it has no rows: who completes that cannot wait for any."""
    known = Deliveries("in")
    known.take_in([3, 5], A)
    known.take_in([3], B)
    known.take_in([4], C)
    assert known.missing(4, [A, B, C]) == [B], "another of this name may be missing for epoch 4"
    assert known.missing(9, [A, C]) == [C]
    known.take_in([4, 8], A)
    known.forget_before(6)
    assert known.missing(9, [A, C]) == [C]
    known.forget_before(9)
    assert known.missing(9, [A, C]) == [A, C]


def test_epochs_expect_nothing_more_of_a_delivery_until_its_last_epoch_though_it_comes_again_before() -> None:
    known = Deliveries("in")
    known.take_in([0, 5], A)
    known.take_in([3, 4], A)
    known.forget_before(5)
    assert known.missing(6, [A]) == []
    known.forget_before(6)
    assert known.missing(6, [A]) == [A]


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 9), min_size=1), st.sampled_from([A, B, C])), max_size=9),
    st.lists(st.integers(0, 10)),
)
def test_epochs_as_told_plainly(calls: list[tuple[set[int], DeliveryName]], forgotten: list[int]) -> None:
    known = Deliveries("in")
    came: set[tuple[int, DeliveryName]] = set()
    for (epochs, one), since in zip(calls, [*sorted(forgotten), *[10] * len(calls)], strict=False):
        known.take_in(sorted(epochs), one)
        came |= {(epoch, one) for epoch in epochs}
        known.forget_before(since)
        came = {(epoch, other) for epoch, other in came if epoch >= since}
        assert len(known.named_epochs) == len({epoch for epoch, _ in came})
        assert all(
            known.is_taken_in(epoch, other) == ((epoch, other) in came)
            for epoch in range(10)
            for other in (A, B, C)
        )


def test_epochs_of_one_append_are_known_as_such_by_who_takes_over_when_only_the_last_is_left() -> None:
    """A seal that expects the append must not miss it."""
    before, after = Deliveries("rows"), Deliveries("rows")
    before.take_in([3, 9], A)
    before.take_in([9], B)
    before.forget_before(5)
    appends = before.facts()[1]
    for writer, sequence, epochs in cast("list[tuple[str, int, list[int]]]", appends):
        after.take_in(epochs, DeliveryName(writer, sequence))
    after.forget_before(5)
    for one in (before, after):
        assert one.missing(6, [A, B]) == [B] and one.missing(9, [A, B]) == []
        assert one.is_taken_in_all([3, 9], A)


def test_staged_parts_are_released_together_by_number_once() -> None:
    known = Deliveries("in")
    for number in (3, 0, 2):
        known.stage(A, ONE_ATTEMPT, number, part(number))
    known.stage(B, ONE_ATTEMPT, 0, part("another"))
    assert known.insertions == 2 and known.staged_bytes == 4 and len(known.batches()) == 4
    (parts,) = known.take_staged(A, [ONE_ATTEMPT])
    assert rows_of(parts) == [(0, 0), (2, 2), (3, 3)] and {one.word for _, one in parts} == {7}
    assert known.take_staged(A, [ONE_ATTEMPT]) == [[]]
    assert known.insertions == 1 and known.staged_bytes == 1


def test_staged_parts_that_come_again_replace_the_first() -> None:
    known = Deliveries("in")
    for size_bytes in (10, 10, 4):
        known.stage(A, ONE_ATTEMPT, 0, part("x", size_bytes))
    known.stage(A, ONE_ATTEMPT, 1, part("y", 3))
    assert known.staged_bytes == 7
    for _ in range(2):
        known.drop(A, [ONE_ATTEMPT])
    assert known.staged_bytes == 0 and not known.insertions and not known.batches()


def test_staged_parts_that_are_given_up_are_named_and_those_that_enter_are_not() -> None:
    now, named = [0.0], []
    known = Deliveries("in", lambda: now[0])
    known.on_drop = lambda one, attempt: named.append((one, attempt))
    for at, attempt in ((A, ONE_ATTEMPT), (B, ONE_ATTEMPT), (name("q"), "a"), (name("q"), "b")):
        known.stage(at, attempt, 0, part("x"))
    known.take_staged(A, [ONE_ATTEMPT])
    known.commit(name("q"), ["a"])
    assert not named, "the decision says what becomes of all attempts"
    known.stage(A, ONE_ATTEMPT, 0, part("x"))
    known.drop(A, [ONE_ATTEMPT])
    assert named == [(A, ONE_ATTEMPT)]
    now[0] = 2 * STAGED_SECONDS_MAX + 1
    known.drop_old()
    assert named == [(A, ONE_ATTEMPT), (B, ONE_ATTEMPT)]
    known.stage(A, ONE_ATTEMPT, 0, part("x"))
    known.clear()
    assert named[2:] == [(A, ONE_ATTEMPT)] and not known.staged_bytes, "the input is closed"


def test_staged_parts_are_not_let_go_of_before_worker_0_refuses_them() -> None:
    now = [0.0]
    known = Deliveries("in", lambda: now[0])
    known.stage(A, ONE_ATTEMPT, 0, part("x"))
    now[0] = STAGED_SECONDS_MAX
    known.check_staged(A)
    now[0] += 1
    with pytest.raises(MisuseError, match="'in': the parts of insertion 0 of writer 'w' have waited"):
        known.check_staged(A)
    now[0] = 2 * STAGED_SECONDS_MAX
    known.drop_old()
    assert known.staged_bytes == 1, "another worker may just have told that it enters"
    now[0] += 1
    known.drop_old()
    assert not known.insertions and known.staged_bytes == 0
    with pytest.raises(MisuseError, match="were dropped: insert the rows again"):
        known.check_staged(A)


def test_staged_parts_wait_on_while_their_client_is_heard_of() -> None:
    now = [0.0]
    known = Deliveries("in", lambda: now[0])
    known.stage(A, ONE_ATTEMPT, 0, part("x"))
    now[0] = STAGED_SECONDS_MAX
    known.stage(A, ONE_ATTEMPT, 1, part("y"))
    now[0] += 1
    known.check_staged(A)


def test_staged_parts_of_a_closed_input_are_forgotten() -> None:
    known = Deliveries("in")
    known.stage(A, ONE_ATTEMPT, 0, part("x"))
    known.stage(A, "a", 0, part("y"))
    known.clear()
    assert not known.insertions and not known.attempts and known.staged_bytes == 0


def test_staged_differences_are_differences_of_what_it_will_do() -> None:
    one, other = Deliveries("in", lambda: 0.0), Deliveries("in", lambda: 0.0)
    assert comparable(one) == comparable(other)
    one.stage(A, ONE_ATTEMPT, 0, part("x"))
    assert comparable(one) != comparable(other)
    other.stage(A, ONE_ATTEMPT, 0, part("x"))
    assert comparable(one) == comparable(other)


STAGES = st.tuples(
    st.just("stage"), st.sampled_from("pq"), st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 2)
)
ENDS = st.tuples(
    st.sampled_from(["commit", "drop", "keep"]),
    st.sampled_from("pq"),
    st.integers(0, 2),
    st.lists(st.sampled_from("abc"), unique=True, max_size=2),
    st.just(0),
)


@given(st.lists(STAGES | ENDS, max_size=30))
def test_batches_are_the_rows_of_attempts_that_a_commit_names_once(
    steps: list[tuple[str, str, int, str | list[str], int]],
) -> None:
    known = Deliveries("in")
    plain: dict[tuple[str, int, str], dict[int, int]] = {}
    kept: set[tuple[str, int, str]] = set()
    last = {"p": -1, "q": -1}
    for number, (what, query, batch, names, at) in enumerate(steps):
        one = DeliveryName(query, batch)
        if what == "stage":
            assert isinstance(names, str)
            if batch > last[query]:  # what comes later is refused before
                known.stage(one, names, at, part(number, at))
                plain.setdefault((query, batch, names), {})[at] = number
        elif what == "drop":
            known.drop(one, names)
            plain = {
                key: parts
                for key, parts in plain.items()
                if key[:2] != one or (key[2] not in names if names else key in kept)
            }
        elif what == "keep":
            for attempt in names:
                assert known.keep(one, attempt) == len(plain.get((*one, attempt), ()))
            kept |= {(query, batch, attempt) for attempt in names}
        elif batch > last[query]:  # a repeated commit is known before
            rows = [rows_of(parts) for parts in known.commit(one, names)]
            assert rows == [sorted(plain.get((*one, attempt), {}).items()) for attempt in names]
            plain = {key: parts for key, parts in plain.items() if key[0] != query or key[1] > batch}
            last[query] = batch
        kept &= plain.keys()
        assert known.attempts == len(plain) and not known.insertions
        assert len(known.batches()) == sum(map(len, plain.values()))
        assert known.staged_bytes == sum(at for parts in plain.values() for at in parts)
        for key, parts in plain.items():
            assert known.parts(name(*key[:2]), key[2]) == len(parts)
        assert (known.last_batch("p"), known.last_batch("q")) == (last["p"], last["q"])
    known.clear()
    assert known.attempts == known.staged_bytes == 0


def test_batches_are_committed_until_what_is_named_may_be_gone_on_some_worker() -> None:
    now = [100.9]
    known = Deliveries("in", lambda: now[0])
    known.stage(name("q"), "a", 0, part("row"))
    looked = known.seconds()
    assert looked == 100
    now[0] = looked + COMMIT_SECONDS_MAX
    known.drop_old()
    known.check_looked(name("q"), looked)
    assert known.keep(name("q"), "a") == 1
    now[0] += 1.0
    with pytest.raises(MisuseError, match="batch 0 of query q is not committed: its commit has come"):
        known.check_looked(name("q"), looked)
    assert COMMIT_SECONDS_MAX < ATTEMPT_SECONDS_MAX


def test_batches_follow_one_another() -> None:
    known = Deliveries("in")
    known.check_follows(name("q"))
    known.commit(name("q"), ())
    known.check_follows(name("q", 1))
    with pytest.raises(MisuseError, match="batch 2 of query q comes before batch 1, which"):
        known.check_follows(name("q", 2))
    with pytest.raises(MisuseError, match="batch 7 of query r comes before batches 0 to 6, which"):
        known.check_follows(name("r", 7))


def test_batches_before_the_last_one_do_not_come_again() -> None:
    known = Deliveries("in")
    for batch, rows in enumerate(([2, 3], [], [4, 5])):
        one = name("q", batch)
        for number, count in enumerate(rows):
            known.stage(one, f"a{number}", 0, part(number, rows=count))
        known.stage(one, "failed", 0, part("failed", rows=100))
        assert known.is_new_batch(one, None)
        known.commit(one, [f"a{number}" for number in range(len(rows))])
        assert known.last_rows("q") == sum(rows)
        assert not known.is_new_batch(one, None)
    for batch in (0, 1):
        with pytest.raises(MisuseError, match=f"^batch {batch} of query q has come already, .* up to 2: "):
            known.is_new_batch(name("q", batch), None)
    assert known.last_rows("r") == 0


def test_batches_under_one_name_are_of_one_stream() -> None:
    known = Deliveries("in")
    once = f"{WRITES_ONCE}a"
    assert known.is_new_batch(name("q"), "one")
    for query, stream in (("q", "one"), ("r", ""), (once, "")):
        known.commit(name(query), ())
        known.note_stream(query, stream)
    assert known.is_new_batch(name("q", 1), "one") and known.is_new_batch(name(once, 1), "one")
    for query, stream in (("q", "two"), ("q", ""), ("r", "one")):
        assert known.is_new_batch(name(query, 1), None), "of any stream"
        with pytest.raises(MisuseError, match=f"^batch 1 of query {query} is not written: another stream"):
            known.is_new_batch(name(query, 1), stream)
    known.note_stream("ended meanwhile", "one")


def test_batches_are_remembered_of_all_queries_but_those_that_write_once() -> None:
    known = Deliveries("in", queries_max=2, writers_max=2)
    once = [f"{WRITES_ONCE}{letter}" for letter in "abc"]
    for query, batch in (("a", 4), *((query, 0) for query in once), ("b", 2), ("a", 5)):
        known.check_remembered(query)
        known.commit(name(query, batch), ())
    assert [known.last_batch(query) for query in ("a", "b", *once)] == [5, 2, -1, 0, 0]


def test_batches_of_a_query_too_many_are_refused_and_none_of_one_that_is_known() -> None:
    known = Deliveries("in", queries_max=2)
    for query in "ab":
        known.commit(name(query), ())
    with pytest.raises(MisuseError, match="^2 queries have written into this input.* and c would be one"):
        known.check_remembered("c")
    known.check_remembered("a")
    known.check_remembered(f"{WRITES_ONCE}c")


def test_batches_keep_what_a_check_has_found_though_another_driver_gives_them_up() -> None:
    known = Deliveries("in")
    known.stage(name("q"), ONE_ATTEMPT, 0, part("an insertion of the same name"))
    for attempt in "ab":
        known.stage(name("q"), attempt, 0, part(attempt))
    assert known.keep(name("q"), "a") == 1
    known.drop(name("q"))
    assert [known.parts(name("q"), attempt) for attempt in ("a", "b", ONE_ATTEMPT)] == [1, 0, 1]
    known.drop(name("q"), ["a"])
    assert known.attempts == 0 and known.insertions == 1


def test_batches_wait_from_when_they_were_heard_of_last() -> None:
    now = [0.0]
    known = Deliveries("in", lambda: now[0])
    for attempt in "ab":
        known.stage(name("q"), attempt, 0, part(attempt))
    now[0] += ATTEMPT_SECONDS_MAX - 1
    known.drop_old()
    assert known.keep(name("q"), "a") == 1
    now[0] += 2
    known.drop_old()
    assert [known.parts(name("q"), attempt) for attempt in "ab"] == [1, 0]


def test_batches_leave_nothing_staged_of_their_query_up_to_them_and_all_else() -> None:
    """An insertion is none of the query, whatever its writer is called."""
    known = Deliveries("in")
    others = [
        (name("q", 2), "a"),
        (name("p", 0), "a"),
        (name("q", 0), ONE_ATTEMPT),
        (name("q", 1), ONE_ATTEMPT),
    ]
    for one, attempt in [(name("q", 0), "a"), (name("q", 1), "a"), (name("q", 1), "b"), *others]:
        known.stage(one, attempt, 0, part(attempt))
    assert len(known.commit(name("q", 1), ["a"])[0]) == 1
    assert [known.parts(*one) for one in others] == [1] * len(others)
    assert (known.attempts, known.insertions, known.staged_bytes) == (2, 2, len(others))
