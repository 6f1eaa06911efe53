"""Credits: what is sent and not received is counted, and closes the gate; nothing waits for ever.

counted_*   one worker, whose peers answer when the test lets them
all_*       groups of real workers with limits of a few messages, in orders drawn at random
refused_*   what no worker of ours does
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from dataflows import CountWordsVertex, collatz, frozen, word_hash
from random_dataflows import finish, run, step

from progress.errors import PeerError
from timely import Dataflow
from timely.client.tables import records_of
from timely.limits import MESSAGE_BYTES_MIN, MIB, UNRECEIVED_BYTES_MAX
from timely.running import credits
from timely.running.core import Worker
from timely.running.credits import Credits, share_of
from timely.running.gate import Gate
from timely.running.progress_messages import CreditHeader, CreditNews, read_header, write_control_header
from timely.wire.batch import Frame
from timely.wire.transport import Transport
from timely.wire.transport.memory import MemoryNetwork

FEW = 100
"""A limit of bytes."""


class Wire:
    """In the place of a transport: keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Sequence[Frame]]] = []

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        self.sent.append((peer, frames))

    def news(self) -> list[tuple[int, CreditNews]]:
        """Remove and return what was sent."""
        sent, self.sent = self.sent, []
        headers = [(peer, read_header(bytes(frames[0]), 0)) for peer, frames in sent]
        return [(peer, header.news) for peer, header in headers if isinstance(header, CreditHeader)]


def credits_of(workers: int, limit: int | None = FEW) -> tuple[Credits, Wire]:
    wire = Wire()
    return Credits(0, workers, Gate(), cast(Transport, wire), limit), wire


def send(count: Credits, peer: int, size: int = 60) -> None:
    """What a worker does behind each message."""
    count.unmarked[peer] += size
    if count.unmarked[peer] >= count.quantum:
        count.mark(peer)


