"""`format("naiad")`: what PySpark makes of the options, and hands to its workers.

PySpark makes an instance on the driver for each `load()`, asks it for its schema unless the user has given
one, and sends it, pickled, to the processes that plan a query. What is settled when it is made stays: so a
DataFrame is the output as of one epoch, however many queries are made of it, and twice in one query it is the
same.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource

from timely.errors import TimelyError
from timely.spark.source.options import SourceOptions
from timely.spark.source.plainly import plainly
from timely.spark.source.reading import OutputReader, ReadPlan, place_name, plan_of
from timely.spark.source.streaming import RefusedStream, StreamReader
from timely.spark.source.writing import BatchWriter, RefusedWriter, StreamWriter, plan_of_write

__all__ = ["NaiadSource", "register"]

_NAME = "naiad"
_ENDS_BATCHES = "python_streaming_sink_runner"
"""The module of PySpark that commits a batch of a stream, or gives it up: its processes do nothing else."""


class NaiadSource(DataSource):
    """A running cluster as a source and a sink of Spark."""

    _plan: ReadPlan | None = None

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        if "output" in options:  # to be read, and perhaps never asked for its schema
            self._planned()

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return _NAME

    def schema(self) -> T.StructType:
        """The columns of the output."""
        return self._planned().form

    def reader(self, schema: T.StructType) -> OutputReader:
        """For `spark.read`."""
        plan = self._planned()
        with plainly():
            return OutputReader(plan, schema)

    def streamReader(self, schema: T.StructType) -> StreamReader | RefusedStream:
        """For `spark.readStream`. What is wrong is said when it is first asked something: of an error that is
        raised here PySpark 4.3 tells that its own variable `reader` has no value.
        """
        try:
            options = SourceOptions.of(self.options)
            may_be_another = options.choice("restarted", ("refuse", "allow")) == "allow"
            epochs_max = options.count("epochsPerBatch", 0)
            # Two queries over one frame are not at the same place, though its plan is the same.
            plan = replace(self._planned(), reader=place_name(options))
            return StreamReader(plan, schema, epochs_max, may_be_another)
        except TimelyError as error:
            return RefusedStream(error)

    def writer(self, schema: T.StructType, overwrite: bool) -> BatchWriter:
        """For `df.write`."""
        with plainly():
            return BatchWriter(plan_of_write(SourceOptions.of(self.options), schema, overwrite))

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter | RefusedWriter:
        """For `df.writeStream`: when a batch begins, and once more when it ends."""
        with plainly():
            try:
                return StreamWriter(plan_of_write(SourceOptions.of(self.options), schema, overwrite))
            except TimelyError as error:
                if any(_ENDS_BATCHES in word for word in sys.argv):
                    return RefusedWriter(error)
                raise

    def _planned(self) -> ReadPlan:
        if self._plan is None:
            with plainly():
                self._plan = plan_of(SourceOptions.of(self.options))
        return self._plan


def register(spark: SparkSession) -> None:
    """Let a session know `format("naiad")`, where no installation has done so."""
    spark.dataSource.register(NaiadSource)
