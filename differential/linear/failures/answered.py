"""Keeps the answers of a function of groups, and makes failures of the groups on which it failed.

The function returns its columns and, behind them, the texts of an error
(`operators/reducing/group_functions.py`), which are empty if it did not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import FailingRows, UserFunctionError
from differential.expressions.literals import constant_word
from timely.user_code.call_site import CallSite

__all__ = ["AnsweredTransform"]


@dataclass(frozen=True)
class AnsweredTransform:
    """Rows of `schema_in`: first the columns of `schema_out`, then those of an error, named in `errors`."""

    schema_in: Schema
    schema_out: Schema
    errors: tuple[str, str, str, str]
    """Names of the columns with record, operator, line and error."""
    text: str
    site: CallSite

    def describe(self) -> str:
        """Return a text that names the function."""
        return f"answers of {self.text}"

    def compile(self, symbols: SymbolTable) -> Callable[[Int64s], Int64s]:
        """Return the function that drops the columns of errors; UserFunctionError if they are not empty."""
        record, stage, line, why = (self.schema_in.words_of(name)[0] for name in self.errors)
        none = constant_word("", self.schema_in[self.errors[1]].type, symbols)
        columns = [*range(self.schema_out.width), self.schema_in.width, self.schema_in.width + 1]

        def answered(words: Int64s) -> Int64s:
            failing = words[stage] != none
            if failing.any():
                error = UserFunctionError(f"{self.text} ({self.site}) failed on {int(failing.sum())} groups")

                def texts(word: int) -> Callable[[Int64s], list[str]]:
                    return lambda indices: [str(text) for text in symbols.lookup(words[word, indices])]

                error.failing = FailingRows(
                    failing,
                    self.text,
                    texts(why),
                    texts(record),
                    lambda indices: words[:-2, indices],
                    texts(line),
                )
                raise error
            return np.ascontiguousarray(words[columns])

        return answered
