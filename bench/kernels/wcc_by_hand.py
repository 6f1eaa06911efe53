"""What do the machines of join and reduce cost by themselves, on the workload "wcc plain"?

    python bench/kernels/wcc_by_hand.py [vertices] [edges] [changes] [--profile]

Connected components by label propagation, as `iterate` would run it, but scheduled by hand: no vertices, no
progress tracking, no transport. What the whole runtime takes on top is the difference to `bench/dataflow`.
Inputs and checks are those of WORKLOADS.md: each change removes one edge and inserts another. Prints one line
of figures and the check sums (n, components, sum of labels, hash) after the load and after the changes.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from differential.operators.join import LEFT, RIGHT, JoinMachine
from differential.operators.reduce import Aggregates, ReduceMachine
from progress._compile import Int64s
from progress.time_words import TimeCode, TimeLayout
from progress.timestamp import TimeShape

CODE = TimeCode(TimeLayout.default(2), TimeShape.ROOT.loop())
EPOCH = CODE.pack((1, 0))
MULTIPLIER, INCREMENT = 6364136223846793005, 1442695040888963407


def draws(seed: int, below: int, count: int) -> Int64s:
    """The first `count` draws of the workloads' generator."""
    state, out = seed, np.empty(count, np.int64)
    for index in range(count):
        state = (state * MULTIPLIER + INCREMENT) & (1 << 64) - 1
        out[index] = (state >> 33) % below
    return out


class Components:
    """The loop of `wcc plain`: labels = nodes@0 + (least label of neighbours and nodes - nodes)@+1."""

    def __init__(self) -> None:
        guards = CODE.guards
        # labels (node, label) with edges (source, target) make (target, label)
        self.join = JoinMachine(1, 1, 1, guards, [("right", 0), ("left", 0)])
        self.reduce = ReduceMachine(1, 1, guards, Aggregates((("min", 0),)))
        self.rows_out = 0
        self.spent = dict.fromkeys(("join", "recv", "advance", "rest"), 0.0)
        self.activations = 0

    def run_epoch(self, epoch: int, nodes: Int64s | None, edges: Int64s) -> int:
        """Bring in one epoch's changes of nodes (a column) and edges (int64[3, n]: source, target, diff)."""
        time_word = CODE.pack((epoch, 0))
        both = np.empty((4, 2 * edges.shape[1]), np.int64)
        both[0] = np.concatenate([edges[0], edges[1]])
        both[1] = np.concatenate([edges[1], edges[0]])
        both[2] = time_word
        both[3] = np.concatenate([edges[2], edges[2]])
        labels = np.empty((4, 0), np.int64)
        negated = labels
        if nodes is not None:
            labels = np.stack([nodes, nodes, np.full_like(nodes, time_word), np.ones_like(nodes)])
            negated = labels.copy()
            negated[2] += CODE.unit
            negated[3] = -1
            self.reduce.recv(labels)
        clock = time.perf_counter()
        self._join(LEFT, labels)
        clock = self._spend("join", clock)
        self._join(RIGHT, both)
        clock = self._spend("join", clock)
        iteration = time_word
        while True:
            frontier = np.array([iteration + CODE.unit, time_word + EPOCH], np.int64)
            clock = self._spend("rest", clock)
            changes = self.reduce.advance(frontier)
            held = self.reduce.capabilities()
            clock = self._spend("advance", clock)
            self.activations += 1
            if changes.shape[1]:
                self.rows_out += changes.shape[1]
                back = changes.copy()
                back[2] += CODE.unit
            else:
                back = changes
            if iteration == time_word and negated.shape[1]:
                back = np.concatenate([back, negated], axis=1)
            clock = self._spend("rest", clock)
            if back.shape[1]:
                self._join(LEFT, back)
                clock = self._spend("join", clock)
                held = self.reduce.capabilities()
            self.join.set_frontiers(frontier, frontier[1:])
            if held.shape[0] == 0:
                break
            iteration = int(held[0])
        done = np.array([time_word + EPOCH], np.int64)
        self.reduce.advance(done)
        self.join.set_frontiers(done, done)
        self._spend("rest", clock)
        return iteration - time_word

    def _join(self, port: int, words: Int64s) -> None:
        if words.shape[1]:
            for out in self.join.recv(port, words):
                self.reduce.recv(out)

    def _spend(self, what: str, since: float) -> float:
        now = time.perf_counter()
        self.spent[what] += now - since
        return now

    def check(self) -> tuple[int, int, int, str]:
        """n, special, sum and hash of WORKLOADS.md."""
        words = self.reduce.output.snapshot()
        assert (words[3] == 1).all()
        x = words[0].astype(np.uint64) << np.uint64(32) | words[1].astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        special = int((words[0] == words[1]).sum())
        return words.shape[1], special, int(words[1].sum()), f"{int(x.sum(dtype=np.uint64)):016x}"


def main() -> None:
    """Run it once and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vertices", type=int, nargs="?", default=100_000)
    parser.add_argument("edges", type=int, nargs="?", default=200_000)
    parser.add_argument("changes", type=int, nargs="?", default=100)
    arguments = parser.parse_args()
    n, e, k = arguments.vertices, arguments.edges, arguments.changes
    ends = draws(1, n, 2 * (e + k)).reshape(-1, 2).T.copy()
    warm = Components()
    warm.run_epoch(0, np.arange(300), np.array([[1, 2, 3], [2, 3, 4], [1, 1, 1]]))
    loop = Components()
    start = time.perf_counter()
    cpu = time.process_time()
    edges = np.concatenate([ends[:, :e], np.ones((1, e), np.int64)])
    loop.run_epoch(0, np.arange(n), edges)
    load, load_cpu = time.perf_counter() - start, time.process_time() - cpu
    print("load", f"{load:.2f} s (cpu {load_cpu:.2f})", {what: round(t, 3) for what, t in loop.spent.items()})
    print("   ", "input rows", loop.reduce.input.rows, "output rows", loop.reduce.output.rows, *loop.check())
    print(
        "    traces MiB",
        [round(t.bytes / 2**20, 1) for t in (loop.reduce.input, loop.reduce.output, *loop.join.traces) if t],
        "peak MiB",
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )
    loop.spent = dict.fromkeys(loop.spent, 0.0)
    loop.activations = 0
    took, cpus = [], []
    for change in range(k):
        rows = np.array(
            [[ends[0, change], ends[0, e + change]], [ends[1, change], ends[1, e + change]], [-1, 1]]
        )
        start, cpu = time.perf_counter(), time.process_time()
        loop.run_epoch(change + 1, None, rows)
        took.append(time.perf_counter() - start)
        cpus.append(time.process_time() - cpu)
    print(
        "change ms: median",
        f"{1e3 * np.median(took):.2f}",
        "mean",
        f"{1e3 * np.mean(took):.2f}",
        "p99",
        f"{1e3 * np.percentile(took, 99):.2f}",
        "cpu median",
        f"{1e3 * np.median(cpus):.2f}",
        {what: round(t * 1e3 / max(k, 1), 3) for what, t in loop.spent.items()},
        "reduce activations",
        loop.activations / max(k, 1),
    )
    print("   ", *loop.check(), "peak MiB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main()
