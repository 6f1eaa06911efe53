"""A vertex acts in the thread of its worker: each call of another thread is refused, and both are named.

Each test calls what a vertex may call from a thread of its own, once while the vertex waits for that thread,
and once when its callback has long returned, and goes on afterwards: nothing that was refused may be counted.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Final

import msgpack
import pytest
from calling_threads import CALLS, threads

import timely
from progress.times.timestamp import Timestamp
from timely.running.core import Worker

_SECONDS: Final = 30.0


@pytest.fixture(scope="module", params=["processes", "1", "2 in turn", "2 in threads"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    kind = str(request.param)
    if kind == "processes":
        made = timely.connect(workers=2)
    else:
        made = timely.connect(workers=int(kind[0]), embedded=True, threads="threads" in kind)
    with made as cluster:
        yield cluster


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_another_thread_is_refused_and_changes_nothing(cluster: timely.Cluster, call: str) -> None:
    flow = cluster.install("calling_threads:threads" if cluster._workers.addresses else threads, call=call)
    for epoch in range(2):
        flow.input("records").insert([f"of epoch {epoch}"])
        flow.seal()
    flow.wait(1, timeout=_SECONDS)  # what is counted wrongly never becomes complete
    told = [str(record) for _, record in flow.output("told").changes_nowait()]
    assert len(told) == 2
    for name in ("at once", "later"):
        (text,) = [text for text in told if f"in the thread {name!r}" in text]
        who = r"'threads' \(stage 1, worker 0 of \d\)"
        where = rf"in the thread '{name}' \(\d+\), but its worker runs it in the thread '[\w -]+' \(\d+\)"
        assert re.match(f"{who} {CALLS[call][1]} {where}: a vertex sends, asks and holds in", text), text
    flow.uninstall()


def test_who_lets_a_worker_work_may_change_from_step_to_step() -> None:
    """Embedded it is whoever asks: each has the turn, and none of them is a stranger."""

    class Notified(timely.Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.notify_at(time)

        def on_notify(self, time: Timestamp) -> None:
            self.send_by(0, [threading.current_thread().name], time)

    dataflow = timely.Dataflow()
    dataflow.output("names", dataflow.input("records").stage("notified", Notified))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    for name in ("ada", "bob"):
        instance.input("records").send([name])
        instance.input("records").seal()
        thread = threading.Thread(target=worker.run_until_idle, name=name)
        thread.start()
        thread.join(_SECONDS)
    read = instance.output("names").log.changes(0, 2).to_pylist()
    assert [msgpack.unpackb(row["record"]) for row in read] == ["ada", "bob"]
