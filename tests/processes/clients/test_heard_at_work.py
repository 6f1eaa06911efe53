"""Clients are heard while a worker never runs out of work. Of workers in the caller's process:
`tests/timely/client/embedded/test_concerned.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import timely

SOON = 60.0
"""For ever, to whoever waits for what takes a moment."""


@pytest.fixture(scope="module", params=[1, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    """Workers that have something to do in each step. One alone has no others to wait for in between."""
    with timely.connect(workers=request.param) as made:
        spins = made.install("failing_flows:spins")
        spins.input("records").insert(["round", "and round"])
        spins.seal()
        yield made
        assert turns(made) > 0
        spins.uninstall()


def turns(cluster: timely.Cluster) -> int:
    """How often it went round, by what all workers say."""
    return sum(
        stage["activations"]
        for worker in cluster.stats()
        for dataflow in worker["dataflows"].values()  # type: ignore[attr-defined]  # plain values
        for stage in dataflow["stages"]
        if stage["name"] == "spins"
    )


def test_what_is_asked_is_answered_and_it_goes_on_between_any_two_answers(cluster: timely.Cluster) -> None:
    seen = [turns(cluster) for _ in range(5)]
    assert seen == sorted(set(seen)), "it was at work each time"


def test_another_dataflow_is_installed_fed_waited_for_read_and_uninstalled(cluster: timely.Cluster) -> None:
    before = turns(cluster)
    flow = cluster.install("dataflows:word_count")
    for epoch in range(3):
        flow.input("lines").insert(["a b a"])
        assert flow.wait(flow.seal(), timeout=SOON) == epoch
        assert (epoch, ("b", epoch + 1)) in flow.output("counts").changes(timeout=SOON)
    flow.uninstall()
    assert flow.index not in cluster.flows()
    assert turns(cluster) > before


def test_a_client_that_comes_meanwhile_is_let_in_and_heard(cluster: timely.Cluster) -> None:
    for address in cluster.addresses:
        with timely.connect(address) as other:
            assert other.flows() == cluster.flows()
            flow = other.flow(0)
            flow.refresh()
            flow.input("others").insert([flow.epoch])
            sealed = flow.seal()
            assert (sealed, sealed) in flow.output("beside").changes(timeout=SOON)


def test_who_gives_a_time_is_told_when_it_is_over(cluster: timely.Cluster) -> None:
    before = turns(cluster)
    with pytest.raises(timely.WaitTimeoutError, match="not complete"):
        cluster.flow(0).wait(0, timeout=0.05)
    assert turns(cluster) > before
