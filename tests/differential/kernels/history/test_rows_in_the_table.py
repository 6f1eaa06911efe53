"""Reduces of a table that has the new rows already, and some that are not complete: what an arrangement
shows.

same_*       corrections and pending times are those of a table that has neither
advanced_*   a complete row may have been advanced beyond the frontier: what it leaves pending is not
forgotten
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from machines import advanced
from reference.words import Row, as_words, beyond, consolidated, rows_of
from strategies_words import CODES, antichain, frontiers, rows

from differential.operators.reduce import Aggregates, GroupFunction, ReduceMachine
from differential.trace.trace import Trace
from progress.compiled.arrays import Int64s

GUARDS = CODES[2].guards
KINDS: dict[str, Aggregates | GroupFunction] = {
    "min": Aggregates((("min", 0),)),
    "max": Aggregates((("max", 0),)),
    "count and max": Aggregates((("count", 0), ("max", 0))),
    "distinct": Aggregates(()),
    "function": GroupFunction(lambda key, members: [values for values, _ in members[:1]], 1),
}


class _Seeing(ReduceMachine):
    """A reduce whose second step reads a table that has more."""

    table: Trace | None = None
    exact = -1

    def _reduce(self, ready: Int64s, pending: Int64s, frontier: Int64s) -> tuple[Int64s, Int64s]:
        if self.table is not None:
            self.input = self.table
            self._shape[4] = self.exact
            if self._least_shape is not None:
                self._least_shape[3] = self.exact
        out, pended = super()._reduce(ready, pending, frontier)
        self.pended = rows_of(pended)
        return out, pended


def _steps(
    name: str, some: list[Row], first: Int64s, second: Int64s, shown: Trace | None, exact: int
) -> tuple[list[Row], list[Row]]:
    """Corrections and pending times of the second of two steps; `shown`: the table that it reads."""
    machine = _Seeing(1, 1, GUARDS, KINDS[name])
    machine.recv(0, [as_words(some, 4)])
    advanced(machine, first)
    if shown is not None:
        machine.table, machine.exact = shown, exact
    machine.pended = []
    return rows_of(advanced(machine, second)), machine.pended


def _two_frontiers(a: Int64s, b: Int64s) -> tuple[Int64s, Int64s]:
    """A frontier, and a later one."""
    both = {*a.tolist(), *b.tolist()}
    return antichain([CODES[2].unpack(word) for word in both], CODES[2]), b


@pytest.mark.parametrize("name", KINDS)
def test_same_as_without_them(name: str) -> None:
    @given(rows(2), frontiers(2), frontiers(2))
    def holds(some: list[Row], a: Int64s, b: Int64s) -> None:
        first, second = _two_frontiers(a, b)
        whole = Trace(1, 1, GUARDS)
        for part in (some[::3], some[1::3], some[2::3]):
            whole.insert(as_words(consolidated(part), 4))
            whole.freeze_head()
        assert _steps(name, some, first, second, whole, 0) == _steps(name, some, first, second, None, -1)

    holds()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("merged", [False, True])
def test_advanced_rows_keep_their_times_pending(name: str, merged: bool) -> None:
    """7 at (0, 3), compacted to (5, 3); 3, which was before it, goes at (5, 1), while only (5, 2) is
    complete."""
    code = CODES[2]
    old = [(1, 3, code.pack((0, 0)), 1), (1, 7, code.pack((0, 3)), 1)]
    new = (1, 3, code.pack((5, 1)), -1)
    first, second = np.array([code.pack((5, 0))]), np.array([code.pack((5, 2))])
    trace = Trace(1, 1, GUARDS)
    trace.insert(as_words(old, 4))
    if merged:
        trace.set_since(first)
        trace.compact()
        assert beyond(int(trace.words()[2, 1]), second, GUARDS)
    trace.insert(as_words([new], 4))
    exact = 1 if merged else 0
    assert _steps(name, [*old, new], first, second, trace, exact)[1] == [(1, code.pack((5, 3)))]
