"""Second spellings of methods of collections, groups and orders, from the table: base classes.

`rows.where(…)` is `rows.filter(…)`. Editors and mypy read the second spellings in `of_collections.pyi`, which
`./scripts/stubs` writes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from timely.user_code.spellings import Spelled

from .table import COLLECTIONS, GROUPS, ORDERS

__all__ = ["CollectionSpellings", "GroupSpellings", "OrderSpellings"]

C = TypeVar("C")
H = TypeVar("H")


class CollectionSpellings(Spelled):
    """Second spellings of methods of collections."""

    __slots__ = ()
    _spellings = COLLECTIONS


class GroupSpellings(Spelled, Generic[C]):
    """Second spellings of methods of groups."""

    __slots__ = ()
    _spellings = GROUPS


class OrderSpellings(Spelled, Generic[H]):
    """Second spellings of methods of orders."""

    __slots__ = ()
    _spellings = ORDERS
