"""The text of the error about a loop that does not end: rows that came and went in its last iterations.

A loop without end mostly has rows that are there in one iteration and not in the next, or grows for ever. The
text shows, of the rows that went round last, those that changed most often, with their changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.operators.arrangement import ArrangedBatch
from differential.operators.vertices import show_schema
from timely.wire.batch import Batch

__all__ = ["last_iterations"]

_ROWS_SHOWN: Final = 3
_CHANGES_SHOWN: Final = 4
_ROWS_READ: Final = 2_000
"""Rows of each batch that it looks at: few rows show what is wrong, and the dataflow ends here anyway."""


def last_iterations(schema: Schema) -> Callable[[Sequence[tuple[int, Batch]]], str]:
    """Return a function that makes the text. Its argument is batches of rows with these columns, each with
    the iteration to which it went on.
    """
    show = show_schema(schema)

    def describe(last: Sequence[tuple[int, Batch]]) -> str:
        changes: dict[tuple[int, ...], dict[int, int]] = {}
        for iteration, batch in last:
            for column in _words(batch)[:, -_ROWS_READ:].T.tolist():
                of_row = changes.setdefault(tuple(column[:-2]), {})
                of_row[iteration] = of_row.get(iteration, 0) + column[-1]
        restless = sorted(changes.items(), key=lambda item: (-len(item[1]), -max(item[1]), item[0]))
        if not restless:
            return ""
        shown = [
            f"{show(list(words))} "
            + ", ".join(f"{diff:+d} at {at:,}" for at, diff in sorted(diffs.items())[-_CHANGES_SHOWN:])
            for words, diffs in restless[:_ROWS_SHOWN]
        ]
        return f"Rows that came and went: {'; '.join(shown)}."

    return describe


def _words(batch: Batch) -> Int64s:
    assert isinstance(batch, UpdateBatch | PackedBatch | ArrangedBatch)
    return batch.words
