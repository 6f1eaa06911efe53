"""Lists that SELECT takes apart: what DuckDB says, and what is refused."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from sql.judge import Judge, differences

import differential as dd
import timely
from differential import SqlError
from differential.relational.reading.lists_of_select import list_apart
from differential.relational.reading.texts import SqlText
from timely.building.dataflow import Dataflow

ROWS = pa.table({
    "n": pa.array([1, 2, 3, 4, 4], pa.int64()),
    "l": pa.array([[1, 2, None, 1], [], None, [7], [7]], pa.list_(pa.int64())),
})  # fmt: skip

TEXTS = (
    "select unnest(l) as e, n from t", "select n, unnest(l) from t where n > 0",
    "select distinct unnest(l) as e from t",
    "select unnest(l) as e, n from t order by e desc nulls last, n limit 3",
    "select unnest(l) as e, n from t order by 1 nulls first, 2 limit 2 offset 1",
    "select e, count(*) as c from (select unnest(l) as e from t) group by e",
    "select n, (select max(e) from (select unnest(t.l) as e)) as m from t",
    "select n from t where n in (select unnest(l) from t)",
    "select unnest(list_of) from (select l as list_of from t)",
    "select unnest(l) as e, (select count(*) from t) as c from t",
    "select unnest(l) as e from t union all select n from t",
    "select a.n, unnest(b.l) as e from t a join t b using (n)",
    "with s as (select unnest(l) as e from t) select x.e from s x join s y on x.e = y.e",
)  # fmt: skip


def test_lists_come_to_what_duckdb_says_while_rows_come_and_go() -> None:
    judge, wrong = Judge(), []
    texts = {f"q{place}": text for place, text in enumerate(TEXTS)}

    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", ROWS.schema)
        for name, text in texts.items():
            dd.sql(flow, text, dialect="duckdb", t=t).output(name)

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        there = ROWS.slice(0, 0)
        judge.tell_table("t", there)
        for gone, come in (
            (ROWS.slice(0, 0), ROWS),
            (ROWS.slice(3, 1), ROWS.slice(0, 1)),
            (ROWS.slice(0, 2), ROWS.slice(2, 1)),
        ):
            flow.input("t").remove(gone)
            flow.input("t").insert(come)
            there = judge.changed("t", gone, come)
            flow.seal()
            for name, text in texts.items():
                answer = flow.output(name).snapshot()
                have = Counter(zip(*(each.to_pylist() for each in answer.columns), strict=True))
                mine, theirs = differences(have, judge.answer(text))
                if mine or theirs:
                    wrong.append(f"{text}: {mine} instead of {theirs}")
    judge.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("dialect", "text", "label"),
    [
        ("spark", "select explode(l) from t", "col"),
        ("postgres", "select unnest(l) from t", "unnest"),
        ("duckdb", "select unnest(l) from t", "unnest(l)"),
        ("spark", "select explode(l) as Tag from t", "Tag"),
    ],
)
def test_the_column_is_called_as_in_the_dialect(dialect: str, text: str, label: str) -> None:
    def build(flow: Dataflow) -> None:
        answer = dd.sql(flow, text, dialect=dialect, t=dd.input(flow, "t", ROWS.schema))
        assert answer.schema.names == (label,)
        answer.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_a_star_leaves_the_element_out() -> None:
    def build(flow: Dataflow) -> None:
        answer = dd.sql(flow, "select *, explode(l) as e from t", t=dd.input(flow, "t", ROWS.schema))
        assert answer.schema.names == ("n", "l", "e")
        answer.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_a_select_without_a_list_stays_as_it_is() -> None:
    text = SqlText("select n, (select explode(l) from t) as e from t", "spark")
    tree = text.statement()
    node, list_of_select = list_apart(text, tree)  # type: ignore[arg-type]  # it is a SELECT
    assert node is tree and list_of_select is None


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("n <> 4", [(1, 4), (2, 6), (3, 12)]),
        ("n in (select k from u)", [(1, 4), (3, 12)]),
        ("exists (select 1 from u where k = n)", [(1, 4), (3, 12)]),
        ("n < (select sum(k) from u)", [(1, 4), (2, 6), (3, 12)]),
    ],
)
def test_the_list_is_made_of_the_rows_that_where_leaves_alone(
    condition: str, rows: list[tuple[int, int]]
) -> None:
    """A row that WHERE excludes has failed in the list, and the answer was missing."""

    def build(flow: Dataflow) -> None:
        t, u = dd.input(flow, "t", ROWS.schema), dd.input(flow, "u", "k: int")
        text = f"select n, explode(array(12 div (4 - n))) as e from t where {condition}"
        dd.sql(flow, text, t=t, u=u).output("e")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert(ROWS)
        flow.input("u").insert([(1,), (3,)])
        flow.seal()
        answer = flow.output("e").snapshot().to_pylist()
        assert sorted((row["n"], row["e"]) for row in answer) == rows


REFUSED = {
    "select unnest(l), count(*) from t": "8: UNNEST(l) stands beside groups, aggregates or windows",
    "select unnest(l) as e, n from t group by n": "8: UNNEST(l) stands beside groups",
    "select unnest(l) as e, row_number() over (order by n) from t": "8: UNNEST(l) stands beside groups",
    "select unnest(l) as e from t order by sum(n)": "8: UNNEST(l) stands beside groups",
    "select distinct on (n) unnest(l) as e from t": "24: UNNEST(l) stands beside groups",
    "select unnest(l), unnest(l) from t": "19: UNNEST(l): one list stands in SELECT; write others in FROM",
    "select unnest(l) + 1 from t": "8: UNNEST(l) makes rows: it stands alone in SELECT, or in FROM",
    "select n from t where unnest(l) = 1": "23: UNNEST(l) makes rows",
    "select unnest(l) as e from t where e = 1": "36: there is no column e; there are: n, l\n",
    "select unnest(n) from t": "15: n is int?, and no list",
    "select unnest(l, recursive := true) from t": "18: UNNEST(l, recursive := TRUE): expressions of Explode",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_is_refused_with_its_place(text: str) -> None:
    def build(flow: Dataflow) -> None:
        with pytest.raises(SqlError) as caught:
            dd.sql(flow, text, dialect="duckdb", t=dd.input(flow, "t", ROWS.schema))
        assert f"{caught.value}\n".startswith(f"<sql>:1:{REFUSED[text]}")
        dd.input(flow, "u", "n: int").output("u")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


@pytest.mark.parametrize("view", ["explode_outer(l) u as e", "outer explode(l) u as e"])
def test_an_outer_list_that_is_empty_or_null_leaves_its_row(view: str) -> None:
    """Spark has two spellings; the first lost these rows."""

    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", ROWS.schema)
        dd.sql(flow, f"select n, e from t lateral view {view}", t=t).output("view")
        dd.sql(flow, "select n, explode_outer(l) as e from t", t=t).output("select")
        dd.sql(flow, "select n, p, e from t lateral view posexplode_outer(l) u as p, e", t=t).output("places")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert(ROWS.slice(1, 3))
        flow.seal()
        for name in ("view", "select"):
            rows = flow.output(name).snapshot().to_pylist()
            assert sorted((row["n"], row["e"]) for row in rows) == [(2, None), (3, None), (4, 7)]
        rows = flow.output("places").snapshot().to_pylist()
        assert sorted((row["n"], row["p"], row["e"]) for row in rows) == [
            (2, None, None),
            (3, None, None),
            (4, 0, 7),
        ]
