"""half_join.py: two half-joins, each looking up the other side, are the join of the two (D13).

meaning_*   random rows, frontiers and compactions, times of depth 1 to 3
pieces_*    what is too much for one activation
refused_*   products that do not fit
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from machines import worked
from reference.words import Row, accumulated, as_words, closure_of, joined, rows_of
from strategies_words import CODES, RandomHistory

from differential.errors import MultiplicityOverflowError
from differential.kernels.history.match import FROM_DELTA, FROM_TRACE
from differential.operators.patterns import half_join, lookups
from differential.operators.patterns.half_join import HalfJoinMachine
from differential.operators.patterns.lookups import Lookup
from differential.trace.shared import SharedTrace
from progress.times.anchor import Rebase

Words = np.typing.NDArray[np.int64]


class _Pair:
    """Two collections of a key and a value, and the two ways of their join: (key, value, other value)."""

    def __init__(self, depth: int) -> None:
        code = CODES[depth]
        self.traces = [SharedTrace(1, 1, code.guards, name) for name in ("first", "second")]
        self.ways = []
        for way in (0, 1):
            mine, other = [(FROM_DELTA, 1)], [(FROM_TRACE, 1)]
            values = mine + other if way == 0 else other + mine
            reader = self.traces[1 - way].read("way", by_position=False)
            lookup = Lookup(1, None, strictly=way == 0)
            machine = HalfJoinMachine(
                lookup, reader, [(FROM_DELTA, 0), *values], code.guards, code.fields[0][0]
            )
            self.ways.append(machine)

    def recv(self, side: int, words: Words) -> None:
        if words.shape[1]:
            self.ways[side].recv(0, [words])
            order = np.lexsort(words[::-1])
            for at in order.tolist():  # one by one: a trace wants them sorted and different
                self.traces[side].add(np.ascontiguousarray(words[:, at : at + 1]))

    def hold(self, frontiers: list[Words]) -> None:
        for way, frontier in zip(self.ways, frontiers, strict=True):
            way.hold_back(frontier)


def _run(rng: random.Random, depth: int) -> None:
    pair, guards = _Pair(depth), CODES[depth].guards
    sides = [RandomHistory(rng, depth, 2) for _ in range(2)]
    sent: list[Row] = []
    for step in range(24):
        choice = rng.randrange(5) if step < 20 else 4
        side = rng.randrange(2)
        if choice < 2:
            pair.recv(side, sides[side].next_rows())
        elif choice == 2:
            sides[side].finish() if rng.random() < 0.05 else sides[side].rise()
        elif choice == 3:
            pair.hold([one.frontier for one in sides])
            rng.choice(pair.traces).compact()
        if step >= 20:
            sides[side].finish()
            sides[1 - side].finish()
        way = pair.ways[side if step < 20 else step % 2]
        way.advance(sides[1 - pair.ways.index(way)].frontier)
        while not way.is_done and (step >= 20 or rng.random() < 0.7):
            sent += rows_of(worked(way))
    assert all(way.is_empty for way in pair.ways)
    for time in closure_of({row[-2] for side in sides for row in side.rows}, guards):
        left, right = (accumulated(side.rows, time, guards) for side in sides)
        assert accumulated(sent, time, guards) == joined(left, right, 1)


@pytest.mark.parametrize("limit", [1, 1000])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_meaning_of_both_ways_together_at_every_time(
    depth: int, limit: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_join, "MATCHED_PIECE_ROWS", limit)
    monkeypatch.setattr(lookups, "MATCHED_PIECE_ROWS", limit)
    for trial in range(12 * effort):
        _run(random.Random(f"{seed} {trial}"), depth)


def test_pieces_hold_what_is_left_and_read_the_trace_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_join, "MATCHED_PIECE_ROWS", 1)
    monkeypatch.setattr(lookups, "MATCHED_PIECE_ROWS", 1)
    pair, code = _Pair(2), CODES[2]
    early, late = code.pack((0, 1)), code.pack((1, 0))
    pair.recv(0, as_words([(key, 5, early, 1) for key in range(2)], 4))
    pair.recv(1, as_words([(0, 8, late, 1), (1, 8, early, 1)], 4))
    way = pair.ways[1]
    way.advance(np.array([code.pack((2, 0))]))
    assert way.needs().tolist() == [early, late]
    assert len(rows_of(worked(way))) == 1 and not way.is_done
    pair.recv(0, as_words([(1, 6, code.pack((2, 0)), 1)], 4))
    assert rows_of(worked(way)) == [(1, 5, 8, early, 1)], "what came since is not before it"
    assert way.is_empty


def test_refused_is_a_product_of_multiplicities_beyond_64_bits() -> None:
    pair = _Pair(1)
    pair.recv(0, as_words([(1, 5, 0, 1 << 40)], 4))
    pair.recv(1, as_words([(1, 6, 0, 1 << 40)], 4))
    way = pair.ways[1]
    way.advance(np.empty(0, np.int64))
    with pytest.raises(MultiplicityOverflowError, match="1099511627776 times, matches"):
        way.work()


def test_rows_that_may_look_up_move_with_what_they_are_to_meet() -> None:
    """A row of epoch 5 meets what is there up to then: also if words count from epoch 3 before it looks."""
    code = CODES[1]
    trace = SharedTrace(1, 1, code.guards, "second")
    reader = trace.read("way", by_position=False)
    words = [(FROM_DELTA, 0), (FROM_DELTA, 1), (FROM_TRACE, 1)]
    way = HalfJoinMachine(Lookup(1, None, strictly=False), reader, words, code.guards, code.fields[0][0])
    by = Rebase(3, code.fields[0][0])
    way.recv(0, [as_words([(7, 1, code.pack((5,)), 1)], 4)])
    for epoch in (4, 6):
        trace.add(as_words([(7, epoch, code.pack((epoch,)), 1)], 4))
    way.advance(np.array([code.pack((9,))]))
    assert not way.is_done
    way.rebase(by)
    trace.rebase(by)
    assert rows_of(worked(way)) == [(7, 1, 4, code.pack((2,)), 1)]
