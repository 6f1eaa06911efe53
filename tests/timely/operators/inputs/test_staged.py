"""Parts of insertions that wait for worker 0's word: which there are, for how long, and their memory."""

from __future__ import annotations

import pytest

from timely import MisuseError, Records
from timely.limits import STAGED_SECONDS_MAX
from timely.operators.inputs.appends import AppendId
from timely.operators.inputs.staged import Staged, StagedPart
from timely.running.checking.comparable import comparable

NAME = AppendId("w", 0)


def part(row: object, size_bytes: int = 1) -> StagedPart:
    return StagedPart(7, [Records([row])], size_bytes)


def test_parts_are_taken_together_by_number_once() -> None:
    staged = Staged("in")
    for number in (3, 0, 2):
        staged.add(NAME, number, part(number))
    staged.add(AppendId("w", 1), 0, part("another"))
    assert len(staged) == 2 and staged.bytes == 4 and len(staged.batches()) == 4
    taken = staged.take(NAME)
    assert [(number, one.word, one.batches[0].records) for number, one in taken] == [
        (0, 7, [0]),
        (2, 7, [2]),
        (3, 7, [3]),
    ]
    assert staged.take(NAME) == [] and len(staged) == 1 and staged.bytes == 1


def test_a_part_that_comes_again_replaces_the_first() -> None:
    staged = Staged("in")
    for size_bytes in (10, 10, 4):
        staged.add(NAME, 0, part("x", size_bytes))
    staged.add(NAME, 1, part("y", 3))
    assert staged.bytes == 7
    staged.drop(NAME)
    staged.drop(NAME)
    assert staged.bytes == 0 and not staged and not staged.batches()


def test_none_is_let_go_of_before_worker_0_refuses_it() -> None:
    now = [0.0]
    staged = Staged("in", lambda: now[0])
    staged.add(NAME, 0, part("x"))
    now[0] = STAGED_SECONDS_MAX
    staged.check(NAME)
    now[0] += 1
    with pytest.raises(MisuseError, match="'in': the parts of insertion 0 of writer 'w' have waited"):
        staged.check(NAME)
    now[0] = 2 * STAGED_SECONDS_MAX
    staged.drop_old()
    assert staged.bytes == 1, "another worker may just have told that it enters"
    now[0] += 1
    staged.drop_old()
    assert not staged and staged.bytes == 0
    with pytest.raises(MisuseError, match="were dropped: insert the rows again"):
        staged.check(NAME)


def test_whose_client_is_heard_of_waits_on() -> None:
    now = [0.0]
    staged = Staged("in", lambda: now[0])
    staged.add(NAME, 0, part("x"))
    now[0] = STAGED_SECONDS_MAX
    staged.add(NAME, 1, part("y"))
    now[0] += 1
    staged.check(NAME)


def test_those_of_a_closed_input_are_forgotten() -> None:
    staged = Staged("in")
    staged.add(NAME, 0, part("x"))
    staged.clear()
    assert not staged and staged.bytes == 0


def test_what_differs_in_what_is_staged_will_do_something_else() -> None:
    one, other = Staged("in", lambda: 0.0), Staged("in", lambda: 0.0)
    assert comparable(one) == comparable(other)
    one.add(NAME, 0, part("x"))
    assert comparable(one) != comparable(other)
    other.add(NAME, 0, part("x"))
    assert comparable(one) == comparable(other)
