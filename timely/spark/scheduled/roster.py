"""What is the state of the tasks, as the driver knows it, and which loss explains the others?

Each task comes, is ready, and ends in one of four ways, or Spark ends the whole job. The first trouble is
rarely the cause: a worker that has lost a peer reports that at once, while the line to the task that was
killed may break a moment later. So the verdict waits a moment, unless some trouble needs no further
explanation:

    failed       the worker failed by itself, or was killed: its launcher reports by what    is the cause
    gone         the line broke without a last message: task, executor or host is gone       is the cause
    job over     Spark has ended the job, and reports why
    has lost     the worker lost another one
    ended        a client or another worker has ended the worker

Pure: events in, a verdict out; sockets, threads and Spark are in `job.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from timely.limits import VERDICT_SECONDS_MAX

__all__ = ["End", "Roster", "Task", "Trouble"]


class End(IntEnum):
    """How a task has ended; those that explain more come first."""

    FAILED = 0
    GONE = 1
    JOB_OVER = 2
    HAS_LOST = 3
    ENDED = 4


@dataclass
class Task:
    """One task, with the facts that it has introduced itself by."""

    index: int
    host: str = ""
    process: int = 0
    stage: int = -1
    facts: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    has_ended: bool = False

    @property
    def who(self) -> str:
        """The name of the task in messages."""
        return f"worker {self.index} (task process {self.process} on {self.host})"


@dataclass(frozen=True)
class Trouble:
    """The reason for the end of a cluster: its kind, the index of its task (-1: of none), and a text."""

    end: End
    index: int
    text: str


class Roster:
    """The tasks of one job, `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.tasks: dict[int, Task] = {}
        self._troubles: list[Trouble] = []
        self._since = 0.0

    @property
    def is_complete(self) -> bool:
        """True if all tasks have come."""
        return len(self.tasks) == self.count

    @property
    def is_ready(self) -> bool:
        """True if all workers accept clients."""
        return self.is_complete and all(task.address for task in self.tasks.values())

    @property
    def addresses(self) -> list[str]:
        """The client addresses of the workers, in order; valid once all are ready."""
        return [self.tasks[index].address for index in range(self.count)]

    @property
    def unready(self) -> list[Task]:
        """The tasks that have come, and whose workers are not ready."""
        return [task for task in self.tasks.values() if not task.address]

    def comes(self, task: Task) -> bool:
        """Add a task that has introduced itself; return False if its index is invalid, or has come before."""
        if not 0 <= task.index < self.count or task.index in self.tasks:
            return False
        self.tasks[task.index] = task
        return True

    def says(self, index: int, message: Mapping[str, object], now: float) -> None:
        """Take in a message of a task about its worker, which came at `now`."""
        task = self.tasks[index]
        if "ready" in message:
            task.address = str(message["ready"])
        elif "failed" in message:
            end = End.FAILED if message.get("is_cause") else End.HAS_LOST
            self._ends(task, Trouble(end, index, str(message["failed"])), now)
        elif "ended" in message:
            text = f"{task.who} had to end, and the cluster with it"
            self._ends(task, Trouble(End.ENDED, index, text), now)

    def hangs_up(self, index: int, now: float) -> None:
        """Note that the line to a task is broken."""
        task = self.tasks[index]
        if not task.has_ended:
            self._ends(task, Trouble(End.GONE, index, f"{task.who} is lost"), now)

    def job_ends(self, text: str, now: float) -> None:
        """Note that Spark has ended the job; `text` is the reason."""
        self._note(Trouble(End.JOB_OVER, -1, text), now)

    def verdict(self, now: float) -> Trouble | None:
        """Return what has ended the cluster; None if nothing has, or if a trouble that explains more may
        come.
        """
        if not self._troubles:
            return None
        best = min(self._troubles, key=lambda trouble: trouble.end)
        return best if best.end <= End.GONE or now >= self._since + VERDICT_SECONDS_MAX else None

    @property
    def is_troubled(self) -> bool:
        """True if there will be a verdict."""
        return bool(self._troubles)

    def _ends(self, task: Task, trouble: Trouble, now: float) -> None:
        task.has_ended = True
        self._note(trouble, now)

    def _note(self, trouble: Trouble, now: float) -> None:
        if not self._troubles:
            self._since = now
        self._troubles.append(trouble)
