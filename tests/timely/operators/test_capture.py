"""Outputs: what can be read, and when.

log_*        the log of records
complete_*   an epoch can be read when it is complete, not before
"""

from __future__ import annotations

from contextlib import ExitStack

import pyarrow as pa
import pytest

from progress.errors import InternalError, MisuseError
from progress.times.timestamp import Timestamp
from timely import Dataflow, Records, Vertex
from timely.client.tables import records_of
from timely.errors import ForgottenError
from timely.operators.capture import FOREVER, RecordLog, RecordsOut
from timely.operators.outputs.pieces import PieceRequest
from timely.running.core import Worker
from timely.wire.transport.memory import MemoryNetwork


def log_of(records: dict[int, list[object]], complete: int) -> RecordLog:
    log = RecordLog()
    for epoch, added in records.items():
        log.add(epoch, Records(added))
    log.complete(complete)
    return log


def test_log_gives_complete_epochs_of_the_interval_in_order() -> None:
    log = log_of({3: ["d"], 0: ["a", "b"], 1: [("c", 1)], 4: ["e"]}, 4)
    assert records_of(log.changes(0, 10)) == [(0, "a"), (0, "b"), (1, ("c", 1)), (3, "d")]
    assert records_of(log.changes(1, 3)) == [(1, ("c", 1))]
    assert log.changes(7, 9).schema == pa.schema([("epoch", pa.int64()), ("record", pa.binary())])


def test_log_forgets_what_will_not_be_asked_for() -> None:
    log = log_of({0: ["a"], 1: ["b"]}, 2)
    log.forget(1)
    assert records_of(log.changes(1, 2)) == [(1, "b")]
    with pytest.raises(ForgottenError, match="before 1 are no longer kept"):
        log.changes(0, 2)
    for kept in (log, log_of({0: ["a"]}, 1)):
        with pytest.raises(MisuseError, match=r"epochs begin at 0.* from -1 on\. .*changes\(0\)") as caught:
            kept.changes(-1, 2)
        assert not isinstance(caught.value, ForgottenError)


def test_log_forgets_no_epoch_that_is_not_complete() -> None:
    log = log_of({0: ["a"], 3: ["b"]}, 2)
    log.forget(9)
    log.complete(4)
    assert records_of(log.changes(2, 4)) == [(3, "b")]


def test_log_says_how_much_it_has_although_clients_cannot_be_sent_some_of_it() -> None:
    records: dict[int, list[object]] = {epoch: [1] for epoch in range(33)}
    records[16], records[32] = [object()], ["a" * 99]
    log = log_of(records, 33)
    assert log.held(0, 33) == (33, 33 * (1 + 101) // 2), "each sixteenth epoch is looked at"
    assert log.held(16, 17) == (1, 0) and log.held(32, 33) == (1, 101) and log.held(50, 90) == (0, 0)
    with pytest.raises(MisuseError, match="clients cannot be sent"):
        log.changes(16, 17)


def test_log_of_records_has_no_snapshot_and_takes_no_other_batches() -> None:
    with pytest.raises(MisuseError, match="read changes"):
        RecordLog().snapshot(0)
    with pytest.raises(InternalError, match="got a str"):
        RecordLog().add(0, "x")  # type: ignore[arg-type]  # that is the mistake


def test_log_of_records_has_no_pieces_but_says_what_there_is() -> None:
    log = log_of({0: ["a"], 3: ["b"], 5: ["open"]}, 4)
    assert log.extent() == (0, 4)
    log.forget(4)
    assert log.extent() == (4, 4)
    with pytest.raises(MisuseError, match="no columns"):
        log.piece(PieceRequest(0, 4, 0, 0, 1, ("record",)))


def test_complete_epochs_are_those_before_the_frontier() -> None:
    dataflow = Dataflow()
    dataflow.output("out", dataflow.input("numbers"), RecordsOut())
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    output, handle = instance.output("out"), instance.input("numbers")
    seen = []
    for _ in range(3):
        handle.send(["x"])
        worker.run_until_idle()
        seen.append((output.complete_before, output.log.changes(0, FOREVER).num_rows))
        handle.seal()
        worker.run_until_idle()
    assert seen == [(0, 0), (1, 1), (2, 2)]
    handle.close()
    worker.run_until_idle()
    assert output.complete_before == FOREVER


def test_complete_outputs_that_do_not_exist_are_named() -> None:
    dataflow = Dataflow()
    dataflow.output("out", dataflow.input("numbers"))
    with pytest.raises(MisuseError, match=r"no output 'in': there are \['out'\]"):
        Worker().install(dataflow.freeze()).output("in")


class ClaimVertex(Vertex):
    """Raises at the end of epoch 1."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.notify_at(time)

    def on_notify(self, time: Timestamp) -> None:
        if time == (1,):
            raise ArithmeticError("a claim does not hold")


def claims(dataflow: Dataflow) -> None:
    numbers = dataflow.input("numbers")
    dataflow.output("numbers", numbers)
    numbers.stage("claim", ClaimVertex)


def test_complete_is_no_epoch_in_which_another_vertex_that_is_yet_to_run_ends_the_dataflow() -> None:
    """Clients ask between two steps: a vertex that has heard of the end of an epoch may still be to run."""
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    instances = []
    for worker in workers:
        dataflow = Dataflow()
        claims(dataflow)
        instances.append(worker.install(dataflow.freeze()))
    seen: list[int] = []
    for epoch in range(2):
        for instance in instances:
            instance.input("numbers").send([epoch])
            instance.input("numbers").seal()
        with ExitStack() as ended:
            if epoch == 1:
                ended.enter_context(pytest.raises(ArithmeticError, match="a claim does not hold"))
            for _ in range(16):
                for worker, instance in zip(workers, instances, strict=True):
                    worker.step()
                    seen.append(instance.output("numbers").complete_before)
        assert max(seen) == 1
