"""WHERE over lists of FROM: rows that it excludes fail in no list, and answers are DuckDB's."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from sql.judge import Judge, differences

import differential as dd
import timely
from timely.building.dataflow import Dataflow

ROWS = pa.table({
    "n": pa.array([1, 2, 3, 4, 4], pa.int64()),
    "l": pa.array([[1, 2, None, 1], [], None, [7], [7]], pa.list_(pa.int64())),
})  # fmt: skip
NONE = ROWS.slice(0, 0)

LISTS = {
    "spark": (
        "t lateral view explode(array(12 div (4 - n))) u as e",
        "t lateral view outer explode(array(12 div (4 - n))) u as e",
        "t lateral view posexplode(array(12 div (4 - n))) u as p, e",
        "t lateral view explode(array(12 div (4 - n))) u as e lateral view explode(array(n, e)) w as f",
        "t, unnest(array(12 div (4 - n))) as u (e) join u as o on o.k <> 12",
        "u as o join t lateral view explode(array(12 div (4 - n))) u as e",
    ),
    "duckdb": ("t, unnest([12 // (4 - n)]) as u (e)", "t left join unnest([12 // (4 - n)]) as u (e) on true"),
}
CONDITIONS = (
    "n <> 4",
    "n < 4 and e > 0",
    "n in (select k from u)",
    "not (n not in (select k from u))",
    "exists (select 1 from u where k = n)",
    "n < (select sum(k) from u)",
    "n < (select sum(k) from u) and e < (select sum(k) from u) + n + 100",
    "n in (select k from u) and e in (select 12 div k from u)",
    "(n in (select k from u) or n = 2)",
)


@pytest.mark.parametrize("dialect", LISTS)
def test_a_row_that_where_excludes_does_not_fail_in_a_list_of_from(dialect: str) -> None:
    texts = {
        f"q{place}-{other}": f"select distinct n from {source} where {condition}"
        for place, source in enumerate(LISTS[dialect])
        for other, condition in enumerate(CONDITIONS)
    }

    def build(flow: Dataflow) -> None:
        t, u = dd.input(flow, "t", ROWS.schema), dd.input(flow, "u", "k: int")
        for name, text in texts.items():
            written = text if dialect == "spark" else text.replace(" div ", " // ")
            dd.sql(flow, written, dialect=dialect, t=t, u=u).output(name)

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert(ROWS)
        flow.input("u").insert([(1,), (3,)])
        flow.seal()
        for name, text in texts.items():
            answer = sorted(flow.output(name).snapshot().column("n").to_pylist())
            expected = [1, 3] if "in (select" in text or "exists" in text else [1, 2, 3]
            assert answer == ([1, 2, 3] if "or n = 2" in text else expected), text


GUARDED = (
    ("e = 1 and cast(s as int) > 0", [(1, 1)]),
    ("e > 0 and cast(s as int) > 0 and 12 div n > 1", [(1, 1), (1, 2)]),
    ("e > n and n > 0 and cast(s as int) > 0", [(1, 2)]),
    ("e in (select k from u) and (e = 1 and cast(s as int) > 0)", [(1, 1)]),
    ("e > 0 and cast(s as int) in (select k + 6 from u)", [(1, 1), (1, 2)]),
)


ROWS_OF_LISTS = ("s <> 'x' and cast(s as int) > 0", [(1, 1), (1, 2), (2, 0)])


@pytest.mark.parametrize(
    ("outer", "condition", "answer"),
    [("", *ROWS_OF_LISTS), *((outer, *guarded) for outer in ("", "outer ") for guarded in GUARDED)],
)
def test_a_part_of_where_does_not_fail_on_rows_that_a_list_or_a_part_with_elements_excludes(
    outer: str, condition: str, answer: list[tuple[int, int]]
) -> None:
    schema = pa.schema({"n": pa.int64(), "s": pa.string(), "l": pa.list_(pa.int64())})
    records = [(1, "7", [1, 2]), (0, "x", [-3]), (0, "", []), (0, "z", None), (2, "9", [0])]
    columns = dict(zip(schema.names, zip(*records, strict=True), strict=True))
    text = f"select n, e from t lateral view {outer}explode(l) v as e where {condition}"

    def build(flow: Dataflow) -> None:
        t, u = dd.input(flow, "t", schema), dd.input(flow, "u", "k: int")
        dd.sql(flow, text, t=t, u=u).output("q")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert(pa.table(columns, schema=schema))
        flow.input("u").insert([(1,), (2,)])
        flow.seal()
        have = flow.output("q").snapshot().to_pylist()
    assert sorted((each["n"], each["e"]) for each in have) == answer


TEXTS = [
    f"select n, e from {source} where {condition}"
    for source in (
        "t, unnest(l) as u (e)",
        "t left join unnest(l) as u (e) on true",
        "s, t, unnest(l) as u (e)",
        "(select n from t) as x, (select m.l from t as m) as t, unnest(l) as u (e)",
        "t, unnest(l) as u (e), unnest([e, n]) as w (f)",
        "s left join t on s.k = t.n, unnest(l) as u (e)",
    )
    for condition in (
        "n > 1",
        "n > 1 and e > 1",
        "e is null",
        "n in (select k from s)",
        "e in (select k from s where k < n)",
        "n > (select min(k) from s) or e = 1",
        "e < (select sum(k) from s where k <= n) and n < (select sum(k) from s)",
        "exists (select 1 from s where k = n and k = e)",
        "not exists (select 1 from s where k = e) and n not in (select k from s)",
        "1 = 0",
    )
]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_are_those_of_duckdb_while_rows_come_and_go(workers: int) -> None:
    judge, wrong = Judge(), []
    numbers = pa.table({"k": pa.array([1, 4], pa.int64())})
    judge.tell_table("t", NONE)
    judge.tell_table("s", numbers)
    texts = TEXTS[workers - 1 :: 2]

    def build(flow: Dataflow) -> None:
        t, s = dd.input(flow, "t", ROWS.schema), dd.input(flow, "s", "k: int?")
        for place, text in enumerate(texts):
            dd.sql(flow, text, dialect="duckdb", t=t, s=s).output(f"q{place}")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("s").insert(numbers)
        for gone, come in ((NONE, ROWS), (ROWS.slice(3, 1), ROWS.slice(0, 1)), (ROWS.slice(0, 2), NONE)):
            flow.input("t").remove(gone)
            flow.input("t").insert(come)
            judge.changed("t", gone, come)
            flow.seal()
            for place, text in enumerate(texts):
                answer = flow.output(f"q{place}").snapshot()
                have = Counter(zip(*(each.to_pylist() for each in answer.columns), strict=True))
                mine, theirs = differences(have, judge.answer(text))
                if mine or theirs:
                    wrong.append(f"{text}: {mine} instead of {theirs}")
    judge.close()
    assert not wrong, "\n".join(wrong)
