"""On which units does a row lie, or look for others? A step of a chain: each row once for each of these.

A *unit* is a slot for rows; which worker has it is said where rows are sent by it (`UnitRoute`). The step
only asks: who answers is given (`Places`), and looks at a hash of the row's keys and one of the whole row, so
that a removal goes where its insertion has gone.

The unit stands in front of the row, in a column that no user can name. Behind the other keys of a join it is
the last one: rows are found by their key first, which tells them apart better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from differential.columns.column_types import Int64s, integer
from differential.columns.schema import Column, Schema
from differential.errors import SchemaError

__all__ = ["UNIT", "Places", "Placing", "placed"]

UNIT: Final = "(unit)"
"""The column in front of rows that have been placed."""

Places: TypeAlias = Callable[[Int64s, Int64s], Int64s]
"""Of rows of words, and of which of these are the key: each row once for each of its units, that in front."""


@dataclass(frozen=True)
class Placing:
    """Rows of `schema_in`, each with a unit in front, for all units that `places` gives it by its `keys`.

    `text` says the same as `places`, in every process.
    """

    schema_in: Schema
    keys: tuple[str, ...]
    places: Places
    text: str

    @property
    def schema_out(self) -> Schema:
        """The unit and the same columns."""
        return placed(self.schema_in)

    def describe(self) -> str:
        """A stable text."""
        return f"place by {', '.join(self.keys) or 'nothing'}: {self.text}"

    def compile(self) -> Callable[[Int64s], Int64s | None]:
        """The function from rows of words to rows of words; None if no row has a unit. Cost: what `places`
        costs.
        """
        keys = _words_of(self.schema_in, self.keys)
        places = self.places

        def run(words: Int64s) -> Int64s | None:
            out = places(words, keys)
            return out if out.shape[1] else None

        return run


def _words_of(schema: Schema, names: Sequence[str]) -> Int64s:
    """Which words of a row these columns are, in this order."""
    return np.array([word for name in names for word in schema.words_of(name)], np.int64)


def placed(schema: Schema) -> Schema:
    """The columns of rows that have been placed; raises SchemaError if they have been already."""
    if UNIT in schema:
        raise SchemaError(f"a column is called {UNIT!r}, as the one that balanced joins put in front of rows")
    return Schema((Column(UNIT, integer), *schema))
