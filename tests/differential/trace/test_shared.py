"""A trace with one writer and many readers.

laws_*     random inserts, acceptances, holds, readers that come and go, merges; partially ordered times
tail_*     what is in it, what leaves it and when
since_*    what all readers allow, and who may begin to read
report_*   bytes, lags, and who is to blame
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, beyond, closure_of, lub, rows_of
from strategies_words import CODES, RandomHistory, antichain

from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.sort import sort_consolidate
from differential.trace import run as run_module
from differential.trace import shared as shared_module
from differential.trace import trace as trace_module
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace
from differential.trace.view import View
from progress.compiled.arrays import Int64s
from progress.errors import InternalError
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp

CODE = CODES[2]
NOTHING = np.empty(0, np.int64)


def rows_in(lines: Int64s, columns: int) -> list[Row]:
    """All rows that some lines of a run table describe."""
    return [row for line in range(len(lines)) for row in rows_of(decode_words(lines, line, columns))]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows fill a head, a packed run, and a tail."""
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 16)
    monkeypatch.setattr(trace_module, "HEAD_ROOM_FIRST", 2)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 20)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 20)
    monkeypatch.setattr(shared_module, "TAIL_PIECES_MAX", 2)


def _merge(trace: SharedTrace, how: str) -> None:
    if how == "compact":
        trace.compact()
    elif how == "effort":
        trace.effort(9)
    elif how == "settle":
        trace.settle(9)
    else:
        trace.freeze_head()


@dataclass
class _Seen:
    """A reader, the times of its hold; for a pinned view what it has to show."""

    reader: Reader
    bounds: list[Timestamp]


class _Random:
    """A shared trace to which anything happens, and a list of its inserts."""

    def __init__(self, rng: random.Random, depth: int, words: int) -> None:
        self.rng = rng
        self.code = CODES[depth]
        self.words = words
        self.history = RandomHistory(rng, depth, words)
        self.trace = SharedTrace(words, 0, self.code.guards)
        self.inserts: list[list[Row]] = []
        self.seen = [self._begin([(0,) * depth]) for _ in range(rng.randrange(1, 4))]
        self.pinned: list[tuple[View, list[Row], list[Timestamp]]] = []

    def _begin(self, bounds: list[Timestamp]) -> _Seen:
        hold = antichain(bounds, self.code)
        return _Seen(self.trace.read("one", by_position=self.rng.random() < 0.7, hold=hold), bounds)

    def act(self) -> None:
        rng, trace = self.rng, self.trace
        chosen = rng.randrange(10)
        one = rng.choice(self.seen)
        if chosen < 3:
            words = sort_consolidate(self.history.next_rows(rng.choice([2, 5, 30])))
            self.history.rise()
            if words.shape[1]:
                self.inserts.append(rows_of(words))
                assert trace.add(words) == len(self.inserts)
        elif chosen < 5 and one.reader.position is not None:
            one.reader.accept(trace.sequence)
        elif chosen < 7:
            self._move(one)
        elif chosen == 7 and not one.reader.is_done:
            self.pinned.append((one.reader.pin(), self._told(one.reader), one.bounds))
        elif chosen == 8 and trace.since.shape[0]:
            start = [self.code.unpack(word) for word in trace.since.tolist()]
            self.seen.append(self._begin([self._later(rng.choice(start))]))
        else:
            _merge(trace, rng.choice(["compact", "effort", "settle", "freeze"]))

    def _later(self, time: Timestamp) -> Timestamp:
        return tuple(part + self.rng.randrange(2) for part in time)

    def _move(self, one: _Seen) -> None:
        if self.rng.random() < 0.05:
            one.bounds = []
        elif one.bounds:
            one.bounds = [self._later(self.rng.choice(one.bounds)) for _ in range(self.rng.randrange(1, 3))]
        one.reader.set_hold(antichain(one.bounds, self.code))

    def _told(self, reader: Reader) -> list[Row]:
        """The inserts that a reader is to see."""
        until = len(self.inserts) if reader.position is None else reader.position
        return [row for rows in self.inserts[:until] for row in rows]

    def _same(self, lines: Int64s, told: list[Row], bounds: list[Timestamp]) -> None:
        guards = self.code.guards
        hold = [int(word) for word in antichain(bounds, self.code)]
        got = rows_in(lines, self.words + 2)
        some = self.rng.sample(told, min(4, len(told)))
        times = {lub(row[-2], bound, guards) for row in some for bound in hold} | set(hold)
        for time in closure_of(times, guards):
            assert beyond(time, hold, guards)
            assert accumulated(got, time, guards) == accumulated(told, time, guards)

    def check(self) -> None:
        """Laws 1 to 3."""
        self.trace.check_invariants()
        for one in self.seen:
            if not one.reader.is_done:
                self._same(one.reader.table, self._told(one.reader), one.bounds)
        for view, told, bounds in self.pinned:
            self._same(view.table, told, bounds)
        minimal = antichain([time for one in self.seen for time in one.bounds], self.code)
        assert self.trace.since.tolist() == minimal.tolist()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_laws_hold_whatever_happens(depth: int) -> None:
    @given(st.integers(0, 2**32), st.integers(0, 2))
    def hold(seed: int, words: int) -> None:
        some = _Random(random.Random(seed), depth, words)
        for _ in range(40):
            some.act()
            some.check()

    hold()


