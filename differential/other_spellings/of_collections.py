"""Second spellings of methods of collections and groups, from the table: base classes.

`rows.where(…)` is `rows.filter(…)`. Editors and mypy read the second spellings in `of_collections.pyi`, which
`./scripts/stubs` writes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from timely.user_code.spellings import Spelled

from .table import COLLECTIONS, GROUPS

__all__ = ["CollectionSpellings", "GroupSpellings"]

C = TypeVar("C")


class CollectionSpellings(Spelled):
    """Second spellings of methods of collections."""

    __slots__ = ()
    _spellings = COLLECTIONS


class GroupSpellings(Spelled, Generic[C]):
    """Second spellings of methods of groups."""

    __slots__ = ()
    _spellings = GROUPS
