"""The columns of relations.

An *attribute* is a column with an identity: its name is unique within a query, however often a table is read.
Expressions name attributes, so that a subquery that reads a column of the query around it just names it. A
relation's *free* names are those that it reads and does not make: its correlation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...columns.column_types import ColumnType
from ...columns.schema import Column, Schema

__all__ = ["Attribute", "AttributeNames", "schema_of"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a relation: a unique name, the label that a user sees, and a type."""

    name: str
    label: str
    type: ColumnType
    is_untyped: bool = False
    """True for NULL without a type, which takes the type of whatever it meets."""

    def or_null(self, nullable: bool = True) -> Attribute:
        """Return the same attribute, nullable."""
        return replace(self, type=self.type.or_null(nullable))


class AttributeNames:
    """Makes names that no other attribute of a query has, in the same order in every process."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._made: set[str] = set()

    def fresh(self, label: str) -> str:
        """Return the label itself, if no attribute has it yet, or the label with a number."""
        base = label.partition("#")[0]
        number = self._numbers.get(base, 0) + 1
        while (name := base if number == 1 else f"{base}#{number}") in self._made:
            number += 1
        self._numbers[base] = number
        self._made.add(name)
        return name

    def attribute(self, label: str, type_: ColumnType, *, is_untyped: bool = False) -> Attribute:
        """Return a new attribute."""
        return Attribute(self.fresh(label), label, type_, is_untyped)


def schema_of(attributes: Iterable[Attribute]) -> Schema:
    """Return the columns by their unique names."""
    return Schema(tuple(Column(each.name, each.type) for each in attributes))
