"""Second spellings of methods of expressions, from the table: their base class.

`col.x.isNull()` is `col.x.is_null()`. Editors and mypy read the second spellings in `of_expressions.pyi`,
which `./scripts/stubs` writes.
"""

from __future__ import annotations

from timely.user_code.spellings import Spelled

from .table import EXPRESSIONS

__all__ = ["ExprSpellings"]


class ExprSpellings(Spelled):
    """Second spellings of methods of expressions."""

    __slots__ = ()
    _spellings = EXPRESSIONS
