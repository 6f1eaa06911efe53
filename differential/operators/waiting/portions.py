"""Rows of very many epochs that are complete together, in portions of epochs that follow one another.

Who reduces a key at all its ready times at once meets each of its rows at each of them. That is as it has to
be where times are of loops: whatever is earlier counts. Of epochs a history of thousands, appended in one
call, would cost its square; in portions each is like a frontier that has moved by a few epochs only, and what
came before is one sum in the trace.

A portion costs a call of the kernel and an insert, so there are only as many as are needed to have each row
meet about `TIMES_AT_ONCE` times of its key. Where keys have few times each, as nearly always, all is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from differential.kernels.history.ready import work_at_once
from progress.compiled.arrays import Int64s

ROWS_MIN: Final = 512
"""Fewer rows than this are never divided: the square of them is no more than some milliseconds."""

TIMES_AT_ONCE: Final = 128
"""With so many ready times a row, a portion costs about what another one would."""


def portions(ready: Int64s, key_words: int, guards: int, frontier: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Return pairs (rows, frontier): rows of `ready`, sorted, and up to where it is complete with them.

    ready      int64[key_words + · + 2, n]: sorted rows, with their times in the last line but one
    frontier   up to where all of them are complete; that of the last pair
    Ensures: every row is in one portion, behind the frontiers before and not beyond its own.
    """
    rows, column = ready.shape[1], ready.shape[0] - 2
    count = 1
    if rows >= ROWS_MIN and guards & (guards - 1) == 0:
        count += work_at_once(ready, key_words, column) // (TIMES_AT_ONCE * rows)
    if count > 1:
        times = np.unique(ready[column])
        count = min(count, len(times))
    if count == 1:
        return iter(((ready, frontier),))
    return _divided(ready, frontier, times[np.arange(1, count) * len(times) // count])


def _divided(ready: Int64s, frontier: Int64s, begins: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Cut `ready` before the times `begins`."""
    column, count = ready.shape[0] - 2, len(begins) + 1
    places = np.searchsorted(begins, ready[column], side="right")
    order = np.argsort(places, kind="stable")
    stops = np.cumsum(np.bincount(places, minlength=count))
    start = 0
    for index, stop in enumerate(stops.tolist()):
        until = begins[index : index + 1] if index + 1 < count else frontier
        yield np.take(ready, order[start:stop], axis=1), until  # line by line, as kernels read them
        start = stop
