"""Clusters in Spark with several workers, on each kind of master; `spark_cluster_job.py` is the driver.

local-cluster    two executors of two cores, each a process of its own
standalone       a master and two workers of Spark on this machine
namespaces       the same, each worker of Spark with a network of its own; where the machine allows it

Everywhere: the answers are those of the embedded run, a kill is one message, all is started anew, and nothing
is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from house import ROOT
from spark_masters import standalone
from two_hosts import Host, can_have_namespaces, namespaces

PLACES = ["local-cluster", "standalone", *(["namespaces"] if can_have_namespaces() else [])]
Said = dict[str, list[int]]
_JOB = ROOT / "tests" / "spark_cluster_job.py"


class Driver:
    """A driver that runs, and what it says, line by line."""

    def __init__(self, prefix: tuple[str, ...], settings: Mapping[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                str(ROOT / "tests" / "spark_cluster_job.py"),
                json.dumps(dict(settings)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
            cwd=folder,
        )
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def says(self, what: str) -> Said:
        """The next line, which must be of this kind."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "".join(self.errors)
        said: Said = json.loads(line)
        assert what in said, said
        return said

    def end(self) -> None:
        """Whatever happens."""
        self.process.kill()
        self.process.wait()
        self._reader.join(20)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextlib.contextmanager
def driver(place: str, folder: Path) -> Iterator[Driver]:
    with contextlib.ExitStack() as stack:
        hosts = (Host("127.0.0.1"), Host("127.0.0.1"))
        if place == "namespaces":
            _, hosts = stack.enter_context(namespaces())
        settings = {"spark.executor.memory": "512m"}
        if place == "local-cluster":
            settings = {"spark.master": "local-cluster[2,2,1024]"}
        else:
            settings["spark.master"] = stack.enter_context(standalone(hosts, folder))
            settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = hosts[0].address
        made = Driver(hosts[0].prefix, settings, folder)
        stack.callback(made.end)
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", PLACES)
def test_same_answers_one_message_all_anew_and_nothing_left(place: str, tmp_path: Path) -> None:
    with driver(place, tmp_path) as job:
        first = job.says("started")
        assert len(first["started"]) == 2 and first["threads"] == ["1", "1"]
        assert first["stranger"] == "RefusedError"
        is_far = all("127.0.0.1" not in str(address) for address in first["addresses"])
        assert is_far == (place == "namespaces")
        assert job.says("same")["same"]
        victim = first["tasks"][1]
        if place == "local-cluster":
            victim = _parent(_parent(victim))  # the executor: Java, above Python's daemon
        os.kill(victim, signal.SIGKILL)
        lost = str(job.says("lost")["lost"])
        assert lost.startswith("Spark's task of worker ") and "restart()" in lost
        second = job.says("started")
        assert job.says("same")["same"]
        assert not set(first["started"]) & set(second["started"])
        if place == "standalone":
            job.process.kill()
        else:
            assert job.process.stdin is not None
            job.process.stdin.write("\n")
            job.process.stdin.flush()
            job.says("closed")
        _gone(first["started"] + second["started"] + second["tasks"])
        assert not any("Traceback" in line or "py4j" in line for line in job.errors), "".join(job.errors)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _gone(processes: list[int]) -> None:
    """All of them, within seconds."""
    deadline = time.monotonic() + 10
    waiting = threading.Event()
    while left := [one for one in processes if _runs(one)]:
        assert time.monotonic() < deadline, left
        waiting.wait(0.05)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
