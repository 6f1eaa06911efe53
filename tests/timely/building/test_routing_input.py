"""Stages by a routing that changes: two stages each, and nobody else's connectors are concerned."""

from __future__ import annotations

import pytest

import timely
from timely import Dataflow, ToWorker, Vertex
from timely.operators.router import RouterVertex
from timely.running.core import Worker
from timely.wire.routing import Routing
from timely.wire.transport.memory import MemoryNetwork


def test_rows_pass_a_router_that_every_change_reaches_and_are_exchanged_behind_it() -> None:
    dataflow = Dataflow()
    control, words = dataflow.routing(), dataflow.input("words")
    control.stage("count", Vertex, words, exchange=len)  # type: ignore[arg-type]  # of records that have one
    described = "\n".join(dataflow.freeze().graph.describe())
    assert "'count: rows wait for their routing'" in described and "lead 2" in described
    assert described.count("[broadcast]") == 1 and described.count("exchange by len") == 1
    behind = dataflow.freeze().connectors[-1]
    assert behind.route is not None and behind.route.describe().startswith("exchange by len")


def test_only_connectors_behind_a_router_have_another_routing_than_the_default() -> None:
    dataflow = Dataflow()
    control, words = dataflow.routing(lead=0), dataflow.input("words")
    control.stage("asks for it", Vertex, words, exchange=lambda _: 0)
    words.stage("does not", Vertex, exchange=ToWorker(0))
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    for worker in workers:
        worker.install(dataflow.freeze())
    workers[0].instance().input("routing").send([(0, 1)])
    for _ in range(10):
        for worker in workers:
            worker.instance().input("routing").seal(0)
            worker.step()
    for worker in workers:
        instance = worker.instance()
        (router,) = (one for one in instance.runners if isinstance(one.vertex, RouterVertex))
        (changed,) = router.outputs[0]
        assert changed.routing.owners_at(0)[0] == 1
        others = [connector for connector in instance.connectors if connector is not changed]
        assert others and all(connector.routing is Routing.default(2) for connector in others)


class Where(Vertex):
    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        self.send_by(0, [(record, self.worker) for record in message], time)


@timely.builder
def where(dataflow: Dataflow) -> None:
    control = dataflow.routing("routing", lead=1)
    found = control.stage("where", Where, dataflow.input("numbers"), exchange=lambda number: int(str(number)))
    dataflow.output("where", found)


def test_a_client_changes_the_routing_by_inserting_pairs_and_sealing() -> None:
    with timely.connect(workers=3, embedded=True) as cluster:
        flow = cluster.install(where)
        seen: list[object] = []
        for changes in ([], [(0, 2), (1, 0)], [(1, 5)], []):
            flow.input("numbers").insert([0, 1, 1024])
            flow.input("routing").insert(changes)
            flow.seal()
            seen.append(sorted(record for _, record in flow.output("where").changes()))
        default, changed = [(0, 0), (1, 1), (1024, 0)], [(0, 2), (1, 0), (1024, 2)]
        assert seen == [default, default, changed, [(0, 2), (1, 2), (1024, 2)]]
        with pytest.raises(timely.MisuseError, match="a pair"):
            flow.input("routing").insert([(2000, 0)])
