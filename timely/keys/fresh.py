"""Keys that no file has seen: for a program that starts workers itself and hands their keys over.

    cluster = new_cluster()
    cluster, driver = new_client(cluster, "driver")

Workers get `cluster` by `cluster_settings(…, keys=cluster)`, a client `driver` by `connect(…,
keys=driver)`. Both can be pickled, for example in what a task of Spark is given; neither ever shows its
secret.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import MisuseError
from ..wire.keys import ClientKeys, ClusterKeys
from ..wire.transport.curve import new_pair

__all__ = ["new_client", "new_cluster"]


def new_cluster() -> ClusterKeys:
    """A fresh pair for workers, which let nobody in yet but one another."""
    return ClusterKeys(new_pair())


def new_client(cluster: ClusterKeys, name: str) -> tuple[ClusterKeys, ClientKeys]:
    """Fresh keys for a client, and those of the cluster, which now lets it in. Workers that run with the
    old ones do
    not: they follow a list in a file only.
    """
    if name in cluster.clients:
        raise MisuseError(f"the cluster has a client {name!r} already: choose another name")
    client = ClientKeys(name, new_pair(), cluster.pair.public)
    return replace(cluster, clients={**cluster.clients, name: client.pair.public}), client
