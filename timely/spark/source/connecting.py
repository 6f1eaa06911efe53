"""Open the connections of a data source: on the driver to a cluster, in a task to its workers.

A data source is pickled and sent to tasks; connections cannot be. So it has addresses, and each process opens
the connections that it needs, for as long as it needs them. Tasks get the keys of the driver with the
addresses (`Whereabouts`); the secret is not shown anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from timely.client import connection
from timely.client.cluster import Cluster
from timely.client.remote.workers import RemoteWorkers
from timely.client.session import Flow
from timely.errors import PeerError, RefusedError
from timely.keys import ClientKeys
from timely.limits import SILENCE_SECONDS_DEFAULT
from timely.spark.source.options import SourceOptions

__all__ = ["Whereabouts", "connected_to", "flow_of", "workers_at"]


@dataclass(frozen=True)
class Whereabouts:
    """The addresses of workers (all of a cluster in order, or some of them), the keys, how long a worker may
    be silent, an incarnation that a durable cluster has had (0: it is not durable), and its identity.
    """

    addresses: tuple[str, ...]
    keys: ClientKeys | None = None
    silence_seconds: float = SILENCE_SECONDS_DEFAULT
    incarnation: int = 0
    cluster: str = ""

    def only(self, address: str) -> Whereabouts:
        """Return the whereabouts of a single worker."""
        return replace(self, addresses=(address,))


@contextmanager
def flow_of(options: SourceOptions) -> Iterator[tuple[Whereabouts, RemoteWorkers, Flow]]:
    """Yield the whereabouts and the workers of the cluster that the options name, and its dataflow."""
    keys = options.keys()
    cluster = _discovered(options, keys)
    at = Whereabouts(
        tuple(cluster.addresses), keys, cluster.silence_seconds, cluster.incarnation, cluster.cluster
    )
    with workers_at(at) as workers:
        yield at, workers, options.flow_in(Cluster(workers))


def _discovered(options: SourceOptions, keys: ClientKeys | None) -> connection.ClusterAddresses:
    try:
        return connection.discover(options.cluster, keys, options.timeout_seconds)
    except RefusedError:
        raise
    except PeerError:
        # The worker may just have ended, and the cluster be durable: then it comes back in a moment.
        return connection.discover(options.cluster, keys, options.timeout_seconds)


@contextmanager
def workers_at(at: Whereabouts) -> Iterator[RemoteWorkers]:
    """Connect to these workers for the length of the block; raises as `connected_to`."""
    workers = connected_to(at)
    try:
        yield workers
    finally:
        workers.close()


def connected_to(at: Whereabouts) -> RemoteWorkers:
    """Connect to these workers; raises `PeerError` if one cannot be reached. If a durable cluster starts
    again, calls wait for that.
    """
    workers = connection.workers_at(at.addresses, at.keys, at.silence_seconds, at.incarnation, at.cluster)
    try:
        workers.join()
    except BaseException:
        workers.close()
        raise
    return workers
