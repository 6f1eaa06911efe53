"""Links that are slow, cut, and come back: with keys and without.

relay_*   one frame and its link (`relay.py`), on every machine
cable_*   workers and clients on two hosts with a cable between them, where the machine has networks to give
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from relay import Relay
from two_hosts import Cable, Host, can_have_namespaces, host_file, namespaces, ready, run, started

from timely.keys import new_client, new_cluster
from timely.keys.folder import add_client, make_cluster
from timely.limits import HEARTBEAT_MS_DEFAULT, SILENCE_SECONDS_DEFAULT
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets

CLUSTER, ADA = new_client(new_cluster(), "ada")
PATIENCE_SECONDS = HEARTBEAT_MS_DEFAULT / 1000 + SILENCE_SECONDS_DEFAULT
HAS_CABLES = can_have_namespaces()


@dataclass
class Link:
    """A worker's socket and a client's, with a relay between them."""

    server: ServerSocket
    relay: Relay
    client: ClientSockets
    heard: list[int] = field(default_factory=list)
    """Sizes of the messages that have come in."""

    def look(self) -> None:
        """Take in what has come, and answer. An answer that the client left would end each `wait`."""
        for who, frames in self.server.recv_nowait():
            self.server.send(who, [b"answer"])
            self.heard.append(sum(map(len, frames)))
        while self.client.recv_nowait(0) is not None:
            pass


@pytest.fixture
def links() -> Iterator[list[Link]]:
    """One that is open and one with keys, side by side: what is tried with them is mostly waiting."""
    with contextlib.ExitStack() as stack:
        made = []
        for keys in (None, ADA):
            server = ServerSocket("tcp://127.0.0.1:0", keys=CLUSTER if keys else None)
            stack.callback(server.close)
            relay = stack.enter_context(Relay(int(server.address.rpartition(":")[2])))
            client = ClientSockets([f"tcp://127.0.0.1:{relay.port}"], keys)
            stack.callback(client.close)
            client.send(0, [b"hello"])
            made.append(Link(server, relay, client))
        until(lambda link: link.heard == [5], made)
        yield made


def until(condition: Callable[[Link], object], links: list[Link], seconds: float = 60.0) -> None:
    """Of all of them, none of which may get lost meanwhile."""
    deadline = time.monotonic() + seconds
    while not all(condition(link) for link in links):
        for link in links:
            assert time.monotonic() < deadline and not link.client.loss(0), link.client.loss(0)
            link.client.wait(0.02)
            link.look()


def test_relay_a_frame_that_takes_longer_than_a_probe_may_is_no_silence(links: list[Link]) -> None:
    frame, started_at = bytes(5_000_000 + round(PATIENCE_SECONDS * 2_500_000)), time.monotonic()
    for link in links:
        link.relay.bytes_per_second = 2_500_000
        link.client.send(0, [frame])
    until(lambda link: len(frame) in link.heard, links)
    assert time.monotonic() - started_at > PATIENCE_SECONDS
    assert not any(link.client.loss(0) for link in links)


def test_relay_a_link_that_is_cut_for_a_moment_goes_on(links: list[Link]) -> None:
    for link in links:
        link.relay.cut()
        link.client.send(0, [b"question"])
    cut_at = time.monotonic()
    until(lambda link: time.monotonic() > cut_at + 1.0, links)
    assert [link.heard for link in links] == [[5], [5]]
    for link in links:
        link.relay.mend()
    until(lambda link: link.heard == [5, 8], links)


def test_relay_a_link_that_is_cut_is_noticed_and_used_again_when_it_is_mended(links: list[Link]) -> None:
    for link in links:
        link.relay.cut()
    deadline = time.monotonic() + 30
    while not all(link.client.loss(0) for link in links):
        for link in links:
            link.client.wait(0.05)
        assert time.monotonic() < deadline
    for link in links:
        assert "it is silent: no answer to a probe" in link.client.loss(0)
        link.relay.mend()
    while any(link.client.loss(0) for link in links):
        for link in links:  # what broke, and has come back while nothing was asked, is of no interest
            link.client.forgive(0)
            link.client.wait(0.05)
        assert time.monotonic() < deadline
    for link in links:
        link.client.send(0, [b"question"])
    until(lambda link: link.heard == [5, 8], links)


FEEDS = """
import sys, time, timely
with timely.connect(sys.argv[1], keys=sys.argv[2]) as cluster:
    flow = cluster.install("dataflows:word_count")
    started = time.monotonic()
    flow.input("lines").insert(["x" * 1000 + f" {number}" for number in range(12_000)])
    flow.seal()
    changes = flow.output("counts").changes()
    print(len(changes), time.monotonic() - started)
"""

ASKS = """
import sys, time, timely
with timely.connect(sys.argv[1], keys=sys.argv[2]) as cluster:
    print("ready", flush=True)
    for line in sys.stdin:
        started = time.monotonic()
        try:
            cluster.flows()
            print("answered", time.monotonic() - started, flush=True)
        except timely.PeerError as error:
            print("lost", time.monotonic() - started, error, flush=True)
"""

if HAS_CABLES:

    def test_cable_slow_cut_and_mended_with_keys(tmp_path: Path, effort: int) -> None:
        """Twelve megabytes at 20 megabits a second; then clients that ask before it is cut and after. By IPv6
        in the long form only: `test_two_hosts.py` uses it always.
        """
        for ipv6 in [False, True] if effort > 1 else [False]:
            folder = tmp_path / ("6" if ipv6 else "4")
            make_cluster(folder / "cluster")
            add_client(folder / "cluster", "ada", folder / "ada")
            with namespaces(ipv6=ipv6) as (cable, hosts):
                slow_cut_and_mended(folder, cable, *hosts)


def slow_cut_and_mended(folder: Path, cable: Cable, near: Host, far: Host) -> None:
    ada = str(folder / "ada")
    arguments = ("-m", "timely.worker", "-h", host_file(folder, [near], 7301), "--json", "--client-port")
    with started(near, *arguments, "7401", "--keys", str(folder / "cluster")) as worker:
        (address,) = ready(worker, 1)
        cable.slow_down(20)
        count, seconds = run(far, FEEDS, address, ada, seconds=100).split()
        assert int(count) == 12_001 and float(seconds) > PATIENCE_SECONDS
        with started(far, "-c", ASKS, address, ada) as client:
            assert client.stdin is not None and client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            client.stdin.write("?\n")
            client.stdin.flush()
            assert client.stdout.readline().startswith("answered")
            cable.cut()
            client.stdin.write("?\n")
            client.stdin.flush()
            said = client.stdout.readline().split()
            assert said[0] == "lost" and float(said[1]) < 20 and "silent" in " ".join(said)
        cable.mend()
        with started(far, "-c", ASKS, address, ada) as client:
            assert client.stdout is not None and client.stdout.readline() == "ready\n"
        assert worker.poll() is None
