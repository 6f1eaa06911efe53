"""What does each progress mode cost: messages, bytes, processor time, and how long a barrier takes?

    told       four programs on 8 workers, 4 on each of 2 hosts, whose messages wait in queues: messages and
               bytes of progress that each mode sends
    barrier    2 … 1,024 workers, up to 64 on a host, simulated: every worker seals an epoch as soon as it
               knows the last one to be complete, and sends no rows. The workers are those of production, and
               so is every message; only clock and network are simulated. A step takes as long as it takes the
               processor here. How long messages take, and how long workers are kept from running ("stalls",
               the micro-stragglers of the Naiad paper), is drawn from what `--measure` has measured
    processes  epochs one by one on 2 and 4 worker processes

Where we should lose: `demand` with one epoch at a time sends what `eager` sends, and looks first whether it
must; `host` takes a second and a third message, one after the other, on few workers, where `eager` takes one.

    python -m bench.timely.progress_modes [--parts told barrier processes] [--workers N …] [--write FILE]
    python -m bench.timely.progress_modes --measure

Estimate for 1,024 workers: `eager` sends 1,047,552 messages a round, some 15 µs each for sender and receiver
together, so 15 ms for each worker. `host` (16 hosts of 64) sends 2 · 1,008 + 240: each worker one and takes
one, and a hub takes 78 and sends 78.
"""

from __future__ import annotations

import argparse
import heapq
import multiprocessing
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import timely
from bench.machine import machine
from progress.times.timestamp import Timestamp
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.sending.modes import PROGRESS_MODES
from timely.running.sending.telling import telling_of
from timely.wire.batch import Frame
from timely.wire.transport import Lent

__all__ = ["Barrier", "Network", "barrier", "main", "told"]

PER_HOST = 64
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)
NEAR_US = (6.1, 7.8, 8.2, 8.2, 8.3, 20.6, 24.7, 437.0)
"""How long a message takes within a host, at these quantiles: half of a round trip of 100 bytes between two
processes, by a Unix socket."""
FAR_US = (8.2, 8.5, 8.8, 10.1, 10.2, 18.2, 169.4, 459.1)
"""The same by tcp, also within this machine: no network was there to be measured."""
SLICE_US = 1_000.0
"""Longer gaps are the time slices of other programs on the same core, which a worker has to itself."""
STALLS_PER_SECOND = 36.7
STALL_US = (50.0, 61.0, 85.0, 170.0, 422.0, 838.0, 838.0, 838.0)
"""How long a process that only looks at the clock is kept from it, if for 50 µs or more."""


def drawn(rng: random.Random, values: Sequence[float]) -> float:
    """Return a value from a distribution that is given at `QUANTILES`, in seconds."""
    at = rng.random()
    for low, high, first, last in zip(QUANTILES, QUANTILES[1:], values, values[1:], strict=False):
        if at <= high:
            return 1e-6 * (first + (last - first) * (at - low) / (high - low))
    return 1e-6 * values[-1]


class Network:
    """Messages between workers, each on its way for a while. `now` is the time of whoever acts."""

    def __init__(self, workers: int, per_host: int, rng: random.Random | None) -> None:
        self.now = 0.0
        self.messages = self.bytes = 0
        self.arrived: list[deque[tuple[int, list[memoryview]]]] = [deque() for _ in range(workers)]
        self.events: list[tuple[float, int, int, int, list[memoryview]]] = []
        self._per_host, self._rng = per_host, rng
        self._last: dict[tuple[int, int], float] = {}

    def put(self, source: int, target: int, frames: Sequence[Frame]) -> None:
        """Send a message; behind those before it."""
        copies = [memoryview(bytes(frame)) for frame in frames]
        self.messages += 1
        self.bytes += sum(len(frame) for frame in copies)
        at = self.now
        if self._rng is not None:
            is_near = source // self._per_host == target // self._per_host
            at += drawn(self._rng, NEAR_US if is_near else FAR_US)
        at = self._last[source, target] = max(at, self._last.get((source, target), 0.0))
        heapq.heappush(self.events, (at, self.messages, source, target, copies))

    def arrive(self) -> int:
        """Let the next message arrive; return where."""
        self.now, _, source, target, frames = heapq.heappop(self.events)
        self.arrived[target].append((source, frames))
        return target


