"""Connections to workers in other processes: which cluster answers at some addresses, and clients that only
append.

    discover        the addresses of all workers of a cluster, by those of some
    AppendClient    only appends; for programs that produce rows (a Spark executor, a loader)

All other clients have `RemoteWorkers`, or `DurableWorkers`, which go on after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import MisuseError, PeerError, RefusedError
from ..limits import (
    CONNECT_SECONDS_MAX,
    REPLY_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
)
from ..operators.inputs.names import named, worker_of
from ..wire.arrow import stored
from ..wire.handshake import PROTOCOL_VERSION
from ..wire.keys import ClientKeys
from ..wire.requests import Hello, Reply
from .feeding.appending import append_request
from .installed import Members, Requests, to_all
from .remote.resuming import DurableWorkers
from .remote.workers import RemoteWorkers

__all__ = [
    "AppendClient",
    "ClusterAddresses",
    "append_target",
    "discover",
    "greeted",
    "workers_at",
]

_AGAIN_SECONDS: Final = 0.1
"""How long a client waits before it greets workers again that it has lost."""


def greeted(workers: RemoteWorkers, timeout_seconds: float = REPLY_SECONDS_MAX) -> list[Reply]:
    """Return the answers of all workers to `Hello`; raise `PeerError` if one is not reached soon, and
    `WaitTimeoutError` if one that is reached has not answered after `timeout_seconds`: it may be in the
    middle of a long step.
    """
    seconds = max(timeout_seconds, CONNECT_SECONDS_MAX)
    return workers.ask_members(to_all(Hello()), seconds, CONNECT_SECONDS_MAX)


class AppendClient:
    """Appends rows to an input of a running cluster. Which worker takes an append depends only on (writer,
    sequence).

    A context manager. `addresses` are the client ports of all workers, in order of their indices; `keys`
    are needed if workers have keys. The cluster itself tells how long a worker may be silent, and whether it
    is durable; with an `incarnation`, of a durable cluster, connecting waits for a restart, too. `cluster`:
    the identity of that; another one at these addresses gets no rows. `is_patient` False: never wait for a
    restart, but raise `PeerError`.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        dataflow: int = 0,
        keys: ClientKeys | None = None,
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
        incarnation: int = 0,
        is_patient: bool = True,
        cluster: str = "",
    ) -> None:
        self._workers = workers_at(
            addresses, keys, silence_seconds, incarnation if is_patient else 0, cluster
        )
        self._is_patient = is_patient
        self._dataflow = dataflow

    def __enter__(self) -> AppendClient:
        try:
            hello = greeted(self._workers)[0]
            if (count := hello.integer("workers")) != self._workers.count:
                raise PeerError(
                    f"the cluster has {count} workers, and had {self._workers.count}: connect to it anew"
                )
            seconds, incarnation = _silence_seconds(hello), hello.incarnation if self._is_patient else 0
            # A connection cannot change its limit, nor what it does after a loss.
            is_known = incarnation == 0 or isinstance(self._workers, DurableWorkers)
            if seconds != self._workers.silence_seconds or not is_known:
                at, keys = self._workers.addresses, self._workers.keys
                patient = workers_at(at, keys, seconds, incarnation, hello.text("cluster"))
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
        rows = stored(table)

        def makes(members: Members) -> Requests:
            return [(worker_of(writer, sequence, members.count), request, rows)]

        (reply,) = self._workers.ask_members(makes)
        return bool(reply.integer("is_new"))

    def close(self) -> None:
        """Disconnect; the cluster goes on."""
        self._workers.close()


class ClusterAddresses(NamedTuple):
    """Where the workers of a cluster are reached, in order of their indices; how long one may be silent; the
    incarnation of a durable cluster, and its identity.
    """

    addresses: list[str]
    silence_seconds: float
    incarnation: int = 0
    cluster: str = ""


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
        incarnation: int = 0,
        is_patient: bool = True,
        cluster: str = "",
    ) -> None:
        self.addresses = list(addresses)
        self.dataflow = dataflow
        self.keys = keys
        self.silence_seconds = silence_seconds
        self.incarnation = incarnation
        self.is_patient = is_patient
        self.cluster = cluster

    def __call__(self) -> AppendClient:
        """Return a new connection to the cluster."""
        return AppendClient(
            self.addresses,
            self.dataflow,
            self.keys,
            self.silence_seconds,
            self.incarnation,
            self.is_patient,
            self.cluster,
        )


def discover(
    addresses: Sequence[str], keys: ClientKeys | None = None, timeout_seconds: float = REPLY_SECONDS_MAX
) -> ClusterAddresses:
    """Return the addresses of all workers of the cluster that `addresses` belong to. Raise `PeerError` if no
    worker is there, or if they belong to different clusters; `WaitTimeoutError` if a worker does not answer
    in time.
    """
    probe, hellos = _met(addresses, keys, timeout_seconds)
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
    first = hellos[0]
    return ClusterAddresses(listed, _silence_seconds(first), first.incarnation, first.text("cluster"))


def _met(
    addresses: Sequence[str], keys: ClientKeys | None, timeout_seconds: float
) -> tuple[RemoteWorkers, list[Reply]]:
    """Return workers, and how they have greeted. If they are lost meanwhile, try again, for as long as a
    worker that is not there is waited for: all workers of a durable cluster may be starting again.
    """
    until = time.monotonic() + CONNECT_SECONDS_MAX
    while True:
        probe = RemoteWorkers(addresses, keys=keys)
        try:
            return probe, greeted(probe, timeout_seconds)
        except RefusedError:
            raise
        except PeerError:
            if time.monotonic() >= until:
                raise
        finally:
            probe.close()
        time.sleep(_AGAIN_SECONDS)


def workers_at(
    addresses: Sequence[str],
    keys: ClientKeys | None,
    silence_seconds: float,
    incarnation: int,
    cluster: str = "",
) -> RemoteWorkers:
    """Return the workers at some addresses; with an incarnation, those of a durable cluster. `cluster`: its
    identity; empty: that of the first one that is met after a restart.
    """
    if not incarnation:
        return RemoteWorkers(addresses, keys=keys, silence_seconds=silence_seconds)
    return DurableWorkers(
        addresses, keys=keys, silence_seconds=silence_seconds, incarnation=incarnation, cluster=cluster
    )


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
