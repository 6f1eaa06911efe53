"""Which times a vertex may act at: what it has just received, what it holds; few of them and very many."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

import pytest
from acting import Acts, acting, seal

from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, Records, TimeRegressionError, Vertex
from timely.running.core import Worker
from timely.running.stages.vertex_runner import VertexRunner

RECORDS = Records(["x"])


class Keeps(Vertex):
    word_times: ClassVar[bool] = True

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        self.calls.append((port, [word for word, _ in messages]))
        for word, _ in messages:
            self.hold_word(word)


def running() -> tuple[Worker, VertexRunner, Keeps]:
    vertex = Keeps()
    dataflow = Dataflow()
    one, two = dataflow.input("one"), dataflow.input("two")
    dataflow.stage("keeps", lambda: vertex, [one.feed(0), two.feed(1)])
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for name in ("two", "one", "two"):
        instance.input(name).send([name])
        instance.input(name).seal()
    worker.run_until_idle()
    return worker, instance.runners[2], vertex


def test_holds_are_counted_and_keep_the_right_to_later_times() -> None:
    _, runner, _ = running()
    zero, one, five = (runner.code.pack((epoch,)) for epoch in (0, 1, 5))
    assert runner.held_words() == {zero: 2, one: 1}
    runner.hold(five)
    runner.release(zero)
    runner.release(zero)
    assert runner.held_words() == {one: 1, five: 1}
    with pytest.raises(TimeRegressionError, match=r"may act only at or after \(1,\) or \(5,\)"):
        runner.hold(zero)
    runner.release(one)
    runner.release(five)
    with pytest.raises(TimeRegressionError, match="no time at all"):
        runner.hold(five)


def test_what_is_held_at_the_first_epoch_that_no_word_says_gives_a_right_once_words_do() -> None:
    _, runner, _ = running()
    zero, one = (runner.code.pack((epoch,)) for epoch in (0, 1))
    limit = runner.code.layout.limit
    runner.hold(limit)
    for word in (zero, zero, one):
        runner.release(word)
    assert runner.held_words() == {limit: 1}
    with pytest.raises(TimeRegressionError, match="no time at all"):
        runner.hold(one)
    runner.hold(limit + 1)  # it may hold later times, and none at which it could send now
    runner.release(limit + 1)
    by = Rebase(1, runner.code.layout.shifts[0])
    runner.rebase_rights(by)
    assert by.word(limit) < limit and runner.held_words() == {by.word(limit): 1}
    now = by.word(limit)
    runner.hold(now)
    runner.hold(limit + by.step)
    runner.rebase_rights(Rebase(1, runner.code.layout.shifts[0]))
    now -= by.step
    assert runner.held_words() == {now: 2, limit: 1}
    runner.release(now)
    runner.release(now)
    runner.release(limit)
    with pytest.raises(TimeRegressionError, match="no time at all"):
        runner.hold(limit + by.step)
    with pytest.raises(TimeRegressionError, match="does not hold"):
        runner.release(limit)


def test_a_place_is_called_by_stage_and_worker() -> None:
    _, runner, vertex = running()
    assert runner.title() == repr(vertex) == "'keeps' (stage 2, worker 0 of 1)"
    assert (vertex.name, vertex.worker, vertex.workers) == ("keeps", 0, 1)


def test_only_the_last_events_are_kept() -> None:
    class Busy(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            pass

    dataflow = Dataflow()
    dataflow.input("numbers").stage("busy", Busy)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for _ in range(50):
        instance.input("numbers").send(["x"])
        instance.input("numbers").seal()
    worker.run_until_idle()
    assert len(instance.runners[1].events) < 10


def test_events_are_told_by_their_epoch_wherever_the_anchor_is() -> None:
    _, runner, _ = running()
    for word in list(runner.held_words()):
        for _ in range(runner.held_words()[word]):
            runner.release(word)
    five, shift = runner.code.pack((5,)), runner.code.layout.shifts[0]
    runner.events.append(("on_recv", five))
    runner.rebase_rights(Rebase(3, shift))
    assert runner.events[-1] == ("on_recv", five - (3 << shift))


def test_rights_of_a_notification_end_with_it() -> None:
    refused: list[str] = []

    def send_early(vertex: Acts, time: Timestamp) -> None:
        vertex.send_by(0, ["now"], time)
        if time == (2,):
            for early in ((0,), (1,)):
                with pytest.raises(TimeRegressionError, match=r"sent at .*only at or after \(2,\)") as caught:
                    vertex.send_by(0, ["too late"], early)
                refused.append(str(caught.value))

    vertex = Acts(
        lambda vertex, time: [vertex.notify_at((epoch,)) for epoch in range(3)] and None, send_early
    )
    worker, instance, runner = acting(vertex)
    instance.input("numbers").send(["x"])
    seal(worker, instance, 2)
    assert vertex.notified == [(0,), (1,), (2,)] and len(refused) == 2
    with pytest.raises(TimeRegressionError, match="no time at all"):
        runner.hold(runner.code.pack((7,)))


@pytest.mark.parametrize("count", [4, 200], ids=["few", "many"])
def test_rights_are_what_is_at_or_after_a_held_time_whatever_comes_and_goes(count: int, seed: int) -> None:
    rng = random.Random(f"{seed} {count}")
    vertex = Acts(lambda vertex, time: vertex.hold_word(vertex.code.pack(time)))
    worker, instance, runner = acting(vertex)
    code = runner.code
    instance.input("numbers").send(["x"])
    seal(worker, instance, 0)
    held = {0, *rng.sample(range(1, 3 * count), count)}
    for epoch in held - {0}:
        runner.hold(code.pack((epoch,)))
    for _ in range(count // 2):
        epoch = rng.randint(0, 3 * count)
        if rng.random() < 0.7 and epoch not in held and epoch > min(held):
            runner.hold(code.pack((epoch,)))
            held.add(epoch)
        elif len(held) > 1:
            gone = rng.choice([min(held), rng.choice(sorted(held))])
            runner.release(code.pack((gone,)))
            held.discard(gone)
        assert runner.held_words() == {code.pack((each,)): 1 for each in held}
        least = min(held)
        runner.request(code.pack((3 * count + 1 + rng.randint(0, 9),)))
        runner.send(0, RECORDS, code.pack((least + rng.randint(0, 5),)))
        if least:
            with pytest.raises(TimeRegressionError, match=rf"sent at \({least - 1},\)"):
                runner.send(0, RECORDS, code.pack((least - 1,)))
    for each in sorted(held):
        runner.release(code.pack((each,)))
    with pytest.raises(TimeRegressionError, match="no time at all"):
        runner.hold(code.pack((9 * count,)))


def test_rights_of_very_many_messages_are_those_of_the_earliest() -> None:
    """Sent at a time between them, where no message came; before the first of them nothing may be sent."""
    at_once: list[Timestamp] = []

    class Between(Vertex):
        word_times: ClassVar[bool] = True

        def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
            at_once.extend(self.code.unpack(word) for word, _ in messages)
            for word, _ in messages:
                self.send(0, RECORDS, word + 1)
            early = at_once[0][0] - 1
            with pytest.raises(TimeRegressionError, match=rf"sent at \({early},\)"):
                self.send(0, RECORDS, self.code.pack((early,)))

    dataflow = Dataflow()
    dataflow.input("numbers").stage("between", Between)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for first in (2, 402):
        for epoch in range(first, first + 200, 2):
            instance.input("numbers").send(["x"], epoch)
        instance.input("numbers").seal(first + 300)
        worker.run_until_idle()
        assert at_once == [(epoch,) for epoch in range(first, first + 200, 2)]
        at_once.clear()


def test_rights_are_listed_in_errors_as_far_as_anybody_reads() -> None:
    vertex = Acts(
        lambda vertex, time: [vertex.hold_word(vertex.code.pack((5 + n,))) for n in range(100)] and None
    )
    worker, instance, runner = acting(vertex)
    instance.input("numbers").send(["x"])
    seal(worker, instance, 0)
    with pytest.raises(TimeRegressionError, match=r"or after \(5,\) or .* or \(12,\) or one of 92 others"):
        runner.hold(runner.code.pack((4,)))


def test_of_eight_rights_none_is_left_out_of_an_error() -> None:
    _, runner, _ = running()
    zero = runner.code.pack((0,))
    runner.release(zero)
    for epoch in range(2, 9):
        runner.hold(runner.code.pack((epoch,)))
    runner.release(zero)
    assert len(runner.held_words()) == 8
    with pytest.raises(TimeRegressionError, match=r"or after \(1,\) or .* or \(8,\)\.\n"):
        runner.hold(zero)


def test_what_is_held_twice_beyond_all_words_is_let_go_twice() -> None:
    _, runner, _ = running()
    limit = runner.code.layout.limit
    for _ in range(3):
        runner.hold(limit)
    assert runner.held_words()[limit] == 3
    for _ in range(3):
        runner.release(limit)
    assert limit not in runner.held_words()
    with pytest.raises(TimeRegressionError, match="does not hold"):
        runner.release(limit)


def test_very_many_rights_count_from_a_later_epoch_as_few_do() -> None:
    """What has put them in order knows the words of before."""
    _, runner, _ = running()
    code = runner.code
    for epoch in range(100, 300, 2):
        runner.hold(code.pack((epoch,)))
    for word in (code.pack((0,)), code.pack((0,)), code.pack((1,))):
        runner.release(word)
    runner.hold(code.pack((301,)))  # by looking at many
    runner.rebase_rights(Rebase(90, code.layout.shifts[0]))
    runner.request(code.pack((51,)))
    with pytest.raises(TimeRegressionError, match=r"asked to hold at \(9,\)"):
        runner.hold(code.pack((9,)))
    runner.hold(code.pack((500,)))


def test_one_by_one_only_the_time_of_the_message_in_hand_gives_a_right() -> None:
    """Others have come with it; once each was in hand all of them give rights."""
    seen: list[Timestamp] = []

    class InTurn(Vertex):
        def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
            super().recv_all(port, messages)
            self.send_by(0, ["all have come"], (0,))

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            seen.append(time)
            self.send_by(0, message, time)
            if time > (0,):
                with pytest.raises(TimeRegressionError, match="sent at"):
                    self.send_by(0, message, (0,))

    dataflow = Dataflow()
    dataflow.input("numbers").stage("in turn", InTurn)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for epoch in range(3):
        instance.input("numbers").send(["x"], epoch)
    instance.input("numbers").seal(2)
    worker.run_until_idle()
    assert seen == [(0,), (1,), (2,)]


def test_among_very_many_messages_what_is_held_gives_a_right_too() -> None:
    sent: list[int] = []

    class Holds(Vertex):
        word_times: ClassVar[bool] = True

        def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
            if not sent:
                self.hold_word(messages[0][0])
            for word in (messages[0][0] - 1,) if sent else (messages[0][0],):
                self.send(0, RECORDS, word)
                sent.append(word)

    dataflow = Dataflow()
    dataflow.input("numbers").stage("holds", Holds)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for first, count in ((2, 1), (10, 100)):
        for epoch in range(first, first + count):
            instance.input("numbers").send(["x"], epoch)
        instance.input("numbers").seal(first + count)
        worker.run_until_idle()
    assert sent == [2, 9]
