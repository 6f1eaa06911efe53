"""Capabilities: what a vertex holds stays open until it is dropped, wherever words count from.

held_*      a time that is held is not over, and may be sent at
moved_*     later times, and only these
lost_*      a capability that nobody refers to ends the dataflow, with its line
ahead_*     notifications that act at a later time
"""

from __future__ import annotations

import copy
import gc
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import timely
from progress.errors import MisuseError, TimeRegressionError
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely.building.dataflow import Dataflow
from timely.client.tables import records_of
from timely.operators.capability import Capability
from timely.operators.vertex import Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.thresholds import FEW_WORDS_MAX
from timely.wire.batch import Batch

Act = Callable[["Acts", Timestamp], object]


class Acts(Vertex):
    """Does what the test says, by epoch; keeps its capabilities in a list."""

    def __init__(self, acts: dict[int, Act]) -> None:
        self.acts = acts
        self.held: list[Capability] = []
        self.notified: list[Timestamp] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.acts.get(time[0], lambda vertex, time: None)(self, time)

    def on_notify(self, time: Timestamp) -> None:
        self.notified.append(time)
        self.send_by(0, [f"notified of {time}"], self.held[0].time if self.held else time)


def running(acts: dict[int, Act]) -> tuple[Worker, Instance, Acts]:
    vertex = Acts(acts)
    return *running_vertex(vertex), vertex


def running_vertex(vertex: Acts) -> tuple[Worker, Instance]:
    dataflow = Dataflow()
    dataflow.output("out", dataflow.input("numbers").stage("acts", lambda: vertex))
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def sent(instance: Instance) -> list[tuple[int, object]]:
    """What has come out, with its epoch."""
    return records_of(instance.output("out").log.changes(0, 10))


def feed(worker: Worker, instance: Instance, epochs: int) -> None:
    for number in range(epochs):
        instance.input("numbers").send([number])
        instance.input("numbers").seal()
    worker.run_until_idle()


def hold(vertex: Acts, time: Timestamp) -> None:
    vertex.held.append(vertex.hold(time))


def test_held_is_a_time_that_is_not_over_until_it_is_dropped() -> None:
    def send_and_drop(vertex: Acts, time: Timestamp) -> None:
        (held,) = vertex.held
        assert (held.time, held.is_held, repr(held)) == ((0,), True, "Capability((0,))")
        vertex.send_by(0, ["late"], held.time)
        held.drop()
        held.drop()
        assert not held.is_held and repr(held) == "Capability((0,), dropped)"

    worker, instance, _ = running({0: hold, 2: send_and_drop})
    feed(worker, instance, 2)
    assert instance.output("out").frontier(0) == [(0,)]
    instance.input("numbers").send([2])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert instance.output("out").frontier(0) == [(3,)]
    assert sent(instance) == [(0, "late")]


def test_held_within_a_with_block_is_dropped_behind_it() -> None:
    def act(vertex: Acts, time: Timestamp) -> None:
        with vertex.hold(time) as held:
            vertex.send_by(0, ["in the block"], held.time)

    worker, instance, _ = running({0: act})
    feed(worker, instance, 1)
    assert instance.output("out").frontier(0) == [(1,)]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda vertex, time: vertex.hold((0,)), r"asked to hold at \(0,\), but it may act only at or after"),
        (lambda vertex, time: vertex.hold(7), r"calls hold\(time\) with the time 7: a time is a tuple"),
        (lambda vertex, time: vertex.hold(()), r"calls hold\(time\) with the time \(\): a time is a tuple"),
        (
            lambda vertex, time: vertex.hold((1, 0)),
            r"with the time \(1, 0\): a time is a tuple of whole numb",
        ),
    ],
)
def test_held_may_be_only_what_the_vertex_has_a_right_to(act: Act, told: str) -> None:
    worker, instance, _ = running({1: act})
    with pytest.raises((MisuseError, TimeRegressionError), match=told):
        feed(worker, instance, 2)


