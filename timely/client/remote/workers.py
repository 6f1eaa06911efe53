"""All workers of a cluster in processes of their own, over sockets: what a client asks, and how it ends.

No call waits for a worker that is gone: while an answer is outstanding, `Channel` watches the connections
and, for workers that this program has started, their `Keeper`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import pyarrow as pa

from ...errors import MisuseError, PeerError, TimelyError, WaitTimeoutError
from ...failure import fresh_copy
from ...limits import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    PART_BYTES_MAX,
    REPLY_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
)
from ...user_code.call_site import call_site
from ...wire.addresses import socket_address
from ...wire.frames.tables import table_to_frame
from ...wire.keys import ClientKeys
from ...wire.requests import IN_OPEN, Deliver, Progress, Reply, Value, Why, waits_for_epoch
from ..installed import PATIENCE_SECONDS, Keeper, Makes, Members, OwnProcess, Requests, to_all
from ..posting import Poster, Refusals, together
from ..reports.why import explain
from .asking import Asker
from .channel import Channel

__all__ = ["RemoteWorkers"]

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
            self._on_loss(error)
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
        self.incarnation = 0
        self.refusals = Refusals()
        self._launcher = launcher
        self._process = OwnProcess()
        self._lock = threading.Lock()
        self._own = threading.local()
        self._channels: list[Channel] = []
        self._asker: Asker | None = None
        self._broken: TimelyError | None = None
        self._is_closed = False
        self._channel()

    @property
    def launcher(self) -> Keeper | None:
        """Has started the workers for this program; None: another has. Raise `MisuseError` in a forked
        process.
        """
        self._process.check()
        return self._launcher

    @property
    def kind(self) -> str:
        """Where the workers are reached."""
        return f" at {', '.join(self.addresses)}"

    @property
    def end(self) -> str:
        """ "closed", or "lost" if a worker was lost; else empty."""
        return "closed" if self._is_closed else "lost" if self._broken is not None else ""

    @property
    def members(self) -> Members:
        """See `Workers`."""
        return Members(self.count, self.incarnation)

    @property
    def cluster(self) -> str:
        """The identity of a durable cluster; empty: not known, or the cluster is not durable."""
        return ""

    @_until_lost
    def ask(
        self,
        requests: Requests,
        timeout_seconds: float = REPLY_SECONDS_MAX,
        reach_seconds: float = float("inf"),
    ) -> list[Reply]:
        """Send each (worker, request, table) and return the replies, in that order. Raise the error that
        workers report, the cause rather than its consequences; `PeerError` if a worker is gone, or if one
        that has not answered is not even reached after `reach_seconds`.
        """
        try:
            return self._channel().ask(requests, timeout_seconds, reach_seconds)
        except WaitTimeoutError as error:
            self._explain(error, requests)
            raise

    def _explain(self, error: WaitTimeoutError, requests: Requests) -> None:
        """Let an error say what the workers are at; a flow that has waited for an epoch says more itself."""
        if not waits_for_epoch(requests[0][1]):
            explain(error, self, -1, "", -1)

    def ask_members(
        self,
        makes: Makes,
        timeout_seconds: float = REPLY_SECONDS_MAX,
        reach_seconds: float = float("inf"),
    ) -> list[Reply]:
        """See `Workers`, and `ask`."""
        requests = makes(self.members)
        return self.ask(requests, timeout_seconds, reach_seconds) if requests else []

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
    def seal(self, poster: Poster, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        """See `Workers`. Settle the posts of other threads first: they went by other connections."""
        own = self._channel()
        self._settle(own)
        return own.seal(poster, seconds, is_early)

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        """See `Workers`."""
        request = Progress(dataflow, "", epoch, seconds, waited_seconds)
        limit = PATIENCE_SECONDS if seconds < 0 else seconds + ANSWER_SECONDS_MAX
        self.ask_members(to_all(request), limit)

    def reasons(self, request: Why) -> list[Reply | str]:
        """See `Workers`. It has connections of its own: those of this thread may wait for something else."""
        self._process.check()
        if self._broken is not None:
            raise fresh_copy(self._broken)
        with self._lock:
            asker = self._asker
            if asker is None or asker.addresses != tuple(self.addresses):
                asker = self._asker = Asker(self.addresses, self.keys, self.silence_seconds)
        return asker.ask(request, self.members.life, getattr(self._launcher, "pids", ()))

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
            asker, self._asker = self._asker, None
        if asker is not None:
            asker.close()
        for channel in channels:
            channel.end(broken or closed)
        for channel in channels:
            channel.close()
        if self._launcher is not None:
            self._launcher.stop()
        if refused := self.refusals.take():
            raise together(refused)

    def _on_loss(self, error: PeerError) -> None:
        """End the connection: `DurableWorkers` does not."""
        self._break(error)

    def _break(self, error: TimelyError) -> None:
        """Let every later request raise the first such error."""
        with self._lock:
            if self._broken is None:
                self._broken = error

    def _channel(self) -> Channel:
        channel: Channel | None = getattr(self._own, "channel", None)
        if channel is None:
            channel = self._own.channel = self._new_channel()
            with self._lock:
                ended = [other for other in self._channels if not other.thread.is_alive() and not other.posts]
                self._channels = [other for other in self._channels if other not in ended] + [channel]
            for other in ended:
                other.close()
        return channel

    def _new_channel(self) -> Channel:
        return Channel(
            self.addresses, self.members, self.silence_seconds, self._launcher, self._lock, self.keys
        )
