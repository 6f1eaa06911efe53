"""The `balance=` of users, and of plans: how a join is spread over units.

Units are slots for rows; each worker has some of them. So the work of a unit depends on the input and on the
balance, never on the number of workers.
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
from timely.user_code.offered import Offered
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
"""The purpose of a row on a unit: to be stored ("kept"), or to look for rows of the other side ("probing").

In cells a row has both purposes at once. A row that is counted has the hash of its key, or the bucket of
that, in place of a unit. A row of a divided group is on one unit.
"""

LEAD_MAX: Final = 1_000
"""Limit for the number of epochs from an announcement to the first one for which it holds."""

_SCHEMES: Final[tuple[str, ...]] = get_args(Scheme)


@dataclass(frozen=True)
class Balance(Offered):
    """A scheme of placing rows on units, and its settings.

    scheme   hash: every key is on one unit, with both sides
             matrix: a grid; left rows go to a row of cells, right rows to a column, whatever their key
             JB: each row is stored once, on any unit of its side, and probes all units of the other
             JB6: the same in groups, to which keys belong
             D-JB: by keys; heavy ones can be divided
    units    the number of units, up to 256
    groups   for JB6: the number of groups into which each side is divided
    shares   for the matrix: the number of rows of cells, a power of two; None: as square as it can be

    Raises MisuseError for impossible settings. `docs/skew.md` says when to use which.
    """

    _internal = frozenset({"data", "describe", "division", "of", "placement", "places"})

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
        self.placement  # noqa: B018  # raise errors at the user's line, not at the first use

    @cached_property
    def placement(self) -> Placement:
        """The placement of the scheme."""
        if self.scheme == "hash":
            return hash_placement(self.units)
        if self.scheme == "matrix":
            return matrix(self.units, self.shares)
        if self.scheme == "JB":
            return biclique(self.units)
        return grouped(self.units, self.groups) if self.scheme == "JB6" else hybrid(self.units)

    @cached_property
    def division(self) -> RoutingTable | None:
        """The table for divided groups, with each row on one unit; None if each key is on one unit."""
        if self.scheme in ("hash", "D-JB"):
            return None
        units = range(self.units)
        grids = parts(units, self.groups) if self.scheme == "JB6" else [Grid.split(units)]
        return RoutingTable.of(self.units, grids, grids)

    def places(self, side: int, purpose: Purpose) -> Callable[[Int64s, Int64s], Int64s]:
        """Return a function of rows of a side and of their key words, which puts a unit in front of each row.

        It returns each row once for each unit on which the row is for that purpose.
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
        placed = placement.storing if purpose == "kept" else placement.probing
        return lambda words, keys: placed(words, keys, side, placement.first)

    def data(self) -> list[object]:
        """Return the balance as plain data."""
        return [self.scheme, self.units, self.groups, self.shares]

    @classmethod
    def of(cls, data: Sequence[object]) -> Balance:
        """The inverse of `data`; raises SchemaError for data that is no balance."""
        match data:
            case [str(scheme), int(units), int(groups), (int() | None) as shares]:
                try:
                    return cls(cast("Scheme", scheme), units, groups, shares)
                except MisuseError as error:
                    raise SchemaError(f"{data!r:.200} is no balance: {error}") from error
        raise SchemaError(f"{data!r:.200} is no balance")

    def describe(self) -> str:
        """Return the text for a line of a plan."""
        more = {"JB6": f", {self.groups} groups", "matrix": f", {self.shares or 'even'} shares"}
        return f"{self.scheme} on {self.units} units{more.get(self.scheme, '')}"
