"""Joins of arrangements, and of these with rows of its own, without a dataflow: each pair once, whatever is
accepted when.

meaning_*   random inserts, deliveries, frontiers, compactions; several arrangements a side; itself with
itself pieces_*    pairs that are put off: what they read stays, and holds nothing back
refused_*   inserts that were lost or come twice
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from reference.words import Row, accumulated, as_words, closure_of, joined, less_equal, rows_of
from strategies_words import CODES, RandomHistory, antichain

from differential.kernels.rows.sort import sort_consolidate
from differential.operators import join as join_module
from differential.operators.arrangement import ArrangedBatch
from differential.operators.join import LEFT, RIGHT, JoinInput, JoinMachine, OwnRows
from differential.trace import shared as shared_module
from differential.trace import trace as trace_module
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from timely.errors import InternalError


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows fill a head and a tail."""
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 8)
    monkeypatch.setattr(shared_module, "TAIL_PIECES_MAX", 1)


class _Random:
    """A join whose port n reads the trace `reads[n]`; inserts are delivered when chance says so."""

    def __init__(self, rng: random.Random, depth: int, sides: Sequence[int], reads: Sequence[int]) -> None:
        self.rng, self.code = rng, CODES[depth]
        guards = self.code.guards
        self.traces = [SharedTrace(1, 1, guards, f"trace {n}") for n in range(max(reads) + 1)]
        self.histories = [RandomHistory(rng, depth, 2) for _ in self.traces]
        self.reads, self.sides = list(reads), list(sides)
        self.inboxes: list[list[ArrangedBatch]] = [[] for _ in reads]
        self.own = [rng.random() < 0.4 for _ in reads]
        inputs = [
            JoinInput(
                side,
                OwnRows(Trace(1, 1, guards))
                if own
                else self.traces[n].read(f"port {port}", by_position=True),
            )
            for port, (side, n, own) in enumerate(zip(sides, reads, self.own, strict=True))
        ]
        self.machine = JoinMachine(1, 1, 1, guards, None, inputs)
        self.others = [trace.read("a reduce", by_position=False) for trace in self.traces]
        self.sent: list[Row] = []
        self.held: list[int] = []

    def insert(self) -> None:
        number = self.rng.randrange(len(self.traces))
        words = sort_consolidate(self.histories[number].next_rows())
        if words.shape[1]:
            batch = ArrangedBatch(words, self.traces[number].add(words))
            for port, read in enumerate(self.reads):
                if read == number:
                    self.inboxes[port].append(batch)

    def frontier(self, port: int) -> list[tuple[int, ...]]:
        """What may still come in there: also what was sent and not received."""
        times = [self.code.unpack(word) for b in self.inboxes[port] for word in b.words[-2].tolist()]
        return [*self.histories[self.reads[port]].bounds, *times]

    def deliver(self, port: int) -> None:
        batches, self.inboxes[port] = self.inboxes[port], []
        if batches:
            self.held += [int(word) for batch in batches for word in batch.words[-2]]
            if self.own[port]:
                rows = np.ascontiguousarray(np.concatenate([batch.words for batch in batches], axis=1))
                self.take(self.machine.recv(port, rows))
            else:
                self.take(self.machine.recv_arranged(port, batches))

    def take(self, words: np.typing.NDArray[np.int64]) -> None:
        guards = self.code.guards
        some = rows_of(words)
        assert all(any(less_equal(word, row[-2], guards) for word in self.held) for row in some)
        self.sent += some
        self.held = self.machine.capabilities().tolist()

    def act(self) -> None:
        rng, machine = self.rng, self.machine
        chosen = rng.randrange(7)
        if chosen < 2:
            self.insert()
        elif chosen < 4:
            self.deliver(rng.randrange(len(self.reads)))
        elif chosen == 4:
            moving = rng.choice(self.histories)
            moving.finish() if rng.random() < 0.05 else moving.rise()
            machine.set_frontiers(
                *[antichain(self.frontier(port), self.code) for port in range(len(self.reads))]
            )
        elif chosen == 5:
            number = rng.randrange(len(self.traces))
            bounds = antichain(self.histories[number].bounds, self.code)
            self.others[number].set_hold(bounds)
            for trace in (self.traces[number], *machine.traces):
                trace.compact() if rng.random() < 0.5 else trace.settle(5)
        elif not machine.is_done:
            self.take(machine.work())
        for trace in (*self.traces, *machine.traces):
            trace.check_invariants()

    def check(self) -> None:
        for port in range(len(self.reads)):
            self.deliver(port)
        while not self.machine.is_done:
            self.take(self.machine.work())
        assert self.held == []
        guards = self.code.guards
        rows = [[row for read, s in zip(self.reads, self.sides, strict=True) if s == side
                 for row in self.histories[read].rows] for side in (LEFT, RIGHT)]  # fmt: skip
        for time in closure_of({row[-2] for history in self.histories for row in history.rows}, guards):
            left, right = (accumulated(some, time, guards) for some in rows)
            assert accumulated(self.sent, time, guards) == joined(left, right, 1)


