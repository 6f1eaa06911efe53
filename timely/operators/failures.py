"""What an output is told beside its rows: failures, for which there is no answer.

An output of a dataflow in which something can fail has a second port. What comes there accumulates like a
collection. While it is not empty at a complete epoch, the output has no answer at that epoch: who reads it
gets an error instead. All workers are told the same failures, so that each knows by itself which epochs have
no answer.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode

from ..dictionaries import Mark
from ..errors import TimelyError
from ..wire.batch import Batch

__all__ = ["EXPORTED_BESIDE", "FAILURES_PORT", "FailureLog", "FailureLogs", "Without"]

EXPORTED_BESIDE = " (failures)"
"""Behind the name of an export: that of the export with what fails in it, which users do not see."""

FAILURES_PORT = 1
"""The port of an output at which failures come in."""


class Without(NamedTuple):
    """The epochs `start` ≤ epoch < `stop` have no answer, for the reason `error`.

    `since`: from which epoch on it holds. That is before `start` if somebody asks about later epochs.
    """

    start: int
    stop: int
    error: TimelyError
    since: int


class FailureLog(Protocol):
    """The failures of one output on one worker."""

    def start(self, code: TimeCode) -> None:
        """Called once, before anything is added: how times are packed into words."""
        ...

    def add(self, batch: Batch) -> None:
        """Failures, with times of their own."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether completing an epoch is no more than noting it: nothing can end the dataflow then."""
        ...

    def complete(self, epoch: int) -> None:
        """All epochs before `epoch` are complete. Of a strict output this raises if one of them has no
        answer.
        """
        ...

    def settle(self) -> None:
        """Take in all that came in for complete epochs: called before words count from a later epoch."""
        ...

    def error_at(self, epoch: int) -> TimelyError | None:
        """Why the output has no answer at this complete epoch; None if it has one."""
        ...

    def good_from(self, epoch: int, stop: int) -> int | None:
        """The first epoch from `epoch` on and before `stop` that has an answer; None if there is none."""
        ...

    def without(self, start: int, stop: int) -> list[Without]:
        """The complete epochs from `start` on and before `stop` that have no answer, in order."""
        ...

    def changed_before(self) -> int:
        """The epoch behind the last complete one at which something failed, or failed no more; 0: none."""
        ...

    def take_over(self, other: FailureLog | None, epoch: int) -> None:
        """Go on at `epoch` where `other`, of an older version of the dataflow, stops.

        `other` is None if nothing could fail in that version.
        """
        ...

    def end(self, epoch: int) -> None:
        """From `epoch` on everything has an answer: a new version in which nothing can fail goes on."""
        ...

    def forget(self, stop: int) -> None:
        """Nobody will ask about epochs before `stop`."""
        ...

    def rebase(self, by: Rebase) -> None:
        """Time words count from a later epoch: see `Vertex.rebase`."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values."""
        ...


class FailureLogs(Protocol):
    """Makes logs of failures; its description is part of the fingerprint."""

    def new_log(self) -> FailureLog:
        """A log for one worker."""
        ...

    def describe(self) -> str:
        """Stable text."""
        ...
