"""Sockets between workers and to clients: order, size, loss, ports.

mesh_*      the contract of `Transport`, on real sockets
lost_*      a peer that ends, with a farewell and without
server_*    clients
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np
import pytest
import zmq

from timely import MisuseError, PeerError
from timely.limits import COPIED_BYTES_MAX, LOST_SECONDS_MAX, RECV_COUNT_MAX
from timely.wire.transport import Transport
from timely.wire.transport.ring import IS_POSSIBLE
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets, WorkerMesh

Meshes = list[WorkerMesh]


def join(folder: Path, count: int) -> Meshes:
    addresses = [f"ipc://{folder}/m{index}" for index in range(count)]
    return [
        WorkerMesh(
            index,
            [addresses[index]],
            {peer: address for peer, address in enumerate(addresses) if peer != index},
        )
        for index in range(count)
    ]


@pytest.fixture
def meshes(tmp_path: Path) -> Iterator[Meshes]:
    made = join(tmp_path, 3)
    yield made
    for mesh in made:
        mesh.close()
        mesh.close()


def receive(mesh: Transport, count: int) -> list[tuple[int, list[memoryview]]]:
    arrived: list[tuple[int, list[memoryview]]] = []
    deadline = time.monotonic() + 60
    while len(arrived) < count:
        assert time.monotonic() < deadline, f"only {len(arrived)} of {count} messages came"
        mesh.wait(0.1)
        arrived += mesh.recv_nowait()
    return arrived


def test_mesh_what_one_sends_another_arrives_in_order_from_each(meshes: Meshes) -> None:
    for number in range(2000):
        meshes[number % 2].send(2, [b"%d" % number, b""])
    arrived = receive(meshes[2], 2000)
    for source in (0, 1):
        assert [int(bytes(frames[0])) for peer, frames in arrived if peer == source] == list(
            range(source, 2000, 2)
        )
    assert all(len(frames) == 2 for _, frames in arrived)


def test_mesh_small_and_large_frames_keep_their_order_and_their_bytes(meshes: Meshes) -> None:
    sizes = [0, 1, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 8, 10, 8_000_000, 3]
    frames = [np.arange(size, dtype=np.uint8).tobytes() for size in sizes]
    meshes[0].send(1, frames)
    ((peer, got),) = receive(meshes[1], 1)
    assert peer == 0 and [frame.nbytes for frame in got] == sizes
    for frame, sent in zip(got, frames, strict=True):
        assert bytes(frame) == sent


def meet(meshes: Meshes) -> None:
    """All know of one another's memory."""
    for mesh in meshes:
        for peer in range(3):
            if peer != mesh.index:
                mesh.send(peer, [b"hello"])
    for mesh in meshes:
        receive(mesh, 2)


def test_mesh_a_neighbour_that_does_not_read_stops_nobody_and_gets_all_in_order(meshes: Meshes) -> None:
    meet(meshes)
    count = 20_000  # of 500 bytes on the average: ten times what shared memory takes
    started = time.monotonic()
    for number in range(count):
        meshes[0].send(1, [b"%d" % number, bytes(number % 1000 if number % 500 else 300_000)])
    assert time.monotonic() - started < 20
    arrived = receive(meshes[1], count)
    assert [int(bytes(frames[0])) for _, frames in arrived] == list(range(count))
    assert sum(len(frames[1]) for _, frames in arrived) == 40 * 300_000 + sum(
        number % 1000 for number in range(count) if number % 500
    )


def test_mesh_who_was_woken_by_a_neighbour_sleeps_again(meshes: Meshes) -> None:
    meet(meshes)
    _rest(meshes[1])
    for _ in range(3):
        neighbour = threading.Timer(0.1, meshes[0].send, (1, [b"x"]))
        started = time.monotonic()
        neighbour.start()
        meshes[1].wait(10)
        assert time.monotonic() - started < 5
        neighbour.join()
        receive(meshes[1], 1)
        _rest(meshes[1])


def _rest(mesh: WorkerMesh) -> None:
    """Wait until nothing comes any more, news of connections included."""
    waited, deadline = 0.0, time.monotonic() + 60
    while waited < 0.2:
        assert time.monotonic() < deadline, "it never sleeps"
        assert mesh.recv_nowait() == []
        started = time.monotonic()
        mesh.wait(0.25)
        waited = time.monotonic() - started


def test_mesh_does_not_sleep_over_what_a_neighbour_has_sent_beyond_what_is_taken_at_once(
    meshes: Meshes,
) -> None:
    meet(meshes)
    _rest(meshes[1])
    for number in range(2 * RECV_COUNT_MAX):
        meshes[0].send(1, [b"%d" % number])
    assert len(meshes[1].recv_nowait()) == RECV_COUNT_MAX
    started = time.monotonic()
    meshes[1].wait(10)
    assert time.monotonic() - started < 5
    (_, frames), *_ = meshes[1].recv_nowait()
    assert int(bytes(frames[0])) == RECV_COUNT_MAX


