"""On which units does a row lie, or look for others? A step of a chain: each row once for each of these.

A *unit* is a slot for rows; which worker has it is said where rows are sent by it (`UnitRoute`). The step
only asks: who answers is given (`Places`), and looks at a hash of the row's keys and one of the whole row, so
that a removal goes where its insertion has gone.

The unit stands in front of the row, in a column that no user can name. So it is the first word of whatever
keys come next: what is kept by them is sorted by unit, and one worker keeps all units that it has together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from differential.columns.column_types import Int64s, integer
from differential.columns.schema import Column, Schema
from differential.errors import SchemaError
from differential.kernels.rows.hashing import hashes_of

__all__ = ["UNIT", "Places", "Placing", "placed"]

UNIT: Final = "(unit)"
"""The column in front of rows that have been placed."""

Places: TypeAlias = Callable[[Int64s, Int64s], tuple[Int64s, Int64s]]
"""Of the hashes of keys, and of whole rows: pairs (index of a row, unit), rows ascending."""


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
        """The function from rows of words to rows of words; None if no row has a unit. Cost: two hashes of
        each row, some 10 ns a row and word, and a copy for each unit.
        """
        keys = _words_of(self.schema_in, self.keys)
        everything = np.arange(self.schema_in.width)
        places = self.places

        def run(words: Int64s) -> Int64s | None:
            rows, units = places(hashes_of(words, keys), hashes_of(words, everything))
            if rows.shape[0] == 0:
                return None
            out = np.empty((words.shape[0] + 1, rows.shape[0]), np.int64)
            out[0] = units
            words.take(rows, 1, out[1:])
            return out

        return run


def _words_of(schema: Schema, names: Sequence[str]) -> Int64s:
    """Which words of a row these columns are, in this order."""
    return np.array([word for name in names for word in schema.words_of(name)], np.int64)


def placed(schema: Schema) -> Schema:
    """The columns of rows that have been placed; raises SchemaError if they have been already."""
    if UNIT in schema:
        raise SchemaError(f"a column is called {UNIT!r}, as the one that balanced joins put in front of rows")
    return Schema((Column(UNIT, integer), *schema))
