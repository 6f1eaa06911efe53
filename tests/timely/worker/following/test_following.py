"""What workers that follow know and have done, step by step, on a simulated disk."""

from __future__ import annotations

import gc
import weakref

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers
from followed_workers import Followers, as_cluster
from simulated_store import SimulatedDisk, SimulatedStore

from timely import FencedError, StoreError
from timely.client.feeding import appending
from timely.client.session import Flow
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.cuts import cut_logs
from timely.durable.bases.folding import fold
from timely.durable.incarnations import announce
from timely.operators.outputs.output_digests import OutputDigests
from timely.wire.requests import Uninstall
from timely.worker.answers.later import Later
from timely.worker.following import following as following_module


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(following_module, "_LOOK_AT_BASES_SECONDS", 0.0)


def sealed_epochs(disk: SimulatedDisk, count: int) -> int:
    """Let an incarnation seal epochs and end; return the number of its dataflow."""
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("varied")
        for epoch in range(count):
            flow.input("rows").insert([(epoch, 1)])
            workers.seal(epoch, flow.index)
        return flow.index


def test_epochs_of_earlier_incarnations_are_worked_on_before_anything_new_comes() -> None:
    disk = SimulatedDisk()
    number = sealed_epochs(disk, 3)
    with DurableWorkers(disk, 1), Followers(disk) as followers:
        followers.follow()
        assert followers.workers[0].instance(number).inputs["rows"].epoch == 3


def test_what_a_base_has_sealed_is_worked_on_before_anything_new_comes() -> None:
    disk = SimulatedDisk()
    number = sealed_epochs(disk, 3)
    store = SimulatedStore(disk)
    fold(logs_of(store, announce(store, 1)), forgets=True)
    with DurableWorkers(disk, 1), Followers(disk) as followers:
        followers.follow()
        assert followers.workers[0].instance(number).inputs["rows"].epoch == 3


def test_what_a_base_of_the_present_incarnation_has_summed_is_worked_on_at_once() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 1) as workers:
        flow = workers.flow("varied")
        for epoch in range(3):
            insert(workers, flow, epoch)
        workers.durable[0].journal.cut("cut")
        workers.settle()
        incarnation = workers.durable[0].incarnation
        fold(cut_logs(workers.store, incarnation, "cut"), live=incarnation.number, forgets=True)
        with Followers(disk) as followers:
            followers.follow()
            assert followers.workers[0].instance(flow.index).inputs["rows"].epoch == 3


def test_what_a_newer_base_has_summed_is_kept_as_one_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    sum_up = OutputDigests.sum_up

    def noted(digests: OutputDigests, stop: int) -> None:
        summed.append(stop)
        sum_up(digests, stop)

    monkeypatch.setattr(OutputDigests, "sum_up", noted)
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("varied")
        with Followers(disk) as followers:
            for epoch in range(6):
                flow.input("rows").insert([(epoch % 2, epoch)])
                workers.seal(epoch, flow.index)
                workers.read("counts", epoch + 1)
                followers.follow()
                capture = followers.workers[0].instance(flow.index).output("counts")
                assert capture.complete_before == epoch
                if epoch == 3:
                    for each in workers.durable:
                        each.journal.cut("cut")
                    workers.settle()
                    incarnation = workers.durable[0].incarnation
                    logs = cut_logs(workers.store, incarnation, "cut")
                    fold(logs, live=incarnation.number, forgets=True)
            assert summed == [3]
            (durability,) = followers.take_over()
            instance = followers.workers[0].instance(flow.index)
            assert not durability.digests.are_made_again(instance, "counts")
            for _ in range(2):  # the first look asks the output how far it is
                durability.look()
                followers.settle()
            assert durability.digests.are_made_again(instance, "counts")


def test_readers_of_what_has_ended_for_good_do_not_begin() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 1) as workers:
        first = workers.install("exporting")
        workers.install("importing")
        workers.workers[0].fail(first, ValueError("an accident"))
        again = workers.install("exporting")
        with Followers(disk) as followers:
            followers.follow()
            assert list(followers.workers[0].instances) == [again]
            assert list(followers.take_over()[0].past.flows) == [again]


