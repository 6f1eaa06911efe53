"""What a worker says of how long its steps, callbacks, sends and wakes take."""

from __future__ import annotations

import threading
import time

from hypothesis import given, settings
from hypothesis import strategies as st

import timely
from progress.times.timestamp import Timestamp
from timely.running.core import Worker
from timely.running.timings import NAMES, Histogram, Timings


@settings(max_examples=50)
@given(st.lists(st.integers(0, 1 << 62), min_size=1), st.floats(0.01, 1.0))
def test_a_share_of_all_times_is_within_half_an_octave_of_what_is_said(
    times: list[int], share: float
) -> None:
    histogram = Histogram()
    for taken in times:
        histogram.add(taken)
    ordered = sorted(times)
    exact = next(t for at, t in enumerate(ordered, 1) if at >= share * len(times))
    assert exact <= histogram.within_ns(share) * (1 + 1e-9) <= max(1.0, exact * 2**0.5) * (1 + 1e-9) ** 2
    report = histogram.report()
    assert report["count"] == len(times) and report["seconds"] == sum(times) / 1e9


def test_a_worker_without_times_says_nothing() -> None:
    nothing = {"count": 0, "seconds": 0.0, "within": [[0.5, 0.0], [0.99, 0.0], [0.999, 0.0]], "buckets": []}
    assert Histogram().report() == nothing
    assert Timings().report() == [{"name": name, **nothing} for name in NAMES]


class _Waits(timely.Vertex):
    """Takes five milliseconds for each record."""

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        time.sleep(0.005)


def test_each_turn_is_counted_once_and_a_step_contains_its_turns() -> None:
    dataflow = timely.Dataflow("slow")
    dataflow.output("out", dataflow.input("rows").stage("slow", _Waits))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("rows").send([1])
    instance.input("rows").seal()
    worker.run_until_idle()
    timings = worker.timings
    assert sum(timings.callback.counts) == sum(runner.activations for runner in instance.runners)
    assert 5e6 <= timings.callback.total <= timings.step.total
    assert timings.callback.within_ns(1.0) >= 5e6
    assert timings.send.total == timings.wake.total == timings.collector.total == 0


class _Rung(timely.Vertex):
    """Is rung for by a thread, and by a moment."""

    def on_start(self) -> None:
        self.heard = threading.Event()
        self.bell = self.activator()

    def on_recv(self, edge: int, message: list[object], time_: Timestamp) -> None:
        self.activate(after=0.001)

    def on_activate(self) -> None:
        self.heard.set()


def test_the_time_until_a_worker_knows_of_an_alarm_is_told() -> None:
    dataflow = timely.Dataflow("rung")
    dataflow.output("out", dataflow.input("rows").stage("rung", _Rung))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    vertex = next(runner.vertex for runner in instance.runners if isinstance(runner.vertex, _Rung))
    thread = threading.Thread(target=vertex.bell.activate)
    thread.start()
    thread.join()
    time.sleep(0.003)
    worker.run_until_idle()
    assert vertex.heard.is_set() and sum(worker.timings.wake.counts) == 1
    assert worker.timings.wake.total >= 3e6
    instance.input("rows").send([1])
    instance.input("rows").seal()
    worker.run_until_idle()
    time.sleep(0.004)
    worker.run_until_idle()
    assert sum(worker.timings.wake.counts) == 2, "the moment was over some milliseconds ago"
    worker.run_until_idle()
    assert sum(worker.timings.wake.counts) == 2, "and nothing has rung since"


def test_stats_tell_the_times_of_workers_that_send_to_each_other() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:

        def build(flow: timely.Dataflow) -> None:
            flow.output("out", flow.input("rows").exchange(timely.by()))

        flow = cluster.install(build)
        flow.input("rows").insert(list(range(100)))
        flow.seal(wait=True)
        told = [{timing["name"]: timing for timing in worker["timings"]} for worker in cluster.stats()]
    for timings in told:
        assert tuple(timings) == NAMES
        assert timings["send"]["count"] > 0 and timings["callback"]["count"] > 0
        assert timings["step"]["seconds"] >= timings["callback"]["seconds"]
        assert sum(count for _, count in timings["step"]["buckets"]) == timings["step"]["count"]


def test_a_thread_that_rings_again_does_not_shorten_the_time_of_the_first() -> None:
    timings = Timings()
    timings.ring()
    rung_at = timings.rung_at
    timings.ring()
    assert timings.rung_at == rung_at
