"""Listening: at all interfaces, by both kinds of addresses; what is open stays apart from what is locked."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
import zmq

from timely import MisuseError, PeerError
from timely.keys import ClientKeys, ClusterKeys, new_client, new_cluster
from timely.wire.transport import zeromq
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.tcp import IS_COUNTED
from timely.wire.transport.zeromq import ClientSockets, WorkerMesh

CLUSTER, ADA = new_client(new_cluster(), "ada")


def is_served(server: ServerSocket, address: str, keys: ClientKeys | None) -> bool:
    client = ClientSockets([address], keys)
    try:
        client.send(0, [b"question"])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not client.refusal(0):
            if server.recv_nowait():
                return True
            time.sleep(0.005)
        return False
    finally:
        client.close()


@pytest.mark.parametrize("keys", [None, CLUSTER])
def test_all_interfaces_are_those_of_both_kinds_of_addresses(keys: object) -> None:
    server = ServerSocket("tcp://*:0", keys=CLUSTER if keys else None)
    port = server.address.rpartition(":")[2]
    try:
        for host in ("127.0.0.1", "localhost", "127.0.0.2", "[::1]"):
            assert is_served(server, f"tcp://{host}:{port}", ADA if keys else None), host
    finally:
        server.close()


def test_one_interface_is_that_one_only() -> None:
    server = ServerSocket("tcp://[::1]:0")
    port = server.address.rpartition(":")[2]
    try:
        assert is_served(server, f"tcp://[::1]:{port}", None)
        with pytest.raises(MisuseError, match="in use by another program"):
            ServerSocket(f"tcp://[::1]:{port}", keys=CLUSTER)
    finally:
        server.close()


def test_a_port_that_another_program_has_by_one_kind_of_addresses_is_in_use() -> None:
    with socket.socket(socket.AF_INET6) as other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        other.bind(("::", 0))
        other.listen()
        with pytest.raises(MisuseError, match=r"is in use by another program: choose another"):
            ServerSocket(f"tcp://*:{other.getsockname()[1]}", "choose another")


@pytest.mark.skipif(not IS_COUNTED, reason="this host does not count bytes of connections")
def test_a_host_is_given_up_after_twice_the_silence_that_is_tolerated() -> None:
    for keys in (None, CLUSTER):
        server = ServerSocket("tcp://127.0.0.1:0", keys=keys, silence_seconds=40.0)
        assert server.socket.get(zmq.TCP_MAXRT) == 80_000
        server.close()


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def received(mesh: WorkerMesh) -> tuple[int, bytes]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for peer, frames in mesh.recv_nowait():
            return peer, bytes(frames[0])
        mesh.wait(0.05)
    raise AssertionError("nothing came")


def test_a_mesh_is_open_to_its_folder_and_locked_to_other_hosts(tmp_path: Path) -> None:
    """Worker 1 joins 0 through the folder and has no keys, worker 2 does by tcp and has the cluster's."""
    here, there = free_ports(2)
    inside, aside = f"ipc://{tmp_path}/m0", f"ipc://{tmp_path}/m1"
    outside, far = f"tcp://127.0.0.1:{here}", f"tcp://127.0.0.1:{there}"
    meshes = [
        WorkerMesh(0, [outside, inside], {1: aside, 2: far}, keys=CLUSTER),
        WorkerMesh(1, [aside], {0: inside}),
        WorkerMesh(2, [far], {0: outside}, keys=CLUSTER),
    ]
    try:
        for peer in (1, 2):
            meshes[0].send(peer, [b"from 0"])
            assert received(meshes[peer]) == (0, b"from 0")
            meshes[peer].send(0, [b"to 0"])
            assert received(meshes[0]) == (peer, b"to 0")
    finally:
        for mesh in meshes:
            mesh.close()
            mesh.close()


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (None, CLUSTER, "that one has keys and this one has none"),
        (CLUSTER, None, "this one has keys and that one has none"),
        (CLUSTER, new_cluster(), "that one has another cluster's keys"),
    ],
)
def test_workers_with_other_keys_do_not_wait_for_one_another_in_silence(
    mine: ClusterKeys | None, theirs: ClusterKeys | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one whose attempt is refused says so; with another cluster's keys after some seconds of trying."""
    monkeypatch.setattr(zeromq, "_DOUBT_OF_PEERS_SECONDS", 1.0)
    one, other = (f"tcp://127.0.0.1:{port}" for port in free_ports(2))
    meshes = [WorkerMesh(0, [one], {1: other}, keys=mine), WorkerMesh(1, [other], {0: one}, keys=theirs)]
    try:
        deadline = time.monotonic() + 30
        with pytest.raises(
            PeerError, match=f"worker 0 cannot join worker 1 at {other}: {said}.* the same --keys"
        ):
            while time.monotonic() < deadline:
                assert meshes[0].recv_nowait() == []
                meshes[0].wait(0.1)
    finally:
        for mesh in meshes:
            mesh.close()
