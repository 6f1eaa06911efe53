"""New versions of dataflows of durable workers, each with a log of its own.

whole_*    a crash leaves the old version or the new one, and never both, nor less than one
held_*     requests while a new version is about to take over
names_*    under which names clients find it
ends_*     versions that fail
stored_*   what is stored of their outputs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers, LocalClient, survivors
from folded_flows import folded
from simulated_store import SimulatedDisk, SimulatedStore
from stored_flows import cluster, rows_in

import differential as dd
import timely
from progress.times.anchor import EPOCH_MAX
from timely.client.session import Flow
from timely.durable import stored
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce, joined
from timely.durable.past import read_orders
from timely.errors import (
    ForgottenError,
    MisuseError,
    ReplacedError,
    StoreError,
    TimelyError,
    UninstalledError,
    VertexError,
)
from timely.running.instance import Instance
from timely.wire.handshake import CutLog
from timely.wire.requests import (
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Install,
    Progress,
    Read,
    Replace,
    Reply,
    Uninstall,
    Value,
)
from timely.worker.answers.later import Later
from timely.worker.durability import restoring, switching
from timely.worker.durability.folds.cuts import epochs_to_store
from timely.worker.replacing import Replacements

SPEC = "version_flows:versions"


def flow_of(workers: DurableWorkers, version: int = 0, spec: str = SPEC) -> Flow:
    """The dataflow as a client has it."""
    client = LocalClient(workers)
    (reply,) = client.ask([(0, Install(spec, {"version": version}), None)])
    return Flow(client, reply)


def deliver(workers: DurableWorkers, flow: int, epoch: int, row: tuple[int, int], worker: int = 0) -> object:
    """Insert a row of a writer of its own."""
    return workers.take(
        Deliver(flow, "edges", f"w{worker}", row[0], IN_OPEN, epoch, 1, [list(row)]), worker=worker
    )


def replace(version: int, old: int = 0) -> Replace:
    return Replace(old, SPEC, {"version": version}, -1.0)


def shown(workers: DurableWorkers, flow: int, stop: int, output: str = "out") -> Counter[tuple[object, ...]]:
    """The changes before `stop`."""
    changes: Counter[tuple[object, ...]] = Counter()
    for worker in range(len(workers.workers)):
        reply = workers.ask(Read(flow, output, 0, stop, 20.0), worker=worker)
        for row in reply.columns().to_pylist():
            diff = row.pop("diff")
            changes[tuple(row.values())] += diff
    return Counter({row: n for row, n in changes.items() if n})


def begun(workers: DurableWorkers) -> Flow:
    """Version 0 with a row in each of two epochs, and one in the open one."""
    flow = flow_of(workers)
    for epoch in range(3):
        workers.known(deliver(workers, flow.index, epoch, (epoch, 1)))  # type: ignore[arg-type]
        if epoch < 2:
            workers.ask(Decide(flow.index, epoch, seals=True))
    return flow


def under_way(workers: DurableWorkers, process: int) -> tuple[bool, bool]:
    """Whether a replacement on a worker is held, and whether it is decided."""
    (one,) = workers.servers[process].replacements._under_way.values()
    return one.held_at >= 0, one.is_decided


OLD = Counter({(0, 1, 0): 1, (1, 1, 1): 1})
SWITCHED = Counter({(0, 1, 2): -1, (1, 0, 2): 1, (1, 2, 2): 1})
"""What the switch to version 4, which turns edges around, changes in epoch 2."""


def both() -> Counter[tuple[object, ...]]:
    found = OLD.copy()
    found.update(SWITCHED)
    return Counter({row: n for row, n in found.items() if n})


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("then", [1, 2])
def test_whole_version_is_there_once_it_was_told(count: int, then: int) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, count) as workers:
        flow = begun(workers)
        assert shown(workers, 0, 2) == OLD
        new = workers.ask(replace(4)).integer("dataflow")
        disk = survivors(disk)
    for life in range(2):
        with DurableWorkers(disk, then + life) as workers:
            again = flow_of(workers, 4)
            assert (again.index, again.epoch, again.name) == (new, 2 + life, flow.name)
            workers.ask(Decide(flow.index, 2 + life, seals=True))  # by the number of the old version
            assert shown(workers, new, 3) == both() == shown(workers, flow.index, 3)
            with pytest.raises(MisuseError, match="the store has another one"):
                flow_of(workers, 0)
        disk = survivors(disk)


def test_whole_frontier_does_not_go_back_while_the_old_version_is_taken_over_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new version has shown nothing, so none of its digests says that there is something to wait for."""
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        begun(workers)
        assert shown(workers, 0, 2) == OLD
        new = workers.ask(replace(4)).integer("dataflow")
        asked = Progress(new, "out", extent=True)

    epochs: list[tuple[restoring._OldVersion, int]] = []

    def held(*args: object) -> restoring._OldVersion:
        older = make(*args)
        epochs.append((older, older.epoch))
        older.epoch = EPOCH_MAX
        return older

    make = cast("Callable[..., restoring._OldVersion]", restoring._OldVersion)
    with monkeypatch.context() as patched:
        patched.setattr(restoring, "_OldVersion", held)
        workers = DurableWorkers(disk)
    with workers:
        answer = workers.take(asked)
        assert isinstance(answer, Later) and answer.ready() is None
        for older, epoch in epochs:
            older.epoch = epoch
        workers.seal(2, new)
        reply = answer.ready()
        assert reply is not None and reply.integer("complete") >= 2


