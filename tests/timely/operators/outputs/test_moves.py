"""An input and an output remember their last moves, in order, and no more than so many."""

from __future__ import annotations

import time

import pytest
from collection_flows import distances

import timely
from timely.limits import DATED_EPOCHS_MAX
from timely.operators.outputs.moves import EpochMoves
from timely.running.checking.comparable import comparable


def test_an_output_notes_when_more_was_complete_and_inputs_when_they_moved() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        began = time.monotonic()
        for _ in range(3):
            flow.seal(wait=True)
        (name,) = instance.frozen.outputs
        epochs, moments = zip(*instance.output(name).moves.pairs(), strict=True)
        inputs = [runner.moves.pairs() for runner in instance.runners if runner.moves is not None]
    assert epochs == (1, 2, 3)
    assert began <= moments[0] <= moments[1] <= moments[2] <= time.monotonic()
    assert [[epoch for epoch, _ in pairs] for pairs in inputs] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("count", [0, 1, DATED_EPOCHS_MAX - 1, DATED_EPOCHS_MAX, 3 * DATED_EPOCHS_MAX + 5])
def test_the_oldest_moves_are_forgotten_and_none_decides_anything(count: int) -> None:
    noted, before = EpochMoves(), comparable(EpochMoves())
    for n in range(count):
        noted.numbers.extend((n << 50, n / 2))
    last = range(max(0, count - DATED_EPOCHS_MAX), count)
    assert noted.pairs() == [(n << 50, n / 2) for n in last]
    epochs, moments = noted.arrays()
    assert epochs.tolist() == [n << 50 for n in last] and moments.tolist() == [n / 2 for n in last]
    assert comparable(noted) == before
