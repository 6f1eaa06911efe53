"""The settings of one worker process, and the addresses of a cluster.

The launcher writes `WorkerSettings` as one line of JSON to the standard input of each process. Addresses:

    mesh      ipc in the launcher's folder within a host; between hosts tcp port `base_port` + worker on it
    clients   tcp port `client_port` + worker on this host, or ipc for a cluster that its client has started
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Final

from ..cores import ANY_CORE
from ..errors import InternalError, MisuseError
from ..limits import (
    GATHER_SECONDS_MAX,
    SILENCE_SECONDS_DEFAULT,
    SILENCE_SECONDS_MAX,
    START_SECONDS_MAX,
    WORKERS_MAX,
)
from ..running.sending.modes import PROGRESS_MODES
from ..spilling.settings import SpillSettings, spill_settings
from ..wire.addresses import is_loopback, tcp_address
from ..wire.claims import shown

__all__ = [
    "SYNCS",
    "TAKE_OVER",
    "HostAddress",
    "WorkerSettings",
    "check_durable",
    "check_progress_mode",
    "check_silence",
    "check_workers",
    "cluster_settings",
    "local_settings",
    "resized",
]

SYNCS = ("disk", "system")
"""When a record of the log is safe: once the disk has it, or once the operating system has it."""

TAKE_OVER: Final = "take over\n"
"""The order of its launcher to worker 0 of workers that follow."""

_TYPES: dict[str, type] = {
    "int": int, "bool": bool, "str": str, "float": float, "tuple[str, ...]": tuple
}  # fmt: skip


@dataclass(frozen=True)
class WorkerSettings:
    """All that a worker process must know at its start.

    index, workers    which worker of how many
    listen            its own mesh addresses
    peers             mesh address of every worker (its own is not used); empty: the launcher sends them once
                      every worker has a port
    client_listen     where it listens for clients
    client_host       the host by which clients know it, for tcp
    paths             prepended to `sys.path`: for workers started by their client, where that imports from
    directory         its working directory: that of its client when this began; empty: that of its launcher
    installs          builders to install at the start, "module:function"
    gather_seconds    how long it waits for all peers
    check_progress    True: it checks its progress tracking after each step
    progress          when it tells others of progress, one of `PROGRESS_MODES`
    per_host          how many workers each host has; 0: all are on one
    silence_seconds   how long another worker may be silent before it counts as lost
    token             it runs code of clients that show this token; empty: of none
    keys              keys of the cluster, as text (`ClusterKeys.to_text`); empty: tcp is not encrypted, and
                      open to everybody
    core              the core that it has to itself (`cores.py`)
    durable           the absolute folder of the store of a durable cluster; empty: the cluster has no store
    sync              when the log counts as safe: one of `SYNCS`
    spill             the absolute folder for large memory beyond `memory`; empty: all of it is plain memory
    memory            bytes of large memory that are plain memory, with `spill`
    follows           where it listens for clients once it has taken over: until its launcher orders that, it
                      follows the cluster that is at work on this store. Empty: it does not follow
    """

    index: int
    workers: int
    listen: tuple[str, ...]
    peers: tuple[str, ...]
    client_listen: str
    client_host: str = ""
    paths: tuple[str, ...] = ()
    directory: str = ""
    installs: tuple[str, ...] = ()
    log_level: str = "warning"
    gather_seconds: float = START_SECONDS_MAX
    check_progress: bool = False
    progress: str = "eager"
    per_host: int = 0
    silence_seconds: float = SILENCE_SECONDS_DEFAULT
    token: str = field(default="", repr=False)
    keys: str = field(default="", repr=False)
    core: int = ANY_CORE
    durable: str = ""
    sync: str = "disk"
    follows: str = ""
    spill: str = ""
    memory: int = 0

    @property
    def spilling(self) -> SpillSettings | None:
        """The folder for large memory, and how much is plain memory: by these settings or, as for workers
        that Spark starts, by the environment of the worker; None without a folder.
        """
        if self.spill:
            return SpillSettings(self.spill, self.memory)
        return spill_settings(None, None, self.per_host or self.workers)

    @property
    def seat(self) -> tuple[int, int]:
        """Which worker of how many."""
        return self.index, self.workers

    def to_json(self) -> str:
        """Return the settings as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> WorkerSettings:
        """Read what `to_json` returns."""
        try:
            values = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in json.loads(line).items()
            }
            settings: WorkerSettings = _make(**values)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InternalError(
                f"a worker process got settings that it cannot read, of {len(line):,} characters: "
                f"{type(error).__name__}"  # not the line: secrets are in it
            ) from None
        for declared in fields(cls):
            value = getattr(settings, declared.name)
            entries = value if isinstance(value, tuple) else ()
            if type(value) is not _TYPES[str(declared.type)] or any(type(one) is not str for one in entries):
                raise InternalError(
                    f"a worker process got settings whose {declared.name} is no {declared.type}"
                )
        return settings


