"""Clusters in Spark with several workers on a standalone master; `spark_cluster_job.py` is the driver.

A master and two workers of Spark run on this machine, with networks of their own where it allows that
(`two_hosts.namespaces`), and an executor on each. An executor is killed, a task, and in the end the
driver. One driver does all of it, since each Java takes seconds to start. The thorough profile adds one on
one network. Executors of a local-cluster are in `faults/`.

The answers are those of the embedded run, a kill is one message, all is started anew, and nothing is left
behind. The driver's Spark shows itself in a log of events and on pages.
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
from typing import NamedTuple, cast

import pytest
from house import ROOT
from spark_masters import quick_executors, standalone
from two_hosts import Host, can_have_namespaces, namespaces

Said = dict[str, object]
_JOB = ROOT / "tests" / "spark_cluster_job.py"
HAS_NETWORKS = can_have_namespaces()


class Started(NamedTuple):
    """A cluster that has started: processes of its workers, those above them, and where clients reach it."""

    workers: list[int]
    tasks: list[int]
    addresses: list[str]


class Driver:
    """A driver that runs, and what it says, line by line."""

    def __init__(self, prefix: tuple[str, ...], settings: Mapping[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [
                *prefix,
                sys.executable,
                str(_JOB),
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

    def tell(self, step: str) -> None:
        """Let it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{step}\n")
        self.process.stdin.flush()

    def says(self, what: str) -> Said:
        """The next line, which must be of this kind."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "".join(self.errors)
        said: Said = json.loads(line)
        assert what in said, said
        return said

    def does(self, step: str, what: str) -> Said:
        """Both."""
        self.tell(step)
        return self.says(what)

    def end(self) -> None:
        """Whatever happens."""
        self.process.kill()
        self.process.wait()
        self._reader.join(20)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextlib.contextmanager
def driver(has_networks: bool, folder: Path) -> Iterator[Driver]:
    with contextlib.ExitStack() as stack:
        hosts = (Host("127.0.0.1"), Host("127.0.0.1"))
        if has_networks:
            _, hosts = stack.enter_context(namespaces())
        log = folder / "events"
        log.mkdir()
        settings = {
            **quick_executors(),
            "spark.master": stack.enter_context(standalone(hosts, folder)),
            "spark.executor.memory": "512m",
            "spark.driver.host": hosts[0].address,
            "spark.driver.bindAddress": hosts[0].address,
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": log.as_uri(),
            "spark.eventLog.compress": "false",
        }
        made = Driver(hosts[0].prefix, settings, folder)
        stack.callback(made.end)
        yield made


def started(job: Driver) -> Started:
    """Two workers, which use as much as their tasks may, and take no strangers."""
    said = job.does("start", "started")
    assert said["threads"] == ["1", "1"] and said["stranger"] == "RefusedError"
    made = Started(
        cast("list[int]", said["started"]),
        cast("list[int]", said["tasks"]),
        cast("list[str]", said["addresses"]),
    )
    assert len(made.workers) == 2
    return made


def lost(job: Driver, victim: int) -> None:
    """While a call waits somebody is killed: that is one message."""
    job.tell("wait")
    os.kill(victim, signal.SIGKILL)
    told = str(job.says("lost")["lost"])
    assert told.startswith("Spark's task of worker ") and "restart()" in told, told
    assert not any("Traceback" in line or "py4j" in line for line in job.errors), "".join(job.errors)


@pytest.mark.timeout(900)
def test_executors_answer_alike_show_no_secret_may_be_killed_and_do_not_outlive_the_driver(
    tmp_path: Path, effort: int
) -> None:
    """On one network beside networks of their own the long form only: there is nothing else to see."""
    for has_networks in [True, False] if HAS_NETWORKS and effort > 1 else [HAS_NETWORKS]:
        folder = tmp_path / ("networks" if has_networks else "one network")
        folder.mkdir()
        with driver(has_networks, folder) as job:
            first = started(job)
            assert all("127.0.0.1" not in address for address in first.addresses) == has_networks
            assert job.does("feed", "same")["same"]
            seen = job.does("pages", "pages")
            lengths = cast("dict[str, int]", seen["pages"]).values()
            assert seen["secrets"] == [] and len(lengths) == 5 and min(lengths) > 100, seen
            lost(job, _parent(_parent(first.tasks[1])))  # Java, above Python's daemon
            second = started(job)
            assert not set(first.workers) & set(second.workers)
            assert job.does("feed", "same")["same"]
            lost(job, second.tasks[1])
            third = started(job)
            assert job.does("close", "closed")["closed"], "the log of events shows no secret"
            _gone(first.workers + second.workers + third.workers)
            last = started(job)
            job.process.kill()
            _gone(third.tasks + last.workers + last.tasks)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _gone(processes: list[int]) -> None:
    """All of them, within seconds."""
    deadline = time.monotonic() + 60
    waiting = threading.Event()
    while left := [one for one in processes if _runs(one)]:
        assert time.monotonic() < deadline, left
        waiting.wait(0.05)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