def test_moved_to_a_later_time_it_holds_that_one_alone() -> None:
    def move(vertex: Acts, time: Timestamp) -> None:
        vertex.held.append(vertex.held[0].delay((4,)))
        vertex.held[0].downgrade((3,))

    worker, instance, vertex = running({0: hold, 1: move, 6: lambda vertex, time: vertex.held[0].drop()})
    feed(worker, instance, 6)
    assert instance.output("out").frontier(0) == [(3,)]
    instance.input("numbers").send([6])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert instance.output("out").frontier(0) == [(4,)] and vertex.held[1].is_held


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (
            lambda held: held.delay((0,)),
            r"delay\(\(0,\)\) of a capability at \(1,\), made at .*line.py:7: it",
        ),
        (lambda held: held.downgrade((0,)), r"downgrade\(\(0,\)\) of a capability at \(1,\), made at"),
        (lambda held: held.delay("x"), r"calls delay\(time\) with the time 'x': a time is a tuple of whole"),
        (lambda held: held.downgrade((1, 1)), r"calls downgrade\(time\) with the time \(1, 1\): a time is"),
        (lambda held: (held.drop(), held.delay((5,))), r"delay\(\(5,\)\) .* which was dropped: it gives no"),
        (lambda held: (held.drop(), held.downgrade((5,))), r"downgrade\(\(5,\)\) .* which was dropped"),
    ],
)
def test_moved_only_to_later_times_and_while_it_is_held(
    act: Callable[[Capability], object], told: str, tmp_path: Path
) -> None:
    names: dict[str, Callable[[Acts, Timestamp], None]] = {}
    line = tmp_path / "line.py"
    exec(compile("\n" * 5 + "def hold(v, t):\n    v.held.append(v.hold(t))\n", str(line), "exec"), names)

    def both(vertex: Acts, time: Timestamp) -> None:
        vertex.held.append(vertex.hold(time))
        names["hold"](vertex, time)
        act(vertex.held[-1])

    worker, instance, _ = running({0: hold, 1: both})
    with pytest.raises((MisuseError, TimeRegressionError), match=told):
        feed(worker, instance, 2)


def test_moved_after_an_error_it_holds_what_it_held() -> None:
    def act(vertex: Acts, time: Timestamp) -> None:
        (held,) = vertex.held
        for later in ((0, 0), (1 << 62,), "x"):
            with pytest.raises(timely.TimelyError):
                held.downgrade(later)  # type: ignore[arg-type]
        assert held.time == (0,)

    worker, instance, vertex = running({0: hold, 1: act, 2: lambda vertex, time: vertex.held[0].drop()})
    feed(worker, instance, 2)
    assert instance.output("out").frontier(0) == [(0,)]
    instance.input("numbers").send([2])
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert instance.output("out").frontier(0) == [(3,)]


def test_lost_in_the_call_it_ends_the_dataflow_with_its_line() -> None:
    worker, instance, _ = running({1: lambda vertex, time: vertex.hold(time)})
    told = r"has lost its capability at \(1,\), made at .*test_capability.py:\d+: nothing refers to it"
    with pytest.raises(MisuseError, match=told):
        feed(worker, instance, 2)


def test_lost_while_the_worker_rests_it_ends_the_dataflow() -> None:
    worker, instance, vertex = running({0: hold})
    feed(worker, instance, 1)
    knot: list[object] = [vertex.held.pop()]
    knot.append(knot)
    del knot
    worker.run_until_idle()
    gc.collect()
    with pytest.raises(MisuseError, match=r"has lost its capability at \(0,\)"):
        worker.run_until_idle()


def test_lost_is_nothing_that_went_with_its_dataflow() -> None:
    worker, instance, vertex = running({0: hold})
    feed(worker, instance, 1)
    worker.end(0, MisuseError("it ends"))
    vertex.held.clear()
    gc.collect()
    worker.run_until_idle()


def ahead_in_loops(dataflow: timely.Dataflow, next_of: dict[int, int]) -> None:
    """Three loops deep, where a word holds few epochs: the vertex holds the time of the record that comes
    next, which is days ahead.
    """

    class Keeper(timely.Vertex):
        def __init__(self) -> None:
            self.kept: Capability | None = None

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            with self.hold(time) as now:
                if self.kept is not None:
                    assert self.kept.time == time
                    self.send_by(0, [(*message, self.kept.time)], self.kept.time)
                    self.kept.drop()
                self.kept = now.delay((next_of[time[0]], 0, 0, 0))

    stream = dataflow.input("records")
    with dataflow.loop() as one, one.loop() as two, two.loop() as three:
        entered = three.enter(two.enter(one.enter(stream)))
        left = one.leave(two.leave(three.leave(entered.stage("keeps", Keeper))))
    dataflow.output("out", left)


