"""lookups.py: who waits for what, and what may be forgotten meanwhile. Meanings: `test_half_join.py`.

waiting_*   rows by origin
ready_*     when a row may look up
kept_*      what the arrangement must keep apart for rows that come
"""

from __future__ import annotations

import numpy as np
from reference.words import as_words, rows_of
from strategies_words import CODES

from differential.operators.patterns.half_join import HalfJoinMachine
from differential.operators.patterns.lookups import Lookup, WaitingByOrigin
from differential.trace.readers import Reader
from differential.trace.shared import SharedTrace

CODE = CODES[2]
NEVER = np.empty(0, np.int64)


def _at(*time: int) -> int:
    return CODE.pack(time)


def _front(*times: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(sorted(_at(*time) for time in times), np.int64)


def _machine(strictly: bool, origin: int | None = None) -> tuple[HalfJoinMachine, SharedTrace, Reader]:
    """A half-join on one key that gives the key, and the trace that it reads."""
    trace = SharedTrace(1, 0, CODE.guards, "kept")
    reader = trace.read("half-join", by_position=False)
    lookup = Lookup(1, origin, strictly)
    return HalfJoinMachine(lookup, reader, [(0, 0)], CODE.guards, CODE.fields[0][0]), trace, reader


# waiting_


def test_waiting_rows_are_taken_in_the_order_of_integers() -> None:
    waiting = WaitingByOrigin(None, CODE.guards)
    rows = [(1, _at(0, 5), 1), (2, _at(1, 0), 1), (3, _at(0, 1), 1), (4, _at(1, 0), 1)]
    waiting.add(as_words(rows, 3))
    assert len(waiting) == 3 and waiting.first() == _at(0, 1)
    assert waiting.times().tolist() == [_at(0, 1), _at(1, 0)]
    taken = waiting.take(_at(1, 0))
    assert [row[0] for part in taken for row in rows_of(part)] == [3, 1]
    assert [row[0] for part in waiting.take(None) for row in rows_of(part)] == [2, 4]
    assert waiting.times().tolist() == [] and len(waiting) == 0


def test_waiting_rows_are_held_at_their_times_and_taken_by_their_origins() -> None:
    waiting = WaitingByOrigin(1, CODE.guards)
    waiting.add(as_words([(1, _at(0, 2), _at(0, 7), 1), (2, _at(0, 3), _at(0, 4), 1)], 4))
    assert waiting.times().tolist() == [_at(0, 4)]
    (taken,) = waiting.take(_at(0, 3))
    assert rows_of(taken) == [(1, _at(0, 2), _at(0, 7), 1)]
    assert waiting.times().tolist() == [_at(0, 4)]


# ready_


def test_ready_when_nothing_before_the_origin_can_come() -> None:
    for strictly in (False, True):
        machine, trace, _ = _machine(strictly)
        trace.add(as_words([(7, _at(1, 1), 1)], 3))
        machine.recv(as_words([(7, _at(1, 1), 1)], 3))
        machine.advance(_front((0, 9), (2, 0)))
        assert machine.is_idle and not machine.is_empty, "(0, 9) is before (1, 1) as an integer"
        assert machine.capabilities().tolist() == [_at(1, 1)]
        machine.advance(_front((1, 1)))
        assert machine.is_idle == (not strictly), "at its own time more can come, which it meets or not"
        machine.advance(_front((1, 2)))
        assert not machine.is_idle
        assert rows_of(machine.work()) == ([] if strictly else [(7, _at(1, 1), 1)])
        assert machine.is_empty and machine.capabilities().tolist() == []


def test_ready_is_all_when_the_arrangement_is_complete_for_ever() -> None:
    machine, trace, _ = _machine(strictly=True)
    trace.add(as_words([(7, _at(0, 4), 3)], 3))
    machine.recv(as_words([(7, _at(3, 0), 2)], 3))
    machine.advance(NEVER)
    assert rows_of(machine.work()) == [(7, _at(3, 4), 6)], "at the lub of the two"


def test_ready_rows_meet_what_is_before_their_origin_not_before_their_time() -> None:
    machine, trace, _ = _machine(strictly=False, origin=1)
    trace.add(as_words([(7, _at(0, 1), 1), (7, _at(0, 3), 1)], 3))
    machine.recv(as_words([(7, _at(0, 2), _at(0, 5), 1)], 4))
    machine.advance(NEVER)
    assert rows_of(machine.work()) == [(7, _at(0, 5), 1)]


# kept_


def test_kept_apart_is_the_epoch_before_the_first_that_may_come() -> None:
    machine, _, reader = _machine(strictly=False)
    for front, hold in ([(0, 3)], (0, 0)), ([(1, 4), (3, 0)], (0, 0)), ([(3, 2), (4, 0)], (2, 0)):
        machine.hold_back(_front(*front))
        assert reader.hold.tolist() == [_at(*hold)]
    machine.recv(as_words([(7, _at(4, 1), 1)], 3))
    machine.hold_back(_front((6, 0)))
    assert reader.hold.tolist() == [_at(3, 0)], "a row waits that is of epoch 4"
    machine.advance(NEVER)
    machine.hold_back(_front((7, 0)))
    assert reader.hold.tolist() == [_at(3, 0)], "it has not looked up yet"
    machine.work()
    machine.hold_back(_front((7, 0)))
    assert reader.hold.tolist() == [_at(6, 0)]
    machine.hold_back(NEVER)
    assert reader.is_done


def test_kept_is_what_is_before_although_it_was_compacted() -> None:
    """(0, 5) is before (1, 0), and would not be if it had been moved to (1, 5)."""
    machine, trace, _ = _machine(strictly=True)
    trace.add(as_words([(7, _at(0, 5), 1)], 3))
    machine.hold_back(_front((1, 0)))
    trace.compact()
    machine.recv(as_words([(7, _at(1, 0), 1)], 3))
    machine.advance(_front((1, 0)))
    assert rows_of(machine.work()) == [(7, _at(1, 5), 1)]
