"""Open the connections of a data source: on the driver to a cluster, in a task to its workers.

A data source is pickled and sent to tasks; connections cannot be. So it has addresses, and each process opens
the connections that it needs, for as long as it needs them. Tasks get the keys of the driver with the
addresses (`Whereabouts`); the secret is not shown anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from timely.client.cluster import Cluster
from timely.client.connection import RemoteWorkers, discover
from timely.client.session import Flow
from timely.keys import ClientKeys
from timely.limits import SILENCE_SECONDS_DEFAULT
from timely.spark.source.options import SourceOptions

__all__ = ["Whereabouts", "connected_to", "flow_of", "workers_at"]


@dataclass(frozen=True)
class Whereabouts:
    """The addresses of workers (all of a cluster in order, or some of them), the keys, and how long a worker
    may be silent.
    """

    addresses: tuple[str, ...]
    keys: ClientKeys | None = None
    silence_seconds: float = SILENCE_SECONDS_DEFAULT

    def only(self, address: str) -> Whereabouts:
        """Return the whereabouts of a single worker."""
        return replace(self, addresses=(address,))


@contextmanager
def flow_of(options: SourceOptions) -> Iterator[tuple[Whereabouts, RemoteWorkers, Flow]]:
    """Yield the whereabouts and the workers of the cluster that the options name, and its dataflow."""
    keys = options.keys()
    cluster = discover(options.cluster, keys, options.timeout_seconds)
    at = Whereabouts(tuple(cluster.addresses), keys, cluster.silence_seconds)
    with workers_at(at) as workers:
        yield at, workers, options.flow_in(Cluster(workers))


@contextmanager
def workers_at(at: Whereabouts) -> Iterator[RemoteWorkers]:
    """Connect to these workers for the length of the block; raises as `connected_to`."""
    workers = connected_to(at)
    try:
        yield workers
    finally:
        workers.close()


def connected_to(at: Whereabouts) -> RemoteWorkers:
    """Connect to these workers; raises `PeerError` if one cannot be reached."""
    workers = RemoteWorkers(at.addresses, keys=at.keys, silence_seconds=at.silence_seconds)
    try:
        workers.join()
    except BaseException:
        workers.close()
        raise
    return workers
