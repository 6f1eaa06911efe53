"""What a call is answered: in the order of its requests, whenever each is known."""

from __future__ import annotations

import time

import timely
from timely.client.embedded.answers import Answers
from timely.wire.requests import Reply
from timely.worker.answers.later import Later

FIRST, SECOND, THIRD = Reply({"open": 1}), Reply({"open": 2}), Reply({"open": 3})


class Told:
    """What an answer is, once somebody says it; and what is said if nobody does."""

    def __init__(self) -> None:
        self.reply: Reply | None = None
        self.error: timely.TimelyError | None = None

    def ready(self) -> Reply | None:
        if self.error is not None:
            raise self.error
        return self.reply

    def late(self) -> timely.TimelyError:
        return timely.WaitTimeoutError("it is late")


def _later(told: Told) -> Later:
    return Later(told.ready, told.late, time.monotonic() + 60.0)


def test_answers_are_in_the_order_of_requests() -> None:
    one, other = Told(), Told()
    answers = Answers([_later(one), SECOND, _later(other)])
    other.reply = THIRD
    answers.take()
    assert list(answers.waiting) == [0] and answers.replies[1:] == [SECOND, THIRD]
    one.reply = FIRST
    answers.take()
    assert not answers.waiting and answers.replies == [FIRST, SECOND, THIRD]
    assert answers.failure is None


def test_the_cause_is_told_before_what_follows_from_it() -> None:
    """A vertex that has failed on one worker ends the dataflow on the other."""
    one, other, third = Told(), Told(), Told()
    one.error = timely.MisuseError("the dataflow has ended")
    answers = Answers([_later(one), _later(other), _later(third)])
    answers.take()
    assert answers.failure is one.error and list(answers.waiting) == [1, 2], "the others hear of it, too"
    other.error = cause = timely.VertexError("cannot bear it")
    third.error = timely.MisuseError("the dataflow has ended")
    answers.take()
    assert answers.failure is cause and not answers.waiting


def test_late_is_said_by_who_is_waited_for() -> None:
    told = Told()
    answers = Answers([FIRST, _later(told)])
    assert str(answers.late()) == "it is late"
