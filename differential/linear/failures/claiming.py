"""A claim that there are no rows: it lets all rows pass, and each of them is a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import NotEmptyError

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """`what` is claimed of rows of `schema_out`, which it gives as they are."""

    what: str
    schema_out: Schema

    def describe(self) -> str:
        """What is claimed."""
        return self.what

    def compile(self, symbols: SymbolTable) -> Callable[[Int64s], Int64s]:
        """The function that raises NotEmptyError for any row; `failing.py` makes a failure of each."""
        del symbols

        def claim(words: Int64s) -> Int64s:
            if words.shape[1]:
                raise NotEmptyError(f"{self.what} does not hold: it has rows")
            return words

        return claim
