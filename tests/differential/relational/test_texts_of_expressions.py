"""SQL expressions as text: `filter("x > 1")`, `selectExpr`, `dd.expr`; beside the same with columns.

same_*      a text gives the plan of the spelled-out form
refused_*   errors have the user's line and the place in the text
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import differential as dd
import timely
from differential import Collection, col
from timely import Dataflow, TimelyError

Make = Callable[[Collection, Collection], Collection]

SAME: dict[str, tuple[Make, Make]] = {
    "a comparison": (lambda c, _: c.filter("x > 1"), lambda c, _: c.filter(col.x > 1)),
    "null": (lambda c, _: c.where("Y IS null"), lambda c, _: c.filter(col.y.is_null())),
    "the types that follow": (
        lambda c, _: c.filter("y > 3", "k = 1").select(z=col.y),
        lambda c, _: c.filter(col.y > 3, col.k == 1).select(z=col.y),
    ),
    "beside an expression": (
        lambda c, _: c.having('s = "a b"', col.x > 1),
        lambda c, _: c.filter(col.s == "a b", col.x > 1),
    ),
    "begins as a statement does": (
        lambda c, _: c.filter("`select` > 1 and left(s, 1) = 'a'"),
        lambda c, _: c.filter((col("select") > 1) & (dd.left(col.s, 1) == "a")),
    ),
    "columns": (
        lambda c, _: c.selectExpr("x + 1 AS z", "upper(s) as u", "k", "y"),
        lambda c, _: c.select((col.x + 1).alias("z"), dd.upper(col.s).alias("u"), "k", "y"),
    ),
    "pads, which cut": (
        lambda c, _: c.selectExpr("lpad(s, 2, 'x') AS p", "rpad(s, 2, 'x') AS q"),
        lambda c, _: c.select(p=dd.left(dd.lpad(col.s, 2, "x"), 2), q=dd.left(dd.rpad(col.s, 2, "x"), 2)),
    ),
    "formats and hashes": (
        lambda c, _: c.selectExpr(
            "format_string('%s: %,d', s, x) AS p", "printf('%%') AS q", "xxhash64(s, x) AS h"
        ),
        lambda c, _: c.select(
            p=dd.format_string("%s: %,d", col.s, col.x), q=dd.lit("%"), h=dd.xxhash64(col.s, col.x)
        ),
    ),
    "all columns": (
        lambda c, _: c.selectExpr(["*", "x * 2 AS z"]),
        lambda c, _: c.with_columns(z=col.x * 2),
    ),
    "a part of an expression": (
        lambda c, _: c.with_columns(z=dd.when(dd.expr("x > 1"), dd.expr("x * 3")).otherwise(0)),
        lambda c, _: c.with_columns(z=dd.when(col.x > 1, col.x * 3).otherwise(0)),
    ),
    "aggregates": (
        lambda c, _: c.group_by("k").agg(
            t=dd.sum(dd.expr("x * x")), u=dd.max(dd.expr("x")), v=dd.argmax("s", by=dd.expr("x - 1"))
        ),
        lambda c, _: c.group_by("k").agg(
            t=dd.sum(col.x * col.x), u=dd.max("x"), v=dd.argmax("s", by=col.x - 1)
        ),
    ),
    "keys": (
        lambda c, _: c.group_by(dd.expr("upper(s) as u")).count(),
        lambda c, _: c.group_by(u=dd.upper(col.s)).count(),
    ),
    "orders": (
        lambda c, _: c.order_by(dd.expr("x + k").desc()).limit(3),
        lambda c, _: c.order_by((col.x + col.k).desc()).limit(3),
    ),
    "windows": (
        lambda c, _: c.over("k", by=dd.expr("x + k")).with_columns(n=dd.lag(dd.expr("x * 2"))),
        lambda c, _: c.over("k", by=col.x + col.k).with_columns(n=dd.lag(col.x * 2)),
    ),
    "a join": (
        lambda c, d: c.join(d, "k", "left", where="x < z"),
        lambda c, d: c.join(d, "k", "left", where=col.x < col.z),
    ),
    "a join by a condition": (
        lambda c, d: c.drop("k").theta_join(d, [dd.expr("x < z"), col.x > 1]),
        lambda c, d: c.drop("k").theta_join(d, [col.x < col.z, col.x > 1]),
    ),
    "a loop": (
        lambda c, _: c.iterate(lambda r: r.filter("x > 2")),
        lambda c, _: c.iterate(lambda r: r.filter(col.x > 2)),
    ),
}


def two() -> tuple[Collection, Collection]:
    flow = Dataflow()
    columns = {"k": "int", "x": "int", "y": "int?", "s": "string", "select": "int"}
    return dd.input(flow, "c", columns), dd.input(flow, "d", "k: int, z: int")


@pytest.mark.parametrize("name", SAME)
def test_same_plan_as_with_columns(name: str) -> None:
    texts, columns = SAME[name]
    inputs = two()
    found, spelled = texts(*inputs), columns(*inputs)
    assert found.node.digest == spelled.node.digest, found.explain()
    assert found.schema == spelled.schema


def test_same_answers_over_rows_that_go() -> None:
    """Where plans differ, because Spark's % and / are written out; and names that are made of texts."""

    def query(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "x: int, y: int?")
        rows.selectExpr("x % 3 AS m", "x / 2 AS h", "x + 1", "coalesce(y, -1)").output("out")
        rows.select(dd.expr("x // 2 as q", "duckdb"), dd.expr("x - 1")).output("other")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("rows").insert([(-7, None), (4, 2), (5, 5)])
        flow.seal()
        flow.input("rows").remove([(5, 5)])
        flow.seal()
        found = sorted(map(tuple, (row.values() for row in flow.output("out").snapshot().to_pylist())))
        assert found == [(-1, -3.5, -6, -1), (1, 2.0, 5, 2)]
        assert flow.output("out").schema.names == ["m", "h", "x + 1", "coalesce(y, -1)"]
        assert [row["x - 1"] for row in flow.output("other").snapshot().to_pylist()] == [-8, 3]


