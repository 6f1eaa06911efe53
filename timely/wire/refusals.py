"""Why was a connection refused, and what can the user do? The messages for what a socket has observed.

    NOT_LISTED     the other side has proved its identity, and does not admit this key
    KEYS_WANTED    the other side accepts only holders of keys, and this side has none
    KEYS_UNKNOWN   this side has keys, and the other side is open and has none
    BROKEN_OFF     the other side repeatedly ends the connection before either side has proved its identity

The first caller that waits for the connection gets the message, once, in one line; then this side stops
connecting.
"""

from __future__ import annotations

from enum import Enum

from .keys import ClientKeys, shown_key

__all__ = ["Refusal", "client_refusal", "taken_away", "worker_refusal"]


class Refusal(Enum):
    """Why a connection was refused; the docstring of the module explains each reason."""

    NOT_LISTED = 1
    KEYS_WANTED = 2
    KEYS_UNKNOWN = 3
    BROKEN_OFF = 4


def client_refusal(refusal: Refusal, address: str, keys: ClientKeys | None) -> str:
    """Return the message for a client that has tried to reach a worker at `address`."""
    match refusal:
        case Refusal.NOT_LISTED:
            return (
                f"refused: {_whose(keys)} is not on the list of clients of the cluster at {address}. It was "
                "taken away, or never put there: ask the owner of the cluster to run 'python -m "
                "timely.keys client'"
            )
        case Refusal.KEYS_WANTED:
            return (
                f"refused: the workers at {address} take only clients with keys. Say connect(…, "
                "keys=FOLDER), of Spark's source option('keys', FOLDER), or set NAIAD_KEYS; 'python -m "
                "timely.keys client CLUSTER NAME' makes such a folder where the cluster's keys are, "
                "save_keys(FOLDER) of a cluster that Spark schedules where it was started"
            )
        case Refusal.KEYS_UNKNOWN:
            return (
                f"refused: the workers at {address} have no keys, and this client talks only to the cluster "
                f"of its own ({_cluster(keys)}). Start them with --keys, or connect without keys (and "
                "without NAIAD_KEYS) if that is meant"
            )
        case Refusal.BROKEN_OFF if keys is None:
            return (
                f"the program at {address} ends every connection before it has begun: it is no worker, "
                "or one that takes only clients with keys: connect(…, keys=FOLDER)"
            )
        case Refusal.BROKEN_OFF:
            return (
                f"refused: the program at {address} does not have the keys of the cluster that this "
                f"client talks to ({_cluster(keys)}). It is another cluster, or no worker: check host and "
                "port, and which folder of keys belongs to it"
            )


def worker_refusal(refusal: Refusal) -> str:
    """Return the message for a worker that has tried to connect to another one."""
    match refusal:
        case Refusal.KEYS_WANTED:
            return "that one has keys and this one has none: give all hosts the same --keys"
        case Refusal.KEYS_UNKNOWN:
            return "this one has keys and that one has none: give all hosts the same --keys"
        case Refusal.NOT_LISTED | Refusal.BROKEN_OFF:
            return "that one has another cluster's keys, or is no worker: give all hosts the same --keys"


def taken_away(name: str, public: str) -> str:
    """Return the message for a connected client whose key was removed from the list."""
    return (
        f"refused: key {name!r} ({shown_key(public)}) is not on the list of clients any more: it was taken "
        "away. The cluster goes on without this client"
    )


def _whose(keys: ClientKeys | None) -> str:
    if keys is None:
        return "this client"
    return f"key {keys.name!r} ({shown_key(keys.pair.public)})"


def _cluster(keys: ClientKeys | None) -> str:
    assert keys is not None
    return f"{shown_key(keys.cluster)}{f' of {keys.of}' if keys.of else ''}"
