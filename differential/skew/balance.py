"""How is a join spread over units? What users write as `balance=`, and what a plan says of it.

Units are slots for rows, of which each worker has some. So what each of them has to do depends on the input
and on this, never on how many workers there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Final, Literal, TypeAlias, cast, get_args

import numpy as np

from progress.compiled.arrays import Int64s
from timely.errors import MisuseError
from timely.routing.grid import Grid
from timely.routing.table import RoutingTable
from timely.wire.routing import BUCKETS

from ..errors import SchemaError
from ..kernels.rows.hashing import hashes_of
from ..kernels.visits import TableColumns, placed_rows
from .placements.biclique import biclique
from .placements.groups import GROUPS_DEFAULT, grouped, parts
from .placements.hash import hash_placement
from .placements.hybrid import hybrid
from .placements.matrix import matrix
from .placements.placement import Placement

__all__ = ["LEAD_MAX", "Balance", "Purpose", "Scheme"]

Scheme: TypeAlias = Literal["hash", "JB", "JB6", "D-JB", "matrix"]
Purpose: TypeAlias = Literal["kept", "probing", "counted by key", "counted by bucket", "divided"]
"""What a row is on a unit for: to stay, or to look for rows of the other side. In cells both at once. What is
counted stands behind the hash of its key, or the bucket of that, in place of a unit. Divided are groups, of
which each row is on one unit.
"""

LEAD_MAX: Final = 1_000
"""Epochs from an announcement to the first for which it holds."""

_SCHEMES: Final[tuple[str, ...]] = get_args(Scheme)


@dataclass(frozen=True)
class Balance:
    """A scheme of placing rows on units, and its settings.

    scheme   hash: every key on one unit, both sides of it
             matrix: a grid, left rows in a row of cells, right rows in a column, whatever their key
             JB: each row is kept once, on any unit of its side, and probes all units of the other
             JB6: the same in groups, to which keys belong
             D-JB: by keys, of which heavy ones can be divided
    units    how many there are: up to 256
    groups   of JB6: into how many each side is divided
    shares   of the matrix: rows of cells, a power of two; None: as square as it can be
    Raises MisuseError for settings that cannot be. `docs/skew.md` says when to use which.
    """

    scheme: Scheme = "hash"
    units: int = 16
    groups: int = GROUPS_DEFAULT
    shares: int | None = None

    def __post_init__(self) -> None:
        if self.scheme not in _SCHEMES:
            raise MisuseError(
                f"balance: there is no scheme {self.scheme!r}; write one of {', '.join(_SCHEMES)}"
            )
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if type(value) is not int and not (each.name == "shares" and value is None):
                raise MisuseError(f"balance: {each.name} is a whole number, not {value!r}")
        if self.shares is not None and self.scheme != "matrix":
            raise MisuseError(f"balance: a matrix has shares, and {self.scheme} has none")
        self.placement  # noqa: B018  # an error is the user's line, not that of who asks first

    @cached_property
    def placement(self) -> Placement:
        """Who says where rows are."""
        if self.scheme == "hash":
            return hash_placement(self.units)
        if self.scheme == "matrix":
            return matrix(self.units, self.shares)
        if self.scheme == "JB":
            return biclique(self.units)
        return grouped(self.units, self.groups) if self.scheme == "JB6" else hybrid(self.units)

    @cached_property
    def division(self) -> RoutingTable | None:
        """Where rows are whose groups are divided, each once, over all units; None if each key is on one."""
        if self.scheme in ("hash", "D-JB"):
            return None
        units = range(self.units)
        grids = parts(units, self.groups) if self.scheme == "JB6" else [Grid.split(units)]
        return RoutingTable.of(self.units, grids, grids)

    def places(self, side: int, purpose: Purpose) -> Callable[[Int64s, Int64s], Int64s]:
        """Of rows of a side, and of which words are their key: each with a unit in front, wherever it is for
        that purpose.
        """
        if purpose == "counted by key":
            return lambda words, keys: np.vstack([hashes_of(words, keys), words])
        if purpose == "counted by bucket":
            return lambda words, keys: np.vstack([hashes_of(words, keys) & (BUCKETS - 1), words])
        division = self.division
        if purpose == "divided":
            assert division is not None, "nothing is divided"
            return lambda words, keys: placed_rows(words, keys, 0, 0, 0, TableColumns(*division.columns))
        placement = self.placement
        placed = placement.kept if purpose == "kept" else placement.probing
        return lambda words, keys: placed(words, keys, side, placement.first)

    def data(self) -> list[object]:
        """Itself as plain data."""
        return [self.scheme, self.units, self.groups, self.shares]

    @classmethod
    def of(cls, data: Sequence[object]) -> Balance:
        """The inverse of `data`; raises SchemaError for what is none."""
        match data:
            case [str(scheme), int(units), int(groups), (int() | None) as shares]:
                try:
                    return cls(cast("Scheme", scheme), units, groups, shares)
                except MisuseError as error:
                    raise SchemaError(f"{data!r:.200} is no balance: {error}") from error
        raise SchemaError(f"{data!r:.200} is no balance")

    def describe(self) -> str:
        """As a line of a plan says it."""
        more = {"JB6": f", {self.groups} groups", "matrix": f", {self.shares or 'even'} shares"}
        return f"{self.scheme} on {self.units} units{more.get(self.scheme, '')}"
