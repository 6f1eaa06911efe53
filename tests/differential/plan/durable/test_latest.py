"""The entries of an upsert input in a base: the last one of each key, in the order that decides.

base_*   against a slow twin, over several folds
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from differential.columns.schema import Schema
from differential.columns.update_batch import UpdateBatch
from differential.operators.timed.keyed_io import KeyedTableIn
from differential.plan.durable.latest import latest_rows
from timely.durable.bases.rows_form import BUCKETS, BucketRange

WHOLE = BucketRange(0, BUCKETS)
FORMS = {
    "text": (Schema.of("order: int, k: string, v: string"), ("k",)),
    "null": (Schema.of("k: int, v: int?, place: string?"), ("k",)),
    "keys": (Schema.of("v: int, k: int?, j: string, w: int?"), ("j", "k")),
}

Entry = tuple[int, int, int, tuple[object, ...], bool]
"""Epoch, order, place, row, whether it has a value."""


def details_of(schema: Schema, keys: Sequence[str]) -> list[object]:
    return ["in", [[column.name, str(column.type)] for column in schema], list(keys), b"", [], False]


def some_entries(rng: random.Random, schema: Schema, first: int, stop: int, count: int) -> list[Entry]:
    entries = []
    for _ in range(count):
        row: list[object] = []
        for column in schema:
            values: list[object] = [1, 2, 3] if column.type.kind == "int" else ["x", "y", "z"]
            row.append(rng.choice([*values, None] if column.type.nullable else values))
        order = rng.choice([rng.randrange(1, 9), -1 - rng.randrange(1 << 60)])
        place = rng.randrange(1 << 40)
        entries.append((rng.randrange(first, stop), order, place, tuple(row), rng.random() < 0.7))
    return entries


def batch_of(codec: KeyedTableIn, entry: Entry) -> UpdateBatch:
    _, order, place, row, has_value = entry
    table = pa.Table.from_pylist(
        [dict(zip(codec.schema.names, row, strict=True))], schema=codec.schema.to_arrow()
    )
    return codec.ordered(codec.encode(table, 1 if has_value else -1, 7), order, place)


def twin(schema: Schema, keys: Sequence[str], entries: Sequence[Entry], summed: int) -> set[object]:
    """The last entry of each key and epoch; of the epochs up to `summed` the last one, if it is a value."""
    last: dict[object, Entry] = {}
    for entry in sorted(entries, key=lambda each: each[:3]):
        key = tuple(entry[3][schema.names.index(name)] for name in keys)
        last[key, max(entry[0], summed)] = entry
    return {
        (epoch, key, entry[3] if entry[4] else None, *(entry[1:3] if epoch > summed else ()))
        for (key, epoch), entry in last.items()
        if entry[4] or epoch > summed
    }


def rows_of(schema: Schema, keys: Sequence[str], tables: Sequence[pa.Table], summed: int) -> set[object]:
    rows: list[object] = []
    for table in tables:
        for *row, epoch, diff, order, place in zip(*[c.to_pylist() for c in table.columns], strict=True):
            key = tuple(row[schema.names.index(name)] for name in keys)
            value = tuple(row) if diff > 0 else None
            rows.append((epoch, key, value, *((order, place) if epoch > summed else ())))
        epochs = table.column(len(schema)).to_pylist()
        assert epochs == sorted(epochs)
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("form", FORMS)
def test_base_after_several_folds_is_what_the_twin_has(form: str, number: int) -> None:
    schema, keys = FORMS[form]
    codec = KeyedTableIn(schema, "in", keys)
    rng = random.Random(number)
    entries: list[Entry] = []
    tables: list[pa.Table] = []
    summed = -1
    for _ in range(4):
        rows = latest_rows(details_of(schema, keys), WHOLE)
        for table in tables:
            rows.take_table(table)
        more = some_entries(rng, schema, summed + 1, summed + 6, 30)
        entries += more
        rng.shuffle(more)  # in which order they are read does not matter
        for entry in more:
            rows.take(entry[0], [batch_of(codec, entry)])
        summed += rng.choice([0, rng.randrange(1, 6)])
        tables = [each.table for each in rows.folded([WHOLE], summed, 0)]
        assert rows_of(schema, keys, tables, summed) == twin(schema, keys, entries, summed)


def test_base_of_parts_gives_them_the_order_of_their_decision() -> None:
    schema, keys = FORMS["null"]
    codec = KeyedTableIn(schema, "in", keys)
    rows = latest_rows(details_of(schema, keys), WHOLE)
    for order, value in ((7, 1), (3, 2)):  # the one that was decided last comes first
        table = pa.Table.from_pylist([{"k": 1, "v": value, "place": "x"}], schema=schema.to_arrow())
        rows.take(0, [codec.encode(table, 1, 0)], order, 0)
    (base,) = rows.folded([WHOLE], 0, 0)
    assert base.table.column("v").to_pylist() == [1]


def test_base_in_buckets_is_divided_by_key() -> None:
    schema, keys = FORMS["text"]
    codec = KeyedTableIn(schema, "in", keys)
    entries = some_entries(random.Random(1), schema, 0, 5, 200)
    halves = [BucketRange(0, BUCKETS // 2), BucketRange(BUCKETS // 2, BUCKETS)]
    tables = []
    for buckets in halves:
        rows = latest_rows(details_of(schema, keys), buckets)
        for entry in entries:
            rows.take(entry[0], [batch_of(codec, entry)])
        tables += [each.table for each in rows.folded([buckets], 3, 0)]
    assert rows_of(schema, keys, tables, 3) == twin(schema, keys, entries, 3)
