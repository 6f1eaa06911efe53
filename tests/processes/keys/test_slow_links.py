"""Links that are slow, cut, and come back: with keys and without.

relay_*   one frame and its link (`relay.py`), on every machine
cable_*   workers and clients on two hosts with a cable between them, where the machine has networks to give
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from relay import Relay
from two_hosts import can_have_namespaces, host_file, namespaces, ready, run, started

from timely.keys import ClientKeys, new_client, new_cluster
from timely.keys.folder import add_client, make_cluster
from timely.limits import HEARTBEAT_MS_DEFAULT, HEARTBEAT_MS_MAX
from timely.wire.transport.server_socket import ServerSocket
from timely.wire.transport.zeromq import ClientSockets

CLUSTER, ADA = new_client(new_cluster(), "ada")
PATIENCE_SECONDS = (HEARTBEAT_MS_DEFAULT + HEARTBEAT_MS_MAX) / 1000
HAS_CABLES = can_have_namespaces()

Pair = tuple[ServerSocket, Relay, ClientSockets]


@pytest.fixture(params=[None, ADA], ids=["open", "keys"])
def joined(request: pytest.FixtureRequest) -> Iterator[Pair]:
    keys: ClientKeys | None = request.param
    server = ServerSocket("tcp://127.0.0.1:0", keys=CLUSTER if keys else None)
    with Relay(int(server.address.rpartition(":")[2])) as relay:
        client = ClientSockets([f"tcp://127.0.0.1:{relay.port}"], keys)
        try:
            client.send(0, [b"hello"])
            until(lambda: heard(server), client)
            yield server, relay, client
        finally:
            client.close()
            server.close()


def heard(server: ServerSocket) -> list[int]:
    """Sizes of the frames that have come in, which are answered."""
    sizes = []
    for who, frames in server.recv_nowait():
        server.send(who, [b"answer"])
        sizes.append(sum(map(len, frames)))
    return sizes


def until(condition: Callable[[], object], client: ClientSockets, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline and not client.loss(0), client.loss(0)
        client.wait(0.02)


def test_relay_a_frame_that_takes_longer_than_a_probe_may_is_no_silence(joined: Pair) -> None:
    server, relay, client = joined
    relay.bytes_per_second = 2_500_000
    frame, started_at = bytes(5_000_000 + round(PATIENCE_SECONDS * 2_500_000)), time.monotonic()
    client.send(0, [frame])
    until(lambda: len(frame) in heard(server), client)
    assert time.monotonic() - started_at > PATIENCE_SECONDS
    assert not client.loss(0)


def test_relay_a_link_that_is_cut_for_a_moment_goes_on(joined: Pair) -> None:
    server, relay, client = joined
    relay.cut()
    client.send(0, [b"question"])
    until_at = time.monotonic() + 1.0
    while time.monotonic() < until_at:
        assert heard(server) == [] and not client.loss(0)
        client.wait(0.02)
    relay.mend()
    until(lambda: heard(server) == [8], client)


def test_relay_a_link_that_is_cut_is_noticed_in_time_and_used_again_when_it_is_mended(joined: Pair) -> None:
    server, relay, client = joined
    relay.cut()
    started_at = time.monotonic()
    while not client.loss(0):
        client.wait(0.1)
        assert time.monotonic() - started_at < 5
    assert "it is silent: no answer to a probe" in client.loss(0)
    relay.mend()
    deadline = time.monotonic() + 10
    while client.loss(0):  # what broke, and has come back while nothing was asked, is of no interest
        client.forgive(0)
        client.wait(0.05)
        assert time.monotonic() < deadline
    client.send(0, [b"question"])
    until(lambda: heard(server), client)


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

    @pytest.mark.parametrize("ipv6", [False, True])
    def test_cable_slow_cut_and_mended_with_keys(tmp_path: Path, ipv6: bool) -> None:
        """Twelve megabytes at 20 megabits a second; then clients that ask before it is cut and after."""
        make_cluster(tmp_path / "cluster")
        add_client(tmp_path / "cluster", "ada", tmp_path / "ada")
        with namespaces(ipv6=ipv6) as (cable, (near, far)):
            file = host_file(tmp_path, [near], 7301)
            arguments = ("-m", "timely.worker", "-h", file, "--json", "--client-port", "7401", "--keys")
            with started(near, *arguments, str(tmp_path / "cluster")) as worker:
                (address,) = ready(worker, 1)
                cable.slow_down(20)
                count, seconds = run(far, FEEDS, address, str(tmp_path / "ada"), seconds=100).split()
                assert int(count) == 12_001 and float(seconds) > PATIENCE_SECONDS
                with started(far, "-c", ASKS, address, str(tmp_path / "ada")) as client:
                    assert client.stdin is not None and client.stdout is not None
                    assert client.stdout.readline() == "ready\n"
                    client.stdin.write("?\n")
                    client.stdin.flush()
                    assert client.stdout.readline().startswith("answered")
                    cable.cut()
                    client.stdin.write("?\n")
                    client.stdin.flush()
                    said = client.stdout.readline().split()
                    assert said[0] == "lost" and float(said[1]) < 5 and "silent" in " ".join(said)
                cable.mend()
                with started(far, "-c", ASKS, address, str(tmp_path / "ada")) as client:
                    assert client.stdout is not None and client.stdout.readline() == "ready\n"
                assert worker.poll() is None