@pytest.mark.parametrize("limit", [1, 3, 1 << 20])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    ("sides", "reads"),
    [((LEFT, RIGHT), (0, 1)), ((LEFT, RIGHT), (0, 0)), ((LEFT, LEFT, RIGHT), (0, 1, 2)), ((LEFT, LEFT, RIGHT),
    (0, 1, 0))], ids=["two", "itself", "a sum", "a sum with a part of it"],
)  # fmt: skip
def test_meaning_at_every_time(
    sides: tuple[int, ...], reads: tuple[int, ...], depth: int, limit: int, seed: int, effort: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", limit)
    for trial in range(6 * effort):
        some = _Random(random.Random(f"{seed} {trial}"), depth, sides, reads)
        for _ in range(40):
            some.act()
        some.check()


def _two(limit: int, monkeypatch: pytest.MonkeyPatch) -> tuple[JoinMachine, SharedTrace, SharedTrace]:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", limit)
    traces = [SharedTrace(0, 1, CODES[1].guards, name) for name in ("left", "right")]
    inputs = [JoinInput(side, trace.read("join", by_position=True)) for side, trace in enumerate(traces)]
    return JoinMachine(0, 1, 1, CODES[1].guards, None, inputs), traces[0], traces[1]


def _tell(machine: JoinMachine, port: int, trace: SharedTrace, *rows: Row) -> list[Row]:
    words = as_words(rows, 3)
    return rows_of(machine.recv_arranged(port, [ArrangedBatch(words, trace.add(words))]))


def test_pieces_of_pairs_that_are_put_off_read_what_there_was_and_hold_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, left, right = _two(1, monkeypatch)
    assert _tell(machine, LEFT, left, (5, 0, 1)) == []
    assert _tell(machine, RIGHT, right, (7, 1, 1), (8, 1, 1)) == [(5, 7, 1, 1)]
    assert left.report().pinned_bytes > 0 and machine.capabilities().tolist() == [1]
    assert _tell(machine, LEFT, left, (6, 2, 1)) == [], "it waits behind the other"
    assert [report.lag for trace in (left, right) for report in trace.report().readers] == [0, 0]
    machine.set_frontiers(np.array([9]), np.array([9]))
    left.compact()
    right.compact()
    assert left.since.tolist() == [9]
    assert rows_of(machine.work()) == [(5, 8, 1, 1)]
    assert machine.capabilities().tolist() == [2]
    assert rows_of(machine.work()) == [(6, 7, 2, 1), (6, 8, 2, 1)]
    assert machine.is_done and machine.capabilities().shape == (0,)
    assert left.report().pinned_bytes == right.report().pinned_bytes == 0


def test_pieces_stay_although_a_side_is_complete_and_its_trace_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, left, right = _two(1, monkeypatch)
    _tell(machine, LEFT, left, (5, 0, 1))
    _tell(machine, RIGHT, right, (7, 1, 1), (8, 1, 1))
    nothing = np.empty(0, np.int64)
    machine.set_frontiers(nothing, nothing)
    assert left.rows == right.rows == 0
    assert rows_of(machine.work()) == [(5, 8, 1, 1)]


def test_refused_are_inserts_that_were_lost_or_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, left, _ = _two(9, monkeypatch)
    words = as_words([(5, 0, 1)], 3)
    batches = [ArrangedBatch(words, left.add(words)) for _ in range(3)]
    machine.recv_arranged(LEFT, batches[:1])
    for wrong in (batches[:1], batches[2:]):
        with pytest.raises(InternalError, match="received insert"):
            machine.recv_arranged(LEFT, wrong)
