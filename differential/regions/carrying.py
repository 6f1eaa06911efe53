"""What a connector does to rows, as a kernel does it; or is it something that no kernel knows?"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from differential.kernels.regions.layout import FAR
from differential.linear.transform import LinearTransform
from progress.arrays import Int64s
from timely.operators.region import Link

__all__ = ["Carrying", "carrying_of"]

_NO_TESTS: Final[Int64s] = np.zeros((0, 4), np.int64)


class Carrying(NamedTuple):
    """words, tests: see `E_PROJECTION` and `E_TESTS`; None: words stay as they are. limit: see `E_LAST`."""

    keep: int
    add: int
    words: Int64s | None
    sign: int
    tests: Int64s
    limit: tuple[int, int, int]
    is_round: bool


def carrying_of(link: Link) -> Carrying | None:
    """What a connector does; None if it is Python's."""
    if len(link.limits) > 1:
        return None
    limit = link.limits[0] if link.limits else (0, 0, FAR)
    if link.transform is None:
        return Carrying(link.keep, link.add, None, 1, _NO_TESTS, limit, link.is_round)
    if not isinstance(link.transform, LinearTransform) or link.is_round:
        return None
    short = link.transform.short
    if short is None:
        return None
    return Carrying(link.keep, link.add, short.words, short.sign, short.tests, limit, link.is_round)
