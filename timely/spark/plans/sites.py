"""Where an expression stands in the user's program or text, as far as Spark has noted it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # as it comes
from pyspark.errors import PySparkException

from .left_out import SUBQUERIES, JavaTree, is_so, java_items

__all__ = ["place_of"]


def place_of(plan: JavaTree, kind: str, default: str) -> str:
    """Return the place of the first expression or node of this class; `default` if Spark knows none."""
    try:
        return next(filter(None, (_noted(each, default) for each in _of_kind(plan, kind))), default)
    except (Py4JError, PySparkException):  # another version of Spark notes it elsewhere
        return default


def _of_kind(plan: JavaTree, kind: str) -> Iterator[JavaTree]:
    if _kind(plan) == kind:
        yield plan
    for expression in java_items(plan.expressions()):
        yield from _inside(expression, kind)
    for child in java_items(plan.children()):
        yield from _of_kind(child, kind)


def _inside(expression: JavaTree, kind: str) -> Iterator[JavaTree]:
    own = _kind(expression)
    if own == kind:
        yield expression
    if own in SUBQUERIES:
        yield from _of_kind(expression.plan(), kind)
        return
    for child in java_items(expression.children()):
        yield from _inside(child, kind)


def _kind(java: JavaTree) -> str:
    return str(java.productPrefix())


def _noted(java: JavaTree, default: str) -> str:
    """Return the place that Spark has noted for an expression: of a text, or the call in Python."""
    origin = java.origin()
    if is_so(origin.pysparkErrorContext().isDefined()):
        return str(origin.pysparkErrorContext().get()._2())
    if not is_so(origin.line().isDefined()):
        return ""
    column = cast("int", origin.startPosition().get()) if is_so(origin.startPosition().isDefined()) else 0
    if default.startswith("<sql>"):
        return f"<sql>:{origin.line().get()}:{column + 1}"
    text = str(origin.sqlText().get()) if is_so(origin.sqlText().isDefined()) else ""
    return f"{default}, {text:.60}, column {column + 1}"
