"""A lock: who holds the right keys talks through it, and nobody else does."""

from __future__ import annotations

import zmq

from timely.keys import ClientKeys, new_client, new_cluster
from timely.wire.allowed import AllowList
from timely.wire.transport.curve import lock_client, lock_server, new_pair
from timely.wire.transport.door import Door

CLUSTER, ADA = new_client(new_cluster(), "ada")


def is_heard(keys: ClientKeys | None) -> bool:
    """Whether a message of a client with these keys comes through the lock of `CLUSTER` within a second."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    door = Door(context, server, AllowList(CLUSTER))
    try:
        lock_server(server, CLUSTER)
        port = server.bind_to_random_port("tcp://127.0.0.1")
        if keys is not None:
            lock_client(client, keys)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b"hello")
        return bool(server.poll(1000 if keys in (None, ADA) else 500))
    finally:
        door.close()
        context.destroy(linger=0)


def test_every_pair_is_another_one() -> None:
    assert len({new_pair().public for _ in range(20)}) == 20


def test_a_lock_opens_to_its_keys_only() -> None:
    assert is_heard(ADA)
    assert is_heard(CLUSTER.as_client())
    assert not is_heard(None), "no keys"
    assert not is_heard(ClientKeys("ada", new_pair(), CLUSTER.pair.public)), "a key that is not on the list"
    assert not is_heard(ClientKeys("ada", ADA.pair, new_pair().public)), "the keys of another cluster"


def test_what_was_bound_before_the_lock_stays_open() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    door = Door(context, server, AllowList(CLUSTER))
    try:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        lock_server(server, CLUSTER)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b"hello")
        assert server.poll(10_000)
    finally:
        door.close()
        context.destroy(linger=0)