@pytest.mark.parametrize("workers", [1, 2])
def test_held_for_a_year_of_milliseconds_three_loops_deep(workers: int, seed: int) -> None:
    chance = random.Random(seed)
    epochs = sorted(chance.sample(range(365 * 86_400_000), 12))
    next_of = dict(zip(epochs, [*epochs[1:], 366 * 86_400_000], strict=True))
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: ahead_in_loops(dataflow, next_of))
        for epoch in epochs:
            flow.seal(through=epoch - 1)
            flow.input("records").insert([epoch])
            flow.seal()
        flow.seal(through=next_of[epochs[-1]] - 1)
        assert list(flow.output("out").changes()) == [(e, (e, (e, 0, 0, 0))) for e in epochs[1:]]
        flow.seal()
        with pytest.raises(timely.WaitTimeoutError, match=r"'keeps' \(stage 1\) at \(31622400000, 0, 0, 0\)"):
            flow.wait(next_of[epochs[-1]], timeout=0.01)


def ask(vertex: Acts, time: Timestamp) -> None:
    vertex.notify_at(time, at=(time[0] + 2,))


def test_ahead_times_before_the_one_at_which_it_acts_do_not_wait_for_it() -> None:
    class Silent(Acts):
        def on_notify(self, time: Timestamp) -> None:
            self.notified.append(time)

    vertex = Silent({0: lambda vertex, time: vertex.notify_at((3,), at=(5,))})
    worker, instance = running_vertex(vertex)
    feed(worker, instance, 3)
    assert instance.output("out").frontier(0) == [(3,)] and vertex.notified == []
    feed(worker, instance, 1)
    assert vertex.notified == [(3,)] and instance.output("out").frontier(0) == [(4,)]


def test_ahead_the_notification_may_act_at_that_time_only() -> None:
    worker, instance, vertex = running({0: ask})
    with pytest.raises(TimeRegressionError, match=r"sent at \(0,\), but it may act only at or after \(2,\)"):
        feed(worker, instance, 1)


def test_ahead_its_time_stays_open_until_then_and_no_longer() -> None:
    class Later(Acts):
        def on_notify(self, time: Timestamp) -> None:
            self.notified.append(time)
            self.send_by(0, ["later"], (time[0] + 2,))

    vertex = Later({0: ask})
    dataflow = Dataflow()
    numbers, others = dataflow.input("numbers"), dataflow.input("others")
    (out,) = dataflow.stage("acts", lambda: vertex, [numbers.feed(0), others.feed(1)])
    dataflow.output("out", out)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([0])
    for _ in range(6):
        instance.input("numbers").seal()
    worker.run_until_idle()
    assert vertex.notified == [] and instance.output("out").frontier(0) == [(0,)]
    instance.input("others").seal()
    worker.run_until_idle()
    assert vertex.notified == [(0,)]
    assert instance.output("out").frontier(0) == [(1,)]
    for _ in range(2):
        instance.input("others").seal()
    worker.run_until_idle()
    assert sent(instance) == [(2, "later")]


@pytest.mark.parametrize("first", ["at", "plain", "at twice"])
def test_ahead_asking_in_both_ways_gives_one_call_with_the_earlier_right(first: str) -> None:
    def act(vertex: Acts, time: Timestamp) -> None:
        for way in {"at": ["at", "plain"], "plain": ["plain", "at"], "at twice": ["at", "at"]}[first]:
            vertex.notify_at(time, at=None if way == "plain" else (time[0] + 2,))

    class Asks(Acts):
        def on_notify(self, time: Timestamp) -> None:
            self.notified.append(time)
            self.send_by(0, ["notified"], time if first != "at twice" else (time[0] + 2,))

    vertex = Asks({0: act})
    worker, instance = running_vertex(vertex)
    feed(worker, instance, 4)
    assert vertex.notified == [(0,)]
    assert instance.output("out").frontier(0) == [(4,)], "nothing is held any more"
    assert sent(instance) == [(0 if first != "at twice" else 2, "notified")]


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ((0,), r"calls notify_at\(\(1,\), at=\(0,\)\): `at` is the same time or a later one"),
        ("x", r"calls notify_at\(time, at=later\) with the time 'x': a time is a tuple"),
    ],
)
def test_ahead_is_the_same_time_or_a_later_one(at: Timestamp, told: str) -> None:
    worker, instance, _ = running({1: lambda vertex, time: vertex.notify_at(time, at=at)})
    with pytest.raises(MisuseError, match=told):
        feed(worker, instance, 2)


