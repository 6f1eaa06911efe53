"""Functions that texts call by Spark's names; those of one value beside Spark are in `tests/spark/functions`.

refused_*   one line with the place, the function and what to write
"""

from __future__ import annotations

from typing import cast

import duckdb
import pytest
from expression_values import values_of
from nested_functions import CLAIMS, COLUMNS, JSON_CLAIMS, JSON_TEXTS, ROWS, plainly

import differential as dd
from differential import Schema
from differential.columns.rows import Row
from differential.expressions.pending import SqlExpr, sql_reader
from differential.relational.spark_functions.by_name import NAMED

OF = Schema.of(
    "s: string?, i: int?, f: float?, p: decimal(10, 2), d: date, t: timestamp, b: bool, l: array<int?>, "
    "m: map<string, int>"
)


def read(text: str, schema: Schema = OF, dialect: str = "spark") -> dd.Expr:
    return sql_reader().value(cast("SqlExpr", dd.expr(text, dialect)), schema)


def test_functions_of_nested_values_are_those_in_python() -> None:
    json: list[Row] = [(text,) for text in JSON_TEXTS]
    differ = [
        f"{claim.spark} is not {claim.ours}"
        for claims, rows, schema in (
            (CLAIMS, list(ROWS), Schema.of(COLUMNS)),
            (JSON_CLAIMS, json, Schema.of("j: string?")),
        )
        for claim in claims
        if plainly(values_of(read(claim.spark, schema), rows, schema))
        != plainly(values_of(eval(claim.ours, {"dd": dd, "col": dd.col}), rows, schema))
    ]
    assert not differ, "\n".join(differ)


REFUSED = {
    "sha2(s)": "1:1: SHA2(s): takes 2 operands, not 1",
    "upper(s, s)": "1:11: The number of provided arguments (2) is greater",
    "lpad(s, i, 'x')": "1:9: i: a constant is needed here",
    "lpad(s, 'x', 'x')": "1:1: LPAD(s, 'x', 'x'): ",
    "lpad(s, null, 'x')": "1:1: NULL: a constant is needed here",
    "sin(s)": "1:1: SIN(s): ",
    "sin(distinct f)": "1:14: DISTINCT f is not supported",
    "sin(f) filter (where b)": "1:1: SIN(f) is no aggregate",
    "to_timestamp(i)": "1:1: TO_TIMESTAMP(i): takes string or date or timestamp; the operand",
    "unix_timestamp(s)": "1:1: UNIX_TIMESTAMP(s): takes date or timestamp; the operand is string?: cast it",
    "date_format(t, 'QQQ')": "1:1: DATE_FORMAT(t, 'QQQ'): 'QQQ' in the format 'QQQ' is not supported",
    "date_format(t, s)": "1:16: s: a constant is needed here",
    "regexp_replace(s, '(?=a)', 'b')": "1:1: REGEXP_REPLACE(s, '(?=a)', 'b'): '(?=a)': this",
    "months_between(d, d, false)": "1:1: MONTHS_BETWEEN(d, d, FALSE): is rounded to 8 digits here",
    "array(i, s)": "1:1: ARRAY(i, s): array takes values of one type",
    "array(p, s)": "1:1: ARRAY(p, s): ",
    "map(s)": "1:1: MAP(s): takes pairs of a key and a value",
    "struct(i, i)": "1:1: STRUCT(i, i): has two fields i",
    "named_struct(s, i)": "1:1: NAMED_STRUCT(s, i): takes names that are constant texts",
    "from_json(s, 'x')": "1:1: FROM_JSON(s, 'x'): ",
    "xxhash64(s, 1)": "1:1: XXHASH64(s, 1): hashes whole constants as 32 bits in Spark",
    "hash(i)": "1:1: there is no function hash with Spark's values: write xxhash64(x)",
    "soundex(s)": "1:1: ",
    "l['a']": "1:1: l['a']: takes a place of an array",
    "concat_ws(',', f)": "1:1: CONCAT_WS(',', f): ",
    "position('a', s, i)": "1:10: LOCATE('a', s, i): takes a constant here",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_the_place(text: str) -> None:
    with pytest.raises(dd.SqlError) as error:
        read(text)
    message = str(error.value)
    assert f"<sql>:{REFUSED[text]}" in message
    assert "\n" not in message.strip()


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_refused_in_other_dialects(dialect: str) -> None:
    for text in ("regexp_extract(s, 'a')", "element_at(l, 1)", "hex(i)", "chr(i)", "log10(f)", "m['a']"):
        with pytest.raises(dd.SqlError, match="spark|no function|not supported"):
            read(text, dialect=dialect)
    for text in ("left(s, -1)", "substring(s, 0, 1)", "substring(s, 1, -1)"):
        with pytest.raises(dd.SqlError, match="negative"):
            read(text, dialect=dialect)


def test_duckdb_has_the_same_functions() -> None:
    texts = {
        "translate": "(s, 'aé', 'X')",
        "concat_ws": "('-', s, 'b')",
        "atan2": "(f, 2.0)",
        "bit_count": "(i)",
    }
    rows: list[Row] = [
        (s, i, f) for s, i, f in [("", 0, 0.0), ("aéa", 7, 1.5), ("éx", -1, -300.25), (None, None, None)]
    ]
    schema = Schema.of("s: string?, i: int?, f: float?")
    with duckdb.connect() as database:
        database.execute("create table r (s text, i bigint, f double)")
        database.executemany("insert into r values (?, ?, ?)", [list(row) for row in rows])
        for name in sorted(NAMED["duckdb"]):
            operand = texts.get(name, "(s)" if name in ("ascii", "sha1") else "(f / 100)")
            theirs = [row[0] for row in database.execute(f"select {name}{operand} from r").fetchall()]
            ours = values_of(read(name + operand, schema, "duckdb"), rows, schema)
            assert ours == pytest.approx(theirs) if "f" in operand else ours == theirs, name
    assert len(NAMED["duckdb"]) > 10


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_lists_in_brackets_have_the_elements_that_duckdb_gives_them(dialect: str) -> None:
    numbers = Schema.of("i: int?")
    rows: list[Row] = [(1,), (None,)]
    for written in ("[1, 2]", "[i, i + 1]", "[i]", "[NULL, i]", "[1, 2.5]", "[i, 1.25, 2.5]", "['a', NULL]"):
        text = written if dialect == "duckdb" else f"array{written}"
        want = duckdb.sql(f"select {written} from (values (1), (null)) as t (i)").fetchall()
        have = [
            list(cast("list[object]", each))
            for each in values_of(read(text, numbers, dialect), rows, numbers)
        ]
        assert have == [each for (each,) in want], written