def test_counted_limits_are_the_last_sizes_at_which_nothing_changes() -> None:
    count, _ = credits_of(2)
    gate = count.gate
    states = []
    for size in (FEW, 1, FEW - 1, 1):  # the limit, above it, twice the limit, above that
        count.unmarked[1] += size
        count.mark(1)
        states.append((gate.is_open, gate.has_credit))
    assert states == [(True, True), (False, True), (False, True), (False, False)]
    states.clear()
    for unreceived in (FEW + 1, FEW, FEW // 2 + 1, FEW // 2):
        count._marks[1].appendleft(count._unreceived[1] - unreceived)
        count.on_news(1, CreditNews.RECEIVED)
        states.append((gate.is_open, gate.has_credit))
    assert states == [(False, False), (False, True), (False, True), (True, True)]


def test_counted_up_to_each_mark_that_is_answered() -> None:
    count, wire = credits_of(2)
    gate = count.gate
    states = []
    for _ in range(4):
        send(count, 1)
        states.append((gate.is_open, gate.has_credit))
    assert states == [(True, True), (False, True), (False, True), (False, False)]
    assert wire.news() == [(1, CreditNews.MARK)] * 4 and count.late_peers() == [1]
    states.clear()
    for _ in range(4):
        count.on_news(1, CreditNews.RECEIVED)
        states.append((gate.is_open, gate.has_credit))
    assert states == [(False, False), (False, False), (False, True), (True, True)], "with some distance"
    assert count.late_peers() == [] and wire.news() == []


def test_counted_by_bytes_of_frames_whatever_holds_them() -> None:
    network = MemoryNetwork(2)
    worker = Worker(0, 2, network.transport(0), credit_bytes=8 * MIB)
    worker.send_control(b"x" * 1_000)
    assert worker.credits.unmarked == [0, 1_000 + MESSAGE_BYTES_MIN + len(write_control_header())]
    large = memoryview(bytearray(8 * MIB)).cast("q")
    assert len(large) == MIB
    worker.send_control(large)
    assert worker.credits.unmarked == [0, 0] and not worker.acting.gate.is_open


def test_counted_not_at_all_without_a_limit() -> None:
    count, wire = credits_of(2, 0)
    for _ in range(9):
        send(count, 1)
    assert count.gate.is_open and wire.news() == [] and count.compared() == ()


def test_counted_small_messages_need_few_marks() -> None:
    count, wire = credits_of(2, None)
    for _ in range(10_000):
        send(count, 1, 600)
    assert count.gate.is_open and len(wire.news()) <= 6


def test_counted_for_each_peer_and_the_others_hear_of_a_hold() -> None:
    count, wire = credits_of(4)
    for _ in range(2):
        send(count, 1)
    holds = [(peer, news) for peer, news in wire.news() if news is not CreditNews.MARK]
    assert holds == [(2, CreditNews.HOLD), (3, CreditNews.HOLD)]
    for _ in range(2):
        send(count, 2)
    assert [news for _, news in wire.news()] == [CreditNews.MARK] * 2
    for _ in range(2):
        count.on_news(1, CreditNews.RECEIVED)
    assert wire.news() == [(1, CreditNews.HOLD)], "it receives again, and another one does not"
    for _ in range(2):
        count.on_news(2, CreditNews.RECEIVED)
    assert wire.news() == [(peer, CreditNews.RELEASE) for peer in (1, 2, 3)]
    assert count.gate.is_open


def test_counted_holds_of_others_close_the_gate_and_stop_no_vertex() -> None:
    count, wire = credits_of(3)
    for peer in (1, 2):
        count.on_news(peer, CreditNews.HOLD)
    assert not count.gate.is_open and count.gate.has_credit and count.late_peers() == [1, 2]
    count.on_news(1, CreditNews.MARK)
    assert wire.news() == [(1, CreditNews.RECEIVED)], "answered whatever the gate says"
    count.on_news(1, CreditNews.RELEASE)
    assert not count.gate.is_open
    count.on_news(2, CreditNews.RELEASE)
    assert count.gate.is_open


def test_counted_limits_share_what_is_in_all() -> None:
    assert [share_of(workers) // MIB for workers in (1, 2, 3, 5, 9, 17, 256)] == [8, 8, 8, 4, 2, 1, 1]
    assert all(share_of(workers) * (workers - 1) <= 2 * UNRECEIVED_BYTES_MAX for workers in range(2, 18))


def test_refused_an_answer_to_no_mark() -> None:
    count, _ = credits_of(2)
    with pytest.raises(PeerError, match="worker 1 has answered a mark that nobody sent it"):
        count.on_news(1, CreditNews.RECEIVED)


# all_


def words_round(dataflow: Dataflow) -> None:
    words = dataflow.input("words")
    dataflow.output("counts", words.stage("count", CountWordsVertex, exchange=word_hash))


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_all_rows_arrive_although_a_worker_receives_nothing_for_long(workers: int, seed: int) -> None:
    """Worker 0 gets rows without end while the last one is stopped: what is under way stays bounded."""
    network = MemoryNetwork(workers)
    group = [
        Worker(index, workers, network.transport(index), credit_bytes=8 * MESSAGE_BYTES_MIN)
        for index in range(workers)
    ]
    instances = [worker.install(frozen(words_round)) for worker in group]
    rng = random.Random(seed)
    expected: Counter[object] = Counter()
    most = 0
    for epoch in range(60):
        rows: list[object] = [f"word {rng.randrange(40)}" for _ in range(10)]
        expected.update(rows)
        instances[0].input("words").send(rows)
        for instance in instances:
            instance.input("words").seal()
        for worker in group[:-1] if epoch < 50 else group:
            worker.step()
        most = max(most, len(network.waiting(0, workers - 1)))
    bound = 2 * 8 + 8 + 2 * 60  # the credit, the marks, and the progress of epochs that were sealed
    assert most < bound, (most, bound)
    finish(group, rng)
    last: dict[object, int] = {}
    for instance in instances:
        for _, (word, count) in cast(
            list[tuple[int, tuple[str, int]]], records_of(instance.output("counts").log.changes(0, 60))
        ):
            last[word] = max(last.get(word, 0), count)
    assert last == expected


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("messages", [1, 4])
def test_all_of_random_dataflows_with_loops_in_loops_ends(
    workers: int, messages: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every predicate of progress tracking holds after every activation, and nothing waits for ever."""
    closed = 0
    set_open = Gate.set_open

    def count_closed(self: Gate, is_open: bool) -> None:
        nonlocal closed
        closed += not is_open
        set_open(self, is_open)

    monkeypatch.setattr(Gate, "set_open", count_closed)
    monkeypatch.setattr(credits, "share_of", lambda workers: messages * MESSAGE_BYTES_MIN)
    for number in range(2 * effort - 1):
        case = seed + number
        expected, _ = run(case, 1, None, monitored=False)
        outputs, watch = run(case, workers, case)
        assert not watch.early and not +watch.asked and outputs == expected, f"seed {case}"
    assert closed > 0, "the gate was closed now and then"


def test_all_of_a_loop_between_workers_that_stop_for_long(seed: int) -> None:
    """In turn all workers but one are stopped, with room for one message."""
    network = MemoryNetwork(3)
    group = [Worker(index, 3, network.transport(index), credit_bytes=MESSAGE_BYTES_MIN) for index in range(3)]
    instances = [worker.install(frozen(collatz)) for worker in group]
    for number, instance in enumerate(instances):
        instance.input("numbers").send([(n, n, 0) for n in range(3 + number, 30, 3)])
        instance.input("numbers").close()
    rng = random.Random(seed)
    for _ in range(40):
        step([rng.choice(group)], rng, 30)
    finish(group, rng)
    assert all(instance.is_complete() for instance in instances)
    come = sum(
        len(records_of(instance.output(name).log.changes(0, 1)))
        for instance in instances
        for name in instance.frozen.outputs
    )
    assert come == 27
