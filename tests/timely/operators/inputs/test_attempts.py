"""What counts of what tasks have staged: against the plain rule, in whatever order it comes.

counted_*   rows of the attempts that a commit names, once
waits_*     for how long, and how much it is
refused_*   what could not be remembered
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely import MisuseError, Records
from timely.limits import ATTEMPT_SECONDS_MAX
from timely.operators.inputs.attempts import COMMIT_SECONDS_MAX, Attempts, Part
from timely.wire.task_requests import WRITES_ONCE

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


def part(row: object, size: int = 1, rows: int = 1) -> Part:
    return Part(0, [Records([row])], size, rows)


@given(st.lists(STAGES | ENDS, max_size=30))
def test_counted_are_the_rows_of_attempts_that_a_commit_names_once(
    steps: list[tuple[str, str, int, str | list[str], int]],
) -> None:
    attempts = Attempts()
    plain: dict[tuple[str, int, str], dict[int, int]] = {}
    kept: set[tuple[str, int, str]] = set()
    last = {"p": -1, "q": -1}
    for number, (what, query, batch, names, at) in enumerate(steps):
        if what == "stage":
            assert isinstance(names, str)
            is_new = batch > last[query]
            assert attempts.stage(query, batch, names, at, part(number, at)) == is_new
            if is_new:
                plain.setdefault((query, batch, names), {})[at] = number
        elif what == "drop":
            attempts.drop(query, batch, names)
            plain = {
                key: parts
                for key, parts in plain.items()
                if key[:2] != (query, batch) or (key[2] not in names if names else key in kept)
            }
        elif what == "keep":
            for name in names:
                assert attempts.keep(query, batch, name) == len(plain.get((query, batch, name), ()))
            kept |= {(query, batch, name) for name in names}
        elif batch > last[query]:  # a repeated commit is known before
            taken = attempts.commit(query, batch, names)
            rows = [[(at, p.batches[0].records[0]) for at, p in parts] for parts in taken]  # type: ignore[attr-defined]
            assert rows == [sorted(plain.get((query, batch, name), {}).items()) for name in names]
            plain = {key: parts for key, parts in plain.items() if key[0] != query or key[1] > batch}
            last[query] = batch
        kept &= plain.keys()
        assert len(attempts) == len(plain)
        assert len(attempts.batches()) == sum(map(len, plain.values()))
        assert attempts.bytes == sum(at for parts in plain.values() for at in parts)
        for key, parts in plain.items():
            assert attempts.parts(*key) == len(parts)
        assert (attempts.last("p"), attempts.last("q")) == (last["p"], last["q"])
    attempts.clear()
    assert len(attempts) == attempts.bytes == 0


def test_counted_is_a_commit_until_what_it_names_may_be_gone_on_some_worker() -> None:
    now = [100.9]
    attempts = Attempts(lambda: now[0])
    attempts.stage("q", 0, "a", 0, part("row"))
    looked = attempts.seconds()
    assert looked == 100
    now[0] = looked + COMMIT_SECONDS_MAX
    attempts.drop_old()
    attempts.check_looked("q", 0, looked)
    assert attempts.keep("q", 0, "a") == 1
    now[0] += 1.0
    with pytest.raises(MisuseError, match="batch 0 of query q is not committed: its commit has come"):
        attempts.check_looked("q", 0, looked)
    assert COMMIT_SECONDS_MAX < ATTEMPT_SECONDS_MAX


def test_counted_batches_follow_one_another() -> None:
    attempts = Attempts()
    attempts.check_follows("q", 0)
    attempts.commit("q", 0, ())
    attempts.check_follows("q", 1)
    with pytest.raises(MisuseError, match="batch 2 of query q comes before batch 1, which"):
        attempts.check_follows("q", 2)
    with pytest.raises(MisuseError, match="batch 7 of query r comes before batches 0 to 6, which"):
        attempts.check_follows("r", 7)


def test_counted_is_only_the_last_batch_as_one_that_may_come_again() -> None:
    attempts = Attempts()
    for batch, rows in enumerate(([2, 3], [], [4, 5])):
        for number, count in enumerate(rows):
            attempts.stage("q", batch, f"a{number}", 0, part(number, rows=count))
        attempts.stage("q", batch, "failed", 0, part("failed", rows=100))
        attempts.check_last("q", batch)
        attempts.commit("q", batch, [f"a{number}" for number in range(len(rows))])
        assert attempts.last_rows("q") == sum(rows)
        attempts.check_last("q", batch)
    for batch in (0, 1):
        with pytest.raises(MisuseError, match=f"^batch {batch} of query q has come already, .* up to 2: "):
            attempts.check_last("q", batch)
    assert attempts.last_rows("r") == 0


def test_counted_are_batches_of_one_stream_under_one_name() -> None:
    attempts = Attempts()
    attempts.check_stream("q", 0, "one")
    attempts.came_from("q", "one")
    attempts.came_from("r", "")
    attempts.came_from(f"{WRITES_ONCE}a", "")
    attempts.check_stream("q", 1, "one")
    attempts.check_stream(f"{WRITES_ONCE}a", 1, "one")
    for query, stream in (("q", "two"), ("q", ""), ("r", "one")):
        with pytest.raises(MisuseError, match=f"^batch 1 of query {query} is not written: another stream"):
            attempts.check_stream(query, 1, stream)


def test_counted_queries_are_all_remembered_but_for_those_that_write_once() -> None:
    attempts = Attempts(queries_max=2, once_max=2)
    once = [f"{WRITES_ONCE}{letter}" for letter in "abc"]
    for query, batch in (("a", 4), *((query, 0) for query in once), ("b", 2), ("a", 5)):
        attempts.check_remembered(query)
        attempts.commit(query, batch, ())
    assert [attempts.last(query) for query in ("a", "b", *once)] == [5, 2, -1, 0, 0]


def test_refused_is_a_query_too_many_and_none_that_is_known() -> None:
    attempts = Attempts(queries_max=2)
    for query in "ab":
        attempts.commit(query, 0, ())
    with pytest.raises(MisuseError, match="^2 queries have written into this input.* and c would be one"):
        attempts.check_remembered("c")
    attempts.check_remembered("a")
    attempts.check_remembered(f"{WRITES_ONCE}c")


def test_counted_is_what_was_found_to_be_there_though_another_driver_gives_the_batch_up() -> None:
    attempts = Attempts()
    for name in "ab":
        attempts.stage("q", 0, name, 0, part(name))
    assert attempts.keep("q", 0, "a") == 1
    attempts.drop("q", 0)
    assert (attempts.parts("q", 0, "a"), attempts.parts("q", 0, "b")) == (1, 0)
    attempts.drop("q", 0, ["a"])
    assert len(attempts) == 0


def test_waits_from_when_it_was_heard_of_last() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for name in "ab":
        attempts.stage("q", 0, name, 0, part(name))
    now[0] += ATTEMPT_SECONDS_MAX - 1
    attempts.drop_old()
    assert attempts.keep("q", 0, "a") == 1
    now[0] += 2
    attempts.drop_old()
    assert (attempts.parts("q", 0, "a"), attempts.parts("q", 0, "b")) == (1, 0)