@dataclass(frozen=True)
class HostAddress:
    """One host of a cluster: its name and the mesh port of its first worker."""

    name: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True if only programs on the same machine can reach it."""
        return is_loopback(self.name)


def local_settings(
    workers: int, folder: Path, *, paths: Sequence[str] = (), log_level: str = "warning"
) -> list[WorkerSettings]:
    """Return the settings of a cluster on this machine for one client: all sockets are ipc in `folder`, which
    should have a short name. `paths` are meant from the present working directory; workers that start later
    take the same, wherever the client is by then.
    """
    check_workers(workers)
    directory = ""
    with suppress(OSError):  # it is gone
        directory = str(Path.cwd())
    mesh = tuple(f"ipc://{folder}/m{index}" for index in range(workers))
    token = secrets.token_hex(16)
    return [
        WorkerSettings(
            index,
            workers,
            (mesh[index],),
            mesh,
            f"ipc://{folder}/c{index}",
            paths=tuple(_from(directory, path) for path in paths if path or directory),
            directory=directory,
            log_level=log_level,
            token=token,
        )
        for index in range(workers)
    ]


def _from(directory: str, path: str) -> str:
    return path if Path(path).is_absolute() else str(Path(directory, path))


def resized(settings: Sequence[WorkerSettings], workers: int) -> list[WorkerSettings]:
    """Return the settings of as many workers, on the same store, in place of those of `local_settings`. All
    else stays: worker i has the address that worker i has had.
    """
    check_workers(workers)
    first = settings[0]
    folder = first.listen[0].removeprefix("ipc://").rpartition("/")[0]
    mesh = tuple(f"ipc://{folder}/m{index}" for index in range(workers))
    here = (first.listen, first.client_listen) == (mesh[:1], f"ipc://{folder}/c0")
    if not here or len(settings) != first.workers:
        raise InternalError("these settings are not of a cluster on this machine for one client")
    return [
        replace(
            first,
            index=index,
            workers=workers,
            listen=(mesh[index],),
            peers=mesh,
            client_listen=f"ipc://{folder}/c{index}",
        )
        for index in range(workers)
    ]


def cluster_settings(
    hosts: Sequence[HostAddress],
    this_host: int,
    workers_per_host: int,
    client_port: int,
    folder: Path,
    *,
    is_tcp_only: bool = False,
    installs: Sequence[str] = (),
    log_level: str = "warning",
) -> list[WorkerSettings]:
    """Return the settings of the workers of host `this_host`; their indices begin at `this_host` ×
    `workers_per_host`.

    They have no keys; `replace(settings, keys=cluster_keys.to_text())` gives them some.
    """
    check_workers(len(hosts) * workers_per_host)
    own = hosts[this_host]
    by_tcp = [
        tcp_address(host.name, host.port + number) for host in hosts for number in range(workers_per_host)
    ]
    first = this_host * workers_per_host
    peers = list(by_tcp)
    if not is_tcp_only:
        peers[first : first + workers_per_host] = [
            f"ipc://{folder}/m{number}" for number in range(workers_per_host)
        ]
    interface = ("::1" if own.name == "::1" else "127.0.0.1") if own.is_loopback else "*"
    settings = []
    for number in range(workers_per_host):
        listen = [] if is_tcp_only else [peers[first + number]]
        if is_tcp_only or len(hosts) > 1:
            listen.append(tcp_address(interface, own.port + number))
        settings.append(
            WorkerSettings(
                first + number,
                len(peers),
                tuple(listen),
                tuple(peers),
                tcp_address(interface, client_port + number if client_port else 0),
                client_host=own.name,
                installs=tuple(installs),
                log_level=log_level,
                gather_seconds=GATHER_SECONDS_MAX if len(hosts) > 1 else START_SECONDS_MAX,
            )
        )
    return settings


# The constructor as an untyped function: JSON has no types, and `from_json` checks each field afterwards.
_make: Callable[..., WorkerSettings] = WorkerSettings  # type: ignore[explicit-any]


_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""How the address of an object store or a file begins, also once `Path` has made one "/" of two."""


