"""The four calls: what a vertex may do, and what it is told when it does something else.

order_*    on_notify after every on_recv at times before it; once per time; queued, never re-entered
misuse_*   each names the stage, the worker, the times
resume_*   work in pieces, one per step, others in between
words_*    the level of time words: holds, frontiers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pytest

from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, MisuseError, Records, TimeRegressionError, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance


class Recorder(Vertex):
    """Writes down what happens; subclasses do more."""

    def __init__(self) -> None:
        self.log: list[tuple[object, ...]] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.log.append(("recv", edge, message, time))

    def on_notify(self, time: Timestamp) -> None:
        self.log.append(("notify", time))


def running(vertex: Vertex, outputs: int = 1) -> tuple[Worker, Instance]:
    dataflow = Dataflow()
    dataflow.stage("under test", lambda: vertex, [dataflow.input("numbers").feed()], outputs=outputs)
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def feed(worker: Worker, instance: Instance, *epochs: list[object]) -> None:
    for records in epochs:
        instance.input("numbers").send(records)
        instance.input("numbers").seal()
    worker.run_until_idle()


def test_order_a_notification_comes_after_all_messages_of_its_time_and_once() -> None:
    class Asks(Recorder):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            super().on_recv(edge, message, time)
            self.notify_at(time)
            self.notify_at(time)

    vertex = Asks()
    worker, instance = running(vertex)
    instance.input("numbers").send([1])
    instance.input("numbers").send([2])
    worker.run_until_idle()
    assert vertex.log == [], "nothing enters before the epoch is sealed"
    feed(worker, instance, [3], [4])
    assert vertex.log == [
        ("recv", 0, [1], (0,)),
        ("recv", 0, [2], (0,)),
        ("recv", 0, [3], (0,)),
        ("recv", 0, [4], (1,)),
        ("notify", (0,)),
        ("notify", (1,)),
    ]


def test_order_a_notification_may_be_asked_for_ahead_and_waits_for_its_time() -> None:
    class Ahead(Recorder):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.notify_at((time[0] + 2,))

    vertex = Ahead()
    worker, instance = running(vertex)
    feed(worker, instance, [1], [])
    assert vertex.log == []
    feed(worker, instance, [])
    assert vertex.log == [("notify", (2,))]


def test_order_a_message_to_oneself_arrives_in_a_later_activation() -> None:
    class Again(Recorder):
        depth = 0

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            assert self.depth == 0, "re-entered"
            self.depth += 1
            super().on_recv(edge, message, time)
            if time[1] < 3:
                self.send_by(0, message, time)
            self.depth -= 1

    vertex = Again()
    dataflow = Dataflow()
    with dataflow.loop() as loop:
        back = loop.feedback()
        (out,) = dataflow.stage(
            "again", lambda: vertex, [loop.enter(dataflow.input("numbers")).feed(), back.stream.feed()]
        )
        back.connect(out)
    worker = Worker()
    feed(worker, worker.install(dataflow.freeze()), ["x"])
    assert [entry[3] for entry in vertex.log] == [(0, 0), (0, 1), (0, 2), (0, 3)]


class Acts(Recorder):
    """Does `act` on the first message."""

    def __init__(self, act: str, at: Timestamp) -> None:
        super().__init__()
        self.act = act
        self.at = at

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if self.act == "send":
            self.send_by(0, ["x"], self.at)
        elif self.act == "notify":
            self.notify_at(self.at)
        elif self.act == "hold":
            self.hold_word(self.code.pack(self.at))
        elif self.act == "release":
            self.release_word(self.code.pack(self.at))
        elif self.act == "output":
            self.send_by(3, ["x"], time)
        elif self.act == "text":
            self.send_by(0, "text", time)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("send", r"sent at \(4,\)"),
        ("notify", r"asked for notification at \(4,\)"),
        ("hold", r"asked to hold at \(4,\)"),
    ],
)
def test_misuse_of_a_past_time_names_stage_worker_times_and_what_happened_before(
    act: str, message: str
) -> None:
    worker, instance = running(Acts(act, (4,)))
    instance.input("numbers").seal(4)
    with pytest.raises(
        TimeRegressionError, match=rf"'under test' \(stage 1, worker 0 of 1\) {message}"
    ) as caught:
        feed(worker, instance, ["x"])
    assert "only at or after (5,)" in str(caught.value)
    assert f"built at {__file__}" in str(caught.value) and "last events here: on_recv (5,)" in str(
        caught.value
    )


def test_misuse_of_an_earlier_time_is_seen_although_that_time_waits_in_the_same_activation() -> None:
    class Early(Recorder):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            if time == (1,):
                self.send_by(0, ["x"], (0,))

    worker, instance = running(Early())
    with pytest.raises(TimeRegressionError, match=r"sent at \(0,\), but it may act only at or after \(1,\)"):
        feed(worker, instance, [1], [2])


def test_misuse_release_of_what_is_not_held() -> None:
    worker, instance = running(Acts("release", (0,)))
    with pytest.raises(TimeRegressionError, match=r"releases \(0,\), which it does not hold"):
        feed(worker, instance, [1])


def test_misuse_of_outputs_and_messages_is_named() -> None:
    worker, instance = running(Acts("output", (0,)))
    with pytest.raises(MisuseError, match="sends by output 3, but it has the outputs 0 "):
        feed(worker, instance, [1])
    worker, instance = running(Acts("text", (0,)))
    with pytest.raises(MisuseError, match=r"a message is a list of records, write \['text'\]"):
        feed(worker, instance, [1])


class Calls(Vertex):
    """Calls something when a message comes in."""

    def __init__(self, call: Callable[[Vertex, list[object], Timestamp], object]) -> None:
        self._call = call

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self._call(self, message, time)


@pytest.mark.parametrize("port", [-1, 2, "0", True, 1.0, None, slice(0, 1), -(2**70)])
def test_misuse_of_ports_that_are_not_there_names_those_that_are(port: int) -> None:
    for call, told in (
        (lambda v, m, t: v.send_by(port, m, t), "sends by output .*, but it has the outputs 0, 1"),
        (lambda v, m, t: v.send(port, Records(m), 0), "sends by output .*, but it has the outputs 0, 1"),
        (lambda v, m, t: v.connectors(port), "leads: .*, but it has the outputs 0, 1"),
        (lambda v, m, t: v.frontier(port), "the frontier of input .*, but it has the inputs 0 "),
        (lambda v, m, t: v.feeding(port), "who feeds input .*, but it has the inputs 0 "),
    ):
        worker, instance = running(Calls(call), outputs=2)
        with pytest.raises(MisuseError, match=rf"'.*' \(stage 1, worker 0 of 1\) .*{told}") as caught:
            feed(worker, instance, [1])
        assert repr(port) in str(caught.value) and __file__ in str(caught.value)


def test_ports_may_be_integers_of_numpy() -> None:
    worker, instance = running(Calls(lambda v, m, t: v.send_by(np.int64(1), m, t)), outputs=2)
    feed(worker, instance, [1])


@pytest.mark.parametrize("time", [0, None, "a", ("a",), (0.0,), ["x"], (0, 0), ()])
def test_misuse_of_what_is_no_time_says_what_one_is(time: Timestamp) -> None:
    for call, name in (
        (lambda v, m, t: v.send_by(0, m, time), r"send_by\(edge, message, time\)"),
        (lambda v, m, t: v.notify_at(time), r"notify_at\(time\)"),
    ):
        worker, instance = running(Calls(call))
        told = rf"worker 0 of 1\) calls {name} with the time .* as on_recv .* of 1 number: \(0,\)"
        with pytest.raises(MisuseError, match=told):
            feed(worker, instance, [1])


@pytest.mark.parametrize("ahead", [1, 3, 40])
def test_order_what_a_notification_asks_for_comes_before_later_ones_that_are_due(ahead: int) -> None:
    class Asks(Recorder):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.notify_at(time)

        def on_notify(self, time: Timestamp) -> None:
            super().on_notify(time)
            if time[0] < 100 and time[0] % 10 == 0:
                self.notify_at((time[0] + ahead,))

    vertex = Asks()
    worker, instance = running(vertex)
    feed(worker, instance, *[[epoch] if epoch % 5 == 0 else [] for epoch in range(200)])
    asked = {*range(0, 200, 5), *range(ahead, 100, 10)} if ahead < 10 else set(range(0, 200, 5))
    assert vertex.log == [("notify", (epoch,)) for epoch in sorted(asked)]


@pytest.mark.parametrize("call", ["send_by", "notify_at"])
def test_misuse_of_a_time_below_0_is_named(call: str) -> None:
    worker, instance = running(
        Calls(lambda v, m, t: v.notify_at((-1,)) if call == "notify_at" else v.send_by(0, m, (-1,)))
    )
    with pytest.raises(
        MisuseError, match=rf"1\) calls {call}\(.* time \(-1,\): no number of a time is below 0"
    ):
        feed(worker, instance, [1])


@pytest.mark.parametrize(
    ("call", "instead"),
    [("hold_word", r"hold\(time\)"), ("release_word", r"drop\(\) of what hold\(time\) has returned")],
)
def test_misuse_of_a_time_in_place_of_its_word_says_what_takes_times(call: str, instead: str) -> None:
    worker, instance = running(Calls(lambda v, m, t: getattr(v, call)(t)))
    told = rf"1\) calls {call}\(word\) with the time \(0,\): .* Write {instead}"
    with pytest.raises(MisuseError, match=told):
        feed(worker, instance, [1])


def test_misuse_of_records_in_place_of_a_batch_names_send_by() -> None:
    worker, instance = running(Calls(lambda v, m, t: v.send(0, m, 0)))  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"with a list, .* records go by send_by\(output, records, time\)"):
        feed(worker, instance, [1])


@pytest.mark.parametrize("message", [5, None, {"word": 1}, "text", ("word", 1)])
def test_misuse_of_what_is_no_list_of_records(message: list[object]) -> None:
    worker, instance = running(Calls(lambda v, m, t: v.send_by(0, message, t)))
    with pytest.raises(MisuseError, match=r"a message is a list of records, write \["):
        feed(worker, instance, [1])


def test_misuse_of_callbacks_that_would_run_nothing_refuses_the_dataflow() -> None:
    class Yields(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> Iterator[None]:  # type: ignore[override]
            yield self.send_by(0, message, time)

    class Awaits(Vertex):
        async def on_resume(self) -> None:  # type: ignore[override]
            self.send_by(0, [], (0,))

    for vertex, told in (
        (Yields(), r"Yields\.on_recv has a yield, so that .* self\.send_by\(0, \[rec"),
        (Awaits(), r"Awaits\.on_resume is async, and nobody awaits it: only on_open, on_recv, .* may be"),
    ):
        with pytest.raises(MisuseError, match=told):
            running(vertex)


def test_misuse_of_a_vertex_without_callbacks_is_named() -> None:
    worker, instance = running(Vertex())
    with pytest.raises(MisuseError, match="its class defines no on_recv"):
        feed(worker, instance, [1])


def test_misuse_of_one_vertex_for_two_stages() -> None:
    vertex = Recorder()
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    numbers.stage("one", lambda: vertex)
    numbers.stage("two", lambda: vertex)
    with pytest.raises(MisuseError, match="is used for two stages"):
        Worker().install(dataflow.freeze())


def test_misuse_before_the_vertex_is_in_place() -> None:
    with pytest.raises(MisuseError, match="Recorder is not part of a running dataflow yet"):
        Recorder().notify_at((0,))
    assert repr(Recorder()) == "Recorder (not running)"


class HoldsVertex(Vertex):
    """Holds the first time and sends at it when told by a record of a later epoch."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self) -> None:
        self.held: int | None = None
        self.frontiers: list[list[int]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, _ in messages:
            if self.held is None:
                self.held = word
                self.hold_word(word)
            else:
                self.send(0, Records(["late"]), self.held)
                self.release_word(self.held)

    def on_frontier(self) -> None:
        self.frontiers.append([int(word) for word in self.frontier_words(0)])


def test_words_a_held_time_keeps_the_frontier_downstream_until_it_is_released() -> None:
    holder = HoldsVertex()
    dataflow = Dataflow()
    (out,) = dataflow.stage("hold", lambda: holder, [dataflow.input("numbers").feed()])
    dataflow.output("out", out)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    feed(worker, instance, ["first"], [])
    assert instance.output("out").complete_before == 0
    assert [holder.code.unpack(frontier[0]) for frontier in holder.frontiers] == [(0,), (2,)]
    feed(worker, instance, ["second"])
    assert instance.output("out").complete_before == 3
    assert instance.output("out").log.changes(0, 3).column("epoch").to_pylist() == [0]


def test_words_an_input_that_closes_leaves_an_empty_frontier() -> None:
    holder = HoldsVertex()
    worker, instance = running(holder)
    instance.input("numbers").close()
    worker.run_until_idle()
    assert holder.frontiers == [[0], []]
    assert instance.is_complete()


class InPieces(Vertex):
    """Sends the records that come in, one in each activation, and resumes until all are sent."""

    word_times: ClassVar[bool] = True

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.left: list[object] = []
        self.held = 0

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        ((self.held, batch),) = messages
        assert isinstance(batch, Records)
        self.left = list(batch.records)
        self.hold_word(self.held)
        self.resume()
        self.resume()

    def on_resume(self) -> None:
        self.log.append(f"send {self.left[0]}")
        self.send(0, Records([self.left.pop(0)]), self.held)
        if self.left:
            self.resume()
        else:
            self.release_word(self.held)


class Receives(Vertex):
    """Writes down what it gets and when a time is complete."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.log.append(f"got {message[0]}")
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        self.log.append("complete")


def in_pieces(records: list[object]) -> tuple[list[str], Worker, Instance]:
    log: list[str] = []
    dataflow = Dataflow()
    (pieces,) = dataflow.stage("pieces", lambda: InPieces(log), [dataflow.input("numbers").feed()])
    dataflow.stage("receives", lambda: Receives(log), [pieces.feed()], outputs=0)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send(records)
    instance.input("numbers").close()
    return log, worker, instance


def test_resume_each_piece_is_consumed_before_the_next_is_made() -> None:
    log, worker, instance = in_pieces([1, 2, 3])
    worker.run_until_idle()
    assert log == ["send 1", "got 1", "send 2", "got 2", "send 3", "got 3", "complete"]
    assert instance.is_complete() and not instance.has_work()


def test_resume_comes_in_a_later_step_whatever_room_the_first_has_left() -> None:
    log, worker, instance = in_pieces([1, 2])
    worker.step()
    assert log == [] and instance.has_work() and not instance.is_complete()
    worker.step()
    assert log == ["send 1", "got 1"]


def test_resume_without_on_resume_names_the_vertex() -> None:
    class Resumes(Recorder):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.resume()

    worker, instance = running(Resumes())
    with pytest.raises(MisuseError, match=r"'under test' \(stage 1, worker 0 of 1\).*no on_resume"):
        feed(worker, instance, [1])


def test_resume_what_fails_in_an_idle_moment_says_whose_it_was() -> None:
    class FailsIdly(Recorder):
        def on_idle(self) -> bool:
            raise KeyError("no such thing")

    worker, instance = running(FailsIdly())
    feed(worker, instance, [1])
    with pytest.raises(KeyError) as caught:
        worker.idle()
    (note,) = caught.value.__notes__
    assert "'under test' (stage" in note and "test_vertex.py" in note
