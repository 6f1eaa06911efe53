"""Keys of clusters and of their clients: made, kept in folders, handed over. docs/keys.md says how they are
used.

    python -m timely.keys new FOLDER            the command: `command.py`
    load_cluster(FOLDER), load_client(FOLDER)   what is in a folder: `folder.py`
    new_cluster(), new_client(…)                without files: for a program that starts workers itself

What a key is stands in `timely/wire/keys.py`, where sockets need it. Imports `timely.wire`.
"""

from ..wire.keys import ClientKeys, ClusterKeys
from .folder import load_client, load_cluster
from .fresh import new_client, new_cluster

__all__ = ["ClientKeys", "ClusterKeys", "load_client", "load_cluster", "new_client", "new_cluster"]
