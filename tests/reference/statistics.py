"""What the statistics of a group are: each of a multiset of values, by the slow and obvious way.

Values are never null, and counts may be negative where the definition is a sum. `values_there` writes the
others out: a value of multiplicity 3 is three values, one of a negative multiplicity none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar

from reference.collection import divided

__all__ = [
    "covariance",
    "most_frequent",
    "percentile",
    "percentile_disc",
    "shape",
    "text",
    "values_there",
]

V = TypeVar("V", int, float, str)


def values_there(counts: Mapping[V, int]) -> list[V]:
    """All values, ascending."""
    return sorted(value for value, count in counts.items() for _ in range(max(count, 0)))


def percentile(values: list[float], fraction: float) -> float:
    """Of ascending values, at least one."""
    position = fraction * (len(values) - 1)
    low = int(position)
    far = position - low
    before, behind = float(values[low]), float(values[min(low + (far > 0), len(values) - 1)])
    return before if before == behind else (1 - far) * before + far * behind


def percentile_disc(values: list[V], fraction: float) -> V:
    """Of ascending values, at least one."""
    return values[max(math.ceil(fraction * len(values)) - 1, 0)]


def most_frequent(counts: Mapping[V, int]) -> V:
    """The least of those that are there most often; at least one is."""
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


def text(counts: Mapping[str, int], separator: str, once: bool = False) -> str:
    """All texts as one."""
    values = values_there(counts)
    return separator.join(sorted(set(values)) if once else values)


def covariance(pairs: Mapping[tuple[int, int], int], is_sample: bool) -> float | None:
    """Of pairs of whole numbers."""
    number = sum(pairs.values())
    if number < 2 if is_sample else number == 0:
        return None
    both = sum(x * y * count for (x, y), count in pairs.items())
    xs = sum(x * count for (x, _), count in pairs.items())
    ys = sum(y * count for (_, y), count in pairs.items())
    return divided(Fraction(number * both - xs * ys), number * (number - 1 if is_sample else number))


def shape(counts: Mapping[int, int], power: int) -> float | None:
    """The skewness (of the third power) or the kurtosis (of the fourth) of whole numbers."""
    number = sum(counts.values())
    if number == 0:
        return None
    s1, s2, s3, s4 = (sum(value**each * count for value, count in counts.items()) for each in (1, 2, 3, 4))
    spread = float(abs(number * s2 - s1 * s1))
    if spread == 0:
        return None
    if power == 3:
        above = float(number**2 * s3 - 3 * number * s1 * s2 + 2 * s1**3)
        return above / (spread * math.sqrt(spread))
    above = float(number**3 * s4 - 4 * number**2 * s1 * s3 + 6 * number * s1**2 * s2 - 3 * s1**4)
    return above / (spread * spread) - 3
