"""Failures for groups whose sums do not fit: one row of `FAILURES` for each such group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.linear.failures.failing import Failed, failure_words, row_hash
from differential.linear.failures.guarding import record_text
from differential.operators.reducing.overflowing import FailedGroup, limits_of
from differential.operators.vertices import show_schema
from progress.compiled.arrays import Int64s

__all__ = ["GroupFailures"]


class GroupFailures(NamedTuple):
    """How failures name groups and aggregates.

    formulas   of the words of an answer: see `Accumulation`
    key        the columns of keys
    names      of the aggregates
    """

    formulas: Sequence[tuple[int, int, int, int, int]]
    key: Schema | None = None
    names: tuple[str, ...] = ()

    def rows(self, failed: Sequence[FailedGroup], counters: int) -> Int64s:
        """Return the rows of these changes, all of place 0; `counters`: bits of a time below its epoch."""
        show = show_schema(self.key)
        changes = [
            Failed(
                b"",
                row_hash(each.key),
                "SumOverflowError",
                record_text(self._name(each.column)),
                record_text(show(each.key)),
                self._why(each.column),
                "",
                each.time,
                each.diff,
            )
            for each in failed
        ]
        return failure_words({b"": 0}, changes, (0, counters), SYMBOLS)

    def _name(self, column: int) -> str:
        return self.names[column] if column < len(self.names) else f"word {column} of the answer"

    def _why(self, column: int) -> str:
        what, _, _, limbs, digits = self.formulas[column]
        limits = limits_of(what, limbs, digits)
        if limits is None or not limits.digits:
            return "leaves 64 bits"
        return f"has more than {limits.digits} digits"
