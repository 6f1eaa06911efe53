"""An output as a stream: the changes of epoch after epoch, from one on.

An offset is an epoch (`offsets.py`): all before it have been read. A micro-batch has the changes of the
epochs from where the last one stopped to where the output is complete on all workers. Only complete epochs
are read, so a micro-batch that is run again, by another driver, has the same rows.

    startingEpoch   0, as it is by default; another number; `latest`: what comes from now on; `earliest`: the
                    first that is kept; `snapshot`: first all rows as of one epoch, with that as their epoch
    epochsPerBatch  at most so many epochs in a micro-batch

When Spark has committed a micro-batch, the workers forget what was in it, unless another reader still needs
it. The place of this one is known by the option `query`, or by a name of its own; in either case it is kept
for an hour while nobody asks, which is how long a driver may be gone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from timely.client.connection import RemoteWorkers
from timely.client.pieces import Held, OutputSlice, hold_everywhere
from timely.errors import ForgottenError, MisuseError, TimelyError
from timely.limits import READER_SECONDS_MAX
from timely.operators.capture import FOREVER
from timely.spark.delivering import answer_seconds
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.source.columns import check_asked
from timely.spark.source.connecting import connected_to
from timely.spark.source.offsets import Offset, check_offset
from timely.spark.source.options import EARLIEST, LATEST, SNAPSHOT
from timely.spark.source.plainly import plainly
from timely.spark.source.reading import OutputPartition, ReadPlan, read_partition
from timely.wire.requests import Describe, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.1 has none

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What it is called later."""


__all__ = ["RefusedStream", "StreamReader"]

