"""Talking to workers in other processes.

    RemoteWorkers   all workers of a cluster, asked together: what `cluster.py` stands on
    AppendClient    only appends, to be used where rows are made (a Spark executor, a loader)

Nothing waits for a worker that is gone: while an answer is outstanding, connections are watched and, of
workers that this program has started, their `Keeper`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import MisuseError, PeerError, RefusedError, TimelyError, WaitTimeoutError
from ..failure import again
from ..limits import (
    ANSWER_SECONDS_MAX,
    CONNECT_SECONDS_MAX,
    FRAME_BYTES_MAX,
    KEEPER_SECONDS_MAX,
    PART_BYTES_MAX,
    REPLY_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
    VERDICT_SECONDS_MAX,
)
from ..operators.inputs.appends import place_of
from ..user_code.call_site import call_site
from ..wire.addresses import socket_address
from ..wire.batch import Frame
from ..wire.handshake import PROTOCOL_VERSION
from ..wire.keys import ClientKeys
from ..wire.requests import (
    FAREWELL,
    Append,
    Hello,
    Reply,
    Request,
    check_size,
    decode_reply,
    encode_request,
    number_of,
    table_to_frame,
)
from ..wire.transport.zeromq import ClientSockets
from .installed import Keeper, OwnProcess
from .posting import Behind, Poster, Posts, Refusals, together

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
_BUSY: Final = "it is reached, and does not answer: it computes, or waits for others"
_SHORT_WAIT_SECONDS = 0.5
_KNOWS = -1
"""Stands for the worker in a failure that is known to be the cause: a worker's last word."""
_KEEPS = -2
"""The same, from who keeps the workers, and knows best."""


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
        self._channels: list[_Channel] = []
        self._broken: TimelyError | None = None
        self._channel()

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
        with self._breaking():
            return self._channel().ask(requests, timeout_seconds, reach_seconds)

    def post(
        self,
        worker: int,
        request: Request,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        """Send a request whose answer `poster` hears of when somebody settles. `is_ordered`: once other
        threads have their answers, for a worker takes what comes by several connections in any order.
        """
        with self._breaking():
            own = self._channel()
            if is_ordered:
                self._settle(own)
            rows = None if table is None else table_to_frame(table)
            own.posts.post(worker, request, rows, poster, call, call_site())
            if own.sockets.has_unsent(worker):  # nobody may be there to send the rest of it soon
                own.posts.settle()

    def ask_behind(self, worker: int, poster: Poster, request: Behind) -> Reply:
        """Ask something behind what this thread has posted. What others have is taken up first: it went by
        connections of their own.
        """
        with self._breaking():
            own = self._channel()
            self._settle(own)
            return own.posts.ask_behind(worker, poster, request)

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Take up the answers to all that was posted, in whichever thread."""
        with self._breaking():
            self._settle(None, timeout_seconds)

    def _settle(self, own: _Channel | None, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Of all threads, or of all others."""
        for channel in self._channels:
            if channel is not own and channel.posts:
                channel.posts.settle(timeout_seconds)

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """After a `PeerError` every request is refused with it; each in a process that was forked."""
        self._process.check()
        if self._broken is not None:
            raise again(self._broken)
        try:
            yield
        except PeerError as error:
            self._break(error)
            raise

    def join(self, timeout_seconds: float = CONNECT_SECONDS_MAX) -> None:
        """Wait until all workers are reached, though they may be at work; `PeerError` if one is not."""
        self._channel().join(timeout_seconds)

    def close(self) -> None:
        """Let go of the sockets; end the workers if this process has started them. Raises what was posted and
        refused, if no call has said so. A forked process leaves all as it is.
        """
        if not self._process.is_here:
            return
        try:
            # A worker that computes takes them up afterwards, unless it ends with this program.
            if any(channel.posts for channel in self._channels):
                self.settle(CONNECT_SECONDS_MAX if self._launcher is None else ANSWER_SECONDS_MAX)
        except TimelyError as error:
            _log.warning("closing, it is not known whether the last rows have arrived: %s", error)
        self._break(MisuseError("this cluster is closed: connect again"))
        with self._lock:
            channels, self._channels = self._channels, []
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

    def _channel(self) -> _Channel:
        known: _Channel | None = getattr(self._own, "channel", None)
        if known is None:
            known = self._own.channel = _Channel(
                self.addresses, self.silence_seconds, self._launcher, self._lock, self.keys
            )
            with self._lock:
                ended = [other for other in self._channels if not other.thread.is_alive() and not other.posts]
                self._channels = [other for other in self._channels if other not in ended] + [known]
            for other in ended:
                other.close()
        return known


class _Channel:
    """One thread's connections to all workers. `lock` is held while all threads' `launcher` is asked."""

    def __init__(
        self,
        addresses: Sequence[str],
        silence_seconds: float,
        launcher: Keeper | None,
        lock: threading.Lock,
        keys: ClientKeys | None,
    ) -> None:
        self.thread = threading.current_thread()
        self._addresses = addresses
        self._launcher = launcher
        self._lock = lock
        self.sockets = ClientSockets(addresses, keys, silence_seconds)
        self._number = 0
        self.posts = Posts(self._send, self._answer)
        self._descriptors = [] if launcher is None else launcher.descriptors
        for descriptor in self._descriptors:
            self.sockets.watch(descriptor)

    def ask(
        self,
        requests: Sequence[tuple[int, Request, pa.Table | None]],
        timeout_seconds: float,
        reach_seconds: float,
    ) -> list[Reply]:
        """See `RemoteWorkers.ask`."""
        self.posts.settle()  # from now on this thread alone looks at the sockets
        first = self._number + 1
        self._number += len(requests)
        # What cannot be sent is found before anything is.
        encoded = [
            (worker, first + position, check_size(encode_request(first + position, request, table)))
            for position, (worker, request, table) in enumerate(requests)
        ]
        for worker in {worker for worker, _, _ in requests}:
            self.sockets.forgive(worker)
            self.sockets.choose(worker)
        for worker, _, frames in encoded:
            self.sockets.send(worker, frames)
        pending = {(worker, number): number - first for worker, number, _ in encoded}
        return self._gather(pending, timeout_seconds, reach_seconds)

    def _send(self, worker: int, request: Request, rows: Frame | None) -> int:
        """Send what nobody waits for now."""
        self._number += 1
        frames = check_size(encode_request(self._number, request) + ([] if rows is None else [rows]))
        self.sockets.forgive(worker)
        self.sockets.send(worker, frames)
        return self._number

    def _answer(self, worker: int, number: int, timeout_seconds: float) -> Reply | TimelyError:
        """Wait for the answer to what was sent so; raises where there is none."""
        pending = {(worker, number): 0}
        try:
            (reply,) = self._gather(pending, timeout_seconds, float("inf"))
        except TimelyError as error:
            if pending or isinstance(error, PeerError):
                raise
            return error
        return reply

    def join(self, timeout_seconds: float) -> None:
        """See `RemoteWorkers.join`."""
        deadline = time.monotonic() + timeout_seconds
        while absent := self._absent():
            left = deadline - time.monotonic()
            for worker in absent:
                if refusal := self.sockets.refusal(worker):
                    raise RefusedError(refusal)
            if left <= 0:
                listed = ", ".join(self._addresses[at] for at in absent)
                raise PeerError(
                    f"no worker can be reached at {listed} within {timeout_seconds:g} s: is the cluster gone "
                    "that was there? Start one with 'python -m timely.worker', or check host and port"
                )
            self.sockets.wait(min(_SHORT_WAIT_SECONDS, left))

    def close(self) -> None:
        """Let go of the sockets."""
        self.sockets.close()

    def _absent(self) -> list[int]:
        """Workers that are not reached, or not any more."""
        return [at for at in range(len(self._addresses)) if not self.sockets.is_joined(at)]

    def _check_reached(self, late: set[int], seconds: float, patience: float) -> None:
        """Nobody there, or somebody who cannot answer yet? Raise the one; say that the other is awaited."""
        if absent := late.intersection(self._absent()):
            raise PeerError(
                f"no answer from worker {self._listed(absent)} within {seconds:g} s: is a cluster running "
                "there? Start one with 'python -m timely.worker', or check host and port"
            )
        _log.warning("waiting for worker %s: %s. For %g s at most", self._listed(late), _BUSY, patience)

    def _listed(self, workers: set[int]) -> str:
        return ", ".join(f"{worker} at {self._addresses[worker]}" for worker in sorted(workers))

    def _gather(
        self, pending: dict[tuple[int, int], int], timeout_seconds: float, reach_seconds: float
    ) -> list[Reply]:
        started = time.monotonic()
        deadline, reach_by = started + timeout_seconds, started + reach_seconds
        replies: dict[int, Reply] = {}
        failures: list[tuple[int, TimelyError]] = []
        grace = apart = deadline
        patience = KEEPER_SECONDS_MAX if self._keeper_knows_best else VERDICT_SECONDS_MAX
        while pending or failures:
            for worker in range(len(self._addresses)):  # also who was not asked may have a last word
                self._take(worker, pending, replies, failures)
            if not pending and not failures:
                break  # most often: nobody need be looked after
            lost = self._find_lost({worker for worker, _ in pending})
            now = time.monotonic()
            if (failures or lost) and grace == deadline:
                grace = min(deadline, now + patience)
            failures.extend(lost)
            # Who is asked may be in a long step, in which it cannot tell that the cluster is gone.
            others = [] if failures else self._lost_apart({worker for worker, _ in pending})
            apart = min(apart, now + patience) if others else deadline
            if now >= apart:
                failures.extend(others)
            if self._is_settled(bool(pending), failures) or (failures and now >= min(grace, apart)):
                break
            if now >= reach_by:
                reach_by = float("inf")
                if not failures:
                    self._check_reached({worker for worker, _ in pending}, reach_seconds, timeout_seconds)
            if now >= deadline:
                late = {worker for worker, _ in pending}
                why = "it cannot be reached" if late.intersection(self._absent()) else _BUSY
                raise WaitTimeoutError(
                    f"no answer from worker {self._listed(late)} within {timeout_seconds:g} s: {why}"
                )
            pause = 0.02 if failures or self.sockets.is_losing() else _SHORT_WAIT_SECONDS
            self.sockets.wait(min(pause, max(0.0, min(deadline, grace, reach_by) - now)))
        if failures:
            raise self._judge(failures)
        return [replies[position] for position in sorted(replies)]

    def _take(
        self,
        worker: int,
        pending: dict[tuple[int, int], int],
        replies: dict[int, Reply],
        failures: list[tuple[int, TimelyError]],
    ) -> None:
        while (frames := self.sockets.recv_nowait(worker)) is not None:
            # A worker may say more than a client: the stages of a large dataflow are a long text.
            number = number_of(frames, FRAME_BYTES_MAX)
            position = pending.pop((worker, number), None)
            if position is None and number != FAREWELL:
                if self.posts.expects(worker, number):
                    self.posts.take(worker, number, decode_reply(frames))
                continue  # or it is the answer to a request that was given up
            answer = decode_reply(frames)
            if position is None:
                if isinstance(answer, PeerError):
                    failures.append((_KNOWS, answer))
                continue
            if isinstance(answer, Reply):
                replies[position] = answer
            else:
                failures.append((worker, answer))

    def _find_lost(self, workers: set[int]) -> list[tuple[int, TimelyError]]:
        """Workers of whom an answer is outstanding and none will come."""
        if self._launcher is not None:
            try:
                with self._lock:
                    self._launcher.check()
            except PeerError as error:
                self._forget_ended()
                return [(_KEEPS, error)]
        for worker in sorted(workers):
            if refusal := self.sockets.refusal(worker):
                return [(_KNOWS, RefusedError(refusal))]
        return [
            (
                worker,
                PeerError(
                    f"worker {worker} at {self._addresses[worker]} is lost before it has answered: {loss}"
                ),
            )
            for worker in sorted(workers)
            if (loss := self.sockets.loss(worker))
        ]

    def _lost_apart(self, asked: set[int]) -> list[tuple[int, TimelyError]]:
        """Workers that nothing is outstanding of, which are lost and not back: without them there is no
        cluster that could answer.
        """
        found: list[tuple[int, TimelyError]] = []
        for worker in range(len(self._addresses)):
            if worker not in asked:
                self.sockets.forgive(worker)
                if loss := self.sockets.loss(worker):
                    who = f"worker {worker} at {self._addresses[worker]}"
                    found.append((worker, PeerError(f"{who} is lost, and with it the cluster: {loss}")))
        return found

    def _forget_ended(self) -> None:
        assert self._launcher is not None
        alive = set(self._launcher.descriptors)
        for descriptor in [old for old in self._descriptors if old not in alive]:
            self.sockets.unwatch(descriptor)
        self._descriptors = [old for old in self._descriptors if old in alive]

    @property
    def _keeper_knows_best(self) -> bool:
        return self._launcher is not None and self._launcher.knows_best

    def _is_settled(self, is_pending: bool, failures: list[tuple[int, TimelyError]]) -> bool:
        """Whether there is nothing to wait for: one of the failures explains itself, or all have answered. Of
        a lost peer another worker may know the cause; who keeps them knows it for certain.
        """
        known = _KEEPS if self._keeper_knows_best else _KNOWS
        if any(worker <= known or not isinstance(error, PeerError) for worker, error in failures):
            return True
        return not is_pending and not (failures and self._keeper_knows_best)

    def _judge(self, failures: list[tuple[int, TimelyError]]) -> TimelyError:
        """The failure that explains the others."""
        ranked = sorted(failures, key=lambda failure: (isinstance(failure[1], PeerError), failure[0]))
        worker, error = ranked[0]
        if not isinstance(error, PeerError) and worker >= 0 and len(self._addresses) > 1:
            error.add_note(f"reported by worker {worker} at {self._addresses[worker]}")
        return error


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

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> bool:
        """Add `table`, whose column `diff` says how often each row is added, to an open epoch.

        Returns whether it was new: `False` for a repetition, which changes nothing. Raises `InputClosedError`
        if the epoch is sealed, `PeerError` if the worker cannot be reached.
        """
        request = Append(self._dataflow, input, epoch, writer, sequence, 0)
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
