"""Loops: what may enter and leave, and that each goes round.

refusing_*   wrong streams, a feedback that nothing is connected to, a cycle that does not advance
times_*      what ingress, feedback and egress do to times, as running vertices see it
order_*      what a lexicographic loop in a loop grants and guards: Naiad's order of loops
"""

from __future__ import annotations

import random
from functools import partial
from typing import cast

import pytest
from random_dataflows import finish

from progress.errors import MisuseError, TimeRegressionError
from progress.times.timestamp import Timestamp
from timely import Dataflow, GraphError, Vertex, connect
from timely.building.exchange import RecordRoute
from timely.building.loop import LoopOrder
from timely.client.tables import records_of
from timely.running.checking.monitor import Monitor
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


@pytest.mark.parametrize("by", [0, -1, True, "2", 1.0])
def test_refusing_feedbacks_that_do_not_advance(by: int) -> None:
    with pytest.raises(
        MisuseError, match=rf"feedback\(by={by!r}\): `by` is a number of iterations from 1 on"
    ):
        Dataflow().loop("outer").feedback(by)


@pytest.mark.parametrize("at", [0, "x", None])
def test_refusing_what_is_no_counter(at: object) -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    loop = dataflow.loop("outer")
    if at is not None:
        with pytest.raises(
            MisuseError, match=r"enter\(stream, at=function\): `at` is a function of a record"
        ):
            loop.enter(numbers, at=at)  # type: ignore[arg-type]
        return
    dataflow.output("out", loop.leave(loop.enter(numbers, at=lambda n: -1)))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([7])
    instance.input("numbers").seal()
    with pytest.raises(MisuseError, match="the function returned -1 for 7; it returns the number of an iter"):
        worker.run_until_idle()


@pytest.mark.parametrize(
    ("by", "times", "left"), [(1, 4, [1, 2, 3]), (2, 4, [1]), (2, 5, [1, 2]), (1, 1, [])]
)
def test_records_that_go_on_no_further_do_not_leave_by_the_way_back(
    by: int, times: int, left: list[int]
) -> None:
    def going(dataflow: Dataflow) -> None:
        with dataflow.loop("loop", times=times) as loop:
            back = loop.feedback(by)
            back.connect(loop.enter(dataflow.input("numbers")).concat(back.stream).map(lambda n: n + 1))
        dataflow.output("out", loop.leave(back.stream))

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(going)
        flow.input("numbers").insert([0])
        flow.seal()
        assert sorted(flow.output("out").changes()) == [(0, n) for n in left]


@pytest.mark.parametrize("by", [1, 2, 5, 7])
def test_a_loop_without_end_is_told_so_whichever_iterations_it_skips(by: int) -> None:
    """A counter of four bits: the last iteration is number 14, and 14 + 7 does not fit."""
    dataflow = Dataflow(level_bits=(20, 4))
    with dataflow.loop("loop") as loop:
        back = loop.feedback(by)
        back.connect(loop.enter(dataflow.input("numbers")).concat(back.stream))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([1])
    instance.input("numbers").seal()
    with pytest.raises(MisuseError, match=r"went past its limit of 14 iterations"):
        worker.run_until_idle()


@pytest.mark.parametrize("times", [1, 4])
def test_refusing_to_enter_behind_the_last_iteration(times: int) -> None:
    def entering(dataflow: Dataflow) -> None:
        numbers = dataflow.input("numbers")
        with dataflow.loop("loop", times=times) as loop:
            dataflow.output("out", loop.leave(loop.enter(numbers, at=lambda n: n)))

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(entering)
        flow.input("numbers").insert([0, times - 1])
        flow.seal()
        assert sorted(flow.output("out").changes()) == sorted([(0, 0), (0, times - 1)])
        flow.input("numbers").insert([times])
        told = rf"returned {times} for {times}, but the last iteration of the loop is number {times - 1}: see"
        with pytest.raises(MisuseError, match=told):
            flow.seal(wait=True)


