"""Waits that are asked with the seal before them: when, how often, and which of their answers count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from timely.client.remote import foreseen
from timely.client.remote.foreseen import Foreseen
from timely.errors import MisuseError
from timely.limits import FORESEEN_COUNT_MAX
from timely.wire.requests import Reply, Request, Seal, Wait


class _Wire:
    def __init__(self) -> None:
        self.sent: list[tuple[int, Request]] = []
        self.losses = [0, 0]
        self.foreseen = Foreseen(2, self.send, self.losses.__getitem__)

    def send(self, worker: int, request: Request) -> int:
        self.sent.append((worker, request))
        return len(self.sent) - 1

    def foresee(self, dataflow: int) -> None:
        """One wait, the first of its dataflow."""
        self.foreseen.on_seal(Seal(dataflow, 0))
        self.wait(0, dataflow)
        self.foreseen.on_seal(Seal(dataflow, 1))

    def wait(self, epoch: int, dataflow: int = 0) -> bool:
        """Whether it was asked already."""
        asked = Wait(dataflow, "", epoch, -1.0)
        return self.foreseen.find([(worker, asked, None) for worker in range(2)]) is not None


def test_a_wait_is_foreseen_of_who_has_waited_for_what_he_has_sealed_and_only_once() -> None:
    wire = _Wire()
    wire.foreseen.on_seal(Seal(0, 0))
    assert wire.sent == [] and not wire.wait(0)
    wire.foreseen.on_seal(Seal(0, 1))
    assert wire.sent == [(0, Wait(0, "", 1, -1.0)), (1, Wait(0, "", 1, -1.0))]
    wire.foreseen.on_seal(Seal(0, 2))
    assert len(wire.sent) == 2, "nobody has waited for 1"
    assert not wire.wait(2) and wire.wait(1) and not wire.wait(1)


def test_who_waits_for_something_else_than_what_he_sealed_last_is_not_taken_to_wait_again() -> None:
    wire = _Wire()
    wire.foreseen.on_seal(Seal(0, 0))
    wire.foreseen.on_seal(Seal(0, 1))
    for epoch in (0, 2):
        assert not wire.wait(epoch)
        wire.foreseen.on_seal(Seal(0, 1))
    assert wire.sent == []
    wire.wait(1)
    wire.foreseen.on_seal(Seal(0, 2))
    assert len(wire.sent) == 2


def test_an_answer_that_was_lost_is_not_missed_for_ever() -> None:
    wire = _Wire()
    wire.foresee(0)
    wire.foreseen.on_seal(Seal(0, 2))
    assert not wire.wait(2), "only 1 was asked for"
    wire.foreseen.on_seal(Seal(0, 3))
    assert len(wire.sent) == 4 and wire.wait(3)


def test_a_refusal_is_no_answer_and_one_that_is_missing_keeps_its_place() -> None:
    wire = _Wire()
    wire.foreseen.on_seal(Seal(0, 0))
    wire.wait(0)
    wire.foreseen.on_seal(Seal(0, 1))
    assert wire.foreseen.expects(0, 0) and wire.foreseen.expects(1, 1)
    wire.foreseen.take(0, 0, Reply({"complete": 2}))
    wire.foreseen.take(1, 1, MisuseError("ended"))
    assert not wire.wait(1)
    assert not wire.foreseen.expects(0, 0)


def test_no_more_are_outstanding_than_a_worker_lets_wait() -> None:
    wire = _Wire()
    for dataflow in range(2 * FORESEEN_COUNT_MAX):
        wire.foresee(dataflow)
    assert len(wire.sent) == 2 * FORESEEN_COUNT_MAX


def test_that_one_worker_has_answered_leaves_no_more_to_another_that_has_not() -> None:
    """Which lets so many wait of one client, and refuses what he asks then."""
    wire = _Wire()
    for dataflow in range(2 * FORESEEN_COUNT_MAX):
        wire.foresee(dataflow)
        for number, (worker, _) in enumerate(wire.sent):
            if worker == 0 and wire.foreseen.expects(worker, number):
                wire.foreseen.take(worker, number, Reply({"complete": 2}))
    assert [worker for worker, _ in wire.sent].count(1) == FORESEEN_COUNT_MAX
    wire.foreseen.take(1, 1, Reply({"complete": 2}))
    for dataflow in (100, 101):
        wire.foresee(dataflow)
    assert [worker for worker, _ in wire.sent].count(1) == FORESEEN_COUNT_MAX + 1, "one place is free again"


def test_an_answer_counts_as_long_as_its_question_is_as_good_as_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How long it has been here before it is read nobody knows."""
    now = [100.0]
    monkeypatch.setattr(foreseen, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for passed, is_good in ((0.0, True), (0.09, True), (0.11, False), (3600.0, False)):
        for has_answers in (False, True):
            wire = _Wire()
            wire.foresee(0)
            now[0] += passed
            if has_answers:  # read only now
                for worker in range(2):
                    wire.foreseen.take(worker, worker, Reply({"complete": 2}))
            assert wire.wait(1) == is_good


def test_missing_answers_are_awaited_and_taken_again_by_who_gives_up() -> None:
    wire = _Wire()
    wire.foresee(0)
    wire.foreseen.take(0, 0, Reply({"complete": 2}))
    wait = wire.foreseen.find([(worker, Wait(0, "", 1, -1.0), None) for worker in range(2)])
    assert wait is not None and sorted(wait.replies) == [0]
    pending = wire.foreseen.begin(wait)
    assert pending == {(1, 1): 1} and not wire.foreseen.expects(1, 1)
    wire.foreseen.give_up(wait, pending)
    assert wire.foreseen.expects(1, 1)
    wire.foreseen.take(1, 1, Reply({"complete": 2}))
    assert not wire.foreseen.expects(1, 1) and wait.pending == {}


def test_who_was_interrupted_as_an_answer_was_noted_may_wait_all_the_same() -> None:
    """What is noted of it in one place, and not in the other, is asked for again if it does not come."""
    wire = _Wire()
    wire.foresee(0)
    wire.foreseen._expected.pop((1, 1))
    wait = wire.foreseen.find([(worker, Wait(0, "", 1, -1.0), None) for worker in range(2)])
    assert wait is not None
    assert wire.foreseen.begin(wait) == {(0, 0): 0, (1, 1): 1}
    assert not wire.foreseen.expects(0, 0)


@pytest.mark.parametrize(
    "asked",
    [
        [(0, Wait(0, "", 1, -1.0), None)],
        [(worker, Wait(0, "out", 1, -1.0), None) for worker in range(2)],
        [(worker, Wait(1, "", 1, -1.0), None) for worker in range(2)],
        [(worker, Wait(0, "", 0, -1.0), None) for worker in range(2)],
        [(worker, Seal(0, 1), None) for worker in range(2)],
    ],
    ids=["of one worker", "for an output", "of another dataflow", "for another epoch", "no wait"],
)
def test_what_is_asked_otherwise_is_asked(asked: list[tuple[int, Request, None]]) -> None:
    wire = _Wire()
    wire.foresee(0)
    assert wire.foreseen.find(asked) is None
    if isinstance(asked[0][1], Wait) and asked[0][1].epoch == 1:
        assert wire.wait(1), "it is still there"


def test_what_was_lost_with_a_connection_leaves_room_for_others_and_is_not_waited_for() -> None:
    wire = _Wire()
    for dataflow in range(FORESEEN_COUNT_MAX):
        wire.foresee(dataflow)
    sent = len(wire.sent)
    wire.foreseen.on_seal(Seal(9, 0))
    wire.wait(0, 9)
    wire.foreseen.on_seal(Seal(9, 1))
    assert len(wire.sent) == sent, "each worker has been asked of four"
    wire.losses[1] += 1
    wire.foreseen.on_seal(Seal(9, 2))
    assert len(wire.sent) == sent, "those of the other worker may still come"
    wire.losses[0] += 1
    wire.foreseen.on_seal(Seal(9, 3))
    assert len(wire.sent) == sent + 2
    assert not wire.wait(1, 0), "it is asked for anew"
    assert wire.wait(3, 9)
    assert not any(wire.foreseen.expects(*at) for at in ((0, 0), (1, 1)))
