"""ISM and S2SM: moves between the units of one side, and from one side to the other.

*ISM* (internal side migration) brings the units of one half within θmax of the mean of that half. *S2SM*
(side to side) moves from a half whose mean is beyond θmax of the mean of all to the half that is below it; a
unit has a store for either side, so anything can be anywhere. `balance` does all: first S2SM, then ISM in
each half, then it moves whatever is still beyond θmax of the mean of *all* units to any unit with room.

Source: algorithms 3 and 4 of the third seed. Its algorithm 4 says `MoveIn(PUm, …)` in line 22, where it means
PUin. In its figure 4 the second key that is split is k3, which has 25 rows, and not k4.
"""

from __future__ import annotations

from collections.abc import Sequence

from .moving import Bounds, Mover, bounds_of

__all__ = ["AIM_DEFAULT", "balance", "ism", "s2sm"]

AIM_DEFAULT = 0.5
"""The part of θmax within which a plan brings what is beyond: between moving often and moving much."""


def ism(mover: Mover, units: Sequence[int], theta_max: float, aim: float = AIM_DEFAULT) -> None:
    """Balance `units` among themselves. H3 first, as in the seed: items that come home relieve others."""
    bounds = _bounds(mover, units, theta_max, aim)
    for unit in units:
        if mover.draft.loads[unit] < bounds.low:
            mover.call_home(unit, bounds)
    for unit in _heaviest_first(mover, units):
        mover.move_out(unit, units, bounds)
    for unit in reversed(_heaviest_first(mover, units)):
        mover.move_in(unit, units, bounds)


def s2sm(
    mover: Mover,
    halves: tuple[Sequence[int], Sequence[int]],
    theta_max: float,
    aim: float = AIM_DEFAULT,
) -> None:
    """Move from the half that has too much to the one that has too little, if there is one."""
    everything = [*halves[0], *halves[1]]
    loads = mover.draft.loads
    mean = sum(loads[unit] for unit in everything) / len(everything)
    means = [sum(loads[unit] for unit in half) / len(half) for half in halves]
    if max(means) <= (1 + theta_max) * mean and min(means) >= (1 - theta_max) * mean:
        return
    heavy = 0 if means[0] > means[1] else 1
    bounds = _bounds(mover, everything, theta_max, aim)
    for unit in _heaviest_first(mover, halves[heavy]):
        mover.move_out(unit, halves[1 - heavy], bounds)
    for unit in reversed(_heaviest_first(mover, halves[1 - heavy])):
        mover.move_in(unit, halves[heavy], bounds)


def balance(
    mover: Mover,
    halves: tuple[Sequence[int], Sequence[int]],
    theta_max: float,
    aim: float = AIM_DEFAULT,
) -> None:
    """Run S2SM, ISM in each half, and ISM between all units for what these leave."""
    s2sm(mover, halves, theta_max, aim)
    for half in halves:
        ism(mover, half, theta_max, aim)
    ism(mover, [*halves[0], *halves[1]], theta_max, aim)


def _bounds(mover: Mover, units: Sequence[int], theta_max: float, aim: float) -> Bounds:
    return bounds_of(sum(mover.draft.loads[unit] for unit in units), len(units), theta_max, aim)


def _heaviest_first(mover: Mover, units: Sequence[int]) -> list[int]:
    return sorted(units, key=lambda unit: (-mover.draft.loads[unit], unit))
