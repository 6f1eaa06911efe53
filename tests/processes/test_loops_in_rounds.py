"""Loops that two workers run together, messages from ring to ring: what comes out, and if one is gone."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_bodies import BODIES
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row
from strategies_collections import NUMBERS, examples

import differential as dd
import timely
from bench.dataflow.bfs import build
from timely.wire.transport.ring import IS_POSSIBLE

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings")

INPUTS = ("first", "second")
Changes = list[tuple[int, Row, int]]
"""Input, row, difference."""

_SMALL = st.integers(0, 4)
_CHANGES = st.lists(
    st.tuples(st.integers(0, 1), st.tuples(_SMALL, _SMALL), st.sampled_from([1, 1, 1, 2, -1])), max_size=8
)


@pytest.fixture(scope="module", params=[False, True], ids=["processes", "threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, threads=request.param) as made:
        yield made


def _rows(flow: timely.Flow) -> Rows:
    table = flow.output("result").snapshot()
    columns = [column.to_pylist() for column in table.columns]
    return Rows(Counter(zip(*columns, strict=True)))


@pytest.mark.parametrize("name", BODIES)
def test_same_as_is_meant_whatever_else_the_two_have_to_do(name: str, cluster: timely.Cluster) -> None:
    """Several epochs are under way at once, a client asks in between, and so does another loop."""
    body, plain = BODIES[name]

    def flow(flow: timely.Dataflow) -> None:
        first, second = (dd.input(flow, name, NUMBERS) for name in INPUTS)
        body(first, second).output("result")

    @examples(0.2)
    @given(st.lists(st.tuples(_CHANGES, st.booleans()), min_size=1, max_size=6))
    def holds(script: list[tuple[Changes, bool]]) -> None:
        both = [cluster.install(flow) for _ in range(2)]
        given_rows = (Rows(), Rows())
        for changes, is_looked_at in script:
            for which, row, diff in changes:
                given_rows[which][row] += diff
                for one in both:
                    handle = one.input(INPUTS[which])
                    handle.insert([row] * diff) if diff > 0 else handle.remove([row])
            for one in both:
                one.seal()
            if is_looked_at:
                cluster.stats()
                meant = plain(*(plainly.collection(rows) for rows in given_rows))
                assert [_rows(one) for one in both] == [meant] * 2
        meant = plain(*(plainly.collection(rows) for rows in given_rows))
        assert [_rows(one) for one in both] == [meant] * 2
        for one in both:
            one.uninstall()

    holds()


def _path(flow: timely.Flow, length: int) -> None:
    flow.input("roots").insert([(0,)])
    flow.input("edges").insert([(node, node + 1) for node in range(length)])
    flow.seal()


def test_a_long_way_is_gone_in_few_steps(cluster: timely.Cluster) -> None:
    """Of a step of Python for each iteration there would be as many."""
    flow = cluster.install(build)
    length = 3_000
    _path(flow, length)
    flow.wait(flow.epoch - 1)
    before = cluster.stats()
    flow.input("edges").remove([(0, 1)])
    flow.input("edges").insert([(0, 2)])
    flow.wait(flow.seal())
    for then, now in zip(before, cluster.stats(), strict=True):
        sent, received, steps = (
            int(str(now[what])) - int(str(then[what])) for what in ("messages_sent", "messages_recv", "steps")
        )
        assert sent >= length and received >= length, "what a kernel sends and takes up is counted"
        assert steps < sent
    assert flow.output("distances").snapshot().num_rows == length
    flow.uninstall()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_who_is_gone_in_the_middle_of_a_stretch_is_missed(how: signal.Signals) -> None:
    """The other one waits no longer for its messages than for any message."""
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(build)
        _path(flow, 20_000)
        victim = int(str(cluster.stats()[1]["process"]))
        flow.input("edges").insert([(1_000_000 + node, 1_000_001 + node) for node in range(1)])
        sealed = flow.seal()
        os.kill(victim, how)
        if how is signal.SIGSTOP:
            with pytest.raises(timely.WaitTimeoutError):
                flow.wait(sealed, timeout=1.0)
            os.kill(victim, signal.SIGCONT)
            flow.wait(sealed)
            assert flow.output("distances").snapshot().num_rows == 20_001
        else:
            with pytest.raises(timely.PeerError, match="was killed by SIGKILL"):
                flow.wait(sealed)