@pytest.mark.parametrize("process", [None, 0, 1])
def test_whole_old_version_is_there_until_all_logs_have_told(process: int | None) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        workers.gate.shut(process)
        answer = workers.take(replace(4))
        workers.settle()
        assert isinstance(answer, Later) and answer.ready() is None
        disk = survivors(disk)
    with DurableWorkers(disk, 2) as workers:
        assert flow_of(workers, 0).epoch == 2
        with pytest.raises(MisuseError, match="the store has another one"):
            flow_of(workers, 4)
        assert workers.ask(replace(4)).integer("dataflow") > 0
        workers.ask(Decide(0, 2, seals=True))
        assert shown(workers, 0, 3) == both()


def at_decision(workers: DurableWorkers) -> Later:
    """Ask for a new version, and let worker 0 decide, but not tell: its log waits."""
    versions = workers.durable[0].versions
    decide = versions.decide

    def decides(old: Instance, new: Instance, epoch: int, lost: Mapping[str, str]) -> int:
        workers.gate.shut(0)
        return decide(old, new, epoch, lost)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "decide", decides)
        answer = workers.take(replace(4))
        workers.settle()
    assert isinstance(answer, Later) and under_way(workers, 0) == (True, True)
    return answer


@pytest.mark.parametrize("is_written", [False, True])
def test_whole_whichever_version_the_log_of_worker_0_has(is_written: bool) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        answer = at_decision(workers)
        if is_written:
            workers.gate.open()
            workers.logs[0].wait(workers.logs[0].position, 20.0)
        assert answer.ready() is None, "nobody has heard of it"
        disk = survivors(disk)
    with DurableWorkers(disk, 3) as workers:
        assert flow_of(workers, 4 if is_written else 0).epoch == 2
        workers.ask(Decide(0, 2, seals=True))
        changes = shown(workers, 0, 3)
        assert changes == (both() if is_written else OLD + Counter({(2, 1, 2): 1}))


