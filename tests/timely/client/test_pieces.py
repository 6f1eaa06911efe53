"""Reading an output of real workers piece by piece.

whole_*    all pieces of all workers are all rows
told_*     what a worker says is what is raised
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from fixed_members import FixedMembers

import differential as dd
import timely
from timely.client.pieces import Extent, Held, OutputSlice, extent_of, hold_everywhere, pieces
from timely.client.session import Flow
from timely.errors import ForgottenError, PeerError, WaitTimeoutError
from timely.limits import APPEND_BYTES_MAX, PIECE_BYTES_MAX
from timely.wire.requests import Progress, Reply, Request

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
    assert hold_everywhere(
        flow._workers, Progress(0, "rows", reader="us", keep_from=1, keep_seconds=60.0, extent=True)
    )[:3] == (1, 0, 1)
    asked = wanted(-1, "diff", "n")
    extents = extent_of(flow._workers, asked)
    assert sum(extent.rows for extent in extents) == ROWS and not any(e.is_negative for e in extents)
    tables = [list(pieces(flow._workers, worker, asked)) for worker in range(2)]
    assert min(map(len, tables)) > 1
    table = pa.concat_tables(sum(tables, []))
    assert table.column_names == ["diff", "n"] and set(table.column("diff").to_pylist()) == {1}
    assert (np.sort(table.column("n").to_numpy()) == np.arange(ROWS)).all()


def test_whole_pieces_have_their_columns_in_the_order_in_which_they_are_asked_for(flow: Flow) -> None:
    """Also diffs that are all one, which do not travel."""
    for names in (("n", "diff", "epoch"), ("epoch", "n", "diff"), ("diff", "epoch")):
        some = pieces(flow._workers, 0, wanted(0, *names))
        table = next(some)
        assert tuple(table.column_names) == names
        assert (table["diff"][0].as_py(), table["epoch"][0].as_py()) == (1, 0)
        some.close()  # type: ignore[attr-defined]  # a generator


def test_whole_a_reader_may_stop_in_the_middle(flow: Flow) -> None:
    some = pieces(flow._workers, 0, wanted(0, "n", "epoch"))
    assert next(some).column("epoch").to_pylist()[0] == 0
    some.close()  # type: ignore[attr-defined]  # a generator


def test_told_an_epoch_that_is_not_sealed_and_one_that_is_forgotten(flow: Flow) -> None:
    with pytest.raises(WaitTimeoutError, match="epoch 8 .* is not sealed yet"):
        list(pieces(flow._workers, 1, wanted(-1, "n", stop=9, timeout_seconds=0.0)))
    flow.output("rows").forget(1)
    hold_everywhere(
        flow._workers, Progress(0, "rows", reader="later", keep_from=1, keep_seconds=60.0, extent=True)
    )
    with pytest.raises(ForgottenError, match="asked for from 0"):
        hold_everywhere(
            flow._workers, Progress(0, "rows", reader="early", keep_from=0, keep_seconds=60.0, extent=True)
        )


class Workers(FixedMembers):
    """Workers that answer whatever they are asked by the same, each by its own."""

    def __init__(self, *replies: Reply) -> None:
        self.addresses: list[str] = []
        self.part_bytes = APPEND_BYTES_MAX
        self.incarnation = 0
        self.count = len(replies)
        self._replies = replies

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], timeout_seconds: float = 0.0
    ) -> list[Reply]:
        del timeout_seconds
        return [self._replies[worker] for worker, _, _ in requests]

    def close(self) -> None:
        return


def test_told_is_what_holds_for_all_workers() -> None:
    apart = Workers(
        Reply({"complete": 9, "kept": 2, "last": 5, "without": [[3, 4]], "why": "bad", "origin": "a/0"}),
        Reply({"complete": 7, "kept": 3, "last": 7, "without": [], "why": "", "origin": "b/0"}),
    )
    wanted = Progress(0, "rows", keep_from=0, extent=True)
    there = hold_everywhere(apart, wanted)
    assert there == Held(7, 3, 7, ("a/0", "b/0"), ((3, 4),), "bad") and there.origin == "a/0"


def test_an_end_has_an_answer_in_front_of_it_if_there_is_one() -> None:
    there = Held(10, 0, 10, ("a/0",), ((2, 4), (4, 5), (8, 10)), "bad")
    for start in range(10):
        for stop in range(start + 1, 11):
            answered = [end for end in range(start + 1, 11) if end - 1 not in (2, 3, 4, 8, 9)]
            in_front = [end for end in answered if end <= stop]
            wanted = in_front[-1] if in_front else answered[0] if answered else None
            assert there.end_with_answer(start, stop) == wanted, (start, stop)


def test_told_a_worker_that_does_not_go_on_is_no_endless_read() -> None:
    stuck = Workers(Reply({"next": 0, "rows": 7}, pa.table({"n": [1]})))  # the first piece, for ever
    with pytest.raises(PeerError, match="again in place of the next"):
        list(pieces(stuck, 0, wanted(-1, "n")))
    assert extent_of(stuck, wanted(-1, "n")) == [Extent(7, False)]
