"""How is a socket locked? By ZeroMQ's CURVE: both sides prove their keys, and all traffic is encrypted.

    new_pair        a fresh key pair
    lock_server     addresses bound from now on accept only clients that the context's `SocketGuard` admits
    lock_client     connections opened from now on talk only to the cluster of these keys

Options of a socket hold for the addresses that it binds or connects to afterwards. So one socket may listen
to its own host by ipc, open to every user of a private folder, and to other hosts by tcp, locked.
"""

from __future__ import annotations

from typing import Final

import zmq

from ...limits import HANDSHAKE_SECONDS_MAX
from ..keys import ClientKeys, ClusterKeys, KeyPair, Secret

__all__ = ["lock_client", "lock_server", "new_pair"]

_DOMAIN: Final = b"naiad"
"""The domain in requests for authentication (ZAP); any name will do."""
_BACKLOG: Final = 128
"""Connections that the host queues until the socket accepts them."""


def new_pair() -> KeyPair:
    """Return a fresh pair, from the host's source of random numbers."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), Secret(secret.decode()))


def lock_server(socket: zmq.Socket[bytes], keys: ClusterKeys) -> None:
    """Let addresses bound from now on accept only holders of keys that the context's `SocketGuard` admits.

    If the guard is closed, or has failed, they accept nobody. (Without `ZAP_ENFORCE_DOMAIN` libzmq would skip
    the check then, and admit every caller that knows the cluster's public key. A client whose key was taken
    away knows that.)
    """
    socket.set(zmq.ZAP_DOMAIN, _DOMAIN)
    socket.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
    socket.set(zmq.CURVE_SERVER, 1)
    socket.set(zmq.CURVE_PUBLICKEY, keys.pair.public.encode())
    socket.set(zmq.CURVE_SECRETKEY, keys.pair.secret.reveal().encode())
    socket.set(zmq.HANDSHAKE_IVL, round(HANDSHAKE_SECONDS_MAX * 1000))
    socket.set(zmq.BACKLOG, _BACKLOG)


def lock_client(socket: zmq.Socket[bytes], keys: ClientKeys) -> None:
    """Let connections opened from now on talk only to the cluster of `keys`, as the holder of `keys`."""
    socket.set(zmq.CURVE_SERVERKEY, keys.cluster.encode())
    socket.set(zmq.CURVE_PUBLICKEY, keys.pair.public.encode())
    socket.set(zmq.CURVE_SECRETKEY, keys.pair.secret.reveal().encode())
