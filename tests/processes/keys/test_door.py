"""At the door: who has proved nothing costs little, and keeps nobody else from coming in.

bounded_*   connections and bytes of strangers
list_*      who is let in follows the list
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timely.keys import ClientKeys, ClusterKeys, new_client, new_cluster
from timely.limits import AT_DOOR_BYTES_MAX, AT_DOOR_COUNT_MAX
from timely.wire.transport import curve
from timely.wire.transport import door as module
from timely.wire.transport.door import SocketGuard, _host_of
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets

CLUSTER, ADA = new_client(new_cluster(), "ada")


def until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def server() -> Iterator[ServerSocket]:
    made = ServerSocket("tcp://127.0.0.1:0", keys=CLUSTER)
    yield made
    made.close()
    made.close()


@contextlib.contextmanager
def strangers(server: ServerSocket) -> Iterator[Callable[..., socket.socket]]:
    """Opens plain connections, and says something on each."""
    opened: list[socket.socket] = []
    host, port = server.address.removeprefix("tcp://").split(":")

    def come(words: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        stranger = socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0))
        opened.append(stranger)
        if words:
            stranger.sendall(words)
        return stranger

    try:
        yield come
    finally:
        for stranger in opened:
            stranger.close()


def answers(server: ServerSocket, keys: ClientKeys = ADA) -> bool:
    """Whether a client with these keys gets an answer within a few seconds."""
    client = ClientSockets([server.address], keys)
    try:
        client.send(0, [b"question"])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not client.refusal(0):
            for who, _ in server.recv_nowait():
                server.send(who, [b"answer"])
            if client.recv_nowait(0) is not None:
                return True
            client.wait(0.01)
        return False
    finally:
        client.close()


def is_hung_up(stranger: socket.socket) -> bool:
    """Whether the other side has ended this connection, after whatever it has said."""
    stranger.settimeout(20)
    try:
        while stranger.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def test_bounded_silent_strangers_are_few_and_a_client_comes_in_beside_them(server: ServerSocket) -> None:
    with strangers(server) as come:
        opened = [come(b"") for _ in range(AT_DOOR_COUNT_MAX + 100)]
        until(lambda: server.hung_up >= 100, "those beyond the bound are hung up on")
        assert server.at_door <= AT_DOOR_COUNT_MAX
        assert all(is_hung_up(stranger) for stranger in opened[:100]), "the oldest go first"
        assert answers(server)
    until(lambda: server.at_door == 0, "who has gone is forgotten")


def test_bounded_the_flood_of_one_host_keeps_out_that_host_only(server: ServerSocket) -> None:
    with strangers(server) as come:
        early = come(source="127.0.0.3")
        until(lambda: server.at_door == 1, "it is at the door")
        flood = [come(source="127.0.0.2") for _ in range(AT_DOOR_COUNT_MAX + 49)]
        until(lambda: server.hung_up >= 50, "those beyond the bound are hung up on")
        assert server.hung_up == 50 and server.at_door == AT_DOOR_COUNT_MAX
        assert all(is_hung_up(stranger) for stranger in flood[:50])
        early.settimeout(0.0)
        with pytest.raises(BlockingIOError):  # it is still there, after what it has been greeted with
            while early.recv(4096):
                pass


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("fd99::1", "fd99::ffff:2", True),
        ("fd99::1", "fd99:0:0:1::1", False),
        ("fe80::1%cable", "fe80::2", True),
    ],
)
def test_bounded_is_one_host_what_can_be_one(one: str, other: str, are_one: bool) -> None:
    assert (_host_of((one, 7401)) == _host_of((other, 7402, 0, 0))) == are_one


def test_bounded_a_number_that_is_another_connection_s_by_now_counts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peers: list[object] = [("10.0.0.1", 1), ("10.0.0.2", 2), None]
    monkeypatch.setattr(module, "peer_of", lambda number: peers.pop(0))
    door = SocketGuard.__new__(SocketGuard)  # without its thread: what that does is done here
    door._callers, door._by_host = {}, {}
    for _ in range(3):
        door._come(7)
    assert door.at_door == 1 and door._by_host == {"10.0.0.2": {7: None}}
    door._forget(7)
    assert door.at_door == 0 and door._by_host == {}


def test_bounded_who_is_in_is_at_the_door_no_more(server: ServerSocket) -> None:
    client = ClientSockets([server.address], ADA)
    client.send(0, [b"question"])
    until(server.recv_nowait, "the question arrives")
    until(lambda: server.at_door == 0, "nobody waits at the door")
    with strangers(server) as come:
        for _ in range(AT_DOOR_COUNT_MAX + 20):
            come(b"")
        until(lambda: server.hung_up >= 20, "strangers beyond the bound are hung up on")
        client.send(0, [b"another"])
        until(server.recv_nowait, "who was there first is heard as before")
        assert client.loss(0) == ""
    client.close()


def test_bounded_a_stranger_who_talks_without_end_is_hung_up_on(server: ServerSocket) -> None:
    """As a worker of ours greets, and then a frame of 200 MB, of which as much as it likes comes."""
    greeting = bytes.fromhex("ff00000000000000017f0301") + b"CURVE".ljust(20, b"\0") + bytes(32)
    frame = b"\x06" + (200_000_000).to_bytes(8, "big")
    with strangers(server) as come:
        stranger = come(greeting + frame)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(200_000_000 // AT_DOOR_BYTES_MAX):
                stranger.sendall(bytes(AT_DOOR_BYTES_MAX))
                time.sleep(0.001)
        until(lambda: server.hung_up == 1, "hung up on")
        assert answers(server)


def test_bounded_who_proves_nothing_in_time_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "HANDSHAKE_SECONDS_MAX", 0.1)
    made = ServerSocket("tcp://127.0.0.1:0", keys=CLUSTER)
    try:
        with strangers(made) as come:
            assert is_hung_up(come())
            until(lambda: made.at_door == 0, "and forgotten")
    finally:
        made.close()


@pytest.mark.parametrize(
    "words",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0" * 500, bytes(range(256)) * 4, b"\xff" + b"\0" * 9],
)
def test_bounded_garbage_ends_its_own_connection_at_most(server: ServerSocket, words: bytes) -> None:
    with strangers(server) as come:
        for _ in range(20):
            come(words)
        assert answers(server)


def test_list_a_key_that_comes_later_is_let_in_and_one_that_goes_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "clients.txt"
    path.write_text("")
    made = ServerSocket("tcp://127.0.0.1:0", keys=ClusterKeys(CLUSTER.pair, list_file=str(path)))
    try:
        with caplog.at_level(logging.WARNING, "timely"):
            assert not answers(made)
        assert f"key {ADA.pair.public[:8]}… from 127.0.0.1 is not on the list" in caplog.text
        path.write_text(f"ada {ADA.pair.public}\n")
        assert answers(made)
        path.write_text("# nobody\n")
        assert not answers(made)
    finally:
        made.close()
