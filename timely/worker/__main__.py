"""`python -m timely.worker`: the workers of one host, until a client or a signal ends them.

The command itself only watches; each worker is a process of its own (`process.py`).
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ..building.builders import load_function
from ..errors import TimelyError
from ..keys.folder import load_cluster
from ..limits import INSTALL_SECONDS_MAX
from .launcher import Launcher, LocalFolder
from .options import Options, parse_options
from .settings import WorkerSettings, cluster_settings
from .supervisor import Supervisor


class _Interrupted(BaseException):
    """A signal asked for the end."""


def main(arguments: list[str]) -> int:
    """Start workers, print which are ready, wait for their end; return 0 only if a client or a signal has
    asked for the end.
    """
    options = parse_options(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    sys.path.insert(0, str(Path.cwd()))
    try:
        if options.warm:
            load_function(options.warm, "--warm")()
        return _run(options)
    except _Interrupted:
        return 0
    except TimelyError as error:
        _print_error(str(error))
        return 1


def _run(options: Options) -> int:
    keys = None if options.keys is None else load_cluster(options.keys)
    if options.is_insecure:
        _print_error(
            "WARNING: --insecure: anybody who reaches this host's ports can install dataflows, read and "
            "write, and nothing is encrypted. 'python -m timely.keys' makes keys"
        )
    folder = LocalFolder()
    settings = cluster_settings(
        options.hosts,
        options.this_host,
        options.workers,
        options.client_port,
        folder.path,
        is_tcp_only=options.is_tcp_only,
        installs=options.installs,
        log_level=options.log_level,
    )
    keys_text = "" if keys is None else keys.to_text()
    settings = [
        replace(
            each,
            check_progress=options.check_progress,
            progress=options.progress,
            per_host=options.workers,
            silence_seconds=options.silence_seconds,
            keys=keys_text,
            durable=options.durable,
            sync=options.sync,
            spill=options.spill,
            memory=options.memory,
        )
        for each in settings
    ]
    if options.durable:
        _supervise(options, settings, folder)
        return 0
    # Workers find modules in the current folder of the command, as `python -m` does.
    with Launcher(settings, _forward, folder) as launcher:
        try:
            launcher.wait_ready(
                lambda index, address: _print_ready(options, index, address),
                timeout_seconds=settings[0].gather_seconds + 60,
            )
            launcher.wait_end()
        finally:
            _be_deaf()  # a second signal must not leave some workers behind
    return 0


def _supervise(options: Options, settings: list[WorkerSettings], folder: LocalFolder) -> None:
    """Keep the workers of a durable cluster until a client or a signal ends them."""
    try:
        with Supervisor(
            settings,
            _forward,
            folder,
            lambda index, address: _print_ready(options, index, address),
            settings[0].gather_seconds + INSTALL_SECONDS_MAX,
            standby=options.standby,
        ) as supervisor:
            try:
                supervisor.run()
            finally:
                _be_deaf()
    finally:
        _be_deaf()


def _print_ready(options: Options, index: int, address: str) -> None:
    if options.is_json:
        print(json.dumps({"worker": index, "address": address.removeprefix("tcp://")}), flush=True)
    else:
        total = len(options.hosts) * options.workers
        print(
            f"worker {index} of {total} is ready for clients at {address.removeprefix('tcp://')}", flush=True
        )


def _print_error(message: str) -> None:
    print(f"timely.worker: {message}", file=sys.stderr, flush=True)


def _forward(index: int, line: str) -> None:
    print(f"worker {index}: {line}", file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _be_deaf()
    raise _Interrupted


def _be_deaf() -> None:
    """Ignore signals, so that none interrupts the ending of the workers."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
