"""`Flow.why` of workers in this process. All ways not to go on: `tests/processes/clients/test_stuck.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import stuck_flows

import timely


@pytest.fixture(params=[1, 2], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True) as made:
        yield made


def test_asked_is_the_last_sealed_epoch_if_none_is_named(cluster: timely.Cluster) -> None:
    flow = cluster.install(stuck_flows.holds)
    assert flow.why().epoch == 0, "none is sealed"
    flow.input("records").insert([0])
    flow.seal(through=4)
    assert flow.why().epoch == 4


def test_asking_does_no_work(cluster: timely.Cluster) -> None:
    flow = cluster.install(stuck_flows.sleeps)
    flow.input("records").insert([0])
    flow.seal()
    assert {reason.kind for reason in flow.why().reasons} >= {"pending", "entering"}
    assert not flow.why().is_complete
    flow.wait()
    assert flow.why().is_complete and flow.why().complete_before == 1


def test_an_epoch_is_a_number_and_an_ended_dataflow_has_no_reasons(cluster: timely.Cluster) -> None:
    flow = cluster.install(stuck_flows.holds)
    with pytest.raises(timely.MisuseError, match=r"why\(epoch\) takes the number of an epoch, not 'last'"):
        flow.why("last")  # type: ignore[arg-type]  # users may write anything
    flow.uninstall()
    with pytest.raises(timely.UninstalledError):
        flow.why(0)


SECONDS = 10.0
WAYS: list[dict[str, bool | int]] = [
    {"embedded": True},
    {"embedded": True, "workers": 2},
    {"threads": True, "workers": 2},
]


@pytest.fixture(
    params=[{"embedded": True}, {"workers": 2, "embedded": True}, {"workers": 2, "threads": True}]
)
def any_cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(**request.param) as made:
        yield made


def test_asked_is_answered_in_the_middle_of_a_call_of_another_thread(any_cluster: timely.Cluster) -> None:
    flow = any_cluster.install(stuck_flows.sleeps)
    flow.input("records").insert([60])
    flow.seal()
    works = threading.Thread(target=flow.wait)
    works.start()
    try:
        while flow.why().reasons[0].kind != "call":
            assert works.is_alive()
        report = flow.why()
        assert report.cause is not None
        assert report.cause.where == stuck_flows.line_of("# asleep")
        assert report.cause.site == stuck_flows.line_of("# slow is built")
        assert 0.0 < report.cause.seconds < SECONDS
    finally:
        works.join()
    assert flow.why().is_complete
