"""The mark of a function of DataFrames."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from timely.errors import MisuseError

__all__ = ["dataframes", "is_of_frames", "is_text"]

P = ParamSpec("P")
R = TypeVar("R")

_MARK: Final = "_timely_spark_dataframes"
_BUILDER: Final = re.compile(r"\s*[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\s*")


def dataframes(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function of DataFrames as a query for `timely.spark.run`; the function stays as it is.

        @timely.spark.dataframes
        def revenue(orders):
            return orders.groupBy("customer").agg(F.sum("cents").alias("cents"))

    `run` calls it once, with DataFrames that have the inputs' columns and no rows, and reads the plan that
    Spark makes of what it returns: a DataFrame, a tuple of them, or a dict of them by the names of outputs.
    Its parameters are called as the inputs are. To mark a function of another module, write
    `dataframes(function)` in the call of `run`.

    Raises MisuseError for what cannot be called, and cannot be marked.
    """
    if not callable(function):
        raise MisuseError(f"timely.spark.dataframes marks a function of DataFrames, not {function!r:.60}")
    try:
        setattr(function, _MARK, True)
    except AttributeError:
        raise MisuseError(
            f"timely.spark.dataframes cannot mark {function!r:.60}: write a function that calls it"
        ) from None
    return function


def is_text(query: object) -> bool:
    """Return True for a SQL text; "module:function" names a builder."""
    return isinstance(query, str) and _BUILDER.fullmatch(query) is None


def is_of_frames(query: object) -> bool:
    """Return True for a SQL text, and for a function that `dataframes` has marked."""
    return is_text(query) or bool(getattr(query, _MARK, False))
