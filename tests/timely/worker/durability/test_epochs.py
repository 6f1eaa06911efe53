"""Nobody is shown an epoch that a restart could change.

shown_*     an epoch is shown once all workers have synced what they have of it
import_*    what a dataflow reads of others counts, too
message_*   what workers tell one another
again_*     after a restart
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers, words
from followed_workers import Followers, as_cluster
from simulated_store import SimulatedDisk, SimulatedStore

from timely import failure
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.incarnations import announce
from timely.operators.capture import FOREVER
from timely.wire.requests import (
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Progress,
    Read,
    Reply,
    Uninstall,
)
from timely.worker.answers.later import Later
from timely.worker.durability.epochs import DurableEpochs, sealed_before
from timely.worker.orders import open_epoch


def is_shown(
    workers: DurableWorkers, epoch: int, worker: int = 0, dataflow: int = 0, output: str = ""
) -> bool:
    """Whether a worker answers that an epoch is complete, once all work is done."""
    workers.settle()
    answer = workers.take(Progress(dataflow, output, epoch), worker=worker)
    if isinstance(answer, Later):
        workers.settle()  # what is shown is noted when somebody asks
        return answer.ready() is not None
    return True


def words_of(epochs: DurableEpochs) -> int:
    """How many entries a worker keeps of what is durable."""
    return sum(len(kept) for kept in vars(epochs).values() if isinstance(kept, (dict, set, deque)))


def insert(workers: DurableWorkers, text: str, sequence: int, worker: int = 0) -> None:
    answer = workers.take(Deliver(0, "words", "w", sequence, IN_OPEN, 0, 1), words(text), worker)
    assert isinstance(answer, Reply)


def seal(workers: DurableWorkers, epoch: int, dataflow: int = 0) -> None:
    """Seal without waiting for the disk."""
    assert isinstance(workers.take(Decide(dataflow, epoch, seals=True)), Reply)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shown_epochs_are_in_the_logs_of_all_workers(count: int) -> None:
    with DurableWorkers(SimulatedDisk(), count) as workers:
        workers.install("shop")
        for slow in range(count):
            workers.gate.shut(slow)
            insert(workers, "word", slow, slow)
            seal(workers, slow)
            read = Read(0, "loud", 0, slow + 1, -1.0)
            for worker in range(count):
                assert not is_shown(workers, slow, worker), "not on a worker either whose own log has it"
                assert isinstance(workers.take(read, worker=worker), Later)
                assert is_shown(workers, slow - 1, worker)
            done = [worker.instance(0).epochs_done() for worker in workers.workers]
            assert done == [slow + 1] * count, "all work is done"
            workers.gate.open()
            for worker in range(count):
                assert is_shown(workers, slow, worker)
                assert is_shown(workers, slow, worker, output="loud")


def test_shown_in_the_extent_of_an_output_is_what_is_durable() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.install("shop")
        insert(workers, "first", 0)
        workers.seal(0)
        assert is_shown(workers, 0)
        workers.gate.shut()
        insert(workers, "second", 1)
        seal(workers, 1)
        workers.settle()
        extent = Progress(0, "loud", 0, 0.0, keep_from=0, extent=True)
        reply = workers.ask(extent)
        assert (reply.integer("complete"), reply.integer("last")) == (1, 1)
        assert workers.ask(Describe(0)).values["durable"] == 1
        workers.gate.open()
        assert is_shown(workers, 1)
        reply = workers.ask(extent)
        assert (reply.integer("complete"), reply.integer("last")) == (2, 2)
        assert workers.ask(Describe(0)).values["durable"] == 2


@pytest.mark.parametrize("count", [1, 2])
def test_shown_of_inputs_with_epochs_of_their_own_is_what_is_durable_of_each(count: int) -> None:
    with DurableWorkers(SimulatedDisk(), count) as workers:
        workers.install("shop")
        insert(workers, "first", 0)
        workers.ask(Decide(0, 0, seals=True, only="words"))
        for worker in range(count):
            assert is_shown(workers, 0, worker, output="loud")
            assert not is_shown(workers, 0, worker, output="sold")
        workers.gate.shut()
        insert(workers, "second", 1, worker=count - 1)
        assert isinstance(workers.take(Decide(0, 1, seals=True, only="words")), Reply)
        for worker in range(count):
            assert not is_shown(workers, 1, worker, output="loud")
            assert is_shown(workers, 0, worker, output="loud"), "what was shown stays shown"
        # Nothing is held up of an input whose epochs are all durable, nor of one that is behind.
        workers.gate.open()
        workers.ask(Decide(0, 4, seals=True, only="words"))
        for name in ("sold", "prices", "plain"):
            workers.ask(Decide(0, 2, seals=True, only=name))
        for worker in range(count):
            assert is_shown(workers, 4, worker, output="loud") and is_shown(
                workers, 2, worker, output="known"
            )
            assert not is_shown(workers, 3, worker, output="known")
        # At one epoch again, they are not counted together: nothing that was shown is hidden.
        workers.gate.shut()
        for name in ("sold", "prices", "plain"):
            assert isinstance(workers.take(Decide(0, 4, seals=True, only=name)), Reply)
        for worker in range(count):
            assert is_shown(workers, 4, worker, output="loud") and is_shown(
                workers, 2, worker, output="known"
            )
            assert not is_shown(workers, 4, worker, output="known")
        workers.gate.open()
        assert is_shown(workers, 4, output="known")


@pytest.mark.parametrize("count", [1, 2])
def test_shown_of_one_input_is_not_counted_for_all(count: int) -> None:
    with DurableWorkers(SimulatedDisk(), count) as workers:
        workers.install("shop")
        workers.ask(Decide(0, 2, seals=True, only="words"))
        for worker in range(count):
            assert workers.durable[worker].epochs.mark(0) == 0, "others still get rows of these epochs"
        assert workers.ask(Describe(0)).values["durable"] == 0


@pytest.mark.parametrize("count", [1, 2])
def test_shown_of_an_input_that_is_behind_is_not_what_is_durable_of_one_that_is_ahead(count: int) -> None:
    with DurableWorkers(SimulatedDisk(), count) as workers:
        workers.install("shop")
        workers.ask(Decide(0, 4, seals=True, only="words"))
        workers.ask(Decide(0, -1, close=["prices"]))
        assert is_shown(workers, 4, output="loud")
        assert workers.ask(Describe(0)).values["durable"] == 0, "others are behind"
        workers.ask(Decide(0, 0, seals=True, only="plain"))
        workers.gate.shut()
        assert isinstance(workers.take(Decide(0, 1, seals=True, only="sold")), Reply)
        for worker in range(count):
            assert not is_shown(workers, 1, worker, output="sold")
        workers.gate.open()
        for worker in range(count):
            assert is_shown(workers, 1, worker, output="sold")
        assert workers.ask(Describe(0)).values["durable"] == 1, "up to where all are that are open"


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_kept_of_dataflows_that_have_ended(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure, "ENDED_COUNT_MAX", 3)  # of earlier ones only the numbers are known
    with DurableWorkers(SimulatedDisk(), count) as workers:
        sizes = set()
        for round_ in range(8):
            dataflow = workers.install("shop")
            workers.ask(Decide(dataflow, 2, seals=True, only="words"))  # counted apart
            assert is_shown(workers, 2, dataflow=dataflow, output="loud")
            workers.ask(Uninstall(dataflow, False))
            if round_:
                sizes.add(tuple(words_of(each.epochs) for each in workers.durable))
        assert len(sizes) == 1, "as much after any number of them"


@pytest.mark.parametrize("folds", [False, True], ids=["from logs", "from a base"])
def test_again_inputs_have_the_epochs_that_each_had(folds: bool) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        flow = workers.flow("shop")
        for epoch in range(3):
            flow.input("words").insert([f"word {epoch}"])
            workers.ask(Decide(0, epoch, seals=True, only="words"))
        flow.input("words").insert(["of an open epoch"])
        workers.ask(Decide(0, 0, seals=True, only="sold"))
        workers.ask(Decide(0, -1, close=["prices"]))
        workers.ask(Decide(0, 1, seals=True, only="plain"))
        before = workers.read("loud", 3)
    if folds:
        store = SimulatedStore(disk)
        base = fold(logs_of(store, announce(store, 1)))
        assert base is not None and base.flows[0].sealed_alone == {"words": 2, "sold": 0, "plain": 1}
        assert base.flows[0].sealed == 0, "all that are open have sealed it"
    for count in (3, 1):
        with DurableWorkers(disk, count) as workers:
            flow = workers.flow("shop")
            for worker in workers.workers:
                inputs = worker.instance(0).inputs
                assert {name: handle.epoch for name, handle in inputs.items() if not handle.is_closed} == {
                    "words": 3,
                    "sold": 1,
                    "plain": 2,
                }
            assert workers.read("loud", 3) == before
            assert is_shown(workers, 2, count - 1, output="loud")
            assert not is_shown(workers, 1, output="sold")
    with DurableWorkers(disk) as workers:
        flow = workers.flow("shop")
        workers.seal(3)
        assert workers.read("loud", 4) == sorted([*before, (3, "OF AN OPEN EPOCH")])


def test_again_workers_that_follow_have_the_epochs_that_each_input_had() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers, Followers(disk) as followers:
        flow = workers.flow("shop")
        for epoch in range(3):
            flow.input("words").insert([f"word {epoch}"])
            workers.ask(Decide(0, epoch, seals=True, only="words"))
            workers.durable[0].mark_durable()
            workers.settle()
            followers.follow()
        assert not followers.following[0].past.flows[0].sources, "no input is taken for a source"
        before = workers.read("loud", 3)
        taken = as_cluster(followers, followers.take_over())
        inputs = taken.workers[0].instance(0).inputs
        assert (inputs["words"].epoch, inputs["sold"].epoch) == (3, 0)
        assert taken.read("loud", 3) == before


def test_shown_open_ended_changes_end_where_the_durable_epochs_do() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.install("shop")
        for epoch in range(2):
            insert(workers, f"{epoch}", epoch)
            seal(workers, epoch)
            if not epoch:
                assert is_shown(workers, 0)
                workers.gate.shut()
        workers.settle()
        reply = workers.ask(Read(0, "loud", 0, 1, -1.0, is_open_ended=True))
        assert reply.integer("complete") == 1
        assert reply.table is not None and reply.table.column("epoch").to_pylist() == [0]


def test_shown_too_late_says_that_the_disk_is_awaited() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.install("shop")
        workers.gate.shut()
        seal(workers, 0)
        workers.settle()
        answer = workers.take(Progress(0, "", 0))
        assert isinstance(answer, Later)
        assert str(answer.late()) == (
            "epoch 0 of dataflow 0 is not complete on worker 0: its rows are not on disk yet; complete are "
            "the epochs before 0"
        )
        late = workers.take(Progress(0, "", 1))
        assert isinstance(late, Later)
        assert "it is not sealed yet (the open epoch is 1)" in str(late.late())


def test_shown_after_close_is_everything_once_that_is_durable() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.install("shop")
        workers.gate.shut(1)
        insert(workers, "word", 0, worker=1)
        for name in workers.workers[0].instance(0).inputs:
            workers.take(Decide(0, -1, close=[name]))
        assert not is_shown(workers, FOREVER - 1)
        workers.gate.open()
        assert is_shown(workers, FOREVER - 1)
        assert is_shown(workers, FOREVER - 1, worker=1)
        assert sealed_before(workers.workers[1].instance(0))[""] == FOREVER


def test_shown_is_nothing_of_parts_before_their_decision_is_durable() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.install("shop")
        for worker in range(2):
            workers.ask(Deliver(0, "words", "w", 0, WHEN_NAMED, 0, 1), words(f"part {worker}"), worker)
        workers.gate.shut(0)
        number = workers.durable[0].number
        workers.take(Decide(0, 0, seals=True, enter=[["words", "w", 0, 1]], incarnation=number))
        assert not any(is_shown(workers, 0, worker) for worker in range(2))
        workers.gate.open()
        assert workers.read("loud", 1) == [(0, "PART 0"), (0, "PART 1")]


def test_import_is_shown_once_the_log_of_its_owner_has_the_rows() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        for spec in ("exporting", "importing", "reading"):
            workers.install(spec)
        workers.seal(0, dataflow=1)
        assert workers.ask(Describe(1)).values["durable"] == 0, "its own rows are, others may still come"
        workers.gate.shut(1)
        row = pa.table({"a": [1], "b": [2]})
        workers.take(Deliver(0, "rows", "w", 0, IN_OPEN, 0, 1), row, worker=1)
        seal(workers, 0)
        for dataflow in range(3):
            assert not any(is_shown(workers, 0, worker, dataflow) for worker in range(2))
            assert [w.instance(dataflow).epochs_done() for w in workers.workers] == [1, 1]
        workers.gate.open()
        for dataflow in range(3):
            assert all(is_shown(workers, 0, worker, dataflow) for worker in range(2))


def test_import_with_inputs_of_its_own_shows_what_was_before_it() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.install("exporting")
        for epoch in range(5):
            workers.seal(epoch)
        workers.install("importing")
        first = workers.workers[0].instance(1).first_epoch
        assert first > 0
        assert is_shown(workers, first - 1, dataflow=1)
        assert not is_shown(workers, first, dataflow=1)


def test_message_about_many_epochs_is_one_from_each_worker() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.install("shop")
        workers.settle()
        workers.gate.shut()
        insert(workers, "word", 0, worker=1)
        for epoch in range(50):
            seal(workers, epoch)
        workers.settle()
        before = [worker.controls_sent for worker in workers.workers]
        workers.gate.open()
        workers.settle()
        assert [worker.controls_sent for worker in workers.workers] == [before[0] + 1, before[1] + 1]
        assert is_shown(workers, 49, worker=1)


def test_message_is_none_from_a_lone_worker() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.install("shop")
        workers.seal(3)
        assert is_shown(workers, 3)
        assert workers.workers[0].controls_sent == 0


def test_again_all_that_was_sealed_is_durable_at_once() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        workers.install("shop")
        insert(workers, "kept", 0)
        workers.seal(6)
        assert is_shown(workers, 6)
    for count in (2, 1):
        with DurableWorkers(disk, count) as workers:
            workers.gate.shut()
            for worker in range(count):
                assert is_shown(workers, 6, worker)
                assert not is_shown(workers, 7, worker)
            assert open_epoch(workers.workers[0].instance(0)) == 7
            workers.gate.open()


def test_again_closed_inputs_are_durable_for_ever() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        for name in workers.workers[0].instance(0).inputs:
            workers.ask(Decide(0, -1, close=[name]))
    with DurableWorkers(disk, 2) as workers:
        assert all(is_shown(workers, FOREVER - 1, worker) for worker in range(2))