def test_held_requests_about_inputs_wait_and_others_do_not() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = begun(workers)
        assert shown(workers, 0, 2) == OLD
        answer = at_decision(workers)
        waiting = [deliver(workers, 0, 2, (9 + worker, 9), worker) for worker in range(2)]
        waiting += [workers.take(Decide(0, 2, seals=True))]
        assert all(isinstance(each, Later) and each.ready() is None for each in waiting)
        assert isinstance(workers.take(Read(0, "out", 0, 2, 20.0)), Reply)
        assert workers.servers[0].replacements.is_switched(1), "there is no way back"
        workers.gate.open()
        assert workers.known(answer).integer("dataflow") == 1
        for each in reversed(waiting[:2]):  # that of worker 1 before worker 0 seals
            workers.known(each)  # type: ignore[arg-type]
        workers.known(waiting[2])
        found = both()
        found.update({(9, 9, 2): 1, (9, 10, 2): 1})
        assert shown(workers, flow.index, 3) == found


def test_held_requests_go_to_the_old_version_if_the_new_one_does_not_make_it() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        workers.gate.shut(1)
        answer = workers.take(replace(4))
        workers.settle()
        assert isinstance(answer, Later) and under_way(workers, 0) == (True, False)
        waiting = workers.take(Decide(0, 2, seals=True))
        assert isinstance(waiting, Later)
        assert "has not caught up in time" in str(answer.late())
        workers.gate.open()
        workers.known(waiting)
        assert shown(workers, 0, 3) == OLD + Counter({(2, 1, 2): 1})
        disk = survivors(disk)
    with DurableWorkers(disk, 1) as workers:
        assert flow_of(workers, 0).epoch == 3
        past = workers.durable[0].past
        assert not past.versions and "has not caught up in time" in past.gone[1][0], "folds need not keep it"


def test_names_of_all_versions_are_those_of_the_last() -> None:
    disk = SimulatedDisk()
    other = "version_flows:also"
    with DurableWorkers(disk) as workers:
        first = begun(workers)
        second = workers.ask(Replace(0, other, {"version": 4}, -1.0)).integer("dataflow")
        assert flow_of(workers, 4, other).index == second
        assert first.name == SPEC
        disk = survivors(disk)
    with DurableWorkers(disk, 2) as workers:
        again = flow_of(workers, 4, other)
        assert (again.index, again.name) == (second, SPEC)
        third = workers.ask(Replace(0, SPEC, {"version": 2}, -1.0)).integer("dataflow")
        disk = survivors(disk)
    with DurableWorkers(disk, 2) as workers:
        assert flow_of(workers, 2).index == third
        for version, spec in ((0, SPEC), (4, other)):
            with pytest.raises(MisuseError, match="the store has another one"):
                flow_of(workers, version, spec)


def test_names_of_other_dataflows_stay_theirs() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        begun(workers)
        beside = flow_of(workers, 0, "version_flows:also")
        workers.ask(Replace(0, "version_flows:also", {"version": 4}, -1.0))
        assert flow_of(workers, 0, "version_flows:also").index == beside.index


def test_names_of_dataflows_that_are_installed_meanwhile_stay_theirs() -> None:
    disk, also = SimulatedDisk(), "version_flows:also"
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        workers.gate.shut(1)
        answer = workers.take(Replace(0, also, {"version": 4}, -1.0))
        workers.settle()
        asked = workers.take(Install(also, {"version": 0}))
        workers.gate.open()
        beside = workers.known(asked).integer("dataflow")  # type: ignore[arg-type]
        assert workers.known(answer).integer("dataflow") != beside  # type: ignore[arg-type]
        assert flow_of(workers, 0, also).index == beside
        disk = survivors(disk)
    with DurableWorkers(disk, 1) as workers:
        assert flow_of(workers, 0, also).index == beside


@pytest.mark.parametrize("is_written", [False, True])
def test_ends_both_versions_if_the_new_one_fails_once_it_is_decided(is_written: bool) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        answer = at_decision(workers)
        workers.workers[0].fail(1, VertexError("at the wrong moment"))
        if is_written:
            workers.gate.open()
        workers.settle()
        with pytest.raises(VertexError, match="at the wrong moment"):
            answer.ready()
        assert not any(worker.instances for worker in workers.workers)
        disk = survivors(disk)
    with DurableWorkers(disk) as workers:
        assert flow_of(workers, 4 if is_written else 0).epoch == 2, "what the log says, begins again"


