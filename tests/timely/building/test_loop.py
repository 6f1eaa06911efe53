"""Loops: what may enter and leave, and that each goes round.

refusing_*   wrong streams, a feedback that nothing is connected to, a cycle that does not advance
times_*      what ingress, feedback and egress do to times, as running vertices see it
"""

from __future__ import annotations

import pytest

from progress.times.timestamp import Timestamp
from timely import Dataflow, GraphError, Vertex
from timely.running.core import Worker


def test_refusing_streams_that_do_not_belong() -> None:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    outer = dataflow.loop("outer")
    inner = outer.loop("inner")
    with pytest.raises(GraphError, match="can be entered from the scope around it, not from 'flow'"):
        inner.enter(numbers)
    with pytest.raises(GraphError, match="can only be left by its own streams"):
        outer.leave(numbers)
    with pytest.raises(GraphError, match="feedback of 'flow / outer' got a stream of 'flow'"):
        outer.feedback().connect(numbers)


def test_refusing_a_feedback_that_nothing_is_connected_to() -> None:
    dataflow = Dataflow("flow")
    lonely = pytest.raises(GraphError, match="'flow / outer' has a feedback that nothing is connected to")
    with lonely, dataflow.loop("outer") as outer:
        outer.feedback()


def test_refusing_hides_no_error_of_the_body() -> None:
    with pytest.raises(ZeroDivisionError), Dataflow().loop("outer") as outer:
        outer.feedback()
        1 / 0  # noqa: B018


def test_refusing_a_loop_of_nothing_but_feedback() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with dataflow.loop("empty") as loop:
        back = loop.feedback()
        back.connect(back.stream)
    dataflow.output("out", numbers)
    dataflow.output("nothing", loop.leave(back.stream))
    with pytest.raises(GraphError, match="contains no stage that does anything"):
        dataflow.freeze()


class CountDownVertex(Vertex):
    """Output 0: n - 1 for n > 0, output 1: (time, where it ended)."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [int(str(n)) - 1 for n in message if n != 0], time)
        self.send_by(1, [list(time) for n in message if n == 0], time)


def run(dataflow: Dataflow, name: str, epochs: list[list[object]]) -> list[tuple[int, object]]:
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for records in epochs:
        instance.input("numbers").send(records)
        instance.input("numbers").seal()
        worker.run_until_idle()
    instance.input("numbers").close()
    worker.run_until_idle()
    assert instance.is_complete()
    from timely.client.tables import records_of

    return records_of(instance.output(name).log.changes(0, len(epochs)))


def test_times_count_iterations_and_forget_them_when_they_leave() -> None:
    dataflow = Dataflow()
    with dataflow.loop("down") as loop:
        back = loop.feedback()
        feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        less, ended = dataflow.stage("count down", CountDownVertex, feeds, outputs=2)
        back.connect(less)
    dataflow.output("ended", loop.leave(ended))
    assert run(dataflow, "ended", [[3, 0], [5]]) == [(0, (0, 0)), (0, (0, 3)), (1, (1, 5))]


@pytest.mark.parametrize("order", ["product", "lexicographic"])
def test_times_of_nested_loops_have_a_counter_each(order: str) -> None:
    dataflow = Dataflow()
    with dataflow.loop("outer") as outer:
        with outer.loop("inner", order="lexicographic" if order == "lexicographic" else "product") as inner:
            back = inner.feedback()
            feeds = [inner.enter(outer.enter(dataflow.input("numbers"))).feed(), back.stream.feed()]
            less, ended = dataflow.stage("count down", CountDownVertex, feeds, outputs=2)
            back.connect(less)
        left = outer.leave(inner.leave(ended))
    dataflow.output("ended", left)
    assert run(dataflow, "ended", [[2]]) == [(0, (0, 0, 2))]


def test_times_that_outgrow_their_counter_are_an_error_that_names_the_limit() -> None:
    dataflow = Dataflow(level_bits=(8, 3))
    with dataflow.loop("down") as loop:
        back = loop.feedback()
        feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        less, ended = dataflow.stage("count down", CountDownVertex, feeds, outputs=2)
        back.connect(less)
    dataflow.output("ended", loop.leave(ended))
    from timely import MisuseError

    with pytest.raises(MisuseError, match="past its limit of 6 iterations"):
        run(dataflow, "ended", [[8]])
