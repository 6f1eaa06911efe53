"""Spark's door to a running cluster: `format("naiad")` for `read`, `write`, `readStream` and `writeStream`.

    spark.read.format("naiad").option("cluster", "host:7401").option("output", "components").load()

PySpark finds it by the module `pyspark_naiad` that an installation puts beside the packages. Where there is
none, with `PYTHONPATH` alone, `register(spark)` does the same. Rows go between executors and workers; the
driver only learns what must have arrived, and says which epoch is read.

Read in this order:

    options.py       what `.option(…)` may say
    connecting.py    the one place where a connection is opened
    columns.py       the columns of an input or output, and those of a DataFrame
    reading.py       an output at one epoch, or its changes
    offsets.py       where a stream is, and whether it can go on there
    streaming.py     the same as a stream: an offset is an epoch
    writing.py       a DataFrame or a stream into an input: a batch is an epoch
    data_source.py   the door itself
    plainly.py       an error in one line, without a traceback before it
"""

from timely.spark.source.data_source import NaiadSource, register

__all__ = ["NaiadSource", "register"]
