"""An output as a stream: the changes of epoch after epoch, from a starting epoch on.

An offset is an epoch (`offsets.py`): all epochs before it have been read. A micro-batch has the changes of
the epochs from the end of the last one up to where the output is complete on all workers. It has complete
epochs only, so if another driver runs it again, it has the same rows.

    startingEpoch   required: a number; `latest`: only later epochs; `earliest`: from the first epoch that is
                    still there; `snapshot`: first all rows as of one epoch, as changes in that epoch
    epochsPerBatch  the largest number of epochs in a micro-batch

When Spark has committed a micro-batch, the workers drop its changes, unless another reader still needs them.
The position of the stream on the workers has the name of the option `query`, or a unique one. The workers
keep it for an hour without requests, which is how long a driver may be gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from timely.client.installed import to_all
from timely.client.pieces import Held, OutputSlice, hold_everywhere
from timely.client.remote.workers import RemoteWorkers
from timely.errors import ForgottenError, MisuseError, TimelyError
from timely.limits import READER_SECONDS_MAX
from timely.operators.capture import FOREVER
from timely.spark.delivering import answer_seconds
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.source.columns import check_requested
from timely.spark.source.connecting import connected_to
from timely.spark.source.offsets import Offset, check_offset
from timely.spark.source.options import EARLIEST, LATEST, SNAPSHOT
from timely.spark.source.plainly import plainly
from timely.spark.source.reading import OutputPartition, ReadPlan, read_partition, split
from timely.wire.requests import Describe, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.1 lacks it

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for the class of later releases."""


__all__ = ["RefusedStream", "StreamReader"]

