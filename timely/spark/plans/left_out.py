"""What Spark's JSON of a plan leaves out, asked of the plan itself.

JSON has null for the projections of an Expand, the values of a pivot, the escape of a LIKE, the numbers of
expressions that are read twice (BETWEEN, NULLIF), and the mode of a cast: it does not tell `try_cast` from
`cast`. So the tree of JSON and the tree in Java are walked together,
wherever there is such a part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, cast

from timely.errors import InternalError, MisuseError

__all__ = [
    "SUBQUERIES",
    "Fields",
    "JavaTree",
    "JsonNode",
    "completed_expressions",
    "expressions_of",
    "flat",
    "is_so",
    "java_items",
    "nested",
]

Fields: TypeAlias = dict[str, object]

SUBQUERIES: Final = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")
_COMMON: Final = ("CommonExpressionDef", "CommonExpressionRef")
_TRY: Final = re.compile(r"\btry_(?!to_|element_at|parse|divide|add|subtract|multiply|mod)\w+\(", re.I)


class JavaTree(Protocol):
    """A plan or an expression in Java: py4j calls any of its methods."""

    def __getattr__(self, name: str) -> Callable[..., JavaTree]: ...  # type: ignore[explicit-any]  # any method


@dataclass
class JsonNode:
    """A node of a plan or an expression as JSON has it, whose fields can be completed."""

    fields: Fields
    children: list[JsonNode] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Return the class of Spark, without its package."""
        return str(self.fields["class"]).rpartition(".")[2].rstrip("$")

    def has(self, *kinds: str) -> bool:
        """Return True if this or a node beneath is of one of these classes."""
        return self.kind in kinds or any(each.has(*kinds) for each in self.children)


def nested(nodes: object) -> JsonNode:
    """Return the tree whose nodes are in this list, each before its children."""
    rest = iter(cast("list[Fields]", nodes))

    def taken() -> JsonNode:
        fields = next(rest)
        return JsonNode(fields, [taken() for _ in range(cast("int", fields.get("num-children", 0)))])

    return taken()


def flat(node: JsonNode) -> list[Fields]:
    """Return the nodes of a tree, each before its children."""
    node.fields["num-children"] = len(node.children)
    return [node.fields, *(fields for child in node.children for fields in flat(child))]


def is_so(reply: JavaTree) -> bool:
    """Return a reply of Java's that is true or false."""
    return bool(cast("bool", reply))


def java_items(sequence: JavaTree) -> Iterator[JavaTree]:
    """Return the members of a sequence of Scala's."""
    count = cast("int", sequence.size())
    return (sequence.apply(place) for place in range(count))


_Plans: TypeAlias = Callable[[JsonNode, JavaTree], JsonNode]
"""Completes the plan of a subquery."""


def completed_expressions(node: JsonNode, java: JavaTree, plans: _Plans) -> None:
    """Complete the expressions that a node of a plan has itself."""
    if node.kind == "Expand":
        projections = [list(java_items(each)) for each in java_items(java.projections())]
        node.fields["projections"] = [[_of_java(each, plans) for each in row] for row in projections]
        return
    lists = list(_expression_lists(node.fields))
    sought = ("Cast", "Sum", "Average", "PivotFirst", "Like", "ILike", "With", *SUBQUERIES)
    if not any(nested(each).has(*sought) for _, _, each in lists):
        return
    expressions = list(java_items(java.expressions()))
    if len(expressions) != len(lists):
        raise InternalError(f"{node.kind}: {len(lists)} expressions in JSON, {len(expressions)} in the plan")
    for (name, place, nodes), expression in zip(lists, expressions, strict=True):
        completed = flat(_completed(nested(nodes), expression, plans))
        if place < 0:
            node.fields[name] = completed
        else:
            cast("list[object]", node.fields[name])[place] = completed


def expressions_of(node: JsonNode) -> list[list[Fields]]:
    """Return the expressions that a node of a plan has itself, each as a list of its nodes; those of an
    Expand, which JSON leaves out, are not among them.
    """
    lists = [] if node.kind == "Expand" else _expression_lists(node.fields)
    return [cast("list[Fields]", each) for _, _, each in lists]


def _of_java(expression: JavaTree, plans: _Plans) -> list[Fields]:
    return flat(_completed(nested(json.loads(str(expression.toJSON()))), expression, plans))


def _expression_lists(fields: Mapping[str, object]) -> Iterator[tuple[str, int, object]]:
    """Return the expressions that a node has, each with its field and the place in it; -1: all of it."""
    for name, entry in fields.items():
        if isinstance(entry, list) and entry and isinstance(entry[0], dict) and "class" in entry[0]:
            yield name, -1, entry
        elif isinstance(entry, list) and entry and isinstance(entry[0], list):
            yield from ((name, place, each) for place, each in enumerate(entry))


def _completed(node: JsonNode, java: JavaTree, plans: _Plans) -> JsonNode:
    has_try = node.has("Cast", "Sum", "Average") and _TRY.search(str(java.sql())) is not None
    _complete(node, java, plans, has_try=has_try)
    return node


def _complete(node: JsonNode, java: JavaTree, plans: _Plans, *, has_try: bool) -> None:
    sought = (
        "PivotFirst",
        "Like",
        "ILike",
        *_COMMON,
        *SUBQUERIES,
        *(("Cast", "Sum", "Average") if has_try else ()),
    )
    if not node.has(*sought):
        return
    if node.kind in SUBQUERIES:
        node.fields["plan"] = flat(plans(nested(node.fields["plan"]), java.plan()))
    elif node.kind == "PivotFirst":
        node.fields["pivotColumnValues"] = [_shown(each) for each in java_items(java.pivotColumnValues())]
        node.fields["pivotType"] = node.children[0].fields["dataType"]
    elif node.kind in _COMMON:
        node.fields["id"] = cast("int", java.id().id())
    elif node.kind in ("Like", "ILike"):
        node.fields["escapeChar"] = str(java.escapeChar())
    elif node.kind == "Cast" and has_try:
        node.fields["isTry"] = str(java.evalMode()) == "TRY"
    elif node.kind in ("Sum", "Average") and has_try and str(java.prettyName()).startswith("try_"):
        raise MisuseError(f"{java.prettyName()} is not supported: write {str(java.prettyName())[4:]}")
    if node.kind in SUBQUERIES:
        return
    children = list(java_items(java.children()))
    if len(children) != len(node.children):
        raise InternalError(
            f"{node.kind} has {len(node.children)} parts in JSON, {len(children)} in the plan"
        )
    for child, other in zip(node.children, children, strict=True):
        _complete(child, other, plans, has_try=has_try)


def _shown(constant: object) -> str | None:
    return None if constant is None else str(constant)
