"""What do the machines of join and reduce cost by themselves, on the workload "wcc plain"?

    python -m bench.kernels.wcc_by_hand [nodes] [edges] [changes]

Connected components by label propagation, as `iterate` would run it, but scheduled by hand: no vertices, no
progress tracking, no transport. What the whole runtime takes on top is the difference to `bench/dataflow`.
Inputs and checks are those of `bench/workloads.py`. Run it twice: the first run may compile.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from bench.workloads import Check, check_wcc, expected, graph
from differential.kernels.history.times import shift_times
from differential.operators.join import LEFT, RIGHT, JoinMachine
from differential.operators.reduce import Aggregates, ReduceMachine
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape

CODE = TimeCode(TimeLayout.default(2), TimeShape.ROOT.loop())
EPOCH = CODE.pack((1, 0))
NO_ROWS = np.empty((4, 0), np.int64)


class Components:
    """The loop of `wcc plain`: labels = nodes@0 + (least label of neighbours and itself - nodes)@+1."""

    def __init__(self) -> None:
        # labels (node, label) with edges (source, target) make (target, label)
        self.join = JoinMachine(1, 1, 1, CODE.guards, [("right", 0), ("left", 0)])
        self.reduce = ReduceMachine(1, 1, CODE.guards, Aggregates((("min", 0),)))
        self.spent = dict.fromkeys(("join", "reduce", "rest"), 0.0)
        self._clock = time.perf_counter()

    def run_epoch(self, epoch: int, nodes: Int64s | None, edges: Int64s) -> int:
        """Bring in one epoch's changes: new nodes, and edges int64[3, n] (source, target, diff).

        Returns how many iterations it took.
        """
        start = CODE.pack((epoch, 0))
        negated = NO_ROWS
        if nodes is not None:
            labels = np.stack([nodes, nodes, np.full_like(nodes, start), np.ones_like(nodes)])
            negated = np.stack([nodes, nodes, labels[2] + CODE.unit, -labels[3]])
            self.reduce.recv(labels)
            self._join(LEFT, labels)
        ends = np.concatenate([edges, edges[[1, 0, 2]]], axis=1)
        self._join(RIGHT, np.stack([ends[0], ends[1], np.full_like(ends[0], start), ends[2]]))
        iteration, iterations = start, 0
        while True:
            frontier = np.array([iteration + CODE.unit, start + EPOCH])
            self._spend("rest")
            changes = self.reduce.advance(frontier)
            self._spend("reduce")
            changes = shift_times(changes, CODE.valid, CODE.unit)
            if iteration == start and nodes is not None:
                changes = np.concatenate([changes, negated], axis=1)
            self._join(LEFT, changes)
            self.join.set_frontiers(frontier, frontier[1:])
            iterations += 1
            held = self.reduce.capabilities()
            if held.shape[0] == 0:
                break
            iteration = int(held[0])
        self.reduce.advance(frontier[1:])
        self.join.set_frontiers(frontier[1:], frontier[1:])
        self._spend("rest")
        return iterations

    def check(self) -> Check:
        """The sums of WORKLOADS.md over the present answer."""
        words = self.reduce.output.snapshot()
        self._clock = time.perf_counter()
        return check_wcc(words[0], words[1], words[3])

    def _join(self, port: int, words: Int64s) -> None:
        self._spend("rest")
        for out in self.join.recv(port, words):
            self.reduce.recv(out)
        self._spend("join")

    def _spend(self, what: str) -> None:
        now = time.perf_counter()
        self.spent[what] += now - self._clock
        self._clock = now

    def take_spent(self, parts: int) -> str:
        """Milliseconds spent since the last call, divided by `parts`, as text."""
        text = ", ".join(f"{what} {1e3 * seconds / parts:.2f}" for what, seconds in self.spent.items())
        self.spent = dict.fromkeys(self.spent, 0.0)
        return text


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Run it once and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("nodes", 100_000), ("edges", 200_000), ("changes", 100)):
        parser.add_argument(name, type=int, nargs="?", default=default)
    arguments = parser.parse_args()
    workload = graph(arguments.nodes, arguments.edges, arguments.changes)
    want = expected(f"wcc {arguments.nodes} {arguments.edges} {arguments.changes}")
    loaded, ends = arguments.edges, np.stack([workload.src, workload.dst])
    Components().run_epoch(
        0, np.arange(9), np.array([[1, 2, 3], [2, 3, 4], [1, 1, 1]])
    )  # kernels into memory
    loop = Components()
    start, worked = time.perf_counter(), time.process_time()
    first = np.concatenate([ends[:, :loaded], np.ones((1, loaded), np.int64)])
    iterations = loop.run_epoch(0, np.arange(arguments.nodes), first)
    took, worked = time.perf_counter() - start, time.process_time() - worked
    spent = loop.take_spent(1)
    after_load = loop.check()
    print(f"load        {took:.2f} s ({worked:.2f} s of processor time), peak {_peak_mib()} MiB")
    print(f"            {iterations} iterations; ms: {spent}")
    print(
        f"            {after_load} {'' if want is None else 'right' if want.load == after_load else 'WRONG'}"
    )
    times, steps = [], 0
    worked = time.process_time()
    for change in range(arguments.changes):
        pair = np.concatenate([ends[:, [change, loaded + change]], [[-1, 1]]])
        start = time.perf_counter()
        steps += loop.run_epoch(change + 1, None, pair)
        times.append(1e3 * (time.perf_counter() - start))
    if times:
        median, worst = np.percentile(times, [50, 99])
        print(f"change      median {median:.2f} ms, mean {np.mean(times):.2f}, 99 % {worst:.2f}")
        worked = 1e3 * (time.process_time() - worked) / len(times)
        print(f"            {worked:.2f} ms of processor time, {steps / len(times):.1f} iterations")
        print(f"            ms: {loop.take_spent(len(times))}")
        last = loop.check()
        print(f"            {last} {'' if want is None else 'right' if want.changes == last else 'WRONG'}")
    print(f"peak        {_peak_mib()} MiB")


if __name__ == "__main__":
    main()
