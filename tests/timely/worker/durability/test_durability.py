"""The durable part of a worker: dataflows by name, which begin again together, and written decisions.

named_*      one dataflow under each name
gone_*       dataflows that have ended for good
failed_*     dataflows that have ended with an error
together_*   dataflows that read one another
written_*    what cannot be written has not happened
greeted_*    workers of one incarnation
"""

from __future__ import annotations

import errno
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from durable_workers import SECONDS, DurableWorkers, survivors, words
from simulated_store import SimulatedDisk, SimulatedStore

from timely import GraphError, MisuseError, PeerError, StoreError, UninstalledError, VertexError
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.incarnations import announce
from timely.durable.past import Past, read_orders
from timely.wire.handshake import CutLog, Greeting, check_greeting
from timely.wire.requests import (
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Hello,
    Install,
    Stats,
    Uninstall,
    Value,
)
from timely.worker.answers.later import Later

VARIED = "durable_flows:varied"


def past_of(workers: DurableWorkers) -> Past:
    """What the next incarnation would read; this one is fenced by it."""
    return read_orders(logs_of(workers.store, announce(workers.store, 1)))


def pair(a: int, b: int) -> pa.Table:
    return pa.table({"a": pa.array([a], pa.int64()), "b": pa.array([b], pa.int64())})


def insert(workers: DurableWorkers, dataflow: int, sequence: int, a: int, worker: int = 0) -> None:
    workers.ask(Deliver(dataflow, "rows", "w", sequence, IN_OPEN, 0, 1), pair(a, sequence), worker)


def install(workers: DurableWorkers, spec: str = VARIED, **arguments: Value) -> int:
    return workers.ask(Install(spec, arguments)).integer("dataflow")


# named_


@pytest.mark.parametrize("count", [1, 3])
def test_named_dataflow_is_installed_once_and_comes_back_under_its_number(count: int) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, count) as workers:
        assert [install(workers), install(workers, "durable_flows:exporting"), install(workers)] == [0, 1, 0]
        insert(workers, 0, 0, 5)
        workers.seal(0)
    for life in range(2):
        with DurableWorkers(disk, 2) as workers:
            hello = workers.ask(Hello())
            assert [number for number, _ in hello.values["dataflows"]] == [0, 1]  # type: ignore[misc]
            assert hello.integer("incarnation") == life + 2
            reply = workers.ask(Install(VARIED, {}))
            assert (reply.integer("dataflow"), reply.integer("epoch")) == (0, 1)
            assert workers.read("counts", 1) == [(0, 5, 1, 1)]
    with DurableWorkers(disk, 1) as workers:
        assert install(workers, "durable_flows:shop") == 2


def test_named_dataflow_is_refused_as_another_query_with_the_stage_that_differs() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        install(workers)
        for _ in range(2):
            with pytest.raises(MisuseError, match="one query under each name") as running:
                install(workers, column="b")
        assert install(workers) == 0
    assert f"under {VARIED!r} the store has another one: stage " in str(running.value)
    assert "was\n    " in str(running.value) and "and is now\n" in str(running.value)
    assert "uninstall the old one first" in str(running.value)
    assert f"cluster.replace({VARIED!r}, the changed one)" in str(running.value)


def test_named_dataflow_that_the_store_has_is_not_started_as_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import durable_flows

    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        install(workers)
    changed: Callable[..., None] = durable_flows.exporting
    monkeypatch.setattr(durable_flows, "varied", changed)
    with pytest.raises(MisuseError, match="one query under each name") as failed:
        DurableWorkers(disk)
    assert f"the store has this dataflow under the name {VARIED!r}, number 0" in failed.value.__notes__
    monkeypatch.undo()
    with DurableWorkers(disk) as workers:
        assert install(workers) == 0


def test_named_dataflow_that_cannot_be_built_leaves_its_name_free() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        with pytest.raises(VertexError, match="no such query"):
            install(workers, fails=True)
        number = install(workers)
        assert number == 1
    with DurableWorkers(disk) as workers:
        assert list(workers.durable[0].past.flows) == [1]


def test_named_dataflows_at_the_start_are_installed_unless_the_store_has_them() -> None:
    disk = SimulatedDisk()
    both = [VARIED, "durable_flows:exporting"]
    with DurableWorkers(disk, 2, installs=both[:1]) as workers:
        insert(workers, 0, 0, 5, worker=1)
        workers.seal(0)
    for count in (3, 1):
        with DurableWorkers(disk, count, installs=both) as workers:
            numbers = [install(workers, spec) for spec in both]
            assert numbers == [0, 1]
            assert workers.read("counts", 1) == [(0, 5, 1, 1)]


