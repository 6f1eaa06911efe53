"""What a worker is at while it is in a call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dataflows import frozen

import timely
from timely import Vertex
from timely.running.core import Worker
from timely.running.reasons.calls import call_of
from timely.wire.batch import Records

SECONDS = 10.0


class Waits(Vertex):
    """Is in its callback until it may return."""

    inside = threading.Event()
    may_return = threading.Event()

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.inside.set()
        assert self.may_return.wait(SECONDS)


def build(dataflow: timely.Dataflow) -> None:
    (out,) = dataflow.stage("waits", Waits, [dataflow.input("records").feed()])
    dataflow.output("out", out)


@contextmanager
def worker_in_a_call() -> Iterator[Worker]:
    Waits.inside.clear()
    Waits.may_return.clear()
    worker = Worker()
    instance = worker.install(frozen(build))
    instance.input("records").append_all(0, [Records([1])])
    instance.input("records").seal()
    thread = threading.Thread(target=worker.run_until_idle)
    thread.start()
    try:
        assert Waits.inside.wait(SECONDS)
        yield worker
    finally:
        Waits.may_return.set()
        thread.join()


def test_a_call_is_told_with_the_stage_and_the_line_that_runs() -> None:
    with worker_in_a_call() as worker:
        call = call_of(worker, 2.5)
        assert call is not None
        assert (call.kind, call.dataflow, call.stage, call.number) == ("call", "tested", "waits", 1)
        assert (call.seconds, call.workers) == (2.5, (0,))
        assert call.where.startswith(f"{__file__}:") and call.detail == "in Waits.on_recv"
        assert call.site.startswith(f"{__file__}:") and call.site != call.where
    assert call_of(worker) is None, "it is over"


def test_another_worker_is_not_in_the_call_of_this_one() -> None:
    with worker_in_a_call() as worker:
        other = Worker()
        assert call_of(other) is None
        other.acting.thread = worker.acting.thread
        assert call_of(other) is None


def test_functions_that_work_for_clients_are_calls_too() -> None:
    worker = Worker()
    seen = []

    def answers() -> None:
        seen.append(call_of(worker, entries=(answers.__code__,)))
        seen.append(call_of(worker))

    answers()
    call, none = seen
    assert none is None
    assert call is not None and call.stage == "" and call.where.startswith(__file__)
