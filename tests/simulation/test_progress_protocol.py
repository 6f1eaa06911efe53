"""The progress protocol under delays: is any worker ever more optimistic than the truth?

safety_*     random dataflows, vertices and delays, all predicates after every action
liveness_*   everything comes to an end (part of every schedule)
refused_*    what a worker does not accept from another
known_*      what the protocol does not promise

The same predicates on running workers, and that they notice what is broken: `test_monitor.py`.
A failure names the seed of its graph and of its schedule; `replay` runs that one alone.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from reference.protocol_model import Schedule, Table, ViolationError
from strategies_progress import random_graph

from progress.errors import GraphError, PeerError
from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.times.path_summary import PathSummary
from progress.times.timestamp import ROOT

GRAPHS = 60
SCHEDULES_PER_GRAPH = 4
STEPS = 50


@cache
def table_of(graph_seed: int) -> Table:
    """One random dataflow: up to five stages, up to two loops deep, every third with restricted stages."""
    return Table(random_graph(random.Random(graph_seed), stages_max=5, depth_max=2, plain=graph_seed % 3 > 0))


def replay(graph_seed: int, seed: int) -> Schedule:
    """Run one schedule; its failure says which it was."""
    schedule = Schedule(table_of(graph_seed), 2 + seed % 2, seed)
    try:
        schedule.run(STEPS)
    except ViolationError as error:
        raise ViolationError(f"{error}\nreplay({graph_seed}, {seed})") from error
    return schedule


def test_safety_all_predicates_hold_after_every_action(seed: int, effort: int) -> None:
    notified = 0
    for graph_number in range(GRAPHS):
        for number in range(SCHEDULES_PER_GRAPH * effort):
            schedule_seed = hash((seed, graph_number, number)) % 2**31
            notified += replay(graph_number + seed % 1000, schedule_seed).notified
    assert notified > GRAPHS * SCHEDULES_PER_GRAPH // 4, "the schedules are too poor to prove anything"


def test_refused_payloads_that_overtake_are_refused_by_number() -> None:
    schedule = Schedule(table_of(0), 2, 0)
    for _ in range(2):
        schedule._count(schedule.workers[0], (0, 0), 1)
        schedule._flush(schedule.workers[0])
    schedule.wires[0, 1].rotate()
    with pytest.raises(PeerError, match="overtaken"):
        schedule._deliver_to(schedule.workers[1])


def test_refused_a_feedback_that_does_not_advance_is_refused_when_built() -> None:
    loop = ROOT.loop()
    with pytest.raises(GraphError, match="does not advance"):
        Graph([StageSpec("body", loop, 1, 1)], [ConnectorSpec(0, 0, 0, 0, PathSummary.identity(loop))])


def test_known_workers_may_hear_of_a_receipt_before_the_sending() -> None:
    """Counts dip below zero at a third worker; its frontier waits all the same."""
    dipped = 0
    for number in range(20):
        schedule = Schedule(table_of(number % 10), 3, number)
        for _ in range(STEPS):
            schedule._act(schedule.random.choice(schedule.workers), schedule.random.random())
            schedule.check()
            dipped += any(
                count < 0 for worker in schedule.workers for _, _, count, _ in worker.tracker.active()
            )
    assert dipped > 0
