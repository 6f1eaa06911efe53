"""What has to meet before it is kept: rows of a sum of which one part takes back what another puts out.

A sum costs nothing, since its parts come from where they are. Those of an anti join are the rows of the left,
on the workers by which they came in, and, taken back, the rows that are in pairs, on the workers of their
keys. A stage with keys brings them together. An output has none: on several workers it would keep each such
row twice, and give both to every reader, who then finds that nothing is left. So its rows are sent to where
they meet.

By the keys of what is taken back, if these come first in the row: then what was joined by them is there
already, and only the others travel. Otherwise by all columns. A sum in which nothing is taken back stays
where it is.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from ...expressions.expression import ColumnRef, Expr
from ..nodes import Arrange, Concat, Filter, Join, Negate, Node, NotNull, Select

__all__ = ["meeting_keys"]


class _Part(NamedTuple):
    """One part of a sum: whether it is taken back, and by which columns its rows lie on workers, if known."""

    is_negated: bool
    keys: tuple[str, ...] | None


def meeting_keys(node: Node) -> tuple[str, ...] | None:
    """The columns by which rows of `node` have to be sent so that what cancels meets; None: they may stay."""
    parts = _parts(node)
    taken = [part for part in parts if part.is_negated]
    if not taken or len(taken) == len(parts):
        return None
    names = node.schema.names
    keys = next((part.keys for part in taken if part.keys is not None), None)
    if not keys or keys != tuple(names[: len(keys)]):
        return tuple(names)
    return keys


def _parts(whole: Node) -> list[_Part]:
    """Each once. On the way down it is known what a column is called in `whole`, if it is one there."""
    found: list[_Part] = []
    waiting: list[tuple[Node, bool, dict[str, str]]] = [(whole, False, {n: n for n in whole.schema.names})]
    seen: set[tuple[bytes, bool, frozenset[tuple[str, str]]]] = set()
    while waiting:
        node, is_negated, later = waiting.pop()
        mark = (node.digest, is_negated, frozenset(later.items()))
        if mark in seen:
            continue
        seen.add(mark)
        if isinstance(node, Concat | Negate | Filter | NotNull | Arrange):
            turned = is_negated != isinstance(node, Negate)
            waiting.extend((child, turned, later) for child in reversed(node.children))
        elif isinstance(node, Select):
            moved = {expr.name: later[name] for name, expr in node.columns if _moves(expr, name, later)}
            waiting.append((node.source, is_negated, moved))
        else:
            keys = node.keys[0] if isinstance(node, Join) else ()
            is_known = isinstance(node, Join) and all(key in later for key in keys)
            found.append(_Part(is_negated, tuple(later[key] for key in keys) if is_known else None))
    return found


def _moves(expr: Expr, name: str, later: dict[str, str]) -> TypeGuard[ColumnRef]:
    return name in later and isinstance(expr, ColumnRef)
