"""What one worker says about an epoch."""

from __future__ import annotations

import pytest
import stuck_flows
from dataflows import frozen
from one_worker import LINES, answer, serving

import timely
from timely.limits import REASONS_COUNT_MAX
from timely.running.core import Worker
from timely.wire.batch import Records
from timely.wire.reasons import Reason
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Reply, Uninstall, Why
from timely.worker.answers import why
from timely.worker.server import Server


def reasons_in(reply: Reply) -> list[Reason]:
    read = [Reason.read(value) for value in reply.items("reasons")]
    return [reason for reason in read if reason is not None]


def test_an_open_epoch_a_complete_one_and_none() -> None:
    server, worker, _ = serving()
    (opened,) = reasons_in(answer(server, Why(0, 0)))
    assert (opened.kind, opened.stage) == ("input", "lines")
    answer(server, Deliver(0, "lines", "w", 0, IN_OPEN, 0, 1), LINES.select(["record"]))
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    done = answer(server, Why(0, 0))
    assert done.integer("complete") == 1 and not reasons_in(done) and done.text("address") == "here"
    nothing = answer(server, Why(-1, -1))
    assert not nothing.items("reasons") and not nothing.items("view")


def test_a_dataflow_that_is_not_there_and_one_that_has_ended_are_refused() -> None:
    server, _, _ = serving()
    with pytest.raises(timely.MisuseError, match="has no dataflow 7"):
        server.handle(Why(7, 0))
    answer(server, Uninstall(0, False))
    with pytest.raises(timely.UninstalledError):
        server.handle(Why(0, 0))
    with pytest.raises(timely.UninstalledError):
        server.reasons.answer_from_outside(Why(0, 0))


def test_a_dataflow_that_has_not_begun_is_told_at_once() -> None:
    workers = [Worker(0, 2, NoTransport()), Worker()]
    server = Server(workers[0], "here")
    server.handle(Install("dataflows:word_count", {}))
    (reason,) = reasons_in(answer(server, Why(0, 0)))
    assert (reason.kind, reason.detail) == ("install", "dataflow 0 has not begun yet")


class NoTransport:
    """Takes messages, and brings none."""

    def send(self, peer: int, frames: object) -> None:
        return

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        return []


def test_a_worker_says_no_more_than_allowed_and_that_there_is_more() -> None:
    worker = Worker()
    server = Server(worker, "here")
    instance = worker.install(frozen(stuck_flows.holds))
    for epoch in range(REASONS_COUNT_MAX + 2):
        instance.input("records").append_all(epoch, [Records([0])])
        instance.input("records").seal(epoch)
        worker.run_until_idle()
    reply = answer(server, Why(0, 100))
    assert len(reply.items("reasons")) == REASONS_COUNT_MAX and reply.values["is_cut"] is True
    assert len(reply.items("view")) == REASONS_COUNT_MAX
    assert reasons_in(reply)[0].kind == "input", "the likeliest first"
    assert not answer(server, Why(0, 1)).values["is_cut"]


def test_asked_from_outside_it_says_the_same_while_it_is_in_no_call() -> None:
    server, _, _ = serving()
    inside, outside = answer(server, Why(0, 3)), server.reasons.answer_from_outside(Why(0, 3), 1.0)
    assert [r.kind for r in reasons_in(inside)] == [r.kind for r in reasons_in(outside)] == ["input"]
    assert outside.integer("complete") == inside.integer("complete") == 0


def two_outputs(dataflow: timely.Dataflow) -> None:
    for name in ("few", "many"):
        dataflow.output(name, dataflow.input(name))


def test_of_what_is_kept_the_largest_is_listed_and_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(why, "RETAINED_COUNT_MAX", 1)
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(two_outputs)
        for rows in (0, 1):
            flow.input("few").insert(["x"] * rows)
            flow.input("many").insert(["x"] * 100 * rows)
            flow.seal(wait=True)
            if not rows:
                assert flow.output("few").changes_nowait() == flow.output("many").changes_nowait() == []
        report = flow.why_retained()
        assert [(entry.name, entry.rows) for entry in report.entries] == [("many", 100)]
        assert report.left_out == 1 and str(report).endswith("and 1 more")