@pytest.mark.parametrize("by", [1, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_times_of_records_that_enter_later_and_go_round_by_several(by: int, workers: int) -> None:
    """Each goes round three times; rows of all iterations leave with their times."""

    class SeesVertex(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.send_by(0, [(n, left - 1) for n, left in message if left], time)  # type: ignore[misc]
            self.send_by(1, [(n, time[1]) for n, _ in message], time)  # type: ignore[misc]

    def going(dataflow: Dataflow) -> None:
        pairs = dataflow.input("numbers").map(lambda n: (n, 3))
        with dataflow.loop("loop") as loop:
            back = loop.feedback(by)
            feeds = [loop.enter(pairs, at=lambda pair: pair[0]).feed(), back.stream.feed()]
            round_, seen = dataflow.stage("sees", SeesVertex, feeds, outputs=2)
            back.connect(round_)
        dataflow.output("seen", loop.leave(seen))

    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(going)
        flow.input("numbers").insert([0, 2, 5])
        flow.seal()
        wanted = [(0, (n, n + by * times)) for n in (0, 2, 5) for times in range(4)]
        assert sorted(flow.output("seen").changes()) == sorted(wanted)


class RoundsVertex(Vertex):
    """Sends (n, left - 1) round while left is not 0, and of each record where it was: (n, time)."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        pairs = cast(list[tuple[int, int]], message)
        self.send_by(0, [(n, left - 1) for n, left in pairs if left], time)
        self.send_by(1, [(n, time) for n, _ in pairs], time)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("by", [1, 2])
def test_records_leave_at_one_iteration_alone(workers: int, by: int) -> None:
    """By way of the body, of the way back, and of the way in; each as a plain loop over all rounds has it."""

    def going(dataflow: Dataflow) -> None:
        pairs = dataflow.input("pairs")
        with dataflow.loop("loop") as loop:
            back, entered = loop.feedback(by), loop.enter(pairs)
            feeds = [stream.feed(exchange=lambda pair: pair[0]) for stream in (entered, back.stream)]
            round_, seen = dataflow.stage("rounds", RoundsVertex, feeds, outputs=2)
            back.connect(round_)
        for at in range(5):
            dataflow.output(f"body {at}", loop.leave(seen, at=at))
            dataflow.output(f"back {at}", loop.leave(back.stream, at=at))
            dataflow.output(f"in {at}", loop.leave(entered, at=at))

    rows = [(n, n) for n in range(4)]
    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(going)
        for _ in range(2):
            flow.input("pairs").insert(rows)
            flow.seal()
        for at in range(5):
            body = [
                (e, (n, (e, at))) for e in (0, 1) for n, left in rows if at % by == 0 and at // by <= left
            ]
            back = [(e, (n, left - at // by)) for e in (0, 1) for n, left in rows if at and at % by == 0]
            back = [(e, (n, left)) for e, (n, left) in back if left >= 0]
            assert sorted(flow.output(f"body {at}").changes()) == sorted(body), at
            assert sorted(flow.output(f"back {at}").changes()) == sorted(back), at
            entered = [(e, row) for e in (0, 1) for row in rows] if at == 0 else []
            assert sorted(flow.output(f"in {at}").changes()) == entered, at


def test_records_of_an_inner_loop_leave_the_outer_one_at_one_iteration() -> None:
    """The counter of the outer loop is not the last one of their times."""

    def going(dataflow: Dataflow) -> None:
        pairs = dataflow.input("pairs")
        with dataflow.loop("outer") as outer:
            out = outer.feedback()
            with outer.loop("inner") as inner:
                back = inner.feedback()
                entered = inner.enter(outer.enter(pairs).concat(out.stream))
                feeds = [entered.feed(), back.stream.feed()]
                round_, seen = dataflow.stage("rounds", RoundsVertex, feeds, outputs=2)
                back.connect(round_)
            left = inner.leave(seen)
            out.connect(left.filter(lambda pair: sum(pair[1]) == 1).map(lambda pair: (pair[0], 1)))
        dataflow.output("all", outer.leave(left))
        dataflow.output("at", outer.leave(left, at=1))
        dataflow.output("inner", outer.leave(inner.leave(seen, at=1), at=0))

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(going)
        flow.input("pairs").insert([(7, 2)])
        flow.seal()
        everything = flow.output("all").changes()
        assert len({time for _, (_, time) in everything}) > 4
        assert flow.output("at").changes() == [row for row in everything if row[1][1][1] == 1]
        assert flow.output("inner").changes() == [row for row in everything if row[1][1] == (0, 0, 1)]


def test_refusing_counters_at_which_nothing_leaves() -> None:
    dataflow = Dataflow()
    loop = dataflow.loop("loop", times=3)
    entered = loop.enter(dataflow.input("numbers"))
    for at in (-1, True, "1", lambda n: n):
        with pytest.raises(MisuseError, match=r"leave\(stream, at=.*\): `at` is the number of an iteration"):
            loop.leave(entered, at=at)  # type: ignore[arg-type]
    with pytest.raises(
        MisuseError, match=r"leave\(stream, at=3\): the last iteration of 'dataflow / loop' is n"
    ):
        loop.leave(entered, at=3)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_prioritised_loop_takes_all_of_a_priority_before_the_next(workers: int) -> None:
    """Records enter by priority, go round in it, and some go to a later one by themselves."""

    class PrioritiesVertex(Vertex):
        def __init__(self) -> None:
            self.over: list[Timestamp] = []

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            assert not any(time[1:] <= over[1:] for over in self.over if over[0] >= time[0])
            self.notify_at(time)
            epoch, priority, iteration = time
            for n in cast(list[int], message):
                self.send_by(1, [(n, priority, iteration)], time)
                if n % 2:
                    self.send_by(0, [n - 1], time)
                elif n:
                    self.send_by(0, [n - 2], (epoch, priority + 3, 0))

        def on_notify(self, time: Timestamp) -> None:
            self.over.append(time)

    def going(dataflow: Dataflow) -> None:
        numbers = dataflow.input("numbers")
        with dataflow.loop("loop", order="prioritised") as loop:
            back = loop.feedback()
            feeds = [loop.enter(numbers, at=lambda n: n % 3), back.stream]
            round_, seen = dataflow.stage(
                "p", PrioritiesVertex, [each.feed(exchange=abs) for each in feeds], outputs=2
            )
            back.connect(round_)
        dataflow.output("seen", loop.leave(seen))
        dataflow.output("at", loop.leave(seen, at=4))

    wanted, waiting = [], [(n, n % 3, 0) for n in range(6)]
    for n, priority, iteration in waiting:
        wanted.append((0, (n, priority, iteration)))
        if n % 2:
            waiting.append((n - 1, priority, iteration + 1))
        elif n:
            waiting.append((n - 2, priority + 3, 1))
    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(going)
        flow.input("numbers").insert(list(range(6)))
        flow.seal()
        assert sorted(flow.output("seen").changes()) == sorted(wanted)
        assert sorted(flow.output("at").changes()) == sorted(row for row in wanted if row[1][1] == 4)


@pytest.mark.parametrize("by", [1, 6])
def test_a_prioritised_loop_without_end_is_told_so(by: int) -> None:
    """Whatever priority records are at, and however many iterations they skip: no iteration runs into it."""
    dataflow = Dataflow(level_bits=(20, 8))
    with dataflow.loop("loop", order="prioritised") as loop:
        back = loop.feedback(by)
        back.connect(loop.enter(dataflow.input("numbers"), at=lambda n: n).concat(back.stream))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([5])
    instance.input("numbers").seal()
    with pytest.raises(MisuseError, match=r"went past its limit of 7 iterations"):
        worker.run_until_idle()


@pytest.mark.parametrize("order", ["prioritized", "Product", None, 1])
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


class Counted(Vertex):
    """Asks in the last inner iteration for the end of a time of the next outer one."""

    def __init__(self, heard: list[tuple[str, Timestamp]]) -> None:
        self.heard = heard

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        epoch, outer, inner = time
        self.heard.append(("rows", time))
        if inner == 6:
            self.notify_at((epoch, outer + 1, 2))
        self.send_by(min(outer, 1), message, time)

    def on_notify(self, time: Timestamp) -> None:
        self.heard.append(("over", time))


class Waits(Vertex):
    """Passes rows on, those of the last inner iteration at the next outer one, once all of them are here."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time[2] < 6:
            self.send_by(0, message, time)
        else:
            self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, ["late"], (time[0], time[1] + 1, 0))


def test_order_behind_the_last_iteration_of_an_inner_counter_the_next_outer_one_is_waited_for() -> None:
    heard: list[tuple[str, Timestamp]] = []
    dataflow = Dataflow("flow", level_bits=(8, 3, 3))
    with dataflow.loop("outer") as outer:
        entered = outer.enter(dataflow.input("rows"))
        with outer.loop("inner", order="lexicographic") as inner:
            again = inner.feedback(by=2)  # 6 is the last one: a counter of 3 bits holds no 8
            feeds = [inner.enter(entered).feed(), again.stream.feed()]
            goes_on, done = dataflow.stage("counted", lambda: Counted(heard), feeds, outputs=2)
            again.connect(goes_on.stage("waits", Waits))
            left = inner.leave(done)
    dataflow.output("out", outer.leave(left))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("rows").send([5])
    instance.input("rows").close()
    worker.run_until_idle()
    assert heard[-3:] == [("rows", (0, 0, 6)), ("rows", (0, 1, 2)), ("over", (0, 1, 2))]
    assert instance.is_complete()