def test_a_dataflow_whose_base_cannot_be_read_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    sealed_epochs(disk, 3)
    store = SimulatedStore(disk)
    fold(logs_of(store, announce(store, 1)), forgets=True)
    with DurableWorkers(disk, 1), Followers(disk) as followers:
        for path in [path for path in disk.files if path.endswith(".parquet")]:
            del disk.files[path]
        with pytest.raises(StoreError, match="parquet"):
            followers.follow()


@pytest.mark.parametrize("workers", [[0], [1], [0, 1]])
def test_a_dataflow_that_is_about_to_begin_begins_behind_the_take_over(workers: list[int]) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as before, Followers(disk, 2) as followers:
        flow = before.flow("varied")
        flow.input("rows").insert([(1, 2), (3, 4)])
        before.seal(0, flow.index)
        for worker in workers:
            assert isinstance(followers.begin(worker), Later)
        followers.take_over()
        for each in followers.workers:
            assert each.instance(flow.index).inputs["rows"].epoch == 1


def insert(workers: DurableWorkers, flow: Flow, epoch: int) -> None:
    """Insert few rows, and many, which go in parts; seal."""
    flow.input("rows").insert([(epoch % 3, epoch)])
    flow.input("rows").insert(pa.table({"a": [row % 7 for row in range(200)], "b": [epoch] * 200}))
    workers.seal(epoch, flow.index)


@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_those_of_a_cluster_that_was_never_left(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "SPREAD_ROWS_MIN", 100)
    disk = SimulatedDisk()
    with DurableWorkers(SimulatedDisk(), 2) as undisturbed:
        flow = undisturbed.flow("varied")
        for epoch in range(8):
            insert(undisturbed, flow, epoch)
        at_take_over = undisturbed.read("counts", 6, flow.index)
        expected = undisturbed.read("counts", 8, flow.index)
    with DurableWorkers(disk, 2) as before, Followers(disk, count) as followers:
        flow, soon, later = before.flow("varied"), before.install("exporting"), before.install("shop")
        for epoch in range(3):
            insert(before, flow, epoch)
            followers.follow()
        held = [weakref.ref(worker.instance(soon)) for worker in followers.workers]
        before.ask(Uninstall(soon, False))
        followers.follow()
        assert not any(soon in worker.instances for worker in followers.workers)
        gc.collect()
        assert not any(instance() for instance in held)
        for epoch in range(3, 6):
            insert(before, flow, epoch)
        before.ask(Uninstall(later, False))
        after = as_cluster(followers, followers.take_over())
        for worker in after.workers:
            assert list(worker.instances) == [flow.index]
        flow = after.flow("varied")
        assert after.read("counts", 6, flow.index) == at_take_over
        for epoch in range(6, 8):
            insert(after, flow, epoch)
        assert after.read("counts", 8, flow.index) == expected
    with DurableWorkers(disk, 1) as again:
        assert again.read("counts", 8, flow.index) == expected
        again.seal(8, flow.index)


def test_another_dataflow_may_take_the_place_of_one_that_fails_behind_the_take_over() -> None:
    disk = SimulatedDisk()
    number = sealed_epochs(disk, 1)
    with DurableWorkers(disk, 1), Followers(disk) as followers:
        followers.follow()
        after = as_cluster(followers, followers.take_over())
        after.workers[0].fail(number, ValueError("an accident"))
        assert after.install("varied") == number + 1


def test_only_the_first_worker_says_that_the_cluster_has_started_again() -> None:
    disk = SimulatedDisk()
    sealed_epochs(disk, 1)
    with DurableWorkers(disk, 1), Followers(disk, 2) as followers:
        followers.follow()
        announce(SimulatedStore(disk), 1)
        assert not followers.following[1].look()
        with pytest.raises(FencedError, match="has started again by itself: follow anew"):
            followers.following[0].look()


def test_changes_that_all_readers_have_forgotten_are_dropped() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 1) as workers, Followers(disk) as followers:
        flow = workers.flow("varied")
        for epoch in range(6):
            insert(workers, flow, epoch)
            followers.follow()
            if epoch == 3:
                workers.durable[0].journal.cut("cut")
                workers.settle()
                incarnation = workers.durable[0].incarnation
                logs = cut_logs(workers.store, incarnation, "cut")
                fold(logs, live=incarnation.number, forgets=True)
                assert followers.workers[0].instance(flow.index).output("counts").complete_before >= 0
                followers.settle()
        assert followers.workers[0].instance(flow.index).output("counts").log.extent()[0] >= 3
