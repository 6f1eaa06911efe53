"""The tree of a plan: nodes and expressions, as Spark writes them by `toJSON`.

Spark writes a tree as the list of its nodes, each before its children. Expressions are fields of nodes, and
plans of subqueries are fields of expressions, as such lists. An attribute is known by the number in its
`exprId`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from timely.user_code.call_site import CallSite

from ...errors import SqlError

__all__ = ["PlanReadings", "SparkNode", "spark_tree"]

_META: Final = frozenset((
    "class", "num-children", "qualifier", "metadata", "nonInheritableMetadataKeys", "explicitMetadata",
    "exprId", "resultId", "hint", "hints", "mutableAggBufferOffset", "inputAggBufferOffset", "evalMode",
    "evalContext", "failOnError", "ansiEnabled", "nullOnDivideByZero", "isTry", "replacement",
    "sameOrderExpressions", "stateId", "nameParts", "place",
))  # fmt: skip
"""Fields that need no reading: names that Spark shows, and what the session's rules are. `isTry` and `place`
are ours.
"""


@dataclass(frozen=True, eq=False)
class SparkNode:
    """A node of a plan, or an expression: the class of Spark that it is, its fields, and its children."""

    kind: str
    fields: Mapping[str, object]
    children: tuple[SparkNode, ...]

    @cached_property
    def id(self) -> int:
        """Return the number of the attribute that this expression is or makes."""
        return _number_of(self.fields.get("exprId"))

    def tree(self, name: str) -> SparkNode | None:
        """Return an expression or a plan that a field has; None if it has none."""
        flat = self.fields.get(name)
        return spark_tree(flat) if isinstance(flat, list) and flat else None

    def trees(self, name: str) -> list[SparkNode]:
        """Return the expressions of a field that is a list of them."""
        field = self.fields.get(name)
        return [spark_tree(each) for each in field] if isinstance(field, list) else []

    def chosen(self, name: str) -> str:
        """Return the name of the object that a field is: that of a kind of join, of a direction."""
        field = self.fields.get(name)
        if isinstance(field, Mapping):
            named = field.get("object") or field.get("product-class") or ""
            return str(named).rstrip("$").rpartition(".")[2].rpartition("$")[2]
        return str(field)

    def text(self, name: str) -> str:
        """Return a field as a text, "" if it is missing."""
        field = self.fields.get(name)
        return "" if field is None else str(field)

    @property
    def sites(self) -> list[CallSite]:
        """Return the place where this is written, as far as Spark knows it: one or none."""
        file, _, line = self.text("place").rpartition(":")
        return [CallSite(file, int(line))] if file else []

    def others(self, names: frozenset[str]) -> Iterator[str]:
        """Return the fields with a value that are neither `names` nor children, nor need reading."""
        for name, field in self.fields.items():
            if name in _META or name in names or field is None or field is False or field == []:
                continue
            is_child = isinstance(field, int) and not isinstance(field, bool)
            is_list = isinstance(field, list) and all(type(each) is int for each in field)
            if not (self.children and (is_child or is_list)):
                yield name

    @property
    def common(self) -> str:
        """Return which common expression this one defines or reads."""
        return f"common {json.dumps(self.fields.get('id'), sort_keys=True)}"

    @cached_property
    def written(self) -> str:
        """Return a text that two expressions share only if they say the same of the same attributes."""
        if self.kind == "AttributeReference":
            return f"#{self.id}"
        if self.kind == "Alias":
            return self.children[0].written
        if self.kind == "CommonExpressionRef":
            return self.common
        own = sorted(
            f"{name}={json.dumps(field, sort_keys=True)}"
            for name, field in self.fields.items()
            if (name not in _META or name == "isTry") and not isinstance(field, int)
        )
        return f"{self.kind}({', '.join([*own, *(each.written for each in self.children)])})"


def _number_of(expr_id: object) -> int:
    """Return the number of an `exprId`; -1 for none."""
    number = expr_id.get("id") if isinstance(expr_id, Mapping) else None
    return number if isinstance(number, int) else -1


def spark_tree(flat: object) -> SparkNode:
    """Return the tree whose nodes are in this list, each before its children."""
    nodes = iter(cast("list[Mapping[str, object]]", flat))
    root = _taken(nodes)
    assert next(nodes, None) is None, "a tree has one root"
    return root


def _taken(nodes: Iterator[Mapping[str, object]]) -> SparkNode:
    fields = next(nodes)
    count = fields.get("num-children", 0)
    assert isinstance(count, int)
    children = tuple(_taken(nodes) for _ in range(count))
    return SparkNode(str(fields["class"]).rpartition(".")[2].rstrip("$"), fields, children)


class PlanReadings:
    """What all readers of one plan share: how an error says where something stands.

    `where` returns the place of the first expression or node of a class, as far as Spark knows it; `zone` is
    the time zone of the session.
    """

    def __init__(self, where: Callable[[str], str], zone: str) -> None:
        self._where, self.zone = where, zone

    def error(self, node: SparkNode, message: str) -> SqlError:
        """Return an error with the place of a node."""
        place = node.text("place") or self._where(node.kind)
        return SqlError(f"{place}: {' '.join(message.split())}")

    def check(self, node: SparkNode, *names: str) -> None:
        """Raise SqlError if a node has a field that its reader does not name."""
        for name in node.others(frozenset(names)):
            raise self.error(node, f"{name} of Spark's {node.kind} is not supported here")
