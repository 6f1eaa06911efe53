"""Reading an output of real workers piece by piece.

whole_*    all pieces of all workers are all rows
told_*     what a worker says is what is raised
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.client.pieces import Extent, OutputSlice, extent_of, hold_everywhere, pieces
from timely.client.session import Flow
from timely.errors import ForgottenError, PeerError, WaitTimeoutError
from timely.limits import PIECE_BYTES_MAX
from timely.wire.requests import Reply, Request

ROWS = 2 * PIECE_BYTES_MAX // 8 // 3 + 5
"""Of one word, and so several pieces on either of two workers."""


@pytest.fixture(scope="module")
def flow() -> Iterator[Flow]:
    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    with timely.connect(workers=2) as cluster:
        flow = cluster.install(passed_on)
        flow.input("rows").insert(pa.table({"n": np.arange(ROWS)}))
        flow.wait(flow.seal())
        yield flow


def wanted(start: int, *columns: str, stop: int = 1, timeout_seconds: float = 10.0) -> OutputSlice:
    return OutputSlice(0, "rows", "us", start, stop, columns, timeout_seconds=timeout_seconds)


def test_whole_pieces_of_all_workers_are_all_rows_with_their_columns(flow: Flow) -> None:
    assert hold_everywhere(flow._workers, 0, "rows", "us", 1, 60.0) == (1, 0, 1)
    asked = wanted(-1, "diff", "n")
    extents = extent_of(flow._workers, asked)
    assert sum(extent.rows for extent in extents) == ROWS and not any(e.is_negative for e in extents)
    tables = [list(pieces(flow._workers, worker, asked)) for worker in range(2)]
    assert min(map(len, tables)) > 1
    table = pa.concat_tables(sum(tables, []))
    assert table.column_names == ["diff", "n"] and set(table.column("diff").to_pylist()) == {1}
    assert (np.sort(table.column("n").to_numpy()) == np.arange(ROWS)).all()


def test_whole_a_reader_may_stop_in_the_middle(flow: Flow) -> None:
    some = pieces(flow._workers, 0, wanted(0, "n", "epoch"))
    assert next(some).column("epoch").to_pylist()[0] == 0
    some.close()  # type: ignore[attr-defined]  # a generator


def test_told_an_epoch_that_is_not_sealed_and_one_that_is_forgotten(flow: Flow) -> None:
    with pytest.raises(WaitTimeoutError, match="epoch 8 .* is not sealed yet"):
        list(pieces(flow._workers, 1, wanted(-1, "n", stop=9, timeout_seconds=0.0)))
    flow.output("rows").forget(1)
    hold_everywhere(flow._workers, 0, "rows", "later", 1, 60.0)
    with pytest.raises(ForgottenError, match="asked for from 0"):
        hold_everywhere(flow._workers, 0, "rows", "early", 0, 60.0)


class Stuck:
    """A worker that sends the first piece for ever."""

    count = 1

    def __init__(self) -> None:
        self.addresses: list[str] = []

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], timeout_seconds: float = 0.0
    ) -> list[Reply]:
        del timeout_seconds
        return [Reply({"next": 0, "rows": 7}, pa.table({"n": [1]})) for _ in requests]

    def close(self) -> None:
        return


def test_told_a_worker_that_does_not_go_on_is_no_endless_read() -> None:
    with pytest.raises(PeerError, match="again in place of the next"):
        list(pieces(Stuck(), 0, wanted(-1, "n")))
    assert extent_of(Stuck(), wanted(-1, "n")) == [Extent(7, False)]
