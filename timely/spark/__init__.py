"""Spark in and Spark out: epochs from DataFrames to a running cluster, outputs back as DataFrames and
Parquet.

Spark is the data pipeline; it does not run the dataflow, though workers may be tasks of Spark. This is the
only folder of the packages that imports PySpark; it also imports `progress` and `timely`. Its public names
are imported at their first use, because `java` must start without importing PySpark. PySpark, pandas and Java
are an extra of the installation: `pip install 'naiad[spark]'`.

Read the files in this order, in which rows pass through them:

    java.py, session.py      a quiet local Spark with any suitable Java of the machine
    archive.py               an archive of Spark's classes, with which its start is half the work
    lost.py                  the Java process of Spark ended: raise one error, and end the rest of Spark
    windows.py               the rows that enter and leave a sliding window in each epoch
    epochs.py                rows with an epoch, checked and laid out for sending
    delivering.py            executors send rows to the workers; the driver learns what must have arrived
    feeds/                   rows that say what happened to other rows, as those of an input
    frames.py                Arrow tables as DataFrames, with all their rows
    sink.py                  changes as Parquet, one commit for each epoch; output_folder.py guards the folder
    stopping.py              a signal ends a driver as an error does
    plans/                   queries in Spark's words: SQL texts, functions of DataFrames
    jobs/                    all of it in one call: `timely.spark.run`
    scheduled/               workers as tasks of Spark: `timely.spark.cluster`
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timely.spark.epochs import DiffError
    from timely.spark.errors import (
        ClusterLostError,
        InputFormatError,
        OutputError,
        ScheduleError,
        SparkLostError,
        SparkStartError,
    )
    from timely.spark.feeds.change_feed import change_feed
    from timely.spark.jobs.micro_batches import micro_batches
    from timely.spark.jobs.outputs import Epoch, to_callback, to_parquet, to_table
    from timely.spark.jobs.run import keep, run
    from timely.spark.jobs.spans import growing, sliding, tumbling
    from timely.spark.plans.marking import dataframes
    from timely.spark.scheduled.starting import cluster

__all__ = [
    "ClusterLostError",
    "DiffError",
    "Epoch",
    "InputFormatError",
    "OutputError",
    "ScheduleError",
    "SparkLostError",
    "SparkStartError",
    "change_feed",
    "cluster",
    "dataframes",
    "growing",
    "keep",
    "micro_batches",
    "run",
    "sliding",
    "to_callback",
    "to_parquet",
    "to_table",
    "tumbling",
]

_missing = [name for name in ("pyspark", "pandas") if find_spec(name) is None]
if _missing:
    raise ImportError(
        f"timely.spark needs {' and '.join(_missing)}, which the installation left out: "
        "pip install 'naiad[spark]'. The rest of timely, and differential, do without"
    )

_OFFERED = {
    "ClusterLostError": "errors",
    "DiffError": "epochs",
    "Epoch": "jobs.outputs",
    "InputFormatError": "errors",
    "OutputError": "errors",
    "ScheduleError": "errors",
    "SparkLostError": "errors",
    "SparkStartError": "errors",
    "change_feed": "feeds.change_feed",
    "cluster": "scheduled.starting",
    "dataframes": "plans.marking",
    "growing": "jobs.spans",
    "keep": "jobs.run",
    "micro_batches": "jobs.micro_batches",
    "run": "jobs.run",
    "sliding": "jobs.spans",
    "to_callback": "jobs.outputs",
    "to_parquet": "jobs.outputs",
    "to_table": "jobs.outputs",
    "tumbling": "jobs.spans",
}
"""The public names, and the file that defines each."""


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"timely.spark has no {name!r}: there are {', '.join(__all__)}")
    return getattr(import_module(f"timely.spark.{_OFFERED[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