def test_mesh_takes_so_many_at_once_and_no_more_whichever_way_they_come(meshes: Meshes) -> None:
    """Of what came by socket, too, which may have to wait for its turn."""
    count = 3 * RECV_COUNT_MAX + 100
    for number in range(count):
        meshes[0].send(1, [b"%d" % number, bytes(number % 2 * 200)])
    meshes[0].send(2, [b"after all of them"])
    receive(meshes[2], 1)
    asked = taken = 0
    recv_multipart = zmq.Socket.recv_multipart

    def counted(inbound: zmq.Socket[bytes], flags: int, copy: bool) -> object:
        nonlocal asked
        asked += 1
        return recv_multipart(inbound, flags, copy=copy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zmq.Socket, "recv_multipart", counted)
        deadline = time.monotonic() + 30
        while not asked:  # until some have come by socket
            assert time.monotonic() < deadline
            meshes[1].wait(1.0)
            at_once = len(meshes[1].recv_nowait())
            assert at_once <= RECV_COUNT_MAX
            taken += at_once
    assert asked <= RECV_COUNT_MAX
    meshes[1].wait(30)  # something is left: it does not sleep
    arrived = receive(meshes[1], count - taken)
    assert int(bytes(arrived[-1][1][0])) == count - 1


def test_mesh_a_large_message_of_one_is_heard_though_another_never_pauses(meshes: Meshes) -> None:
    """It comes by the socket, which is not looked at each time that something comes through memory."""
    meet(meshes)
    meshes[0].send(2, [b"large", bytes(300_000)])
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline, "what came by the socket was not looked for"
        meshes[1].send(2, [b"small"])
        if 0 in [peer for peer, _ in meshes[2].recv_nowait()]:
            return


def test_mesh_tells_what_comes_through_memory_from_all_else(meshes: Meshes) -> None:
    """A worker reads what clients ask first if it is the one, what other workers say if it is the other."""
    meet(meshes)
    readable, writable = socket.socketpair()
    with readable, writable:
        meshes[1].watch(readable.fileno())
        _rest(meshes[1])
        meshes[0].send(1, [b"small"])
        meshes[1].wait(10.0)
        assert not meshes[1].has_other_news
        receive(meshes[1], 1)
        _rest(meshes[1])
        meshes[1]._check_at = inf
        writable.send(b"!")
        meshes[1].wait(10.0)
        assert meshes[1].has_other_news and meshes[1].ready == [readable.fileno()]
        assert meshes[1]._check_at == inf, "that is no event of a connection"


def test_mesh_between_hosts_nothing_is_numbered(tmp_path: Path) -> None:
    inside = [f"ipc://{tmp_path}/m{index}" for index in range(2)]
    first = WorkerMesh(0, [inside[0], "tcp://127.0.0.1:0"], {1: inside[1]})
    far = WorkerMesh(2, ["tcp://127.0.0.1:0"], {})
    second = WorkerMesh(1, [inside[1]], {0: inside[0]})
    try:
        first.join({2: far.addresses[0]})
        far.join({0: first.addresses[1]})
        assert [peer in first.neighbours for peer in (1, 2)] == [True, False]
        for number in range(100):
            first.send(number % 2 + 1, [b"%d" % number])
            far.send(0, [b"%d" % number])
            second.send(0, [b"%d" % number])
        got = receive(first, 200)
        for peer in (1, 2):
            assert [int(bytes(frames[0])) for source, frames in got if source == peer] == list(range(100))
        assert [int(bytes(frames[0])) for _, frames in receive(far, 50)] == list(range(1, 100, 2))
        assert [int(bytes(frames[0])) for _, frames in receive(second, 50)] == list(range(0, 100, 2))
    finally:
        for mesh in (first, second, far):
            mesh.close()


def test_mesh_waiting_ends_when_something_comes_and_not_much_later(meshes: Meshes) -> None:
    meshes[0].send(1, [b"x"])
    started = time.monotonic()
    meshes[1].wait(30)
    assert time.monotonic() - started < 5
    waited, deadline = 0.0, time.monotonic() + 60
    while waited < 0.03:  # events of the connections are reasons to return, too
        assert time.monotonic() < deadline
        meshes[2].recv_nowait()
        started = time.monotonic()
        meshes[2].wait(0.05)
        waited = time.monotonic() - started


@pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings uses sockets alone")
def test_mesh_that_is_closed_leaves_no_memory_open(meshes: Meshes) -> None:
    def memory() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:naiad-ring")

    meet(meshes)
    assert memory() > 0
    for mesh in meshes:
        mesh.close()
    assert memory() == 0


def test_mesh_frames_of_strangers_are_not_read(meshes: Meshes, tmp_path: Path) -> None:
    stranger = ClientSockets([f"ipc://{tmp_path}/m1"])
    stranger.send(0, [b"let me in"])
    meshes[0].send(1, [b"x"])
    assert [(peer, bytes(frames[0])) for peer, frames in receive(meshes[1], 1)] == [(0, b"x")]
    stranger.close()


