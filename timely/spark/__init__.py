"""Spark in and Spark out: epochs from DataFrames to a running cluster, outputs back as DataFrames and
Parquet.

Spark is the data pipeline; it does not run the dataflow, though workers may be tasks of it. Imports
`progress`, `timely` and PySpark, and is the only folder of the packages that imports PySpark. What it offers
is imported when it is first asked for, because `java` must start without importing PySpark. PySpark, pandas
and Java are an extra of the installation: `pip install 'naiad[spark]'`.

Read in this order, which is the order in which rows pass:

    java.py, session.py      a quiet local Spark with whatever Java there is
    archive.py               Spark's classes, kept so that it starts with half the work
    lost.py                  its Java process ended: one error, and the end of what is left
    windows.py               what enters and leaves a sliding window in each epoch
    epochs.py                rows with an epoch, checked and laid out for sending
    delivering.py            executors send them to the workers; the driver learns what must have arrived
    frames.py                Arrow tables as DataFrames, with all their rows
    sink.py                  changes as Parquet, one commit for each epoch; output_folder.py guards the folder
    stopping.py              a signal ends a driver as an error does
    jobs/                    all of it in one call: `timely.spark.run`
    scheduled/               workers as tasks of Spark: `timely.spark.cluster`
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timely.spark.jobs.micro_batches import micro_batches
    from timely.spark.jobs.outputs import Epoch, to_callback, to_parquet, to_table
    from timely.spark.jobs.run import run
    from timely.spark.jobs.spans import growing, sliding, tumbling
    from timely.spark.scheduled.starting import cluster

__all__ = [
    "Epoch",
    "cluster",
    "growing",
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
    "Epoch": "jobs.outputs",
    "cluster": "scheduled.starting",
    "growing": "jobs.spans",
    "micro_batches": "jobs.micro_batches",
    "run": "jobs.run",
    "sliding": "jobs.spans",
    "to_callback": "jobs.outputs",
    "to_parquet": "jobs.outputs",
    "to_table": "jobs.outputs",
    "tumbling": "jobs.spans",
}
"""What is offered, and the file that has it."""


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"timely.spark has no {name!r}: there are {', '.join(__all__)}")
    return getattr(import_module(f"timely.spark.{_OFFERED[name]}"), name)
