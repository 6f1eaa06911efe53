"""short_way.py: for keys that it takes it says what the long way says, and it takes nearly all.

Whether that is right: `test_reduce_sums.py`.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference.words import as_words, rows_of
from strategies_words import CODES, Int64s

from differential.kernels.history.times import steps_of
from differential.kernels.rows.sort import sort_consolidate
from differential.kernels.sums.accumulated import COUNT, TOTAL
from differential.kernels.sums.corners import classes_of
from differential.kernels.sums.reduce_sums import go_the_long_way
from differential.kernels.sums.short_way import IS_LONG, IS_OVER, NEEDS_ROOM, go_the_short_way
from differential.thresholds import LATER_TIMES_MAX
from differential.trace import run as run_module
from differential.trace import trace as trace_module
from differential.trace.trace import Trace

NOTHING = np.empty((2, 0), np.int64)
DISTINCT = np.zeros((2, 0), np.int64)
TOTALS = np.array([[COUNT, 0, -1, 0, 0, 3, 1], [TOTAL, 1, -1, 0, 0, 3, 1]]).T.copy()
ROOM = 64


def _places(runs: int, vw: int, guards: int, has_components: bool) -> Int64s:
    places = np.zeros((4, max(runs, 8)), np.int64)
    places[3, :8] = 1, vw, guards, 0, -1, has_components, steps_of(guards), classes_of(guards)
    return places


def _ways(
    ready: Int64s, trace: Trace, frontier: Int64s, asked: Int64s
) -> tuple[int, tuple[list[object], ...], tuple[list[object], ...]]:
    """What stopped the short way, and what both ways say of one key."""
    said = []
    stopped = IS_LONG
    for is_long in (False, True):
        places = _places(len(trace.lines), trace.vw, trace.guards, asked.shape[0] > 2)
        out = np.empty((1 + asked.shape[1] + 2, ROOM), np.int64)
        pended = np.empty((2, ROOM), np.int64)
        arguments = ready, NOTHING, trace.lines, frontier, asked, places
        if not is_long:
            stopped = go_the_short_way(*arguments, out, pended)
        else:
            go_the_short_way(*arguments, out[:, :0].copy(), pended)  # without room: it stops at the key
            assert not places[2, :4].any()
            for run, line in enumerate(trace.lines):
                places[1, run] = line[0]  # all rows of the trace are of this key
            out, pended = go_the_long_way(*arguments, out, pended)
        said.append((rows_of(out[:, : places[2, 2]]), rows_of(pended[:, : places[2, 3]])))
    return stopped, said[0], said[1]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("has_components", [False, True])
def test_short_is_what_long_is_of_one_key(
    depth: int, has_components: bool, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "HEAD_ROWS_MAX", 4)
    monkeypatch.setattr(run_module, "PACKED_ROWS_MIN", 6)
    monkeypatch.setattr(run_module, "DIRECTORY_ROWS_MIN", 6)
    code, asked, rng = CODES[depth], TOTALS if has_components else DISTINCT, random.Random(seed)
    short = 0
    for _ in range(100 * effort):
        trace = Trace(1, 1, code.guards)
        time = (rng.randrange(1, 3), *(rng.randrange(3) for _ in range(depth - 1)))
        for _ in range(rng.randrange(4)):
            # Of earlier epochs, in whatever iteration: what is later there stays to be looked at.
            times = [(rng.randrange(time[0]), *(rng.randrange(4) for _ in time[1:])) for _ in range(2)]
            rows = [
                (7, rng.randrange(3), code.pack(rng.choice(times)), rng.choice([1, 1, 2, -1]))
                for _ in range(rng.randrange(1, 6))
            ]
            trace.insert(sort_consolidate(as_words(rows, 4)))
        new = [(7, rng.randrange(3), code.pack(time), rng.choice([1, 2, -1])) for _ in range(2)]
        ready = sort_consolidate(as_words(new, 4))
        if ready.shape[1] == 0:
            continue
        frontier = np.array([code.pack((*time[:-1], time[-1] + 1))])
        stopped, one, other = _ways(ready, trace, frontier, asked)
        if stopped == IS_OVER:
            short += 1
            assert one == other
        else:
            assert stopped == IS_LONG and one == ([], [])
    assert short > 40 * effort, "nearly all take the short way"


def test_it_stops_for_room_and_goes_on_where_it_stopped() -> None:
    code = CODES[1]
    ready = as_words([(key, 0, 1) for key in range(9)], 3)
    places = _places(1, 0, code.guards, False)
    trace, frontier = Trace(1, 0, code.guards), np.array([1])
    out, pended = np.empty((3, 6), np.int64), np.empty((2, LATER_TIMES_MAX), np.int64)
    found = []
    for _ in range(3):
        stopped = go_the_short_way(ready, NOTHING, trace.lines, frontier, DISTINCT, places, out, pended)
        found += rows_of(out[:, : places[2, 2]])
        places[2, 2] = 0
        assert stopped == (NEEDS_ROOM if len(found) < 9 else IS_OVER)
    assert found == [(key, 0, 1) for key in range(9)] and places[2, 0] == 9
