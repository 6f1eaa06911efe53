"""A vertex that does what a test says, with two inputs before it."""

from __future__ import annotations

from collections.abc import Callable

from progress.times.timestamp import Timestamp
from timely import Dataflow, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.vertex_runner import VertexRunner

__all__ = ["Acts", "acting", "seal"]


class Acts(Vertex):
    """Does at each message and notification what a test says; writes down what it was told."""

    def __init__(
        self,
        on_message: Callable[[Acts, Timestamp], None],
        on_time: Callable[[Acts, Timestamp], None] = lambda vertex, time: None,
    ) -> None:
        self.on_message = on_message
        self.on_time = on_time
        self.notified: list[Timestamp] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.on_message(self, time)

    def on_notify(self, time: Timestamp) -> None:
        self.notified.append(time)
        self.on_time(self, time)


def acting(vertex: Acts) -> tuple[Worker, Instance, VertexRunner]:
    dataflow = Dataflow()
    dataflow.stage(
        "acts", lambda: vertex, [dataflow.input("numbers").feed(), dataflow.input("others").feed()]
    )
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    return worker, instance, next(runner for runner in instance.runners if runner.vertex is vertex)


def seal(worker: Worker, instance: Instance, epoch: int) -> None:
    for name in ("numbers", "others"):
        instance.input(name).seal(epoch)
    worker.run_until_idle()
