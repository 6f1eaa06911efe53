"""Rows that move between units of two processes, while one of these is stopped, or killed.

stopped_*   during a move, for a moment, or for longer by a cluster that was told to bear it: nothing is lost
lost_*      killed, or stopped for as long that it counts as lost: one error that names it, for every client;
            what was read is whole; fed again, all is as it would have been
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import col
from timely.client.remote.workers import RemoteWorkers
from timely.limits import SILENCE_SECONDS_DEFAULT
from timely.routing.announcement import EVERY, RoutingCell, RoutingChanges
from timely.routing.grid import Grid
from timely.worker.launcher import Launcher
from timely.worker.settings import WorkerSettings

ROWS = 60_000
KEYS = 500
EPOCHS = 7
BULK_ROWS = 1_500_000
MOVES_AT = 3
"""The epoch in which a move is announced; it holds two epochs later."""

PAUSE_SECONDS = 0.6 * SILENCE_SECONDS_DEFAULT
BORNE_SECONDS = 7.0
"""Nearly three times as long as workers bear by default."""

Snapshot = list[tuple[object, ...]]


def _build(flow: timely.Dataflow) -> None:
    left = dd.input(flow, "left", "k: int, v: int")
    right = dd.input(flow, "right", "k: int, w: int")
    routes = dd.announcements(flow, "routes")
    balanced = left.join(right, on="k", balance=dd.Routed(dd.Balance("D-JB", units=8), routes, lead=2))
    for name, pairs in (("balanced", balanced), ("plain", left.join(right, on="k"))):
        pairs.group_by("k").agg(n=dd.count(), s=dd.sum(col.v * col.w)).output(name)
    dd.loads(balanced).output("loads")
    dd.input(flow, "bulk", "k: int").distinct().agg(n=dd.count()).output("counted")


def _feed(flow: timely.Flow, epoch: int) -> None:
    """What comes in epoch by epoch: most in the first, in each a little, and once the move."""
    if epoch == 0:
        numbers = pa.array(range(ROWS), pa.int64())
        keys = pa.array([number % KEYS for number in range(ROWS)], pa.int64())
        flow.input("left").insert(pa.table({"k": keys, "v": numbers}))
    flow.input("left").insert([(epoch, ROWS + epoch)])
    flow.input("left").remove([(epoch % KEYS, epoch)])
    flow.input("right").insert([(number, epoch) for number in range(0, KEYS, 7)])
    if epoch == MOVES_AT:
        everything = RoutingChanges(
            None, {RoutingCell(EVERY, side, 0): Grid.split(range(8)) for side in (0, 1)}
        )
        flow.input("routes").insert([tuple(row) for row in everything.announcements()])
    flow.seal()


def _rows(table: pa.Table) -> Snapshot:
    return [tuple(row.values()) for row in table.to_pylist()]


def _pids(cluster: timely.Cluster) -> list[int]:
    launcher = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    assert isinstance(launcher, Launcher)
    return launcher.pids


def _moved(flow: timely.Flow) -> int:
    """How many rows have arrived on another unit."""
    loads = flow.output("loads").snapshot()
    return sum(row[3] == 3 for row in _rows(loads))


class Undisturbed(NamedTuple):
    """What there is in the end, what came in which epoch, and what units have."""

    found: Snapshot
    changes: Counter[tuple[object, ...]]
    loads: Counter[tuple[object, ...]]


def _all_fed(flow: timely.Flow) -> Undisturbed:
    for epoch in range(EPOCHS):
        _feed(flow, epoch)
    flow.wait()
    found, changes = _rows(flow.output("balanced").snapshot()), _rows(flow.output("balanced").changes())
    assert found == _rows(flow.output("plain").snapshot()) and found
    return Undisturbed(found, Counter(changes), Counter(_rows(flow.output("loads").snapshot())))


@pytest.fixture(scope="module")
def undisturbed() -> Undisturbed:
    with timely.connect(workers=1, embedded=True) as cluster:
        return _all_fed(cluster.install(_build))


@contextmanager
def _by_tcp(silence_seconds: float) -> Iterator[timely.Cluster]:
    """Two workers that talk as those of two hosts do."""
    token, anywhere = "of this test", "tcp://127.0.0.1:0"
    settings = [
        WorkerSettings(
            *(index, 2, (anywhere,), (), anywhere, "127.0.0.1"),
            paths=tuple(path for path in sys.path if path),
            silence_seconds=silence_seconds,
            token=token,
        )
        for index in range(2)
    ]
    with Launcher(settings, None) as launcher:
        launcher.introduce(launcher.wait_bound())
        addresses = launcher.wait_ready()
        with timely.Cluster(
            RemoteWorkers(addresses, launcher, token, silence_seconds=silence_seconds)
        ) as made:
            yield made


@pytest.mark.parametrize(
    ("connect", "pause"),
    [
        (partial(timely.connect, workers=2), PAUSE_SECONDS),
        (partial(timely.connect, workers=2, silence_seconds=15.0), BORNE_SECONDS),
        (partial(_by_tcp, 15.0), BORNE_SECONDS),
    ],
    ids=["a moment", "long", "long by tcp"],
)
def test_stopped_during_a_move_nothing_is_lost(
    undisturbed: Undisturbed, connect: Callable[[], AbstractContextManager[timely.Cluster]], pause: float
) -> None:
    """More waits for the stopped one than sockets take. Another client follows: the cluster has told it of
    the limit.
    """
    bulk = pa.table({"k": pa.array(range(BULK_ROWS), pa.int64())})
    with connect() as cluster:
        flow = cluster.install(_build)
        follower = _Follower(cluster.addresses[0], flow.index)
        for epoch in range(MOVES_AT + 2):
            _feed(flow, epoch)
        flow.wait()
        follower.wait_until_it_follows()
        assert _moved(flow) == 0
        flow.input("bulk").insert(bulk)
        stopped = _pids(cluster)[1]
        os.kill(stopped, signal.SIGSTOP)
        flow.seal()  # from here on it may move
        started = time.monotonic()
        waker = threading.Timer(pause, os.kill, (stopped, signal.SIGCONT))
        waker.start()
        try:
            with pytest.raises(timely.WaitTimeoutError):
                flow.wait(timeout=0.5)
            for epoch in range(MOVES_AT + 3, EPOCHS + 1):
                _feed(flow, epoch - 1)
            flow.wait()
        finally:
            waker.cancel()
            os.kill(stopped, signal.SIGCONT)
        assert time.monotonic() - started > pause
        last = flow.wait(flow.seal())
        assert flow.output("counted").snapshot().to_pylist() == [{"n": BULK_ROWS}]
        for name in ("balanced", "plain"):
            assert _rows(flow.output(name).snapshot()) == undisturbed.found
        assert _moved(flow) > ROWS // 2
        kept = Counter(row for row in _rows(flow.output("loads").snapshot()) if row[3] == 0)
        wanted = Counter({row: n for row, n in undisturbed.loads.items() if row[3] == 0})
        assert kept == wanted, "on whichever workers"
        follower.wait_until_it_has(last)
    seen = {row[:3] for table in follower.seen.values() for row in _rows(table)}
    assert {row[:3] for row in undisturbed.found} <= seen


class _Follower:
    """Another client: it reads epochs as they become complete, until it is told why there are no more."""

    def __init__(self, address: str, index: int) -> None:
        self.seen: dict[int, pa.Table] = {}
        self.error: BaseException | None = None
        self.ended = 0.0
        self._is_following = threading.Event()
        self._follow = self._following(address, index)
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _following(self, address: str, index: int) -> Callable[[], None]:
        def follow() -> None:
            try:
                with timely.connect(address) as cluster:
                    for epoch, table in cluster.flow(index).output("balanced").follow():
                        self.seen[epoch] = table
                        if epoch >= MOVES_AT:
                            self._is_following.set()
            except timely.TimelyError as error:
                self.error, self.ended = error, time.monotonic()

        return follow

    def wait_until_it_follows(self) -> None:
        """What the client that feeds has waited for, another one is told later."""
        assert self._is_following.wait(30), self.error

    def wait_until_it_has(self, epoch: int) -> None:
        until = time.monotonic() + 30
        while epoch not in self.seen:
            assert self.error is None and time.monotonic() < until, self.error
            time.sleep(0.01)

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize(
    ("victim", "fault", "pause", "silence", "words"),
    [
        (0, signal.SIGKILL, 0.0, SILENCE_SECONDS_DEFAULT, "killed by SIGKILL"),
        (1, signal.SIGKILL, 0.05, 60.0, "killed by SIGKILL"),
        (1, signal.SIGSTOP, 0.0, SILENCE_SECONDS_DEFAULT, "is silent"),
    ],
)
def test_lost_during_a_move_it_is_named_to_all_and_fed_again_all_is_as_it_would_have_been(
    undisturbed: Undisturbed,
    victim: int,
    fault: int,
    pause: float,
    silence: float,
    words: str,
) -> None:
    """Patience with who is stopped is none with who is dead."""
    with timely.connect(workers=2, silence_seconds=silence) as cluster:
        flow = cluster.install(_build)
        follower = _Follower(cluster.addresses[0], flow.index)
        for epoch in range(MOVES_AT + 2):
            _feed(flow, epoch)
        flow.wait()
        follower.wait_until_it_follows()
        pid = _pids(cluster)[victim]
        flow.seal()
        time.sleep(pause)
        os.kill(pid, fault)
        killed = time.monotonic()
        with pytest.raises(timely.PeerError, match=rf"worker {victim} .*{words}"):
            flow.seal()
            flow.wait()
        assert time.monotonic() - killed < 5
        for call in (flow.seal, flow.output("balanced").snapshot, lambda: _feed(flow, 1)):
            with pytest.raises(timely.PeerError, match=f"worker {victim}"):
                call()
        follower.join()
        assert follower.ended - killed < 5
        assert isinstance(follower.error, timely.PeerError) and f"worker {victim}" in str(follower.error)
    seen = Counter(row for table in follower.seen.values() for row in _rows(table))
    assert max(follower.seen) >= MOVES_AT, "it has seen some"
    whole = set(follower.seen) & set(range(MOVES_AT + 2))  # behind these nothing more was fed here
    assert seen == Counter({row: n for row, n in undisturbed.changes.items() if row[3] in whole})
    if victim == 0:
        with timely.connect(workers=2) as cluster:
            assert _all_fed(cluster.install(_build)) == undisturbed
