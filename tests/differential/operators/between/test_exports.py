"""What an export keeps, and from which epoch on it can be read.

hold_*      stays one epoch behind the frontier, and at the end of all time at the last change
state_*     what is there, with the times of before advanced
listens_*   every insert is handed on, before the frontier that passes it is seen
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import col
from differential.operators.between.exports import ExportVertex
from differential.trace.shared import SharedTrace
from progress.compiled.arrays import Int64s
from timely.running.core import Worker
from timely.running.instance import Instance


def exporting(level_bits: tuple[int, ...] | None = None) -> tuple[Worker, Instance, ExportVertex]:
    flow = timely.Dataflow("exporting", level_bits=level_bits)
    dd.input(flow, "rows", "k: int, v: int").filter(col.v >= 0).export("kept", by="v")
    worker = Worker()
    instance = worker.install(flow.freeze())
    worker.run_until_idle()
    vertex = instance.runners[instance.frozen.stage_of[instance.frozen.exports["kept"].stage]].vertex
    assert isinstance(vertex, ExportVertex)
    return worker, instance, vertex


def feed(worker: Worker, instance: Instance, *rows: tuple[int, int, int]) -> None:
    """(k, v, diff) in the open epoch, which is sealed."""
    handle = instance.input("rows")
    for k, v, diff in rows:
        batches = handle.encode(pa.table({"k": [k], "v": [v]}), diff, handle.epoch_word(handle.epoch))
        for batch in batches:
            handle.append(handle.epoch, batch)
    handle.seal()
    worker.run_until_idle()


def test_hold_stays_one_epoch_behind_the_frontier() -> None:
    worker, instance, vertex = exporting()
    assert (vertex.upper, vertex.since) == (0, 0)
    found = []
    for _ in range(3):
        feed(worker, instance)
        found.append((vertex.upper, vertex.since))
    assert found == [(1, 0), (2, 1), (3, 2)]


def test_hold_goes_to_the_last_change_when_nothing_comes_any_more() -> None:
    worker, instance, vertex = exporting()
    feed(worker, instance, (1, 1, 1))
    feed(worker, instance, (2, 1, 1))
    for _ in range(4):
        feed(worker, instance)
    instance.input("rows").close()
    worker.run_until_idle()
    assert vertex.upper is None and vertex.since == 5, "it never goes back"
    assert vertex.state(7).tolist() == [[1, 1], [1, 2], [7, 7], [1, 1]]


def readable(vertex: ExportVertex) -> int:
    """The first epoch that somebody still holds."""
    (trace,) = vertex.traces()
    assert isinstance(trace, SharedTrace)
    return vertex.code.unpack(int(trace.since[0]))[0]


def test_hold_of_a_reader_keeps_what_it_began_with_readable() -> None:
    worker, instance, vertex = exporting()
    feed(worker, instance, (1, 1, 1))
    feed(worker, instance, (2, 1, 1))
    reader = vertex.read("somebody")
    for _ in range(4):
        feed(worker, instance, (1, 1, 1))
    assert vertex.code.unpack(int(reader.hold[0])) == (1,) and readable(vertex) == 1
    assert vertex.since == 5, "who comes now begins with what is now"
    assert vertex.counters()["importers"] == 0, "it has not begun"
    reader.close()
    assert vertex.since == readable(vertex) == 5


def test_state_is_what_is_there_with_the_times_of_before_advanced() -> None:
    worker, instance, vertex = exporting(level_bits=(20, 5))
    feed(worker, instance, (1, 5, 2), (2, 4, 1), (3, -1, 1))
    feed(worker, instance, (1, 5, -2))
    feed(worker, instance, (7, 5, 1))
    at = vertex.code.pack((1,))
    later = vertex.code.pack((2,))
    assert vertex.state(1).tolist() == [[4, 5], [2, 7], [at, later], [1, 1]], (
        "by v, and what came later later"
    )
    assert vertex.schema.names == ("v", "k")


class Notes:
    """A listener that writes down what it hears, and how far the export was then."""

    def __init__(self, vertex: ExportVertex) -> None:
        self.vertex = vertex
        self.heard: list[tuple[str, int | None]] = []

    def on_insert(self, rows: Int64s) -> None:
        self.heard.append((f"rows {rows[1].tolist()}", self.vertex.upper))

    def on_frontier(self) -> None:
        self.heard.append(("frontier", self.vertex.upper))


def test_listens_to_every_insert_before_the_frontier_that_passes_it() -> None:
    worker, instance, vertex = exporting()
    feed(worker, instance, (1, 5, 1))
    notes = Notes(vertex)
    vertex.listen(notes)
    feed(worker, instance, (2, 5, 1), (3, 5, 1))
    feed(worker, instance)
    assert notes.heard[0][0] == "rows [2, 3]" and notes.heard[0][1] == 1
    assert ("frontier", 2) in notes.heard and ("frontier", 3) in notes.heard
    assert vertex.counters()["importers"] == 1
    vertex.forget(notes)
    before = len(notes.heard)
    feed(worker, instance, (4, 5, 1))
    assert len(notes.heard) == before
    with pytest.raises(ValueError, match="not in list"):
        vertex.forget(notes)