def test_lost_peers_are_named_after_their_last_words(meshes: Meshes) -> None:
    meshes[1].send(0, [b"x"])
    meshes[0].send(1, [b"x"])
    receive(meshes[0], 1)
    receive(meshes[1], 1)
    meshes[1].send(0, [b"last words"])
    meshes[1].close()
    assert bytes(receive(meshes[0], 1)[0][1][0]) == b"last words"
    started = time.monotonic()
    with pytest.raises(PeerError, match="worker 0 lost worker 1 at ipc://"):
        while time.monotonic() - started < 10:
            meshes[0].wait(1)
            meshes[0].recv_nowait()
    assert time.monotonic() - started < LOST_SECONDS_MAX + 3


def test_server_answers_each_client_and_survives_their_end(tmp_path: Path) -> None:
    server = ServerSocket(f"ipc://{tmp_path}/c0")
    clients = [ClientSockets([server.address]) for _ in range(3)]
    for number, client in enumerate(clients):
        client.send(0, [b"%d" % number])
    clients[1].close()
    served = 0
    deadline = time.monotonic() + 60
    while served < 2 and time.monotonic() < deadline:
        for who, frames in server.recv_nowait():
            server.send(who, [b"answer to ", frames[0]])
            served += bytes(frames[0]) != b"1"
        time.sleep(0.005)
    for number in (0, 2):
        clients[number].wait(5)
        assert b"".join(clients[number].recv_nowait(0) or []) == b"answer to %d" % number
        clients[number].close()
    server.close()


def test_server_ports_in_use_are_named_with_what_to_do() -> None:
    server = ServerSocket("tcp://127.0.0.1:0")
    try:
        with pytest.raises(
            MisuseError, match=rf"{server.address} is in use by another program: choose another"
        ):
            ServerSocket(server.address, "choose another")
        with pytest.raises(MisuseError, match="cannot listen at tcp://999.0.0.1:5"):
            ServerSocket("tcp://999.0.0.1:5")
    finally:
        server.close()


def test_server_a_broken_connection_is_noticed_by_the_client(tmp_path: Path) -> None:
    server = ServerSocket(f"ipc://{tmp_path}/c0")
    client = ClientSockets([server.address])
    client.send(0, [b"x"])
    while not server.recv_nowait():
        time.sleep(0.005)
    assert not client.is_losing() and client.loss(0) == ""
    server.close()
    deadline = time.monotonic() + 60
    while not client.loss(0):
        assert time.monotonic() < deadline
        client.wait(0.05)
    assert client.is_losing()
    assert client.loss(0) == "its process ended, or its host cannot be reached"
    client.close()


def test_what_broke_and_came_back_unseen_before_a_request_is_forgiven_and_what_breaks_after_it_is_not(
    tmp_path: Path,
) -> None:
    def heard(server: ServerSocket) -> None:
        deadline = time.monotonic() + 60
        while not server.recv_nowait():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    first = ServerSocket(f"ipc://{tmp_path}/c0")
    client = ClientSockets([first.address])
    client.send(0, [b"x"])
    heard(first)
    assert client.is_joined(0)
    first.close()
    client.send(0, [b"y"])
    second = ServerSocket(first.address)
    heard(second)
    client.forgive(0)
    assert client.loss(0) == "" and not client.is_losing()
    second.close()
    while not client.is_losing():
        client.wait(0.05)
    client.forgive(0)
    assert client.is_losing(), "nobody is back"
    client.close()


def test_a_server_that_ends_while_a_client_comes_is_lost_though_nobody_ends_the_next_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = ClientSockets([f"tcp://127.0.0.1:{listening.getsockname()[1]}"])
        listening.accept()[0].close()
    deadline = time.monotonic() + 8
    while not client.loss(0):
        assert time.monotonic() < deadline
        client.wait(0.05)
    assert client.loss(0).startswith("each connection to it ends before it has begun")
    client.close()


def test_client_rests_while_it_waits_for_one_of_two_servers(tmp_path: Path) -> None:
    servers = [ServerSocket(f"ipc://{tmp_path}/c{number}") for number in range(2)]
    client = ClientSockets([server.address for server in servers])
    client.send(0, [b"a question that takes its time"])
    deadline, waits = time.monotonic() + 0.5, 0
    while (left := deadline - time.monotonic()) > 0:
        assert not client.loss(0), "only that of the one who is asked is looked at"
        client.wait(left)
        waits += 1
    client.close()
    for server in servers:
        server.close()
    assert waits < 20, "what the connection to the other has to say is a reason to wake up once"


def test_client_sockets_that_nobody_closes_do_not_stop_the_collector(tmp_path: Path) -> None:
    # The collector clears the weak references of a context to its sockets first: left to itself, the context
    # would wait for them for ever.
    server = ServerSocket(f"ipc://{tmp_path}/c0")
    program = (
        "import gc, sys\n"
        "from timely.wire.transport.zeromq import ClientSockets\n"
        "class Holder: pass\n"
        "holder = Holder()\n"
        "holder.itself, holder.sockets = holder, ClientSockets([sys.argv[1]])\n"
        "holder.sockets.send(0, [b'x'])\n"
        "del holder\n"
        "gc.collect()\n"
    )
    try:
        subprocess.run([sys.executable, "-c", program, server.address], check=True, timeout=20)
    finally:
        server.close()
