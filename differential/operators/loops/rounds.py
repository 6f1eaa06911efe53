"""What do errors say of the last rounds of a loop that does not end? Rows that come and go.

A loop without an end mostly has rows that are there in one round and not in the next, or grows for ever. Of
what went round last those rows are shown that changed most often, with their changes.
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

__all__ = ["last_rounds"]

_ROWS_SHOWN: Final = 3
_CHANGES_SHOWN: Final = 4
_ROWS_READ: Final = 2_000
"""Of each batch: what is wrong shows in a few, and the dataflow ends here anyway."""


def last_rounds(schema: Schema) -> Callable[[Sequence[tuple[int, Batch]]], str]:
    """Says of batches of rows with these columns, each with the iteration that it went on to, which rows came
    and went.
    """
    show = show_schema(schema)

    def describe(rounds: Sequence[tuple[int, Batch]]) -> str:
        changes: dict[tuple[int, ...], dict[int, int]] = {}
        for iteration, batch in rounds:
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
