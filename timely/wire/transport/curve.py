"""How is a socket locked? CURVE, as ZeroMQ has it: both sides prove their keys, all that passes is encrypted.

    new_pair        a fresh key pair
    lock_server     from now on what is bound takes only whoever a `Door` of the same context lets in
    lock_client     from now on what is connected talks only to the cluster of these keys

Options of a socket hold for what is bound or connected after them: so one socket may listen to its own host
by ipc, open to whoever may enter a private folder, and to others by tcp, locked.
"""

from __future__ import annotations

from typing import Final

import zmq

from ...limits import HANDSHAKE_SECONDS_MAX
from ..keys import ClientKeys, ClusterKeys, KeyPair, Secret

__all__ = ["lock_client", "lock_server", "new_pair"]

_DOMAIN: Final = b"naiad"
"""What requests for authentication (ZAP) are about; any name will do."""
_BACKLOG: Final = 128
"""Connections that the host keeps for a socket which has not taken them yet."""


def new_pair() -> KeyPair:
    """A fresh pair, from the host's source of random numbers."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), Secret(secret.decode()))


def lock_server(socket: zmq.Socket[bytes], keys: ClusterKeys) -> None:
    """Take nobody by what is bound from now on but holders of keys that the context's `Door` knows; where
    that is closed, or has failed, nobody at all. (Without a domain to enforce libzmq would ask nobody then,
    and let in whoever knows the cluster's public key, as all do whose key was taken away.)
    """
    socket.set(zmq.ZAP_DOMAIN, _DOMAIN)
    socket.set(zmq.ZAP_ENFORCE_DOMAIN, 1)
    socket.set(zmq.CURVE_SERVER, 1)
    socket.set(zmq.CURVE_PUBLICKEY, keys.pair.public.encode())
    socket.set(zmq.CURVE_SECRETKEY, keys.pair.secret.reveal().encode())
    socket.set(zmq.HANDSHAKE_IVL, round(HANDSHAKE_SECONDS_MAX * 1000))
    socket.set(zmq.BACKLOG, _BACKLOG)


def lock_client(socket: zmq.Socket[bytes], keys: ClientKeys) -> None:
    """Talk by what is connected from now on only to the cluster of `keys`, as their holder."""
    socket.set(zmq.CURVE_SERVERKEY, keys.cluster.encode())
    socket.set(zmq.CURVE_PUBLICKEY, keys.pair.public.encode())
    socket.set(zmq.CURVE_SECRETKEY, keys.pair.secret.reveal().encode())
