"""An output as a stream: the changes of epoch after epoch, from one on.

An offset is an epoch, {"epoch": e}: all before it have been read. A micro-batch has the changes of the epochs
from where the last one stopped to where the output is complete on all workers. Only complete epochs are read,
so a micro-batch that is run again, by another driver, has the same rows.

    startingEpoch   0, as it is by default; another number; `latest`: what comes from now on; `earliest`: the
                    first that is kept; `snapshot`: first all rows as of one epoch, with that as their epoch
    epochsPerBatch  at most so many epochs in a micro-batch

When Spark has committed a micro-batch, the workers forget what was in it, unless another reader still needs
it. The place of this one is known by the option `query`, or by a name of its own; in either case it is kept
for an hour while nobody asks, which is how long a driver may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from timely.client.connection import RemoteWorkers
from timely.client.pieces import OutputSlice, hold_everywhere
from timely.errors import MisuseError
from timely.limits import READER_SECONDS_MAX
from timely.operators.capture import FOREVER
from timely.spark.epochs import DIFF, EPOCH
from timely.spark.source.columns import check_asked
from timely.spark.source.connecting import connected_to
from timely.spark.source.options import EARLIEST, LATEST, SNAPSHOT
from timely.spark.source.plainly import plainly
from timely.spark.source.reading import OutputPartition, ReadPlan, read_partition
from timely.wire.requests import Describe, Forget

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.1 has none

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """What it is called later."""


__all__ = ["StreamReader"]

_BEFORE_ALL = -1
"""The offset of a stream that begins with a snapshot."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says on the driver which epochs there are, and reads them in tasks.

    It travels to tasks; its connections stay where they are.
    """

    def __init__(self, plan: ReadPlan, asked: T.StructType, epochs_max: int = 0) -> None:
        check_asked(plan.form, asked)
        if not plan.are_changes:
            raise MisuseError(
                "a stream of an output is its changes: say from where, .option('startingEpoch', 0), or "
                "'earliest', 'latest' or 'snapshot'"
            )
        self.plan = plan
        self.form = asked
        self._epochs_max = epochs_max
        self._target: int | None = None
        self._workers: RemoteWorkers | None = None
        self._place = _BEFORE_ALL

    def __getstate__(self) -> Mapping[str, object]:
        return {**vars(self), "_workers": None}

    # On the driver.

    def initialOffset(self) -> dict[str, int]:
        """Where a new stream begins."""
        with plainly():
            complete, kept = self._hold(None)
            words = {LATEST: complete, EARLIEST: kept, SNAPSHOT: _BEFORE_ALL}
            starting = self.plan.starting
            epoch = starting if isinstance(starting, int) else words[starting]
            self._hold(complete if epoch == _BEFORE_ALL else epoch)
            return {EPOCH: epoch}

    def latestOffset(self, start: Mapping[str, int] | None = None, limit: object = None) -> dict[str, int]:
        """Where a micro-batch that begins at `start` may end: before the first epoch that is not complete.
        PySpark 4.1 does not say where it begins.
        """
        del limit  # of rows, files or bytes; ours is of epochs
        with plainly():
            begin = self._place if start is None else start[EPOCH]
            complete, _ = self._hold(begin if start is not None and begin >= 0 else None)
            if self._target is not None:
                complete = min(complete, self._target)
            if self._epochs_max and begin >= 0:
                complete = min(complete, begin + self._epochs_max)
            return {EPOCH: max(begin, complete)}

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on nothing that comes is read."""
        with plainly():
            self._target, _ = self._hold(None)

    def reportLatestOffset(self) -> dict[str, int]:
        """For the progress of a query."""
        with plainly():
            return {EPOCH: self._hold(None)[0]}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[InputPartition]:
        """One for each worker."""
        with plainly():
            first, stop = start[EPOCH], end[EPOCH]
            self._place = stop
            self._hold(stop if first == _BEFORE_ALL else first)
            names = [name for name in self.form.names if first != _BEFORE_ALL or name != EPOCH]
            wanted = OutputSlice(
                self.plan.dataflow,
                self.plan.output,
                self.plan.reader,
                first,
                stop,
                tuple(names or [DIFF]),
                timeout_seconds=self.plan.timeout_seconds,
            )
            epoch = stop - 1 if first == _BEFORE_ALL else None
            at = self.plan.at
            return [OutputPartition(at.only(address), wanted, epoch) for address in at.addresses]

    def commit(self, end: Mapping[str, int]) -> None:
        """What is before `end` may be forgotten."""
        with plainly():
            plan, workers = self.plan, self._connected()
            self._place = end[EPOCH]
            forget = Forget(plan.dataflow, plan.output, plan.reader, end[EPOCH])
            workers.ask([(worker, forget, None) for worker in range(workers.count)])
            self._hold(end[EPOCH])

    def _connected(self) -> RemoteWorkers:
        """The workers, over connections that last as long as the query."""
        if self._workers is None:
            self._workers = connected_to(self.plan.at)
        return self._workers

    def _hold(self, epoch: int | None) -> tuple[int, int]:
        """Have the place at `epoch`, if one is given: the first epoch that is not complete, and the first
        that is kept. When nothing can come any more, the first is the one behind the last.
        """
        plan, workers = self.plan, self._connected()
        reader = "" if epoch is None else plan.reader
        complete, kept, last = hold_everywhere(
            workers, plan.dataflow, plan.output, reader, epoch or 0, READER_SECONDS_MAX
        )
        if complete >= FOREVER:
            (described,) = workers.ask([(0, Describe(plan.dataflow), None)])
            complete = max(last, described.integer("epoch"))
        return complete, kept

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