REFUSED = {
    "no column": (lambda c: c.filter("x > 1 and xx > 1"), r"<sql>:1:11: there is no column xx; there are: k"),
    "the second line": (lambda c: c.filter("x > 1 and\n zz = 2"), r"<sql>:2:2: there is no column zz"),
    "syntax": (lambda c: c.where("x >"), r"filter\('x >'\) .*<sql>:1:3: .* near '>'"),
    "no condition": (lambda c: c.filter("x + 1"), r"<sql>:1:1: x \+ 1 is int and no condition"),
    "nothing": (lambda c: c.filter(" "), r"<sql>:1:1: the text is empty"),
    "statements": (lambda c: c.filter("x > 1; select 2"), r"needs one statement, and has 2"),
    "more than one": (lambda c: c.filter("x > 1, x < 3"), r"needs one expression$"),
    "a clause": (lambda c: c.filter("x > 1 ORDER BY x"), r"needs one expression, and has ORDER besides"),
    "a set": (lambda c: c.filter("x > 1 union select 1"), r"needs one expression"),
    "an alias": (lambda c: c.filter("x > 1 AS y"), r"x > 1 AS y is not supported"),
    "depth": (lambda c: c.filter("(" * 3000), r"<sql>:1:1: is nested too deeply"),
    "an aggregate": (lambda c: c.filter("sum(x) > 1"), r"the aggregate SUM\(x\) cannot stand in an expr"),
    "a window": (lambda c: c.selectExpr("rank() over (order by x)"), r"the window RANK.* cannot stand"),
    "a subquery": (lambda c: c.filter("x in (select 1)"), r"a subquery reads other .*dd\.sql\(flow, "),
    "a type": (lambda c: c.filter("x = 'a'"), r"<sql>:1:1: x = 'a': 'a' is no int"),
    "a function": (lambda c: c.selectExpr("nofun(x)"), r"selectExpr\('nofun\(x\)'\) .*there is no function"),
    "two of a name": (lambda c: c.selectExpr("x", "k as x"), r"two columns are called 'x': write 'k as x AS"),
    "no texts": (lambda c: c.selectExpr(), r"selectExpr \(.*\) needs a column: selectExpr\('x \+ 1 AS y'\)"),
    "no text": (lambda c: dd.expr(3), r"expr \(.*\) takes SQL as text, not 3"),  # type: ignore[arg-type]
    "a star": (lambda c: dd.expr("*"), r"\* stands for columns of select, and is no expression"),
    "a dialect": (lambda c: dd.expr("x", "oracle"), r"there is no dialect 'oracle'"),
    "an unnamed key": (lambda c: c.group_by(dd.expr("x + 1")), r"group_by: expr\('x \+ 1'\) needs a name"),
    "no collection": (lambda c: dd.expr("x + 1").type_in(c.schema), r"has no meaning here: make it a column"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_place(name: str) -> None:
    make, told = REFUSED[name]
    with pytest.raises(TimelyError, match=told) as caught:
        make(two()[0])  # type: ignore[no-untyped-call]
    assert "\n" not in str(caught.value)
    if "<sql>" in str(caught.value):
        assert "test_texts_of_expressions.py:" in str(caught.value), "the user's line"


def test_refused_without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.delitem(sys.modules, "differential.relational.reading.texts_read", raising=False)
    rows, other = two()
    for wrong, told in (
        (lambda: rows.filter("x > 1"), r"pip install 'naiad\[sql\]'\. Write filter\(col\.x > 1\)$"),
        (lambda: rows.join(other, "k", where="x < z"), r"naiad\[sql\]'\. Write where=col\.x < col\.z$"),
        (lambda: dd.expr("x"), r"^expr\('x'\) .* needs sqlglot.*: pip install 'naiad\[sql\]'\.$"),
    ):
        with pytest.raises(dd.SqlError, match=told):
            wrong()  # type: ignore[no-untyped-call]


def test_sqlglot_is_imported_with_the_first_text() -> None:
    program = (
        "import sys, differential as dd; assert 'sqlglot' not in sys.modules; dd.expr('1'); "
        "sys.modules['sqlglot']"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
