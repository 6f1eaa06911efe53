"""Spark's data source for a running cluster: `format("naiad")` for `read`, `write`, `readStream`,
`writeStream`.

    spark.read.format("naiad").option("cluster", "host:7401").option("output", "components").load()

PySpark finds it by the module `pyspark_naiad` that an installation puts beside the packages. Without an
installation, with `PYTHONPATH` alone, call `register(spark)`. Rows go between executors and workers; the
driver only learns what must have arrived, and chooses the epoch to read.

Read the files in this order:

    options.py       the options of `.option(…)`
    connecting.py    the only file that opens connections
    columns.py       the columns of an input or output, and those of a DataFrame
    reading.py       an output at one epoch, or its changes
    offsets.py       the offset of a stream, and whether the stream can go on there
    streaming.py     an output as a stream: an offset is an epoch
    writing.py       a DataFrame or a stream into an input: a batch is an epoch
    data_source.py   the data source itself
    plainly.py       an error in one line, without a traceback before it
"""

from timely.spark.source.data_source import NaiadSource, register

__all__ = ["NaiadSource", "register"]
