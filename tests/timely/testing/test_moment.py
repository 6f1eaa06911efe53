"""What a test sees of a dataflow, and how outputs are compared."""

from __future__ import annotations

import pytest
from wrong_vertices import SumVertex, summed

import differential as dd
from timely import Dataflow, MisuseError
from timely.running.core import Worker
from timely.testing import Moment, send
from timely.testing.moment import difference, outputs_as_written


def test_it_shows_vertices_and_what_clients_can_read() -> None:
    flow = Dataflow()
    summed(SumVertex)(flow)
    worker = Worker()
    instance = worker.install(flow.freeze())
    moment = Moment([instance])
    send([("a", 1), ("a", 2)]).act(instance)
    worker.run_until_idle()
    assert (moment.workers, moment.complete_before("sums"), moment.changes("sums")) == (1, 0, [])
    instance.input("pairs").seal()
    worker.run_until_idle()
    assert moment.changes("sums") == [(0, ("a", 3))] and moment.complete_before("sums") == 1
    assert isinstance(moment.vertices("sum")[0], SumVertex)
    with pytest.raises(MisuseError, match="no stage is called 'son': there are 'output sums', 'sum'"):
        moment.vertices("son")


def test_outputs_are_compared_as_multisets_of_what_another_worker_would_get() -> None:
    have = outputs_as_written({"out": [(0, ["a", 1]), (0, ("a", 1)), (1, 2)]})
    assert difference(have, outputs_as_written({"out": [(1, 2), (0, ("a", 1)), (0, ("a", 1))]})) == ""
    assert difference(have, {}) == ""
    told = difference(have, outputs_as_written({"out": [(0, ("a", 1)), (1, 3)]}))
    assert told == "output 'out' lacks (1, 3) and has (0, ('a', 1)), (1, 2) too much"
    with pytest.raises(MisuseError, match=r"write \(epoch, record\)"):
        outputs_as_written({"out": ["a"]})


def test_rows_of_a_collection_come_with_their_counts() -> None:
    flow = Dataflow()
    dd.collection(flow.input("numbers").map(lambda n: ((n,), 1)), "n: int").output("out")
    worker = Worker(compiled_loops=False)
    instance = worker.install(flow.freeze())
    send([1, 2, 1]).act(instance)
    instance.input("numbers").seal()
    worker.run_until_idle()
    assert Moment([instance]).changes("out") == [(0, (1,), 2), (0, (2,), 1)]
