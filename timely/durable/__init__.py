"""Log what comes in, and fix what of it counts after a restart.

    store.py          what a store can do: the files that all processes of a durable cluster share
    folder_store.py   a store in a folder of a local file system
    records.py        a record as bytes, and where a segment of a log ends
    log.py            the log of one process: a thread writes, syncs, looks for a fence, and then tells
    incarnations.py   how an incarnation takes over: its fence, what it reads, its `begin`
    bases/            what inputs hold as of an epoch, in place of logs
    answers/          what outputs hold as of an epoch, for other programs

An *incarnation* is one life of the cluster between two restarts. A process shows to others only what rests on
records that its log has told: they are synced, and no later incarnation had put its fence by then.

For users: `stored` says where the stored answers of outputs are. It needs no cluster.

Imports `timely.wire.batch` for the type of a frame, and what lies below it.
"""

from .answers.reading import StoredAnswer, stored

__all__ = ["StoredAnswer", "stored"]
