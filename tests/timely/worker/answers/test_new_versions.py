"""Requests for new versions of dataflows.

known_*     one that is asked for again in a durable cluster
refused_*   what cannot be replaced
held_*      requests that wait until a new version has the inputs
"""

from __future__ import annotations

import pytest
from durable_workers import DurableWorkers
from simulated_store import SimulatedDisk

from timely.errors import MisuseError, ReplacedError, WaitTimeoutError
from timely.operators.inputs.names import DeliveryName
from timely.wire.requests import IN_OPEN, Decide, Deliver, Install, Read, Replace, Reply
from timely.worker.answers.later import Later

SPEC = "version_flows:versions"


def replace(version: int, old: int = 0, seconds: float = -1.0) -> Replace:
    return Replace(old, SPEC, {"version": version}, seconds)


def begun(workers: DurableWorkers) -> None:
    workers.ask(Install(SPEC, {"version": 0}))


def test_known_version_that_has_taken_over_is_the_answer() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        begun(workers)
        first = workers.ask(replace(4))
        again = workers.ask(replace(4))
        assert first.values == again.values and workers.workers[0].instances.keys() == {1}
        assert workers.ask(replace(2)).integer("dataflow") == 2, "another one takes its place"
        assert workers.ask(replace(2, old=1)).integer("dataflow") == 2
        assert workers.ask(replace(4, old=1)).integer("dataflow") == 3, "as a version that was there before"


def test_known_version_that_is_about_to_take_over_is_waited_for() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        begun(workers)
        workers.gate.shut()
        answers = [workers.take(replace(4)) for _ in range(2)]
        workers.settle()
        with pytest.raises(MisuseError, match="is being replaced: wait for that"):
            workers.take(replace(2))
        assert all(isinstance(answer, Later) and answer.ready() is None for answer in answers)
        workers.gate.open()
        assert [workers.known(answer).integer("dataflow") for answer in answers] == [1, 1]


def test_known_version_is_replaced_by_itself_if_a_client_says_so() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        begun(workers)
        assert workers.ask(replace(0)).integer("dataflow") == 1
        assert workers.ask(replace(0, old=1)).integer("dataflow") == 2


def test_known_version_is_none_where_an_attempt_was_given_up() -> None:
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        begun(workers)
        workers.gate.shut(1)
        answer = workers.take(replace(4, seconds=0.0))
        workers.settle()
        assert isinstance(answer, Later) and isinstance(answer.late(), WaitTimeoutError)
        workers.gate.open()
        workers.settle()
        assert workers.ask(replace(4)).integer("dataflow") == 2


def test_refused_while_others_read_it() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.ask(Install("exporting_flows:owner", {}))
        workers.ask(Install("exporting_flows:importer", {}))
        with pytest.raises(MisuseError, match=r"it is read by dataflow 1 .*Uninstall what reads it first"):
            workers.take(Replace(0, "exporting_flows:owner", {"query": "counted"}, -1.0))
        with pytest.raises(MisuseError, match="it imports, and its outputs may be ahead of its inputs"):
            workers.take(Replace(1, "exporting_flows:importer", {}, -1.0))


def test_refused_while_a_dataflow_that_reads_it_is_about_to_begin() -> None:
    owner = "exporting_flows:owner"
    with DurableWorkers(SimulatedDisk(), 2) as workers:
        workers.ask(Install(owner, {}))
        reader = workers.take(Install("exporting_flows:importer", {"of": owner}))
        with pytest.raises(MisuseError, match="it is about to be read by dataflow 1"):
            workers.take(Replace(0, owner, {"query": "counted"}, -1.0))
        assert workers.known(reader).integer("dataflow") == 1


# held_


@pytest.mark.parametrize("count", [1, 2])
def test_held_requests_are_carried_out_in_their_order_and_before_later_ones(count: int) -> None:
    """The last value of a key counts, whoever is asked for an answer first."""
    with DurableWorkers(SimulatedDisk(), count) as workers:
        begun(workers)
        workers.gate.shut()
        replacing = workers.take(replace(4))
        workers.settle()

        def upsert(number: int, text: str) -> Reply | Later:
            return workers.take(Deliver(0, "values", "w", number, IN_OPEN, 0, 1, [[1, text]]))

        held = [upsert(number, str(number)) for number in range(3)]
        assert all(isinstance(each, Later) for each in held)
        gone = held[1]
        assert isinstance(gone, Later) and isinstance(gone.late(), WaitTimeoutError)
        workers.gate.open()
        workers.known(replacing)
        assert isinstance(upsert(3, "last"), Reply)
        for each in reversed([held[0], held[2]]):
            workers.known(each)
        workers.ask(Decide(0, 0, seals=True))
        rows = [
            row
            for worker in range(count)
            for row in workers.ask(Read(1, "values", 0, 1, 20.0), worker=worker).columns().to_pylist()
        ]
        assert rows == [{"k": 1, "v": "last", "epoch": 0, "diff": 1}]
        deliveries = workers.workers[0].instance(1).input("values").deliveries
        assert [deliveries.entered_by(DeliveryName("w", number)) for number in range(4)] == [0, None, 0, 0]


def test_held_request_that_is_refused_is_so_where_it_is_carried_out() -> None:
    with DurableWorkers(SimulatedDisk()) as workers:
        workers.ask(Install(SPEC, {"version": 1}))
        workers.gate.shut()
        replacing = workers.take(replace(0))
        workers.settle()
        held = workers.take(Deliver(0, "more", "w", 0, IN_OPEN, 0, 1, [[1, "x"]]))
        workers.gate.open()
        workers.known(replacing)
        with pytest.raises(ReplacedError, match="the input 'more' is gone"):
            workers.known(held)
