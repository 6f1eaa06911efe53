"""Waits that are asked with the seal before them: when, how often, and which of their answers count."""

from __future__ import annotations

import pytest

from timely.client.remote.foreseen import Foreseen, ForeseenWait
from timely.errors import MisuseError
from timely.limits import FORESEEN_COUNT_MAX
from timely.wire.requests import Reply, Request, Seal, Wait


class _Wire:
    def __init__(self) -> None:
        self.sent: list[tuple[int, Request]] = []
        self.foreseen = Foreseen(2, self.send)

    def send(self, worker: int, request: Request) -> int:
        self.sent.append((worker, request))
        return len(self.sent) - 1

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
        wire.foreseen.on_seal(Seal(dataflow, 0))
        wire.wait(0, dataflow)
        wire.foreseen.on_seal(Seal(dataflow, 1))
    assert len(wire.sent) == 2 * FORESEEN_COUNT_MAX


class _Interrupts(dict[tuple[int, int], ForeseenWait]):
    """Whoever enters something is interrupted before it is there."""

    def update(self, *_: object, **__: object) -> None:
        raise KeyboardInterrupt


def test_who_is_interrupted_before_answers_are_expected_may_wait() -> None:
    wire = _Wire()
    wire.foreseen.on_seal(Seal(0, 0))
    wire.wait(0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wire.foreseen, "_expected", _Interrupts())
        with pytest.raises(KeyboardInterrupt):
            wire.foreseen.on_seal(Seal(0, 1))
    found = wire.foreseen.find([(worker, Wait(0, "", 1, -1.0), None) for worker in range(2)])
    assert found is not None
    assert wire.foreseen.begin(found) == {(0, 0): 0, (1, 1): 1}
    wire.foreseen.give_up(found, {(1, 1): 1})
    assert wire.foreseen.expects(1, 1) and not wire.foreseen.expects(0, 0)
