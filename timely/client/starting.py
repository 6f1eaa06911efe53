"""How `connect` starts workers, or joins those that run."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..limits import SILENCE_SECONDS_DEFAULT
from ..spilling.budget import SPILL
from ..spilling.file_memory import has_blocks
from ..spilling.settings import spill_settings
from .installed import Workers

if TYPE_CHECKING:
    from ..wire.keys import ClientKeys, ClusterKeys
    from ..worker.supervisor import Supervisor
    from .embedded.workers import EmbeddedWorkers

__all__ = ["embedded_workers", "running_workers", "start_workers"]


def running_workers(addresses: Sequence[str], keys: ClientKeys | ClusterKeys | Path | str | None) -> Workers:
    """Join a running cluster."""
    from ..keys.folder import client_keys
    from .connection import discover, workers_at

    own_keys = client_keys(keys)
    running = discover(addresses, own_keys)
    return workers_at(
        running.addresses, own_keys, running.silence_seconds, running.incarnation, running.cluster
    )


def embedded_workers(
    count: int,
    check_progress: bool,
    threads: bool,
    durable: Path | str | None,
    sync: str | None,
    progress: str | None,
    spill: tuple[Path | str | None, int | str | None],
) -> Workers:
    """Start workers in this process."""
    from ..worker.settings import check_durable, check_progress_mode, check_workers
    from .embedded.workers import EmbeddedWorkers

    mode = check_progress_mode(progress)
    check_workers(count)
    spilling = spill_settings(*spill, count)
    share = SPILL.begin(spilling, count)  # also for what the store has
    if durable is None and sync is None:
        workers = EmbeddedWorkers(count, check_progress=check_progress, threads=threads, progress=mode)
    else:
        store, safe = check_durable(durable, sync)
        workers = EmbeddedWorkers(
            count,
            check_progress=check_progress,
            threads=threads,
            durable=store,
            sync=safe,
            progress=mode,
        )
    workers.spilling = share
    _embedded.add(workers)
    return workers


def _leave_memory() -> None:
    """In a process that was just forked: let it use no workers whose rows may lie in files of its parent."""
    for workers in list(_embedded) if has_blocks() else ():
        workers.is_of_process = True


_embedded: weakref.WeakSet[EmbeddedWorkers] = weakref.WeakSet()
os.register_at_fork(after_in_child=_leave_memory)


def start_workers(  # noqa: PLR0913  # the arguments of `connect`
    count: int,
    log_level: str,
    check_progress: bool,
    silence_seconds: float | None,
    durable: Path | str | None,
    sync: str | None,
    standby: bool,
    progress: str | None,
    spill: tuple[Path | str | None, int | str | None],
) -> Workers:
    """Start a process for each worker."""
    from ..worker.launcher import Launcher, LocalFolder
    from ..worker.settings import (
        check_durable,
        check_progress_mode,
        check_silence,
        check_workers,
        local_settings,
    )
    from .remote.workers import RemoteWorkers

    check_workers(count)
    silence = SILENCE_SECONDS_DEFAULT
    if silence_seconds is not None:
        silence = check_silence(silence_seconds, "silence_seconds")
    store, safe = check_durable(durable, sync)
    mode = check_progress_mode(progress)
    spilling = spill_settings(*spill, count)
    folder = LocalFolder()
    try:
        settings = local_settings(count, folder.path, paths=sys.path, log_level=log_level)
        settings = [
            replace(
                each,
                check_progress=check_progress,
                progress=mode,
                silence_seconds=silence,
                durable=store,
                sync=safe,
                spill="" if spilling is None else spilling.folder,
                memory=0 if spilling is None else spilling.memory,
            )
            for each in settings
        ]
    except BaseException:
        folder.remove()
        raise
    if store:
        from ..worker.supervisor import Supervisor

        return _supervised(Supervisor(settings, _show, folder, standby=standby), settings[0].token, silence)
    launcher = Launcher(settings, _show, folder)
    try:
        return RemoteWorkers(launcher.wait_ready(), launcher, settings[0].token, silence_seconds=silence)
    except BaseException:
        launcher.stop()
        raise


def _supervised(supervisor: Supervisor, token: str, silence_seconds: float) -> Workers:
    """Return the workers that a supervisor has started, and let it watch them from now on."""
    from .connection import greeted
    from .remote.resuming import DurableWorkers
    from .remote.workers import RemoteWorkers

    try:
        probe = RemoteWorkers(supervisor.addresses, silence_seconds=silence_seconds)
        try:
            hello = greeted(probe)[0]
        finally:
            probe.close()
        supervisor.watch()
        workers = DurableWorkers(
            supervisor.addresses,
            supervisor,
            token,
            silence_seconds=silence_seconds,
            incarnation=hello.incarnation,
            cluster=hello.text("cluster"),
        )
        # The thread that watches would keep the workers of a cluster that is dropped, and not closed.
        weakref.finalize(workers, supervisor.abandon).atexit = False
        return workers
    except BaseException:
        supervisor.stop()
        raise


def _show(index: int, line: str) -> None:
    """Write a line of a worker to the error stream of this program, which has started it."""
    sys.stderr.write(f"worker {index}: {line}\n")
