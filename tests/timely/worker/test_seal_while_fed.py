"""A new version of a dataflow has the inputs already, and is still fed with what the old one has of the
epochs before: who seals then, or closes the input, with nothing inserted, must not let its input overtake the
feed.
"""

from __future__ import annotations

import random

import pytest
from delayed_cluster import DelayedCluster, answers_to
from exporting_flows import sums

from timely.operators.capture import FOREVER
from timely.running import core
from timely.wire.requests import Decide, Read, Replace, Reply


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("query", ["as it is", "counted"])
@pytest.mark.parametrize("closes", [False, True])
def test_an_epoch_that_is_sealed_without_rows_waits_for_the_feed(
    query: str, checks: bool, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = 0
    for case in range(40):
        rng = random.Random(case)
        with monkeypatch.context() as patch:
            cluster = DelayedCluster(rng, 1, checks=checks)
            cluster.owner = cluster.install("exporting_flows:owner")
            for _ in range(2):
                cluster.change()
                cluster.seal()
            cluster.settle()
            patch.setattr(core, "ACTIVATIONS_PER_STEP_MAX", 1)  # as of turns that take long
            cluster.ask(Replace(0, "exporting_flows:owner", {"query": query}, -1.0))
            replacements = cluster.servers[0].replacements
            for _ in range(100):
                if replacements.is_switched(1):
                    break
                if rng.random() < 0.3:
                    cluster.change()
                    cluster.seal()
                cluster.step()
            feed = cluster.workers[0].instances[1].feeds.get("edges")
            if not replacements.is_switched(1) or feed is None or feed.is_through(cluster.epoch):
                continue
            met += 1
            if closes:
                cluster.ask(Decide(0, -1, close=["edges"]))
            else:
                cluster.seal()  # nothing was inserted
        cluster.settle()
        complete = cluster.workers[0].instance(1).output("out").complete_before
        epoch = cluster.epoch + closes
        assert complete == (FOREVER if closes else epoch), f"case {case}: sealed is {epoch}, not {complete}"
        reply = cluster.ask(Read(0, "out", 0, epoch, 0.0))
        assert isinstance(reply, Reply)
        assert sums(reply.columns()) == answers_to(query, cluster.history, epoch)[-1], f"case {case}"
    assert met > 1, "a feed was still behind when the inputs had gone over"
