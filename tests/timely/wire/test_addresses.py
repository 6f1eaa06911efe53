"""Addresses: what is written, with and without brackets, and what is refused with the right form."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from timely import MisuseError
from timely.wire.addresses import (
    aside,
    host_and_port,
    is_loopback,
    is_tcp,
    socket_address,
    tcp_address,
    wants_ipv6,
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("alpha", "alpha", 7301),
        ("alpha:80", "alpha", 80),
        ("10.0.0.3", "10.0.0.3", 7301),
        ("[fd00::7]", "fd00::7", 7301),
        ("[fd00::7]:80", "fd00::7", 80),
        ("[::1]:80", "::1", 80),
        ("[fe80::1%eth0]:80", "fe80::1%eth0", 80),
    ],
)
def test_a_host_stands_with_or_without_its_port(text: str, host: str, port: int) -> None:
    assert host_and_port(text, 7301) == (host, port)


@pytest.mark.parametrize("text", ["::1", "fd00::7", "fd00::7:80", "::1:80"])
def test_ipv6_without_brackets_is_refused_for_nobody_knows_what_is_the_port(text: str) -> None:
    with pytest.raises(MisuseError, match="stands in brackets"):
        host_and_port(text, 7301)


WRONG = ["", ":80", "alpha:", "alpha:0", "alpha:70000", "[]:80", "[fd00::7:80", "a]:80"]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(MisuseError):
        host_and_port(text)


def test_brackets_hold_addresses_of_ipv6_only() -> None:
    with pytest.raises(MisuseError, match="what stands in brackets"):
        host_and_port("[alpha]:80")


def test_an_address_is_written_as_sockets_want_it() -> None:
    assert tcp_address("alpha", 80) == "tcp://alpha:80"
    assert tcp_address("fd00::7", 80) == "tcp://[fd00::7]:80"
    assert socket_address("[fd00::7]:80") == "tcp://[fd00::7]:80"
    assert socket_address("ipc:///tmp/x") == "ipc:///tmp/x"
    with pytest.raises(MisuseError, match=r"write host:port.*\[host\]:port"):
        socket_address("fd00::7")


def test_only_three_names_reach_nobody_else() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "::1")))
    assert not any(map(is_loopback, ("127.0.0.2", "alpha", "10.0.0.3", "::", "0.0.0.0")))
    assert is_tcp("tcp://alpha:80") and not is_tcp("ipc:///tmp/x")


def test_ipv6_is_wanted_where_there_is_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"both": (socket.AF_INET6, socket.AF_INET), "new": (socket.AF_INET6,), "old": (socket.AF_INET,)}

    def resolve(host: str, port: object, type: int) -> list[tuple[int, int]]:
        if host not in kinds:
            raise socket.gaierror
        return [(kind, type) for kind in kinds[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert [wants_ipv6(f"tcp://{host}:80") for host in ("both", "new", "old", "nobody")] == [
        False, True, False, False,
    ]  # fmt: skip
    assert wants_ipv6("tcp://[::1]:80") and not wants_ipv6("tcp://10.0.0.3:80")
    assert not wants_ipv6("tcp://*:80") and not wants_ipv6("ipc:///tmp/new")


FORKING = """
import os, socket, time
from timely.wire.addresses import leave_ports_when_forked
leave_ports_when_forked()
leave_ports_when_forked()
door = socket.create_server(("127.0.0.1", 0))
path = socket.socket(socket.AF_UNIX)
path.bind("\\0naiad-test-%d" % os.getpid())
path.listen()
ours, theirs = socket.socketpair()
if not os.fork():
    theirs.send(b"goes on")  # what does not listen stays as it is
    time.sleep(60)
print(ours.recv(64).decode(), door.getsockname()[1], flush=True)
time.sleep(60)
"""


def test_ports_of_a_killed_process_are_free_though_one_that_it_has_forked_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        *words, port = process.stdout.readline().split()
        assert words == ["goes", "on"]
        process.kill()
        process.wait()
        try:
            socket.create_server(("127.0.0.1", int(port))).close()
            with socket.socket(socket.AF_UNIX) as same:
                same.bind(f"\0naiad-test-{process.pid}")
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_aside_is_another_path_or_a_port_a_thousand_ahead_if_there_is_one() -> None:
    assert aside("ipc:///tmp/c0") == "ipc:///tmp/c0-aside"
    assert aside("tcp://[fd00::7]:7401") == "tcp://[fd00::7]:8401"
    assert aside("tcp://*:7401") == "tcp://*:8401"
    assert [aside(f"tcp://here:{port}") for port in ("65000", "0", "*")] == ["", "", ""]
    assert aside("inproc://here") == ""
