"""How loaded is each unit, and by what?

Counts are kept by place: for each bucket of a side, and apart from that for each key that is, or may become,
an exception. A place counts

    stored   rows of its side that are kept
    probes   rows of the other side that came to look for them
    pairs    what these found

A unit's load is the sum over all that lies on it, in one of two measures: *stored*, kept rows, as in the
third seed; or *work*, stored + probes + pairs. Stored rows say what memory a unit needs. They do not say who
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
    """What one place has had."""

    stored: int
    probes: int = 0
    pairs: int = 0


@dataclass(frozen=True)
class Loads:
    """What a planner is told.

    Args:
        counts: by place. A key that is in it is not counted in its bucket; what is left out has had nothing.
        traffic: rows that came in since the last time, of both sides.
        hashes: for keys, if known, the ascending row hashes of kept rows, so that a share can be cut to the
            row. Where they are not known rows are taken to be spread evenly, which they are nearly.
    """

    counts: Mapping[RoutingCell, LoadCounts]
    traffic: int
    hashes: Mapping[RoutingCell, Int64s] = field(default_factory=dict)


def thetas(loads: Sequence[int]) -> list[float]:
    """θ of each unit; all 0 where there is no load at all."""
    mean = sum(loads) / len(loads)
    return [abs(load - mean) / mean if mean else 0.0 for load in loads]


def imbalance(loads: Sequence[int]) -> float:
    """The greatest load over the mean; 1 where there is no load at all."""
    total = sum(loads)
    return max(loads) * len(loads) / total if total else 1.0


def excess(loads: Sequence[int], theta_max: float) -> float:
    """How much load must change its unit at least until θ ≤ θmax: what is too much, or what is missing."""
    mean = sum(loads) / len(loads)
    over = sum(max(0.0, load - (1 + theta_max) * mean) for load in loads)
    under = sum(max(0.0, (1 - theta_max) * mean - load) for load in loads)
    return max(over, under)
