"""Workers on two hosts, and clients of theirs: with keys, with wrong ones, without, and with one taken away.

Hosts are addresses of this machine (`two_hosts.aliases`), and, where it allows that, networks of their own,
by both kinds of addresses. A quick run sees clients come and go once, on networks and by IPv6 if there
are any, and on addresses what workers say by themselves; the long form sees everything everywhere.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stuck_flows import line_of
from two_hosts import (
    Command,
    Host,
    aliases,
    can_have_namespaces,
    free_ports,
    host_file,
    namespaces,
    ready,
    run,
    started,
)

from timely.keys.folder import add_client, make_cluster, revoke_client

PLACES = [*(["ipv6", "namespaces"] if can_have_namespaces() else []), "aliases"]

COUNT = """
import sys, timely
with timely.connect(sys.argv[1], keys=sys.argv[2] if len(sys.argv) > 2 else None) as cluster:
    flow = cluster.install("dataflows:word_count")
    flow.input("lines").insert(["a b a"])
    flow.seal()
    print(cluster.workers, sorted(flow.output("counts").changes()))
"""
COUNTED = "2 [(0, ('a', 2)), (0, ('b', 1))]\n"

REFUSED = """
import sys, time, timely
for keys in sys.argv[2:]:
    started = time.monotonic()
    try:
        timely.connect(sys.argv[1], keys=keys or None)
    except timely.RefusedError as error:
        assert time.monotonic() - started < 20, "within seconds"
        print(error)
"""
NO_KEYS = ""

WAITS = """
import sys, timely
with timely.connect(sys.argv[1], keys=sys.argv[2]) as cluster:
    flow = cluster.install("dataflows:word_count")
    print("waiting", flow.index, flush=True)
    try:
        flow.wait(0)
    except timely.RefusedError as error:
        print(error, flush=True)
    try:
        flow.seal()
    except timely.RefusedError as error:
        print(error, flush=True)
"""


FEED = """
import sys, timely
with timely.connect(sys.argv[1], keys=sys.argv[2]) as cluster:
    flow = cluster.flow("sleeps")
    flow.input("records").insert([200, 301])
    flow.seal()
"""
WHY = """
import sys
from timely.why.__main__ import main
sys.exit(min(0, main(sys.argv[1:])))
"""


@dataclass
class Site:
    """Two hosts, the folder of their keys, and what is known of the cluster on them."""

    hosts: tuple[Host, Host]
    folder: Path
    port: int

    def keys(self) -> Path:
        if not (self.folder / "cluster").exists():
            make_cluster(self.folder / "cluster")
        return self.folder / "cluster"

    def client(self, name: str) -> str:
        add_client(self.keys(), name, self.folder / name)
        return str(self.folder / name)

    @contextlib.contextmanager
    def worker(self, place: int, *more: str) -> Iterator[Command]:
        file = host_file(self.folder, self.hosts, self.port)
        ports = ("--client-port", str(self.port + 2 + place))
        arguments = ("-m", "timely.worker", "-n", "2", "-p", str(place), "-h", file, "--json", *ports, *more)
        with started(self.hosts[place], *arguments) as process:
            yield process

    @contextlib.contextmanager
    def cluster(self, *more: str) -> Iterator[tuple[list[str], tuple[Command, Command]]]:
        with self.worker(0, *more) as first, self.worker(1, *more) as second:
            yield [*ready(first, 1), *ready(second, 1)], (first, second)


@contextlib.contextmanager
def site_at(place: str, folder: Path) -> Iterator[Site]:
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        if place == "aliases":
            hosts = aliases()
        else:
            _, hosts = stack.enter_context(namespaces(ipv6=place == "ipv6"))
        yield Site(hosts, folder, free_ports(hosts, 4))


def test_clients_are_served_refused_and_ended_by_their_keys(tmp_path: Path, effort: int) -> None:
    for place in PLACES if effort > 1 else PLACES[:1]:
        with site_at(place, tmp_path / place) as site, site.cluster("--keys", str(site.keys())) as running:
            addresses, (first, _) = running
            assert addresses == [site.hosts[0].at(site.port + 2), site.hosts[1].at(site.port + 3)]
            ada = site.client("ada")  # after the workers have begun
            assert run(site.hosts[1], COUNT, addresses[0], ada) == COUNTED
            assert run(site.hosts[0], COUNT, addresses[1], str(site.keys())) == COUNTED
            are_refused(site, addresses[0])
            is_ended_and_others_go_on(site, addresses[0], ada)
            assert first.poll() is None


def are_refused(site: Site, address: str) -> None:
    """Clients without keys, with those of another cluster, and with one that is on the list no more."""
    make_cluster(site.folder / "other")
    add_client(site.folder / "other", "eve", site.folder / "eve")
    nobody = site.client("nobody")
    revoke_client(site.keys(), "nobody")
    told = run(site.hosts[1], REFUSED, address, NO_KEYS, str(site.folder / "eve"), nobody).splitlines()
    assert "take only clients with keys" in told[0]
    assert "It is another cluster" in told[1]
    assert "key 'nobody' (" in told[2]


def is_ended_and_others_go_on(site: Site, address: str, ada: str) -> None:
    """A call of ada's that waits when her key is taken away."""
    bob = site.client("bob")
    with started(site.hosts[1], "-c", WAITS, address, ada) as waiting:
        assert waiting.stdout is not None and waiting.stdout.readline().startswith("waiting")
        revoke_client(site.keys(), "ada")
        told = waiting.stdout.readline()
        # By the worker that ends her call; or by another one, to which she turns at that moment.
        assert "refused: key 'ada' (" in told and "t was taken away" in told
        assert waiting.stdout.readline() == told, "the same to the next call"
        assert waiting.wait(20) == 0
    assert run(site.hosts[1], COUNT, address, bob) == COUNTED
    assert "key 'ada' (" in run(site.hosts[1], REFUSED, address, ada)


