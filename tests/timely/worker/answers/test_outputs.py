"""What is asked of outputs, without a socket.

later_*      answers that depend on what is still to come
forgotten_*  what may be dropped
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_worker import LINES, answer, serving

import timely
from timely.client.tables import records_of
from timely.limits import READER_SECONDS_MAX
from timely.wire.requests import IN_EPOCH, Decide, Deliver, Progress, Read
from timely.worker.answers.later import Later


def test_later_changes_come_when_the_epoch_is_complete() -> None:
    server, worker, _ = serving()
    assert answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), LINES).values == {"is_new": True}
    assert answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), LINES).values == {"is_new": False}
    later = server.handle(Read(0, "counts", 0, 1, -1.0))
    assert isinstance(later, Later) and later.ready() is None
    assert answer(server, Read(0, "counts", 0, 0, -1.0, is_open_ended=True)).columns().num_rows == 0
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    reply = later.ready()
    assert reply is not None and sorted(records_of(reply.columns())) == [(0, ("a", 2)), (0, ("b", 1))]
    assert answer(server, Read(0, "counts", 0, 0, -1.0, is_open_ended=True)).columns().num_rows == 2
    assert (
        answer(server, Progress(0, "counts")).values
        == answer(server, Progress(0, "")).values
        == {"complete": 1}
    )
    assert answer(server, Progress(0, "counts", reader="me", keep_from=1, drops=True)).integer("kept") == 1
    with pytest.raises(timely.ForgottenError, match="before 1 are no longer kept"):
        server.handle(Read(0, "counts", 0, 0, -1.0, is_open_ended=True))
    assert answer(server, Read(0, "counts", 1, 1, -1.0, is_open_ended=True)).columns().num_rows == 0


def test_later_answers_have_a_deadline_and_say_how_far_it_is() -> None:
    server, _, clock = serving()
    later = server.handle(Progress(0, "counts", 3, 2.5))
    assert isinstance(later, Later) and later.deadline == clock.now + 2.5
    with pytest.raises(timely.WaitTimeoutError, match=r"not complete on worker \d: it is not sealed yet"):
        raise later.late()  # of who does not wait for so long
    clock.now = later.deadline
    with pytest.raises(
        timely.WaitTimeoutError, match=r"epoch 3 of output 'counts' .* after 2.5 s: it is not sealed yet"
    ):
        raise later.late()
    rest = server.handle(Progress(0, "counts", 3, 0.25, 2.5))
    assert isinstance(rest, Later) and rest.deadline == clock.now + 0.25
    clock.now = rest.deadline
    with pytest.raises(timely.WaitTimeoutError, match=r"after 2.75 s: it is not sealed yet"):
        raise rest.late()  # of who had waited before
    answer(server, Decide(0, 5, True))
    with pytest.raises(
        timely.WaitTimeoutError, match="the work on it is not done yet; complete are the epochs before 0"
    ):
        raise later.late()


@pytest.mark.parametrize(("seconds", "deadline"), [(0.0, 7.0), (1.5, 8.5), (-1.0, float("inf"))])
def test_later_is_as_late_as_who_asks_waits(seconds: float, deadline: float) -> None:
    server, _, clock = serving()
    clock.now = 7.0
    for request in (Read(0, "counts", 0, 1, seconds), Progress(0, "counts", 0, seconds)):
        later = server.handle(request)
        assert isinstance(later, Later) and later.deadline == deadline


def test_later_news_are_told_when_they_come_or_when_who_waits_has_waited_for_long_enough() -> None:
    server, worker, clock = serving()
    hold = Progress(0, "counts", reader="me", keep_from=0, keep_seconds=60.0, extent=True)
    assert answer(server, hold).integer("complete") == 0, "who does not wait is answered at once"
    waits = replace(hold, beyond=0, timeout_seconds=0.5)
    first, second = (server.handle(waits) for _ in range(2))
    assert isinstance(first, Later) and isinstance(second, Later) and second.deadline == 0.5
    assert first.ready() is None
    clock.now = first.deadline
    told = first.ready()
    assert told is not None and told.integer("complete") == 0
    clock.now = 0.1
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    told = second.ready()
    assert told is not None and told.integer("complete") == 1
    assert answer(server, waits).integer("complete") == 1
    assert isinstance(server.handle(replace(waits, beyond=1)), Later)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("-inf"), float("inf")])
def test_later_is_never_for_ever_whatever_a_client_says(seconds: float) -> None:
    server, _, _ = serving()
    waits = server.handle(Progress(0, "counts", 0, seconds, keep_from=0, extent=True))
    deadline = waits.deadline if isinstance(waits, Later) else 0.0
    assert deadline <= READER_SECONDS_MAX


def test_forgotten_is_nothing_that_is_still_to_come() -> None:
    server, worker, _ = serving()
    answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), LINES)
    assert answer(server, Progress(0, "counts", reader="me", keep_from=9, drops=True)).integer("kept") == 0
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    changes = answer(server, Read(0, "counts", 0, 1, -1.0)).columns()
    assert sorted(records_of(changes)) == [(0, ("a", 2)), (0, ("b", 1))]
    assert answer(server, Progress(0, "counts", reader="", keep_from=9, drops=True)).integer("kept") == 0, (
        "nor what comes behind a place"
    )


def test_refusing_a_snapshot_of_records() -> None:
    server, worker, _ = serving()
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    with pytest.raises(timely.MisuseError, match="read changes"):
        server.handle(Read(0, "counts", -1, 1, 0.0))