_BEFORE_ALL = -1
"""The offset of a stream that begins with a snapshot."""
_NEWS_SECONDS = 0.2
"""How long one request for new epochs waits while there are none. A query that also reads other sources
learns of their rows that much later.
"""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds on the driver which epochs there are, and reads them in tasks.

    Pickling, which sends it to tasks, leaves its connections out.
    """

    def __init__(
        self, plan: ReadPlan, requested: T.StructType, epochs_max: int = 0, may_be_another: bool = False
    ) -> None:
        check_requested(plan.form, requested)
        if not plan.are_changes:
            raise MisuseError(
                "a stream of an output is its changes: say from where, .option('startingEpoch', 0), or "
                "'earliest', 'latest' or 'snapshot'"
            )
        self.plan = plan
        self.form = requested
        self._epochs_max = epochs_max
        self._may_be_another = may_be_another
        self._target: int | None = None
        self._workers: RemoteWorkers | None = None
        self._position = _BEFORE_ALL
        self._there: Held | None = None

    def __getstate__(self) -> Mapping[str, object]:
        return {**vars(self), "_workers": None}

    # On the driver.

    def initialOffset(self) -> dict[str, object]:
        """Return the offset at which a new stream begins."""
        with plainly():
            there = self._reach(None)
            words = {LATEST: there.complete, EARLIEST: there.kept, SNAPSHOT: _BEFORE_ALL}
            starting = self.plan.starting
            self._position = starting if isinstance(starting, int) else words[starting]
            epoch = there.complete if self._position == _BEFORE_ALL else self._position
            self._reach(Offset(epoch, there.origin))
            began = self._position if starting in (LATEST, EARLIEST) else None
            return Offset(self._position, there.origin, began).as_dict()

    def latestOffset(
        self, start: Mapping[str, object] | None = None, limit: object = None
    ) -> dict[str, object]:
        """Return where a micro-batch that begins at `start` may end: before the first epoch that is not
        complete, and just after an epoch with an answer.

        If no epoch has one, raise the error of the last epoch, which ends the query. Spark has then recorded
        no end, so that a restarted query begins at the same epoch, once the failing rows are corrected.
        PySpark 4.1 does not pass `start`.
        """
        del limit  # counts rows, files or bytes; our limit counts epochs
        with plainly():
            begin = Offset(self._position) if start is None else Offset.of(start)
            there = self._reach_news(begin, is_checked=start is not None)
            complete = there.complete
            if self._target is not None:
                complete = min(complete, self._target)
            if self._epochs_max and begin.epoch >= 0:
                complete = min(complete, begin.epoch + self._epochs_max)
            if complete > begin.epoch:
                answered = there.end_with_answer(max(begin.epoch, 0), complete)
                if answered is None:
                    raise MisuseError(there.why)
                complete = answered
            if start is not None and complete <= begin.epoch:
                return dict(start)  # nothing new; Spark would take any other dict for a new offset
            end = max(begin.epoch, complete)
            if start is None:
                end = max(end, self._starting)
            return begin.until(end, there.origin).as_dict()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the stream: read only epochs that are complete by now."""
        with plainly():
            self._target = self._reach(None).complete

    def reportLatestOffset(self) -> dict[str, object]:
        """Return the latest offset, for the progress report of a query."""
        with plainly():
            there = self._there or self._reach(None)  # Spark calls this right after `latestOffset`
            return Offset(there.complete, there.origin).as_dict()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> Sequence[InputPartition]:
        """Return a partition for each worker; none if there is nothing to read."""
        with plainly():
            stop = Offset.of(end)
            first = Offset.of(start).start_of(stop)
            self._position = stop.epoch
            there = self._reach(stop if first.epoch == _BEFORE_ALL else first)
            self._check(stop, there)
            if first.epoch >= stop.epoch:
                return []
            is_snapshot = first.epoch == _BEFORE_ALL
            names = [name for name in self.form.names if not is_snapshot or name != EPOCH]
            output_slice = OutputSlice(
                self.plan.dataflow,
                self.plan.output,
                self.plan.reader,
                first.epoch,
                stop.epoch,
                tuple(names or [DIFF]),
                self.plan.filters,
                timeout_seconds=self.plan.timeout_seconds,
                origins=there.origins,
            )
            epoch = stop.epoch - 1 if is_snapshot else None
            return split(self.plan.at, output_slice, epoch)

    def commit(self, end: Mapping[str, object]) -> None:
        """Let the workers drop changes before `end`."""
        with plainly():
            plan, workers, offset = self.plan, self._connected(), Offset.of(end)
            self._position = offset.epoch
            self._reach(offset)
            forget = Progress(
                plan.dataflow, plan.output, reader=plan.reader, keep_from=offset.epoch, drops=True
            )
            workers.ask_members(to_all(forget), answer_seconds(plan.timeout_seconds))

    def _connected(self) -> RemoteWorkers:
        """Return the workers, by connections that last as long as the query."""
        if self._workers is None:
            self._workers = connected_to(self.plan.at)
        return self._workers

    def _reach_news(self, begin: Offset, *, is_checked: bool) -> Held:
        """Return how far the output is: at once if that is beyond `begin`, otherwise a moment later, since
        Spark would ask again after ten milliseconds. With a fixed end of the stream do not wait.

        `is_checked`: check that the stream can go on at `begin`.
        """
        if self._target is not None:
            return self._reach(begin if is_checked else None)
        until = time.monotonic() + _NEWS_SECONDS
        there = self._reach(begin if is_checked else None, beyond=begin.epoch, wait_seconds=_NEWS_SECONDS)
        if there.complete <= begin.epoch:  # workers do not wait if no epoch can come any more
            time.sleep(max(0.0, until - time.monotonic()))
        return there

    def _reach(
        self,
        offset: Offset | None,
        *,
        is_position: bool = True,
        beyond: int = _BEFORE_ALL,
        wait_seconds: float = 0.0,
    ) -> Held:
        """Return how far the output is. With an offset, check that a stream can go on there, and, if
        `is_place`, hold the epochs from there on. When no epoch can come any more, `complete` is the one
        after the last.
        """
        plan, workers = self.plan, self._connected()
        reader = plan.reader if offset is not None and offset.epoch >= 0 and is_position else ""
        epoch = 0 if offset is None else max(offset.epoch, 0)
        request = Progress(
            plan.dataflow,
            plan.output,
            beyond,
            wait_seconds,
            reader=reader,
            keep_from=epoch,
            keep_seconds=READER_SECONDS_MAX,
            extent=True,
        )
        seconds = answer_seconds(plan.timeout_seconds)
        try:
            there = hold_everywhere(workers, request, seconds)
        except ForgottenError:
            self._reach(offset, is_position=False)  # prefer the error about another dataflow
            raise
        if there.complete >= FOREVER:
            (described,) = workers.ask(
                [(0, Describe(plan.dataflow), None)], answer_seconds(plan.timeout_seconds)
            )
            there = there._replace(complete=max(there.last, described.integer("epoch")))
        self._there = there
        if offset is not None:
            self._check(offset, there)
        return there

    @property
    def _starting(self) -> int:
        """The number of the epoch at which the user lets the stream begin; -1: no number."""
        return self.plan.starting if isinstance(self.plan.starting, int) else _BEFORE_ALL

    def _check(self, offset: Offset, there: Held) -> None:
        plan = self.plan
        try:
            check_offset(
                offset,
                Offset(there.complete, there.origin),
                f"output {plan.output!r} of dataflow {plan.dataflow}",
                may_be_another=self._may_be_another,
                starting=self._starting,
            )
        except MisuseError:
            workers = self._connected()  # give up the position there
            leave = Progress(plan.dataflow, plan.output, reader=plan.reader)
            workers.ask_members(to_all(leave))
            raise

    def stop(self) -> None:
        """Close the connections; the position on the workers stays, for a restarted query."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    # In tasks.

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the batches of one partition."""
        assert isinstance(partition, OutputPartition)
        return read_partition(partition, self.form)


class RefusedStream(DataSourceStreamReader):
    """Takes the place of a stream that cannot be read: every method raises the reason."""

    def __init__(self, error: TimelyError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, object]:
        """Raise the error."""
        return self._refuse()

    def latestOffset(
        self, start: Mapping[str, object] | None = None, limit: object = None
    ) -> dict[str, object]:
        """Raise the error."""
        del start, limit
        return self._refuse()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> Sequence[InputPartition]:
        """Raise the error."""
        del start, end
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raise the error."""
        del partition
        return self._refuse()

    def _refuse(self) -> NoReturn:
        with plainly():
            raise self._error
        raise self._error  # never reached: `plainly` lets the error pass