def test_ahead_of_a_time_that_is_over_for_the_vertex_it_has_no_right() -> None:
    worker, instance, _ = running({1: lambda vertex, time: vertex.notify_at((0,), at=(5,))})
    with pytest.raises(TimeRegressionError, match=r"asked for notification at \(0,\), but it may act only"):
        feed(worker, instance, 2)


def test_ahead_of_many_times_each_notification_has_its_own_rights_only() -> None:
    class Early(Acts):
        def on_notify(self, time: Timestamp) -> None:
            self.send_by(0, ["sent"], (5_000,))
            if time == (1,):
                self.send_by(0, ["by the right of the one before"], (100,))

    def act(vertex: Acts, time: Timestamp) -> None:
        for later in range(100, 100 + 3 * FEW_WORDS_MAX):
            vertex.notify_at(time, at=(time[0] + later,))

    worker, instance = running_vertex(Early({0: act, 1: act}))
    told = r"sent at \(100,\), but it may act only at or after \(101,\) or \(102,\)"
    with pytest.raises(TimeRegressionError, match=told):
        feed(worker, instance, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_ahead_for_a_year_of_milliseconds(workers: int, seed: int) -> None:
    """Times that wait move with the words of others."""

    class Waits(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.notify_at((time[0] + 10,), at=(time[0] + 1_000,))

        def on_notify(self, time: Timestamp) -> None:
            self.send_by(0, [time[0]], (time[0] + 990,))

    def waits(dataflow: timely.Dataflow) -> None:
        stream = dataflow.input("records")
        with dataflow.loop() as loop:
            left = loop.leave(loop.enter(stream).stage("passes", Passes))
        dataflow.output("out", left.stage("waits", Waits))

    chance = random.Random(seed)
    epochs = sorted(chance.sample(range(0, 365 * 86_400_000, 2_000), 12))
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(waits)
        for epoch in epochs:
            flow.seal(through=epoch - 1)
            flow.input("records").insert([epoch])
            flow.seal()
        flow.seal(through=epochs[-1] + 1_000)
        flow.wait(epochs[-1] + 1_000)
        assert list(flow.output("out").changes()) == [(epoch + 1_000, epoch + 10) for epoch in epochs]


class Passes(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


FAR = 1 << 40


class Rounds(Acts):
    """Does what the test says of epoch 0, by iteration, and goes round four times."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if time[0]:
            return
        self.acts.get(time[1], lambda vertex, time: None)(self, time)
        if time[1] < 3:
            self.send_by(0, message, time)


def going_round(acts: dict[int, Act]) -> tuple[Worker, Instance, Rounds]:
    vertex = Rounds(acts)
    dataflow = Dataflow()
    with dataflow.loop() as loop:
        back = loop.feedback()
        feeds = [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        (out,) = dataflow.stage("acts", lambda: vertex, feeds)
        back.connect(out)
    dataflow.output("out", loop.leave(out))
    worker = Worker()
    return worker, worker.install(dataflow.freeze()), vertex


def test_moved_from_a_far_time_of_an_earlier_iteration() -> None:
    """What gives the right is the capability, not the time of the call, which may be of another iteration."""

    def move(vertex: Acts, time: Timestamp) -> None:
        vertex.held.append(vertex.held[0].delay((FAR + 1, 0)))
        vertex.held[0].downgrade((FAR + 2, 1))

    worker, instance, vertex = going_round({0: lambda vertex, time: hold(vertex, (FAR, 0)), 2: move})
    feed(worker, instance, 1)
    assert [held.time for held in vertex.held] == [(FAR + 2, 1), (FAR + 1, 0)]
    assert instance.epochs_done() == 1
    instance.input("numbers").seal(FAR + 10)
    worker.run_until_idle()
    assert instance.epochs_done() == FAR + 1


def test_held_far_ahead_needs_a_right_too() -> None:
    def ask(vertex: Acts, time: Timestamp) -> None:
        with vertex.hold((FAR + 5, 2)):
            vertex.hold((FAR + 5, 1))

    worker, instance, _ = going_round({2: ask})
    told = (
        r"asked to hold at \(1099511627781, 1\), but it may act only at or after \(0, 2\) or "
        r"\(1099511627781, 2\)"
    )
    with pytest.raises(TimeRegressionError, match=told):
        feed(worker, instance, 1)


def test_held_before_the_anchor_is_refused_of_a_vertex_that_moves_its_words_itself() -> None:
    class Moves(Acts):
        def rebase(self, by: Rebase) -> None:
            pass

    vertex = Moves({59: lambda vertex, time: vertex.hold((0,))})
    dataflow = Dataflow(level_bits=(6,))
    dataflow.output("out", dataflow.input("numbers").stage("acts", lambda: vertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    with pytest.raises(
        TimeRegressionError, match=r"asked to hold at \(0,\), but it may act only at or after"
    ):
        feed(worker, instance, 60)


def test_held_by_numbers_of_numpy_is_the_same_time() -> None:
    """A word is made by shifting: 32 bits would be too few for it, and 64 for that of a far time."""

    def act(vertex: Acts, time: Timestamp) -> None:
        with vertex.hold((np.int64(FAR), np.int32(3))) as held:
            assert held.time == (FAR, 3) and {type(number) for number in held.time} == {int}
            held.downgrade((np.int64(FAR + 1), np.int64(3)))
            assert held.delay((np.int64(FAR + 2), np.int8(4))).drop() is None
        vertex.send_by(0, ["sent"], (np.int32(5), np.int32(7)))
        vertex.notify_at((np.int32(6), np.int16(3)))

    worker, instance, vertex = going_round({3: act})
    feed(worker, instance, 1)
    instance.input("numbers").seal(9)
    worker.run_until_idle()
    assert (5, "sent") in sent(instance)
    assert vertex.notified == [(6, 3)] and instance.epochs_done() == 10


def test_held_twice_by_a_copy_it_is_refused() -> None:
    worker, instance, _ = running({0: lambda vertex, time: copy.copy(vertex.hold(time))})
    with pytest.raises(
        MisuseError, match=r"capability at \(0,\), made at .* is copied: .* held.delay\(held.time"
    ):
        feed(worker, instance, 1)


def test_held_no_longer_is_what_a_vertex_received_in_a_call_that_it_lets_fail() -> None:
    class Forgives(Acts):
        def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
            for message in messages:
                with suppress(ValueError):
                    super().recv_all(port, [message])

        def on_notify(self, time: Timestamp) -> None:
            self.send_by(0, ["by the right of a time that is over"], (0,))

    def fail(vertex: Acts, time: Timestamp) -> None:
        vertex.notify_at((2,))
        raise ValueError

    worker, instance = running_vertex(Forgives({0: fail}))
    feed(worker, instance, 1)
    instance.input("numbers").seal(5)
    with pytest.raises(TimeRegressionError, match=r"sent at \(0,\), .* only at or after \(2,\)\."):
        worker.run_until_idle()


def test_ahead_of_a_time_that_no_right_keeps_while_words_move() -> None:
    """The time itself holds nothing, and words begin to count from a later one before it is told."""

    class Later(Acts):
        def on_notify(self, time: Timestamp) -> None:
            self.notified.append(time)
            self.send_by(0, ["notified"], (30,))

    vertex = Later({0: lambda vertex, time: vertex.notify_at((3,), at=(30,))})
    dataflow = Dataflow(level_bits=(6,))
    dataflow.output("out", dataflow.input("numbers").stage("acts", lambda: vertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    feed(worker, instance, 1)
    instance.input("numbers").seal(1_000)
    worker.run_until_idle()
    assert vertex.notified == [(3,)] and instance.epochs_done() == 1_001
    assert records_of(instance.output("out").log.changes(0, 1_000)) == [(30, "notified")]
