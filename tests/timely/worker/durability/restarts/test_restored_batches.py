"""Staged rows and batches of queries, in workers that begin with what the logs hold.

staged_*      parts without a decision are gone
batches_*     a query goes on behind its last batch, and that may come again
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from durable_workers import DurableWorkers, words
from simulated_store import SimulatedDisk, SimulatedStore

from timely import MisuseError, RestartedError
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce
from timely.operators.inputs.names import DeliveryName
from timely.wire.requests import (
    WHEN_NAMED,
    WRITES_ONCE,
    Decide,
    Deliver,
    Describe,
    Drop,
    Missing,
    Reply,
    Value,
)

# staged_


def stage(workers: DurableWorkers, text: str, part: int = 0, worker: int = 0, attempt: str = "") -> Reply:
    query = "q" if attempt else "w"
    deliver = Deliver(0, "words", query, 0, WHEN_NAMED, 0, 1, part=part, attempt=attempt)
    return workers.ask(deliver, words(text), worker)


def enter(workers: DurableWorkers, parts: int, incarnation: int | None = None) -> Reply:
    number = workers.durable[0].number if incarnation is None else incarnation
    entering: list[Value] = [["words", "w", 0, parts]]
    return workers.ask(Decide(0, 0, enter=entering, incarnation=number))


def test_staged_parts_without_a_decision_are_gone() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        for worker in range(2):
            stage(workers, "lost", worker=worker)
    with DurableWorkers(disk, 2) as workers:
        assert [w.instance(0).input("words").deliveries.insertions for w in workers.workers] == [0, 0]
        stage(workers, "there", worker=1)
        stage(workers, "there, too", worker=0)
        with pytest.raises(RestartedError):
            enter(workers, 1, incarnation=1)
        assert enter(workers, 1).values["entered"] == [[True, 0]]
        workers.seal(0)
        assert workers.read("loud", 1) == [(0, "THERE"), (0, "THERE, TOO")]
    with DurableWorkers(disk) as workers:
        assert workers.read("loud", 1) == [(0, "THERE"), (0, "THERE, TOO")]
        assert enter(workers, 1, incarnation=1).values["entered"] == [[False, 1]], "it has entered already"


def test_staged_parts_that_were_dropped_stay_dropped() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        stage(workers, "dropped", attempt="a")
        stage(workers, "dropped", part=1, attempt="a")
        workers.ask(Drop(0, [["words", "q", 0, "a"]]))
        stage(workers, "there", attempt="a")
        looked = Missing(0, 0, [["words", "q", 0, "a", 1]], [["words", "q"]])
        ((_, _, _, seconds),) = workers.ask(looked).values["queries"]  # type: ignore[misc, has-type]
        commit: list[Value] = [["words", "q", 0, ["a"], "s", False, seconds]]
        workers.ask(Decide(0, 0, seals=True, enter=commit, incarnation=1))
        assert workers.read("loud", 1) == [(0, "THERE")]
    with DurableWorkers(disk, 2) as workers:
        assert workers.read("loud", 1) == [(0, "THERE")]


# batches_


class Query:
    """A query that writes records into `words`, as the tasks of Spark do."""

    def __init__(self, workers: DurableWorkers, name: str = "q", stream: str = "s") -> None:
        self.workers, self.name, self.stream = workers, name, stream

    def write(self, batch: int, texts: Sequence[str], may_skip: bool = False) -> bool:
        """Stage each text as a part of its own, on one worker after another, and commit."""
        workers = self.workers
        count = len(workers.workers)
        attempts: list[Value] = []
        for number, text in enumerate(texts):
            deliver = Deliver(
                0, "words", self.name, batch, WHEN_NAMED, 0, 1, attempt=f"a{number}", part=number
            )
            workers.ask(deliver, words(text), number % count)
            attempts.append(f"a{number}")
        seconds = self.known()[0][3]
        commit: list[Value] = [["words", self.name, batch, attempts, self.stream, may_skip, seconds]]
        number = workers.durable[0].number
        reply = workers.ask(Decide(0, 0, seals=True, enter=commit, incarnation=number))
        ((is_new, _),) = reply.values["entered"]  # type: ignore[misc, has-type]
        return bool(is_new)

    def known(self) -> list[list[int]]:
        """Last batch, its rows here, open epoch and clock, for each worker."""
        ask = Missing(0, 0, [], [["words", self.name]])
        replies = [self.workers.ask(ask, worker=at) for at in range(len(self.workers.workers))]
        return [reply.values["queries"][0] for reply in replies]  # type: ignore[index]

    def last(self) -> tuple[set[int], int]:
        """The last batch, as all workers know it, and its rows on all of them."""
        known = self.known()
        return {each[0] for each in known}, sum(each[1] for each in known)


@pytest.mark.parametrize("is_first", [True, False], ids=["insertion first", "batch first"])
def test_batches_and_insertions_with_the_same_name_are_two(is_first: bool) -> None:
    """The numbers of a query and those of a writer are two series."""
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        for is_insertion in (is_first, not is_first):
            if is_insertion:
                for worker in range(2):
                    part = Deliver(0, "words", "q", 0, WHEN_NAMED, 0, 1)
                    workers.ask(part, words(f"inserted {worker}"), worker)
                entering: list[Value] = [["words", "q", 0, 1]]
                workers.ask(Decide(0, 0, enter=entering, incarnation=1))
            else:
                assert Query(workers).write(0, ["of the batch"])
        workers.seal(1)
        before = sorted(word for _, word in workers.read("loud", 2))
        assert before == ["INSERTED 0", "INSERTED 1", "OF THE BATCH"]
    with DurableWorkers(disk) as workers:
        assert sorted(word for _, word in workers.read("loud", 2)) == before
        assert Query(workers).last() == ({0}, 1) and not Query(workers).write(0, ["of the batch"])
        assert not workers.workers[0].instance(0).input("words").is_new(DeliveryName("q", 0))


def test_batches_keep_the_order_of_their_attempts() -> None:
    """Of a key the later attempt counts, whatever the numbers of its parts and of its worker are."""
    disk = SimulatedDisk()
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        for attempt, price, part, worker in (("a", 1, 5, 1), ("b", 2, 0, 0)):
            rows = pa.table({"item": ["tea"], "price": pa.array([price], pa.int64())})
            deliver = Deliver(0, "prices", "q", 0, WHEN_NAMED, 0, 1, attempt=attempt, part=part)
            workers.ask(deliver, rows, worker)
        looked = Missing(0, 0, [], [["prices", "q"]])
        ((_, _, _, seconds),) = workers.ask(looked).values["queries"]  # type: ignore[misc, has-type]
        commit: list[Value] = [["prices", "q", 0, ["a", "b"], "s", False, seconds]]
        workers.ask(Decide(0, 0, enter=commit, incarnation=1))
    with DurableWorkers(disk) as workers:
        workers.seal(0)
        assert workers.read("prices", 1) == [(0, "tea", 2, 1)]


@pytest.mark.parametrize(("count", "then"), [(1, 3), (3, 1), (2, 3)])
def test_batches_go_on_behind_the_last_one(count: int, then: int) -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk, count) as workers:
        workers.install("shop")
        query = Query(workers)
        assert query.write(0, ["a", "b", "c"]) and query.write(1, ["d", "e"])
        assert query.last() == ({1}, 2)
        whole = workers.read("loud", 2)
    for _ in range(2):
        with DurableWorkers(disk, then) as workers:
            query = Query(workers)
            assert query.last() == ({1}, 2)
            assert workers.read("loud", 2) == whole
            assert not query.write(1, ["d", "e"]), "the last one may come again"
            with pytest.raises(MisuseError, match="batch 0 of query q has come already"):
                query.write(0, ["a"])
            with pytest.raises(MisuseError, match="comes before batch 2"):
                query.write(3, ["z"])
            with pytest.raises(MisuseError, match="another stream writes under that name"):
                Query(workers, stream="t").write(2, ["z"])
    with DurableWorkers(disk, count) as workers:
        epoch = workers.ask(Describe(0)).integer("epoch")
        assert Query(workers, stream="t").write(5, [], may_skip=True)
        assert Query(workers, stream="t").last() == ({5}, 0)
        assert workers.read("loud", epoch + 1) == whole
    with DurableWorkers(disk, then) as workers:
        assert Query(workers).last() == ({5}, 0)
        with pytest.raises(MisuseError, match="another stream"):
            Query(workers).write(6, ["z"])
        assert Query(workers, stream="t").write(6, ["f"])


def test_batches_of_queries_that_write_once_are_known() -> None:
    disk = SimulatedDisk()
    with DurableWorkers(disk) as workers:
        workers.install("shop")
        assert Query(workers, WRITES_ONCE + "one", "").write(0, ["a"])
    with DurableWorkers(disk, 2) as workers:
        assert not Query(workers, WRITES_ONCE + "one", "").write(0, ["a"])
        assert workers.read("loud", 1) == [(0, "A")]


@pytest.mark.parametrize("then", [1, 3])
def test_batches_go_on_behind_those_that_a_base_has(then: int) -> None:
    disk = SimulatedDisk()
    once = WRITES_ONCE + "one"
    with DurableWorkers(disk, 2) as workers:
        workers.install("shop")
        assert Query(workers).write(0, ["a"]) and Query(workers).write(1, ["d", "e"])
        assert Query(workers, once, "").write(0, ["f"])
        whole = workers.read("loud", 3)
    for life in range(2):
        store = SimulatedStore(disk)
        incarnation = announce(store, 1)
        assert fold(logs_of(store, incarnation)) is not None
        prune(store, incarnation.number, count=1)
        with DurableWorkers(disk, then + life) as workers:
            assert Query(workers).last() == ({1}, 2)
            assert not Query(workers).write(1, ["d", "e"]) and not Query(workers, once, "").write(0, ["f"])
            with pytest.raises(MisuseError, match="batch 0 of query q has come already"):
                Query(workers).write(0, ["a"])
            with pytest.raises(MisuseError, match="another stream writes under that name"):
                Query(workers, stream="t").write(2, ["z"])
            assert workers.read("loud", 3) == whole
