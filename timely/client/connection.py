"""Connections to workers in other processes.

    RemoteWorkers   all workers of a cluster; `cluster.py` uses it
    AppendClient    only appends; for programs that produce rows (a Spark executor, a loader)

No call waits for a worker that is gone: while an answer is outstanding, `Channel` watches the connections
and, for workers that this program has started, their `Keeper`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from types import TracebackType
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import pyarrow as pa

from ..errors import MisuseError, PeerError, TimelyError
from ..failure import fresh_copy
from ..limits import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    PART_BYTES_MAX,
    REPLY_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
)
from ..operators.inputs.names import named, worker_of
from ..user_code.call_site import call_site
from ..wire.addresses import socket_address
from ..wire.arrow import stored
from ..wire.frames.tables import table_to_frame
from ..wire.handshake import PROTOCOL_VERSION
from ..wire.keys import ClientKeys
from ..wire.requests import IN_OPEN, Deliver, Hello, Progress, Reply, Request, Value
from .appending import append_request
from .installed import PATIENCE_SECONDS, Keeper, OwnProcess
from .posting import Poster, Refusals, together
from .remote.channel import Channel

__all__ = [
    "AppendClient",
    "ClusterAddresses",
    "Keeper",
    "RemoteWorkers",
    "append_target",
    "discover",
    "greeted",
]

_log = logging.getLogger("timely")


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _until_lost(
    method: Callable[Concatenate[RemoteWorkers, _P], _T],
) -> Callable[Concatenate[RemoteWorkers, _P], _T]:
    """Let a `PeerError` of `method` end the connection, so that every later call raises it at once. Refuse
    calls in a forked process.
    """

    @wraps(method)
    def called(self: RemoteWorkers, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if os.getpid() != self._process.number:
            self._process.check()
        if self._broken is not None:
            raise fresh_copy(self._broken)
        try:
            return method(self, *args, **kwargs)
        except PeerError as error:
            self._break(error)
            raise

    return called


class RemoteWorkers:
    """All workers of a cluster, in order of their indices, over sockets. Each thread has connections of its
    own: one may wait for an epoch that another is about to seal.

    Args:
        addresses: the client ports, one per worker in order.
        launcher: has started these workers for this program; `close` stops them.
        token: proves to workers that a request comes from the program that has started them.
        keys: prove this client to workers that have keys; not needed by ipc.
        silence_seconds: how long a worker may be silent before it counts as lost; the same as in the cluster.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        launcher: Keeper | None = None,
        token: str = "",
        keys: ClientKeys | None = None,
        *,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self.token = token
        self.keys = keys
        self.addresses = [socket_address(address) for address in addresses]
        self.count = len(self.addresses)
        self.part_bytes = PART_BYTES_MAX
        self.silence_seconds = silence_seconds
        self.refusals = Refusals()
        self._launcher = launcher
        self._process = OwnProcess()
        self._lock = threading.Lock()
        self._own = threading.local()
        self._channels: list[Channel] = []
        self._broken: TimelyError | None = None
        self._is_closed = False
        self._channel()

    @property
    def kind(self) -> str:
        """Where the workers are reached."""
        return f" at {', '.join(self.addresses)}"

    @property
    def end(self) -> str:
        """ "closed", or "lost" if a worker was lost; else empty."""
        return "closed" if self._is_closed else "lost" if self._broken is not None else ""

    @_until_lost
    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
        reach_seconds: float = float("inf"),
    ) -> list[Reply]:
        """Send each (worker, request, table) and return the replies, in that order. Raise the error that
        workers report, the cause rather than its consequences; `PeerError` if a worker is gone, or if one
        that has not answered is not even reached after `reach_seconds`.
        """
        return self._channel().ask(requests, timeout_seconds, reach_seconds)

    @_until_lost
    def post(
        self,
        worker: int,
        request: Deliver,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        """Send a delivery. `poster` hears of the answer when a thread settles. `is_ordered`: wait until other
        threads have their answers, since a worker takes messages of several connections in any order.
        """
        own = self._channel()
        if is_ordered:
            self._settle(own)
        rows = None if table is None else table_to_frame(table)
        own.posts.post(worker, request, rows, poster, call, call_site())
        if own.sockets.has_unsent(worker):  # else it may take long until something sends the rest
            own.posts.settle()

    def insert_rows(
        self,
        poster: Poster,
        name: str,
        writer: str,
        sequence: int,
        diff: int,
        rows: list[Value],
        call: str,
        is_ordered: bool,
    ) -> int:
        """See `Workers`. Post the rows to worker 0, which seals their epoch."""
        epoch = poster.epoch
        request = Deliver(poster.index, name, writer, sequence, IN_OPEN, epoch, diff, rows)
        self.post(0, request, None, poster, f"{call}(…), input {name!r},", is_ordered)
        return epoch

    @_until_lost
    def seal(self, poster: Poster, seconds: float | None) -> tuple[int, bool]:
        """See `Workers`. Settle the posts of other threads first: they went by other connections."""
        own = self._channel()
        self._settle(own)
        return own.seal(poster, seconds)

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """See `Workers`."""
        request = Progress(dataflow, "", epoch, seconds, waited_seconds)
        limit = PATIENCE_SECONDS if seconds < 0 else seconds + ANSWER_SECONDS_MAX
        self.ask([(worker, request, None) for worker in range(self.count)], limit)

    @_until_lost
    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Take the answers to the posts of all threads."""
        self._settle(None, timeout_seconds)

    def _settle(self, own: Channel | None, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Settle the posts of all threads but that of `own`."""
        for channel in self._channels:
            if channel is not own and channel.posts:
                channel.posts.settle(timeout_seconds)

    def join(self, timeout_seconds: float = CONNECT_SECONDS_MAX) -> None:
        """Wait until all workers are reached, though they may be at work; raise `PeerError` if one is not."""
        self._channel().join(timeout_seconds)

    def close(self) -> None:
        """Close the sockets; end the workers if this process has started them. Raise refusals of posts that
        no call has raised. In a forked process, do nothing.
        """
        if not self._process.is_here:
            return
        self._is_closed = True
        broken = self._broken
        closed = MisuseError("this cluster is closed: connect again")
        self._break(closed)  # first, so that other threads send no more requests
        try:
            # A worker that computes takes posts afterwards, unless it ends with this program.
            if any(channel.posts for channel in self._channels):
                if broken is not None:
                    raise fresh_copy(broken)
                self._settle(None, CONNECT_SECONDS_MAX if self._launcher is None else ANSWER_SECONDS_MAX)
        except TimelyError as error:
            _log.warning("closing, it is not known whether the last rows have arrived: %s", error)
        with self._lock:
            channels, self._channels = self._channels, []
        for channel in channels:
            channel.end(broken or closed)
        for channel in channels:
            channel.close()
        if self._launcher is not None:
            self._launcher.stop()
        if refused := self.refusals.take():
            raise together(refused)

    def _break(self, error: TimelyError) -> None:
        """Let every later request raise the first such error."""
        with self._lock:
            if self._broken is None:
                self._broken = error

    def _channel(self) -> Channel:
        channel: Channel | None = getattr(self._own, "channel", None)
        if channel is None:
            channel = self._own.channel = Channel(
                self.addresses, self.silence_seconds, self._launcher, self._lock, self.keys
            )
            with self._lock:
                ended = [other for other in self._channels if not other.thread.is_alive() and not other.posts]
                self._channels = [other for other in self._channels if other not in ended] + [channel]
            for other in ended:
                other.close()
        return channel


def greeted(workers: RemoteWorkers, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
    """Return the answers of all workers to `Hello`; raise `PeerError` if one is not reached soon, and
    `WaitTimeoutError` if one that is reached has not answered after `timeout_seconds`: it may be in the
    middle of a long step.
    """
    hellos: list[tuple[int, Request, None]] = [(worker, Hello(), None) for worker in range(workers.count)]
    return workers.ask(hellos, max(timeout_seconds, CONNECT_SECONDS_MAX), CONNECT_SECONDS_MAX)


class AppendClient:
    """Appends rows to an input of a running cluster. Which worker takes an append depends only on (writer,
    sequence).

    A context manager. `addresses` are the client ports of all workers, in order of their indices; `keys`
    are needed if workers have keys. The cluster itself tells how long a worker may be silent.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        dataflow: int = 0,
        keys: ClientKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self._workers = RemoteWorkers(addresses, keys=keys, silence_seconds=silence_seconds)
        self._dataflow = dataflow

    def __enter__(self) -> AppendClient:
        try:
            seconds = _silence_seconds(greeted(self._workers)[0])
            if seconds != self._workers.silence_seconds:  # a connection cannot change its limit
                patient = RemoteWorkers(
                    self._workers.addresses, keys=self._workers.keys, silence_seconds=seconds
                )
                self._workers.close()
                self._workers = patient
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def silence_seconds(self) -> float:
        """How long a worker may be silent before it counts as lost."""
        return self._workers.silence_seconds

    def append(self, input: str, epoch: int | str, writer: str, sequence: int, table: pa.Table) -> bool:
        """Add the rows of `table` to an open epoch. The column `diff` says how often each row is added. If
        `epoch` is the name of a column, each row enters the epoch in that column.

        Return False for a repetition, which changes nothing, else True. Raise `InputClosedError` if the epoch
        is sealed, `PeerError` if the worker cannot be reached.
        """
        writer, sequence = named(writer, sequence)
        request = append_request(self._dataflow, input, epoch, writer, sequence)
        worker = worker_of(writer, sequence, self._workers.count)
        (reply,) = self._workers.ask([(worker, request, stored(table))])
        return bool(reply.integer("is_new"))

    def close(self) -> None:
        """Disconnect; the cluster goes on."""
        self._workers.close()


class ClusterAddresses(NamedTuple):
    """Where the workers of a cluster are reached, in order of their indices; how long one may be silent."""

    addresses: list[str]
    silence_seconds: float


class append_target:
    """Makes an `AppendClient` in another process. It holds only addresses and the client's keys, so it can be
    sent there by any means that keeps a secret. Its `repr` does not show the secret.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        dataflow: int = 0,
        keys: ClientKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self.addresses = list(addresses)
        self.dataflow = dataflow
        self.keys = keys
        self.silence_seconds = silence_seconds

    def __call__(self) -> AppendClient:
        """Return a new connection to the cluster."""
        return AppendClient(self.addresses, self.dataflow, self.keys, self.silence_seconds)


def discover(
    addresses: Sequence[str], keys: ClientKeys | None = None, timeout_seconds: float = REPLY_SECONDS_MAX
) -> ClusterAddresses:
    """Return the addresses of all workers of the cluster that `addresses` belong to. Raise `PeerError` if no
    worker is there, or if they belong to different clusters; `WaitTimeoutError` if a worker does not answer
    in time.
    """
    probe = RemoteWorkers(addresses, keys=keys)
    try:
        hellos = greeted(probe, timeout_seconds)
    finally:
        probe.close()
    by_index: dict[int, str] = {}
    for address, hello in zip(probe.addresses, hellos, strict=True):
        if hello.integer("version") != PROTOCOL_VERSION:
            raise PeerError(
                f"the worker at {address} speaks protocol version {hello.integer('version')}, this client "
                f"{PROTOCOL_VERSION}"
            )
        index = hello.integer("index")
        if by_index.setdefault(index, address) != address:
            raise MisuseError(
                f"{address} and {by_index[index]} are both worker {index}: give each worker's address once, "
                "of one cluster only"
            )
    _check_one_cluster(probe.addresses, hellos)
    others = hellos[0].items("addresses")
    workers = range(hellos[0].integer("workers"))
    listed = [by_index.get(index, str(others[index])) for index in workers]
    return ClusterAddresses(listed, _silence_seconds(hellos[0]))


def _silence_seconds(hello: Reply) -> float:
    return min(max(SILENCE_SECONDS_DEFAULT, hello.integer("silence_ms") / 1_000), SILENCE_SECONDS_MAX)


def _check_one_cluster(addresses: Sequence[str], hellos: Sequence[Reply]) -> None:
    """Raise `PeerError` if workers report different addresses: workers of one cluster report the same, as far
    as they know them.
    """
    first = [str(one) for one in hellos[0].items("addresses")]
    for address, hello in zip(addresses, hellos, strict=True):
        others = [str(one) for one in hello.items("addresses")]
        if len(first) != len(others):
            raise PeerError(
                f"{addresses[0]} and {address} belong to different clusters: one of {len(first)} workers, "
                f"the other of {len(others)}"
            )
        for index, (here, there) in enumerate(zip(first, others, strict=True)):
            if here and there and here != there:
                raise PeerError(
                    f"{addresses[0]} and {address} belong to different clusters: worker {index} is at {here} "
                    f"in the one, at {there} in the other"
                )
