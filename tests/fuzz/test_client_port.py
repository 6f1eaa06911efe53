"""Strangers at the client ports of two worker processes, while a proper client works with them.

strangers_*   what is no request, what is no ZMTP, connections by the hundred
nonsense_*    requests that are well-formed and make no sense
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgpack
import pyarrow as pa
import pytest
from fuzz.strangers import connect_and_go, odd_messages, raw_bytes
from soak.clusters import children, is_alive, started

import timely
from timely.client.remote.workers import RemoteWorkers
from timely.errors import InternalError, MisuseError, TimelyError, WaitTimeoutError
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Describe,
    Install,
    Missing,
    Progress,
    Read,
    Replace,
    Request,
    Stats,
    Uninstall,
)

LINES = pa.table({"record": [msgpack.packb("b a b")]})


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[str]]:
    """Two processes, of which both are there at the end as they were at the beginning."""
    with started(2) as (process, addresses):
        pids = children(process.pid)
        yield addresses
        assert len(pids) == 2 and all(map(is_alive, [process.pid, *pids]))
        process.terminate()


@contextmanager
def proper_client(address: str) -> Iterator[None]:
    """Counts words meanwhile; each answer must be right, and soon."""
    stop = threading.Event()
    failures: list[BaseException] = []
    epochs: list[int] = []

    def work() -> None:
        try:
            with timely.connect(address) as own:
                flow = own.install("dataflows:word_count")
                while not stop.is_set() or len(epochs) < 3:
                    flow.input("lines").insert(["a b", "b"])
                    epochs.append(flow.seal())
                    times = len(epochs)
                    changes = flow.output("counts").changes(epochs[-1], timeout=20)
                    assert sorted(changes) == [(epochs[-1], ("a", times)), (epochs[-1], ("b", 2 * times))]
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive(), "the proper client hangs"
    if failures:
        raise failures[0]


def test_strangers_of_every_kind_disturb_nobody(cluster: list[str], seed: int, effort: int) -> None:
    choose = random.Random(seed)
    with proper_client(cluster[0]):
        for _ in range(10 * effort):
            for address in cluster:
                odd_messages(address, choose, 50)
                raw_bytes(address, choose)
        for address in cluster:
            connect_and_go(address, 300)


def nonsense(flow: int) -> list[tuple[int, Request, pa.Table | None]]:
    """Requests that no worker may fail at, each with the worker that is asked."""
    far = 1 << 61
    rows = LINES.append_column("diff", pa.array([1]))
    asked: list[tuple[int, Request, pa.Table | None]] = [
        (1, Decide(flow, 0, True), None),
        (1, Decide(flow, 0, enter=[["lines", "w", 0]]), None),
        (1, Decide(flow, -1, close=["lines"]), None),
        (1, Install("dataflows:word_count"), None),
        (0, Install("os:_exit", {"status": 3}), None),
        (0, Install("sys:exit"), None),
        (0, Install("dataflows:word_count", {"no": "argument"}), None),
        (0, Install("dataflows:broken_builder"), None),
        (0, Install("\0:x"), None),
        (0, Install("x" * 4_000), None),
        (0, Decide(flow, far, enter=[["lines", "nobody", far]]), None),
        (0, Decide(flow, 0, enter=[["no such", "w", 0]]), None),
        (0, Decide(flow, -1, close=["no such"]), None),
        (1, Uninstall(flow, True), None),
        (0, Uninstall(2**40, False), None),
        (1, Replace(flow, "dataflows:word_count", {}, 1.0), None),
        (0, Replace(2**40, "dataflows:word_count", {}, 1.0), None),
        (0, Replace(flow, "no such:builder", {}, 1.0), None),
        (0, Decide(-1, 0, True), None),
        (0, Decide(flow, -far, True), None),
        (0, Decide(flow, 1 << 62, True), None),
    ]
    for worker in (0, 1):
        for number in (-1, 1 << 32, far, -far):
            asked += [
                (worker, Describe(number), None),
                (worker, Deliver(number, "lines", "w", 0, IN_OPEN, 0, 1), LINES),
                (worker, Progress(number, ""), None),
                (worker, Read(flow, "counts", number, number, 0.0, reader="r"), None),
                (worker, Read(flow, "counts", number, -number, 0.0, is_open_ended=True), None),
                (worker, Read(flow, "counts", -1, number + 1, 0.0), None),
                (worker, Progress(flow, "", number, 0.0), None),
                (
                    worker,
                    Deliver(flow, "lines", "w", 0, IN_EPOCH, number if number < far else 1 << 62, 0),
                    rows,
                ),
                (worker, Deliver(flow, "lines", "parts", 0, WHEN_NAMED, 0, 1, part=number), LINES),
                (worker, Missing(flow, number, [["lines", "w", number]]), None),
            ]
        asked += [
            (worker, Progress(flow, "", 1 << 40, float("nan")), None),
            (worker, Progress(flow, "", 1 << 40, float("-inf")), None),
            (worker, Missing(flow, 0, [[], "x", {"a": 1}, ["lines", 1, 1]]), None),
            (worker, Deliver(flow, "lines", "w", 1, BY_COLUMN, 0, 0, column="record"), rows),
            (worker, Deliver(flow, "lines", "w", 1, BY_COLUMN, 0, 0, column="diff"), rows),
            (worker, Deliver(flow, "lines", "w", -far, BY_COLUMN, 0, 5, column=""), rows),
            (worker, Deliver(flow, "lines", "w", 1, BY_COLUMN, 0, 1, column="at"), None),
            (worker, Deliver(flow, "lines", "w", 0, IN_OPEN, 0, 5), LINES),
            (worker, Deliver(flow, "lines", "w", 0, IN_OPEN, 0, -(1 << 62)), LINES),
            (worker, Deliver(flow, "lines", "w", 0, IN_OPEN, 0, 1), None),
            (worker, Deliver(flow, "lines", "\0" * 4_000, -1, IN_OPEN, 0, 0), LINES),
            (worker, Progress(flow, "counts", reader="", keep_from=1 << 62, drops=True), None),
            (worker, Progress(flow, "counts", reader="nobody", keep_from=-far, drops=True), None),
            (worker, Progress(flow, "counts", reader="nobody"), None),
            (worker, Progress(flow, "no such", reader=""), None),
            (worker, Stats(), None),
        ]
    return asked


def test_nonsense_is_answered_by_an_error_that_says_what_is_wrong(cluster: list[str]) -> None:
    with timely.connect(cluster[0]) as own:
        flow = own.install("dataflows:word_count")
        workers = RemoteWorkers(cluster)
        try:
            with proper_client(cluster[1]):
                for worker, request, table in nonsense(flow.index):
                    forever = isinstance(request, Progress | Read) and not request.timeout_seconds >= 0
                    try:
                        workers.ask([(worker, request, table)], 0.2 if forever else 20)
                    except InternalError as error:
                        raise AssertionError(f"{request} was a bug of ours: {error}") from error
                    except (MisuseError, WaitTimeoutError):
                        pass
        finally:
            workers.close()
        # What was not refused has a meaning, and the dataflow is what it says.
        flow.refresh()
        flow.input("lines").insert(["c"])
        epoch = flow.seal()
        assert flow.output("counts").changes(epoch, timeout=20) == [(epoch, ("c", 1))]


def test_nonsense_by_thousands_leaves_room_for_others(cluster: list[str]) -> None:
    with timely.connect(cluster[0]) as own:
        flow = own.install("dataflows:word_count")
        with proper_client(cluster[1]):
            workers = RemoteWorkers(cluster)
            try:
                places: list[tuple[int, Request, pa.Table | None]] = [
                    (0, Read(flow.index, "counts", 0, 0, 0.0, reader=f"reader {number}"), None)
                    for number in range(5_000)
                ]
                with pytest.raises(MisuseError, match="4,096 clients have places in this output already"):
                    workers.ask(places, 60)
                parts: list[tuple[int, Request, pa.Table | None]] = [
                    (0, Deliver(flow.index, "lines", f"writer {number}", 0, WHEN_NAMED, 0, 1, part=0), LINES)
                    for number in range(500)
                ]
                assert len(workers.ask(parts, 60)) == 500
            finally:
                workers.close()


def test_nonsense_a_client_may_ask_and_go_before_it_is_answered(cluster: list[str]) -> None:
    with timely.connect(cluster[0]) as own, proper_client(cluster[1]):
        flow = own.install("dataflows:word_count")
        for _ in range(30):
            one = RemoteWorkers(cluster)
            try:
                with pytest.raises(TimelyError):
                    one.ask([(0, Progress(flow.index, "", 10**6, -1.0), None)], 0.0)
            finally:
                one.close()