def test_named_by_a_query_that_has_travelled_is_its_own_name() -> None:
    from timely.worker.installation import key_of

    assert key_of("m:f", {}) == key_of("m:f", {"name": "q"}) == "m:f"
    assert key_of("m:f", {"name": "q", "token": "t"}) == "q"
    assert key_of("m:f", {"name": 7, "token": "t"}) == "m:f"


# gone_


def test_gone_dataflows_and_their_numbers_stay_gone() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        for spec in ("exporting", "reading"):
            workers.install(spec)
        insert(workers, 0, 0, 5)
        install(workers)
        with pytest.raises(MisuseError, match="is read by dataflow 1"):
            workers.ask(Uninstall(0, False))
        workers.ask(Uninstall(0, True))
    for count in (1, 2):
        with DurableWorkers(disk, count) as workers:
            for gone in range(2):
                for worker in range(count):
                    with pytest.raises(UninstalledError):
                        workers.ask(Describe(gone), worker=worker)
            assert workers.ask(Describe(2)).text("name") == VARIED
    with DurableWorkers(disk) as workers:
        assert workers.install("exporting") == 3
        workers.seal(0, dataflow=3)
        assert workers.read("rows", 1, dataflow=3) == []
    with DurableWorkers(disk) as workers:
        assert list(workers.durable[0].past.flows) == [2, 3]


def test_gone_dataflows_hold_no_memory() -> None:
    disk = SimulatedDisk()
    for restarted in (False, True):
        with DurableWorkers(disk, 2) as workers:
            number = 0 if restarted else install(workers)
            insert(workers, number, 0, 5)
            workers.seal(int(restarted))
            assert workers.read("counts", 1 + restarted)
            held = [weakref.ref(worker.instance(number)) for worker in workers.workers]
            if restarted:
                workers.ask(Uninstall(number, False))
                workers.settle()
                gc.collect()
                assert [instance() for instance in held] == [None, None]
                digests = workers.durable[0].digests
                assert not digests._outputs and not digests._comparisons and not digests._unagreed
                assert install(workers) == 1, "another one has its name"
                assert [key for key, _ in digests._outputs] == [1]


def test_gone_name_is_free_at_once() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        assert install(workers) == 0
        workers.ask(Uninstall(0, False))
        assert install(workers, column="b") == 1
    with DurableWorkers(disk) as workers:
        assert install(workers, column="b") == 1


# failed_


def failing(workers: DurableWorkers) -> int:
    return install(workers, "dataflows:fails_on")


def say(workers: DurableWorkers, dataflow: int, word: str, sequence: int) -> None:
    workers.ask(Deliver(dataflow, "words", "w", sequence, IN_OPEN, 0, 1), words(word))


def test_failed_dataflow_fails_again_and_another_takes_its_place_for_good() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        assert failing(workers) == 0
        install(workers)
        say(workers, 0, "good", 0)
        say(workers, 0, "bad", 1)
        workers.take(Decide(0, 0, seals=True))
        workers.settle()
    with DurableWorkers(disk, 3) as workers:
        with pytest.raises(VertexError, match="cannot bear 'bad'"):
            workers.ask(Describe(0))
        assert install(workers) == 1, "the other one goes on"
        assert failing(workers) == 2
        say(workers, 2, "better", 0)
        workers.seal(0, dataflow=2)
    with DurableWorkers(disk, 2) as workers:
        past = workers.durable[0].past
        assert list(past.flows) == [1, 2]
        reason, classes = past.gone[0]
        assert "cannot bear 'bad'" in reason and classes[0] == "VertexError"
        assert failing(workers) == 2
        assert workers.read("words", 1, dataflow=2) == [(0, "better")]
        with pytest.raises(VertexError, match="cannot bear 'bad'"):
            workers.ask(Describe(0))


