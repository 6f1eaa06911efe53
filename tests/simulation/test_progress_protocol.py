"""The progress protocol under delays: is any worker ever more optimistic than the truth?

safety_*     random dataflows, vertices and delays, checked after every action against an all-knowing count
liveness_*   everything comes to an end (part of every schedule)
mutants_*    the same checks notice when the protocol is broken, each way by name
known_*      what the protocol does not promise

A failure names the seed of its graph and of its schedule; `replay` runs that one alone.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from reference.protocol_model import Fault, Schedule, Table, ViolationError
from strategies_progress import random_graph

from progress.errors import GraphError, PeerError
from progress.graph import ConnectorSpec, Graph, StageSpec
from progress.path_summary import PathSummary
from progress.timestamp import ROOT

GRAPHS = 60
SCHEDULES_PER_GRAPH = 40
STEPS = 50
MUTANT_SCHEDULES_MAX = 600


@cache
def table_of(graph_seed: int) -> Table:
    """One random dataflow: up to five stages, up to two loops deep, every third with restricted stages."""
    return Table(random_graph(random.Random(graph_seed), stages_max=5, depth_max=2, plain=graph_seed % 3 > 0))


def replay(graph_seed: int, seed: int, fault: Fault = Fault.NONE, thorough: bool = False) -> Schedule:
    """Run one schedule; its failure says which it was."""
    schedule = Schedule(table_of(graph_seed), 2 + seed % 2, seed, fault)
    try:
        schedule.run(STEPS, thorough)
    except (ViolationError, PeerError) as error:
        raise type(error)(f"{error}\nreplay({graph_seed}, {seed}, {fault}, {thorough})") from error
    return schedule


def test_safety_no_view_is_ever_more_optimistic_than_the_truth(seed: int, effort: int) -> None:
    notified = 0
    for graph_number in range(GRAPHS):
        for number in range(SCHEDULES_PER_GRAPH * effort):
            schedule_seed = hash((seed, graph_number, number)) % 2**31
            notified += replay(graph_number + seed % 1000, schedule_seed).notified
    assert notified > GRAPHS * SCHEDULES_PER_GRAPH // 4, "the schedules are too poor to prove anything"


def test_safety_what_is_under_way_is_justified_and_trackers_are_right_throughout(
    seed: int, effort: int
) -> None:
    for graph_number in range(GRAPHS):
        for number in range(effort):
            replay(graph_number + seed % 1000, hash((seed, -1, graph_number, number)) % 2**31, thorough=True)


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE])
def test_mutants_a_broken_protocol_is_noticed(fault: Fault) -> None:
    for number in range(MUTANT_SCHEDULES_MAX):
        try:
            replay(number % GRAPHS, number, fault)
        except ViolationError:
            return
    pytest.fail(f"{MUTANT_SCHEDULES_MAX} schedules with {fault} and nobody noticed")


def test_mutants_payloads_that_overtake_are_refused_by_number() -> None:
    schedule = Schedule(table_of(0), 2, 0)
    for _ in range(2):
        schedule._count(schedule.workers[0], (0, 0), 1)
        schedule._flush(schedule.workers[0])
    schedule.wires[0, 1].rotate()
    with pytest.raises(PeerError, match="overtaken"):
        schedule._deliver_to(schedule.workers[1])


def test_mutants_a_feedback_that_does_not_advance_is_refused_when_built() -> None:
    loop = ROOT.loop()
    with pytest.raises(GraphError, match="does not advance"):
        Graph([StageSpec("body", loop, 1, 1)], [ConnectorSpec(0, 0, 0, 0, PathSummary.identity(loop))])


def test_known_workers_may_hear_of_a_receipt_before_the_sending() -> None:
    """Counts dip below zero at a third worker; its frontier waits all the same."""
    dipped = 0
    for number in range(200):
        schedule = Schedule(table_of(number % 10), 3, number)
        for _ in range(STEPS):
            schedule._act(schedule.random.choice(schedule.workers), schedule.random.random())
            schedule.check()
            dipped += any(
                count < 0 for worker in schedule.workers for _, _, count, _ in worker.tracker.active()
            )
    assert dipped > 0
