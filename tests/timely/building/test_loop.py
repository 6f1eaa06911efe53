"""Loops: what may enter and leave, and that each goes round.

refusing_*   wrong streams, a feedback that nothing is connected to, a cycle that does not advance
times_*      what ingress, feedback and egress do to times, as running vertices see it
order_*      what a lexicographic loop in a loop grants and guards: Naiad's order of loops
"""

from __future__ import annotations

import random
from functools import partial

import pytest
from random_dataflows import finish
from reference.monitor import Monitor

from progress.errors import TimeRegressionError
from progress.times.timestamp import Timestamp
from timely import Dataflow, GraphError, Vertex
from timely.building.exchange import RecordRoute
from timely.building.loop import LoopOrder
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


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


@pytest.mark.parametrize("order", ["prioritised", "Product", None, 1])
def test_refusing_orders_that_there_are_not(order: LoopOrder) -> None:
    told = rf"'l' \(.*test_loop.py:\d+\) has the order {order!r}: write order='product'.*'lexicographic'"
    with pytest.raises(GraphError, match=told):
        Dataflow().loop("l", order=order)
    with pytest.raises(GraphError, match=told):
        Dataflow().loop("outer").loop("l", order=order)


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


class LapsVertex(Vertex):
    """n goes n times round the inner loop. Asks, when it comes in, to be told of the next outer iteration."""

    def __init__(self, seen: list[tuple[str, Timestamp]]) -> None:
        self.seen = seen

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.seen.append(("message", time))
        if time[2] == 0:
            self.notify_at((time[0], time[1] + 1, 0))
        self.send_by(0, [int(str(n)) - 1 for n in message if n], time)

    def on_notify(self, time: Timestamp) -> None:
        self.seen.append(("notification", time))


def seen_of(order: LoopOrder, workers: int, seed: int) -> list[list[tuple[str, Timestamp]]]:
    """What each worker's vertex has seen of two loops, the inner one of this order, with messages delayed."""
    network = MemoryNetwork(workers, seed)
    group = [
        Worker(index, workers, network.transport(index) if workers > 1 else None) for index in range(workers)
    ]
    Monitor(group, network)
    seen: list[list[tuple[str, Timestamp]]] = []
    for worker in group:
        mine: list[tuple[str, Timestamp]] = []
        dataflow = Dataflow()
        route = RecordRoute(lambda n: int(str(n)))
        with dataflow.loop("outer") as outer, outer.loop("inner", order=order) as inner:
            further = inner.feedback()
            entering = inner.enter(outer.enter(dataflow.input("laps")))
            feeds = [entering.feed(route=route), further.stream.feed(route=route)]
            (left,) = dataflow.stage("laps", partial(LapsVertex, mine), feeds)
            further.connect(left)
        laps = worker.install(dataflow.freeze()).input("laps")
        laps.send([4] if worker.index == 0 else [])
        laps.close()
        seen.append(mine)
    finish(group, random.Random(seed))
    assert sum(what == "message" for mine in seen for what, _ in mine) == 5
    return seen


def comes_after_all_of_the_inner_loop(seen: list[tuple[str, Timestamp]]) -> bool:
    return all(what == "message" for what, _ in seen[:-1])


@pytest.mark.parametrize("workers", [1, 2])
def test_order_lexicographic_notifies_of_an_outer_iteration_after_the_whole_inner_loop(workers: int) -> None:
    for seed in range(20):
        for seen in seen_of("lexicographic", workers, seed):
            assert comes_after_all_of_the_inner_loop(seen), seed
        assert seen_of("lexicographic", workers, seed)[0][-1] == ("notification", (0, 1, 0))


def test_order_product_does_not_wait_for_the_inner_loop() -> None:
    """Unless something leads from there to the next outer iteration: here nothing does."""
    both = [seen for seed in range(20) for seen in seen_of("product", 2, seed)]
    assert not all(comes_after_all_of_the_inner_loop(seen) for seen in both)


class JumpsVertex(Vertex):
    """Goes from the inner loop straight to the next outer iteration, as long as there is something left."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        epoch, outer, inner = time
        left = [int(str(n)) - 1 for n in message]
        if inner == 2:
            self.send_by(0, [n for n in left if n], (epoch, outer + 1, 0))
        else:
            self.send_by(0, [n for n in left if n], time)
        self.send_by(1, [list(time) for n in left if not n], time)


def jump(order: LoopOrder) -> list[tuple[int, object]]:
    dataflow = Dataflow()
    with dataflow.loop("outer") as outer:
        with outer.loop("inner", order=order) as inner:
            further = inner.feedback()
            feeds = [inner.enter(outer.enter(dataflow.input("numbers"))).feed(), further.stream.feed()]
            less, ended = dataflow.stage("jumps", JumpsVertex, feeds, outputs=2)
            further.connect(less)
        left = outer.leave(inner.leave(ended))
    dataflow.output("ended", left)
    return run(dataflow, "ended", [[5, 7]])


def test_order_lexicographic_lets_a_callback_go_on_in_the_next_outer_iteration() -> None:
    assert jump("lexicographic") == [(0, (0, 1, 2)), (0, (0, 2, 2))]
    with pytest.raises(TimeRegressionError, match=r"sent at \(0, 1, 0\), but .* at or after \(0, 0, 2\)"):
        jump("product")
