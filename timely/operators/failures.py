"""Failures that an output receives beside its rows: while there are some it has no answer.

An output of a dataflow in which something can fail has a second port. The failures that come in there
accumulate like a collection. While it is not empty at a complete epoch, the output has no answer at that
epoch: a reader gets an error instead. All workers receive the same failures, so each knows by itself which
epochs have no answer.
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
"""Appended to the name of an export: the name of the export of its failures, which users do not see."""

FAILURES_PORT = 1
"""The port of an output at which failures come in."""


class Without(NamedTuple):
    """The epochs `start` ≤ epoch < `stop` have no answer, for the reason `error`.

    `since`: the epoch from which on it holds; before `start` if somebody asks about later epochs only.
    `kinds`: a number for the kinds of failures that there are, which depends on nothing else.
    """

    start: int
    stop: int
    error: TimelyError
    since: int
    kinds: int = 0


class FailureLog(Protocol):
    """The failures of one output on one worker."""

    def start(self, code: TimeCode) -> None:
        """Learn how words pack times. Called once, before anything is added."""
        ...

    def add(self, batch: Batch) -> None:
        """Take in failures, which have times of their own."""
        ...

    @property
    def is_settled(self) -> bool:
        """True if completing an epoch is no more than noting it; then it cannot end the dataflow."""
        ...

    def complete(self, epoch: int) -> None:
        """Learn that all epochs before `epoch` are complete. A strict output raises if one of them has no
        answer.
        """
        ...

    def settle(self) -> None:
        """Sum up all failures of complete epochs. Called before words count from a later epoch."""
        ...

    def error_at(self, epoch: int) -> TimelyError | None:
        """Return why the output has no answer at this complete epoch; None if it has one."""
        ...

    def good_from(self, epoch: int, stop: int) -> int | None:
        """Return the first epoch from `epoch` on and before `stop` that has an answer; None if none has."""
        ...

    def without(self, start: int, stop: int) -> list[Without]:
        """Return the complete epochs from `start` on and before `stop` that have no answer, in order."""
        ...

    def changed_before(self) -> int:
        """Return the epoch behind the last complete one at which failures changed; 0 if there is none."""
        ...

    def take_over(self, other: FailureLog | None, epoch: int) -> None:
        """Go on at `epoch` where `other`, of an older version of the dataflow, stops.

        `other` is None if nothing could fail in that version.
        """
        ...

    def end(self, epoch: int) -> None:
        """Note that every epoch from `epoch` on has an answer: a new version goes on in which nothing
        can fail.
        """
        ...

    def forget(self, stop: int) -> None:
        """Drop what is kept for epochs before `stop`, about which nobody will ask."""
        ...

    def rebase(self, by: Rebase) -> None:
        """Count time words from a later epoch: see `Vertex.rebase`."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values."""
        ...


class FailureLogs(Protocol):
    """Makes logs of failures; its description is part of the fingerprint."""

    def new_log(self) -> FailureLog:
        """Return a log for one worker."""
        ...

    def describe(self) -> str:
        """Return a stable text."""
        ...
