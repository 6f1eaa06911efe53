"""Facts about a collection that follow from the plan alone, whatever the inputs hold."""

from __future__ import annotations

from typing import Final

from ..expressions.expression import ColumnRef
from .nodes import (
    Accumulate,
    Answered,
    Arrange,
    Concat,
    Consolidate,
    ConstantRows,
    Distinct,
    Filter,
    GroupValues,
    Input,
    Join,
    JoinAll,
    Keys,
    LeaveLoop,
    LetRec,
    Negate,
    Node,
    NotNull,
    OneRow,
    OverWindow,
    Pairs,
    Reduce,
    ReduceFunction,
    Select,
    Sweep,
    TopK,
    Variable,
)
from .nodes.guarded import Provided

__all__ = [
    "goes_straight",
    "group_keys",
    "has_key",
    "is_arranged",
    "is_consolidated",
    "is_set",
    "is_small",
    "keeps_all_columns",
    "makes_all_pairs",
    "moves_columns",
    "small_side",
]

_SMALL_SIDE: Final = 64
"""So many rows cost a worker less than the arrangement that they are in."""
_PARTS_MAX: Final = 8
"""A sum of more parts is not looked into."""


def is_consolidated(node: Node) -> bool:
    """Return True if no update of the node cancels, or repeats, another update of the same time.

    A reduce sends corrections that are sums already. A loop puts out the changes of all its iterations, most
    of which cancel. Call this after all other changes to a plan: the operators that it relies on must still
    be there.
    """
    while isinstance(node, Negate | Arrange | NotNull | Answered) or (
        isinstance(node, Select) and keeps_all_columns(node)
    ):
        node = node.children[0]
    return isinstance(
        node,
        Consolidate
        | Distinct
        | Accumulate
        | Keys
        | Reduce
        | ReduceFunction
        | Sweep
        | TopK
        | OverWindow
        | GroupValues,
    )


def group_keys(node: Node) -> tuple[str, ...] | None:
    """Return the columns by which rows are on workers, if they are the keys of groups with one row each.

    Rows that leave a loop stay on the worker where they were inside. None if this is not known, or there are
    no keys.
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
    if (
        not isinstance(node, Accumulate | Reduce | GroupValues)
        or not node.keys
        or not set(node.keys) <= set(later)
    ):
        return None
    return tuple(later[key] for key in node.keys)


def goes_straight(loop: LetRec) -> bool:
    """Return True if rows of some variable get out of the loop through no operator with state."""
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
    """Return True if every row has multiplicity 1 at every time, so that `distinct` would change nothing.

    A function of groups gives no guarantee: it may return a row twice. Neither do inputs, except those that
    keep the last value of each key. First rows of groups are a set if the rows are one, and of any rows if
    there is one for each group, without ties, or if `row_number` numbers them.
    """
    if isinstance(node, Input):
        return node.mode == "upsert"
    if isinstance(node, Distinct | Accumulate | Keys | Reduce | GroupValues):
        return True
    if isinstance(node, TopK) and (
        (node.limit == 1 and not node.ties) or (node.rank is not None and node.rank[1] == "row_number")
    ):
        return True
    if isinstance(node, Filter | NotNull | Arrange | TopK) or (
        isinstance(node, Select) and keeps_all_columns(node)
    ):
        return is_set(node.children[0])
    return isinstance(node, Join | JoinAll) and all(map(is_set, node.children))


def small_side(join: Pairs) -> int | None:
    """Return which side of a join without keys goes to all workers, because it has few rows whatever the
    inputs hold; None if neither does, or the join is in a loop, whose rounds divide rows by keys.

    All rows of such a join have one key, and would be the work of one worker otherwise.
    """
    if not isinstance(join, Join) or join.keys[0] or join.free:
        return None
    small = [side for side in (1, 0) if is_small(join.children[side])]
    return small[0] if small else None


def makes_all_pairs(node: Node) -> bool:
    """Return True for a join without an equality of which no side is small, whatever the inputs hold."""
    return isinstance(node, Join) and not node.keys[0] and not any(is_small(each) for each in node.children)


def has_key(node: Node, columns: frozenset[str]) -> bool:
    """Return True if no two rows have equal values in `columns`, as far as the plan tells: they have the keys
    of an upsert input, of groups, of distinct rows or of first rows.
    """
    if isinstance(node, Input):
        return node.mode == "upsert" and columns.issuperset(node.keys)
    if isinstance(node, Accumulate | Reduce | GroupValues | Keys):
        return columns.issuperset(node.keys)
    if isinstance(node, TopK) and node.limit == 1 and not node.ties and columns.issuperset(node.keys):
        return True
    if isinstance(node, Distinct):
        return columns.issuperset(node.schema.names) or has_key(node.source, columns)
    if isinstance(node, Select):
        moved = {expr.name for name, expr in node.columns if name in columns and isinstance(expr, ColumnRef)}
        return has_key(node.source, frozenset(moved))
    if isinstance(node, Filter | NotNull | Arrange | Answered | Provided | TopK | Consolidate):
        return has_key(node.children[0], columns)
    if isinstance(node, Join):
        sides = [columns & frozenset(each.schema.names) for each in node.children]
        sides[1] |= {right for left, right in node.on if left in columns}
        keyed = [has_key(each, frozenset(keys)) for each, keys in zip(node.children, node.keys, strict=True)]
        whole = [has_key(each, side) for each, side in zip(node.children, sides, strict=True)]
        return all(whole) or (keyed[1] and whole[0]) or (keyed[0] and whole[1])
    return False


def is_small(node: Node) -> bool:
    """Return True if the node never has more rows than a few, whatever the inputs hold."""
    while isinstance(node, Select | Filter | NotNull | Negate | Arrange | Answered | Provided | Consolidate):
        node = node.children[0]
    if isinstance(node, OneRow):
        return True
    if isinstance(node, ConstantRows):
        return bool(node.table.num_rows <= _SMALL_SIDE)
    if isinstance(node, Accumulate | Reduce | GroupValues):
        return not node.keys
    if isinstance(node, TopK):
        return not node.keys and node.limit <= _SMALL_SIDE and not node.ties
    return isinstance(node, Concat) and len(node.sources) <= _PARTS_MAX and all(map(is_small, node.sources))


def is_arranged(node: Node) -> bool:
    """Return True if the node is an arrangement written by the user, or only moves columns of one."""
    while isinstance(node, Select) and moves_columns(node) is not None:
        node = node.source
    return isinstance(node, Arrange)


def keeps_all_columns(select: Select) -> bool:
    """Return True if each column goes on exactly once, perhaps renamed; so different rows stay different."""
    sources = moves_columns(select)
    return sources is not None and sorted(sources.values()) == sorted(select.source.schema.names)


def moves_columns(select: Select) -> dict[str, str] | None:
    """Return the source column of each column, if each only moves one; None if some column is computed."""
    old_names: dict[str, str] = {}
    for name, expr in select.columns:
        if not isinstance(expr, ColumnRef):
            return None
        old_names[name] = expr.name
    return old_names
