"""In which order does a join of many look up its parts, and how are these kept for it?

There is a *way* for each part: its changes look up the other parts, one step after another, each by the
columns that are known by then (`half_join.py` says why the ways together are the join). A step asks one part,
or, if the fewest candidates are to decide, all parts that would make the same columns known.

    next       of the parts that have a known column: one of which all columns are known, since it can only
               make rows fewer; else the one with the most known columns. Of these one behind the part whose
               way it is, the first one: it is met as it was before the change, and so, when all are loaded at
               once, there is nothing to meet, and only the way of the last part has work
    kept       a part that is looked up by some columns may be kept by any of these, as long as the others
               come next in its rows, which are sorted: edges by `src` are found by `src` and by `src, dst`
    together   what only moves columns is looked through: three parts that are one collection of edges under
               three pairs of names want two arrangements of it, not six
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..nodes import JoinAll, Node
from .sharing import SharedArrangement, collection_of

__all__ = ["JoinLookup", "JoinPosition", "LookupStep", "layouts", "places_of", "way"]


@dataclass(frozen=True)
class JoinLookup:
    """Part number `part` is looked up by its columns `known`, and makes `adds` known."""

    part: int
    known: tuple[str, ...]
    adds: tuple[str, ...]


LookupStep = tuple[JoinLookup, ...]
"""Looks of which one adds columns, and the others are asked whether they have them."""


@dataclass(frozen=True)
class JoinPosition:
    """Where a part is found by some columns.

    looked    these columns, in the order of the arrangement; the first `routed` of them are its keys
    columns   by name in the part, the column of the arrangement
    """

    kept: SharedArrangement
    looked: tuple[str, ...]
    routed: int
    columns: dict[str, str]


def way(parts: Sequence[Sequence[str]], first: int, *, fewest: bool = False) -> tuple[LookupStep, ...]:
    """The steps of the changes of part `first`, where `parts` are the columns of each.

    Requires: all are connected by columns that they share.
    """
    known = set(parts[first])
    left = [number for number in range(len(parts)) if number != first]
    steps: list[LookupStep] = []
    while left:
        looks = [_look(parts, number, known) for number in left]
        looks = [look for look in looks if look.known]
        best = min(looks, key=lambda look: (bool(look.adds), -len(look.known), look.part < first, look.part))
        step: LookupStep = (best,)
        if fewest and best.adds:
            step = tuple(look for look in looks if set(look.adds) == set(best.adds))
        steps.append(step)
        left = [number for number in left if number not in {look.part for look in step}]
        known |= set(best.adds)
    return tuple(steps)


def _look(parts: Sequence[Sequence[str]], number: int, known: set[str]) -> JoinLookup:
    columns = parts[number]
    return JoinLookup(
        number, tuple(c for c in columns if c in known), tuple(c for c in columns if c not in known)
    )


def _looks_of(node: JoinAll) -> list[tuple[int, frozenset[str]]]:
    """All (part, columns) by which some way looks up; where the fewest decide, whole rows as well."""
    names = [part.schema.names for part in node.parts]
    found: dict[tuple[int, frozenset[str]], None] = {}
    for first in range(len(names)):
        for step in way(names, first, fewest=node.fewest):
            for look in step:
                found[look.part, frozenset(look.known)] = None
                if len(step) > 1:
                    found[look.part, frozenset((*look.known, *look.adds))] = None
    return list(found)


def places_of(node: JoinAll) -> dict[tuple[int, frozenset[str]], JoinPosition]:
    """Where each part is found by each set of columns by which it is looked up."""
    readings = [_read(part) for part in node.parts]
    wanted: defaultdict[bytes, list[frozenset[str]]] = defaultdict(list)
    used: defaultdict[bytes, set[str]] = defaultdict(set)
    looks = _looks_of(node)
    for part, known in looks:
        base, columns = readings[part]
        wanted[base.digest].append(frozenset(columns[name] for name in known))
        used[base.digest].update(columns.values())
    made = {
        base.digest: layouts(wanted[base.digest], [n for n in base.schema.names if n in used[base.digest]])
        for base, _ in readings
        if base.digest in wanted
    }
    found: dict[tuple[int, frozenset[str]], JoinPosition] = {}
    for part, known in looks:
        base, columns = readings[part]
        names = {column: name for name, column in columns.items()}
        keys, values = made[base.digest][frozenset(columns[name] for name in known)]
        looked = tuple(names[column] for column in (*keys, *values)[: len(known)])
        found[part, known] = JoinPosition(SharedArrangement(base, keys, values), looked, len(keys), columns)
    return found


def _read(part: Node) -> tuple[Node, dict[str, str]]:
    """The collection whose columns a part has moved, and by name which of them each is."""
    node, columns = collection_of(part)
    if len(set(columns.values())) == len(columns):
        return node, columns
    return part, {name: name for name in part.schema.names}  # two of its columns are one


def layouts(
    wanted: Sequence[frozenset[str]], names: Sequence[str]
) -> dict[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """(keys, other columns) of an arrangement for each wanted set of columns, few of them different.

    Law: the first columns of a set's arrangement are that set, and its keys are some of them.
    """
    made: list[list[tuple[str, ...]]] = []
    chosen: dict[frozenset[str], list[tuple[str, ...]]] = {}
    for columns in sorted(set(wanted), key=lambda each: (len(each), [n in each for n in names][::-1])):
        chosen[columns] = next((blocks for blocks in made if _fits(blocks, columns, names)), [])
        if not chosen[columns]:
            chosen[columns].append(_ordered(columns, names))
            made.append(chosen[columns])
    found: dict[frozenset[str], tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for columns, (keys, *blocks) in chosen.items():
        before = [name for block in blocks for name in block]
        others = [name for name in names if name not in keys and name not in before]
        found[columns] = (keys, (*before, *others))
    return found


def _fits(blocks: list[tuple[str, ...]], columns: frozenset[str], names: Sequence[str]) -> bool:
    """Whether an arrangement sorted by these blocks one after another is by these columns first; if it is so
    once a block is added, that is done.
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
