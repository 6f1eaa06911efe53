"""Find rows that have to meet before they are stored: one part of a sum takes back what another part puts
out.

A sum costs nothing, since its parts stay where they are. The parts of an anti join are the rows of the left,
on the workers where they came in, and, taken back, the rows that are in pairs, on the workers of their keys.
A stage with keys brings them together. An output has no keys: on several workers it would store each such row
twice, and give both updates to every reader, who would then find that nothing is left. So the rows of an
output are sent to where they meet.

They meet by the keys of the part that is taken back, if these come first in the row: then the joined rows are
there already, and only the others travel. Otherwise they meet by all columns. A sum in which nothing is taken
back stays where it is.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from ...expressions.expression import ColumnRef, Expr
from ..nodes import Arrange, Concat, Filter, Join, Negate, Node, NotNull, Select

__all__ = ["meeting_keys"]


class _Part(NamedTuple):
    """One part of a sum: True if it is taken back; the columns by which its rows are on workers, if known."""

    is_negated: bool
    keys: tuple[str, ...] | None


def meeting_keys(node: Node) -> tuple[str, ...] | None:
    """Return the columns by which to send rows of `node` so that what cancels meets; None: they may stay."""
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
    """Return the parts of a sum, each once.

    On the way down, `later` has for each column of a node its name in `whole`, if it is a column there.
    """
    parts: list[_Part] = []
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
            parts.append(_Part(is_negated, tuple(later[key] for key in keys) if is_known else None))
    return parts


def _moves(expr: Expr, name: str, later: dict[str, str]) -> TypeGuard[ColumnRef]:
    return name in later and isinstance(expr, ColumnRef)
