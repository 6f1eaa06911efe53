"""Error messages for arguments, operators, items, columns and conditions written as in other libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short
from timely.user_code.spellings import like

from ..errors import SchemaError

__all__ = [
    "explain_item",
    "explain_operator",
    "item_of_expression",
    "meant",
    "of_another_library",
    "written_as",
]

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARIES: Final = {"pyspark": "PySpark", "polars": "Polars"}
_EXPRESSIONS: Final = ("Column", "Expr", "Then")
_OPERATORS: Final = {
    "+": "a.concat(b)",
    "-": "a.subtract(b), each row once, or a.except_all(b), which counts them",
    "|": "a.concat(b).distinct()",
    "&": "a.intersect(b)",
    "in": "'x' in a.columns, for a column; rows are joined: a.join(b, on='key', how='semi')",
    "iteration": "a.output('name'), and read flow.output('name'): a dataflow is built here, not run",
    "len()": "agg(n=dd.count()), which is kept up to date",
}


def explain_item(key: object) -> str:
    """Return the message of the error for `collection[key]`, where `key` is no column, list or condition."""
    return f"a collection has no [{key!r:.80}]: it is no list. For some of its rows write filter(col.x > 1)"


def item_of_expression(written: str, key: object) -> str:
    """Return the message of the error for `x[key]`, where `written` is `x`."""
    if isinstance(key, slice):
        return f"{written}[a:b] is no expression. Write instead: {written}.str.slice(offset, length)"
    part = f"field({key!r})" if isinstance(key, str) else f"get({key!r})"
    return f"{written}[{key!r}] is no expression. Write instead: {written}.list.{part}"


def meant(name: object, names: Sequence[str]) -> str:
    """Return a sentence, after a space, that suggests which of `names` the user may mean by `name`.

    Returns "" if none is like it.
    """
    if name == "*":
        return " For all columns write select('*'), for all rows dd.count()."
    if name == "window" and {"window_start", "window_end"} <= set(names):
        return " Spark's window is two columns here: 'window_start' and 'window_end'."
    side, _, column = name.partition(".") if isinstance(name, str) else ("", "", "")
    if column in names and side.isidentifier():
        return f" The column of a side is {side}.{column}, where {side} = rows.alias({side!r})."
    return like(name, names).removeprefix(".")


def explain_operator(operator: str) -> str:
    """Return the message of the error for an operator between collections, as in `a + b`."""
    return f"collections have no {operator}. Write {_OPERATORS[operator]}"


def of_another_library(value: object) -> str | None:
    """Return the sentence about a column or expression of PySpark or Polars; None for any other value."""
    library = _LIBRARIES.get(type(value).__module__.partition(".")[0])
    if library is None or type(value).__name__ not in _EXPRESSIONS:
        return None
    kind = type(value).__name__
    sentence = (
        f"is {'an' if kind == 'Expr' else 'a'} {kind} of {library}, and no expression of a query. Write it "
        "with differential: col.x is the column, dd.sum('x') or dd.upper(col.x) what is made of it"
    )
    if library == "PySpark":
        sentence += "; or let F be `from differential import functions as F`, which has PySpark's functions"
    return sentence


def written_as(usage: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of operators that answers wrong arguments with a SchemaError that shows `usage`.

    Arguments may be wrong because they are those of another library.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise SchemaError(
                    f"{function.__name__} ({call_site()}): {error}. Write instead: {usage}"
                ) from None
            return function(*args, **named)

        return short(checked)

    return decorated
