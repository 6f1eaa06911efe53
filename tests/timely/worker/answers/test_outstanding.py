"""A client that waits in vain learns which stage keeps the epoch from being complete."""

from __future__ import annotations

import pytest

import timely


class HoldsForEverVertex(timely.Vertex):
    """Holds the time of each record, and never releases it."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.hold_word(self.code.pack(time))
        self.send_by(0, message, time)


def holding(dataflow: timely.Dataflow) -> None:
    """One record, one hold."""
    numbers = dataflow.input("numbers")
    dataflow.output("out", numbers.stage("keeper", HoldsForEverVertex, exchange=timely.by()))


@pytest.mark.parametrize("workers", [1, 2])
def test_outstanding_is_the_stage_that_forgot_to_release_a_time(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(holding)
        flow.seal(through=6)
        flow.input("numbers").insert([7])
        flow.seal()
        held = r"; outstanding: 'keeper' \(stage 1\) at \(7,\), which it holds or waits to be notified of"
        with pytest.raises(timely.WaitTimeoutError, match=f"complete are the epochs before 7{held}"):
            flow.wait(7, timeout=0.2)
        flow.input("numbers").close()
        with pytest.raises(timely.WaitTimeoutError, match=f"not finished .* before 7{held}"):
            flow.finish(timeout=0.2)


def round_and_round(dataflow: timely.Dataflow) -> None:
    """A loop that never comes to rest."""
    numbers = dataflow.input("numbers")
    with dataflow.loop("round") as loop:
        back = loop.feedback()
        (onward,) = dataflow.stage("on", OnwardVertex, [loop.enter(numbers).feed(), back.stream.feed()])
        back.connect(onward)
    dataflow.output("out", loop.leave(onward))


class OnwardVertex(timely.Vertex):
    """Sends on what comes in."""

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.send_by(0, message, time)


def test_outstanding_shows_how_far_a_loop_has_gone_that_never_ends() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(round_and_round)
        flow.input("numbers").insert([1])
        flow.seal()
        with pytest.raises(
            timely.WaitTimeoutError, match=r"messages of 'on' output 0 → 'on' input 0 .* at \(0, \d+\)"
        ):
            flow.wait(timeout=0.2)
        flow.uninstall()


def test_outstanding_is_not_said_of_an_epoch_that_is_not_sealed() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(holding)
        with pytest.raises(timely.WaitTimeoutError, match="it is not sealed yet") as caught:
            flow.wait(0, timeout=0.2)
        assert "outstanding" not in str(caught.value)
