"""Orders of rows: columns and expressions, each with a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from differential.errors import SchemaError
from differential.expressions.expression import Expr, Ordering, col
from differential.other_spellings import of_another_library
from timely.user_code.call_site import call_site

__all__ = ["By", "OrderSpec", "orderings"]

OrderSpec: TypeAlias = str | Expr | Ordering
By: TypeAlias = OrderSpec | Sequence[OrderSpec]
"""An order as users may write it: a column, an expression, one with a direction, or several in turn."""


def orderings(by: By, operator: str) -> tuple[Ordering, ...]:
    """Return the directions in `by`; raises SchemaError if it names nothing, or something else."""
    elsewhere = of_another_library(by)
    if elsewhere is not None:
        raise SchemaError(f"{operator} ({call_site()}): {by!r:.100} {elsewhere}, col.x.desc() its direction")
    parts = [by] if isinstance(by, str | Expr | Ordering) else list(by)
    directions: list[Ordering] = []
    for part in parts:
        if isinstance(part, Ordering):
            directions.append(part)
        elif isinstance(part, str | Expr):
            directions.append(Ordering(col(part) if isinstance(part, str) else part))
        else:
            raise SchemaError(
                f"{operator} ({call_site()}): an order is made of columns, such as 'x' or col.x.desc(), "
                f"not {part!r:.100}"
            )
    if not directions:
        raise SchemaError(f"{operator} ({call_site()}) needs an order: by='x', or by=[col.x.desc(), 'y']")
    return tuple(directions)