def check_silence(seconds: object, what: str) -> float:
    """Return a time limit for silent workers; raise `MisuseError`, beginning with `what`, if it is out of
    range.
    """
    if isinstance(seconds, int | float) and SILENCE_SECONDS_DEFAULT <= seconds <= SILENCE_SECONDS_MAX:
        return float(seconds)
    raise MisuseError(
        f"{what} {shown(seconds)}: a worker may be silent for {SILENCE_SECONDS_DEFAULT:g} to "
        f"{SILENCE_SECONDS_MAX:,.0f} seconds before it counts as lost"
    )


def check_progress_mode(mode: object) -> str:
    """Return a progress mode, "eager" for None; raise `MisuseError` if there is none of this name."""
    if mode is None:
        return "eager"
    if isinstance(mode, str) and mode in PROGRESS_MODES:
        return mode
    raise MisuseError(
        f"progress={shown(mode)}: workers tell one another of progress after each step ('eager'), when "
        "somebody can depend on it ('demand'), or then, and through one worker of each host ('host')"
    )


def check_durable(folder: object, sync: object) -> tuple[str, str]:
    """Return the folder of a store, absolute, and when its log counts as safe; ("", "disk") without a folder.
    Raise `MisuseError` if these are not what `timely.connect` takes.
    """
    if folder is None:
        if sync is not None:
            raise MisuseError(
                f"sync={shown(sync)} says when the log of a durable cluster is safe: give the folder of its "
                "store, too, durable=FOLDER"
            )
        return "", "disk"
    if not isinstance(folder, str | Path) or not str(folder) or "\0" in str(folder):
        raise MisuseError(f"durable takes the folder of a store, as a text or a Path, not {shown(folder)}")
    if _ADDRESS.match(str(folder)):
        raise MisuseError(
            f"durable={shown(str(folder))} is an address, and a store is a folder: workers need files that "
            "they can append to, sync and lock. Give a path in a file system that is mounted here, without a "
            "scheme"
        )
    if sync not in (None, *SYNCS):
        raise MisuseError(
            f"sync={shown(sync)}: sync takes 'disk', which survives the failure of the machine, or 'system', "
            "which survives that of any process, and waits for no disk"
        )
    return str(Path(folder).expanduser().absolute()), "disk" if sync is None else str(sync)


def check_workers(workers: object) -> None:
    """Raise `MisuseError` if a cluster cannot have this number of workers."""
    if isinstance(workers, bool) or not isinstance(workers, Integral) or not 1 <= int(workers) <= WORKERS_MAX:
        raise MisuseError(f"a cluster has 1 to {WORKERS_MAX} workers, not {workers!r:.80}")
