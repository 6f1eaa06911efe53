"""What a worker remembers of the insertions of a client, so that a seal may go behind them."""

from __future__ import annotations

import pytest

from timely.limits import POSTED_COUNT_MAX
from timely.wire.requests import Describe, InsertRows, Reply, Request, Seal, Value
from timely.worker.answers import posted
from timely.worker.answers.posted import Posted

ROWS = InsertRows(3, "rows", 0, "w", 0, 1, [])


def noted(*numbers: int, epoch: int = 0, client: bytes = b"ada") -> Posted:
    remembered = Posted()
    for number in numbers:
        remembered.note(client, number, ROWS, Reply({"is_new": True, "epoch": epoch}))
    return remembered


def test_a_seal_behind_what_was_done_seals_the_epochs_that_it_has_entered() -> None:
    remembered = noted(5, 6, epoch=4)
    assert remembered.behind(b"ada", Seal(3, 2, [5, 6])) == Seal(3, 4)
    assert remembered.behind(b"ada", Seal(3, 9, [6])) == Seal(3, 9)


@pytest.mark.parametrize("behind", [[7], [5, 7], [None], ["5"], [[5]], [{}], [-1], [5.0]], ids=str)
def test_behind_what_is_not_known_nothing_is_done(behind: list[Value]) -> None:
    assert noted(5, 6).behind(b"ada", Seal(3, 2, behind)) is None


def test_behind_what_another_client_or_dataflow_has_done_nothing_is_done() -> None:
    remembered = noted(5)
    assert remembered.behind(b"bob", Seal(3, 2, [5])) is None
    assert remembered.behind(b"ada", Seal(4, 2, [5])) is None


@pytest.mark.parametrize("request_", [Seal(3, 2), Describe(3), ROWS], ids=lambda each: type(each).__name__)
def test_what_names_nothing_is_done_as_it_is(request_: Request) -> None:
    assert noted().behind(b"ada", request_) == request_


def test_only_insertions_are_noted_and_only_so_many_of_so_many_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(posted, "CALLERS_MAX", 2)
    remembered = noted(*range(POSTED_COUNT_MAX + 1))
    remembered.note(b"ada", 90, Describe(3), Reply({"epoch": 0}))
    assert remembered.behind(b"ada", Seal(3, 0, [0])) is None
    assert remembered.behind(b"ada", Seal(3, 0, [90])) is None
    assert remembered.behind(b"ada", Seal(3, 0, [*range(1, POSTED_COUNT_MAX + 1)])) == Seal(3, 0)
    for client in (b"bob", b"ada", b"eve"):
        remembered.note(client, 99, ROWS, Reply({"is_new": True, "epoch": 0}))
    assert remembered.behind(b"bob", Seal(3, 0, [99])) is None, "heard of before the other two"
    assert remembered.behind(b"ada", Seal(3, 0, [99])) is not None