def test_failed_dataflow_stays_if_what_is_to_take_its_place_cannot_be_built() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        install(workers)
        insert(workers, 0, 0, 5)
        workers.workers[0].fail(0, ValueError("by chance"))
        with pytest.raises(VertexError, match="no such query"):
            install(workers, fails=True)
        assert workers.durable[0].number_of(VARIED) is None
    with DurableWorkers(disk) as workers:
        assert list(workers.durable[0].past.flows) == [0]
        workers.seal(0)
        assert workers.read("counts", 1) == [(0, 5, 1, 1)], "nothing of it is lost"
        workers.workers[0].fail(0, ValueError("by chance"))
        with pytest.raises(VertexError):
            install(workers, fails=True)
        assert install(workers) == 2
    with DurableWorkers(disk) as workers:
        assert list(workers.durable[0].past.flows) == [2]
        assert "by chance" in workers.durable[0].past.gone[0][0]


def test_failed_owner_takes_its_readers_along_for_good() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        for spec in ("exporting", "reading"):
            workers.install(spec)
        workers.workers[0].fail(0, ValueError("by chance"))
        workers.settle()
        assert workers.install("exporting") == 2
    with DurableWorkers(disk, 2) as workers:
        assert list(workers.durable[0].past.flows) == [2]
        assert workers.install("reading") == 3
        insert(workers, 2, 0, 5)
        workers.seal(0, dataflow=2)
        assert workers.read("counts", 1, dataflow=3) == [(0, 5, 1, 1)]


# together_


@pytest.mark.parametrize(("count", "then"), [(1, 2), (2, 1), (2, 3)])
def test_together_dataflows_begin_that_read_one_another(count: int, then: int) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, count) as workers:
        workers.install("exporting")
        for epoch in range(3):
            insert(workers, 0, epoch, epoch, worker=epoch % count)
            workers.seal(epoch)
        importing, reading = workers.install("importing"), workers.install("reading")
        first = workers.workers[0].instance(importing).first_epoch
        assert first > 0
        for epoch in range(3, 7):
            insert(workers, 0, epoch, epoch % 3, worker=epoch % count)
            workers.seal(epoch)
            own = pa.table({"a": pa.array([epoch % 3], pa.int64()), "c": pa.array([epoch], pa.int64())})
            deliver = Deliver(importing, "own", "w", epoch, IN_OPEN, epoch, 1)
            workers.ask(deliver, own, (epoch + 1) % count)
            workers.seal(epoch, importing)
        both, counts = workers.read("both", 7, importing), workers.read("counts", 7, reading)
        assert both and counts
    for workers_then in (then, count):
        with DurableWorkers(disk, workers_then) as workers:
            instance = workers.workers[0].instance(importing)
            assert instance.first_epoch == first
            assert workers.read("both", 7, importing) == both
            assert workers.read("counts", 7, reading) == counts
            assert [workers.ask(Describe(number)).integer("epoch") for number in range(3)] == [7, 7, 7]


def offered(workers: DurableWorkers, epochs: range) -> None:
    """Seal epochs with a row each, which nobody works on yet."""
    for epoch in epochs:
        workers.take(Deliver(0, "rows", "w", epoch, IN_OPEN, 0, 1), pair(7, epoch))
        workers.take(Decide(0, epoch, seals=True))


def taken(workers: DurableWorkers, stop: int) -> list[tuple[object, ...]]:
    """What `taking` shows before an epoch."""
    return workers.read("both", stop, dataflow=1)


def insert_own(workers: DurableWorkers) -> None:
    own = pa.table({"a": pa.array([7], pa.int64()), "c": pa.array([1], pa.int64())})
    workers.ask(Deliver(1, "own", "w", 0, IN_OPEN, 0, 1), own)


