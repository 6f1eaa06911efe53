"""What is asked of inputs, without a socket; what is refused: `test_server.py`."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from one_worker import LINES, answer, serving

import differential as dd
from timely import Dataflow, MisuseError, RequestError
from timely.running.core import Worker
from timely.wire.requests import Append, AppendEpochs, Arrived, Enter, Insert, InsertRows, Stage
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.server import Server


def test_sealing_with_something_missing_seals_nothing() -> None:
    server, worker, _ = serving()
    expected: list[object] = [["lines", "w", 0], ["lines", "w", 1]]
    answer(server, Append(0, "lines", 0, "w", 1, 0), LINES)
    assert answer(server, Arrived(0, 0, expected)).items("missing") == [("lines", "w", 0)]
    assert answer(server, Arrived(0, 1, expected)).items("missing") == [("lines", "w", 0), ("lines", "w", 1)]
    assert worker.instance(0).input("lines").epoch == 0


def two_workers() -> list[Server]:
    network = MemoryNetwork(2)
    workers = [Worker(index, 2, network.transport(index)) for index in range(2)]
    for worker in workers:
        flow = Dataflow("flow")
        dd.input(flow, "values", "k: int, v: int", key="k", mode="upsert").output("values")
        dd.input(flow, "rows", "k: int, v: int").output("rows")
        worker.install(flow.freeze())
    return [Server(worker) for worker in workers]


SAID = pa.table({"k": [1], "v": [2]})
BY_DIFF = SAID.append_column("diff", pa.array([1]))
BY_EPOCH = BY_DIFF.append_column("at", pa.array([0]))


@pytest.mark.parametrize(
    ("request_", "table"),
    [
        (Append(0, "values", 0, "w", -1, 0), BY_DIFF),
        (AppendEpochs(0, "values", "at", "w", -1, 0), BY_EPOCH),
        (Insert(0, "values", 0, "w", 0, 1), SAID),
        (InsertRows(0, "values", 0, "w", 0, 1, [(1, 2)]), None),
    ],
)
def test_rows_in_the_order_of_calls_are_taken_by_worker_0_alone_where_that_counts(
    request_: Append | AppendEpochs | Insert | InsertRows, table: pa.Table | None
) -> None:
    first, second = two_workers()
    with pytest.raises(RequestError, match=r"'values' keeps the last value by key: worker 0 .* is worker 1$"):
        second.handle(request_, table)
    assert answer(first, request_, table).values["is_new"]
    assert answer(second, replace(request_, input="rows"), table).values["is_new"], (
        "of rows it does not count"
    )


def test_rows_that_have_a_place_in_the_order_anyhow_are_taken_by_any_worker() -> None:
    """By their name, or by the call that lets them enter."""
    for server in two_workers():
        assert answer(server, Append(0, "values", 0, "w", 0, 0), BY_DIFF).values["is_new"]
        assert answer(server, AppendEpochs(0, "values", "at", "w", 1, 0), BY_EPOCH).values["is_new"]
        assert answer(server, Stage(0, "values", 0, "w", 0, 0, 1), SAID).values["is_new"]


def test_parts_of_insertions_for_which_there_is_no_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timely.operators.inputs.deliveries.STAGED_BYTES_MAX", SAID.nbytes)
    server, _ = two_workers()
    assert answer(server, Stage(0, "rows", 0, "w", 0, 0, 1), SAID).values["is_new"]
    with pytest.raises(MisuseError, match="parts of insertions wait here with .* are the limit"):
        server.handle(Stage(0, "rows", 0, "w", 0, 1, 1), SAID)
    assert answer(server, Enter(0, "rows", 0, "w", 0)).values["is_new"]
    assert answer(server, Stage(0, "rows", 0, "w", 1, 0, 1), SAID).values["is_new"]
