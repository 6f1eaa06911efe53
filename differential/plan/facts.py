"""What is known of a collection or an expression from the plan alone, whatever the inputs hold."""

from __future__ import annotations

from ..expressions.expression import ColumnRef
from .nodes import (
    Accumulate,
    Answered,
    Arrange,
    Consolidate,
    Distinct,
    Filter,
    Input,
    Join,
    JoinAll,
    Keys,
    LeaveLoop,
    LetRec,
    Negate,
    Node,
    NotNull,
    Reduce,
    ReduceFunction,
    Select,
    Sweep,
    TopK,
    Variable,
)

__all__ = [
    "goes_straight",
    "group_keys",
    "is_arranged",
    "is_consolidated",
    "is_set",
    "keeps_all_columns",
    "moves_columns",
]


def is_consolidated(node: Node) -> bool:
    """Whether no update in it cancels, or repeats, another one of the same time.

    A reduce sends corrections that are sums already; what leaves a loop are all its iterations, most of which
    cancel. To be asked after all other changes to a plan: what it rests on must still be there.
    """
    while isinstance(node, Negate | Arrange | NotNull | Answered) or (
        isinstance(node, Select) and keeps_all_columns(node)
    ):
        node = node.children[0]
    return isinstance(
        node, Consolidate | Distinct | Accumulate | Keys | Reduce | ReduceFunction | Sweep | TopK
    )


def group_keys(node: Node) -> tuple[str, ...] | None:
    """The columns by which rows lie on workers, if these are the keys of groups that have one row each.

    What leaves a loop lies where it did inside. None if it is not known, or there are no keys.
    """
    later = {name: name for name in node.schema.names}
    while isinstance(node, Filter | NotNull | Negate | Arrange | Answered | Select | LeaveLoop):
        if isinstance(node, LeaveLoop):
            node = node.loop.bodies[node.index]
            continue
        if isinstance(node, Select):
            later = {
                expr.name: later[name]
                for name, expr in node.columns
                if name in later and isinstance(expr, ColumnRef)
            }
        node = node.children[0]
    if not isinstance(node, Accumulate | Reduce) or not node.keys or not set(node.keys) <= set(later):
        return None
    return tuple(later[key] for key in node.keys)


def goes_straight(loop: LetRec) -> bool:
    """Whether rows of a variable get out of the loop through no operator with state."""
    waiting: list[Node] = list(loop.bodies)
    seen: set[bytes] = set()
    while waiting:
        node = waiting.pop()
        if node.digest in seen or loop.depth not in node.free:
            continue
        seen.add(node.digest)
        if isinstance(node, Variable) and node.depth == loop.depth:
            return True
        if node.is_linear:
            waiting.extend(node.children)
        elif isinstance(node, LeaveLoop):
            waiting.extend((*node.loop.initials, *node.loop.bodies))
    return False


def is_set(node: Node) -> bool:
    """Whether every row has multiplicity 1 at every time, so that `distinct` would change nothing.

    Of functions of groups nothing is known: they may give a row twice. Neither is anything of inputs, but for
    those that keep the last value of each key. The first rows of groups of a set are one.
    """
    if isinstance(node, Input):
        return node.mode == "upsert"
    if isinstance(node, Distinct | Accumulate | Keys | Reduce):
        return True
    if isinstance(node, TopK) and (
        node.limit == 1 or (node.rank is not None and node.rank[1] == "row_number")
    ):
        return True
    if isinstance(node, Filter | NotNull | Arrange | TopK) or (
        isinstance(node, Select) and keeps_all_columns(node)
    ):
        return is_set(node.children[0])
    return isinstance(node, Join | JoinAll) and all(map(is_set, node.children))


def is_arranged(node: Node) -> bool:
    """Whether it is, but for names and order of columns, an arrangement that somebody asked for."""
    while isinstance(node, Select) and moves_columns(node) is not None:
        node = node.source
    return isinstance(node, Arrange)


def keeps_all_columns(select: Select) -> bool:
    """Whether every column goes on, once, perhaps under another name: different rows stay different."""
    kept = moves_columns(select)
    return kept is not None and sorted(kept.values()) == sorted(select.source.schema.names)


def moves_columns(select: Select) -> dict[str, str] | None:
    """By new name the old one, if every column is one of before; else None."""
    found: dict[str, str] = {}
    for name, expr in select.columns:
        if not isinstance(expr, ColumnRef):
            return None
        found[name] = expr.name
    return found
