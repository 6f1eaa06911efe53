"""Keep the first rows only where a query numbers all rows of a group and then takes the first numbers.

    filter(n <= k)(over(keys, by=order): n=row_number())   top_k(k, by=order, keys=keys, rank=n)
    filter(n <= k)(over(keys, by=order): n=rank())         the same, with ties

A window sends the new numbers of all rows behind a change. The first rows cost their own number. The same for
n < k, and for n == k, which stays as a filter above the first k rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ...expressions.expression import ColumnRef, Expr, LiteralValue, Operation
from ...operators.reduce import RankKind
from ..nodes import ALL_ROWS, Filter, Node, OverWindow, TopK
from .filters import conjuncts

__all__ = ["first_rows"]


def first_rows(node: Node, readers: Callable[[Node], int]) -> Node | None:
    """Return what replaces this node; None if the rule does not apply. `readers` counts a node's readers."""
    if not isinstance(node, Filter) or not isinstance(node.source, OverWindow) or readers(node.source) > 1:
        return None
    window = node.source
    if len(window.calls) != 1 or not window.order:
        return None
    name, kind = window.calls[0].name, window.calls[0].kind
    if kind not in ("row_number", "rank"):
        return None
    parts = list(conjuncts(node.condition))
    bounds = {at: bound for at, part in enumerate(parts) if (bound := _bound(part, name)) is not None}
    if not bounds:
        return None
    at = min(bounds, key=lambda each: bounds[each][0])
    limit, is_exact = bounds[at]
    ties = kind == "rank"
    numbers: RankKind = "rank" if ties else "row_number"
    first = TopK(window.source, window.keys, window.order, limit, 0, (name, numbers), ties)
    staying = [part for number, part in enumerate(parts) if number != at or not is_exact]
    return Filter(first, reduce(lambda one, other: one & other, staying)) if staying else first


def _bound(part: Expr, name: str) -> tuple[int, bool] | None:
    """Return up to which number, from 1 to `ALL_ROWS`, a condition takes rows, and whether it takes all of
    these; None if it is no such condition.
    """
    if isinstance(part, Operation) and part.op in ("<=", "<", "=="):
        match part.operands:
            case ColumnRef(name=column), LiteralValue(value=int(number)):
                limit = number - (part.op == "<")
                if column == name and 1 <= limit <= ALL_ROWS:
                    return limit, part.op != "=="
    return None