def test_ends_stay_ends_by_the_number_of_an_old_version() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        begun(workers)
        workers.ask(replace(1))
        workers.ask(replace(2))
        gone = Read(0, "named", 0, 1, 20.0)
        with pytest.raises(TimelyError) as first:
            workers.ask(Read(1, "named", 0, 1, 20.0))
        disk = survivors(disk)
    with DurableWorkers(disk, 2) as workers:
        with pytest.raises(TimelyError) as again:
            workers.ask(Read(1, "named", 0, 1, 20.0))
        assert "the output 'named' is gone" in str(first.value)
        assert str(again.value) == str(first.value)
        with pytest.raises(ReplacedError, match="the output 'other' is another one"):
            workers.ask(Read(0, "other", 0, 1, 20.0))
        with pytest.raises(MisuseError, match="the output 'named' is gone: dataflow 1"):
            workers.ask(gone)


@pytest.mark.parametrize("waits_for", ["standby", "decision"])
def test_whole_if_a_fold_stands_for_what_was_written_by_then(waits_for: str) -> None:
    """A base cannot have a new version that has not taken over; what was written of it counts later."""
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        if waits_for == "decision":
            answer: object = at_decision(workers)
        else:
            workers.gate.shut(1)
            answer = workers.take(replace(4))
            workers.settle()
        for server in workers.servers:
            assert server.durability is not None
            server.durability.cuts.order(CutLog("now", (0,), (1,)))
        workers.gate.open() if waits_for == "standby" else None
        for each in workers.durable:
            while each.cuts.is_cutting:
                assert each.cuts.step()
        if waits_for == "decision":
            workers.gate.open()
        for log in workers.logs:
            log.wait(log.position, 20.0)
        store = workers.store
        present = joined(store, workers.durable[0].number)
        assert fold(cut_logs(store, present, "now"), live=present.number) is not None
        prune(store, present.number, count=1)
        assert workers.known(answer).integer("dataflow") == 1  # type: ignore[arg-type]
        disk = survivors(disk)
    with DurableWorkers(disk, 3) as workers:
        assert flow_of(workers, 4).index == 1
        workers.ask(Decide(0, 2, seals=True))
        assert shown(workers, 1, 3) == both()


def test_whole_base_behind_a_switch_has_nothing_of_the_old_version() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        workers.ask(replace(4))
        workers.ask(Decide(0, 2, seals=True))
        for name in ("out", "values", "other"):
            for worker in range(2):
                if name in flow_of(workers, 4).outputs:
                    workers.ask(Progress(1, name, keep_from=3, drops=True), worker=worker)
        disk = survivors(disk)
    store = SimulatedStore(disk)
    present = announce(store, 1)
    assert fold(logs_of(store, present), forgets=True) is not None
    prune(store, present.number, count=1)
    after = announce(store, 1)
    past = read_orders(logs_of(store, after))
    assert [*past.flows] == [1] and past.flows[1].base is not None
    assert past.flows[1].base.right_from == 2 and past.switches[0].new == 1
    assert past.gone[0][0] == "dataflow 0 was replaced by dataflow 1"
    assert not any(output.files for output in past.flows[1].base.outputs.values())
    with DurableWorkers(disk, 2) as workers:
        assert flow_of(workers, 4).epoch == 3
        tables = [workers.ask(Read(1, "out", -1, 3, 20.0), worker=index).columns() for index in range(2)]
        rows = [(row["src"], row["dst"]) for table in tables for row in table.to_pylist()]
        assert sorted(rows) == [(1, 0), (1, 1), (1, 2)]


