"""Subqueries without loops over rows: by their domain.

The *domain* of a subquery has the different values of the columns that it reads of the query around it, each
combination once. The subquery is computed for all of them at once: each relation in it that reads such a
column has the columns of the domain, too, and so have all above. Then the answers are joined back by these
columns, null equal to null. One rule for EXISTS, IN, scalars and LATERAL, whatever the correlation (Neumann
and Kemper, "Unnesting Arbitrary Queries", 2015). The subquery keeps only what the domain needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...collections.collection import Collection
from ...expressions.expression import col
from ...linear.shapes import Clock
from ..algebra.relations import Relation

__all__ = ["Domain", "Lowers", "Subquery", "is_correlated", "renamed", "subquery_of"]


@dataclass(frozen=True, eq=False)
class Domain:
    """The combinations of outer values for which a subquery is computed; one row for each."""

    rows: Collection
    names: tuple[str, ...]


class Lowers(Protocol):
    """Makes collections of relations. Their columns are the attributes, by name."""

    @property
    def clock(self) -> Clock | None:
        """Return the clock that says when now() is."""

    def rows(self, relation: Relation, domain: Domain | None = None) -> Collection:
        """Return the rows of a relation, with the columns of `domain` if it reads one of them."""

    def carrying(self, relation: Relation, domain: Domain | None, *, fills: bool = True) -> Collection:
        """Return the rows of a relation for each row of `domain`, with its columns in any case.

        If not `fills`, a group of all rows may be missing where there are none.
        """

    def fresh(self, label: str) -> str:
        """Return a name that no other column has."""


def renamed(rows: Collection, names: Mapping[str, str]) -> Collection:
    """Return the rows with other names for some columns."""
    return rows.select(**{names.get(name, name): col[name] for name in rows.schema.names})


def is_correlated(relation: Relation, domain: Domain | None) -> bool:
    """Return True if a relation reads a column of the domain."""
    return domain is not None and not relation.free.isdisjoint(domain.names)


@dataclass(frozen=True, eq=False)
class Subquery:
    """The rows of a subquery, and the outer columns that it has beside its own."""

    rows: Collection
    outer: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the keys by which it is joined back."""
        return [(name, name) for name in self.outer]


def subquery_of(lower: Lowers, left: Collection, right: Relation, *, fills: bool = True) -> Subquery:
    """Return the subquery `right` for all that it reads of the rows of `left`."""
    outer = tuple(name for name in left.schema.names if name in right.free)
    domain = Domain(left.select(*outer).distinct(), outer) if outer else None
    return Subquery(lower.carrying(right, domain, fills=fills), outer)
