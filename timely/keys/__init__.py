"""Make the keys of clusters and of their clients, store them in folders, and hand them over. docs/keys.md
describes their use.

    python -m timely.keys new FOLDER            the command: `command.py`
    load_cluster(FOLDER), load_client(FOLDER)   read the keys in a folder: `folder.py`
    new_cluster(), new_client(…)                without files, for a program that starts workers itself

`timely/wire/keys.py` defines keys, since sockets need them. Imports `timely.wire`.
"""

from ..wire.keys import ClientKeys, ClusterKeys
from .folder import load_client, load_cluster
from .fresh import new_client, new_cluster

__all__ = ["ClientKeys", "ClusterKeys", "load_client", "load_cluster", "new_client", "new_cluster"]
