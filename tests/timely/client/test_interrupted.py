"""Clients that are interrupted (Ctrl-C) in the middle of a message, or forked: at real workers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
import pytest
import zmq

import differential as dd
import timely
from timely.errors import MisuseError
from timely.wire.batch import Frame
from timely.wire.transport import direct
from timely.wire.transport.direct import DirectLine


@pytest.fixture(scope="module")
def pair() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


def _counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, v: int")
    rows.group_by("k").agg(n=dd.count(), s=dd.sum("v")).output("counts")


def _read(flow: timely.Flow) -> set[tuple[int, ...]]:
    return {tuple(row.values()) for row in flow.output("counts").snapshot().to_pylist()}


@pytest.mark.parametrize("way", ["direct", "zmq"])
def test_who_is_interrupted_in_the_middle_of_an_answer_may_go_on(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "zmq":
        monkeypatch.setattr(direct, "connect", lambda _: None)
    with timely.connect(*pair.addresses) as mine:
        flow = mine.flow(pair.install(_counts).index)
        flow.input("rows").insert([(1, 6)])
        flow.wait(flow.seal())
        torn: list[object] = []
        if way == "zmq":

            def recv_multipart(socket: zmq.Socket[bytes], *_: object, **__: object) -> None:
                torn.append(socket.recv())
                raise KeyboardInterrupt

            monkeypatch.setattr(zmq.Socket, "recv_multipart", recv_multipart)
        else:
            whole = DirectLine.recv

            def recv(line: DirectLine) -> list[list[memoryview]]:
                if heard := whole(line):
                    torn.append(heard)
                    raise KeyboardInterrupt
                return heard

            monkeypatch.setattr(DirectLine, "recv", recv)
        with pytest.raises(KeyboardInterrupt):
            flow.output("counts").changes_nowait()
        if way == "zmq":
            flow.input("rows").insert([(2, 7)])
            with pytest.raises(KeyboardInterrupt):
                flow.seal()
        monkeypatch.undo()
        assert torn
        flow.input("rows").insert([(2, 8)])
        flow.wait(flow.seal())
        assert _read(flow) == {(1, 1, 6), (2, 2, 15) if way == "zmq" else (2, 1, 8)}


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_who_is_interrupted_between_the_frames_of_a_table_may_go_on(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch, frames: int
) -> None:
    """What is sent next would be read as the rest of the message."""
    with timely.connect(*pair.addresses) as mine:
        flow = mine.flow(pair.install(_counts).index)

        def send_multipart(socket: zmq.Socket[bytes], parts: list[Frame], *_: object, **__: object) -> None:
            for part in parts[:frames]:
                socket.send(part, 0 if part is parts[-1] else zmq.SNDMORE)
            raise KeyboardInterrupt

        monkeypatch.setattr(zmq.Socket, "send_multipart", send_multipart)
        with pytest.raises(KeyboardInterrupt):
            flow.input("rows").insert(pa.table({"k": pa.array([1], pa.int32()), "v": [6]}))
        monkeypatch.undo()
        flow.input("rows").insert(pa.table({"k": pa.array([2], pa.int32()), "v": [7]}))
        flow.wait(flow.seal())
        assert _read(flow) == {(2, 1, 7)} | ({(1, 1, 6)} if frames == 2 else set())


def test_in_a_forked_process_nothing_is_asked_and_closing_leaves_all_as_it_is(
    pair: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has copies of the descriptors, and would take the answers to what the other process asks."""
    with timely.connect(*pair.addresses) as mine:
        flow = mine.flow(pair.install(_counts).index)
        flow.input("rows").insert([(1, 6)])
        monkeypatch.setattr(os, "getpid", lambda: -1)
        for call in (flow.seal, lambda: flow.input("rows").insert([(2, 7)]), flow.refresh):
            with pytest.raises(MisuseError, match="connect again in it"):
                call()
        mine.close()
        monkeypatch.undo()
        flow.wait(flow.seal())
        assert _read(flow) == {(1, 1, 6)}
