"""Outputs: the rows that a dataflow produced, by epoch, readable once the epoch is complete.

A `CaptureVertex` puts the rows that come in into an `OutputLog`; frontier news tell the log which epochs are
complete. The log knows the form of the rows; the one for records is here, collections bring their own.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from typing import ClassVar, Protocol

import msgpack
import pyarrow as pa

from progress.errors import InternalError, MisuseError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode

from ..dictionaries import Mark
from ..errors import ForgottenError
from ..wire.arrow import binary_array, int64_array
from ..wire.batch import Batch, Records
from .failures import FAILURES_PORT, FailureLog
from .pieces import Cut, PieceRequest
from .places import ReaderPositions
from .vertex import Vertex


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

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`; asking for them from now on raises `ForgottenError`."""
        ...

    def tidy(self) -> None:
        """Drop what was made for readers that have not come back."""
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


class OutputCodec(Protocol):
    """Makes logs; its description is part of the fingerprint."""

    def new_log(self) -> OutputLog:
        """Return a log for one worker."""
        ...

    def describe(self) -> str:
        """Return a stable text."""
        ...


class RecordLog:
    """Records by epoch."""

    def __init__(self) -> None:
        self._records: dict[int, list[object]] = {}
        self._open: list[int] = []  # a heap of the epochs that are not complete
        self._done: list[int] = []  # ascending
        self._complete = 0
        self._forgotten_before = 0

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None:
        """Do nothing: records have no time words; those of epochs without an answer go to no other epoch."""
        del code, failures

    def add(self, epoch: int, batch: Batch) -> None:
        """Keep the records of a batch."""
        if not isinstance(batch, Records):
            raise InternalError(f"an output of records got a {type(batch).__name__}")
        if epoch not in self._records:
            self._records[epoch] = []
            heapq.heappush(self._open, epoch)
        self._records[epoch].extend(batch.records)

    @property
    def is_settled(self) -> bool:
        """True: completing an epoch only lists it."""
        return True

    def note_complete(self, epoch: int) -> None:
        """See `complete`."""
        self.complete(epoch)

    def complete(self, epoch: int) -> None:
        """Remember that all epochs before `epoch` are complete."""
        assert epoch >= self._complete
        self._complete = epoch
        while self._open and self._open[0] < epoch:
            self._done.append(heapq.heappop(self._open))

    def settle(self) -> None:
        """Do nothing: nothing is put off."""

    def changes(self, start: int, stop: int) -> pa.Table:
        """Return the columns `epoch` (int64) and `record` (msgpack)."""
        check_kept(start, self._forgotten_before)
        epochs: list[int] = []
        packed: list[bytes] = []
        for epoch in self._done[bisect_left(self._done, start) : bisect_left(self._done, stop)]:
            epochs.extend([epoch] * len(self._records[epoch]))
            packed.extend(map(_packed, self._records[epoch]))
        return pa.Table.from_arrays([int64_array(epochs), binary_array(packed)], ["epoch", "record"])

    def snapshot(self, epoch: int) -> pa.Table:
        """Raise MisuseError: records have no differences to accumulate."""
        del epoch
        raise MisuseError("this output carries records, which accumulate to nothing: read changes()")

    def piece(self, request: PieceRequest) -> Cut:
        """Raise MisuseError: records have no columns."""
        del request
        raise MisuseError("this output carries records, which have no columns: read changes()")

    def extent(self) -> tuple[int, int]:
        """Return the first epoch that is not forgotten, and the one behind the last complete one with
        records.
        """
        return self._forgotten_before, self._done[-1] + 1 if self._done else self._forgotten_before

    def forget(self, stop: int) -> None:
        """Drop records of epochs before `stop`."""
        count = bisect_left(self._done, stop)
        for epoch in self._done[:count]:
            del self._records[epoch]
        del self._done[:count]
        self._forgotten_before = max(self._forgotten_before, min(stop, self._complete))

    def tidy(self) -> None:
        """Do nothing: nothing is made for readers."""

    def take_over(self, other: OutputLog, epoch: int) -> bool:
        """Return False: records have no differences."""
        del other, epoch
        return False

    def rebase(self, by: Rebase) -> None:
        """Do nothing: records have no time words."""

    def symbols(self, mark: Mark) -> None:
        """Show nothing: records hold values, not words."""


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


