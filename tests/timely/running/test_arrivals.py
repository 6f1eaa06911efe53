"""Where messages of other workers go, and which of them wait; more in `tests/simulation/anchors`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from differential.columns.update_batch import UpdateBatch, words_of
from progress import TimeLayout
from progress.errors import InternalError
from progress.times.anchor import Anchor, Rebase
from timely.running.arrivals import Arrivals
from timely.wire.batch import Batch, Records

LAYOUT = TimeLayout((4, 3))
SHIFT = LAYOUT.shifts[0]


class _Way(NamedTuple):
    target: object
    port: int
    location: int


class _Came:
    """Notes what has arrived."""

    def __init__(self, anchor: int) -> None:
        self.found: list[tuple[object, int, int, int, list[int]]] = []
        self.anchor = Anchor(anchor)
        ways = [_Way("counted", 2, 7), _Way("not counted", 0, -1)]
        self.arrivals = Arrivals(1, LAYOUT, self.anchor, ways, self._note)  # type: ignore[arg-type]

    def _note(self, target: object, port: int, location: int, word: int, batch: Batch) -> None:
        times = words_of(batch)[-2].tolist() if isinstance(batch, UpdateBatch) else []
        self.found.append((target, port, location, word, times))


def _rows(*epochs: int) -> UpdateBatch:
    return UpdateBatch(np.array([[epoch << SHIFT for epoch in epochs], [1] * len(epochs)], np.int64))


def test_of_the_same_anchor_goes_where_its_number_says() -> None:
    came = _Came(3)
    came.arrivals.receive(0, 1 << SHIFT, _rows(1, 2), 3)
    assert came.found == [("counted", 2, 7, 1 << SHIFT, [1 << SHIFT, 2 << SHIFT])]


def test_of_one_that_is_behind_is_said_in_words_of_here() -> None:
    came = _Came(3)
    came.arrivals.receive(0, 4 << SHIFT, _rows(4, 5), 1)
    assert came.found == [("counted", 2, 7, 2 << SHIFT, [2 << SHIFT, 3 << SHIFT])]


def test_of_one_that_is_ahead_waits_for_the_anchor() -> None:
    came, last = _Came(0), LAYOUT.epochs - 1
    came.arrivals.receive(0, 0, _rows(0, last), 5)
    assert came.found == [] and came.arrivals.late
    (needed,) = came.arrivals.needed()
    assert 0 < needed <= 5
    assert came.arrivals.late_words() == [(7, 5 << SHIFT)]
    came.anchor.epoch = needed
    came.arrivals.rebase(Rebase(needed, SHIFT))
    assert not came.arrivals.late and came.arrivals.late_words() == []
    ahead = 5 - needed
    assert came.found == [("counted", 2, 7, ahead << SHIFT, [ahead << SHIFT, (ahead + last) << SHIFT])]


def test_it_waits_until_the_anchor_is_there_and_no_longer() -> None:
    came = _Came(0)
    came.arrivals.receive(0, 0, _rows(0, LAYOUT.epochs - 1), 5)
    (needed,) = came.arrivals.needed()
    assert needed > 1
    for moved, waits in ((needed - 1, True), (1, False)):
        came.anchor.epoch += moved
        came.arrivals.rebase(Rebase(moved, SHIFT))
        assert bool(came.arrivals.late) == waits and len(came.found) == (not waits)


def test_before_the_anchor_is_refused_if_it_brings_rows_or_is_counted() -> None:
    came = _Came(3)
    for number, batch in ((0, Records([])), (0, _rows(0)), (1, _rows(0))):
        with pytest.raises(
            InternalError, match="counted from epoch 1, where it took everything before epoch 3"
        ):
            came.arrivals.receive(number, 0, batch, 1)


@pytest.mark.parametrize("anchor", [0, 3, 99])
def test_what_is_not_counted_and_brings_no_rows_arrives_at_once(anchor: int) -> None:
    came = _Came(3)
    came.arrivals.receive(1, 0, Records([]), anchor)
    assert came.found == [("not counted", 0, -1, 0, [])]


def test_what_waits_and_is_not_counted_is_not_told_of() -> None:
    came = _Came(0)
    came.arrivals.receive(1, 0, _rows(LAYOUT.epochs - 1), 5)
    assert came.arrivals.late and came.arrivals.late_words() == []
    assert [words_of(batch).shape[1] for batch in came.arrivals.batches()] == [1]
