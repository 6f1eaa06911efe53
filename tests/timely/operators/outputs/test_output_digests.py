"""Where the digests of an output count: where readers see its changes, and once for each failure."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from timely.errors import MisuseError, TimelyError, VertexError
from timely.operators.capture import RecordLog
from timely.operators.failures import FailureLog, Without
from timely.operators.outputs.output_digests import OutputDigests, hash_of, wrapped
from timely.wire.batch import Records

MISUSE, VERTEX = (hash_of(name.encode()) for name in ("MisuseError", "VertexError"))


Errors = list[type[TimelyError] | None]
FAILING = st.lists(st.sampled_from([None, None, MisuseError, VertexError]), min_size=8, max_size=8)
SUMS = st.dictionaries(st.integers(0, 7), st.integers(1, 9))


class Sums:
    """A log that has these digests."""

    def __init__(self, sums: dict[int, int]) -> None:
        self.sums = sums

    def take_digests(self, stop: int) -> list[tuple[int, int]]:
        return [(epoch, self.sums.pop(epoch)) for epoch in sorted(self.sums) if epoch < stop]


class Failures:
    """A log of failures: the class of the error of each epoch, None for an answer."""

    def __init__(self, errors: Errors) -> None:
        self.errors = errors

    def without(self, start: int, stop: int) -> list[Without]:
        return [
            Without(epoch, epoch + 1, error("at " + str(epoch)), epoch, hash_of(error.__name__.encode()))
            for epoch, error in enumerate(self.errors)
            if error is not None and start <= epoch < stop
        ]


def digests(sums: dict[int, int], errors: Errors, counts: bool = True) -> OutputDigests:
    return OutputDigests(Sums(sums), cast("FailureLog", Failures(errors)), counts)


def test_digests_are_taken_once_and_in_order() -> None:
    taken = OutputDigests(Sums({3: 30, 0: 5, 7: -1}), None, True)
    assert taken.take(0) == []
    assert taken.take(4) == [(0, 5), (3, 30)]
    taken.settle(9)
    assert taken.take(5) == taken.take(7) == []
    assert taken.take(9) == [(7, -1)]


@given(SUMS, FAILING, st.integers(0, 8), st.integers(0, 8))
def test_digests_that_are_summed_up_are_one(
    sums: dict[int, int], errors: Errors, first: int, stop: int
) -> None:
    one_by_one = digests(dict(sums), errors).take(8)
    summed = digests(dict(sums), errors)
    summed.sum_up(first)
    summed.sum_up(stop)
    last = max(first, stop)
    earlier, later = [sum(digest for epoch, digest in one_by_one if epoch < last)], one_by_one
    assert summed.take(8) == [
        *[(last - 1, digest) for digest in earlier if digest],
        *[(epoch, digest) for epoch, digest in later if epoch >= last],
    ]


def test_changes_of_epochs_without_an_answer_count_where_they_are_shown() -> None:
    errors = [None, MisuseError, MisuseError, None, None]
    of_first = digests({0: 1, 1: 10, 2: 100, 3: 1_000, 4: 10_000}, errors)
    assert of_first.take(5) == [(0, 1), (1, MISUSE - 1), (3, wrapped(1_111 - MISUSE)), (4, 10_000)]
    of_second = digests({0: 1, 1: 10, 2: 100, 3: 1_000, 4: 10_000}, errors, counts=False)
    assert of_second.take(5) == [(0, 1), (1, -1), (3, 1_111), (4, 10_000)]


def test_another_failure_is_another_digest_but_not_another_message() -> None:
    errors = [MisuseError, VertexError, VertexError, None]
    assert digests({}, errors).take(4) == [(0, MISUSE), (1, wrapped(VERTEX - MISUSE)), (3, wrapped(-VERTEX))]


@given(FAILING, SUMS, st.lists(st.integers(0, 8)), st.booleans(), st.integers(0, 7), st.booleans())
def test_digests_of_what_is_shown_depend_on_what_is_there(
    errors: Errors, sums: dict[int, int], stops: list[int], settles: bool, base: int, counts: bool
) -> None:
    """However often they are taken, and whatever is taken together at first."""
    whole = digests(dict(sums), errors, counts).take(8)
    taken = digests(dict(sums), errors, counts)
    some: list[tuple[int, int]] = []
    for stop in sorted(stops):
        if settles:
            taken.settle(stop)
        else:
            some += taken.take(stop)
    assert some + taken.take(8) == whole
    rows = 0
    for epoch, error in enumerate(errors):
        rows += sums.get(epoch, 0)
        shown = sum(digest for at, digest in whole if at <= epoch)
        failed = hash_of(error.__name__.encode()) if error is not None and counts else 0
        assert wrapped(shown) == (rows if error is None else failed)
    later = {epoch: digest for epoch, digest in sums.items() if epoch > base}
    later[base] = sum(digest for epoch, digest in sums.items() if epoch <= base)
    begun = digests(later, [None if epoch < base else error for epoch, error in enumerate(errors)], counts)
    assert [each for each in begun.take(8) if each[0] > base] == [each for each in whole if each[0] > base]


def _records(*rows: tuple[int, object]) -> list[tuple[int, int]]:
    log = RecordLog()
    assert log.keep_digests()
    for epoch, record in rows:
        log.add(epoch, Records([record]))
    log.complete(9)
    return log.take_digests(9)


def test_records_count_in_any_order_and_as_often_as_they_are_there() -> None:
    assert _records((1, "a"), (1, "b"), (2, "a")) == _records((2, "a"), (1, "b"), (1, "a"))
    assert _records((1, "a")) != _records((1, "a"), (1, "a"))
    assert _records((1, 1)) != _records((1, 1.0))
    assert _records((1, object())) == []


OF_TIMELY = 7226694133135056666


def test_a_hash_never_changes() -> None:
    assert hash_of(b"timely") == OF_TIMELY
    assert [wrapped(number) for number in (2**63 - 1, 2**63, 2**64, -1)] == [2**63 - 1, -(2**63), 0, -1]
