"""Which column a name means: of the tables of this query, or of the queries around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ....expressions.expression import ColumnRef
from ...algebra.attributes import Attribute
from .values import Value

__all__ = ["ELEMENT", "AmbiguousName", "ColumnsOf", "NameScope", "same_name", "value_of"]


ELEMENT: Final = "(element of SELECT)"
"""The column of a list that SELECT takes apart (`lists_of_select.py`). No text has this name: it would write
it in quotes, and without these spaces and parentheses.
"""


class AmbiguousName(Exception):  # caught by the reader, which knows the place
    """A name means a column of more than one table."""


def same_name(one: str, other: str) -> bool:
    """Return True if two names are the same in SQL, where letters' case does not matter."""
    return one == other or one.lower() == other.lower()


def value_of(attribute: Attribute) -> Value:
    """Return a column as a value."""
    return Value(ColumnRef(attribute.name), attribute.type, attribute.is_untyped)


@dataclass(frozen=True)
class ColumnsOf:
    """A table, a subquery or a WITH of FROM under its alias. `hidden` columns are behind USING."""

    alias: str
    columns: tuple[Attribute, ...]
    hidden: frozenset[str] = frozenset()

    def find(self, label: str) -> list[Attribute]:
        """Return the columns of that name."""
        return [each for each in self.columns if same_name(each.label, label)]


@dataclass
class NameScope:
    """The sources of one FROM, and the scope of the query around it."""

    sources: list[ColumnsOf] = field(default_factory=list)
    merged: list[tuple[str, Value]] = field(default_factory=list)
    """Columns of USING and NATURAL, which stand for those of both sides."""
    parent: NameScope | None = None

    def column(self, label: str, table: str | None) -> Value | None:
        """Return the column of that name, from the innermost scope that has it; None if none has.

        Raises AmbiguousName.
        """
        scope: NameScope | None = self
        while scope is not None:
            outcome = scope.own(label, table)
            if outcome is not None:
                return outcome
            scope = scope.parent
        return None

    def own(self, label: str, table: str | None) -> Value | None:
        """Return the column of that name in this scope alone."""
        if table is None:
            for name, value in self.merged:
                if same_name(name, label):
                    return value
        outcome = [
            attribute
            for source in self.sources
            if table is None or same_name(source.alias, table)
            for attribute in source.find(label)
            if table is not None or attribute.name not in source.hidden
        ]
        if len(outcome) > 1:
            raise AmbiguousName
        return value_of(outcome[0]) if outcome else None

    def has_table(self, table: str) -> bool:
        """Return True if a source of this scope has that alias."""
        return any(same_name(source.alias, table) for source in self.sources)

    def star(self, table: str | None) -> Iterator[tuple[str, Value]]:
        """Return what `*` or `table.*` stands for: the columns of USING first, then the others in order.

        The column of a list that SELECT takes apart is not among them.
        """
        if table is None:
            yield from self.merged
        for source in self.sources:
            if table is None or same_name(source.alias, table):
                for each in source.columns:
                    if (table is not None or each.name not in source.hidden) and each.label != ELEMENT:
                        yield each.label, value_of(each)

    def labels(self) -> list[str]:
        """Return the names of all columns, for messages."""
        return [label for label, _ in self.star(None)]

    def nullable(self) -> NameScope:
        """Return this scope as a side of an outer join that may have no row."""
        sources = [
            replace(source, columns=tuple(each.or_null() for each in source.columns))
            for source in self.sources
        ]
        merged = [(name, replace(value, type=value.type.or_null())) for name, value in self.merged]
        return NameScope(sources, merged, self.parent)
