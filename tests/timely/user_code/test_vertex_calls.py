"""Callbacks that cannot do what their author means are refused, and say what to write.

parameters_*   when the dataflow is installed
results_*      records that a callback returns, in place of sending them
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import cast

import pytest

import timely

Time = tuple[int, ...]


def of(**methods: object) -> type[timely.Vertex]:
    """A class of vertices with these methods."""
    return cast("type[timely.Vertex]", type("MyVertex", (timely.Vertex,), methods))


def run(build: Callable[[timely.Stream], timely.Stream]) -> list[object]:
    """What comes out of a dataflow of one stream for the records 1 and 2."""
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(lambda dataflow: dataflow.output("out", build(dataflow.input("in"))))
        flow.input("in").insert([1, 2])
        flow.seal()
        return [record for _, record in flow.output("out").changes()]


def passing(self: timely.Vertex, edge: int, message: list[object], time: Time) -> None:
    self.send_by(0, message, time)


@pytest.mark.parametrize(
    ("name", "method", "written"),
    [
        ("on_recv", lambda self, message, time: None, r"on_recv\(self, edge, message, time\)"),
        ("on_recv", lambda edge, message, time: None, r"on_recv\(self, edge, message, time\)"),
        ("on_notify", lambda self: None, r"on_notify\(self, time\)"),
        ("on_end", lambda self: None, r"on_end\(self, reason\)"),
        ("on_start", lambda self, worker: None, r"on_start\(self\)"),
    ],
)
def test_parameters_of_a_callback_are_those_that_it_is_called_with(
    name: str, method: object, written: str
) -> None:
    kind = of(**{"on_recv": passing, name: method})
    with pytest.raises(
        timely.MisuseError, match=rf"MyVertex\.{name}\(.*cannot be called.*Write def {written}"
    ):
        run(lambda stream: stream.stage("mine", kind))


def test_parameters_that_a_decorator_hands_in_are_fine() -> None:
    @wraps(passing_to)
    def recv(self: timely.Vertex, *arguments: object) -> None:
        passing_to(self, 0, *arguments)  # type: ignore[arg-type]

    assert run(lambda stream: stream.stage("mine", of(on_recv=recv))) == [1, 2]


def passing_to(self: timely.Vertex, output: int, edge: int, message: list[object], time: Time) -> None:
    self.send_by(output, message, time)


def test_parameters_that_may_be_left_out_and_other_names_are_fine() -> None:
    def recv(self: timely.Vertex, port: int, *rest: object, more: int = 0) -> None:
        message, time = rest
        self.send_by(port, cast("list[object]", message), cast(Time, time))

    assert run(lambda stream: stream.stage("mine", of(on_recv=recv, on_start=lambda self, n=1: None))) == [
        1,
        2,
    ]


async def later(self: timely.Vertex, edge: int, message: list[object], time: Time) -> list[object]:
    return message


def notified(self: timely.Vertex, edge: int, message: list[object], time: Time) -> None:
    self.notify_at(time)


@pytest.mark.parametrize(
    ("call", "build"),
    [
        (
            "on_recv",
            lambda stream: stream.stage("mine", of(on_recv=lambda self, edge, message, time: message)),
        ),
        ("later", lambda stream: stream.stage("mine", of(on_recv=later))),
        (
            "on_notify",
            lambda stream: stream.stage("mine", of(on_recv=notified, on_notify=lambda self, time: [time])),
        ),
        ("on_recv", lambda stream: stream.unary("mine", lambda vertex: lambda records, time: records)),
        (
            "on_recv",
            lambda stream: stream.binary(stream, "mine", lambda vertex: lambda edge, records, time: records),
        ),
    ],
)
def test_results_that_are_records_would_be_lost(
    call: str, build: Callable[[timely.Stream], timely.Stream]
) -> None:
    with pytest.raises(
        timely.MisuseError, match=rf"{call} returned a list.*self\.send_by\(0, records, time\)"
    ):
        run(build)


def test_results_of_other_kinds_are_left_alone() -> None:
    def recv(self: timely.Vertex, edge: int, message: list[object], time: Time) -> int:
        self.send_by(0, message, time)
        return len(message)

    assert run(lambda stream: stream.stage("mine", of(on_recv=recv))) == [1, 2]
