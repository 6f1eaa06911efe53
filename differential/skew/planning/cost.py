"""The cost of a plan.

    cost = α · routing + β · duplication + γ · migration        α + β + γ = 1, none negative

Each of the three is in bytes, over the bytes of the traffic since the last plan. So a cost of 0.1, with all
weight on one of them, is a tenth of what was sent anyway.

    routing       announcements, which every router gets and stores
    duplication   what split and copied keys send more than once, if the next period is as the last
    migration     stored rows that change their unit

Source: definition 3 and formula (3) of the third seed, which prints × for the first +: with it a plan that
splits nothing would cost nothing for its routes either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from progress.errors import MisuseError

__all__ = ["ANNOUNCEMENT_BYTES", "ROW_BYTES", "Costs", "Weights"]

ANNOUNCEMENT_BYTES: Final = 64
"""Eight words."""
ROW_BYTES: Final = 64
"""The assumed size of a row with its time and difference: six words and two."""


class Costs(NamedTuple):
    """The three costs as numbers: of announcements, of duplicate rows, of migrated rows."""

    announcements: int = 0
    duplicates: int = 0
    migrated: int = 0

    def plus(self, other: Costs) -> Costs:
        """Return the sum of both."""
        return Costs(*(mine + its for mine, its in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Weights:
    """α, β, γ: not negative, and 1 together. The default is the seed's best."""

    routing: float = 0.2
    duplication: float = 0.3
    migration: float = 0.5

    def __post_init__(self) -> None:
        weights = (self.routing, self.duplication, self.migration)
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
            raise MisuseError(f"weights of costs are not negative: {weights}")
        if not math.isclose(sum(weights), 1.0, abs_tol=1e-9):
            raise MisuseError(f"weights of costs are 1 together, these are {sum(weights):g}: {weights}")

    def cost(self, costs: Costs, traffic: int) -> float:
        """Return the weighted cost of `costs`, over `traffic` rows."""
        sent = max(traffic, 1) * ROW_BYTES
        return (
            self.routing * costs.announcements * ANNOUNCEMENT_BYTES
            + self.duplication * costs.duplicates * ROW_BYTES
            + self.migration * costs.migrated * ROW_BYTES
        ) / sent
