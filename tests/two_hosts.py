"""Two hosts on one machine, for tests of workers and clients with keys.

    aliases      127.0.0.2 and 127.0.0.3: addresses that only this machine has, but which no worker takes for
                 loopback; every Linux has them, so what is tested with them is tested everywhere
    namespaces   a network of its own for each host, joined by a cable that can be slow, cut and mended: as
                 far apart as two hosts on one machine can be. They need root

A `Host` runs commands and says by which address others reach it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from house import ROOT

__all__ = [
    "Cable",
    "Command",
    "Host",
    "aliases",
    "can_have_namespaces",
    "free_ports",
    "host_file",
    "namespaces",
    "ready",
    "run",
    "started",
]

Command = subprocess.Popen[str]
_numbers = itertools.count()
_PORTS_MIN, _PORTS_MAX, _PORTS_OF_ONE = 20_000, 32_000, 32


@dataclass(frozen=True)
class Host:
    """Where to run commands, and by which address the other host reaches them."""

    address: str
    prefix: tuple[str, ...] = ()

    def at(self, port: int) -> str:
        """The address with a port, as command lines and `connect` want it."""
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"


def aliases() -> tuple[Host, Host]:
    """Two hosts that share one network."""
    return Host("127.0.0.2"), Host("127.0.0.3")


@dataclass(frozen=True)
class Cable:
    """What joins two hosts."""

    first: Host
    second: Host

    def cut(self) -> None:
        """From now on nothing passes; nobody is told."""
        _ip(*self.first.prefix, "ip", "link", "set", "cable", "down")

    def mend(self) -> None:
        """The inverse of `cut`."""
        _ip(*self.first.prefix, "ip", "link", "set", "cable", "up")
        if ":" in self.first.address:  # one of IPv6 went with the link
            more = [f"{self.first.address}/64", "dev", "cable", "nodad"]
            _ip(*self.first.prefix, "ip", "addr", "replace", *more)

    def slow_down(self, megabits: float) -> None:
        """So many megabits a second pass in each direction, and no more."""
        for host in (self.first, self.second):
            _ip(
                *host.prefix, "tc", "qdisc", "replace", "dev", "cable", "root",
                "tbf", "rate", f"{round(megabits * 1000)}kbit", "burst", "16kb", "latency", "200ms",
            )  # fmt: skip


def can_have_namespaces() -> bool:
    """Whether this machine lets us make networks: tried, since neither kernel nor container says so."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return False
    try:
        with namespaces() as (cable, _):
            cable.slow_down(100)
    except subprocess.CalledProcessError:
        return False
    return True


@contextlib.contextmanager
def namespaces(*, ipv6: bool = False) -> Iterator[tuple[Cable, tuple[Host, Host]]]:
    """Two hosts with a network each and a cable between them, which are gone at the end."""
    number = next(_numbers)
    names = [f"naiad-{os.getpid()}-{number}-{side}" for side in "ab"]
    addresses = ["fd99::1", "fd99::2"] if ipv6 else ["10.99.0.1", "10.99.0.2"]
    made = []
    try:
        for name in names:
            _ip("ip", "netns", "add", name)
            made.append(name)
        ends = ["name", "cable", "netns", names[1]]
        _ip("ip", "-n", names[0], "link", "add", "cable", "type", "veth", "peer", *ends)
        for name, address in zip(names, addresses, strict=True):
            length = ["64"] if ipv6 else ["24"]
            _ip("ip", "-n", name, "addr", "add", f"{address}/{length[0]}", "dev", "cable", *["nodad"] * ipv6)
            _ip("ip", "-n", name, "link", "set", "lo", "up")
            _ip("ip", "-n", name, "link", "set", "cable", "up")
        first, second = (
            Host(address, ("ip", "netns", "exec", name))
            for name, address in zip(names, addresses, strict=True)
        )
        yield Cable(first, second), (first, second)
    finally:
        for name in made:
            _ip("ip", "netns", "del", name)


@contextlib.contextmanager
def started(host: Host, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[Command]:
    """A Python program with these arguments on a host, ended at the end whatever happens."""
    process = subprocess.Popen(
        [*host.prefix, sys.executable, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT / "tests",
        env=_environment(environment),
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def run(host: Host, program: str, *arguments: str, seconds: float = 60.0) -> str:
    """What a Python program that is given as text prints on a host; it must end well."""
    done = subprocess.run(
        [*host.prefix, sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, cwd=ROOT / "tests", env=_environment(None), timeout=seconds,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def ready(process: Command, workers: int) -> list[str]:
    """Where clients reach the workers of one host, in order, once they are ready."""
    assert process.stdout is not None
    lines = []
    for _ in range(workers):
        text = process.stdout.readline()
        assert text, f"no worker is ready: {process.communicate(timeout=20)[1]}"
        lines.append(json.loads(text))
    return [line["address"] for line in sorted(lines, key=lambda line: int(line["worker"]))]


def free_ports(hosts: Sequence[Host], count: int) -> int:
    """The first of `count` ports in a row that nobody uses here just now: none of those that the system hands
    out, and others than in other processes that run tests.
    """
    begin = _PORTS_MIN + os.getpid() * _PORTS_OF_ONE % (_PORTS_MAX - _PORTS_MIN)
    for base in itertools.chain(range(begin, _PORTS_MAX, count), range(_PORTS_MIN, begin, count)):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(base, base + count):
                    stack.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
            return base
    raise AssertionError(f"no free ports for {hosts}")


def host_file(folder: Path, hosts: Sequence[Host], port: int) -> str:
    """A file that names the hosts, each with a port of its own in case they share one network."""
    path = folder / "hosts.txt"
    path.write_text("".join(f"{host.at(port + place)}\n" for place, host in enumerate(hosts)))
    return str(path)


def _environment(more: dict[str, str] | None) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    kept = {name: value for name, value in os.environ.items() if name != "NAIAD_KEYS"}
    return {**kept, "PYTHONPATH": path, **(more or {})}


def _ip(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
