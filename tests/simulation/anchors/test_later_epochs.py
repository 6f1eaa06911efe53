"""The way back outside of all loops: records come back at later epochs."""

from __future__ import annotations

import random
from typing import cast

import pytest
from random_dataflows import finish, step

import differential as dd
from progress.errors import MisuseError
from progress.times.timestamp import Timestamp
from timely import Dataflow, GraphError, Vertex, connect
from timely.client.tables import records_of
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


class RoundsVertex(Vertex):
    """Sends (n, left - 1) round while left is not 0, and of each record where it was: (n, time)."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        pairs = cast(list[tuple[int, int]], message)
        self.send_by(0, [(n, left - 1) for n, left in pairs if left], time)
        self.send_by(1, [(n, time) for n, _ in pairs], time)


def at_later_epochs(by: int, level_bits: tuple[int, ...] | None = None) -> Dataflow:
    dataflow = Dataflow("later", level_bits=level_bits)
    pairs, back = dataflow.input("pairs"), dataflow.feedback(by)
    feeds = [stream.feed(exchange=lambda pair: sum(pair)) for stream in (pairs, back.stream)]
    round_, seen = dataflow.stage("rounds", RoundsVertex, feeds, outputs=2)
    back.connect(round_)
    dataflow.output("seen", seen)
    return dataflow


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_records_come_back_at_later_epochs_however_few_words_hold(workers: int, seed: int) -> None:
    """Words hold 15 epochs at a time, and records are far ahead of an input that is open: they wait."""
    by = 1 + seed % 3
    network = MemoryNetwork(workers, seed)
    transports = [network.transport(index) if workers > 1 else None for index in range(workers)]
    group = [Worker(index, workers, transport) for index, transport in enumerate(transports)]
    Monitor(group, network)
    instances = [worker.install(at_later_epochs(by, (4,)).freeze()) for worker in group]
    schedule = random.Random(seed)
    instances[0].input("pairs").send([(1, 40), (2, 3)])
    for instance in instances:
        instance.input("pairs").seal()
    finish(group, schedule)
    assert any(instance.arrivals.late for instance in instances), "some records run ahead"
    for _ in range(12):
        for instance in instances:
            instance.input("pairs").seal()
        step(group, schedule, schedule.randint(0, 40))
    for instance in instances:
        instance.input("pairs").close()
    finish(group, schedule)
    assert all(instance.is_complete() for instance in instances)
    seen = [row for each in instances for row in records_of(each.output("seen").log.changes(0, 1000))]
    wanted = [
        (by * round_, (n, (by * round_,))) for n, left in ((1, 40), (2, 3)) for round_ in range(left + 1)
    ]
    assert sorted(seen) == sorted(wanted)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_circle_that_never_rests_holds_up_no_epoch_and_can_be_uninstalled(workers: int) -> None:
    class AgainVertex(Vertex):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            self.send_by(0, message, time)

    def again(dataflow: Dataflow) -> None:
        back = dataflow.feedback()
        feeds = [dataflow.input("numbers").feed(exchange=abs), back.stream.feed(exchange=abs)]
        (going,) = dataflow.stage("again", AgainVertex, feeds)
        back.connect(going)
        dataflow.output("out", going)

    with connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(again)
        flow.input("numbers").insert([1])
        for epoch in range(3):
            flow.seal()
            flow.wait(epoch, timeout=60)
            assert flow.output("out").changes() == [(epoch, 1)]
        flow.uninstall()


@pytest.mark.parametrize("by", [0, -1, True, "2"])
def test_refusing_feedbacks_that_do_not_advance_or_lead_nowhere(by: int) -> None:
    with pytest.raises(MisuseError, match=r"feedback\(by=.*\): `by` is a number of epochs from 1 on"):
        Dataflow().feedback(by)
    dataflow = Dataflow("flow")
    dataflow.output("out", dataflow.input("numbers").concat(dataflow.feedback().stream))
    with pytest.raises(
        GraphError, match=r"'flow' has a feedback \(.*test_later_epochs.py:\d+\) that nothing is connec"
    ):
        dataflow.freeze()


def test_loops_in_a_circle_of_collections_give_what_they_give_stage_by_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A compiled loop whose answers come back to it at later epochs would wait for itself."""

    def reach(dataflow: Dataflow, name: str = "reach") -> None:
        back = dataflow.feedback()
        edges = dd.input(dataflow, "edges", "a: int, b: int")
        nodes = dd.collection(back.stream, "node: int").concat(dd.input(dataflow, "roots", "node: int"))
        found = nodes.iterate(
            lambda reached: (
                reached.join(edges.distinct(), on=[("node", "a")])
                .select(node=dd.col.b)
                .concat(reached)
                .distinct()
            )
        )
        back.connect(
            found.stream().filter(lambda pair: pair[0][0] < 4).map(lambda pair: ((pair[0][0] + 10,), pair[1]))
        )
        found.output("found")

    seen = []
    for compiled in ("1", "0"):
        for workers in (1, 2):
            monkeypatch.setenv("NAIAD_REGIONS", compiled)
            with connect(workers=workers, embedded=True) as cluster:
                flow = cluster.install(reach, name="reach")
                flow.input("edges").insert([(1, 2), (2, 3), (12, 5)])
                flow.input("roots").insert([(1,)])
                rows = []
                for epoch in range(3):
                    flow.seal()
                    rows += flow.output("found").changes(epoch, epoch + 1).to_pylist()
                seen.append(sorted(map(str, rows)))
    assert len(seen[0]) == 7 and seen == [seen[0]] * 4, seen