def _packed(record: object) -> bytes:
    try:
        packed: bytes = msgpack.packb(record, use_bin_type=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise MisuseError(
            f"an output got the record {record!r}, which clients cannot be sent: {error}. Records may hold "
            "None, bool, int (64 bits), float, str, bytes, and tuples or dicts of these"
        ) from error
    return packed


class RecordsOut:
    """Outputs of Python records."""

    def new_log(self) -> OutputLog:
        """Return an empty log."""
        return RecordLog()

    def describe(self) -> str:
        """Return the name of the form of rows."""
        return "records"


class CaptureVertex(Vertex):
    """Puts all rows that come in into a log.

    Readers sort few rows. Then there is nothing to do when an epoch is complete: the vertex gets no turn for
    that, and looks at its frontier when somebody asks.
    """

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True
    is_patient: ClassVar[bool] = True

    def __init__(self, log: OutputLog, failures: FailureLog | None = None) -> None:
        self._log = log
        self._ports = 1 if failures is None else 2
        self.failures = failures
        """The log that knows which epochs have no answer, and why; None: all have one."""
        self.places = ReaderPositions()
        self._complete_before = 0

    def on_start(self) -> None:
        """Let the logs learn the form of times."""
        if self.failures is not None:
            self.failures.start(self.code)
        self._log.start(self.code, self.failures)

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Put batches into the log, by epoch."""
        runner, log = self._runner, self._log
        if port == FAILURES_PORT:
            assert self.failures is not None
            for _, batch in messages:
                self.failures.add(batch)
        else:
            epoch_of = runner.code.epoch_of
            for word, batch in messages:
                log.add(epoch_of(word), batch)
        runner.wants_frontier = not self._is_settled

    @property
    def _is_settled(self) -> bool:
        """True if completing an epoch is no more than noting it."""
        return self._log.is_settled and (self.failures is None or self.failures.is_settled)

    def on_frontier(self) -> None:
        """Tell the logs that epochs before the frontier are complete; all are, if the frontier is empty."""
        epoch = self._frontier_epoch()
        if epoch > self._complete_before:
            if self.failures is not None:
                self.failures.complete(epoch)
            self._log.complete(epoch)
            self._complete_before = epoch  # last: nobody may read an epoch that the log fails to complete
        self._runner.wants_frontier = not self._is_settled

    @property
    def log(self) -> OutputLog:
        """The log; it has been told of all epochs that are complete."""
        assert self.complete_before >= 0
        return self._log

    @property
    def complete_before(self) -> int:
        """The first epoch that is not complete, in this worker's view.

        Law: nobody sees an epoch as complete before every vertex here that has heard so has had its turn. One
        of them may end the dataflow, because a claim does not hold in that epoch. As long as some vertex is
        still to have its turn, this vertex asks for one, too.
        """
        runner = self._bound
        if runner is not None and runner.has_frontier_news and not runner.wants_frontier:
            if runner.is_calm:
                runner.has_frontier_news = False
                self._note_complete()
            else:
                runner.wants_frontier = True
                runner.wake()
        return self._complete_before

    def _note_complete(self) -> None:
        epoch = self._frontier_epoch()
        if epoch > self._complete_before:
            if self.failures is not None:
                self.failures.complete(epoch)
            self._log.note_complete(epoch)
            self._complete_before = epoch

    def _frontier_epoch(self) -> int:
        runner = self._runner
        first = runner.first(0)
        if self._ports > 1:
            second = runner.first(FAILURES_PORT)
            first = second if first is None else first if second is None else min(first, second)
        return FOREVER if first is None else runner.code.epoch_of(first)

    def changes(self, start: int, stop: int) -> pa.Table:
        """See `OutputLog.changes`. Raises the error of the last of these epochs, if it has no answer. For
        records, which no later epoch makes up for, raises the error of the first epoch without an answer.
        """
        if self.failures is not None and start < stop:
            error = self.failures.error_at(stop - 1)
            if isinstance(self._log, RecordLog):
                error = next((each.error for each in self.failures.without(start, stop)), None)
            if error is not None:
                raise error
        return self._log.changes(start, stop)

    def snapshot(self, epoch: int) -> pa.Table:
        """See `OutputLog.snapshot`. Raises the error of that epoch, if it has no answer."""
        self.check_answer(epoch)
        return self._log.snapshot(epoch)

    def check_answer(self, epoch: int) -> None:
        """Raise the error of this complete epoch, if it has no answer."""
        if self.failures is not None and epoch >= 0:
            error = self.failures.error_at(epoch)
            if error is not None:
                raise error

    def extent(self) -> tuple[int, int]:
        """See `OutputLog.extent`; an epoch at which failures changed counts as one with changes."""
        first, last = self.log.extent()
        return first, last if self.failures is None else max(last, self.failures.changed_before())

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`."""
        self._log.forget(stop)
        if self.failures is not None:
            self.failures.forget(stop)

    def catch_up(self) -> None:
        """Turn words of complete epochs into epoch numbers, while the words still count from the old
        anchor.
        """
        if not self._runner.wants_frontier:
            self._note_complete()
        if self.failures is not None:
            self.failures.settle()
        self._log.settle()

    def take_over(self, other: CaptureVertex, epoch: int) -> bool:
        """Go on for the clients of `other` from `epoch` on; False if that is not possible."""
        if not self.log.take_over(other.log, epoch):
            return False
        self.places = other.places
        if self.failures is not None:
            self.failures.take_over(other.failures, epoch)
        elif other.failures is not None:
            self.failures = other.failures
            self.failures.end(epoch)
        return True

    def rebase(self, by: Rebase) -> None:
        """Move the times of the logs."""
        self._log.rebase(by)
        if self.failures is not None:
            self.failures.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """Show the words of the logs."""
        if self.failures is not None:
            self.failures.symbols(mark)
        mark.holder(self._log, f"{self!r}, whose log is a {type(self._log).__name__}")


FOREVER = 2**62
"""An epoch after all others: the frontier of a closed dataflow."""
