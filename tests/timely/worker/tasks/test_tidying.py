"""A worker that waits lets go of what nobody has come back for, and looks seldom."""

from __future__ import annotations

import pytest

import differential as dd
import timely
from differential.operators.table_io import TableLog
from timely.limits import READING_SECONDS_MAX
from timely.operators.inputs.handle import InputHandle
from timely.running.core import Worker
from timely.worker.tasks.tidying import Tidying


def test_looks_at_inputs_and_outputs_of_all_dataflows_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    for kind in (InputHandle, TableLog):
        monkeypatch.setattr(kind, "tidy", lambda one: seen.append(one))
    worker, now = Worker(), [0.0]
    instances = []
    for name in ("one", "two"):
        dataflow = timely.Dataflow(name)
        rows = dd.input(dataflow, "rows", "n: int")
        rows.output("rows")
        rows.output("again")
        instances.append(worker.install(dataflow.freeze()))
    there = [one.input("rows") for one in instances]
    there += [one.output(name).log for one in instances for name in ("rows", "again")]
    tidying = Tidying(worker, lambda: now[0])
    found = []
    for seconds in (0.0, READING_SECONDS_MAX - 1, 1.0, READING_SECONDS_MAX - 1, 1.0):
        now[0] += seconds
        seen.clear()
        tidying.look()
        found.append(len(seen))
        assert not seen or set(map(id, seen)) == set(map(id, there))
    assert found == [0, 0, 6, 0, 6]
