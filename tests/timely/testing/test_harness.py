"""One vertex without a cluster: the rules of the runtime hold for it, and a test sees what it does.

recv_*     messages, frontiers and notifications, in loops too
errors_*   what the runtime refuses, and what it would not notice
turns_*    activations, coroutines, the end
"""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from wrong_vertices import Changes, Keeps, Loses, Shares, SumVertex

from progress.checking.counterexample import Counterexample
from progress.times.timestamp import Timestamp
from timely import Capability, MisuseError, TimelyError, TimeRegressionError, Vertex
from timely.testing import Sending, VertexHarness


def test_recv_brings_messages_and_notifications_come_when_they_are_due() -> None:
    with VertexHarness(SumVertex) as vertex:
        vertex.recv([("a", 1)], (0,))
        vertex.recv([("a", 5)], (1,))
        vertex.recv([("a", 2)], (0,))
        assert vertex.asked == [(0,), (1,)] and not vertex.sent
        vertex.advance((1,))
        assert vertex.notified == [(0,)]
        assert vertex.take() == [Sending(0, (0,), [("a", 3)])]
    assert vertex.sent == [Sending(0, (1,), [("a", 5)])]


def test_recv_of_two_inputs_waits_for_both() -> None:
    with VertexHarness(SumVertex, inputs=2) as vertex:
        vertex.recv([("a", 1)], (0,), edge=1)
        vertex.advance((1,), edge=1)
        assert not vertex.notified
        vertex.close(edge=0)
        assert vertex.notified == [(0,)]


def test_recv_of_later_times_may_come_before_a_notification_that_is_due() -> None:
    with VertexHarness(SumVertex) as vertex:
        vertex.recv([("a", 1)], (0,))
        vertex.advance((1,), deliver=False)
        assert not vertex.notified
        vertex.recv([("a", 1)], (1,))
        assert vertex.notified == [(0,)] and vertex.asked == [(1,)]


def test_recv_in_a_loop_compares_times_as_the_loop_does() -> None:
    def notified(vertex: VertexHarness) -> list[Timestamp]:
        with vertex:
            vertex.recv([("a", 1)], (0, 0, 3))
            vertex.recv([("a", 2)], (0, 1, 0))
            vertex.advance((0, 0, 4))
            return list(vertex.notified)

    assert notified(VertexHarness(SumVertex, depth=3)) == [(0, 0, 3), (0, 1, 0)]
    assert notified(VertexHarness(SumVertex, depth=3, order="lexicographic")) == [(0, 0, 3)]


def test_recv_of_times_that_the_loop_does_not_relate() -> None:
    with VertexHarness(SumVertex, depth=2) as vertex:
        vertex.recv([("a", 1)], (0, 3))
        vertex.recv([("a", 1)], (1, 0))
        vertex.advance((0, 4), (1, 1))
        assert vertex.notified == [(0, 3), (1, 0)]
        with pytest.raises(MisuseError, match=r"no message at \(1, 0\) can come in any more"):
            vertex.recv([("a", 1)], (1, 0))
        vertex.recv([("a", 1)], (0, 5))


class Half(Vertex):
    """Sends tables on, and holds each time until the next record; knows its worker."""

    def __init__(self) -> None:
        self.held: Capability | None = None

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(edge, message, time)
        if self.held is not None:
            self.held.drop()
        self.held = self.hold(time)

    def on_end(self, reason: TimelyError | None) -> None:
        self.reason = reason


def test_recv_shows_what_is_held_with_its_line_and_takes_tables() -> None:
    vertex = VertexHarness(Half, inputs=2, outputs=2, worker=3, workers=5)
    assert (vertex.vertex.worker, vertex.vertex.workers) == (3, 5)
    table = pa.table({"n": [1, 2]})
    vertex.recv(table, (4,), edge=1)
    ((edge, time, sent),) = vertex.sent
    assert (edge, time) == (1, (4,)) and isinstance(sent, pa.Table) and sent.equals(table)
    assert vertex.held == [(4,)]
    ((held, site),) = vertex.capabilities
    assert held == (4,) and site.file == __file__
    with pytest.raises(MisuseError, match=rf"still holds \(4,\) \(held at {__file__}:\d+\)"):
        vertex.finish()


# errors_


class Late(SumVertex):
    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, [1], (time[0] - 1,))


