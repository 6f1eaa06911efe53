"""What does a round of notifications cost: a loop in which every worker waits for all others, without work?

Each worker's vertex asks to be notified at the next iteration when it is notified at this one; nobody sends
anything. So a round is what progress tracking, the worker's step and, with several processes, the way between
them cost. One line of a Markdown table for each number of workers: microseconds of a round, the median of
some runs, and of processor time of this process. 0 workers: one, embedded.

    python -m bench.dataflow.rounds [--workers 0 2] [--rounds 5000] [--runs 5]
"""

from __future__ import annotations

import argparse
import statistics
import time

import timely
from progress.times.timestamp import Timestamp

__all__ = ["RoundsVertex", "build", "microseconds"]


class RoundsVertex(timely.Vertex):
    """Goes round as often as a record says, by notifications alone."""

    def __init__(self) -> None:
        self.rounds = 0

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Begin."""
        (rounds,) = message
        assert isinstance(rounds, int)
        self.rounds = rounds
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        """All are done with this round: the next one."""
        epoch, round_ = time
        if round_ < self.rounds:
            self.notify_at((epoch, round_ + 1))
        else:
            self.send_by(1, [round_], time)


@timely.builder
def build(dataflow: timely.Dataflow) -> None:
    """In: how many rounds. Out: from each worker, the last one."""
    rounds = dataflow.input("rounds")
    with dataflow.loop("rounds") as loop:
        back = loop.feedback()
        begin = loop.enter(rounds).feed(route=timely.Broadcast())
        again, last = dataflow.stage("round", RoundsVertex, [begin, back.stream.feed()], outputs=2)
        back.connect(again)
        done = loop.leave(last)
    dataflow.output("done", done)


def microseconds(flow: timely.Flow, rounds: int) -> tuple[float, float]:
    """What a round takes, and the same of this process's processor time."""
    flow.input("rounds").insert([rounds])
    began, busy = time.perf_counter(), time.process_time()
    flow.seal(wait=True)
    return (time.perf_counter() - began) / rounds * 1e6, (time.process_time() - busy) / rounds * 1e6


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="what a round of notifications costs")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--rounds", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print("| workers | µs a round | processor |\n|---|---|---|")
    for workers in options.workers:
        with timely.connect(workers=workers or 1, embedded=not workers) as cluster:
            flow = cluster.install(build)
            microseconds(flow, options.rounds)
            figures = [microseconds(flow, options.rounds) for _ in range(options.runs)]
        took, busy = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"| {workers or 'embedded'} | {took:.1f} | {busy:.1f} |")


if __name__ == "__main__":
    main()