def test_together_a_new_dataflow_begins_with_all_that_the_store_has_of_what_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is installed while the workers are still busy with the rows that a base has as one change."""
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("offering")
        offered(workers, range(3))
    store = SimulatedStore(disk)
    base = fold(logs_of(store, announce(store, 1)))
    assert base is not None and base.flows[0].summed == 2
    with monkeypatch.context() as patch:
        patch.setattr("durable_workers.settle", lambda workers: None)
        workers = DurableWorkers(disk, installs=("durable_flows:taking",))
    with workers:
        insert_own(workers)
        epoch = workers.ask(Describe(1)).integer("epoch")
        workers.seal(epoch, dataflow=1)
        assert (epoch, len(taken(workers, epoch + 1))) == (2, 3)


def test_together_a_dataflow_that_begins_behind_a_cut_is_the_same_behind_its_base() -> None:
    """What it reads is sealed further than it is done, and the base sums up all that is sealed."""
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("offering")
        offered(workers, range(1))
        workers.settle()
        offered(workers, range(1, 4))
        cuts = workers.durable[0].cuts
        cuts.order(CutLog("now", (0,), (0,)))
        assert cuts.step() and not cuts.is_cutting
        assert workers.install("taking") == 1
        insert_own(workers)
        workers.seal(4, dataflow=1)
        workers.seal(4)
        before = taken(workers, 5)
        assert len(before) == 4
        base = fold(cut_logs(workers.store, workers.durable[0].incarnation, "now"), live=1)
        assert base is not None and (base.flows[0].summed, [*base.flows]) == (3, [0])
        disk = survivors(disk)
    with DurableWorkers(disk) as workers:
        assert workers.durable[0].incarnation.base == 1
        assert taken(workers, 5) == before


def test_together_is_each_dataflow_with_all_that_it_is_connected_to() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        for spec in ("exporting", "importing", "reading", "shop"):
            workers.install(spec)
        durability = workers.durable[0]
        durability.past = past_of(workers)
        assert durability._together_with(3) == {0, 1, 2, 3}
        durability._begins_together = False
        assert [durability._together_with(number) for number in range(4)] == [{0, 1, 2}] * 3 + [{3}]


# written_


def full(workers: DurableWorkers) -> None:
    """Let the disk be full, and the log know it."""
    workers.store.disk.failing.update({"write": errno.ENOSPC, "create": errno.ENOSPC})
    log = workers.logs[0]
    with pytest.raises(StoreError, match="Make room"):
        log.wait(log.add(["place", 0, 0, "out", "r", 0, 1.0]), SECONDS)


def roomy(workers: DurableWorkers) -> None:
    """Let the disk have room again."""
    workers.store.disk.failing.clear()
    workers.logs[0].wait(workers.logs[0].position, SECONDS)


def test_written_is_no_seal_while_the_disk_fails_and_rows_are_kept() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        install(workers)
        full(workers)
        insert(workers, 0, 0, 5)
        for request in (Decide(0, 0, seals=True), Decide(0, -1, close=["rows"])):
            with pytest.raises(StoreError, match="Make room"):
                workers.take(request)
        workers.settle()
        assert [worker.instance(0).input("rows").epoch for worker in workers.workers] == [0, 0]
        assert workers.ask(Decide(0, 0)).integer("open") == 0, "a question decides nothing"
        roomy(workers)
        workers.seal(0)
        assert workers.read("counts", 1) == [(0, 5, 1, 1)]
    with DurableWorkers(disk) as workers:
        assert workers.read("counts", 1) == [(0, 5, 1, 1)]


def test_written_is_what_stats_says_of_the_store() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        install(workers)
        first, second = (workers.ask(Stats(), worker=worker).values["store"] for worker in range(2))
        assert isinstance(first, dict) and isinstance(second, dict)
        assert first["incarnation"] == second["incarnation"] == 1 and "since_base_bytes" not in second
        assert first["failing"] == "" and first["unsynced_bytes"] == 0
        workers.durable[0].fold_process("nowhere").note_size(1, 1_000)
        full(workers)
        report = workers.durable[0].report()
        assert "Make room" in str(report["failing"]) and report["unsynced_bytes"] != 0
        assert report["logged_bytes"] == workers.logs[0].size_bytes
        assert report["since_base_bytes"] == workers.logs[0].size_bytes + 1_000 and report["standby"] == []
        roomy(workers)
        assert workers.durable[0].report()["failing"] == ""


def test_written_is_a_seal_as_soon_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.durable.log._RETRY_SECONDS", SECONDS)
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        install(workers)
        full(workers)
        insert(workers, 0, 0, 5)
        disk.failing.clear()
        workers.seal(0)
        assert workers.read("counts", 1) == [(0, 5, 1, 1)]


def entering(workers: DurableWorkers) -> Decide:
    number = workers.durable[0].number
    return Decide(0, 0, enter=[["rows", "w", 0, 1]], incarnation=number)


def test_written_is_no_insertion_that_the_log_refuses_and_it_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        install(workers)
        for worker in range(2):
            workers.ask(Deliver(0, "rows", "w", 0, WHEN_NAMED, 0, 1), pair(worker, 0), worker)
        full(workers)
        with pytest.raises(StoreError):
            workers.take(entering(workers))
        roomy(workers)

        def refuse(*args: object, waits: bool = True) -> int:
            raise StoreError("the log has ended")

        monkeypatch.setattr(workers.logs[0], "add", refuse)
        with pytest.raises(StoreError, match="has ended"):
            workers.take(entering(workers))
        monkeypatch.undo()
        assert workers.ask(entering(workers)).values["entered"] == [[True, 0]]
        assert workers.ask(entering(workers)).values["entered"] == [[False, 0]]
        workers.seal(0)
        assert workers.read("counts", 1) == [(0, 0, 1, 1), (0, 1, 1, 1)]


def test_written_before_the_other_workers_hear_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        install(workers)
        order: list[str] = []
        worker, log = workers.workers[0], workers.logs[0]
        send, add = worker.send_control, log.add
        monkeypatch.setattr(
            worker, "send_control", lambda *args, **more: (order.append("tell"), send(*args, **more))
        )
        monkeypatch.setattr(log, "add", lambda *args, **more: (order.append("write"), add(*args, **more))[1])
        workers.take(Decide(0, 0, seals=True))
        workers.take(Decide(0, -1, close=["rows"]))
        assert order == ["write", "tell", "write", "tell"]
        assert [head[0] for head in orders_of(workers)] == ["sealed", "order"]


def orders_of(workers: DurableWorkers) -> list[list[object]]:
    workers.logs[0].wait(workers.logs[0].position, SECONDS)
    logs = logs_of(workers.store, announce(workers.store, 1))
    heads = [logged.record.head for logged in logs.records()]
    return [head for head in heads if head[0] in ("sealed", "order")]


def test_written_is_no_dataflow_that_the_log_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        journal = workers.durable[0].journal

        def refuse(*args: object) -> None:
            raise StoreError("the log has ended")

        monkeypatch.setattr(journal, "flow", refuse)
        with pytest.raises(StoreError, match="the log has ended"):
            install(workers)
        assert not any(worker.instances for worker in workers.workers)
        monkeypatch.undo()
        assert install(workers) == 1
    with DurableWorkers(disk) as workers:
        assert list(workers.durable[0].past.flows) == [1]


def test_written_dataflow_has_what_its_next_start_needs() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("exporting")
        install(workers, "dataflows:fails_on", word="worse")
        workers.install("reading")
        instance = workers.workers[0].instance(2)
    with DurableWorkers(disk) as workers:
        flows = workers.durable[0].past.flows
        assert [(flow.spec, flow.key) for flow in flows.values()] == [
            (spec, spec)
            for spec in ("durable_flows:exporting", "dataflows:fails_on", "durable_flows:reading")
        ]
        assert flows[2].reads == (0,) and flows[2].fingerprint == instance.frozen.fingerprint
        say(workers, 1, "bad", 0)
        workers.seal(0, dataflow=1)
        assert workers.read("words", 1, dataflow=1) == [(0, "bad")], "it was built with its arguments"


# greeted_


def greeting(**fields: int) -> Greeting:
    return Greeting(13, 3, fields.pop("index", 0), "here", **fields)  # type: ignore[arg-type]


def test_greeted_workers_are_of_one_incarnation() -> None:
    check_greeting(greeting(incarnation=4), greeting(index=1, incarnation=4), 1)
    check_greeting(greeting(), greeting(index=1, incarnation=4), 1)  # it will join that one
    for other in (3, 5, 0):
        with pytest.raises(
            PeerError, match=f"incarnation {other} of a durable cluster, worker 0 of incarnation 4"
        ):
            check_greeting(greeting(incarnation=4), greeting(index=1, incarnation=other), 1)


def test_greeted_dataflow_that_differs_between_workers_is_not_written() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        answer = workers.take(Install(VARIED, {}))
        assert isinstance(answer, Later)
        offers = workers.servers[0].installations._offers[0]
        (own,) = offers.values()
        workers.servers[0].installations.receive(1, replace(own, fingerprint="another"))
        with pytest.raises(GraphError):
            answer.ready()
    with DurableWorkers(disk) as workers:
        assert workers.durable[0].past.flows == {}
        assert workers.durable[0].past.next_number == 0


def test_orders_of_another_worker_than_the_first_are_none_of_its_journal() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        install(workers)
        before = workers.logs[1].position
        workers.ask(Decide(0, 3, seals=True))
        workers.ask(Decide(0, -1, close=["rows"]))
        workers.ask(Uninstall(0, False))
        assert workers.logs[1].position == before
