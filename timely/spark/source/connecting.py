"""The one place where a data source opens a connection: on the driver to a cluster, in a task to its workers.

A data source is pickled and travels; connections do not. So it carries addresses, and each process opens what
it needs, for as long as it needs it. The keys of the driver travel with the addresses (`Whereabouts`), in
what tasks are handed, and show their secret to nobody.
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
    """Where workers are reached, all of a cluster in order, or some of them, by which keys, and how long one
    of them may be silent.
    """

    addresses: tuple[str, ...]
    keys: ClientKeys | None = None
    silence_seconds: float = SILENCE_SECONDS_DEFAULT

    def only(self, address: str) -> Whereabouts:
        """Where one of them is reached."""
        return replace(self, addresses=(address,))


@contextmanager
def flow_of(options: SourceOptions) -> Iterator[tuple[Whereabouts, RemoteWorkers, Flow]]:
    """The dataflow that the options name, and the workers of the cluster that they name."""
    keys = options.keys()
    found = discover(options.cluster, keys, options.timeout_seconds)
    at = Whereabouts(tuple(found.addresses), keys, found.silence_seconds)
    with workers_at(at) as workers:
        yield at, workers, options.flow_in(Cluster(workers))


@contextmanager
def workers_at(at: Whereabouts) -> Iterator[RemoteWorkers]:
    """Connections to these workers for a while; raises as `connected_to`."""
    workers = connected_to(at)
    try:
        yield workers
    finally:
        workers.close()


def connected_to(at: Whereabouts) -> RemoteWorkers:
    """Connections to these workers. `PeerError` if one cannot be reached."""
    workers = RemoteWorkers(at.addresses, keys=at.keys, silence_seconds=at.silence_seconds)
    try:
        workers.join()
    except BaseException:
        workers.close()
        raise
    return workers
