"""An epoch that is sealed without rows waits behind sealed ones whose rows have not entered yet."""

from __future__ import annotations

import pyarrow as pa
import pytest

import differential as dd
import timely
from progress.times.time_words import TimeLayout
from timely.running.core import Worker


def _small(levels: int) -> TimeLayout:
    """Words that soon have no room for an epoch."""
    return TimeLayout((3, *[9] * (levels - 1)))


@pytest.mark.parametrize("far", [0, 3, 100])
@pytest.mark.parametrize("closes", [False, True])
def test_an_empty_epoch_does_not_overtake_rows_that_are_still_to_enter(
    far: int, closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        TimeLayout, "default", staticmethod(lambda levels: TimeLayout((3, *[9] * (levels - 1))))
    )
    flow = timely.Dataflow("waits")
    dd.input(flow, "rows", "k: int").distinct().output("same")
    worker = Worker()
    instance = worker.install(flow.freeze())
    handle = instance.input("rows")
    handle.append_all(far, handle.encode(pa.table({"k": [7]}), 1, handle.epoch_word(far)))
    handle.seal(far)
    if closes:
        handle.close()
    else:
        handle.seal(far + 1)
    while actions := worker.enabled():
        worker.perform(actions[0])
        complete = instance.output("same").complete_before
        found = instance.output("same").log.changes(0, complete).num_rows
        assert found == (complete > far), f"{found} rows in epochs before {complete}"
    assert instance.output("same").complete_before > far + 1
