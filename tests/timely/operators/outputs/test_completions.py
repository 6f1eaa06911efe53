"""An output remembers its last moves, in order, and no more than so many."""

from __future__ import annotations

import time

from collection_flows import distances

import timely
from timely.limits import DATED_EPOCHS_MAX
from timely.operators.outputs.completions import Completions
from timely.running.checking.comparable import comparable


def test_an_output_notes_when_more_was_complete() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        began = time.monotonic()
        for _ in range(3):
            flow.seal(wait=True)
        (name,) = instance.frozen.outputs
        noted = list(instance.output(name).completions.moves)
    epochs, moments = zip(*noted, strict=True)
    assert epochs == (1, 2, 3)
    assert began <= moments[0] <= moments[1] <= moments[2] <= time.monotonic()


def test_the_oldest_moves_are_forgotten_and_none_decides_anything() -> None:
    noted, before = Completions(), comparable(Completions())
    noted.moves.extend((epoch, float(epoch)) for epoch in range(DATED_EPOCHS_MAX + 5))
    assert [epoch for epoch, _ in noted.moves] == list(range(5, DATED_EPOCHS_MAX + 5))
    assert comparable(noted) == before
