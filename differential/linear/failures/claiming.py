"""Steps for claims: that there are no rows, each of which is a failure; and that lets none go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import NotEmptyError

__all__ = ["Claim", "Nothing"]


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


@dataclass(frozen=True)
class Nothing:
    """No row, of columns `schema_out`: what is in front is there for what fails in it."""

    schema_out: Schema

    def describe(self) -> str:
        """Its name."""
        return "nothing"

    def compile(self, symbols: SymbolTable) -> Callable[[Int64s], None]:
        """The function that gives no rows."""
        del symbols
        return lambda words: None
