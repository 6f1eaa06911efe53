"""The commands that start a cluster and keep its workers: one on this host, or one on each of two hosts."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from two_hosts import Host

__all__ = ["ServerCommands", "Stuck"]

_START_SECONDS_MAX = 90.0
_END_SECONDS_MAX = 20.0


class Stuck(AssertionError):
    """Something does not go on."""


class ServerCommands:
    """The commands of one cluster, and the threads that hear them.

    Args:
        hosts: where a command runs; with several, each worker has a command of its own.
        errors: the file that gets what the processes write to their error streams.
        environment: of the processes.
    """

    def __init__(self, hosts: Sequence[Host], errors: Path, environment: dict[str, str]) -> None:
        self._hosts = hosts
        self._errors = errors
        self._environment = environment
        self._processes: list[subprocess.Popen[str]] = []
        self._listeners: list[threading.Thread] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._workers = 0

    @property
    def pids(self) -> list[int]:
        """The processes of the commands."""
        return [process.pid for process in self._processes]

    @property
    def has_ended(self) -> bool:
        """True if one of them has ended by itself."""
        return any(process.poll() is not None for process in self._processes)

    def start(self, port: int, workers: int, options: Sequence[str], hosts_file: Path) -> list[str]:
        """Start them, and return the addresses for clients. `workers`: on each host."""
        self._workers = workers * len(self._hosts)
        self._lines = queue.Queue()
        addresses = []
        for index, host in enumerate(self._hosts):
            command = [*host.prefix, sys.executable, "-m", "timely.worker", "-w", str(workers), "--json"]
            command += ["--client-port", str(port), *options]
            if len(self._hosts) > 1:
                hosts_file.write_text("".join(f"{each.at(port + 100)}\n" for each in self._hosts))
                command += [
                    "-n",
                    str(len(self._hosts)),
                    "-p",
                    str(index),
                    "-h",
                    str(hosts_file),
                    "--insecure",
                ]
            addresses += [host.at(port + worker) for worker in range(workers)]
            with self._errors.open("ab") as stream:
                stream.write(f"--- {' '.join(command)}\n".encode())
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=stream, text=True, env=self._environment
                )
            self._processes.append(process)
            assert process.stdout is not None
            listener = threading.Thread(target=_put_all, args=(process.stdout, self._lines), daemon=True)
            listener.start()
            self._listeners.append(listener)
        return addresses

    def wait_ready(self) -> bool:
        """Return once all workers are ready; False if a command has ended, or they are not in time."""
        until = time.monotonic() + _START_SECONDS_MAX
        for _ in range(self._workers):
            while True:
                try:
                    json.loads(self._lines.get(timeout=0.2))
                    break
                except queue.Empty:
                    if self.has_ended or time.monotonic() > until:
                        return False
        return True

    def end(self, number: int) -> None:
        """End all of them by a signal."""
        for process in self._processes:
            process.send_signal(number)
        for process in self._processes:
            try:
                process.wait(_END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise Stuck("the cluster does not end after a signal") from None
        for listener in self._listeners:
            listener.join(_END_SECONDS_MAX)
        for process in self._processes:
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()
        self._listeners.clear()


def _put_all(stream: IO[str], lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
