"""stages.py: whoever says what when, all workers hear the same in the same order, however they take turns."""

from __future__ import annotations

import random

import programs_on_workers
import pytest
from reference.dataflow import Cluster

from timely.building.dataflow import Dataflow
from timely.client.programs.common_order import FINISHED, SEQUENCED, CommonOrder
from timely.client.programs.stages import OUTPUT, HeardVertex, ProgramVertex, build, of_name, program
from timely.errors import MisuseError


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_all_workers_hear_the_same_in_any_order_of_steps(workers: int, seed: int) -> None:
    orders: list[CommonOrder] = []

    def flow(dataflow: Dataflow) -> None:
        order = CommonOrder()
        orders.append(order)
        said = dataflow.source("program", lambda: ProgramVertex(order, bool))
        dataflow.output(OUTPUT, said.broadcast().stage("heard", lambda: HeardVertex(order)))

    rng = random.Random(seed)
    cluster = Cluster(flow, workers=workers, seed=seed)
    cluster.harry(rng, 5)
    cluster.run()
    said = [0] * workers
    for _ in range(20):
        worker = rng.randrange(workers)
        orders[worker].say(SEQUENCED, "", said[worker])
        said[worker] += 1
        cluster.harry(rng, rng.randrange(6))
    for worker, order in enumerate(orders):
        order.say(FINISHED, "", f"result {worker}")
        cluster.harry(rng, 3)
    cluster.run()
    heard = [list(order._heard[""]) for order in orders]
    assert heard[1:] == heard[:-1], "the same on all workers"
    for worker, count in enumerate(said):
        assert [value for by, value in heard[0] if by == worker] == list(range(count))
    assert all(order._finished == set(range(workers)) for order in orders)
    assert all(instance.is_complete() for instance in cluster.instances)


def test_workers_call_no_function_that_is_not_a_program() -> None:
    with pytest.raises(MisuseError, match="'programs_on_workers:unmarked': unmarked is not marked as one"):
        of_name(Dataflow("test"), "programs_on_workers:unmarked", {}, [])
    with pytest.raises(MisuseError, match="has no function 'nothing'"):
        of_name(Dataflow("test"), "programs_on_workers:nothing", {}, [])
    with pytest.raises(MisuseError, match="marks a function, not a type"):
        program(int)


def test_the_stage_has_the_name_of_the_program() -> None:
    dataflow = Dataflow("test")

    def sorting(worker: object) -> None: ...

    build(dataflow, sorting, {}, [])
    assert "program sorting" in [declared.name for declared in dataflow.stages]


def test_the_stage_in_a_worker_process_has_the_line_of_the_program() -> None:
    dataflow = Dataflow("test")
    of_name(dataflow, "programs_on_workers:fails", {}, [])
    line = programs_on_workers.fails.__code__.co_firstlineno
    (stage,) = (declared for declared in dataflow.stages if declared.name == "program fails")
    assert str(stage.site) == f"{programs_on_workers.__file__}:{line}"


def test_coroutine_functions_are_no_programs() -> None:
    async def waiting(worker: object) -> None: ...

    with pytest.raises(MisuseError, match="'waiting' is a coroutine function.* asyncio.run"):
        build(Dataflow("test"), waiting, {}, [])
