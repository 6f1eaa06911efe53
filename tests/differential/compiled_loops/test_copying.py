"""Copies of compiled loops: memory of their own, the same from there on, and nothing that counts is left out.

copied_*    tables of a copy name the copy's memory
nothing_*   each attribute is compared, or it is said here why not
"""

from __future__ import annotations

import pytest
from labelled_flows import changes_of, feed, labels

from differential.compiled_loops.loop import KernelLoop
from differential.kernels.compiled_loops.layout import E_OWNERS, E_PROJECTION, M_PROJECTION, P_PARTS, S_AT
from timely import Dataflow
from timely.running.checking.comparable import comparable
from timely.running.core import Worker
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.wire.transport.memory import MemoryNetwork

PAIRS = [(k, k + 1) for k in range(6)]
NOT_COMPARED = {
    # how it was built
    CompiledLoopRunner: {"_dataflow", "_limit", "_members", "ports", "_shift", "leaving", "name"}
    | {"_ahead", "_entries", "_is_alone", "_upstream", "_watched", "recheck", "stage", "tracker", "way"}
    # made anew by each turn
    | {"_calls_left", "may_resume"}
    # of what is reported
    | {"work_told"},
    KernelLoop: {"_by_span", "_elsewhere", "_outs", "_reduces", "_rounds", "_targets", "_to_barriers"}
    | {"_waiting"}
    # follows from the rows that barriers hold
    | {"_held_least"}
    # reports for people
    | {"_round_counts", "_turns", "at"},
}
"""By class, the attributes that do not decide what a loop will do."""


def begun(workers: int) -> Worker:
    """The first worker, with rows in the slots of its loop."""
    network = MemoryNetwork(workers)
    worker = Worker(0, workers, network.transport(0) if workers > 1 else None)
    flow = Dataflow("copied")
    labels(flow)
    instance = worker.install(flow.freeze())
    feed(instance, PAIRS)
    feed(instance, PAIRS[:2], -1)
    for _ in range(9):
        if actions := worker.enabled():
            worker.perform(actions[0])
    return worker


def loop_of(worker: Worker) -> tuple[CompiledLoopRunner, KernelLoop]:
    (runner,) = worker.instance().loops
    assert isinstance(runner.loop, KernelLoop)
    return runner, runner.loop


@pytest.mark.parametrize("workers", [1, 2])
def test_copied_tables_name_the_memory_of_the_copy(workers: int) -> None:
    worker = begun(workers)
    other = worker.fork(MemoryNetwork(workers).transport(0) if workers > 1 else None)
    (_, loop), (runner, copy) = loop_of(worker), loop_of(other)
    assert runner.loop is copy and runner is not loop_of(worker)[0]
    ours, theirs = (
        {
            int(address)
            for table, column in (
                (each._parts.edges, E_PROJECTION),
                (each._parts.edges, E_OWNERS),
                (each._parts.matches, M_PROJECTION),
                (each._parts.steps, P_PARTS),
                (each._slots.table, S_AT),
            )
            for address in table[:, column]
            if address
        }
        for each in (loop, copy)
    )
    assert len(ours) == len(theirs) > 4 and not ours & theirs
    own = {array.ctypes.data for array in (*copy._parts.arrays, *copy._slots._arrays)}
    assert theirs <= own
    assert comparable(worker) == comparable(other)


def test_copied_loops_know_which_traces_are_still_read() -> None:
    """What refreshes a table is an object of the copy: it does not look at the loop that was copied."""
    worker = begun(1)
    other = worker.fork(None)
    worker.instance().input("edges").close()
    worker.run_until_idle()
    feed(other.instance(), [(9, 10)])
    other.run_until_idle()
    assert {(k, v) for k, v, _ in changes_of(other.instance())} >= {(9, 9), (10, 9)}


def test_nothing_is_forgotten_that_decides_what_a_loop_will_do() -> None:
    worker = begun(2)
    before = comparable(worker)
    for part in loop_of(worker):
        for name, kept in list(vars(part).items()):
            setattr(part, name, ["something else"])
            try:
                is_noticed = comparable(worker) != before
            except Exception:  # looked at, and of no sense there
                is_noticed = True
            setattr(part, name, kept)
            assert is_noticed == (name not in NOT_COMPARED[type(part)]), f"{type(part).__name__}.{name}"
    assert comparable(worker) == before
