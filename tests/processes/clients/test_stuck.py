"""Ways not to go on, and what the clients of one and of two worker processes hear of each."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest
import stuck_flows
from stuck_flows import line_of

import timely
from timely.why.command import run_command

SECONDS = 20.0


@pytest.fixture(scope="module", params=[1, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, silence_seconds=30.0) as made:
        yield made


@pytest.fixture
def installed(cluster: timely.Cluster) -> Iterator[Callable[..., timely.Flow]]:
    flows: list[timely.Flow] = []

    def install(name: str, **arguments: object) -> timely.Flow:
        flows.append(cluster.install(f"stuck_flows:{name}", **arguments))
        return flows[-1]

    yield install
    for flow in reversed(flows):
        flow.uninstall()


Installed = Callable[..., timely.Flow]


def fed(flow: timely.Flow, *records: object, name: str = "records") -> timely.Flow:
    """With these records in an epoch that is sealed, and a moment to work on it."""
    flow.input(name).insert(list(records))
    flow.seal()
    return flow


def cause(flow: timely.Flow, epoch: int, kind: str) -> timely.Reason:
    """The likeliest cause, once it is of that kind; workers hear of a seal one after another."""
    until = time.monotonic() + SECONDS
    while True:
        report = flow.why(epoch)
        if report.cause is not None and report.cause.kind == kind and report.cause.is_first:
            return report.cause
        assert time.monotonic() < until and not report.is_complete, str(report)


def test_an_input_that_nobody_seals(cluster: timely.Cluster, installed: Installed) -> None:
    flow = installed("holds")
    reason = cause(flow, 3, "input")
    assert (reason.stage, reason.time, reason.workers) == ("records", (0,), tuple(range(cluster.workers)))
    assert reason.site == line_of("return dataflow.input(") and reason.seconds >= 0.0


def test_a_call_that_sleeps_is_told_while_it_lasts(cluster: timely.Cluster, installed: Installed) -> None:
    flow, began = installed("sleeps"), time.monotonic()
    fed(flow, 120, 121)
    reason = cause(flow, 0, "call")
    assert reason.stage == "slow" and set(reason.workers) <= set(range(cluster.workers))
    assert (reason.where, reason.site) == (line_of("# asleep"), line_of("# slow is built"))
    assert reason.detail == "in Sleeps.on_recv" and 0.1 < reason.seconds < SECONDS
    with pytest.raises(timely.WaitTimeoutError) as late:
        flow.wait(timeout=0.01)
    is_over = time.monotonic() - began > 1.2  # a machine under load may take as long to answer
    assert line_of("# asleep") in late.value.__notes__[-1] or is_over
    flow.wait(timeout=SECONDS)
    assert str(flow.why(0)) == f"epoch 0 of {flow.name!r} is complete"


def test_a_dataflow_hears_of_a_call_of_another_one_on_its_worker(installed: Installed) -> None:
    flow, slow = installed("holds"), installed("sleeps")
    fed(slow, 60)
    reports = [flow.why(0)]
    while not slow.why(0).is_complete:
        reports.append(flow.why(0))
    calls = [one for report in reports for one in report.reasons if one.kind == "call"]
    assert calls and {(one.dataflow, one.stage) for one in calls} == {(slow.name, "slow")}


def test_a_capability_that_nobody_drops(cluster: timely.Cluster, installed: Installed) -> None:
    flow = fed(installed("holds"), *range(cluster.workers))
    reason = cause(flow, 0, "capability")
    assert (reason.stage, reason.time) == ("holder", (0,))
    assert (reason.where, reason.site) == (line_of("# held here"), line_of("# holder is built"))
    with pytest.raises(timely.WaitTimeoutError) as late:
        flow.wait(timeout=0.01)
    assert line_of("# held here") in late.value.__notes__[-1], "the error ends with it"
    with pytest.raises(timely.WaitTimeoutError) as at_once:
        flow.wait(timeout=0)
    assert at_once.value.__notes__[-1] == "flow.why(0) says what holds it", (
        "who only looks does not wait for it"
    )


def test_a_notification_behind_a_capability(installed: Installed) -> None:
    flow = installed("wants_notification")
    flow.input("others").insert([0])
    fed(flow, 0)
    assert cause(flow, 0, "capability").stage == "holder"
    (asked,) = [reason for reason in flow.why(0).reasons if reason.kind == "notification"]
    assert asked.stage == "asks" and not asked.is_first, "it waits for the capability"


def test_a_notification_far_ahead_waits_for_the_input(installed: Installed) -> None:
    flow = fed(installed("asks_far_ahead"), 0)
    flow.wait(timeout=SECONDS)
    assert cause(flow, 1_000_000, "input").time == (1,)
    (asked,) = [reason for reason in flow.why(1_000_000).reasons if reason.kind == "notification"]
    assert (asked.stage, asked.time, asked.is_first) == ("far", (1_000_000,), False)
    assert asked.site == line_of("# far is built")


def test_records_that_go_round_without_end(installed: Installed) -> None:
    flow = fed(installed("round_and_round"), 0)
    seen: set[int] = set()
    until = time.monotonic() + SECONDS
    while len(seen) < 3:
        assert time.monotonic() < until, "its iterations grow"
        going = [one for one in flow.why(0).reasons if one.kind in ("rows", "message") and len(one.time) == 2]
        assert all(one.stage == "spins" or one.time[0] == 0 for one in going)
        seen |= {one.time[1] for one in going}


def test_a_compiled_loop_that_takes_long(installed: Installed) -> None:
    flow = fed(installed("long_loop"), (3_000_000,), name="rows")
    reason = cause(flow, 0, "loop")
    assert reason.stage == "iterate" and reason.time == (0,)
    until = time.monotonic() + SECONDS
    while "has come to iteration" not in cause(flow, 0, "loop").detail:
        assert time.monotonic() < until
    assert reason.site.startswith(stuck_flows.__file__)


def test_an_import_whose_dataflow_is_behind(cluster: timely.Cluster, installed: Installed) -> None:
    owner = installed("long_loop")
    flow = installed("reads", owner=owner.index)
    opened = cause(flow, 0, "input")
    (imported,) = [reason for reason in flow.why(0).reasons if reason.kind == "import"]
    assert (opened.dataflow, opened.stage, opened.time) == (owner.name, "rows", (0,))
    assert imported.stage == f"'rows' of dataflow {owner.index} ({owner.name})"
    assert imported.workers == tuple(range(cluster.workers))
    owner.seal()
    flow.wait(0, timeout=SECONDS)
    assert flow.why(0).is_complete


def test_a_worker_that_is_stopped(cluster: timely.Cluster, installed: Installed) -> None:
    flow = fed(installed("holds"), 0)
    flow.refresh()
    stopped = int(str(cluster.stats()[-1]["process"]))
    os.kill(stopped, signal.SIGSTOP)
    try:
        report = flow.why(0)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert report.cause is not None
    assert (report.cause.kind, report.cause.workers) == ("silent", (cluster.workers - 1,))
    assert f"is stopped: `kill -CONT {stopped}` lets its process go on" in str(report)
    assert cause(flow, 0, "capability").stage == "holder", "it is back"


def test_a_probe_tells_how_far_one_stream_is(installed: Installed) -> None:
    flow = installed("probed")
    probe = flow.probe("words")
    assert probe.less_than(1) and not probe.less_than(0)
    with pytest.raises(timely.WaitTimeoutError, match=r"not past \(0,\) on worker \d after 0\.02 s") as late:
        probe.wait(0, timeout=0.02)
    assert "input 'words'" in late.value.__notes__[-1] and "is open at epoch 0" in late.value.__notes__[-1]
    flow.input("words").insert(["a"])
    flow.seal()
    probe.wait(0, timeout=SECONDS)
    assert not probe.less_than(1) and probe.less_than(2)


def test_a_shell_hears_the_same(cluster: timely.Cluster, installed: Installed) -> None:
    held, slow = fed(installed("holds"), 0), fed(installed("sleeps"), 150)
    cause(slow, 0, "call")
    told = "\n".join(run_command([cluster.addresses[0]]))
    assert f"epoch 0 of {held.name!r} is not complete" in told
    assert f"of 'slow' in {slow.name!r}" in told and line_of("# asleep") in told
    slow.wait(timeout=SECONDS)
    (one,) = run_command([cluster.addresses[-1], "holds", "7"])
    assert one.splitlines()[1].startswith("  input 'records'") and "epoch 7" in one
    assert "\n".join(run_command([cluster.addresses[0], str(slow.index)])).endswith("is complete")
    with pytest.raises(timely.MisuseError, match="no dataflows are called 'shop': there are"):
        list(run_command([cluster.addresses[0], "shop"]))
