"""An error in one line: what we refuse is said as it is, without the traceback of PySpark's worker before it.

What a data source raises goes from a Python process of Spark to its driver as text, by default with a
traceback of files that the user has never opened. PySpark leaves it out where its environment says so; these
processes end with the error, so that nothing else loses its traceback.
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
    """What is raised inside of our kind is told without a traceback; anything else with it."""
    try:
        yield
    except TimelyError as error:
        os.environ[_HIDDEN] = "1"
        vars(error).pop("__notes__", None)  # which worker has said it, for one: more lines
        raise
