"""Plain rows of INSERT: read without a tree, they are the rows that their tree has.

same_*     what both readers read is the same
trees_*    what only a tree can tell, or refuse
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.schema import Schema
from differential.relational.reading.texts import SqlText
from differential.relational.reading.written_rows import columns_of, written_rows_at
from differential.relational.statements.tables import constant_rows, listed_columns, plain_rows

SCHEMA: Final = Schema.of(
    "i: int, n: int?, f: float?, p: decimal(12, 3)?, s: string?, d: date?, t: timestamp?, b: bool?"
)
DIALECTS: Final = ("spark", "postgres", "duckdb")

CONSTANTS: Final = {
    "i": ("1", "-7", "007", "-0", "999999999999999999"),
    "n": ("NULL", "null", "0"),
    "f": ("1", "-0", "0.1", "-0.0", "12345678901.25", "NULL"),
    "p": ("5", "-5.125", "0.5", "123456789.0", "NULL"),
    "s": ("''", "'it; (1, 2), (3)'", "'-- no'", "'é\n'", "'/*'", "NULL"),
    "d": ("'2020-02-29'", "date '1969-12-31'", "DATE'2020-01-01'", "NULL"),
    "t": (
        "'2020-02-29 10:00:00'",
        "timestamp '2020-01-01 10:00:00.5'",
        "'2020-01-01T10:00:00+02:00'",
        "NULL",
    ),
    "b": ("true", "FALSE", "NULL"),
}
OF_DIALECTS: Final = {
    "spark": (r"'it\'s'", r'"it\'s"', r"'a\\'", r"'\n'", '"x\'y"'),
    "postgres": ("'it''s'", r"'C:\dir\'", "''''"),
    "duckdb": ("'it''s'", r"'C:\dir\'", "''''"),
}


def of_tree(text: str, dialect: str) -> list[dict[str, object]]:
    source = SqlText(text, dialect)
    tree = source.statement()
    listed = listed_columns(source, tree.this, SCHEMA, {}, "INSERT")
    return constant_rows(source, tree.args["expression"], listed, SCHEMA, {}, "INSERT").to_pylist()


def of_text(text: str, dialect: str) -> list[dict[str, object]] | None:
    rows = written_rows_at(text, 0, dialect)
    if rows is None:
        return None
    table = plain_rows(SqlText(text, dialect), rows, SCHEMA, {})
    return None if table is None else table.to_pylist()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_same_values_for_each_way_to_write_a_constant(dialect: str) -> None:
    constants = CONSTANTS | {"s": CONSTANTS["s"] + OF_DIALECTS[dialect]}
    for name, written in constants.items():
        columns = ("i", name) if name != "i" else ("i",)
        rows = ",\n ".join(f"(1, {each})" if name != "i" else f"({each})" for each in written)
        text = f"insert into t ({', '.join(columns)}) values {rows}"
        plain = of_text(text, dialect)
        assert plain is not None, (name, text)
        assert repr(plain) == repr(of_tree(text, dialect)), name  # which tells -0.0 from 0.0


@given(
    st.sampled_from(DIALECTS),
    st.lists(st.tuples(*(st.sampled_from(each) for each in CONSTANTS.values())), min_size=1, max_size=4),
    st.sampled_from((", ", " , ", ",\n")),
)
def test_same_rows_of_all_types(dialect: str, rows: list[tuple[str, ...]], between: str) -> None:
    text = f" INSERT INTO t\nVALUES {between.join(f'( {between.join(row)})' for row in rows)} ;"
    plain = of_text(text, dialect)
    assert plain is not None
    assert repr(plain) == repr(of_tree(text, dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "rows",
    [
        "(1, 2), (1)",  # arity
        "(1, null), (null, 1)",  # NOT NULL
        "(1, 2.5)",
        "(1, 'x')",
        "(1, 2) -- why",
        "(1, 2) on conflict do nothing",
        "(1, 1 + 1)",
        "(1, 1e3)",
        "(1, -(2))",
        "(1,, 2)",
        "(1, 99999999999999999999)",
        "1, 2",
        "",
    ],
)
def test_trees_are_read_for_what_is_no_plain_constant_or_wrong(dialect: str, rows: str) -> None:
    assert of_text(f"insert into t (i, n) values {rows}", dialect) is None


@pytest.mark.parametrize(
    "head",
    ["insert into tvalues", "insert into table", 'insert into "t" values', "insert overwrite t values"],
)
def test_trees_are_read_for_other_heads(head: str) -> None:
    assert written_rows_at(f"{head} (1)", 0, "spark") is None


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("float", "12345678901234567.5"),  # its nearest float is not that of its decimal's, perhaps
        ("decimal(5, 1)", "1.25"),
        ("date", "timestamp '2020-01-01 00:00:00'"),
        ("date", "'2020-13-01'"),
        ("string", "date '2020-01-01'"),
        ("bytes", "'x'"),
        ("array<int>", "null"),
    ],
)
def test_trees_are_read_for_constants_of_another_type(type_: str, written: str) -> None:
    text = f"insert into t values ({written})"
    rows = written_rows_at(text, 0, "spark")
    assert rows is not None
    assert columns_of(text, rows, [Schema.of(f"x: {type_}")["x"].type.or_null()]) is None


def test_a_text_in_two_parts_is_left_to_the_tree() -> None:
    assert written_rows_at("insert into t values ('a' 'b')", 0, "spark") is None
    assert written_rows_at("insert into t values ('a''b')", 0, "spark") is None
