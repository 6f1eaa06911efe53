"""Faults, and the moment at which each strikes: kill -9 of a real process, once.

A *point* is a place in the program by name, reached with an epoch; a *fault* says which process is killed at
which of them. Whoever passes a point asks `Strikes.at`, in whatever process it is; a file that can be made
once only makes sure that a fault that has struck is over.

    python     the Python process of Spark that passes the point
    executor   the Java process above it
    driver     the driver's Python; with it, if the point is in a helper of Spark's Java, that Java
    java       the driver's Java
    worker     a worker of ours that Spark hosts · task: Spark's Python process above it · host: the executor
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from timely.spark.delivering import AppendTarget, TargetFactory

__all__ = ["DEATHS", "Fault", "Strikes", "Watched", "parent_of"]

DEATHS = ("driver", "java")
"""Whose end ends the program."""


class Fault(NamedTuple):
    """`victim` is killed when `job` comes to `point` in `epoch`: at the `nth` piece of the epoch, where it
    has several; of several workers it is the `nth`.
    """

    number: int
    victim: str
    job: str
    point: str
    epoch: int
    nth: int = 0


@dataclass(frozen=True)
class Strikes:
    """The faults of one job, as they travel; `marks` is the folder of those that have struck.

    `driver`, `java`: processes of the driver. `workers`: those that Spark hosts.
    """

    marks: str
    faults: tuple[Fault, ...] = ()
    driver: int = 0
    java: int = 0
    workers: tuple[int, ...] = field(default=())

    def of(self, job: str) -> Strikes:
        """Those of one job."""
        return replace(self, faults=tuple(fault for fault in self.faults if fault.job == job))

    def to_text(self) -> str:
        """For an option."""
        return json.dumps([self.marks, self.faults, self.driver, self.java])

    @classmethod
    def from_text(cls, text: str) -> Strikes:
        """What `to_text` has made."""
        marks, faults, driver, java = json.loads(text)
        return cls(marks, tuple(Fault(*fault) for fault in faults), driver, java)

    def at(self, point: str, epochs: range, nth: int | None = None) -> None:
        """The point is passed with all of `epochs`; kills what is to be killed there."""
        for fault in self.faults:
            if fault.point == point and fault.epoch in epochs and nth in (None, fault.nth):
                victims = self._victims(fault)
                if victims and self._is_first(fault):
                    _kill(victims)

    def _is_first(self, fault: Fault) -> bool:
        try:
            made = os.open(Path(self.marks) / str(fault.number), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.close(made)
        return True

    def _victims(self, fault: Fault) -> list[int]:
        """Processes in the order in which they are killed; none where they are gone already."""
        own = os.getpid()
        if fault.victim == "python":
            return [own]
        if fault.victim == "executor":
            return _java_above(own)
        if fault.victim == "java":
            return [self.java]
        if fault.victim == "driver":
            return [own] if own == self.driver else [self.java, self.driver, own]
        worker = self.workers[fault.nth % len(self.workers)]
        if not Path(f"/proc/{worker}").exists():
            return []
        return {"worker": [worker], "task": [parent_of(worker)], "host": _java_above(worker)}[fault.victim]


def _kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # another fault was quicker
            os.kill(process, signal.SIGKILL)


def _java_above(process: int) -> list[int]:
    """The Java process that it was started by; none if that has ended."""
    while process > 1:
        if Path(f"/proc/{process}/comm").read_text().strip() == "java":
            return [process]
        process = parent_of(process)
    return []


def parent_of(process: int) -> int:
    """The process that has started it."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass(frozen=True)
class Watched:
    """In place of what opens a connection in an executor: the points of the tasks that feed."""

    opens: TargetFactory
    strikes: Strikes

    @contextlib.contextmanager
    def __call__(self) -> Iterator[AppendTarget]:
        """See `TargetFactory`."""
        with self.opens() as target:
            yield _WatchedTarget(target, self.strikes)


class _WatchedTarget:
    def __init__(self, target: AppendTarget, strikes: Strikes) -> None:
        self._target = target
        self._strikes = strikes

    def append(self, input: str, epoch: int, writer: str, sequence: int, table: pa.Table) -> object:
        self._strikes.at("append", range(epoch, epoch + 1), sequence)
        reply = self._target.append(input, epoch, writer, sequence, table)
        self._strikes.at("appended", range(epoch, epoch + 1), sequence)
        return reply
