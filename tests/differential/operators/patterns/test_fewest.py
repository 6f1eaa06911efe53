"""fewest.py: rows learn who has the fewest for them, and go if somebody has nothing."""

from __future__ import annotations

import numpy as np
from machines import worked
from reference.words import as_words, rows_of
from strategies_words import CODES

from differential.operators.patterns.fewest import FewestMachine
from differential.operators.patterns.lookups import Lookup
from differential.trace.shared import SharedTrace

CODE = CODES[1]


def _asked(number: int, held: list[tuple[int, ...]], rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Rows of a key and two notes, after they were told how many rows their key has among `held`."""
    trace = SharedTrace(1, 1, CODE.guards, "kept")
    reader = trace.read("asking", by_position=False)
    trace.add(as_words(sorted(held), 4))
    machine = FewestMachine(Lookup(1, None, True), reader, 3, (1, number), CODE.guards, 0)
    machine.recv(0, [as_words(rows, 5)])
    machine.advance(np.array([0]))
    assert machine.is_done, "not before the arrangement is complete"
    machine.advance(np.empty(0, np.int64))
    return rows_of(worked(machine))


def test_the_first_who_is_asked_is_noted_and_another_only_if_it_has_fewer() -> None:
    rows: list[tuple[int, ...]] = [(key, -1, -1, 1, 1) for key in (1, 2, 3)]
    first = _asked(0, [(1, 5, 0, 1), (1, 6, 0, 1), (2, 5, 0, 1), (3, 5, 0, 1), (3, 6, 0, 1)], rows)
    assert first == [(1, 2, 0, 1, 1), (2, 1, 0, 1, 1), (3, 2, 0, 1, 1)]
    second = _asked(1, [(1, 5, 0, 1), (2, 5, 0, 1)], first)
    assert second == [(1, 1, 1, 1, 1), (2, 1, 0, 1, 1)], "nobody has to be asked any more about 3"
