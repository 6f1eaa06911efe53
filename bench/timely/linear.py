"""Are costs linear: in stages, in epochs, and in pointstamps?

    chain, fan, loops   a dataflow of N stages, one behind the other, side by side, or in loops in loops, is
                        installed on one worker; then a record goes through it, four times: the least counts
    epochs              N epochs with a record each are sealed one by one, and go through three stages
    pointstamps         a vertex holds N epochs; then one more is held and given up, a thousand times

Estimate: an install takes 100 µs and 8 KiB a stage, a record 5 µs, an epoch 3 activations with some
20 µs around them; a held pointstamp more costs the logarithm of their number, some µs in all. So each
column "µs" stays within a factor of two from 100 on, whatever N is.

    python -m bench.timely.linear [--shapes SHAPE …] [--write FILE]

Seconds are those of the processor. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import timely
from bench.machine import machine
from progress.times.timestamp import Timestamp
from timely.running.core import Worker
from timely.running.instance import Instance

__all__ = ["SIZES", "main", "measure"]

_COUNTS = (10, 100, 1_000, 10_000)
SIZES = {
    "chain": _COUNTS,
    "fan": _COUNTS,
    "loops": _COUNTS,
    "epochs": _COUNTS,
    "pointstamps": (1, *_COUNTS, 100_000),
}
_ROUNDS = 3
_CHANGES = 1_000


class PassesVertex(timely.Vertex):
    """Sends on what it gets."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


class TurnsVertex(timely.Vertex):
    """Sends on what comes before the last iteration, or what comes in the last."""

    def __init__(self, in_last: bool) -> None:
        self.in_last = in_last

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if (time[-1] == _ROUNDS - 1) == self.in_last:
            self.send_by(0, message, time)


class HoldsVertex(timely.Vertex):
    """Holds as many epochs as a message says."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        (count,) = message
        assert isinstance(count, int)
        for epoch in range(count):
            self.hold_word(self.code.pack((epoch + 1,)))


def _chain(dataflow: timely.Dataflow, stream: timely.Stream, count: int) -> timely.Stream:
    for number in range(count):
        stream = stream.stage(f"s{number}", PassesVertex)
    return stream


def _fan(dataflow: timely.Dataflow, stream: timely.Stream, count: int) -> timely.Stream:
    feeds = [stream.stage(f"s{number}", PassesVertex).feed() for number in range(count)]
    return dataflow.stage("last", PassesVertex, feeds)[0]


def _loops(dataflow: timely.Dataflow, stream: timely.Stream, count: int) -> timely.Stream:
    """Return the stream behind a loop with ten loops in it, or fewer."""
    inside = min(10, max(1, count // 10))
    with dataflow.loop("outer") as outer:
        back = outer.feedback()
        feeds = [outer.enter(stream).feed(), back.stream.feed()]
        (body,) = dataflow.stage("head", PassesVertex, feeds)
        for number in range(inside):
            with outer.loop(f"inner {number}") as inner:
                again = inner.feedback()
                feeds = [inner.enter(body).feed(), again.stream.feed()]
                (rows,) = dataflow.stage("head", PassesVertex, feeds)
                rows = _chain(dataflow, rows, max(1, count // inside - 3))
                again.connect(rows.stage("again", lambda: TurnsVertex(False)))
                body = inner.leave(rows.stage("done", lambda: TurnsVertex(True)))
        back.connect(body.stage("again", lambda: TurnsVertex(False)))
        return outer.leave(body.stage("done", lambda: TurnsVertex(True)))


_BUILDERS = {"chain": _chain, "fan": _fan, "loops": _loops}


def _built(shape: str, count: int) -> tuple[Worker, Instance]:
    dataflow = timely.Dataflow(shape)
    rows = dataflow.input("rows")
    dataflow.output("out", _BUILDERS.get(shape, _chain)(dataflow, rows, count))
    worker = Worker()
    return worker, worker.install(dataflow.freeze())


def _seconds(run: Callable[[], None]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _pass(worker: Worker, instance: Instance, epochs: int = 1) -> None:
    rows = instance.input("rows")
    for epoch in range(epochs):
        rows.send([epoch])
        rows.seal()
        worker.run_until_idle()


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(shape: str, count: int) -> dict[str, float]:
    """Measure one shape at one size, in this process."""
    _pass(*_built(shape, 300), 3)  # kernels are loaded
    before = _peak_mib()
    if shape in _BUILDERS:
        made: list[tuple[Worker, Instance]] = []
        installing = _seconds(lambda: made.append(_built(shape, count)))
        memory = _peak_mib() - before
        passing = min(_seconds(lambda: _pass(*made[0])) for _ in range(4))
        activations = sum(runner.activations for runner in made[0][1].runners) / 4
        return {"install s": installing, "MiB": memory, "µs": passing / activations * 1e6}
    if shape == "epochs":
        worker, instance = _built(shape, 3)
        taken = _seconds(lambda: _pass(worker, instance, count))
        return {"seconds": taken, "MiB": _peak_mib() - before, "µs": taken / count * 1e6}
    dataflow = timely.Dataflow(shape)
    dataflow.output("out", dataflow.input("rows").stage("holds", HoldsVertex))
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("rows").send([count])
    instance.input("rows").seal()
    holding = _seconds(worker.run_until_idle)
    assert instance.tracker.active_count >= count, "they are held"
    stage = next(runner.stage for runner in instance.runners if runner.name == "holds")
    word = instance.runners[stage].code.pack((count + 7,))

    def change() -> None:
        for _ in range(_CHANGES):
            instance.apply([(stage, word, 1)])
            instance.apply([(stage, word, -1)])

    change()
    return {"seconds": holding, "MiB": _peak_mib() - before, "µs": _seconds(change) / _CHANGES / 2 * 1e6}


def _table(found: list[tuple[str, int, dict[str, float]]]) -> str:
    lines = [
        "## Costs that are linear\n",
        "`python -m bench.timely.linear`; processor seconds; MiB: what the peak of the process rose by. "
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.\n",
        "Seconds: of the install; of all epochs; of holding so many times. µs: for each activation, each "
        "epoch, or each change of one pointstamp.\n",
        "| shape | N | seconds | MiB | µs |\n|---|---|---|---|---|",
    ]
    for shape, count, figures in found:
        seconds = figures.get("install s", figures.get("seconds", 0.0))
        lines.append(f"| {shape} | {count:,} | {seconds:.3f} | {figures['MiB']:.1f} | {figures['µs']:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="costs by stages, epochs and pointstamps")
    parser.add_argument("--shapes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "N"), help="one measurement, in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    found: list[tuple[str, int, dict[str, float]]] = []
    for shape in options.shapes:
        for count in SIZES[shape]:
            command = [sys.executable, "-m", "bench.timely.linear", "--one", shape, str(count)]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append((shape, count, json.loads(answer)))
            print(json.dumps({"shape": shape, "n": count, **found[-1][2]}), flush=True)
    if options.write is not None:
        options.write.write_text(_table(found))


if __name__ == "__main__":
    main()
