"""grouping_sets.py: subtotals are what DuckDB says, with nulls among the keys, and when rows go."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.errors import SchemaError
from timely.building.dataflow import Dataflow

Row = tuple[object, ...]
ROWS: list[Row] = [
    (1, "a", 5),
    (1, "b", 7),
    (None, "a", 1),
    (1, None, 2),
    (None, None, 9),
    (2, "a", 4),
    (2, "a", 4),
]
FORMS = {
    "ROLLUP (k, s)": lambda c: c.rollup("k", "s"),
    "CUBE (k, s)": lambda c: c.cube("k", col.s),
    "GROUPING SETS ((s), (k, s), (), (s))": lambda c: c.grouping_sets(
        [("s",), ("k", "s"), (), ("s",)], "k", "s"
    ),
    "GROUPING SETS ((k), (s))": lambda c: c.groupingSets([["k"], ["s"]], ["k", "s"]),
}


def build(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int?, s: string?, x: int")
    for name, groups in FORMS.items():
        groups(rows).agg(
            n=dd.count(), total=dd.sum("x"), p=dd.median("x"), g=dd.grouping("s"), all=dd.grouping_id()
        ).output(name)


def test_subtotals_are_those_of_sql() -> None:
    database = duckdb.connect(":memory:", config={"threads": 1})
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(ROWS)
        there = list(ROWS)
        for gone in ([], ROWS[:3], ROWS[3:]):
            flow.input("rows").remove(gone)
            there = [row for row in there if row not in gone]
            flow.seal()
            columns = {name: [row[at] for row in there] for at, name in enumerate(("k", "s", "x"))}
            schema = pa.schema([("k", pa.int64()), ("s", pa.string()), ("x", pa.int64())])
            database.register("t", pa.table(columns, schema=schema))
            for name in FORMS:
                keys = "grouping_id(k, s)" if name != "none" else "0"
                want = database.execute(
                    f"SELECT k, s, count(*), sum(x), median(x), grouping(s), {keys} FROM t GROUP BY {name}"
                ).fetchall()
                have = [tuple(row.values()) for row in flow.output(name).snapshot().to_pylist()]
                assert sorted(map(repr, have)) == sorted(map(repr, want)), name
    database.close()


def test_computed_keys_have_names_and_types_that_may_be_null() -> None:
    rows: Collection = dd.input(Dataflow("tested"), "rows", "k: int, s: string, x: int")
    found = rows.rollup(even=col.k % 2 == 0).agg(only=dd.grouping("even"))
    assert str(found.schema) == "even: bool?, only: int"
    kept = rows.grouping_sets([("k", "s"), ("k",)], "k", "s").agg(n=dd.count())
    assert str(kept.schema) == "k: int, s: string?, n: int", "each set has k"


def test_refused_what_is_no_set_of_keys() -> None:
    rows: Collection = dd.input(Dataflow("tested"), "rows", "k: int, s: string, x: int")
    with pytest.raises(SchemaError, match="'x' of a set is no key: k, s"):
        rows.grouping_sets([("x",)], "k", "s")
    with pytest.raises(SchemaError, match="write a list of sets"):
        rows.grouping_sets("k", "k")
    with pytest.raises(SchemaError, match="a key is twice in the set"):
        rows.grouping_sets([("k", "k")], "k")
    with pytest.raises(SchemaError, match="is of a key: k, s"):
        rows.cube("k", "s").agg(g=dd.grouping("x"))
    with pytest.raises(SchemaError, match="is a key already"):
        rows.cube("k", "s").agg(k=dd.count())
    with pytest.raises(SchemaError, match="11 keys has 2,048 sets"):
        rows.cube(**{f"c{number}": col.x + number for number in range(11)})
