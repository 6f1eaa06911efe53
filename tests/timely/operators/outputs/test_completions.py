"""An output remembers its last moves, in order, and no more than so many."""

from __future__ import annotations

import time

from timely.limits import DATED_EPOCHS_MAX
from timely.operators.outputs.completions import Completions


def test_moves_come_in_order_with_their_moments() -> None:
    noted, before = Completions(), time.monotonic()
    for epoch in (1, 2, 7):
        noted.note(epoch)
    epochs, moments = zip(*noted.moves(), strict=True)
    assert epochs == (1, 2, 7)
    assert before <= moments[0] <= moments[1] <= moments[2] <= time.monotonic()


def test_the_oldest_moves_are_forgotten() -> None:
    noted = Completions()
    for epoch in range(DATED_EPOCHS_MAX + 5):
        noted.note(epoch)
    assert [epoch for epoch, _ in noted.moves()] == list(range(5, DATED_EPOCHS_MAX + 5))