class _Line:
    """The transport of one worker."""

    def __init__(self, network: Network, index: int) -> None:
        self._network, self._index = network, index

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        self._network.put(self._index, peer, frames)

    def recv_nowait(self) -> list[tuple[int, list[memoryview]]]:
        arrived = self._network.arrived[self._index]
        messages = list(arrived)
        arrived.clear()
        return messages

    def wait(self, timeout_seconds: float) -> None:
        del timeout_seconds

    def lend(self) -> Lent | None:
        return None

    def take_back(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        pass


def cluster(
    mode: str, workers: int, per_host: int, build: Callable[[timely.Dataflow], object], network: Network
) -> list[Worker]:
    """Return workers with a dataflow."""
    group = []
    for index in range(workers):
        telling = telling_of(mode, index, workers, per_host)
        group.append(Worker(index, workers, _Line(network, index), telling=telling))
        dataflow = timely.Dataflow("measured")
        build(dataflow)
        group[-1].install(dataflow.freeze())
    return group


# barrier


class CollectsVertex(timely.Vertex):
    """Takes what comes."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        pass


def empty(dataflow: timely.Dataflow) -> None:
    """Build an input and a vertex that would get its records from all workers."""
    dataflow.input("records").stage("collects", CollectsVertex, exchange=timely.ToWorker(0))


@dataclass(frozen=True)
class Barrier:
    """Rounds of a barrier. In seconds: each round of each worker; processor time of a worker in a round, and
    of that worker which takes most."""

    rounds: list[float]
    messages: float
    bytes: float
    processor: float
    processor_most: float


def barrier(mode: str, workers: int, rounds: int, seed: int, per_host: int = PER_HOST) -> Barrier:
    """Simulate rounds of a barrier, after two that are not counted."""
    rng = random.Random(seed)
    network = Network(workers, per_host, rng)
    group = cluster(mode, workers, per_host, empty, network)
    inputs = [worker.instance().input("records") for worker in group]
    sealed, reached, free = [0] * workers, [0.0] * workers, [0.0] * workers
    stalls = [rng.expovariate(STALLS_PER_SECOND) for _ in group]
    times: list[float] = []
    spent = [0.0] * workers

    def act(index: int, at: float) -> None:
        worker, instance = group[index], group[index].instance()
        while stalls[index] <= at:
            free[index] = max(free[index], stalls[index] + drawn(rng, STALL_US))
            stalls[index] += rng.expovariate(STALLS_PER_SECOND)
        network.now = at = max(at, free[index])
        began = time.thread_time()
        if instance.epochs_done() >= sealed[index] and sealed[index] < rounds + 2:
            if sealed[index] > 2:
                times.append(at - reached[index])
            reached[index] = at
            inputs[index].seal()
            sealed[index] += 1
        worker.step()
        took = time.thread_time() - began
        free[index] = at + took
        if sealed[index] > 2:
            spent[index] += took

    for index in range(workers):
        act(index, 0.0)
    # A worker acts when something has arrived and it is free; what arrives meanwhile is taken together.
    waiting: list[tuple[float, int]] = []
    is_waiting = [False] * workers
    while network.events or waiting:
        if waiting and (not network.events or waiting[0][0] <= network.events[0][0]):
            at, index = heapq.heappop(waiting)
            is_waiting[index] = False
            act(index, at)
            if group[index].instance().epochs_done() >= sealed[index] and sealed[index] < rounds + 2:
                act(index, free[index])
        else:
            index = network.arrive()
            if not is_waiting[index]:
                is_waiting[index] = True
                heapq.heappush(waiting, (max(network.now, free[index]), index))
    assert set(sealed) == {rounds + 2}, "everybody has got through"
    per_round = [seconds / rounds for seconds in spent]
    return Barrier(
        times,
        network.messages / (rounds + 2),
        network.bytes / (rounds + 2),
        statistics.fmean(per_round),
        max(per_round),
    )


def quantile(values: Sequence[float], at: float) -> float:
    """Return the value below which this share of all is."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(at * len(ranked)))]


# told


class TurnsVertex(timely.Vertex):
    """Sends numbers round, one less each time, and out once they are zero."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        numbers = [number for number in message if isinstance(number, int)]
        self.send_by(0, [number - 1 for number in numbers if number > 0], time)
        self.send_by(1, [number for number in numbers if number == 0], time)


def loop(dataflow: timely.Dataflow) -> None:
    """Build a loop in which numbers go from worker to worker."""
    records = dataflow.input("records")
    with dataflow.loop("down") as scope:
        back = scope.feedback()
        feeds = [stream.feed(exchange=hash) for stream in (scope.enter(records), back.stream)]
        again, out = dataflow.stage("turns", TurnsVertex, feeds, outputs=2)
        back.connect(again)
        dataflow.output("out", scope.leave(out))


class PassesVertex(timely.Vertex):
    """Sends on what it gets."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)


@timely.builder
def three(dataflow: timely.Dataflow) -> None:
    """Build three stages, each with an exchange before it."""
    stream = dataflow.input("records")
    for number in range(3):
        stream = stream.stage(f"stage {number}", PassesVertex, exchange=hash)
    dataflow.output("out", stream)


_PROGRAMS: dict[str, tuple[Callable[[timely.Dataflow], object], int, bool]] = {
    "barrier, 100 epochs one by one": (empty, 0, False),
    "three exchanges, 100 epochs one by one": (three, 20, False),
    "three exchanges, 100 epochs at once": (three, 20, True),
    "loop of 10 turns, 100 epochs one by one": (loop, 20, False),
}
"""Title: what is built, rows on each worker in each epoch, whether all epochs are open at once."""


def told(
    mode: str, title: str, workers: int, per_host: int, epochs: int, seed: int
) -> tuple[int, int, float]:
    """Return messages and bytes of progress of all workers, and the processor time of all."""
    build, rows, at_once = _PROGRAMS[title]
    network = Network(workers, per_host, None)
    group = cluster(mode, workers, per_host, build, network)
    rng, sent = random.Random(seed), [0, 0]
    put = network.put

    def counted(source: int, target: int, frames: Sequence[Frame]) -> None:
        if bytes(frames[0])[3] == 2:
            sent[0] += 1
            sent[1] += sum(memoryview(frame).nbytes for frame in frames)
        put(source, target, frames)

    network.put = counted  # type: ignore[method-assign]
    instances: list[Instance] = [worker.instance() for worker in group]
    began = time.thread_time()
    for _ in range(epochs):
        for instance in instances:
            handle = instance.input("records")
            if rows:
                handle.send([rng.randrange(10) for _ in range(rows)])
            handle.seal()
        if not at_once:
            _settle(group, network, rng)
    for instance in instances:
        instance.input("records").close()
    _settle(group, network, rng)
    assert all(instance.is_complete() for instance in instances)
    return sent[0], sent[1], time.thread_time() - began


def _settle(group: list[Worker], network: Network, rng: random.Random) -> None:
    """Let workers step, in an order that is drawn, until nothing is left."""
    while True:
        order = rng.sample(group, len(group))
        happened = [worker.step() for worker in order]
        while network.events:
            network.arrive()
        if not any(happened) and not any(network.arrived):
            return


# processes


def processes(mode: str, workers: int, epochs: int) -> list[float]:
    """Return how long each of some epochs took on worker processes."""
    with timely.connect(workers=workers, progress=mode) as running:
        flow = running.install("bench.timely.progress_modes:three")
        times = []
        for number in range(epochs + 20):
            began = time.perf_counter()
            flow.seal()
            flow.wait(number)
            times.append(time.perf_counter() - began)
    return times[20:]


# measured


def measured() -> None:
    """Print how long messages take here, and how long processes are kept from running."""
    gaps, seconds, last = [], 20.0, time.perf_counter()
    until, slices = last + seconds, 0.0
    while last < until:
        now = time.perf_counter()
        if now - last >= SLICE_US * 1e-6:
            slices += now - last
        elif now - last >= 50e-6:
            gaps.append(1e6 * (now - last))
        last = now
    print(f"other programs had the processor for {slices:.1f} of {seconds:.1f} s, which does not count")
    print(f"STALLS_PER_SECOND = {len(gaps) / (seconds - slices):.1f}")
    print(f"STALL_US = {[round(quantile(gaps, at)) for at in QUANTILES]}")
    for name, address in (("NEAR_US", "AF_UNIX"), ("FAR_US", "AF_INET")):
        print(f"{name} = {[round(quantile(_trips(address), at), 1) for at in QUANTILES]}")


def _trips(family: str) -> list[float]:
    from multiprocessing.connection import Listener

    with Listener(family=family) as listener:
        echo = multiprocessing.Process(target=_echo, args=(listener.address, family))
        echo.start()
        with listener.accept() as line:
            trips = []
            for _ in range(20_000):
                began = time.perf_counter()
                line.send_bytes(b"x" * 100)
                line.recv_bytes()
                took = 5e5 * (time.perf_counter() - began)
                trips += [took] if took < SLICE_US / 2 else []
            line.send_bytes(b"")
        echo.join()
    return trips


def _echo(address: str, family: str) -> None:
    from multiprocessing.connection import Client

    with Client(address, family) as line:
        while data := line.recv_bytes():
            line.send_bytes(data)


def main(arguments: Sequence[str]) -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["told", "barrier", "processes"])
    parser.add_argument("--workers", nargs="+", type=int, default=[2, 8, 64, 256, 1_024])
    parser.add_argument("--eager-max", type=int, default=256, help="workers up to which all tell all")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    if options.measure:
        measured()
        return
    lines = [f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine()}.", ""]

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    if "told" in options.parts:
        say("| 8 workers on 2 hosts | mode | messages | KiB | processor ms |\n|---|---|---|---|---|")
        for title in _PROGRAMS:
            for mode in PROGRESS_MODES:
                messages, size, seconds = told(mode, title, 8, 4, 100, 1)
                say(f"| {title} | {mode} | {messages:,} | {size / 1024:,.0f} | {1e3 * seconds:,.0f} |")
        say("")
    if "barrier" in options.parts:
        say(
            "| workers | mode | rounds | messages a round | KiB a round | processor ms a worker and round | "
            "of the busiest | barrier: median ms | 99.9 % ms |\n|---|---|---|---|---|---|---|---|---|"
        )
        for workers in options.workers:
            for mode in PROGRESS_MODES:
                if mode == "host" or workers <= options.eager_max:
                    say(_row(mode, workers))
        say("")
    if "processes" in options.parts:
        say("| processes | mode | epochs | median µs | 99 % µs |\n|---|---|---|---|---|")
        for workers in (2, 4):
            for mode in PROGRESS_MODES:
                times = [1e6 * seconds for seconds in processes(mode, workers, 1_000)]
                say(
                    f"| {workers} | {mode} | {len(times):,} | {quantile(times, 0.5):,.0f} | "
                    f"{quantile(times, 0.99):,.0f} |"
                )
    if options.write:
        options.write.write_text("\n".join(lines) + "\n")


def _row(mode: str, workers: int) -> str:
    rounds = max(3, min(1_000, 20_000 // workers if mode == "host" else 200_000 // workers**2))
    result = barrier(mode, workers, rounds, 1)
    return (
        f"| {workers:,} | {mode} | {rounds:,} | {result.messages:,.0f} | {result.bytes / 1024:,.1f} | "
        f"{1e3 * result.processor:.3f} | {1e3 * result.processor_most:.3f} | "
        f"{1e3 * quantile(result.rounds, 0.5):.3f} | {1e3 * quantile(result.rounds, 0.999):.3f} |"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
