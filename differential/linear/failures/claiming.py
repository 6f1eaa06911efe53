"""Steps for claims: one makes a failure of each row, since there should be none; one lets no row pass."""

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
    """Claims `what` about rows of `schema_out`, namely that there are none; passes them on unchanged."""

    what: str
    schema_out: Schema

    def describe(self) -> str:
        """Return the claim."""
        return self.what

    def compile(self, symbols: SymbolTable) -> Callable[[Int64s], Int64s]:
        """Return the function that raises NotEmptyError for any row; `failing.py` makes a failure of each."""
        del symbols

        def claim(words: Int64s) -> Int64s:
            if words.shape[1]:
                raise NotEmptyError(f"{self.what} does not hold: it has rows")
            return words

        return claim


@dataclass(frozen=True)
class Nothing:
    """Makes no rows, of columns `schema_out`; the chain in front of it runs for its failures only."""

    schema_out: Schema

    def describe(self) -> str:
        """Return its name."""
        return "nothing"

    def compile(self, symbols: SymbolTable) -> Callable[[Int64s], None]:
        """Return the function that makes no rows."""
        del symbols
        return lambda words: None
