"""The report of all workers about an epoch, from what each says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import timely
from timely.client.reports.why import EpochReport, explain, report_of
from timely.errors import PeerError, WaitTimeoutError
from timely.limits import REPORT_CHARS_MAX
from timely.operators.capture import FOREVER
from timely.wire.reasons import Reason
from timely.wire.requests import Reply, Why

OPEN = Reason("input", "shop", "orders", 0, "shop.py:2", (3,), seconds=2.0, workers=(0,))
HELD = Reason("capability", "shop", "late", 2, "shop.py:9", (3,), where="late.py:4", workers=(0,))
ASKED = Reason("notification", "shop", "sums", 3, "shop.py:10", (3,), is_first=False, workers=(0,))
SENT = Reason("message", "shop", "sums", 7, "shop.py:10", (3,), detail="'late' → 'sums'")


def says(
    *reasons: Reason, complete: int = 3, view: Sequence[tuple[Reason, int, int]] = (), is_cut: bool = False
) -> Reply:
    return Reply(
        {
            "address": "here",
            "process": 1,
            "complete": complete,
            "reasons": [reason.values() for reason in reasons],
            "view": [[reason.values(), events, own, 0] for reason, events, own in view],
            "is_cut": is_cut,
        }
    )


def on(worker: int, reason: Reason) -> Reason:
    return replace(reason, workers=(worker,))


def test_complete_is_what_is_so_on_all_workers() -> None:
    report = report_of("shop", 3, [says(complete=4), says(complete=5)])
    assert (report.is_complete, report.complete_before, report.reasons) == (True, 4, ())
    assert str(report) == report.short() == "epoch 3 of 'shop' is complete"
    assert not report_of("shop", 3, [says(complete=4), says(complete=3)]).is_complete
    assert not report_of("shop", 3, [says(complete=4), "worker 1 is stopped"]).is_complete


def test_the_same_of_several_workers_is_one_reason() -> None:
    report = report_of("shop", 3, [says(on(n, OPEN), on(n, HELD)) for n in range(2)])
    assert [(reason.kind, reason.workers, reason.count) for reason in report.reasons] == [
        ("input", (0, 1), 1),
        ("capability", (0, 1), 2),
    ]


def test_the_likeliest_cause_comes_first_and_what_may_only_wait_is_counted() -> None:
    report = report_of("shop", 3, [says(ASKED, HELD), "worker 1 is stopped"])
    assert [reason.kind for reason in report.reasons] == ["silent", "capability", "notification"]
    assert report.cause is not None and report.cause.kind == "silent"
    assert str(report).splitlines() == [
        "epoch 3 of 'shop' is not complete (complete with the other workers are the epochs before 3)",
        "  worker 1 is stopped",
        "  'late' holds epoch 3, by a capability made at late.py:4 (worker 0; built at shop.py:9)",
        "  and 1 more that may only wait for these",
    ]


def test_what_silent_workers_have_done_is_not_known() -> None:
    answers = ["worker 0 is stopped", says(complete=4)]
    (first, *_) = str(report_of("shop", 3, answers)).splitlines()
    assert first == (
        "epoch 3 of 'shop' is not complete (complete with the other workers are the epochs before 4)"
    )
    (first, *_) = str(report_of("shop", 3, ["worker 0 is stopped"] * 2)).splitlines()
    assert first == "epoch 3 of 'shop' is not complete"


def test_on_the_way_is_what_is_in_a_view_and_with_no_worker() -> None:
    view = [(SENT, 3, 1)]
    report = report_of("shop", 3, [says(view=view), says(view=[(SENT, 2, 1)])])
    (reason,) = report.reasons
    assert (reason.kind, reason.count, reason.workers) == ("message", 1, ())
    assert report_of("shop", 3, [says(view=[(SENT, 2, 1)]), says(view=[(SENT, 2, 1)])]).reasons == ()


def test_what_a_vertex_seems_to_hold_elsewhere_is_told_only_if_a_worker_is_silent() -> None:
    elsewhere = Reason("elsewhere", "shop", "late", 2, time=(3,))
    view = [(elsewhere, 2, 1)]
    assert report_of("shop", 3, [says(view=view), says()]).reasons == ()
    kinds = [reason.kind for reason in report_of("shop", 3, [says(view=view), "silent"]).reasons]
    assert kinds == ["silent", "elsewhere"]


def test_messages_of_the_stage_that_is_in_a_call_are_not_on_the_way() -> None:
    call = Reason("call", "shop", "sums", 3, workers=(0,))
    (reason,) = report_of("shop", 3, [says(call, view=[(SENT, 1, 0)])]).reasons
    assert reason.kind == "call"


def test_an_input_is_open_only_if_worker_0_has_not_sealed_it() -> None:
    report = report_of("shop", 3, [says(HELD), says(on(1, OPEN))])
    assert [(reason.kind, reason.workers) for reason in report.reasons] == [
        ("capability", (0,)),
        ("entering", (1,)),
    ]
    silent = report_of("shop", 3, ["worker 0 is stopped", says(on(1, OPEN))])
    assert [reason.kind for reason in silent.reasons] == ["silent", "input"], "it could not say"


def test_a_report_is_short_and_says_that_there_is_more() -> None:
    many = [replace(HELD, stage=f"stage {n}", number=n) for n in range(40)]
    report = report_of("shop", 3, [says(*many, is_cut=True)])
    assert len(report.reasons) == 40 and report.is_cut
    assert len(str(report).splitlines()) == 8 and str(report).endswith("and 34 more at least")
    assert len(report.short().splitlines()) == 5
    long = [replace(reason, site="x" * 400) for reason in many]
    assert len(report_of("shop", 3, [says(*long)]).short()) <= REPORT_CHARS_MAX


def test_the_end_of_a_dataflow_has_a_name() -> None:
    assert str(report_of("shop", FOREVER - 1, [says(OPEN)])).startswith("the end of 'shop' is not complete")


def test_nothing_that_a_worker_may_not_say_is_shown() -> None:
    odd = Reply(
        {"address": "", "process": 1, "complete": 3, "reasons": [{"kind": "odd"}, 7], "view": [3, [1]]}
    )
    report = report_of("shop", 3, [odd])
    assert report.reasons == ()
    assert "ask again" in str(report)


class Says:
    """Workers that say this, or raise it."""

    def __init__(self, *answers: Reply | str | BaseException) -> None:
        self.answers = answers
        self.asked: list[Why] = []

    def reasons(self, request: Why) -> list[Reply | str]:
        self.asked.append(request)
        for answer in self.answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in self.answers if not isinstance(answer, BaseException)]


def noted(workers: Says, dataflow: int = 0) -> str:
    error = WaitTimeoutError("late")
    explain(error, workers, dataflow, "shop", 3)
    (note,) = error.__notes__
    return str(note)


def test_an_error_ends_with_the_report() -> None:
    assert noted(Says(says(HELD))).startswith("why: epoch 3 of 'shop' is not complete")
    assert "no cluster" in noted(Says(PeerError("no cluster"))), "and it still comes"


def test_an_error_about_no_epoch_ends_with_what_the_workers_are_at() -> None:
    call = Reason("call", detail="in f", workers=(1,))
    workers = Says(says(), says(call), "worker 2 is stopped")
    assert noted(workers, -1) == (
        "the workers that do not answer:\n  worker 2 is stopped\n  worker 1 is in a call: in f"
    )
    assert workers.asked == [Why(-1, -1)] or workers.asked == [Why(-1, 3)]
    assert noted(Says(says()), -1) == "all workers answer by now"


@pytest.mark.parametrize("error", [timely.MisuseError("other"), ValueError("other")])
def test_other_errors_stay_as_they_are(error: BaseException) -> None:
    workers = Says(says(HELD))
    explain(error, workers, 0, "shop", 3)
    assert not hasattr(error, "__notes__") and not workers.asked


def test_a_report_can_be_made_by_hand() -> None:
    assert EpochReport("shop", 3, True, 4).cause is None
