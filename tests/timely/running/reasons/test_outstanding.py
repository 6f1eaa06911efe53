"""What a worker has outstanding, and what it knows of all workers."""

from __future__ import annotations

import stuck_flows
from dataflows import frozen

from timely.limits import DATED_EPOCHS_MAX
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.reasons.outstanding import Outstanding
from timely.wire.batch import Records
from timely.wire.reasons import Reason
from timely.wire.transport.memory import MemoryNetwork


def at_work(build: object, workers: int = 1) -> tuple[list[Worker], MemoryNetwork]:
    network = MemoryNetwork(workers)
    made = [Worker(n, workers, network.transport(n) if workers > 1 else None) for n in range(workers)]
    for worker in made:
        worker.install(frozen(build))  # type: ignore[arg-type]  # a builder
    return made, network


def insert(instance: Instance, records: list[object], epoch: int = 0) -> None:
    instance.input("records").append_all(epoch, [Records(records)])


def reasons(worker: Worker, epoch: int) -> list[Reason]:
    return Outstanding(worker.instance(0), epoch, worker.instances).reasons()


def test_an_open_input_is_told_for_its_epoch_and_later_ones() -> None:
    (worker,), _ = at_work(stuck_flows.holds)
    worker.instance(0).input("records").seal(2)
    worker.run_until_idle()
    assert reasons(worker, 2) == []
    (open_,) = reasons(worker, 5)
    assert (open_.kind, open_.stage, open_.time, open_.workers) == ("input", "records", (3,), (0,))
    assert open_.is_first and open_.seconds >= 0.0
    assert open_.site == stuck_flows.line_of("return dataflow.input(")


def test_sealed_rows_that_have_not_entered_are_told() -> None:
    (worker,), _ = at_work(stuck_flows.holds)
    insert(worker.instance(0), [0])
    worker.instance(0).input("records").seal()
    (entering,) = reasons(worker, 0)
    assert (entering.kind, entering.stage, entering.time) == ("entering", "records", (0,))


def test_what_waits_for_a_capability_is_not_the_first_cause() -> None:
    (worker,), _ = at_work(stuck_flows.wants_notification)
    insert(worker.instance(0), [0])
    worker.instance(0).input("others").append_all(0, [Records([0])])
    for name in ("records", "others"):
        worker.instance(0).input(name).seal()
    worker.run_until_idle()
    held, asked = sorted(reasons(worker, 0), key=lambda reason: reason.kind)
    assert (held.kind, held.stage, held.is_first) == ("capability", "holder", True)
    assert held.where == stuck_flows.line_of("# held here")
    assert (asked.kind, asked.stage, asked.is_first) == ("notification", "asks", False)


def test_a_view_has_what_is_on_the_way_and_with_no_worker() -> None:
    workers, network = at_work(stuck_flows.holds, 2)
    insert(workers[0].instance(0), [0, 1])
    for worker in workers:
        worker.instance(0).input("records").seal()
    workers[0].step()
    assert network.in_flight()
    outstanding = Outstanding(workers[0].instance(0), 0, workers[0].instances)
    outstanding.reasons()
    on_the_way = [viewed for viewed in outstanding.view() if viewed.events > viewed.own]
    assert {viewed.reason.kind for viewed in on_the_way} == {"elsewhere", "message"}
    (message,) = [viewed for viewed in on_the_way if viewed.reason.kind == "message"]
    assert (message.events, message.own, message.reason.stage) == (1, 0, "holder")


def test_rows_of_an_inbox_are_in_front_of_their_vertex_and_not_on_the_way() -> None:
    (worker,), _ = at_work(stuck_flows.round_and_round)
    insert(worker.instance(0), [0])
    worker.instance(0).input("records").seal()
    for _ in range(5):
        worker.step()
    outstanding = Outstanding(worker.instance(0), 0, worker.instances)
    (rows,) = [each for each in outstanding.reasons() if (each.kind, each.stage) == ("rows", "spins")]
    assert rows.time[0] == 0 and rows.time[1] > 0
    assert not [v for v in outstanding.view() if v.reason.kind == "message" and v.events > v.own]


def test_ages_are_those_of_the_epochs_and_unknown_for_those_of_long_ago() -> None:
    (worker,), _ = at_work(stuck_flows.asks_far_ahead)
    insert(worker.instance(0), [0])
    for epoch in range(DATED_EPOCHS_MAX + 5):
        worker.instance(0).input("records").seal(epoch)
        worker.run_until_idle()
    outstanding = Outstanding(worker.instance(0), 10**7, worker.instances)
    (asked,) = [reason for reason in outstanding.reasons() if reason.kind == "notification"]
    assert asked.time == (1_000_000,) and asked.seconds == -1.0, "nobody has sealed it"
    assert outstanding._age(DATED_EPOCHS_MAX + 4) >= 0.0
    assert outstanding._age(3) == -1.0
