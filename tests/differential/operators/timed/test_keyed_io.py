"""keyed_io.py: what clients of an upsert input send, as words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential.columns.column_types import Int64s
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.errors import SchemaError
from differential.operators.timed.keyed_io import KeyedTableIn, entry_schema
from differential.operators.timed.latest import INHERITED
from timely.errors import MisuseError
from timely.running.core import Worker

SCHEMA = Schema.of("id: int, n: int, note: int?")
CODEC = KeyedTableIn(SCHEMA, "values", ("id",))


def _words(codec: KeyedTableIn, rows: list[tuple[object, ...]], diff: object = 1) -> list[tuple[int, ...]]:
    columns = list(zip(*rows, strict=True))
    table = pa.Table.from_arrays(
        [pa.array(list(column), pa.int64()) for column in columns],
        names=list(codec.schema.names)[: len(columns)],
    )
    batch = codec.encode(table, diff, 7)  # type: ignore[arg-type]
    return [tuple(row) for row in batch.words.T.tolist()]


def test_values_deletions_and_the_order_are_words_behind_the_columns() -> None:
    assert entry_schema(SCHEMA).width == 7
    #                                     id n note  value order place time diff
    assert _words(CODEC, [(1, 5, None)]) == [(1, 5, 0, 0, 1, 0, 0, 7, 1)]
    assert _words(CODEC, [(1,)], -1) == [(1, 0, 0, 0, 0, 0, 0, 7, 1)]
    batch = CODEC.encode(pa.table({"id": [1, 2], "n": [3, 4], "note": [5, 6]}), 1, 7)
    assert CODEC.ordered(batch, 9, 40).words[-4:-2].tolist() == [[9, 9], [40, 41]]


def test_a_row_of_nulls_deletes_where_null_is_no_value() -> None:
    assert _words(CODEC, [(1, None, None)]) == _words(CODEC, [(1,)], -1)
    nullable = KeyedTableIn(Schema.of("id: int, note: int?"), "values", ("id",))
    assert _words(nullable, [(1, None)]) == [(1, 0, 0, 1, 0, 0, 7, 1)]
    with pytest.raises(SchemaError, match=r"'n' \(int\), row 1: null .*\n.*delete"):
        _words(CODEC, [(1, 2, 3), (1, None, 3)])


def test_a_table_with_diffs_says_values_and_deletions() -> None:
    assert _words(CODEC, [(1, 5, 6), (2, 5, 6)], np.array([1, -1])) == [
        (1, 5, 1, 6, 1, 0, 0, 7, 1),
        (2, 0, 0, 0, 0, 0, 0, 7, 1),
    ]


TOO_LARGE = 2**64 - 1


@pytest.mark.parametrize("deleted", [[0], [1, 2], [0, 1, 2]])
def test_what_stands_beside_a_key_that_is_deleted_does_not_count(deleted: list[int]) -> None:
    """Whether or not other rows of its table have values: it makes no difference which go together."""
    diff = np.array([-1 if row in deleted else 1 for row in range(3)])
    values = [TOO_LARGE if row in deleted else row for row in range(3)]
    table = pa.table({"note": [7, 8, 9], "id": [1, 2, 3], "n": pa.array(values, pa.uint64())})
    words = CODEC.encode(table, diff if len(deleted) < 3 else -1, 7).words.T.tolist()
    for row in range(3):
        alone = table.slice(row, 1)
        assert words[row] == CODEC.encode(alone, int(diff[row]), 7).words[:, 0].tolist()


def test_beside_keys_that_are_deleted_a_value_that_does_not_fit_is_still_refused() -> None:
    table = pa.table({"id": [1, 2, 3], "n": pa.array([1, 2, TOO_LARGE], pa.uint64()), "note": [7, 8, 9]})
    with pytest.raises(SchemaError, match=r"'n' \(int\?\), row 1: 18446744073709551615") as raised:
        CODEC.encode(table, np.array([-1, 1, 1]), 7)
    assert raised.value.__notes__ == ["rows are counted among those whose diff is 1"]
    with pytest.raises(SchemaError, match=r"'n' \(int\?\), row 2: 18446744073709551615") as raised:
        CODEC.encode(table, 1, 7)
    assert not hasattr(raised.value, "__notes__"), "all are looked at"
    with pytest.raises(SchemaError, match="missing 'note'") as raised:
        CODEC.encode(table.drop_columns("note"), np.array([-1, 1, 1]), 7)
    assert not hasattr(raised.value, "__notes__"), "it is not about rows"
    with pytest.raises(SchemaError, match="'id'.*, row 0: None is null"):
        CODEC.encode(table.set_column(0, "id", pa.array([None, 2, 3])), np.array([-1, 1, -1]), 7)
    texts = KeyedTableIn(Schema.of("id: string, n: int"), "values", ("id",))
    unfiltered = pa.table({"id": pa.array(["a", "b"], pa.string_view()), "n": table["n"][1:]})
    with pytest.raises(SchemaError, match=r"'n' \(int\?\), row 1"):
        texts.encode(unfiltered, np.array([1, -1]), 7)  # whose rows Arrow does not pick


@pytest.mark.parametrize("diff", [2, -2, np.array([2]), np.array([1, -2]), np.array([-(2**63)])])
def test_a_value_is_not_said_twice_also_where_all_rows_have_the_same_diff(diff: int | Int64s) -> None:
    """Of a table whose diffs are all alike, an encoder is told the one: see `batches_of`."""
    rows = [(row, 5, 6) for row in range(1 if isinstance(diff, int) else len(diff))]
    with pytest.raises(MisuseError, match="the column 'diff' says 1 for a value and -1 for a key that is"):
        _words(CODEC, rows, diff)


def test_deletions_of_a_table_without_the_key_are_refused() -> None:
    with pytest.raises(SchemaError, match="takes the columns id; missing 'id'"):
        CODEC.encode(pa.table({"n": [3]}), -1, 7)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])
    with pytest.raises(SchemaError, match="takes the columns id"):
        CODEC.encode(twice, -1, 7)


def test_clients_learn_the_key_and_that_null_deletes() -> None:
    schema = CODEC.arrow_schema()
    assert schema.metadata == {b"keys": b"\x91\xa2id"}
    assert [field.nullable for field in schema] == [False, True, True]
    assert CODEC.describe() == "table (id: int, n: int, note: int?) by id"


def test_a_new_version_reads_the_values_of_the_old_one() -> None:
    codec = CODEC.as_import()
    assert codec.describe() == CODEC.describe()
    flow = timely.Dataflow("owner")
    dd.input(flow, "values", "note: int?, n: int, id: int", key="id", mode="upsert").export("values", by="n")
    worker = Worker()
    instance = worker.install(flow.freeze())
    exported = worker.exported("owner", "values")
    assert exported.of_input == "values"
    handle = instance.input("values")
    (said,) = handle.encode(pa.table({"note": [None], "n": [5], "id": [1]}), 1, handle.epoch_word(0))
    handle.append(0, said)
    handle.seal()
    worker.run_until_idle()
    source = codec.open(exported, "reader")
    source.begin(instance.runners[0].code, 1, lambda: None)
    ((epoch, batch),) = source.take(1 << 40).batches
    assert epoch == 1 and words_of(batch).shape == (9, 1)
    assert words_of(batch)[:7, 0].tolist() == [1, 5, 0, 0, INHERITED, 0, 0] and words_of(batch)[-1, 0] == 1
