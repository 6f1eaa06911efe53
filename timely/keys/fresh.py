"""Make keys without files, for a program that starts workers itself and hands their keys over.

    cluster = new_cluster()
    cluster, driver = new_client(cluster, "driver")

Workers get `cluster` by `cluster_settings(…, keys=cluster)`, a client `driver` by `connect(…,
keys=driver)`. Both can be pickled, for example with a task of Spark; neither ever shows its secret.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import MisuseError
from ..wire.keys import ClientKeys, ClusterKeys
from ..wire.transport.curve import new_pair

__all__ = ["new_client", "new_cluster"]


def new_cluster() -> ClusterKeys:
    """Return a fresh pair for workers, which admit only one another yet."""
    return ClusterKeys(new_pair())


def new_client(cluster: ClusterKeys, name: str) -> tuple[ClusterKeys, ClientKeys]:
    """Return the cluster's keys, extended to admit a new client, and fresh keys for the client.

    Workers that run with the old cluster keys do not admit it: running workers follow a list in a file only.
    """
    if name in cluster.clients:
        raise MisuseError(f"the cluster has a client {name!r} already: choose another name")
    client = ClientKeys(name, new_pair(), cluster.pair.public)
    return replace(cluster, clients={**cluster.clients, name: client.pair.public}), client
