"""Where an expression stands in the user's program or text, as far as Spark has noted it.

Spark notes the call in Python for operators (`a / b`, `x.cast("int")`), and the place in the text for texts.
It notes nothing for most functions of `pyspark.sql.functions`, and nothing for the methods of DataFrames.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # as it comes
from pyspark.errors import PySparkException

from .left_out import SUBQUERIES, Fields, JavaTree, JsonNode, is_so, java_items

__all__ = ["note_places", "place_of"]

_PLACE: Final = "place"
"""The field of a node or an expression that has its place: a text with two parts, for a file and a line."""
_SURE: Final = frozenset((
    "AttributeReference", "OuterReference", "Literal", "And", "Or", "Not", "IsNull", "IsNotNull",
    "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "In",
    "Alias", "SortOrder", "CaseWhen", "If", "Coalesce", "AggregateExpression", "Count", "Sum", "Min", "Max",
))  # fmt: skip
"""Expressions that fail in no row. Spark is asked for the places of all others."""
_IN_PYTHON: Final = re.compile(r"Some\(\(\w+,(.+):([0-9]+)\)\),?[^,]*\)$")
_IN_TEXT: Final = re.compile(
    r"Origin\(Some\(([0-9]+)\),Some\(([0-9]+)\),[^,]*,[^,]*,(?:None|Some\((.*)\))(?:,[^,]*){5}\)$", re.DOTALL
)
_SHOWN_MAX: Final = 60
"""So many characters of a text are shown."""
_ASKED_MAX: Final = 3
"""If a node has no place itself, Spark is asked for those of so many of its expressions."""


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


def note_places(node: JsonNode, expressions: list[list[Fields]], java: JavaTree, default: str) -> None:
    """Note the places of a node of a plan, and of those of its expressions in which a row may fail.

    `expressions` are those of the node, in the order of Java's; `default` is the place of the query.
    """
    try:
        own = _place(java, default)
        theirs = list(java_items(java.expressions())) if expressions else []
        if len(theirs) == len(expressions):
            for nodes, expression in zip(expressions, theirs, strict=True):
                _note(_Rest(nodes), expression, default, own)
        own = own or next(filter(None, (_place(each, default) for each in theirs[:_ASKED_MAX])), "")
    except (Py4JError, PySparkException):  # another version of Spark notes it elsewhere
        return
    if own:
        node.fields[_PLACE] = own


class _Rest:
    """The rest of a list of nodes, each before its children; `ends` has where the subtree of each ends."""

    def __init__(self, nodes: list[Fields]) -> None:
        self.nodes, self.place = nodes, 0
        self.ends = [0] * len(nodes)
        for place in reversed(range(len(nodes))):
            end = place + 1
            for _ in range(cast("int", nodes[place].get("num-children", 0))):
                end = self.ends[end]
            self.ends[place] = end

    def may_fail(self) -> bool:
        """Return True if the value of the subtree at the place may fail in a row."""
        return any(_class(each) not in _SURE for each in self.nodes[self.place : self.ends[self.place]])


def _note(rest: _Rest, java: JavaTree, default: str, inherited: str) -> None:
    if not rest.may_fail():
        rest.place = rest.ends[rest.place]
        return
    fields = rest.nodes[rest.place]
    kind, place = _class(fields), inherited
    if kind not in _SURE or kind == "Alias":
        place = _place(java, default) or inherited
        if place:
            fields[_PLACE] = place
    if kind in SUBQUERIES:  # the nodes of its plan have places of their own
        rest.place = rest.ends[rest.place]
        return
    rest.place += 1
    if fields.get("num-children", 0):
        for child in java_items(java.children()):
            _note(rest, child, default, place)


def _class(fields: Fields) -> str:
    return str(fields["class"]).rpartition(".")[2].rstrip("$")


def _place(java: JavaTree, default: str) -> str:
    """Return the place that Spark has noted, from how it writes an origin: one call for all of its parts."""
    written = str(java.origin().toString())
    in_text = _IN_TEXT.match(written)
    if in_text is None:
        in_python = _IN_PYTHON.search(written)
        return "" if in_python is None else f"{in_python[1]}:{in_python[2]}"
    line, column = int(in_text[1]), int(in_text[2]) + 1
    if default.startswith("<sql>"):
        return f"<sql>:{line}:{column}"
    text = " ".join((in_text[3] or "").split())[:_SHOWN_MAX]
    return f"{default}, {text} at {line}:{column}"