def test_errors_are_those_of_the_runtime() -> None:
    vertex = VertexHarness(Late)
    vertex.recv([("a", 1)], (1,))
    with pytest.raises(TimeRegressionError, match=r"'tested' \(stage 1, worker 0 of 1\) sent at \(0,\)"):
        vertex.close()
    with pytest.raises(MisuseError, match="has failed before"):
        vertex.recv([("a", 1)], (2,))


def test_errors_of_capabilities_name_the_line() -> None:
    vertex = VertexHarness(Loses)
    vertex.recv([("a", 1)], (0,))
    with pytest.raises(
        MisuseError, match=r"has lost its capability at \(0,\), made at .*wrong_vertices.py:\d+"
    ):
        vertex.close()
    keeps = VertexHarness(Keeps)
    keeps.recv([("a", 1)], (0,))
    with pytest.raises(MisuseError, match=r"still holds \(0,\) \(held at .*wrong_vertices.py:\d+"):
        keeps.finish()


def test_errors_that_the_runtime_does_not_notice() -> None:
    with pytest.raises(Counterexample, match="changes records that it got"):
        VertexHarness(Changes).recv([{"n": 1}], (0,))
    shares = VertexHarness(Shares)
    shares.recv([("b", 1)], (0,))
    with pytest.raises(Counterexample, match=r"changes Shares\.seen"):
        shares.close()


class Odd(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [object()], time)


def test_errors_of_records_that_no_other_worker_could_get() -> None:
    with pytest.raises(MisuseError, match="cannot be sent to another worker"):
        VertexHarness(Odd).recv([1], (0,))


def test_errors_of_wrong_calls() -> None:
    vertex = VertexHarness(SumVertex)
    with pytest.raises(MisuseError, match="no input 1"):
        vertex.recv([1], (0,), edge=1)
    with pytest.raises(MisuseError, match="has not asked for an activation"):
        vertex.ring()
    vertex.advance((3,))
    with pytest.raises(MisuseError, match=r"cannot go on to \(2,\): it is at \[\(3,\)\]"):
        vertex.advance((2,))
    vertex.finish()
    with pytest.raises(MisuseError, match="has ended"):
        vertex.recv([1], (4,))
    with pytest.raises(MisuseError, match="a source has no inputs"):
        VertexHarness(SumVertex, inputs=0, depth=2)


# turns_


class Counts(Vertex):
    """A source of three numbers, one an hour."""

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate(after=3_600)

    def on_activate(self) -> None:
        (epoch,) = self.held.time
        self.send_by(0, [epoch], self.held.time)
        if epoch == 2:
            self.held.drop()
        else:
            self.held.downgrade((epoch + 1,))
            self.activate(after=3_600)


def test_turns_of_a_source_come_by_rings() -> None:
    with VertexHarness(Counts, inputs=0) as source:
        assert source.held == [(0,)] and source.alarms == 1 and not source.sent
        source.ring()
        assert source.held == [(1,)] and source.sent == [Sending(0, (0,), [0])]
        source.run()
        assert source.held == [] and source.alarms == 0
    assert [each.records for each in source.sent] == [[0], [1], [2]]


class Asks(Vertex):
    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        await asyncio.sleep(3_600)
        self.send_by(0, message, time)

    async def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, ["over"], time)


def test_turns_of_coroutines_hold_their_times_and_take_no_time() -> None:
    with VertexHarness(Asks) as vertex:
        vertex.recv([1], (0,))
        assert vertex.is_awaiting and vertex.held == [(0,)] and not vertex.sent
        vertex.run()
        assert not vertex.is_awaiting and vertex.held == [] and vertex.sent == [Sending(0, (0,), [1])]


class Restless(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.activate()

    def on_activate(self) -> None:
        self.activate()


def test_turns_without_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.testing.harness._TURNS_MAX", 50)
    vertex = VertexHarness(Restless)
    vertex.recv([1], (0,))
    with pytest.raises(MisuseError, match="asks for another turn without end: 50"):
        vertex.run()


def test_turns_end_with_a_reason() -> None:
    vertex = VertexHarness(Half, outputs=1)
    vertex.end(TimelyError("lost"))
    assert isinstance(vertex.vertex, Half) and str(vertex.vertex.reason) == "lost"
