"""Clusters as programs of their own, of which nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["children", "environment", "is_alive", "started"]

_ROOT = Path(__file__).resolve().parents[2]
_WARM = ("--warm", "differential.warming:warm_once")
"""A worker that compiles answers nobody meanwhile."""


@contextlib.contextmanager
def started(workers: int) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A cluster of its own program, ended at the end whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "timely.worker", "-w", str(workers), "--client-port", "0", "--json", *_WARM],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    pids: list[int] = []
    try:
        assert process.stdout is not None
        ready = [json.loads(process.stdout.readline()) for _ in range(workers)]
        pids = children(process.pid)
        yield process, [line["address"] for line in sorted(ready, key=lambda line: int(line["worker"]))]
        process.wait(20)
    finally:
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        assert process.stdout is not None
        process.stdout.close()


def environment() -> dict[str, str]:
    """With this tree and its tests on the path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "tests")])}


def children(pid: int) -> list[int]:
    """The processes that a process has started and that are there still."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
