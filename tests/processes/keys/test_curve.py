"""A lock: who holds the right keys talks through it, and nobody else does."""

from __future__ import annotations

import zmq

from timely.keys import ClientKeys, new_client, new_cluster
from timely.wire.allowed import AllowList
from timely.wire.transport.curve import lock_client, lock_server, new_pair
from timely.wire.transport.door import SocketGuard

CLUSTER, ADA = new_client(new_cluster(), "ada")


def is_heard(keys: ClientKeys | None, *, is_closed: bool = False) -> bool:
    """Whether a message of a client with these keys comes through the lock of `CLUSTER`, before its
    connection is ended. `is_closed`: the door beside it was, before anybody came.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    door = SocketGuard(context, server, AllowList(CLUSTER))
    if is_closed:
        door.close()
    ended = client.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    try:
        lock_server(server, CLUSTER)
        port = server.bind_to_random_port("tcp://127.0.0.1")
        if keys is not None:
            lock_client(client, keys)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b"hello")
        poller = zmq.Poller()
        poller.register(server, zmq.POLLIN)
        poller.register(ended, zmq.POLLIN)
        happened = dict(poller.poll(20_000))
        assert happened, "neither"
        return server in happened
    finally:
        client.disable_monitor()
        if not is_closed:
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


def test_a_lock_whose_door_is_closed_opens_to_nobody() -> None:
    """As where the thread beside it has failed: who is not on the list any more must not come in by that."""
    assert not is_heard(ADA, is_closed=True)


def test_what_was_bound_before_the_lock_stays_open() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    door = SocketGuard(context, server, AllowList(CLUSTER))
    try:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        lock_server(server, CLUSTER)
        client.connect(f"tcp://127.0.0.1:{port}")
        client.send(b"hello")
        assert server.poll(10_000)
    finally:
        door.close()
        context.destroy(linger=0)
