"""Which value of a key counts, however rows come in: against a plain sort of all deliveries of an epoch.

At an input that keeps the last value by key, appends with names come first, by writer and number; then calls,
in the order in which worker 0 takes them. A decision is such a call: of what enters by it the attempts are
in order, in each the parts, and of one part the workers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import differential as dd
import timely
from timely.client.session import Flow
from timely.wire.requests import IN_EPOCH, IN_OPEN, WHEN_NAMED, Decide, Deliver, Reply, Request

Order = tuple[int, ...]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as two:
        yield two


def last(dataflow: timely.Dataflow) -> None:
    """Keeps the last value of each key."""
    dd.input(dataflow, "last", "k: int, v: int", key="k", mode="upsert").output("last")


def rank(writer: str) -> int:
    """Writers come in the order of a hash of their names, the greatest first."""
    return -(int.from_bytes(blake2b(writer.encode(), digest_size=8).digest(), "little") >> 2)


@dataclass
class Plainly:
    """The twin: of each epoch every value with its place in the order."""

    values: dict[int, list[tuple[Order, int]]] = field(default_factory=dict)
    staged: dict[tuple[str, int, str], dict[tuple[int, int], int]] = field(default_factory=dict)
    calls: int = 0

    def say(self, epoch: int, order: Order, value: int) -> None:
        self.values.setdefault(epoch, []).append((order, value))

    def enter(self, epoch: int, writer: str, sequence: int, attempts: Sequence[str]) -> None:
        for attempt in attempts:
            self.calls += 1
            for place, value in self.staged.pop((writer, sequence, attempt), {}).items():
                self.say(epoch, (1, self.calls, *place), value)

    def at(self, epoch: int) -> list[dict[str, int]]:
        """The rows as of an epoch."""
        for said in sorted(self.values, reverse=True):
            if said <= epoch:
                return [{"k": 1, "v": max(self.values[said])[1]}]
        return []


STEPS = st.one_of(
    st.tuples(st.just("call"), st.booleans()),
    st.tuples(
        st.just("append"), st.sampled_from(["ann", "bob", "eve"]), st.integers(0, 3), st.integers(0, 1)
    ),
    st.tuples(st.just("stage"), st.sampled_from(["", "a", "b"]), st.integers(0, 2), st.integers(0, 1)),
    st.tuples(st.just("insertion")),
    st.tuples(st.just("batch"), st.permutations(["a", "b"]), st.booleans()),
    st.tuples(st.just("seal")),
)


@settings(max_examples=40)  # each installs a dataflow
@given(st.lists(STEPS, min_size=1, max_size=16))
def test_order_is_that_of_names_and_then_of_calls(
    cluster: timely.Cluster, steps: list[tuple[object, ...]]
) -> None:
    flow, plain = cluster.install(last), Plainly()
    epoch = numbers = insertions = batches = 0

    def ask(request: Request, worker: int = 0, table: pa.Table | None = None) -> Reply:
        (reply,) = flow._workers.ask([(worker, request, table)])
        return reply

    taken: set[tuple[int, str, int]] = set()
    for value, step in enumerate(steps):
        table = pa.table({"k": [1], "v": [value]})
        match step:
            case ["call", bool(is_plain)]:
                rows: list[object] = [(1, value)] if is_plain else []
                call = Deliver(flow.index, "last", "calls", numbers, IN_OPEN, 0, 1, rows)
                assert ask(call, 0, None if is_plain else table).integer("epoch") == epoch
                numbers += 1
                plain.calls += 1
                plain.say(epoch, (1, plain.calls), value)
            case ["append", str(writer), int(sequence), int(worker)]:
                if (epoch, writer, sequence) in taken:
                    continue  # it would meet the first at one worker only
                taken.add((epoch, writer, sequence))
                append = Deliver(flow.index, "last", writer, sequence, IN_EPOCH, epoch, 1)
                assert ask(append, worker, table).values["is_new"]
                plain.say(epoch, (0, rank(writer), sequence), value)
            case ["stage", str(attempt), int(part), int(worker)]:
                name = ("calls/parts", insertions) if attempt == "" else ("q", batches)
                stage = Deliver(flow.index, "last", *name, WHEN_NAMED, 0, 1, part=part, attempt=attempt)
                assert ask(stage, worker, table).values["is_new"]
                plain.staged.setdefault((*name, attempt), {})[part, worker] = value
            case ["insertion"]:
                if ("calls/parts", insertions, "") not in plain.staged:
                    continue
                if all(worker for _, worker in plain.staged["calls/parts", insertions, ""]):
                    continue  # worker 0 has no part, and so would not know that it is there
                ask(Decide(flow.index, 0, enter=[["last", "calls/parts", insertions]]))
                plain.enter(epoch, "calls/parts", insertions, [""])
                insertions += 1
            case ["batch", list(attempts), bool(seals)]:
                entry = ["last", "q", batches, attempts, "", False, int(time.monotonic())]
                reply = ask(Decide(flow.index, -1, seals, enter=[entry]))
                assert reply.values["entered"] == [[True, epoch]]
                plain.enter(epoch, "q", batches, attempts)
                batches += 1
                epoch += seals
            case ["seal"]:
                assert ask(Decide(flow.index, epoch, True)).integer("open") == epoch + 1
                epoch += 1
    # Not uninstalled: that collects garbage, which takes a second for each worker late in a run of all tests.
    check(flow, plain, epoch)


def check(flow: Flow, plain: Plainly, epoch: int) -> None:
    """Complete the last epoch, and compare all of them."""
    flow._workers.ask([(0, Decide(flow.index, epoch, True), None)])
    flow.refresh()
    changes = flow.output("last").changes(0, epoch + 1).to_pylist()
    for one in range(epoch + 1):
        held: Counter[int] = Counter()
        for change in changes:
            if change["epoch"] <= one:
                held[change["v"]] += change["diff"]
        assert [{"k": 1, "v": value} for value, times in held.items() if times] == plain.at(one), one
