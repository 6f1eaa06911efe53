"""What keeps the rows of an output on one worker, and makes such logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import pyarrow as pa

from progress.errors import MisuseError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode

from ...dictionaries import Mark
from ...errors import ForgottenError
from ...wire.batch import Batch
from ..failures import FailureLog
from .pieces import Cut, PieceRequest

__all__ = ["CountedLog", "OlderChanges", "OlderVersion", "OutputCodec", "OutputLog", "check_kept"]


class OlderChanges(Protocol):
    """The changes that an output had before a restart, in a store."""

    @property
    def kept_from(self) -> int:
        """The first epoch whose changes are not forgotten."""
        ...

    @property
    def before(self) -> int:
        """The epoch behind the last one that has changes."""
        ...

    @property
    def share(self) -> tuple[int, int]:
        """Which share of rows this worker keeps of them, and of how many."""
        ...

    def tables(self) -> Iterator[pa.Table]:
        """Yield them all: the columns, `epoch` and `diff`; in no order. Others may be among them."""
        ...

    def records(self) -> Iterator[tuple[int, Batch]]:
        """Yield those of this share that are no tables, by epoch: of an output without columns, or out of
        logs. Called at once, if at all.
        """
        ...


class OlderVersion(Protocol):
    """What an output held in an older version of its dataflow, in a store."""

    @property
    def epoch(self) -> int:
        """The epoch at which the output goes on."""
        ...

    @property
    def failures(self) -> FailureLog:
        """The epochs before that without an answer."""
        ...

    def new_log(self) -> OutputLog:
        """Return an empty log that can be taken over from."""
        ...

    def changes(self) -> OlderChanges:
        """Return the changes; those of epochs that are forgotten add up to what was there by then."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all words that may stand for values."""
        ...


class OutputLog(Protocol):
    """Keeps the batches of one output on one worker."""

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None:
        """Learn how words pack times, and which epochs have no answer; None: all have one. Called once,
        before anything is added.
        """
        ...

    def add(self, epoch: int, batch: Batch) -> None:
        """Take in a batch whose rows are at or after `epoch`."""
        ...

    def complete(self, epoch: int) -> None:
        """Learn that all epochs before `epoch` are complete. An error here ends the dataflow."""
        ...

    def note_complete(self, epoch: int) -> None:
        """Learn the same, if `is_settled`: this does nothing else, and raises nothing."""
        ...

    @property
    def is_settled(self) -> bool:
        """True if completing an epoch is no more than noting it: readers do the rest."""
        ...

    def settle(self) -> None:
        """Do what was put off until somebody reads. Called before words count from a later epoch."""
        ...

    def changes(self, start: int, stop: int) -> pa.Table:
        """Return rows of the complete epochs `start` ≤ epoch < `stop`, with the columns `epoch` and, for
        collections, `diff`. Changes of an epoch without an answer are changes of the next epoch that has one.
        """
        ...

    def snapshot(self, epoch: int) -> pa.Table:
        """Return the collection accumulated up to `epoch`, which is complete and has an answer, with the
        column `diff`.
        """
        ...

    def piece(self, request: PieceRequest) -> Cut:
        """Return some of the rows of `changes` or `snapshot`; the order of all rows is always the same."""
        ...

    def extent(self) -> tuple[int, int]:
        """Return the first epoch whose changes are kept, and the one behind the last complete one with
        changes.
        """
        ...

    def held(self, start: int, stop: int) -> tuple[int, int]:
        """Return about how many rows the changes of these epochs have, and how many bytes they take."""
        ...

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`; asking for them from now on raises `ForgottenError`."""
        ...

    def go_on(self, epoch: int, older: OlderChanges) -> None:
        """Go on at `epoch`, which is the first that readers see from here on: changes of earlier epochs that
        come in are not kept, because they are others than before a restart. `older` has those from before.
        Called before anything is added.
        """
        ...

    def written(self, start: int, stop: int) -> Iterator[tuple[int, Batch]]:
        """Yield the changes of complete epochs `start` ≤ epoch < `stop`, for a log; readers may forget some
        meanwhile.
        """
        ...

    def answer(self, epoch: int) -> Iterator[Batch]:
        """Yield rows that add up to `snapshot(epoch)`, a few thousand at a time, for a log. They are fixed by
        the first of them, whatever comes or is forgotten later. Requires: the output is stored, so it has
        columns.
        """
        ...

    def before(self, epoch: int) -> Iterator[Batch]:
        """Yield the rows that were there before this epoch, whose changes are not forgotten; nothing for rows
        that have no differences.
        """
        ...

    def stand_in(self, older: OlderChanges, epoch: int) -> None:
        """Have what `older` has of epochs before `epoch`, so that another log can take over from this one.
        What `older` has of epochs that are forgotten adds up to what was there by then. Called after `start`,
        in place of all else.
        """
        ...

    def tidy(self) -> None:
        """Drop what was made for readers that have not come back."""
        ...

    def can_take_over(self, other: OutputLog) -> bool:
        """Return True if `take_over` is possible."""
        ...

    def take_over(self, other: OutputLog, epoch: int) -> bool:
        """Go on at `epoch` where `other` stops: with its earlier changes, then the difference between the
        two, then the rows that come here. Both have all rows before `epoch`. Return False if rows have no
        differences that would add up.
        """
        ...

    def rebase(self, by: Rebase) -> None:
        """Count time words from a later epoch: see `Vertex.rebase`."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values."""
        ...

    def keep_digests(self) -> bool:
        """Sum up digests from now on (`outputs/`). Called after `start`, before anything is added.
        Return False if there are none: the rows are no function of what comes in.
        """
        ...

    def take_digests(self, stop: int) -> list[tuple[int, int]]:
        """Return (epoch, digest) of epochs before `stop`, ascending, 0 left out; and forget them. Requires:
        `keep_digests` has returned True.
        """
        ...


@runtime_checkable
class CountedLog(Protocol):
    """A log that knows how many rows it keeps."""

    @property
    def rows_kept(self) -> int:
        """Of the collection, rows that cancel included."""
        ...


class OutputCodec(Protocol):
    """Makes logs; its description is part of the fingerprint."""

    def new_log(self) -> OutputLog:
        """Return a log for one worker."""
        ...

    def describe(self) -> str:
        """Return a stable text."""
        ...


def check_kept(start: int, forgotten_before: int) -> None:
    """Raise `ForgottenError` if some changes from `start` on are forgotten, and `MisuseError` if `start` is
    no epoch.
    """
    if start < 0:
        raise MisuseError(
            f"epochs begin at 0, so there are no changes from {start} on. Write changes(0) for all changes, "
            "or changes() for those that this client has not read yet"
        )
    if start < forgotten_before:
        raise ForgottenError(
            f"changes of epochs before {forgotten_before} are no longer kept, since a client said that they "
            f"may be forgotten; asked for from {start}. Read changes({forgotten_before}), or begin with what "
            "has accumulated: follow(snapshot=True). From Spark, by the option startingEpoch: "
            f"{forgotten_before}, or of a stream 'snapshot'"
        )
