"""What a vertex may do whose inputs lead to its outputs by paths of their own, and whom nobody waits for."""

from __future__ import annotations

import pytest

from progress.errors import TimeRegressionError
from progress.times.timestamp import Timestamp
from timely import Capability, Dataflow, GraphError, MisuseError, Vertex, WaitTimeoutError, connect


class DoesVertex(Vertex):
    """Does what a record says: (what, output, how much later)."""

    def __init__(self) -> None:
        self.held: list[Capability] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        for what, output, by in message:  # type: ignore[misc]
            later = (*time[:-1], time[-1] + by)
            if what == "send":
                self.send_by(output, [(edge, time)], later)
            elif what == "hold":
                self.held.append(self.hold(later))
            else:
                self.notify_at(later)

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, [("notified", time)], time)


PATHS = {(0, 0): 2, (1, 0): None, (1, 1): 1}
"""Input 0: late by output 0, at once by output 1. Input 1: never by output 0, late by output 1."""


def does(dataflow: Dataflow) -> None:
    feeds = [dataflow.input(f"in {port}").feed(port) for port in (0, 1)]
    outputs = dataflow.stage("does", DoesVertex, feeds, outputs=2, paths=PATHS)
    for number, stream in enumerate(outputs):
        dataflow.output(f"out {number}", stream)


@pytest.mark.parametrize(
    ("port", "what", "output", "by", "told"),
    [
        (0, "send", 0, 2, ""),
        (0, "send", 0, 1, r"sent by output 0 at \(1,\), but it may act only at or after \(2,\)"),
        (0, "send", 1, 0, ""),
        (0, "hold", 0, 2, ""),
        (0, "hold", 0, 1, r"asked to hold at \(1,\), but it may act only at or after \(2,\)"),
        (0, "ask", 0, 2, ""),
        (0, "ask", 0, 0, r"asked for notification at \(0,\), but it may act only at or after \(2,\)"),
        (1, "send", 0, 5, r"sent by output 0 at \(5,\), but it may act only at or after no time at all"),
        (1, "send", 1, 1, ""),
        (1, "send", 1, 0, r"sent by output 1 at \(0,\), but it may act only at or after \(1,\)"),
        (1, "hold", 0, 9, r"asked to hold at \(9,\), but it may act only at or after no time at all"),
    ],
)
def test_rights_are_those_of_the_path(port: int, what: str, output: int, by: int, told: str) -> None:
    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(does)
        flow.input(f"in {port}").insert([(what, output, by)])
        if told:
            with pytest.raises(TimeRegressionError, match=told):
                flow.seal(wait=True)
            return
        for _ in range(by + 1):
            flow.seal()
        if what == "send":
            assert flow.output(f"out {output}").changes(by, by + 1) == [(by, (port, (0,)))]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_output_waits_only_for_inputs_that_lead_there_and_as_late_as_they_do(workers: int) -> None:
    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(does)
        flow.input("in 0").insert([("send", 0, 2), ("send", 1, 0)])
        flow.input("in 0").seal()
        # What comes in at input 0 from epoch 1 on leaves there from epoch 3 on; input 1 leads nowhere there.
        assert flow.output("out 0").changes(0, 3) == [(2, (0, (0,)))]
        assert flow.output("out 1").changes(0, 1) == [(0, (0, (0,)))]  # from input 1 one epoch later
        with pytest.raises(WaitTimeoutError, match="complete are the epochs before 1"):
            flow.output("out 1").changes(0, 2)
        flow.input("in 0").advance_to(5)
        with pytest.raises(WaitTimeoutError, match="complete are the epochs before 1"):
            flow.output("out 1").changes(0, 2)
        flow.input("in 1").seal()
        assert flow.output("out 1").changes(1, 2) == []


def test_what_is_held_gives_the_right_to_send_everywhere() -> None:
    class LaterVertex(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.held = self.hold((time[0] + 2,))
            self.activate()

        def on_activate(self) -> None:
            self.send_by(0, [0], self.held.time)
            self.send_by(1, [1], self.held.time)
            self.held.drop()

    def build(dataflow: Dataflow) -> None:
        numbers = dataflow.input("numbers")
        streams = dataflow.stage(
            "later", LaterVertex, [numbers.feed()], outputs=2, paths={(0, 0): 2, (0, 1): 0}
        )
        dataflow.output("both", streams[0].concat(streams[1]))

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert([1])
        for _ in range(3):
            flow.seal()
        assert flow.output("both").changes() == [(2, 0), (2, 1)]


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ({(2, 0): 1}, r"`paths` has \(2, 0\), which is no \(input, output\) of 2 inputs and 2 outputs"),
        ({0: 1}, "`paths` has 0, which is no"),
        ({(0, 0): -1}, r"`paths` says -1 of \(0, 0\): it is a number of epochs, from 0 on, or None"),
        ({(0, 0): True}, "`paths` says True"),
        ([(0, 0)], r"`paths` is a dict from \(input, output\) to a number"),
    ],
)
def test_refusing_paths_that_cannot_be(paths: object, told: str) -> None:
    dataflow = Dataflow()
    feeds = [dataflow.input(f"in {port}").feed(port) for port in (0, 1)]
    with pytest.raises(GraphError, match=told):
        dataflow.stage("does", DoesVertex, feeds, outputs=2, paths=paths)  # type: ignore[arg-type]


def test_refusing_vertices_of_which_nobody_knows_for_which_message_they_send() -> None:
    class AwaitsVertex(Vertex):
        async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None: ...

    class WordsVertex(Vertex):
        word_times = True

    for kind, told in ((AwaitsVertex, "has async callbacks"), (WordsVertex, "takes whole activations")):

        def build(dataflow: Dataflow, kind: type[Vertex] = kind) -> None:
            dataflow.stage("one", kind, [dataflow.input("numbers").feed()], paths={(0, 0): 1})

        with connect(workers=1, embedded=True) as cluster, pytest.raises(MisuseError, match=told):
            cluster.install(build)


class LaterVertex(Vertex):
    """Sends in a later turn, for what came in before."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.time = time
        self.activate()

    def on_activate(self) -> None:
        self.send_by(0, ["late"], self.time)


def test_what_came_in_gives_no_right_in_a_later_turn() -> None:
    def build(dataflow: Dataflow) -> None:
        (out,) = dataflow.stage("later", LaterVertex, [dataflow.input("in").feed()], paths={(0, 0): 0})
        dataflow.output("out", out)

    with connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("in").insert([1])
        flow.seal()
        with pytest.raises(TimeRegressionError, match="it neither received nor holds one now"):
            flow.wait(0)
