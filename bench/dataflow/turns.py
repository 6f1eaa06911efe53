"""One workload, a step whenever it is asked for: the other end of `bench/in_turn.py`.

    python -m bench.dataflow.turns FAMILY NUMBERS … --workers N [--threads]

It says `ready`, and then for each line that comes in a figure in milliseconds: for `load` the workload is
built anew, and loaded; for `change N` it follows change N. At the end of the lines it is over.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence

import timely
from bench.dataflow.job import Job
from bench.dataflow.measure import JOBS, Checked, connected, load, timed_changes, warm_up

__all__ = ["main"]


class _Workload:
    def __init__(self, cluster: timely.Cluster, job: Job) -> None:
        self._cluster = cluster
        self._job = job
        self._flow: timely.Flow | None = None
        self._checked: Checked | None = None

    def load(self) -> float:
        """Processor time where the workers are in this process, for that is what others do not slow down."""
        if self._flow is not None:
            self._flow.uninstall()
        self._flow = self._checked = None
        gc.collect()
        flow = self._cluster.install(self._job.build)
        clock = time.process_time if self._cluster.workers == 1 else time.perf_counter
        begin = clock()
        load(flow, self._job)
        seconds = clock() - begin
        self._flow, self._checked = flow, Checked(flow, self._job)
        self._checked.more()
        gc.collect()
        return seconds * 1e3

    def change(self, number: int) -> float:
        """The answer is read, and forgotten, as by `measure`."""
        assert self._flow is not None and self._checked is not None, "first a load"
        milliseconds = timed_changes(self._flow, self._job, number, number + 1)
        self._checked.more()
        return milliseconds


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="one workload, step by step")
    parser.add_argument("workload", choices=sorted(JOBS))
    parser.add_argument("sizes", type=int, nargs="+", metavar="NUMBERS")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", action="store_true")
    options = parser.parse_args(arguments)
    with connected(options.workers, options.threads) as cluster:
        warm_up(cluster, options.workload)
        workload = _Workload(cluster, JOBS[options.workload](*options.sizes))
        print("ready", flush=True)
        for line in sys.stdin:
            step, *numbers = line.split()
            took = workload.load() if step == "load" else workload.change(int(numbers[0]))
            print(took, flush=True)


if __name__ == "__main__":
    main()
