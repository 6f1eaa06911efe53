"""Outputs: the rows that a dataflow produced, by epoch, readable once the epoch is complete.

A `CaptureVertex` puts the rows that come in into an `OutputLog`; frontier news tell the log which epochs are
complete. The log knows the form of the rows; the one for records is here, collections bring their own.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import ClassVar

import pyarrow as pa

from progress.errors import InternalError, MisuseError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode

from ..dictionaries import Mark
from ..limits import HELD_EPOCHS_MAX
from ..wire.arrow import binary_array, int64_array
from ..wire.batch import Batch, Records
from ..wire.claims import shown
from ..wire.frames.record_values import VALUES, pack_value
from ..wire.frames.table_batch import TableBatch
from .failures import FAILURES_PORT, FailureLog
from .outputs.moves import EpochMoves
from .outputs.output_digests import OutputDigests, hash_of, wrapped
from .outputs.output_log import OlderChanges, OlderVersion, OutputLog, check_kept
from .outputs.pieces import Cut, PieceRequest
from .outputs.places import ReaderPositions
from .vertex import Vertex


class RecordLog:
    """Records by epoch."""

    def __init__(self) -> None:
        self._records: dict[int, list[object]] = {}
        self._open: list[int] = []  # a heap of the epochs that are not complete
        self._done: list[int] = []  # ascending
        self._complete = 0
        self._forgotten_before = 0
        self._digests: dict[int, int] | None = None
        self._kept_here_from = 0

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None:
        """Do nothing: records have no time words; those of epochs without an answer go to no other epoch."""
        del code, failures

    def add(self, epoch: int, batch: Batch) -> None:
        """Keep the records of a batch."""
        if isinstance(batch, TableBatch):
            batch = Records([batch.table])
        if not isinstance(batch, Records):
            raise InternalError(f"an output of records got a {type(batch).__name__}")
        if self._digests is not None:  # of those that are not kept here, too: they come as before a restart
            digest = self._digests.get(epoch, 0) + sum(map(_digest_of, batch.records))
            self._digests[epoch] = wrapped(digest)
        if epoch >= self._kept_here_from:
            self._keep(epoch, batch)

    def _keep(self, epoch: int, batch: Batch) -> None:
        if epoch not in self._records:
            self._records[epoch] = []
            heapq.heappush(self._open, epoch)
        assert isinstance(batch, Records), "an output of records has no others"
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

    def held(self, start: int, stop: int) -> tuple[int, int]:
        """Return about how many records these epochs have, and how many bytes they take on a wire."""
        epochs = self._done[bisect_left(self._done, start) : bisect_left(self._done, stop)]
        step = max(1, len(epochs) // HELD_EPOCHS_MAX)
        counts = [len(self._records[epoch]) for epoch in epochs[::step]]
        rows = sum(counts) * len(epochs) // max(1, len(counts))
        sizes = []
        for epoch in epochs[:: 16 * step]:
            with suppress(MisuseError):  # no client can read such a record: `changes` says so
                sizes += [len(_packed(record)) for record in self._records[epoch][:1]]
        return rows, rows * sum(sizes) // max(1, len(sizes))

    def forget(self, stop: int) -> None:
        """Drop records of epochs before `stop`."""
        count = bisect_left(self._done, stop)
        for epoch in self._done[:count]:
            del self._records[epoch]
        del self._done[:count]
        self._forgotten_before = max(self._forgotten_before, min(stop, self._complete))

    def go_on(self, epoch: int, older: OlderChanges) -> None:
        """Keep what comes in from `epoch` on, and the records from before."""
        for done, batch in older.records():
            self._keep(done, batch)
        self._kept_here_from, self._forgotten_before = epoch, older.kept_from

    def written(self, start: int, stop: int) -> Iterator[tuple[int, Batch]]:
        """Yield the records of these epochs."""
        for epoch in self._done[bisect_left(self._done, start) : bisect_left(self._done, stop)]:
            if records := self._records.get(epoch):
                yield epoch, Records(list(records))

    def answer(self, epoch: int) -> Iterator[Batch]:
        """Raise MisuseError: records have no differences to accumulate."""
        raise MisuseError(f"this output carries records, which accumulate to nothing as of epoch {epoch}")

    def before(self, epoch: int) -> Iterator[Batch]:
        """Yield nothing: records have no differences."""
        del epoch
        return iter(())

    def stand_in(self, older: OlderChanges, epoch: int) -> None:
        """Raise: nothing can take over from records."""
        raise InternalError(f"records of {older!r} were to be taken over at {epoch}")

    def can_take_over(self, other: OutputLog) -> bool:
        """Return False: records have no differences."""
        del other
        return False

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

    def keep_digests(self) -> bool:
        """Sum up the hashes of records from now on."""
        self._digests = {}
        return True

    def take_digests(self, stop: int) -> list[tuple[int, int]]:
        """See `OutputLog.take_digests`."""
        assert self._digests is not None
        epochs = sorted(epoch for epoch in self._digests if epoch < stop)
        taken = [(epoch, self._digests.pop(epoch)) for epoch in epochs]
        return [each for each in taken if each[1]]


def _packed(record: object) -> bytes:
    try:
        return pack_value(record)
    except (TypeError, ValueError, OverflowError) as error:
        raise MisuseError(
            f"an output got the record {record!r}, which clients cannot be sent: {error}. Records may hold "
            f"{VALUES}"
        ) from error


def _digest_of(record: object) -> int:
    """Return the hash of a record; 0 if clients cannot be sent it: reading it raises an error. The hash of a
    table is that of its rows, however they are divided into tables.
    """
    if isinstance(record, pa.Table):
        return wrapped(sum(_digest_of(tuple(row.values())) for row in record.to_pylist()))
    try:
        return hash_of(_packed(record))
    except MisuseError:
        return 0


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
    keeps: ClassVar[str] = "nothing"

    def __init__(self, log: OutputLog, failures: FailureLog | None = None) -> None:
        self._log = log
        self._ports = 1 if failures is None else 2
        self.failures = failures
        """The log that knows which epochs have no answer, and why; None: all have one."""
        self.places = ReaderPositions()
        self.moves = EpochMoves()
        """When it found more epochs complete."""
        self.digests: OutputDigests | None = None
        """What a restart must give again; None: nobody checks."""
        self._complete_before = 0
        self._kept_from = FOREVER
        self._forgotten = 0
        """The epoch before which readers have forgotten changes, though some may be kept."""
        self._awaited: OlderVersion | None = None
        """From what to go on, once all before it is complete."""

    def keep_digests(self, counts_failures: bool) -> None:
        """Sum up digests from now on, unless the rows are no function of what comes in. Call it before any
        rows come; `counts_failures`: on one of the workers.
        """
        if self._log.keep_digests():
            self.digests = OutputDigests(self._log, self.failures, counts_failures)

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
        # Never take back what `complete_before` has asked for: where rows come in each turn, as by a way back
        # of the root, the turn would hear of no frontier, and no epoch would ever be shown.
        if not self._is_settled:
            runner.wants_frontier = True

    @property
    def _is_settled(self) -> bool:
        """True if completing an epoch is no more than noting it."""
        if self._awaited is not None:
            return False
        return self._log.is_settled and (self.failures is None or self.failures.is_settled)

    def on_frontier(self) -> None:
        """Tell the logs that epochs before the frontier are complete; all are, if the frontier is empty."""
        epoch = self._frontier_epoch()
        if epoch > self._complete_before:
            if self.failures is not None:
                self.failures.complete(epoch)
            self._log.complete(epoch)
            self._complete_before = epoch  # last: nobody may read an epoch that the log fails to complete
            self.moves.numbers.extend((epoch, monotonic()))
        if self._awaited is not None and epoch >= self._awaited.epoch:
            older, self._awaited = self._awaited, None
            self._take_over_again(older)
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
        if self._awaited is not None:
            return 0
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
            self.moves.numbers.extend((epoch, monotonic()))

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
        return self.logged_changes(start, stop)

    def logged_changes(self, start: int, stop: int) -> pa.Table:
        """See `OutputLog.changes`; epochs without an answer have none."""
        return self._checked(self._log.changes(start, stop), "changes")

    def snapshot(self, epoch: int) -> pa.Table:
        """See `OutputLog.snapshot`. Raises the error of that epoch, if it has no answer."""
        self.check_answer(epoch)
        return self._checked(self._log.snapshot(epoch), "snapshot")

    def _checked(self, table: object, call: str) -> pa.Table:
        """Return what a log has returned; raise `MisuseError` if it is no table, as of a user."""
        if isinstance(table, pa.Table):
            return table
        raise MisuseError(
            f"{self!r}: {call}(…) of its {type(self._log).__name__} returned {shown(table)}; it returns an "
            "Arrow table"
        )

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

    def go_on(self, epoch: int, older: OlderChanges) -> None:
        """See `OutputLog.go_on`."""
        self._log.go_on(epoch, older)
        self.places.begin(older.kept_from)

    @property
    def is_made_again(self) -> bool:
        """False until an older version is taken over from after a restart."""
        return self._awaited is None

    def take_over_later(self, older: OlderVersion) -> None:
        """Do `take_over` of what an output held in an older version, once all epochs before the switch are
        complete. Until then no epoch counts as complete. Called before anything comes in.
        """
        self._awaited = older
        self._runner.wants_frontier = True

    def _take_over_again(self, older: OlderVersion) -> None:
        stand_in = CaptureVertex(older.new_log(), older.failures)
        stand_in._log.start(self._runner.code, older.failures)
        stand_in._log.stand_in(changes := older.changes(), older.epoch)
        self.places.begin(changes.kept_from)
        stand_in.places = self.places
        self.take_over(stand_in, older.epoch)

    def last_answered(self, epoch: int) -> int:
        """Return the last epoch up to `epoch`, a complete one, such that it and all epochs before it whose
        changes are kept have an answer.
        """
        if self.failures is None:
            return epoch
        first, _ = self.extent()
        without = self.failures.without(first, epoch + 1)
        return without[0].start - 1 if without else epoch

    def held_from(self, epoch: int) -> tuple[int, int]:
        """Return about how many rows of complete epochs from this one on are kept, and in how many bytes."""
        return self._log.held(epoch, self._complete_before)

    def keep_changes(self, epoch: int) -> None:
        """Keep the changes from `epoch` on until `let_changes_go`, whatever readers forget."""
        self._kept_from = epoch

    @property
    def changes_kept_from(self) -> int:
        """The first epoch whose changes something else than a reader keeps; `FOREVER`: nothing does."""
        return self._kept_from

    def let_changes_go(self) -> None:
        """Keep no more than readers need, and drop what they have forgotten meanwhile."""
        kept_from, self._kept_from = self._kept_from, FOREVER
        if self._forgotten > kept_from:
            self.forget(self._forgotten)

    def forget(self, stop: int) -> None:
        """Drop changes of epochs before `stop`, but for those that `keep_changes` keeps."""
        self._forgotten = max(self._forgotten, stop)
        stop = min(stop, self._kept_from)
        if self.digests is not None:
            self.digests.settle(min(stop, self._complete_before))
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
        if not self.log.can_take_over(other.log):
            return False
        if self.digests is not None:  # those before are of this version's own failures
            self.digests.settle(min(epoch, self._complete_before))
        self.log.take_over(other.log, epoch)
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
        if self._awaited is not None:
            self._awaited.symbols(mark)
        mark.holder(self._log, f"{self!r}, whose log is a {type(self._log).__name__}")


FOREVER = 2**62
"""An epoch after all others: the frontier of a closed dataflow."""
