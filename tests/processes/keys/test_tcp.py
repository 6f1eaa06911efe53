"""What the host knows of a connection: counted, and never that of another one."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from timely.wire.transport.tcp import IS_COUNTED, hang_up, peer_of, traffic


def test_only_the_connection_that_was_meant_is_hung_up_on() -> None:
    one, other = socket.socketpair()
    assert not hang_up(one.fileno(), ("10.0.0.3", 5)), "another one has its number by now"
    one.close()
    assert not hang_up(999_999, None) and peer_of(999_999) is None
    other.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        assert peer_of(accepted.fileno()) == client.getsockname()
        assert hang_up(accepted.fileno(), client.getsockname())
        assert client.recv(1) == b""
        client.close()
        accepted.close()


def test_of_a_file_that_has_the_number_by_now_nothing_is_kept() -> None:
    reading, writing = os.pipe()
    before = len(list(Path("/dev/fd").iterdir()))
    assert peer_of(reading) is None and not hang_up(reading, None) and traffic(reading, None) is None
    assert len(list(Path("/dev/fd").iterdir())) == before
    os.close(reading)
    os.close(writing)


def test_bytes_and_silence_are_counted_for_the_connection_that_was_meant() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        number, peer = accepted.fileno(), client.getsockname()
        client.sendall(b"x" * 1000)
        accepted.sendall(b"y" * 300)
        assert accepted.recv(1000, socket.MSG_WAITALL) == b"x" * 1000
        assert client.recv(300, socket.MSG_WAITALL) == b"y" * 300
        deadline = time.monotonic() + 60
        while (seen := traffic(number, peer)) is not None and seen.silent_ms < 100:
            assert time.monotonic() < deadline
        if IS_COUNTED:
            assert seen is not None and seen.received == 1000 and 300 <= seen.taken <= 301
        assert traffic(number, ("10.0.0.3", 5)) is None, "another connection has its number by now"
        client.close()
        accepted.close()
        assert traffic(number, peer) is None
