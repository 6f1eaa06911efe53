"""The errors of the Spark side, as branches of the tree in `progress/errors.py`.

MisuseError
├─ InputFormatError       an input file, or a row of a DataFrame, is malformed
├─ OutputError            the output directory holds something else, or another run writes to it
├─ ScheduleError          Spark cannot run these workers as it is set up
└─ SparkStartError        no Java, one that is too old, or Spark did not start
PeerError                 an executor could not reach a worker, or lost it
├─ ClusterLostError       a task that hosted a worker is lost, and the cluster with it
└─ SparkLostError         the Java process of Spark ended

Users import all of them from `timely.spark`, and tracebacks show that name: `timely.spark.OutputError`.
"""

from __future__ import annotations

from timely.errors import MisuseError, PeerError, import_from

__all__ = [
    "ClusterLostError",
    "InputFormatError",
    "OutputError",
    "ScheduleError",
    "SparkLostError",
    "SparkStartError",
    "first_line",
]


_CALLING = "An error occurred while calling"
"""The beginning of Py4J's messages; their next line has the error."""


class InputFormatError(MisuseError):
    """Input cannot be read. The message names file and line (or column), and says how to mend it."""


class OutputError(MisuseError):
    """Results cannot be written there. The message names the directory and what is in the way."""


class ScheduleError(MisuseError):
    """Spark cannot run workers as it is set up. The message names the setting, and what it has to be."""


class SparkStartError(MisuseError):
    """Spark cannot start on this machine. The message names what is missing and how to get it."""


class SparkLostError(PeerError):
    """Spark's Java process ended while it was needed. The message says which process, and by what."""


class ClusterLostError(PeerError):
    """A worker, or the task of Spark that hosted it, is lost, and its cluster is over.

    The message says which, and by what; `restart` of the cluster starts another.
    """


import_from(
    "timely.spark",
    [ClusterLostError, InputFormatError, OutputError, ScheduleError, SparkLostError, SparkStartError],
)


def first_line(error: BaseException) -> str:
    """Return an error of Spark in one line: its innermost cause if it names one, without the Java stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    caused = [line for line in lines if line.startswith("Caused by:")]
    if lines[1:] and lines[0].startswith(_CALLING):
        lines = [lines[1].removeprefix(": ")]
    return (caused[-1:] or lines[:1] or [type(error).__name__])[0].removeprefix("Caused by:").strip()
