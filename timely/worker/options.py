"""The command line of `python -m timely.worker`, as timely users know it: -w, -n, -p, -h."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MisuseError
from ..keys.folder import KEYS_VARIABLE
from ..limits import SILENCE_SECONDS_DEFAULT
from ..running.sending.modes import PROGRESS_MODES
from ..spilling.settings import MEMORY_VARIABLE, SPILL_VARIABLE, spill_settings
from ..wire.addresses import host_and_port
from .settings import SYNCS, HostAddress, check_durable, check_silence

__all__ = ["Options", "parse_options", "read_hosts"]

_BASE_PORT = 7301
_CLIENT_PORT = 7401

_EXAMPLES = """examples:
  one host, two workers          python -m timely.worker -w 2
  two hosts, one worker each     python -m timely.worker -n 2 -p 0 -h hosts.txt    (on the first)
                                 python -m timely.worker -n 2 -p 1 -h hosts.txt    (on the second)

A client joins by   timely.connect("host:7401").   All hosts get the same -n, -w, host file and keys.

keys: workers that can be reached from other hosts take only workers and clients with keys.
  python -m timely.keys new KEYS            makes a cluster's, once: copy them to all hosts, say --keys KEYS
  python -m timely.keys client KEYS NAME    makes a client's: timely.connect("host:7401", keys="NAME-keys")
On localhost workers use keys if you name some. --insecure does without, where everybody is trusted.

