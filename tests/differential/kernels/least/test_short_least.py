"""Which keys take the short way to their least value, and where it stops. That it says what the long way says
is in `test_reduce.py`, at every time of random histories."""

from __future__ import annotations

import numpy as np
import pytest
from reference.words import Row, as_words, rows_of
from strategies_words import CODES

from differential.kernels.least.short_least import go_the_short_way, room_for_keys
from differential.kernels.rows.probing import KEYS_AT_ONCE
from differential.kernels.rows.search import cursors_of
from differential.trace.trace import Trace

CODE = CODES[2]
LEAST, GREATEST = 0, -1
T00, T01, T10, T20 = (CODE.pack(time) for time in [(0, 0), (0, 1), (1, 0), (2, 0)])


def _go(
    held: list[Row],
    said: list[Row],
    new: list[Row],
    pending: list[Row] | None = None,
    flip: int = LEAST,
    room: int = 64,
    at_once: int = KEYS_AT_ONCE,
) -> tuple[int, list[Row], list[list[int]]]:
    """(how many rows of `new` went the short way, what that said, where the cursors are: two lines for the
    input, two for the answers).
    """
    traces = Trace(1, 1, CODE.guards), Trace(1, 1, CODE.guards)
    for trace, rows in zip(traces, (held, said), strict=True):
        trace.insert(as_words(sorted(rows), 4))
    lines = traces[0].table, traces[1].table
    cursors = cursors_of(lines[0]), cursors_of(lines[1])
    keys_found, places = room_for_keys(KEYS_AT_ONCE, lines, 1)
    places[3] = at_once
    out = go_the_short_way(
        as_words(sorted(new), 4),
        as_words(pending or [], 2),
        lines,
        cursors,
        np.array([1, CODE.guards, flip, -1]),
        keys_found,
        places,
        np.empty((4, room), np.int64),
    )
    return int(places[0]), rows_of(out[:, : places[2]]), [*cursors[0].tolist(), *cursors[1].tolist()]


@pytest.mark.parametrize("at_once", [1, 2, KEYS_AT_ONCE])
@pytest.mark.parametrize("room", [0, 1, 2, 3, 64])
@pytest.mark.parametrize(("flip", "sign"), [(LEAST, 1), (GREATEST, -1)])
def test_new_keys_better_values_and_worse_ones_are_seen_at_a_glance(
    flip: int, sign: int, room: int, at_once: int
) -> None:
    held = [(key, sign * 5, T00, 1) for key in (2, 3, 4)] + [(5, sign * 7, T00, 1), (5, sign * 5, T01, 1)]
    said = [(key, sign * 5, T00, 1) for key in (2, 3, 4)]
    said += [(5, sign * 7, T00, 1), (5, sign * 7, T01, -1), (5, sign * 5, T01, 1)]
    time = CODE.pack((1, 1))
    new = [(1, sign * 8, time, 2), (1, sign * 9, time, -1), (2, sign * 4, time, 1), (3, sign * 6, time, 1)]
    new += [(4, sign * 5, time, 1), (5, sign * 3, time, 1)]
    stopped, out, _ = _go(held, said, new, flip=flip, room=room, at_once=at_once)
    assert stopped == len(new)
    wanted = [(1, sign * 8, time, 1)]
    for key, value in ((2, 4), (5, 3)):
        wanted += sorted([(key, sign * value, time, 1), (key, sign * 5, time, -1)])
    assert out == wanted


@pytest.mark.parametrize(("flip", "sign"), [(LEAST, 1), (GREATEST, -1)])
@pytest.mark.parametrize(
    ("held", "said", "new"),
    [
        ([(2, 5, T00, 1)], [(2, 5, T00, 1)], [(2, 5, T10, -1)]),
        ([(2, 5, T00, 1)], [(2, 5, T00, 1)], [(2, 4, T10, 1), (2, 4, T20, -1)]),
        ([(2, 5, T01, 1)], [(2, 5, T01, 1)], [(2, 7, T10, 1)]),
        ([(2, 3, T00, -1), (2, 5, T00, 1)], [(2, 5, T00, 1)], [(2, 4, T10, 1)]),
        ([(2, 4, T00, -1)], [], [(2, 4, T10, 1)]),
        ([(2, 4, T00, -1), (2, 8, T00, 1)], [(2, 8, T00, 1)], [(2, 5, T10, 1)]),
    ],
    ids=[
        "a row is taken away",
        "at two times",
        "the answer is not earlier",
        "smaller rows",
        "equal rows",
        "the smallest row is not there",
    ],
)
def test_it_stops_where_more_has_to_be_looked_at(
    held: list[Row], said: list[Row], new: list[Row], flip: int, sign: int
) -> None:
    """And the cursors are where the long way finds the key."""

    def signed(rows: list[Row]) -> list[Row]:
        return [(key, sign * value, time, diff) for key, value, time, diff in rows]

    around = [(key, 5, T00, 1) for key in (1, 3)]
    all_new = [(1, 6, T10, 1), *new, (3, 4, T10, 1)]
    stopped, out, cursors = _go(signed(held + around), signed(said + around), signed(all_new), flip=flip)
    assert (stopped, out) == (1, [])
    assert cursors == [[1], [1], [1], [1]]


def test_it_stops_before_a_pending_key_whose_rows_are_still_to_be_found() -> None:
    held = [(key, 5, T00, 1) for key in range(1, 6)]
    new = [(1, 4, T10, 1), (4, 4, T10, 1), (5, 4, T10, 1)]
    stopped, out, cursors = _go(held, held, new, pending=[(2, T10)])
    assert stopped == 1
    assert out == [(1, 4, T10, 1), (1, 5, T10, -1)]
    assert max(cursor[0] for cursor in cursors) <= 1, "before the rows of key 2"
