"""`format("naiad")`: the data source that PySpark creates from the options, and sends to its processes.

PySpark creates an instance on the driver for each `load()`, asks it for its schema unless the user has set
one, and sends it, pickled, to the processes that plan a query. The plan is made with the instance and stays:
so a DataFrame is the output as of one epoch, in all queries over it, and also if it occurs twice in one
query.
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
from timely.spark.source.reading import OutputReader, ReadPlan, plan_of, position_name
from timely.spark.source.streaming import RefusedStream, StreamReader
from timely.spark.source.writing import BatchWriter, RefusedWriter, StreamWriter, plan_of_write

__all__ = ["NaiadSource", "register"]

_NAME = "naiad"
_ENDS_BATCHES = "python_streaming_sink_runner"
"""The module of PySpark whose processes commit a batch of a stream, or give it up, and do nothing else."""


class NaiadSource(DataSource):
    """A running cluster as a source and a sink of Spark."""

    _plan: ReadPlan | None = None

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        if "output" in options:  # for reading: plan now, since PySpark may never call `schema`
            self._planned()

    @classmethod
    def name(cls) -> str:
        """The name for `format(…)`."""
        return _NAME

    def schema(self) -> T.StructType:
        """Return the columns of the output."""
        return self._planned().form

    def reader(self, schema: T.StructType) -> OutputReader:
        """Return the reader for `spark.read`."""
        plan = self._planned()
        with plainly():
            return OutputReader(plan, schema)

    def streamReader(self, schema: T.StructType) -> StreamReader | RefusedStream:
        """Return the reader for `spark.readStream`; after an error, one whose methods raise it. If this
        method raised it, PySpark 4.3 would report that its own variable `reader` has no value.
        """
        try:
            options = SourceOptions.of(self.options)
            may_be_another = options.choice("restarted", ("refuse", "allow")) == "allow"
            epochs_max = options.count("epochsPerBatch", 0)
            # Two queries over one frame have the same plan, but need positions of their own.
            plan = replace(self._planned(), reader=position_name(options))
            return StreamReader(plan, schema, epochs_max, may_be_another)
        except TimelyError as error:
            return RefusedStream(error)

    def writer(self, schema: T.StructType, overwrite: bool) -> BatchWriter:
        """Return the writer for `df.write`."""
        with plainly():
            return BatchWriter(plan_of_write(SourceOptions.of(self.options), schema, overwrite))

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamWriter | RefusedWriter:
        """Return the writer for `df.writeStream`; called when a batch begins, and once more when it ends."""
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
    """Register `format("naiad")` with a session; needed without an installation."""
    spark.dataSource.register(NaiadSource)
