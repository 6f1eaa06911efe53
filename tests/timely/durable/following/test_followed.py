"""Whoever reads logs as they come has read the same in the end as whoever reads them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_store import SimulatedStore
from written_logs import WrittenLogs, symbols, texts_of

from differential.columns.worker_symbols import SYMBOLS
from timely.durable.bases.coverage import logs_of
from timely.durable.following.followed import FollowedLogs
from timely.durable.incarnations import Incarnation, announce
from timely.durable.journal import BY_EPOCH
from timely.durable.past import PastInput, read_orders, read_rows
from timely.errors import OvertakenError, StoreError
from timely.wire.batch import Batch, Records
from timely.wire.handshake import Decided, Entering, encode_control
from timely.wire.requests import ALL_PARTS, ONE_ATTEMPT

Seen: TypeAlias = Counter[tuple[object, ...]]
WORKERS = 2
STEPS = (
    "few", "texts", "stage", "stage", "drop", "enter", "seal", "durable", "flow", "gone", "read", "read",
    "segment"
)  # fmt: skip


class Writer:
    """Writes a random history of dataflows, each with one input."""

    def __init__(self, logs: WrittenLogs, first_flow: int) -> None:
        self.logs = logs
        self.flows = [first_flow]
        self.newest = first_flow
        self.read_by: dict[int, int] = {}
        """By dataflow, the one that it reads: it ends with that one."""
        self.count = 0
        self.sealed = 0
        self.staged: set[int] = set()
        self.dropped: set[int] = set()
        """Numbers of deliveries; no decision names these any more."""
        logs.flow(first_flow)
        self.wait()

    def wait(self) -> None:
        """Return when all is in the files."""
        for log in self.logs.logs:
            log.wait(log.position, 20.0)

    def step(self, what: str, worker: int, chosen: int) -> None:
        """Do one thing, of worker `worker` where it may be any."""
        self.count += 1
        flow = self.flows[chosen % len(self.flows)]
        journal, first = self.logs.journals[worker].input(flow, "in"), self.logs.journals[0]
        match what:
            case "few":
                journal.few("w", self.count, self.sealed, 1, [(self.count,)])
            case "texts":
                texts = symbols([f"text {self.count % 3}", f"text {self.count}"])
                journal.rows(BY_EPOCH, "v", self.count, [(self.sealed + chosen % 3, [texts])])
            case "stage" if chosen not in self.dropped:
                self.staged.add(chosen)
                part = [Records([self.count])]
                journal.part("p", chosen, ONE_ATTEMPT, self.count, False, part, 10)
            case "drop":
                self.dropped.add(chosen)
                for number in self.flows:
                    for each in self.logs.journals:
                        each.input(number, "in").dropped("p", chosen, ONE_ATTEMPT)
            case "enter":
                epoch = self.sealed if chosen in self.staged - self.dropped else -1
                order = Entering("in", "p", chosen, epoch, self.count, None, ALL_PARTS)
                first.order(flow, encode_control(Decided(flow, -1, (order,), ())))
            case "seal":
                first.sealed(flow, self.sealed, self.sealed)
                self.sealed += 1
            case "durable":
                first.durable(flow, self.sealed)
            case "flow":
                self.newest += 1
                if chosen % 2:
                    self.read_by[self.newest] = flow
                self.flows.append(self.newest)
                self.logs.flow(self.newest, reads=[flow] if chosen % 2 else [])
            case "gone":
                gone = {flow}
                for each in self.flows:  # a dataflow reads earlier ones only
                    if self.read_by.get(each) in gone:
                        gone.add(each)
                if len(gone) < len(self.flows):
                    self.flows = [each for each in self.flows if each not in gone]
                    first.gone([flow], "why", ["UninstalledError"])
            case "segment":
                self.logs.logs[worker].begin_segment()
        self.wait()


def values_of(batches: Sequence[Batch]) -> list[object]:
    values: list[object] = []
    for batch in batches:
        if isinstance(batch, Records):
            values += batch.records
        else:
            values += texts_of(batch, SYMBOLS)
    return values


def take_out(inputs: dict[int, dict[str, PastInput]], seen: Seen) -> None:
    """Note names and rows, each with its dataflow and epoch, and take them out as a worker does."""
    for flow, by_name in inputs.items():
        for past in by_name.values():
            for _, writer, sequence, epoch in past.names:
                seen[flow, "name", writer, sequence, epoch] += 1
            for delivery in past.deliveries:
                for epoch, batches in zip(delivery.epochs, delivery.batches, strict=True):
                    seen.update((flow, epoch, value) for value in values_of(batches))
            for epoch, (rows, _) in past.few.items():
                seen.update((flow, epoch, row) for row in rows)
            for entering in past.entered.values():
                seen[flow, "entered", entering.order] += 1
                for key, part in entering.parts.items():
                    seen.update((flow, entering.order.epoch, key, value) for value in values_of(part.batches))
            past.names.clear()
            past.deliveries.clear()
            past.few.clear()
            past.entered.clear()


def inputs_of(logs: FollowedLogs) -> dict[int, dict[str, PastInput]]:
    return {number: flow.inputs for number, flow in logs.past.flows.items() if number not in logs.past.gone}


def read_whole(store: SimulatedStore, present: Incarnation, share: int) -> Seen:
    logs = logs_of(store, present)
    seen: Seen = Counter()
    flows = read_orders(logs).flows
    take_out(read_rows(logs, list(flows.values()), lambda old: old % WORKERS == share), seen)
    return seen


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 3)), max_size=25),
    st.integers(0, 1),
)
def test_same_as_read_whole(
    earlier: list[tuple[str, int, int]], steps: list[tuple[str, int, int]], share: int
) -> None:
    store = SimulatedStore()
    with WrittenLogs(store, WORKERS) as logs:
        writer = Writer(logs, 0)
        for what, worker, chosen in earlier:
            writer.step(what, worker, chosen)
    seen: Seen = Counter()
    with WrittenLogs(store, WORKERS) as logs:
        writer = Writer(logs, writer.newest + 1)
        followed = FollowedLogs(store, lambda old: old % WORKERS == share)
        for what, worker, chosen in steps:
            if what == "read":
                while followed.read_orders():
                    pass
                followed.read_rows(inputs_of(followed))
                take_out(inputs_of(followed), seen)
                assert all(followed.past.flows[flow].durable <= writer.sealed for flow in writer.flows)
                waiting = [
                    name
                    for by in inputs_of(followed).values()
                    for each in by.values()
                    for name in each.staged
                ]
                assert writer.dropped.isdisjoint(sequence for _, _, sequence, _ in waiting)
            else:
                writer.step(what, worker, chosen)
    while followed.read_orders():
        pass
    followed.read_rows(inputs_of(followed))
    present = announce(store, 1)
    followed.read_rest(present, inputs_of(followed))
    take_out(inputs_of(followed), seen)
    whole = read_whole(store, present, share)
    alive = {flow for flow, *_ in whole} | set(read_orders(logs_of(store, present)).flows)
    assert {each: count for each, count in seen.items() if each[0] in alive} == whole


def test_nothing_to_follow_in_an_empty_store() -> None:
    with pytest.raises(StoreError, match="no cluster that could be followed: start that first"):
        FollowedLogs(SimulatedStore(), lambda old: True)


def test_overtaken_by_another_incarnation_that_has_begun_meanwhile() -> None:
    store = SimulatedStore()
    with WrittenLogs(store) as logs:
        logs.flow(0)
    followed = FollowedLogs(store, lambda old: True)
    with WrittenLogs(store) as logs:
        logs.flow(1)
    with pytest.raises(OvertakenError, match="incarnation 1 was followed"):
        followed.read_rest(announce(store, 1), inputs_of(followed))


def test_rows_of_a_dataflow_that_is_not_known_yet_wait_for_it() -> None:
    store = SimulatedStore()
    with WrittenLogs(store, WORKERS) as logs:
        followed = FollowedLogs(store, lambda old: True)
        logs.flow(0)
        logs.journals[1].input(0, "in").few("w", 0, 0, 1, [(5,)])
        for log in logs.logs:
            log.wait(log.position, 20.0)
        followed.read_rows({})
        assert followed.read_orders() and not followed.read_orders()
        seen: Seen = Counter()
        followed.read_rows(inputs_of(followed))
        take_out(inputs_of(followed), seen)
        assert seen == {(0, "name", "w", 0, 0): 1, (0, 0, (5,)): 1}
        followed.close()


def test_rows_of_a_dataflow_that_has_ended_long_ago_hold_nothing_up() -> None:
    store = SimulatedStore()
    with WrittenLogs(store, WORKERS) as logs:
        followed = FollowedLogs(store, lambda old: True)
        followed.past.ended_before = 3
        logs.flow(3)
        for dataflow in (2, 3):
            logs.journals[1].input(dataflow, "in").few("w", 0, 0, 1, [(5,)])
        for log in logs.logs:
            log.wait(log.position, 20.0)
        assert followed.read_orders()
        seen: Seen = Counter()
        followed.read_rows(inputs_of(followed))
        take_out(inputs_of(followed), seen)
        assert seen == {(3, "name", "w", 0, 0): 1, (3, 0, (5,)): 1}
        followed.close()


def test_nothing_grows_with_what_is_shown() -> None:
    store = SimulatedStore()
    for number in range(2):
        with WrittenLogs(store) as logs:
            logs.flow(number)
            if number:
                followed = FollowedLogs(store, lambda old: True)
            for epoch in range(3):
                logs.journals[0].digest(number, "out", epoch + 1, [(epoch, 5)])
                logs.journals[0].place(number, "out", f"reader {epoch}", epoch, 1.0)
            logs.logs[0].wait(logs.logs[0].position, 20.0)
            if number:
                while followed.read_orders():
                    pass
    present = announce(store, 1)
    followed.read_rest(present, inputs_of(followed))
    assert [(flow.digests, flow.moved) for flow in followed.past.flows.values()] == [({}, {})] * 2


def test_parts_that_one_worker_has_dropped_wait_no_more_and_others_do() -> None:
    store = SimulatedStore()
    with WrittenLogs(store, WORKERS) as logs:
        logs.flow(0)
        for journal in logs.journals:
            for attempt in ("a", "b"):
                journal.input(0, "in").part("q", 3, attempt, 0, True, [Records([attempt])], 1)
        logs.journals[1].input(0, "in").dropped("q", 3, "b")
        for log in logs.logs:
            log.wait(log.position, 20.0)
        followed = FollowedLogs(store, lambda old: True)
        followed.read_rows(inputs_of(followed))
        ((name, parts),) = followed.past.flows[0].inputs["in"].staged.items()
        assert name[1:] == ("q", 3, True)
        assert [(part.worker, part.attempt) for part in parts] == [(0, "a"), (0, "b"), (1, "a")]
        assert values_of([*followed.past.flows[0].inputs["in"].batches()]) == ["a", "b", "a"]
        for worker, attempt in ((0, "a"), (0, "b"), (1, "a")):
            logs.journals[worker].input(0, "in").dropped("q", 3, attempt)
        for log in logs.logs:
            log.wait(log.position, 20.0)
        followed.read_rows(inputs_of(followed))
        assert not followed.past.flows[0].inputs["in"].staged
        followed.close()


def test_parts_of_earlier_batches_wait_no_more_once_a_later_one_enters() -> None:
    """A task that ran twice may stage its part behind the decision about its batch."""
    store = SimulatedStore()
    with WrittenLogs(store, WORKERS) as logs:
        logs.flow(0)
        part = logs.journals[1].input(0, "in").part
        for query, batch in (("q", 1), ("q", 3), ("r", 0)):
            part(query, batch, "a", 0, True, [Records([f"{query} {batch}"])], 1)
        part("q", 0, ONE_ATTEMPT, 0, True, [Records(["insertion"])], 1)
        order = Entering("in", "q", 2, 0, 1, ("b",), ALL_PARTS)
        for log in logs.logs:
            log.wait(log.position, 20.0)
        followed = FollowedLogs(store, lambda old: True)
        followed.read_rows(inputs_of(followed))
        logs.journals[0].order(0, encode_control(Decided(0, -1, (order,), ())))
        logs.logs[0].wait(logs.logs[0].position, 20.0)
        followed.read_orders()
        followed.read_rows(inputs_of(followed))
        left = followed.past.flows[0].inputs["in"].batches()
        assert values_of([*left]) == ["q 3", "r 0", "insertion"]
        followed.close()
