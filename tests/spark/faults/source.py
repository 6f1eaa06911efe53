"""`format("faulty")`: the data source of naiad, with points at which faults strike.

In tasks: before each batch of rows, after the last, and while an output is read. In the helpers of the
driver's Java: before and after a commit, when a micro-batch is planned, and before epochs are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as T
from pyspark.sql.datasource import InputPartition, WriterCommitMessage

from timely.spark.delivering import Staged
from timely.spark.source.data_source import NaiadSource
from timely.spark.source.offsets import Offset
from timely.spark.source.reading import OutputPartition, ReadPlan
from timely.spark.source.streaming import StreamReader
from timely.spark.source.writing import StreamWriter, WritePlan

from .striking import Strikes

__all__ = ["FaultySource"]

_ROWS_PER_PART = 5


class FaultySource(NaiadSource):
    """Takes the options of naiad, and `strikes`."""

    @classmethod
    def name(cls) -> str:
        """See `DataSource`."""
        return "faulty"

    def streamReader(self, schema: T.StructType) -> StreamReader:
        """See `DataSource`."""
        made = super().streamReader(schema)
        assert isinstance(made, StreamReader)
        return _Reader(made.plan, schema, 2, self._strikes())

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter:
        """See `DataSource`."""
        made = super().streamWriter(schema, overwrite)
        assert isinstance(made, StreamWriter)
        return _Writer(replace(made.plan, rows_per_part=_ROWS_PER_PART), self._strikes())

    def _strikes(self) -> Strikes:
        return Strikes.from_text(self.options["strikes"])


class _Writer(StreamWriter):
    def __init__(self, plan: WritePlan, strikes: Strikes) -> None:
        super().__init__(plan)
        self.strikes = strikes

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = TaskContext.get()
        assert context is not None
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        epoch = range(batch, batch + 1)

        def watched() -> Iterator[pa.RecordBatch]:
            for number, rows in enumerate(iterator):
                self.strikes.at("stage", epoch, number)
                yield rows

        staged = super().write(watched())
        self.strikes.at("task done", epoch)
        return staged

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        epoch = range(batchId, batchId + 1)
        self.strikes.at("staged", epoch)
        super().commit(messages, batchId)
        self.strikes.at("committed", epoch)


class _Reader(StreamReader):
    def __init__(self, plan: ReadPlan, asked: T.StructType, epochs_max: int, strikes: Strikes) -> None:
        super().__init__(plan, asked, epochs_max)
        self.strikes = strikes

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> Sequence[InputPartition]:
        planned = super().partitions(start, end)
        self.strikes.at("planned", range(Offset.of(start).epoch, Offset.of(end).epoch))
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, OutputPartition)
        epochs = range(partition.output_slice.start, partition.output_slice.stop)
        self.strikes.at("read", epochs)
        yield from super().read(partition)
        self.strikes.at("was read", epochs)

    def commit(self, end: Mapping[str, object]) -> None:
        self.strikes.at("forgets", range(Offset.of(end).epoch))
        super().commit(end)
