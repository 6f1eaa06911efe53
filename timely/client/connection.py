"""Talking to workers in other processes.

    RemoteWorkers   all workers of a cluster, asked together: what `cluster.py` stands on
    AppendClient    only appends, to be used where rows are made (a Spark executor, a loader)

Nothing waits for a worker that is gone: while an answer is outstanding, connections are watched and, of
workers that this program has started, their `Keeper`.
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
from ..failure import again
from ..limits import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    PART_BYTES_MAX,
    REPLY_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
)
from ..operators.inputs.names import named, place_of
from ..user_code.call_site import call_site
from ..wire.addresses import socket_address
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
    "Found",
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
    """Let a `PeerError` of `method` end the connection: every later call raises it at once. Refuse calls in a
    process that was forked.
    """

    @wraps(method)
    def called(self: RemoteWorkers, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if os.getpid() != self._process.number:
            self._process.check()
        if self._broken is not None:
            raise again(self._broken)
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
        addresses: of the client ports, one per worker in order.
        launcher: of these workers, if this program has started them; they are stopped by `close`.
        token: shows them that a request comes from who has started them.
        keys: what this client proves itself by to workers that have keys; not asked for by ipc.
        silence_seconds: how long one may be silent before it counts as lost, as the cluster was told.
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
        """Where they are reached."""
        return f" at {', '.join(self.addresses)}"

    @property
    def end(self) -> str:
        """That it was closed, or that a worker was lost."""
        return "closed" if self._is_closed else "lost" if self._broken is not None else ""

    @_until_lost
    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float = REPLY_SECONDS_MAX,
        reach_seconds: float = float("inf"),
    ) -> list[Reply]:
        """Send each (worker, request, table) and gather the replies, in that order. Raises what is reported,
        the cause rather than the follow-up; `PeerError` when a worker is gone, or, who has not answered, is
        not even reached after `reach_seconds`.
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
        """Send a delivery whose answer `poster` hears of when somebody settles. `is_ordered`: once other
        threads have their answers, for a worker takes what comes by several connections in any order.
        """
        own = self._channel()
        if is_ordered:
            self._settle(own)
        rows = None if table is None else table_to_frame(table)
        own.posts.post(worker, request, rows, poster, call, call_site())
        if own.sockets.has_unsent(worker):  # nobody may be there to send the rest of it soon
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
        """See `Workers`: rows are posted to worker 0, where their epoch is sealed."""
        epoch = poster.epoch
        request = Deliver(poster.index, name, writer, sequence, IN_OPEN, epoch, diff, rows)
        self.post(0, request, None, poster, f"{call}(…), input {name!r},", is_ordered)
        return epoch

    @_until_lost
    def seal(self, poster: Poster, seconds: float | None) -> tuple[int, bool]:
        """See `Workers`. What other threads have posted is taken up first: it went by connections of their
        own.
        """
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
        """Take up the answers to all that was posted, in whichever thread."""
        self._settle(None, timeout_seconds)

    def _settle(self, own: Channel | None, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Of all threads, or of all others."""
        for channel in self._channels:
            if channel is not own and channel.posts:
                channel.posts.settle(timeout_seconds)

    def join(self, timeout_seconds: float = CONNECT_SECONDS_MAX) -> None:
        """Wait until all workers are reached, though they may be at work; `PeerError` if one is not."""
        self._channel().join(timeout_seconds)

    def close(self) -> None:
        """Let go of the sockets; end the workers if this process has started them. Raises what was posted and
        refused, if no call has said so. A forked process leaves all as it is.
        """
        if not self._process.is_here:
            return
        self._is_closed = True
        broken = self._broken
        closed = MisuseError("this cluster is closed: connect again")
        self._break(closed)  # first: another thread that goes on and on would have to be waited for
        try:
            # A worker that computes takes them up afterwards, unless it ends with this program.
            if any(channel.posts for channel in self._channels):
                if broken is not None:
                    raise again(broken)
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
        """From now on every request is refused with the first such error."""
        with self._lock:
            if self._broken is None:
                self._broken = error

    def _channel(self) -> Channel:
        known: Channel | None = getattr(self._own, "channel", None)
        if known is None:
            known = self._own.channel = Channel(
                self.addresses, self.silence_seconds, self._launcher, self._lock, self.keys
            )
            with self._lock:
                ended = [other for other in self._channels if not other.thread.is_alive() and not other.posts]
                self._channels = [other for other in self._channels if other not in ended] + [known]
            for other in ended:
                other.close()
        return known


def greeted(workers: RemoteWorkers, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
    """What all workers say of themselves; `PeerError` if one is not reached soon, `WaitTimeoutError` if one
    that is has not answered after `timeout_seconds`: it may be in the middle of a long step.
    """
    hellos: list[tuple[int, Request, None]] = [(place, Hello(), None) for place in range(workers.count)]
    return workers.ask(hellos, max(timeout_seconds, CONNECT_SECONDS_MAX), CONNECT_SECONDS_MAX)


class AppendClient:
    """Appends rows to an input of a running cluster; which worker takes an append depends on (writer,
    sequence) only.

    A context manager. `addresses` are the client ports of all workers, in order of their indices; `keys`
    are wanted where workers have keys. How long a worker may be silent the cluster says, if it is not known.
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
            told = _silence_seconds(greeted(self._workers)[0])
            if told != self._workers.silence_seconds:  # a limit is that of a connection from its beginning
                patient = RemoteWorkers(
                    self._workers.addresses, keys=self._workers.keys, silence_seconds=told
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
        """Add `table`, whose column `diff` says how often each row is added, to an open epoch, or each row to
        the one that the column `epoch` of the table says.

        Returns whether it was new: `False` for a repetition, which changes nothing. Raises `InputClosedError`
        if the epoch is sealed, `PeerError` if the worker cannot be reached.
        """
        writer, sequence = named(writer, sequence)
        request = append_request(self._dataflow, input, epoch, writer, sequence)
        (reply,) = self._workers.ask([(place_of(writer, sequence, self._workers.count), request, table)])
        return bool(reply.integer("is_new"))

    def close(self) -> None:
        """Disconnect; the cluster goes on."""
        self._workers.close()


class Found(NamedTuple):
    """Where the workers of a cluster are reached, in order of their indices; how long one may be silent."""

    addresses: list[str]
    silence_seconds: float


class append_target:
    """Makes `AppendClient`s elsewhere: holds addresses and the client's keys only, so that it can be sent
    to another process by any means that keeps a secret. It does not show the secret.
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
        """A new connection to the cluster."""
        return AppendClient(self.addresses, self.dataflow, self.keys, self.silence_seconds)


def discover(
    addresses: Sequence[str], keys: ClientKeys | None = None, timeout_seconds: float = REPLY_SECONDS_MAX
) -> Found:
    """All workers of the cluster that `addresses` belong to. Raises `PeerError` if nobody is there, or they
    belong to different clusters, `WaitTimeoutError` if somebody is, and does not answer in time.
    """
    probe = RemoteWorkers(addresses, keys=keys)
    try:
        hellos = greeted(probe, timeout_seconds)
    finally:
        probe.close()
    found: dict[int, str] = {}
    for address, hello in zip(probe.addresses, hellos, strict=True):
        if hello.integer("version") != PROTOCOL_VERSION:
            raise PeerError(
                f"the worker at {address} speaks protocol version {hello.integer('version')}, this client "
                f"{PROTOCOL_VERSION}"
            )
        index = hello.integer("index")
        if found.setdefault(index, address) != address:
            raise MisuseError(
                f"{address} and {found[index]} are both worker {index}: give each worker's address once, "
                "of one cluster only"
            )
    _check_one_cluster(probe.addresses, hellos)
    told = hellos[0].items("addresses")
    workers = range(hellos[0].integer("workers"))
    return Found([found.get(index, str(told[index])) for index in workers], _silence_seconds(hellos[0]))


def _silence_seconds(hello: Reply) -> float:
    return min(max(SILENCE_SECONDS_DEFAULT, hello.integer("silence_ms") / 1_000), SILENCE_SECONDS_MAX)


def _check_one_cluster(addresses: Sequence[str], hellos: Sequence[Reply]) -> None:
    """Workers of one cluster say the same of where each of them is, as far as they have heard of it."""
    first = [str(told) for told in hellos[0].items("addresses")]
    for address, hello in zip(addresses, hellos, strict=True):
        others = [str(told) for told in hello.items("addresses")]
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