def test_whole_what_was_forgotten_of_the_old_version_stays_so_behind_a_fold() -> None:
    """Until the new version is summed up past the switch, a base has what the old one held."""
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        assert shown(workers, 0, 2) == OLD
        for worker in range(2):
            workers.ask(Progress(0, "out", keep_from=1, drops=True), worker=worker)
        assert workers.ask(replace(4)).integer("dataflow") == 1
        assert all(each.digests._outputs[1, "out"].shown >= 2 for each in workers.durable)
        disk = survivors(disk)
    store = SimulatedStore(disk)
    base = fold(logs_of(store, announce(store, 1)))
    assert base is not None and base.flows[1].right_from < 2 and base.flows[1].outputs["out"].kept_from == 1
    with DurableWorkers(disk, 3) as workers:
        workers.ask(Decide(1, 2, seals=True))
        with pytest.raises(ForgottenError):
            workers.ask(Read(1, "out", 0, 3, 20.0))
        tables = [workers.ask(Read(1, "out", 1, 3, 20.0), worker=index).columns() for index in range(3)]
        assert sorted({row["epoch"] for table in tables for row in table.to_pylist()}) == [1, 2]


@pytest.mark.parametrize("then", [1, 3])
def test_whole_parts_that_are_staged_before_the_switch_enter_behind_it(then: int) -> None:
    disk = SimulatedDisk()
    table = pa.table({"src": [7], "dst": [8]})
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        staging = [
            Deliver(0, "edges", "parts", 0, WHEN_NAMED, 2, 1, part=0),
            Deliver(0, "edges", "q", 0, WHEN_NAMED, 2, 1, part=0, attempt="one"),
        ]
        for request in staging:
            for worker in range(2):
                workers.ask(request, table, worker=worker)
        assert workers.ask(replace(4)).integer("dataflow") == 1
        number = workers.durable[0].number
        looked = workers.servers[0]._worker.instances[1].input("edges").deliveries.seconds()
        entering: list[Value] = [["edges", "parts", 0, 1]]
        batch: list[Value] = [["edges", "q", 0, ["one"], "s", False, looked]]
        for each in (entering, batch):
            reply = workers.ask(Decide(0, 2, enter=each, incarnation=number))
            assert reply.values["entered"] == [[True, 2]]
        workers.ask(Decide(0, 2, seals=True))
        found = shown(workers, 1, 3)
        assert found[8, 7, 2] == 4
        disk = survivors(disk)
    with DurableWorkers(disk, then) as workers:
        assert shown(workers, 1, 3) == found
        again = [workers.ask(Decide(0, 2, enter=each, incarnation=number)) for each in (entering, batch)]
        assert [reply.values["entered"] for reply in again] == [[[False, 3]]] * 2


def test_whole_dataflows_that_import_from_a_new_version_begin_again_behind_it() -> None:
    disk = SimulatedDisk()
    owner, reader = "exporting_flows:owner", "exporting_flows:importer"
    with DurableWorkers(disk, 2) as workers:
        workers.ask(Install(owner, {}))
        for epoch in range(2):
            workers.known(deliver(workers, 0, epoch, (epoch, 1)))  # type: ignore[arg-type]
            workers.ask(Decide(0, epoch, seals=True))
        assert workers.ask(Replace(0, owner, {"query": "counted"}, -1.0)).integer("dataflow") == 1
        assert workers.ask(Install(reader, {"of": owner})).integer("dataflow") == 2
        workers.known(deliver(workers, 0, 2, (2, 1)))  # type: ignore[arg-type]
        workers.ask(Decide(0, 2, seals=True))
        found = [shown(workers, number, 3) for number in (1, 2)]
        disk = survivors(disk)
    for life in range(2):
        with DurableWorkers(disk, 3 - life) as workers:
            assert [shown(workers, number, 3) for number in (1, 2)] == found
            with pytest.raises(MisuseError, match="it is read by dataflow 2"):
                workers.ask(Replace(1, owner, {"query": "as it is"}, -1.0))
        disk = survivors(disk)


