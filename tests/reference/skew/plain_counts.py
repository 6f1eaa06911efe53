"""A join under given versions of a table, row by row: what is kept where, what looks where, what meets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from timely.routing.table import RoutingTable

Line = tuple[int, int, int, int, int]
"""(epoch, side, key, hash by which the key is routed, row hash)."""


@dataclass
class Plain:
    """Counts, by unit where they are Counters."""

    stores: int = 0
    probes: int = 0
    moved: int = 0
    pairs: int = 0
    work: Counter[int] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)


def kept_on(table: RoutingTable, line: Line, is_cells: bool) -> set[int]:
    """The units that keep a row."""
    _, side, _, routed, row_hash = line
    grid = table.grid_of(0 if is_cells else side, routed)
    if is_cells and side == 1:
        return set(grid.visited[grid.copy_of(row_hash)])
    return set(grid.kept_on[grid.share_of(row_hash)])


def looks_on(table: RoutingTable, line: Line, is_cells: bool) -> set[int]:
    """The units where a row looks."""
    if is_cells:
        return kept_on(table, line, True)
    grid = table.grid_of(1 - line[1], line[3])
    return set(grid.visited[grid.copy_of(line[4])])


def count_plainly(
    lines: Sequence[Line], versions: Sequence[tuple[int, RoutingTable]], is_cells: bool
) -> Plain:
    """All epochs, in each first the right rows and then the left ones, which find these."""
    out, stored = Plain(), list[tuple[Line, set[int]]]()
    tables = dict(versions)
    table = versions[0][1]
    for epoch in range(max(line[0] for line in lines) + 1):
        if epoch in tables:
            table = tables[epoch]
            moved = [(line, kept_on(table, line, is_cells)) for line, _ in stored]
            out.moved += sum(len(new - old) for (_, new), (_, old) in zip(moved, stored, strict=True))
            stored = moved
        for side in (1, 0):
            mine = [line for line in lines if line[:2] == (epoch, side)]
            for line in mine:
                look = looks_on(table, line, is_cells)
                out.probes += len(look)
                out.work.update(look)
                for other, units in stored:
                    if other[1] != side and other[2] == line[2]:
                        met = look & units
                        out.pairs += len(met)
                        out.work.update(met)
            for line in mine:
                units = kept_on(table, line, is_cells)
                out.stores += len(units)
                out.work.update(units)
                stored.append((line, units))
    for _, units in stored:
        out.kept.update(units)
    return out