An address of IPv6 stands in brackets, as in [fd00::7]:7401."""


@dataclass(frozen=True)
class Options:
    """The options of the command line. `workers` is per host; ports are those of a host's first worker."""

    workers: int
    hosts: tuple[HostAddress, ...]
    this_host: int
    is_tcp_only: bool
    client_port: int
    installs: tuple[str, ...]
    warm: str | None
    log_level: str
    is_json: bool
    check_progress: bool
    progress: str = "eager"
    keys: Path | None = None
    is_insecure: bool = False
    silence_seconds: float = SILENCE_SECONDS_DEFAULT
    durable: str = ""
    sync: str = "disk"
    standby: bool = False
    spill: str = ""
    memory: int = 0


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line; if it is wrong, print the usage and exit with status 2."""
    parser = _parser()
    values = parser.parse_args(arguments)
    try:
        keys = _keys(values.keys, values.insecure)
        hosts = read_hosts(values.h, values.n, values.w, values.base_port)
        if not 0 <= values.p < values.n:
            raise MisuseError(f"-p {values.p}: with -n {values.n} the index of a host is 0 to {values.n - 1}")
        if values.w < 1:
            raise MisuseError(f"-w {values.w}: a host has at least one worker")
        if values.client_port and values.client_port + values.w > 65_536:
            raise MisuseError(
                f"--client-port {values.client_port}: ports end at 65535, and each worker needs one"
            )
        check_silence(values.silence, "--silence")
        if values.sync is not None and values.durable is None:
            raise MisuseError("--sync says when the log is safe that --durable FOLDER keeps: give both")
        if values.standby and (values.durable is None or values.n > 1):
            raise MisuseError(
                "--standby is for a durable cluster on one host: give --durable FOLDER, and no -n. On "
                "several hosts all workers start again after the end of one"
            )
        durable, sync = check_durable(values.durable, values.sync)
        spilled = spill_settings(values.spill, values.memory, values.w, ("--spill", "--memory"))
        _check_safe(hosts[values.p], keys, values.insecure)
    except MisuseError as error:
        parser.error(str(error))
    return Options(
        workers=values.w,
        hosts=tuple(hosts),
        this_host=values.p,
        is_tcp_only=values.transport == "tcp",
        client_port=values.client_port,
        installs=tuple(values.install),
        warm=values.warm,
        log_level=values.log_level,
        is_json=values.json,
        check_progress=values.check_progress,
        progress=values.progress,
        keys=keys,
        is_insecure=values.insecure,
        silence_seconds=values.silence,
        durable=durable,
        sync=sync,
        standby=values.standby,
        spill="" if spilled is None else spilled.folder,
        memory=0 if spilled is None else spilled.memory,
    )


def read_hosts(path: Path | None, hosts: int, workers: int, base_port: int) -> list[HostAddress]:
    """Read the hosts of a cluster, one `host[:port]` per line; without a file all are this machine.

    Raise `MisuseError`, which names the file and the line.
    """
    if hosts < 1:
        raise MisuseError(f"-n {hosts}: a cluster has at least one host")
    if path is None:
        return [HostAddress("localhost", base_port + number * workers) for number in range(hosts)]
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise MisuseError(f"-h {path}: the host file cannot be read: {error.strerror}") from error
    addresses = []
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if text:
            addresses.append(_host_address(text, base_port, f"{path}:{number}"))
    if len(addresses) < hosts:
        raise MisuseError(f"-h {path}: the file names {len(addresses)} hosts, but -n says {hosts}")
    return addresses[:hosts]


def _host_address(text: str, base_port: int, where: str) -> HostAddress:
    try:
        return HostAddress(*host_and_port(text, base_port))
    except MisuseError as error:
        raise MisuseError(f"{where}: {error}") from error


def _keys(folder: Path | None, is_insecure: bool) -> Path | None:
    if folder is not None and is_insecure:
        raise MisuseError("--keys and --insecure contradict each other: give one of them")
    named = os.environ.get(KEYS_VARIABLE)
    return folder or (Path(named) if named and not is_insecure else None)


def _check_safe(own: HostAddress, keys: Path | None, is_insecure: bool) -> None:
    """Raise `MisuseError` if other hosts can reach workers without keys, unless the user said --insecure."""
    if own.is_loopback or keys is not None or is_insecure:
        return
    raise MisuseError(
        f"workers at {own.name} can be reached from other hosts, and have no keys: anybody who reaches them "
        "could install dataflows, read and write. Make keys once with 'python -m timely.keys new KEYS', "
        "copy the folder to all hosts and say --keys KEYS there; or say --insecure, on a network where "
        "everybody is trusted"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.worker",
        description="Start the workers of one host and keep them until a client or a signal ends them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    add = parser.add_argument
    add("-w", type=int, default=1, metavar="WORKERS", help="workers on this host, a process each (1)")
    add("-n", type=int, default=1, metavar="HOSTS", help="hosts in the cluster (1)")
    add("-p", type=int, default=0, metavar="INDEX", help="index of this host, from 0 (0)")
    add(
        "-h",
        type=Path,
        metavar="FILE",
        help="host file: one host[:port] per line; without it all are this machine",
    )
    add(
        "--transport",
        choices=["auto", "tcp"],
        default="auto",
        help="auto: ipc within a host, tcp between; tcp: always",
    )
    add(
        "--progress",
        choices=PROGRESS_MODES,
        default="eager",
        help="when workers tell each other of progress: after each step (eager, the default), when somebody "
        "can depend on it (demand), or then, through one worker of each host (host). The same on all hosts",
    )
    add(
        "--client-port",
        type=int,
        default=_CLIENT_PORT,
        metavar="PORT",
        help=f"for clients of this host's first worker, counting up; 0: any free ({_CLIENT_PORT})",
    )
    add(
        "--base-port",
        type=int,
        default=_BASE_PORT,
        metavar="PORT",
        help=f"between hosts, first worker, counting up ({_BASE_PORT})",
    )
    add(
        "--install",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a dataflow to install at the start; repeatable",
    )
    add(
        "--warm",
        metavar="MODULE:FUNCTION",
        help="called once before the workers start, for example to compile kernels",
    )
    add(
        "--check-progress",
        action="store_true",
        help="each worker checks its progress tracking after each step: slow, for looking into a suspicion",
    )
    _add_silence(parser)
    _add_durable(parser)
    _add_spill(parser)
    _add_keys(parser)
    add("--log-level", choices=["debug", "info", "warning", "error"], default="warning", help="(warning)")
    add("--json", action="store_true", help="one JSON object per ready worker on standard output")
    add("--help", action="help", help="show this")
    return parser


def _add_silence(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--silence",
        type=float,
        default=SILENCE_SECONDS_DEFAULT,
        metavar="SECONDS",
        help="a worker that is stopped or cut off for longer counts as lost, and ends the cluster "
        f"({SILENCE_SECONDS_DEFAULT:g}); one that ends is noticed at once. The same on all hosts",
    )


def _add_durable(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--durable",
        metavar="FOLDER",
        help="keep in this folder what comes in, and start all workers again when one has ended unasked; the "
        "same command goes on with what the folder has. With several hosts all must see the same folder, by "
        "a file system that they share",
    )
    parser.add_argument(
        "--sync",
        choices=SYNCS,
        help="when rows count as kept: disk, once the disk has them (the default), or system, once the "
        "operating system has them, which survives the end of any process, but not that of the machine",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="as many more processes do the same work from the folder, and take over after the end of a "
        "worker. They take as much memory as the workers, and processor time",
    )


def _add_spill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spill",
        metavar="FOLDER",
        help="put large memory beyond --memory into files of this folder, on a local disk of each host; by "
        f"default what {SPILL_VARIABLE} names, if anything",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="with --spill: large memory of each worker that is in no file, such as 2GiB; by default what "
        f"{MEMORY_VARIABLE} says, or half of the memory of the host for all its workers",
    )


def _add_keys(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--keys",
        type=Path,
        metavar="FOLDER",
        help=f"the cluster's keys, from 'python -m timely.keys new'; by default what {KEYS_VARIABLE} names",
    )
    add(
        "--insecure",
        action="store_true",
        help="be open to anybody who reaches this host: no keys, nothing encrypted; warns at each start",
    )
