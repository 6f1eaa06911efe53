"""Choose the order in which a join of many looks up its parts, and how the parts are arranged for that.

Each part has a *way*: its changes look up the other parts, one step after another, each by the columns that
are bound by then (`half_join.py` says why the ways together are the join). A step asks one part; or, if the
fewest candidates are to decide, all parts that would bind the same columns.

    next       of the parts that have a bound column: one whose columns are all bound, since it can only make
               rows fewer; else the one with the most bound columns. Ties go to the first part behind the part
               whose way it is: it is met as it was before the change. So, when all parts are loaded at once,
               there is nothing to meet, and only the way of the last part has work
    stored     a part that is looked up by some columns may be arranged by any of these, as long as the others
               come next in its rows, which are sorted: edges by `src` are found by `src` and by `src, dst`
    together   nodes that only move columns are looked through: three parts that are one collection of edges
               under three pairs of names need two arrangements of it, not six
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..nodes import JoinAll, Node
from .sharing import SharedArrangement, collection_of

__all__ = ["JoinLookup", "JoinPosition", "LookupStep", "layouts", "positions_of", "way"]


@dataclass(frozen=True)
class JoinLookup:
    """A lookup of part number `part` by its columns `by`; it binds the columns `adds`."""

    part: int
    by: tuple[str, ...]
    adds: tuple[str, ...]


LookupStep = tuple[JoinLookup, ...]
"""Lookups of one step: one of them adds columns, and the others check whether they have them."""


@dataclass(frozen=True)
class JoinPosition:
    """How a part is looked up by some columns.

    lookup_names   these columns, in the order of the arrangement; the first `routed` of them are its keys
    columns        by name in the part, the column of the arrangement
    """

    arrangement: SharedArrangement
    lookup_names: tuple[str, ...]
    routed: int
    columns: dict[str, str]


def way(parts: Sequence[Sequence[str]], first: int, *, fewest: bool = False) -> tuple[LookupStep, ...]:
    """Return the steps for the changes of part `first`; `parts` are the columns of each part.

    Requires: the parts are connected by columns that they share.
    """
    bound = set(parts[first])
    left = [number for number in range(len(parts)) if number != first]
    steps: list[LookupStep] = []
    while left:
        looks = [_look(parts, number, bound) for number in left]
        looks = [look for look in looks if look.by]
        best = min(looks, key=lambda look: (bool(look.adds), -len(look.by), look.part < first, look.part))
        step: LookupStep = (best,)
        if fewest and best.adds:
            step = tuple(look for look in looks if set(look.adds) == set(best.adds))
        steps.append(step)
        left = [number for number in left if number not in {look.part for look in step}]
        bound |= set(best.adds)
    return tuple(steps)


def _look(parts: Sequence[Sequence[str]], number: int, bound: set[str]) -> JoinLookup:
    columns = parts[number]
    return JoinLookup(
        number, tuple(c for c in columns if c in bound), tuple(c for c in columns if c not in bound)
    )


def _looks_of(node: JoinAll) -> list[tuple[int, frozenset[str]]]:
    """Return all (part, columns) of look-ups on some way; if the fewest decide, also with added columns."""
    names = [part.schema.names for part in node.parts]
    lookups: dict[tuple[int, frozenset[str]], None] = {}
    for first in range(len(names)):
        for step in way(names, first, fewest=node.fewest):
            for look in step:
                lookups[look.part, frozenset(look.by)] = None
                if len(step) > 1:
                    lookups[look.part, frozenset((*look.by, *look.adds))] = None
    return list(lookups)


def positions_of(node: JoinAll) -> dict[tuple[int, frozenset[str]], JoinPosition]:
    """Return how each part is looked up, for each set of columns by which some way does so."""
    readings = [_read(part) for part in node.parts]
    column_sets: defaultdict[bytes, list[frozenset[str]]] = defaultdict(list)
    used: defaultdict[bytes, set[str]] = defaultdict(set)
    looks = _looks_of(node)
    for part, by in looks:
        base, columns = readings[part]
        column_sets[base.digest].append(frozenset(columns[name] for name in by))
        used[base.digest].update(columns.values())
    layouts_by_base = {
        base.digest: layouts(
            column_sets[base.digest], [n for n in base.schema.names if n in used[base.digest]]
        )
        for base, _ in readings
        if base.digest in column_sets
    }
    positions: dict[tuple[int, frozenset[str]], JoinPosition] = {}
    for part, by in looks:
        base, columns = readings[part]
        names = {column: name for name, column in columns.items()}
        keys, values = layouts_by_base[base.digest][frozenset(columns[name] for name in by)]
        lookup_names = tuple(names[column] for column in (*keys, *values)[: len(by)])
        positions[part, by] = JoinPosition(
            SharedArrangement(base, keys, values), lookup_names, len(keys), columns
        )
    return positions


def _read(part: Node) -> tuple[Node, dict[str, str]]:
    """Return the collection whose columns a part moves, and which of them each column of the part is."""
    node, columns = collection_of(part)
    if len(set(columns.values())) == len(columns):
        return node, columns
    return part, {name: name for name in part.schema.names}  # two of its columns are one column there


def layouts(
    column_sets: Sequence[frozenset[str]], names: Sequence[str]
) -> dict[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (keys, other columns) of an arrangement for each set of columns; few of them differ.

    Law: the first columns of a set's arrangement are that set, and its keys are some of them.
    """
    all_blocks: list[list[tuple[str, ...]]] = []
    chosen: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for columns in sorted(set(column_sets), key=lambda each: (len(each), [n in each for n in names][::-1])):
        chosen[columns] = next((blocks for blocks in all_blocks if _fits(blocks, columns, names)), [])
        if not chosen[columns]:
            chosen[columns].append(_ordered(columns, names))
            all_blocks.append(chosen[columns])
    layout_by_columns: dict[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for columns, (keys, *blocks) in chosen.items():
        before = [name for block in blocks for name in block]
        others = [name for name in names if name not in keys and name not in before]
        layout_by_columns[columns] = (keys, (*before, *others))
    return layout_by_columns


def _fits(blocks: list[tuple[str, ...]], columns: frozenset[str], names: Sequence[str]) -> bool:
    """Return True if an arrangement sorted by these blocks in turn has exactly `columns` first.

    If adding a block makes that true, add the block.
    """
    covered: set[str] = set()
    for block in blocks:
        if covered == columns:
            return True
        if not set(block) <= columns:
            return False
        covered |= set(block)
    if covered != columns:
        blocks.append(_ordered(columns - covered, names))
    return True


def _ordered(columns: frozenset[str] | set[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in columns)