def _trace(positions: int, **more: bool) -> tuple[SharedTrace, list[Reader]]:
    trace = SharedTrace(1, 0, CODE.guards, "edges by src")
    return trace, [trace.read(f"join {n}", by_position=True, **more) for n in range(positions)]  # type: ignore[arg-type]


def _insert(trace: SharedTrace, *keys: int, time: Timestamp = (0, 0)) -> int:
    return trace.add(as_words([(key, CODE.pack(time), 1) for key in sorted(keys)], 3))


def _keys(reader: Reader | View) -> list[int]:
    return sorted(row[0] for row in rows_in(reader.table, 3))


# tail_


def test_tail_is_seen_by_those_who_accepted_it_and_settles_when_all_have() -> None:
    trace, (a, b) = _trace(2)
    by_time = trace.read("count", by_position=False)
    assert [_insert(trace, 1), _insert(trace, 2)] == [1, 2]
    assert (_keys(a), _keys(b), _keys(by_time)) == ([], [], [1, 2])
    a.accept(2)
    assert (_keys(a), _keys(b), trace.report().tail_bytes > 0) == ([1, 2], [], True)
    b.accept(2)
    assert (_keys(a), _keys(b), trace.report().tail_bytes) == ([1, 2], [1, 2], 0)
    trace.check_invariants()


def test_tail_is_not_used_if_all_read_by_time() -> None:
    trace = SharedTrace(1, 0, CODE.guards)
    trace.read("count", by_position=False)
    _insert(trace, 1)
    assert trace.report().tail_bytes == 0 and len(trace.table) == 1


