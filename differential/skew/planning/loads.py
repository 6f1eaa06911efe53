"""The load of each unit, and what it consists of.

Counts are by routing cell: for each bucket of a side, and apart from that for each key that is, or may
become, an exception. A cell counts

    stored   rows of its side that are stored
    probes   rows of the other side that came to look for them
    pairs    pairs that these found

A unit's load is the sum over all cells on it, in one of two measures: *stored*, stored rows, as in the third
seed; or *work*, stored + probes + pairs. Stored rows say what memory a unit needs. They do not say which unit
works: a row with ten thousand partners is one stored row, and all ten thousand come to look for it.

    θ(unit) = |load − mean| / mean        balanced: θ ≤ θmax for all units

Source: definitions 1 and 2 of the third seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from progress.compiled.arrays import Int64s
from timely.routing.announcement import RoutingCell

__all__ = ["LoadCounts", "Loads", "Measure", "excess", "imbalance", "thetas"]

Measure = Literal["stored", "work"]


class LoadCounts(NamedTuple):
    """The counts of one routing cell."""

    stored: int
    probes: int = 0
    pairs: int = 0


@dataclass(frozen=True)
class Loads:
    """The input of a planner.

    Args:
        counts: by routing cell. A key that is in it is not counted in its bucket; a missing cell had nothing.
        traffic: rows that came in since the last plan, of both sides.
        hashes: for keys, if known, the ascending row hashes of stored rows, so that a share can be cut to the
            row. If they are not known, rows count as spread evenly, which they nearly are.
    """

    counts: Mapping[RoutingCell, LoadCounts]
    traffic: int
    hashes: Mapping[RoutingCell, Int64s] = field(default_factory=dict)


def thetas(loads: Sequence[int]) -> list[float]:
    """Return θ of each unit; all 0 if there is no load at all."""
    mean = sum(loads) / len(loads)
    return [abs(load - mean) / mean if mean else 0.0 for load in loads]


def imbalance(loads: Sequence[int]) -> float:
    """Return the greatest load over the mean; 1 if there is no load at all."""
    total = sum(loads)
    return max(loads) * len(loads) / total if total else 1.0


def excess(loads: Sequence[int], theta_max: float) -> float:
    """Return the least load that must change its unit until θ ≤ θmax: excess, or lack if that is more."""
    mean = sum(loads) / len(loads)
    over = sum(max(0.0, load - (1 + theta_max) * mean) for load in loads)
    under = sum(max(0.0, (1 - theta_max) * mean - load) for load in loads)
    return max(over, under)