def test_off_loopback_no_worker_starts_without_keys_unless_it_is_said(tmp_path: Path, effort: int) -> None:
    for place in PLACES if effort > 1 else PLACES[-1:]:
        with site_at(place, tmp_path / place) as site:
            with site.worker(0) as process:
                said = process.communicate(timeout=60)[1]
                assert process.returncode == 2 and "have no keys" in said and "--insecure" in said
            with site.cluster("--insecure") as (addresses, (first, _)):
                assert run(site.hosts[1], COUNT, addresses[0]) == COUNTED
                assert "have no keys" in run(site.hosts[1], REFUSED, addresses[0], site.client("ada"))
                first.terminate()
                assert "WARNING: --insecure" in first.communicate(timeout=20)[1]


def test_a_host_with_other_keys_does_not_join_and_one_of_both_says_why(tmp_path: Path, effort: int) -> None:
    """The one that has tried; the other one may still wait for a host that is started as it should be."""
    for place in PLACES if effort > 1 else PLACES[-1:]:
        with site_at(place, tmp_path / place) as site:
            make_cluster(site.folder / "other")
            does_not_join(site, "--insecure")
            if effort > 1:  # they try for ten seconds; sockets alone: `test_socket_options.py`
                does_not_join(site, "--keys", str(site.folder / "other"))


def does_not_join(site: Site, *arguments: str) -> None:
    with (
        site.worker(0, "--keys", str(site.keys())) as first,
        site.worker(1, *arguments) as second,
    ):
        deadline = time.monotonic() + 90
        while first.poll() is None and second.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        ended = next(process for process in (first, second) if process.poll() is not None)
        assert "the same --keys" in ended.communicate(timeout=20)[1] and ended.returncode != 0


def test_a_call_on_another_host_is_told_to_a_client_with_a_key_and_to_no_other(tmp_path: Path) -> None:
    with site_at(PLACES[0], tmp_path / "site") as site:
        arguments = ("--keys", str(site.keys()), "--install", "stuck_flows:sleeps")
        with site.cluster(*arguments) as (addresses, _):
            ada = site.client("ada")
            run(site.hosts[0], FEED, addresses[0], ada)
            told = run(site.hosts[0], WHY, addresses[0], "sleeps", "0", "--keys", ada)
            (call,) = [line for line in told.splitlines() if line.startswith("  worker 1 is in a call for")]
            assert line_of("# asleep") in call and line_of("# slow is built") in call
            assert run(site.hosts[0], WHY, addresses[0], "sleeps", "0") == "", "not without a key"
