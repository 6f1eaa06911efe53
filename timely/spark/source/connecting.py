"""The one place where a data source opens a connection: on the driver to a cluster, in a task to its workers.

A data source is pickled and travels; connections do not. So it carries addresses and keys, and each process
opens what it needs, for as long as it needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from timely.client.cluster import Cluster
from timely.client.connection import RemoteWorkers, discover
from timely.client.session import Flow
from timely.keys import ClientKeys
from timely.spark.source.options import Options

__all__ = ["flow_of", "workers_at"]


@contextmanager
def flow_of(options: Options) -> Iterator[tuple[RemoteWorkers, Flow]]:
    """The dataflow that the options name, and the workers of the cluster that they name."""
    keys = options.keys()
    with workers_at(discover(options.cluster, keys), keys) as workers:
        yield workers, options.flow_in(Cluster(workers))


@contextmanager
def workers_at(addresses: Sequence[str], keys: ClientKeys | None = None) -> Iterator[RemoteWorkers]:
    """Connections to these workers: all of a cluster, in order, or some that a task has to do with.
    `PeerError` if one cannot be reached.
    """
    workers = RemoteWorkers(addresses, keys=keys)
    try:
        workers.join()
        yield workers
    finally:
        workers.close()
