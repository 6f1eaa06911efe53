"""On which units does a row lie, or look for others? A step that makes each row once for each of its units.

A *unit* is a slot for rows; the route by which rows are sent (`UnitRoute`) says which worker has it. The step
only calls the function it gets (`Places`), which looks at a hash of the row's keys and one of the whole row,
so that a removal goes where its insertion went.

The unit stands in front of the row, in a column that no user can name. In the keys of a join it comes last,
behind the other keys: rows are searched by key first, which tells them apart better.
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
"""Name of the column in front of placed rows."""

Places: TypeAlias = Callable[[Int64s, Int64s], Int64s]
"""From rows of words, and the indices of their key words: each row once for each of its units, that in front.
"""


@dataclass(frozen=True)
class Placing:
    """Rows of `schema_in` with a unit in front, once for each unit that `places` returns for their `keys`.

    `text` describes `places`, and is the same in every process.
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
        """Return a stable text."""
        return f"place by {', '.join(self.keys) or 'nothing'}: {self.text}"

    def compile(self) -> Callable[[Int64s], Int64s | None]:
        """Return the function from rows of words to rows of words; None if no row has a unit.

        Costs what `places` costs.
        """
        keys = _words_of(self.schema_in, self.keys)
        places = self.places

        def run(words: Int64s) -> Int64s | None:
            out = places(words, keys)
            return out if out.shape[1] else None

        return run


def _words_of(schema: Schema, names: Sequence[str]) -> Int64s:
    """Return the indices of these columns' words in a row, in this order."""
    return np.array([word for name in names for word in schema.words_of(name)], np.int64)


def placed(schema: Schema) -> Schema:
    """Return the columns of placed rows; raises SchemaError if the rows are placed already."""
    if UNIT in schema:
        raise SchemaError(f"a column is called {UNIT!r}, as the one that balanced joins put in front of rows")
    return Schema((Column(UNIT, integer), *schema))
