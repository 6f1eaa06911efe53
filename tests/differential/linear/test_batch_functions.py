"""batch_functions.py: functions of batches of changes.

batch_*     what a function is given, and what becomes of what it gives
refused_*   what it may not give, and what a user is told
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError, UserFunctionError
from differential.linear.chain import LinearChain
from differential.testing import Updates, assert_updates, updates, updates_from_words, updates_to_words

SCHEMA = Schema.of("a: int, s: string")

CHANGES = updates(
    """
    a | s | epoch | diff
    1 | x | 0     | +1
    2 | y | 1     | +2
    3 | x | 0     | -1
    """,
    SCHEMA,
)


def run(function: Callable[[pa.Table], object], schema: str = "a: int, s: string") -> Updates:
    symbols = SymbolTable()
    words = updates_to_words(CHANGES, SCHEMA, symbols)
    chain = LinearChain.over(SCHEMA).map_batches(function, schema)
    result = chain.compile(symbols)(words)
    if result is None:
        return Updates(chain.schema_out.names, ())
    return updates_from_words(result, chain.schema_out, symbols)


def test_batch_each_time_is_one_with_the_differences_as_a_column() -> None:
    seen: list[list[dict[str, object]]] = []

    def look(table: pa.Table) -> pa.Table:
        seen.append(table.to_pylist())
        return table

    assert_updates(run(look), CHANGES)
    assert seen == [
        [{"a": 1, "s": "x", "diff": 1}, {"a": 3, "s": "x", "diff": -1}],
        [{"a": 2, "s": "y", "diff": 2}],
    ]


def test_batch_rows_without_differences_have_those_of_the_row_at_their_place() -> None:
    found = run(lambda t: pa.table({"d": pc.multiply(t["a"], 2)}), "d: int")
    assert found.changes == (((2,), (0,), 1), ((6,), (0,), -1), ((4,), (1,), 2))


def test_batch_any_number_of_rows_with_their_differences() -> None:
    def most(table: pa.Table) -> pa.RecordBatch:
        kept = table.filter(pc.greater(table["a"], 1))
        doubled = pa.concat_tables([kept, kept]).combine_chunks()
        return doubled.to_batches()[0] if doubled.num_rows else pa.RecordBatch.from_pylist([], table.schema)

    assert run(most).consolidated() == {((2, "y"), (1,)): 4, ((3, "x"), (0,)): -2}
    assert run(lambda t: t.slice(0, 0)).changes == ()
    zeros = run(lambda t: t.set_column(2, "diff", pa.array([0] * t.num_rows)))
    assert zeros.changes == ()


def _broken(table: object) -> object:
    raise ValueError("no luck")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda t: t.drop_columns(["diff"]).slice(1), "gave 1 row for 2, without the column 'diff'"),
        (lambda t: 5, "gave a int, not an Arrow table"),
        (lambda t: t.drop_columns(["a"]), "missing 'a'"),
        (_broken, "a batch of 2 rows that starts with.*ValueError: no luck, in .*test_batch_functions.py"),
    ],
)  # fmt: skip
def test_refused_failures_name_the_batch_the_operator_and_the_line(
    function: Callable[[pa.Table], object], said: str
) -> None:
    with pytest.raises(UserFunctionError, match=f"(?s){said}"):
        run(function)


def test_refused_a_column_that_is_called_diff() -> None:
    with pytest.raises(SchemaError, match="'diff' is what it calls the differences"):
        run(lambda t: t, "diff: int")


def test_refused_is_what_fails_behind_a_table_that_destroyed_itself() -> None:
    def destroy(table: pa.Table) -> pa.Table:
        table.to_pandas(split_blocks=True, self_destruct=True)
        return pa.table({"a": ["one"], "s": ["x"], "diff": [1]})

    with pytest.raises(UserFunctionError, match="a batch of 2 rows that starts with"):
        run(destroy)