_BEFORE_ALL = -1
"""The offset of a stream that begins with a snapshot."""
_NEWS_SECONDS = 0.2
"""How long one look for news may take while there are none. A query that reads other sources, too, hears of
theirs so much later."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says on the driver which epochs there are, and reads them in tasks.

    It travels to tasks; its connections stay where they are.
    """

    def __init__(
        self, plan: ReadPlan, asked: T.StructType, epochs_max: int = 0, may_be_another: bool = False
    ) -> None:
        check_asked(plan.form, asked)
        if not plan.are_changes:
            raise MisuseError(
                "a stream of an output is its changes: say from where, .option('startingEpoch', 0), or "
                "'earliest', 'latest' or 'snapshot'"
            )
        self.plan = plan
        self.form = asked
        self._epochs_max = epochs_max
        self._may_be_another = may_be_another
        self._target: int | None = None
        self._workers: RemoteWorkers | None = None
        self._place = _BEFORE_ALL
        self._there: Held | None = None

    def __getstate__(self) -> Mapping[str, object]:
        return {**vars(self), "_workers": None}

    # On the driver.

    def initialOffset(self) -> dict[str, object]:
        """Where a new stream begins."""
        with plainly():
            there = self._reach(None)
            words = {LATEST: there.complete, EARLIEST: there.kept, SNAPSHOT: _BEFORE_ALL}
            starting = self.plan.starting
            self._place = starting if isinstance(starting, int) else words[starting]
            place = there.complete if self._place == _BEFORE_ALL else self._place
            self._reach(Offset(place, there.origin))
            began = self._place if starting in (LATEST, EARLIEST) else None
            return Offset(self._place, there.origin, began).told()

    def latestOffset(
        self, start: Mapping[str, object] | None = None, limit: object = None
    ) -> dict[str, object]:
        """Where a micro-batch that begins at `start` may end: before the first epoch that is not complete,
        and behind one that has an answer. Without any the query ends with the error of the last epoch: Spark
        has noted no end then, so that it goes on where the rows that fail are corrected, when it is started
        again. PySpark 4.1 does not say where the micro-batch begins.
        """
        del limit  # of rows, files or bytes; ours is of epochs
        with plainly():
            begin = Offset(self._place) if start is None else Offset.of(start)
            there = self._reach_news(begin, is_told=start is not None)
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
                return dict(start)  # nothing new; what is written in another way Spark takes for news
            told = max(begin.epoch, complete)
            if start is None:
                told = max(told, self._starting)
            return begin.until(told, there.origin).told()

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on nothing that comes is read."""
        with plainly():
            self._target = self._reach(None).complete

    def reportLatestOffset(self) -> dict[str, object]:
        """For the progress of a query."""
        with plainly():
            there = self._there or self._reach(None)  # Spark asks right behind `latestOffset`
            return Offset(there.complete, there.origin).told()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> Sequence[InputPartition]:
        """One for each worker; none where there is nothing to read."""
        with plainly():
            stop = Offset.of(end)
            first = Offset.of(start).start_of(stop)
            self._place = stop.epoch
            there = self._reach(stop if first.epoch == _BEFORE_ALL else first)
            self._check(stop, there)
            if first.epoch >= stop.epoch:
                return []
            is_snapshot = first.epoch == _BEFORE_ALL
            names = [name for name in self.form.names if not is_snapshot or name != EPOCH]
            wanted = OutputSlice(
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
            at = self.plan.at
            return [
                OutputPartition(at.only(address), wanted.only(worker), epoch)
                for worker, address in enumerate(at.addresses)
            ]

    def commit(self, end: Mapping[str, object]) -> None:
        """What is before `end` may be forgotten."""
        with plainly():
            plan, workers, offset = self.plan, self._connected(), Offset.of(end)
            self._place = offset.epoch
            self._reach(offset)
            forget = Progress(
                plan.dataflow, plan.output, reader=plan.reader, keep_from=offset.epoch, drops=True
            )
            everywhere = [(worker, forget, None) for worker in range(workers.count)]
            workers.ask(everywhere, answer_seconds(plan.timeout_seconds))

    def _connected(self) -> RemoteWorkers:
        """The workers, over connections that last as long as the query."""
        if self._workers is None:
            self._workers = connected_to(self.plan.at)
        return self._workers

    def _reach_news(self, begin: Offset, *, is_told: bool) -> Held:
        """How far the output is, at once if that is beyond `begin`, and a moment later if it is not: Spark
        asks again after ten milliseconds. What is there is taken without a wait by who wants nothing else.
        """
        if self._target is not None:
            return self._reach(begin if is_told else None)
        until = time.monotonic() + _NEWS_SECONDS
        there = self._reach(begin if is_told else None, beyond=begin.epoch, wait_seconds=_NEWS_SECONDS)
        if there.complete <= begin.epoch:  # where nothing can come any more workers do not wait
            time.sleep(max(0.0, until - time.monotonic()))
        return there

    def _reach(
        self,
        offset: Offset | None,
        *,
        is_place: bool = True,
        beyond: int = _BEFORE_ALL,
        wait_seconds: float = 0.0,
    ) -> Held:
        """How far the output is. With an offset, check that a stream can go on there, and, unless it is no
        place, have that kept. When nothing can come any more, what is complete ends behind the last epoch.
        """
        plan, workers = self.plan, self._connected()
        reader = plan.reader if offset is not None and offset.epoch >= 0 and is_place else ""
        epoch = 0 if offset is None else max(offset.epoch, 0)
        wanted = Progress(
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
            there = hold_everywhere(workers, wanted, seconds)
        except ForgottenError:
            self._reach(offset, is_place=False)  # of another dataflow, perhaps: then that is what to say
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
        """The epoch with which the stream was told to begin, if that is a number."""
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
            workers = self._connected()  # where no place is needed
            leave = Progress(plan.dataflow, plan.output, reader=plan.reader)
            workers.ask([(worker, leave, None) for worker in range(workers.count)])
            raise

    def stop(self) -> None:
        """Let go of the connections; the place stays for who goes on."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    # In tasks.

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one partition."""
        assert isinstance(partition, OutputPartition)
        return read_partition(partition, self.form)


class RefusedStream(DataSourceStreamReader):
    """In place of a stream that cannot be: says why, whatever it is asked."""

    def __init__(self, error: TimelyError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, object]:
        """Raises."""
        return self._refuse()

    def latestOffset(
        self, start: Mapping[str, object] | None = None, limit: object = None
    ) -> dict[str, object]:
        """Raises."""
        del start, limit
        return self._refuse()

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> Sequence[InputPartition]:
        """Raises."""
        del start, end
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises."""
        del partition
        return self._refuse()

    def _refuse(self) -> NoReturn:
        with plainly():
            raise self._error
        raise self._error  # never: what is raised there goes on
