"""Programs for tests; worker processes import this module."""

from __future__ import annotations

import timely

ROUNDS = 4


@timely.builder
def words(dataflow: timely.Dataflow) -> None:
    """Words, as they come."""
    dataflow.output("words", dataflow.input("words"))


@timely.program
def in_step(worker: timely.ProgramWorker, rounds: int = ROUNDS) -> list[object]:
    """All workers push, and meet, again and again: what each of them pulls."""
    log = worker.sequencer("log")
    pulled: list[object] = []
    for number in range(rounds):
        log.push((worker.index, number))
        worker.barrier()
        # All have pushed by now: nothing of the next round can come before the rest of this one.
        pulled += [log.pull(20.0) for _ in range(worker.workers)]
    return pulled


@timely.program
def silent(worker: timely.ProgramWorker) -> list[object]:
    """One worker pushes many values, the others only listen."""
    log = worker.sequencer()
    if worker.index == worker.workers - 1:
        for number in range(50):
            log.push(number)
    return [log.pull(20.0) for _ in range(50)]


@timely.program
def clients(worker: timely.ProgramWorker) -> list[object]:
    """Each worker is a client of its cluster: the first installs, all insert, one seals."""
    if worker.index == 0:
        worker.cluster.install(words)
    worker.barrier()
    flow = worker.cluster.flow("words")
    flow.input("words").insert([f"of {worker.index}"])
    flow.refresh()
    worker.barrier()
    if worker.index == 0:
        flow.seal(wait=True)
    worker.barrier()
    flow.refresh()
    return sorted(word for _, word in flow.output("words").changes(0, 1))


@timely.program
def fails(worker: timely.ProgramWorker, on: int) -> None:
    """Fails on one worker, while the others wait for it."""
    if worker.index == on:
        raise ValueError(f"no worker {on}")
    worker.barrier()


@timely.program
def leaves(worker: timely.ProgramWorker) -> None:
    """One worker does not come."""
    if worker.index:
        worker.barrier()


@timely.program
def waits(worker: timely.ProgramWorker) -> object:
    """For ever."""
    return worker.sequencer().pull()


def unmarked(worker: timely.ProgramWorker) -> int:
    """A function that worker processes do not call."""
    return worker.index
