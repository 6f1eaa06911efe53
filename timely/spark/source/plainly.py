"""Report our errors in one line, without the traceback of PySpark's worker before it.

PySpark sends an error of a data source from a Python process to the driver as text, by default with a
traceback of files that the user has never opened. It leaves the traceback out if an environment variable says
so. These processes end with the error, so no other error loses its traceback.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from progress.errors import TimelyError

__all__ = ["plainly"]

_HIDDEN = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plainly() -> Iterator[None]:
    """Inside, let PySpark report our errors without a traceback, and other errors with it."""
    try:
        yield
    except TimelyError as error:
        os.environ[_HIDDEN] = "1"
        vars(error).pop("__notes__", None)  # notes, such as the worker's number, are more lines
        raise