def test_ends_of_the_last_version_are_those_of_all() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        begun(workers)
        workers.ask(replace(4))
        workers.ask(Uninstall(0, False))
        disk = survivors(disk)
    with DurableWorkers(disk) as workers:
        for number in (0, 1):
            with pytest.raises(UninstalledError):
                workers.ask(Read(number, "out", 0, 1, 20.0))
        assert flow_of(workers, 0).index == 2, "the name is free"


# stored_


def unstored(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "orders", "customer: string, cents: int")
    rows.export("orders", by="customer")
    rows.output("orders")


def storing(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "orders", "customer: string, cents: int")
    rows.export("orders", by="customer")
    rows.output("orders", stored=True)


@pytest.mark.parametrize("embedded", [False, True])
def test_stored_outputs_of_a_new_version_are_stored_when_the_cluster_closes(
    embedded: bool, tmp_path: Path
) -> None:
    """That of the version before was not stored, so nothing says before that there is anything to store."""
    with timely.connect(workers=1, embedded=embedded, durable=tmp_path, sync="system") as started:
        flow = started.install(unstored)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
        flow = started.replace(flow, storing)
        with pytest.raises(StoreError, match="nothing is stored yet"):
            stored(tmp_path, "orders", dataflow="unstored")
        flow.input("orders").insert([("bea", 2)])
        flow.seal()
    assert rows_in(tmp_path, "orders") == (1, [("ada", 5), ("bea", 2)])


def test_stored_outputs_that_cannot_be_declared_leave_the_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object) -> None:
        raise StoreError("no room")

    with cluster(tmp_path, 2) as started:
        flow = started.install(unstored)
        flow.seal()
        with monkeypatch.context() as patch:
            patch.setattr(switching, "declare", fails)
            with pytest.raises(TimelyError, match="no room"):
                started.replace(flow, storing)
        flow.input("orders").insert([("ada", 5)])
        flow.seal(wait=True)
        assert flow.output("orders").snapshot().num_rows == 1
        assert started.replace(flow, storing).output("orders").snapshot().num_rows == 1
    assert rows_in(tmp_path, "orders") == (1, [("ada", 5)])


def largest(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "orders", "customer: string, cents: int")
    rows.export("orders", by="customer")
    rows.group_by("customer").agg(cents=dd.max("cents")).output("orders", stored=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_stored_outputs_as_of_epochs_before_the_switch_are_those_of_the_old_version(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold is ordered when a new version has the inputs, and not yet the outputs."""
    takes_over = Replacements._take_over_if_done
    with cluster(tmp_path, workers) as started:
        flow = started.install(storing)
        flow.input("orders").insert([("ada", 500), ("ada", 30)])
        flow.seal()
        embedded = started._workers._durable  # type: ignore[union-attr]
        assert embedded is not None
        cuts = [one.cuts for one in embedded._all]

        def behind_a_cut(self: Replacements, one: object, old: Instance, new: Instance) -> bool:
            if self is embedded._servers[0].replacements and not cuts[0].is_cutting:
                assert epochs_to_store(self._worker, [new.index]) == (-1,), "worker 0 does not ask for it"
                for each in cuts:
                    each.order(CutLog("now", (new.index,), (0,), (0,)))
                while sum(each.step() for each in cuts):  # each of them
                    pass
            return takes_over(self, one, old, new)  # type: ignore[arg-type]

        monkeypatch.setattr(Replacements, "_take_over_if_done", behind_a_cut)
        flow = started.replace(flow, largest)
        monkeypatch.undo()
        shown = [tuple(row.values()) for row in flow.output("orders").snapshot(as_of=0).to_pylist()]
        assert sorted(shown) == [("ada", 30), ("ada", 500)]
        while sum(each.step() for each in cuts):  # each of them
            pass
    folded(tmp_path, forgets=False)
    assert rows_in(tmp_path, "orders") == (0, [("ada", 30), ("ada", 500)])
