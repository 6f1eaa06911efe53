"""What a worker answers, without a socket; of inputs and outputs: `answers/`.

refusing_*   requests that make no sense
"""

from __future__ import annotations

import sys

import msgpack
import pyarrow as pa
import pytest
from one_worker import LINES, answer, serving

import timely
from timely.wire.handshake import PROTOCOL_VERSION, Farewell, Greeting, Switched, encode_control, own_hashing
from timely.wire.requests import (
    IN_EPOCH,
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Hello,
    Install,
    Missing,
    Progress,
    Read,
    Request,
    Shutdown,
    Stats,
)

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_a_worker_says_who_it_is_and_what_it_runs() -> None:
    server, _, _ = serving()
    hello = answer(server, Hello())
    assert (hello.integer("index"), hello.integer("workers"), hello.items("addresses")) == (0, 1, ["here"])
    assert hello.items("dataflows") == [[0, "dataflows:word_count"]]
    described = answer(server, Describe(0))
    assert described.items("inputs") == [["lines", "records", None, None, False]]
    assert described.items("outputs") == [["counts", "records", None]]
    assert answer(server, Install("dataflows:word_count", {})).integer("dataflow") == 1


def has_rows(request: Request) -> bool:
    return isinstance(request, Deliver) and not request.rows


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Describe(3), "has no dataflow 3"),
        (Deliver(0, "words", "w", 0, IN_EPOCH, 0, 0), "no input 'words'"),
        (Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), "came without a table"),
        (Deliver(0, "lines", "w", 0, IN_EPOCH, -1, 0), "the epoch of"),
        (Deliver(0, "lines", "w", 0, IN_EPOCH, 2**62, 0), "the epoch of"),
        (Decide(0, 2**62, True), "the epoch of"),
        (Deliver(0, "lines", "w", 1, IN_OPEN, 2**62, 0), "the epoch of"),
        (Deliver(0, "lines", "w", 1, IN_OPEN, -(2**62), 1), "takes one binary column 'record'"),
        (Deliver(0, "lines", "w", 1, IN_OPEN, 0, -1), "can only be added to"),
        (Deliver(0, "lines", "w", 1, WHEN_NAMED, 0, 1, part=0), "takes one binary column 'record'"),
        (Decide(0, 0, enter=[["lines", "w", 7]]), "the parts of insertion 7 of writer 'w'"),
        (Decide(0, 0, enter=[["words", "w", 7]]), "no input 'words'"),
        (Decide(0, -1, close=["words"]), "no input 'words'"),
        (Missing(0, 0, [["lines", 1]]), r"what may be missing is an append \[input, writer, sequence\]"),
        (Progress(0, "none", reader="me"), "no output 'none'"),
        (Progress(0, "none", reader="me", keep_from=1, drops=True), "no output 'none'"),
        (Progress(0, "none", 0, 0.0), "no output 'none'"),
        (Install("nowhere:x", {}), "there is no module 'nowhere'"),
        (Install("sys:exit", {}), "exit is not marked as a builder, and workers call nothing else"),
        (Install("os:system", {}), "system is not marked as a builder"),
        (Install("http.server:test", {}), "test is not marked as a builder"),
    ],
    ids=str,
)
def test_refusing_says_why_and_changes_nothing(request_: Request, message: str) -> None:
    server, worker, _ = serving()
    with pytest.raises(timely.MisuseError, match=message):
        server.handle(
            request_,
            None
            if request_ == Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0)
            else LINES
            if has_rows(request_)
            else None,
        )
    answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), LINES)
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    assert answer(server, Read(0, "counts", 0, 1, 0.0)).columns().num_rows == 2
    handle = worker.instance(0).input("lines")
    assert (handle.epoch, handle.rows_waiting, handle.is_closed) == (1, 0, False)


def test_refusing_what_fails_unexpectedly_leaves_the_worker_well() -> None:
    class Fails:
        def encode(self, table: pa.Table, diff: int, epoch_word: int) -> timely.Batch:
            raise ZeroDivisionError("in the codec")

        def describe(self) -> str:
            return "fails"

    server, _, _ = serving()
    server.install(1, "fails", lambda flow: flow.input("x", Fails()), {})
    with pytest.raises(timely.VertexError, match=r"deliver was refused, since a codec.*in the codec"):
        server.handle(Deliver(1, "x", "w", 0, IN_EPOCH, 0, 1), LINES)
    assert not server.is_stopping
    answer(server, Decide(1, 0, True))


def test_redirected_though_the_replacement_failed_here_before_it_began() -> None:
    """Where another worker has started it sooner, and it failed, that news may come before the verdict."""
    server, worker, _ = serving()
    worker.end(0, timely.MisuseError("the old one failed"))
    worker.end(1, timely.MisuseError("the new one failed"))
    server.replacements.switch(Switched(0, 1, 0))
    with pytest.raises(timely.MisuseError, match="the new one failed"):
        server.handle(Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 1), LINES)


def test_stopping_is_asked_for_by_a_client_or_a_peer() -> None:
    server, worker, _ = serving()
    answer(server, Shutdown())
    assert server.is_stopping
    server, worker, _ = serving()
    assert worker.on_control is not None
    worker.on_control(0, memoryview(encode_control(Farewell(""))))
    assert server.is_stopping
    with pytest.raises(timely.PeerError, match="worker 0 failed: no room"):
        worker.on_control(0, memoryview(encode_control(Farewell("no room"))))
    with pytest.raises(timely.PeerError, match="was started for 2 workers"):
        worker.on_control(
            0, memoryview(encode_control(Greeting(PROTOCOL_VERSION, 2, 0, "", PYTHON, hashing=own_hashing())))
        )


def test_counters_count_stages_connectors_and_what_waits() -> None:
    server, worker, _ = serving()
    answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 0, 0), LINES)
    answer(server, Deliver(0, "lines", "w", 0, IN_EPOCH, 1, 0), LINES)
    answer(server, Decide(0, 0, True))
    worker.run_until_idle()
    stats = answer(server, Stats()).values
    flow = stats["dataflows"][0]  # type: ignore[index]  # plain values
    assert flow["inputs"] == [
        {"name": "lines", "epoch": 1, "rows_waiting": 1, "bytes_waiting": 6, "writers": []}
    ]
    assert [stage["activations"] > 0 for stage in flow["stages"]] == [True, True, True, True]
    assert [connector["rows"] for connector in flow["connectors"]] == [1, 3, 2]
    assert flow["complete_before"] == 1
    assert msgpack.unpackb(msgpack.packb(stats), strict_map_key=False) == stats
