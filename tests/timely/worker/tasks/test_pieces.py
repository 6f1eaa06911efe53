"""What a worker answers to readers in pieces, without a socket.

hold_*      what is kept for a reader, and how long
piece_*     what is cut, sifted and left out
refused_*   pieces that there cannot be
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.operators.table_io import TableLog
from timely import ForgottenError, RequestError, RestartedError
from timely.client.session import Flow
from timely.operators.capture import CaptureVertex
from timely.operators.outputs.places import ReaderPositions
from timely.wire.requests import Progress, Read, Reply, Request
from timely.worker.tasks.pieces import check_origin, hold, piece

ALL = Read(
    0, "rows", 0, 2, 0.0, reader="", first=0, part=0, parts=1, columns=["n", "epoch", "diff"], filters=[]
)


@pytest.fixture(scope="module")
def flow() -> Iterator[Flow]:
    """Rows 0 to 4 in epoch 0, and 0 taken away in epoch 1."""

    def passed_on(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").output("rows")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(passed_on)
        flow.input("rows").insert([(n,) for n in range(5)])
        flow.seal()
        flow.input("rows").remove([(0,)])
        flow.seal()
        yield flow


def ask(flow: Flow, request: Request) -> Reply:
    return flow.ask_first(request)


def test_hold_keeps_what_others_forget_and_says_what_there_is(flow: Flow) -> None:
    there = {"complete": 2, "kept": 0, "last": 2, "origin": "/0", "rows": 6, "without": [], "why": ""}
    assert (
        ask(flow, Progress(0, "rows", reader="us", keep_from=1, keep_seconds=60.0, extent=True)).values
        == there
    )
    assert ask(flow, Progress(0, "rows", reader="", keep_from=2, drops=True)).integer("kept") == 1
    assert ask(flow, Progress(0, "rows", keep_from=0, extent=True)).integer("kept") == 1
    with pytest.raises(ForgottenError, match="before 1"):
        ask(flow, Progress(0, "rows", reader="others", keep_from=0, keep_seconds=60.0, extent=True))
    assert ask(flow, replace(ALL, start=1, reader="us")).columns().num_rows == 1


@pytest.mark.parametrize(("asked", "kept"), [(30.0, 30.0), (1e9, 3600.0), (float("nan"), 0.0), (-1.0, 0.0)])
def test_hold_ends_when_nobody_was_heard_of_for_so_long_whatever_was_asked(asked: float, kept: float) -> None:
    """A piece that is asked for is heard."""
    now = [0.0]
    capture = CaptureVertex(TableLog(Schema.of("n: int")))
    capture.places = ReaderPositions(lambda: now[0])
    hold(capture, Progress(0, "rows", reader="us", keep_from=0, keep_seconds=asked, extent=True))
    now[0] = kept
    assert capture.places.forget(5) == 0
    piece(capture, replace(ALL, reader="us"))
    now[0] = 2 * kept
    assert capture.places.forget(5) == 0
    now[0] += 0.5
    assert capture.places.forget(5) == 5


def test_piece_leaves_out_diffs_that_are_all_one_and_rows_that_are_not_asked_for(flow: Flow) -> None:
    wanted = replace(ALL, start=-1, columns=["n", "diff"], filters=[["n", ">", 2]])
    reply = ask(flow, wanted)
    assert reply.columns().to_pydict() == {"n": [3, 4]}
    assert reply.values == {
        "next": -1,
        "rows": 4,
        "is_negative": False,
        "is_one": True,
        "incarnation": 0,
    }
    reply = ask(flow, replace(ALL, start=1, columns=["epoch", "diff"], filters=[["n", "=", 0]]))
    assert reply.columns().to_pydict() == {"epoch": [1], "diff": [-1]} and not reply.values["is_one"]


def test_piece_is_sifted_by_several_conditions_on_a_column_that_does_not_travel(flow: Flow) -> None:
    between = [["n", ">=", 2], ["n", "<=", 3]]
    reply = ask(flow, replace(ALL, start=-1, columns=["diff"], filters=between))
    assert reply.columns().to_pydict() == {"diff": [1, 1]}


def test_piece_of_diffs_alone_keeps_them(flow: Flow) -> None:
    reply = ask(flow, replace(ALL, start=-1, columns=["diff"]))
    assert reply.columns().to_pydict() == {"diff": [1, 1, 1, 1]} and not reply.values["is_one"]


def test_piece_behind_the_last_row_is_empty_and_says_how_many_there_are(flow: Flow) -> None:
    reply = ask(flow, replace(ALL, start=-1, first=1 << 61, columns=["n", "diff"]))
    assert (reply.columns().num_rows, reply.integer("rows"), reply.integer("next")) == (0, 4, -1)
    assert reply.columns().schema == pa.schema([pa.field("n", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": []},
        {"columns": ["n", 1]},
        {"columns": ["m"]},
        {"part": 1},
        {"part": -1},
        {"parts": 0},
        {"first": -2},
        {"filters": [["m", "=", 1]]},
    ],
)
def test_refused_pieces_change_nothing(flow: Flow, wrong: dict[str, object]) -> None:
    with pytest.raises(timely.MisuseError, match="a piece|no column"):
        ask(flow, replace(ALL, start=1, **wrong))  # type: ignore[arg-type]  # some are meant to be wrong
    with pytest.raises(RequestError, match="a condition is"):
        ask(flow, replace(ALL, start=1, filters=["n = 1"]))


def test_refused_is_a_piece_of_an_output_that_began_elsewhere(flow: Flow) -> None:
    origin = ask(flow, Progress(0, "rows", keep_from=0, extent=True)).text("origin")
    assert ask(flow, replace(ALL, start=1, origin=origin)).columns().num_rows == 1
    with pytest.raises(RequestError, match=r"of dataflow 0 is not the one .* Read it again"):
        ask(flow, replace(ALL, start=1, origin="another" + origin))
    with pytest.raises(RequestError, match="Read it again"):  # at once, however far that one is
        ask(flow, replace(ALL, start=1, stop=9, origin="another" + origin))


def test_refused_is_a_piece_behind_one_of_another_incarnation() -> None:
    check_origin(replace(ALL, after=0), "", 3)
    check_origin(replace(ALL, after=3), "", 3)
    for after in (2, 4):
        with pytest.raises(RestartedError, match="has started again while output 'rows' of dataflow 0 was"):
            check_origin(replace(ALL, after=after), "", 3)
