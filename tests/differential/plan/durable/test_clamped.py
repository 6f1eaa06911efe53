"""The rows of a checked input in a base: what is there, and what was refused.

base_*   against a slow twin that goes from epoch to epoch
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from differential.columns.schema import Schema
from differential.operators.edge.table_in import TableIn
from differential.plan.durable.clamped import clamped_rows
from timely.durable.bases.rows_form import BUCKETS, BucketRange

WHOLE = BucketRange(0, BUCKETS)
SCHEMA = Schema.of("a: int, b: string")
DETAILS = ["in", [[column.name, str(column.type)] for column in SCHEMA], [], b"", [], False]

Update = tuple[int, tuple[int, str], int]


def checked(updates: Sequence[Update], until: int) -> tuple[Counter[object], Counter[object]]:
    """What is there, and what was refused, after these epochs."""
    there: Counter[object] = Counter()
    refused: Counter[object] = Counter()
    for epoch in sorted({each[0] for each in updates if each[0] <= until}):
        sums: Counter[object] = Counter()
        for each, row, diff in updates:
            if each == epoch:
                sums[row] += diff
        for row, total in sums.items():
            now = there[row] + total
            there[row] = max(now, 0)
            refused[row] += max(-now, 0)
    return +there, +refused


def updates_of(tables: Sequence[pa.Table]) -> list[Update]:
    return [
        (row["epoch"], (row["a"], row["b"]), row["diff"]) for table in tables for row in table.to_pylist()
    ]


@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("number", range(6))
def test_base_is_checked_as_its_history_was(number: int, first: int) -> None:
    rng = random.Random(number)
    codec = TableIn(SCHEMA, "in")
    updates: list[Update] = []
    tables: list[pa.Table] = []
    summed = first - 1
    for _ in range(4):
        rows = clamped_rows(DETAILS, WHOLE)
        for table in tables:
            rows.take_table(table)
        start = summed + 1
        more = [
            (
                rng.randrange(start, start + 5),
                (rng.randrange(3), rng.choice("xy")),
                rng.choice([1, 2, -1, -1, -3]),
            )
            for _ in range(25)
        ]
        updates += more
        for epoch, row, diff in more:
            table = pa.Table.from_pylist([dict(zip("ab", row, strict=True))], schema=SCHEMA.to_arrow())
            rows.take(epoch, [codec.encode(table, np.array([diff], np.int64), 3)])
        summed += rng.choice([0, 1, 3])
        tables = [each.table for each in rows.folded([WHOLE], summed, first)]
        base = updates_of(tables)
        for until in range(summed, start + 5):
            assert checked(base, until) == checked(updates, until), (summed, until)
        assert all(epoch >= summed - 1 for epoch, _, _ in base)
