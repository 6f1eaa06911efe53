"""Readers in scopes inside their trace's, and one iteration behind it. The rest is in `test_shared.py`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, accumulated, as_words, less_equal, rows_of
from strategies_words import CODES, antichain, rows

from differential.kernels.rows.columns import decode_words
from differential.kernels.rows.memory import LUB
from differential.kernels.rows.sort import sort_consolidate
from differential.trace.readers import KEEP_ALL, Path, delayed
from differential.trace.shared import SharedTrace
from progress.times.anchor import Rebase

INNER = CODES[3]
KEEP = INNER.keep_mask(2)
OUTER_GUARDS = INNER.layout.guard(0) | INNER.layout.guard(1)
COUNTER = (1 << INNER.fields[2][1]) - 1
times = st.tuples(*[st.integers(0, 3)] * 3)


@given(st.lists(times, min_size=1, max_size=4), times, st.booleans())
def test_a_hold_from_an_inner_scope_keeps_apart_what_is_asked_about_there(
    bounds: list[tuple[int, ...]], asked: tuple[int, ...], corners: bool
) -> None:
    """Whatever inner time ≥ the frontier: its outer part is ≥ some time of the hold, and so are its corners
    if they are asked about. What is held is a time of the trace, and no earlier than need be.
    """
    trace = SharedTrace(1, 0, OUTER_GUARDS)
    reader = trace.read("join", by_position=True, path=Path(keep=KEEP))
    reader.asks_corners = corners
    frontier = antichain(bounds, INNER)
    reader.set_frontier(frontier)
    for first, second in zip(reader.hold.tolist(), reader.hold.tolist()[1:], strict=False):
        assert not less_equal(first, second, OUTER_GUARDS)
    word, first = INNER.pack(asked), INNER.pack(tuple(max(0, at - corners) for at in asked)) & KEEP
    if any(less_equal(int(bound), word, INNER.guards) for bound in frontier):
        assert any(less_equal(hold, first, OUTER_GUARDS) for hold in reader.hold.tolist())
    reader.set_frontier(antichain([asked], INNER))
    assert reader.hold.tolist() == [first]


@given(rows(1, depth=3), st.lists(times, min_size=1, max_size=3), st.lists(times, max_size=4))
def test_a_delayed_reader_finds_each_row_one_iteration_later(
    some: list[Row], bounds: list[tuple[int, ...]], asked: list[tuple[int, ...]]
) -> None:
    """Also after compaction, at every time that its frontier allows."""
    trace = SharedTrace(1, 0, INNER.guards)
    reader = trace.read("join", by_position=True, path=Path(KEEP_ALL, 1, COUNTER))
    words = sort_consolidate(as_words(some, 3))
    if words.shape[1]:
        trace.add(words)
        reader.accept(1)
    frontier = antichain(bounds, INNER)
    reader.set_frontier(frontier)
    trace.compact()
    lines = delayed(reader.table, 1)
    got = [row for line in range(len(lines)) for row in rows_of(decode_words(lines, line, 3))]
    later = [(key, time + 1, diff) for key, time, diff in some]
    for time in [*bounds, *asked]:
        word = INNER.pack(time)
        if any(less_equal(int(bound), word, INNER.guards) for bound in frontier):
            assert accumulated(got, word, INNER.guards) == accumulated(later, word, INNER.guards)
    for line in range(len(lines)):
        for time in decode_words(lines, line, 3)[1].tolist():
            assert less_equal(time, int(lines[line, LUB]), INNER.guards)


def test_a_frontier_that_was_noted_moves_with_the_words() -> None:
    trace = SharedTrace(1, 0, INNER.guards)
    reader = trace.read("join", by_position=True)
    reader.set_frontier(np.array([INNER.pack((5, 1, 2))]))
    reader.rebase(Rebase(3, INNER.fields[0][0]))
    assert reader.hold.tolist() == [INNER.pack((2, 1, 2))]