def test_tail_comes_behind_the_head_in_the_table() -> None:
    """What is in the head is changed in place while others wait behind it."""
    trace, (a, b) = _trace(2)
    _insert(trace, 1)
    a.accept(1)
    b.accept(1)
    _insert(trace, 2)
    _insert(trace, 3)
    a.accept(3)
    assert (_keys(a), _keys(b)) == ([1, 2, 3], [1])
    b.accept(3)
    assert (_keys(a), _keys(b)) == ([1, 2, 3], [1, 2, 3])
    trace.freeze_head()
    _insert(trace, 4)
    assert (_keys(a), _keys(b), sorted(trace.words()[0])) == ([1, 2, 3], [1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize("how", ["compact", "effort", "settle", "freeze"])
def test_tail_is_not_reached_by_merges(how: str) -> None:
    trace, (a, b) = _trace(2)
    for key in range(4):
        _insert(trace, *range(100 * key, 100 * key + 12))
        a.accept(trace.sequence)
        if key == 1:
            b.accept(trace.sequence)
    b_before = _keys(b)
    for _ in range(5):
        _merge(trace, how)
    assert _keys(b) == b_before
    assert len(_keys(a)) == 48
    trace.check_invariants()


def test_tail_pieces_become_one_but_not_across_a_position() -> None:
    trace, (a, b, c) = _trace(3)
    for number in range(12):
        _insert(trace, number)
        if number == 5:
            a.accept(trace.sequence)
    assert (_keys(a), _keys(b)) == (list(range(6)), [])
    assert len(trace.table) - 1 <= shared_module.TAIL_PIECES_MAX + 2, "twelve pieces would be one line each"
    a.accept(12)
    b.accept(12)
    assert (_keys(a), _keys(b), _keys(c)) == (list(range(12)), list(range(12)), [])
    trace.check_invariants()


def test_tail_does_not_wait_for_a_reader_that_is_done() -> None:
    trace, (a, b) = _trace(2)
    _insert(trace, 1)
    a.accept(1)
    b.set_hold(NOTHING)
    assert trace.report().tail_bytes == 0 and _keys(a) == [1]
    _insert(trace, 2)
    a.accept(2)
    assert trace.report().tail_bytes == 0 and _keys(a) == [1, 2]
    b.accept(2)
    trace.check_invariants()


def test_tail_rows_that_cancel_leave_a_piece_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "TAIL_PIECES_MAX", 1)
    trace, (a, b) = _trace(2)
    for diff in (1, -1):
        trace.add(as_words([(7, 0, diff)], 3))
    assert trace.words().shape[1] == trace.rows == 0 and trace.pin(None).table.shape[0] == 2
    a.accept(2)
    assert _keys(a) == []
    b.accept(2)
    assert trace.rows == 0
    trace.check_invariants()


# since_


def test_since_is_the_least_of_all_holds_and_one_that_is_done_clears_nothing() -> None:
    trace, (a, b) = _trace(2)
    _insert(trace, 1)
    a.accept(1)
    b.accept(1)
    a.set_hold(antichain([(3, 0), (0, 2)], CODE))
    b.set_hold(antichain([(1, 1)], CODE))
    assert [CODE.unpack(word) for word in trace.since.tolist()] == [(0, 2), (1, 1), (3, 0)]
    a.set_hold(NOTHING)
    assert [CODE.unpack(word) for word in trace.since.tolist()] == [(1, 1)] and _keys(b) == [1]
    b.set_hold(NOTHING)
    assert trace.rows == 0 and trace.since.shape == (0,)
    assert _insert(trace, 5) == 2 and trace.rows == 0, "numbers go on, and nothing is kept"
    with pytest.raises(InternalError, match="forgotten"):
        trace.read("late", by_position=True)


def test_since_of_merges_under_way_is_not_undercut_by_who_comes_late() -> None:
    """A merge advances times to the since that it began with: whoever asks about earlier ones is refused."""
    trace, (a,) = _trace(1)
    for epoch in range(3):
        trace.add(as_words([(key, CODE.pack((epoch, 0)), 1) for key in range(12)], 3))
        a.accept(trace.sequence)
    a.set_hold(antichain([(2, 0)], CODE))
    trace.effort(3)
    for early in [(1, 5), (0, 0)]:
        with pytest.raises(InternalError, match="wants to read"):
            trace.read("late", by_position=True, hold=antichain([early], CODE))
    late = trace.read("late", by_position=True)
    trace.compact()
    assert accumulated(rows_in(late.table, 3), CODE.pack((2, 0)), CODE.guards) == {
        (key,): 3 for key in range(12)
    }


def test_since_is_for_nobody_to_say() -> None:
    trace, _ = _trace(1)
    with pytest.raises(InternalError, match="follows from the holds"):
        trace.set_since(NOTHING)


def test_since_moves_on_when_a_reader_closes() -> None:
    trace, (a, b) = _trace(2)
    b.set_hold(antichain([(4, 0)], CODE))
    a.close()
    assert [CODE.unpack(word) for word in trace.since.tolist()] == [(4, 0)]
    assert [reader.name for reader in trace.report().readers] == ["join 1"]


# report_


def test_since_of_a_trace_whose_readers_have_all_closed_lets_no_rows_in() -> None:
    trace = SharedTrace(1, 1, CODE.guards)
    trace.read("a", by_position=True).close()
    for number in range(60):
        trace.add(as_words([(number, 0, CODE.pack((0, 0)), 1)], 4))
    assert trace.is_done and trace.rows == 0
    trace.check_invariants()


def test_report_says_who_lags_and_who_holds_what_back() -> None:
    trace, (a, b) = _trace(2)
    c = trace.read("count", by_position=False)
    for number in range(3):
        _insert(trace, number)
    a.accept(3)
    a.set_hold(antichain([(2, 0)], CODE))
    b.set_hold(antichain([(1, 0)], CODE))
    c.set_hold(antichain([(0, 5), (1, 0)], CODE))
    report = trace.report()
    assert (report.name, report.rows) == ("edges by src", 3)
    assert [(r.name, r.lag) for r in report.readers] == [("join 0", 0), ("join 1", 3), ("count", None)]
    early, both = CODE.pack((0, 5)), CODE.pack((1, 0))
    assert report.since == (early, both)
    assert [r.holds_back for r in report.readers] == [(), (both,), (early, both)]


def test_report_counts_every_byte_once() -> None:
    trace, (a, b) = _trace(2)
    for number in range(3):
        _insert(trace, *range(40 * number, 40 * number + 30))
        a.accept(trace.sequence)
        if number < 2:
            b.accept(trace.sequence)
    before = trace.report()
    assert before.tail_bytes == 30 * 3 * 8 and before.pinned_bytes == 0
    view = b.pin()
    b.accept(3)
    a.set_hold(antichain([(9, 0)], CODE))
    b.set_hold(antichain([(9, 0)], CODE))
    trace.compact()
    after = trace.report()
    assert after.tail_bytes == 0 and after.pinned_bytes > 0, "runs that have been merged since"
    again = trace.pin(0)
    assert trace.report().pinned_bytes == after.pinned_bytes + again.bytes_besides(
        {id(r) for r in again._runs}
    )
    assert after.bytes == trace.bytes
    assert len(_keys(view)) == 60
    del view
    assert trace.report().pinned_bytes == 0


@pytest.mark.parametrize(("epoch", "inexact"), [(1, 1), (5, 0)])
def test_since_moves_with_the_anchor_and_rows_from_before_it_are_exact_no_more(
    epoch: int, inexact: int
) -> None:
    trace = SharedTrace(1, 0, CODE.guards)
    reader = trace.read("count", by_position=False)
    _insert(trace, 1, 2, time=(epoch, 0))
    trace.freeze_head()
    assert (len(trace._runs), reader.exact_from) == (1, 0), "as it came in"
    reader.set_hold(np.array([CODE.pack((3, 0))]))
    trace.rebase(Rebase(3, CODE.fields[0][0]))
    assert (len(trace._runs), reader.exact_from) == (1, inexact)
    assert _keys(reader) == [1, 2] and sorted(reader.hold.tolist()) == [0]
