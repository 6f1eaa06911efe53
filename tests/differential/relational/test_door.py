"""`dd.sql`: constructs of SQL beside DuckDB, at every epoch, with rows that go; and refused texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest
from sql.judge import Judge, differences

import differential as dd
import timely
from differential import SqlError
from timely.building.dataflow import Dataflow

TABLES = {
    "t": "a: int?, b: int?, s: string?",
    "u": "a: int?, c: int, s: string?",
    "e": "x: int, y: int, w: int",
}
Rows = dict[str, list[tuple[object, ...]]]
EPOCHS: list[Rows] = [
    {
        "t": [(1, 2, "a"), (1, 2, "a"), (None, 3, "b"), (2, None, None), (3, 1, "ab")],
        "u": [(1, 5, "a"), (None, 1, "b"), (3, 3, None)],
        "e": [(1, 2, 1), (2, 3, 1), (3, 1, 5), (1, 3, 7), (3, 4, 2)],
    },
    {
        "t": [(1, 2, "a"), (None, None, "b"), (4, 4, "b")],
        "u": [(1, 5, "a"), (1, 4, "b"), (2, 0, "b"), (4, 4, "b")],
        "e": [(1, 2, 1), (3, 4, 2), (1, 3, 7), (4, 1, 1)],
    },
    {"t": [(1, 1, None)], "u": [], "e": [(1, 2, 1)]},
    {"t": [], "u": [], "e": []},
]

# fmt: off
TEXTS = {
    "filter and groups": (
        "select a, sum(b) as n, count(*) as m from t where b > 1 group by a having count(*) > "
        "0"
    ),
    "bits": "select a & b as x, a | 4 as y, xor(a, b) as z, ~a as n from t",
    "group by expression": "select a + 1 as k, a + 1 + 1 as l, avg(b) as m from t group by a + 1",
    "count of nothing": "select sum(b) as s, count(*) as n, max(s) as x from t where a > 100",
    "distinct aggregates": (
        "select a, sum(distinct b) as x, count(distinct s) as y, avg(distinct b) as z from t group "
        "by a"
    ),
    "filter in aggregates": (
        "select count(*) filter (where b > 1) as n, sum(b) filter (where a = 1) as m from "
        "t"
    ),
    "statistics": (
        "select a, median(b) as m, quantile_cont(b, 0.3) as p, quantile_disc(b, 0.5) as q, "
        "percentile_cont(0.25) within group (order by b desc) as d, mode(b) filter (where b > 1) as o, "
        "kurtosis_pop(b) filter (where false) as k from t group by a"
    ),
    "texts of the greatest": (
        "select c, max_by(s, a) as m, min_by(s, a) filter (where a > 1) as n, max_by(a, c) // 2 as h from u "
        "group by c"
    ),
    "nulls of the greatest": (
        "select max_by(nullif(s, 'b'), a) as m, min_by(nullif(s, 'a'), b) as n, "
        "max_by(nullif(s, 'b'), a) filter (where b < 4) as o, "
        "-percentile_disc(0.5) within group (order by -b) as p from t"
    ),
    "texts of groups": (
        "select a, string_agg(s, '-' order by b desc, s) as x, string_agg(distinct s, ',' order by s) as y, "
        "string_agg(s, '' order by s) filter (where b > 1) as z from t group by a"
    ),
    "the first of an order": (
        "select a, first(s order by b nulls last, s) as x, first(s order by b desc nulls last, s) filter "
        "(where b < 3) as y from t group by a"
    ),
    "statistics of rows outside": (
        "select a, (select sum(distinct c) from u where u.a = t.a) as x, (select covar_pop(c, u.a) from u "
        "where u.c > t.b) as y, (select median(c) from u where u.a < t.a) as z from t"
    ),
    "distinct statistics": (
        "select median(distinct b) as x, avg(distinct b) as y, quantile_disc(distinct a, 0.25) as z from t"
    ),
    "all joins": "select t.a as p, u.a as q, t.s, c from t full join u on t.a = u.a and t.b < u.c",
    "a join with conditions": (
        "select t.a as p, u.c from t left join u on t.a = u.a and u.c > 3 where u.c is null or t.b "
        "= 2"
    ),
    "right join": "select t.b, u.c from t right join u on t.s = u.s",
    "using": "select * from (select a, b from t) as t join (select a, c from u) as u using (a)",
    "natural full": "select * from (select a, b from t) as t natural full join (select a, c from u) as u",
    "commas": "select t.a as p, u.c, e.w from t, u, e where t.a = u.a and u.a = e.x",
    "exists": "select a, b from t where exists (select 1 from u where u.a = t.a and u.c > t.b)",
    "not exists, not equal": "select a, b from t where not exists (select 1 from u where u.a < t.a)",
    "in": "select a, b from t where (a, s) in (select a, s from u)",
    "not in": "select a, b from t where a not in (select a from u)",
    "not in, correlated": "select a, b from t where a not in (select u.a from u where u.s = t.s)",
    "not in of pairs": "select a, b from t where (a, b) not in (select a, c from u)",
    "in as a value": (
        "select a, a in (select a from u) as m, b not in (select c from u where u.a = t.a) as n "
        "from t"
    ),
    "quantified": (
        "select a, b from t where a >= all (select a from u where a is not null) or b < any "
        "(select c from u)"
    ),
    "windows of texts": (
        "select a, b, min(s) over (partition by a order by b nulls last) as x, max(upper(s)) over (order by "
        "a nulls first, b nulls first, s nulls first rows between 1 preceding and 1 following) as y, "
        "min(s) filter (where b > 1) over (order by b range between 1 preceding and current row) as z from t"
    ),
    "quantified sets": (
        "select a, b from t where a >= all ((select a from u where a is not null) union (select 1 as k)) or "
        "b < some ((select c from u) except all (select a from u))"
    ),
    "scalar": (
        "select a, (select max(c) from u where u.a = t.a) as m, (select count(*) from u where u.a "
        "< t.a) as n from t"
    ),
    "scalar in a condition": "select a from t where b < (select sum(c) from u where u.a = t.a)",
    "three deep": (
        "select a from t where exists (select 1 from u where u.a = t.a and u.c in "
        "(select y from e where e.x = t.a and exists (select 1 from t as z where z.b = u.c or z.a = t.a)))"
    ),
    "lateral": "select t.a as p, z.n from t, lateral (select count(*) as n from u where u.a >= t.a) as z",
    "lateral with limit": (
        "select t.a as p, z.c from t left join lateral (select c from u where u.s = t.s order by c "
        "limit 1) as z on true"
    ),
    "sets": (
        "(select a from t except all select a from u) union all select c from u intersect select b "
        "from t"
    ),
    "types of sets": "select a as k, null as n from t union select 1.5, s from u",
    "order": "select a, b from t order by b desc nulls last, a nulls first limit 2 offset 1",
    "distinct on": "select distinct on (a) a, b from t order by a, b desc nulls last",
    "grouping sets": (
        "select a, s, grouping(a) as g, count(*) as n from t group by grouping sets ((a, s), (a), "
        "())"
    ),
    "rollup and cube": (
        "select a, s, sum(b) as n from t group by rollup (a, s) union all select a, s, 0 from t "
        "group by cube (a, s)"
    ),
    "total of nothing": "select a from t where exists (select 1 from u where c > t.a + 9 group by cube (c))",
    "windows": (
        "select a, b, rank() over (partition by a order by b) as r, sum(b) over (partition by a) as s, "
        "lag(b) over (order by b, a, s) as l, count(*) over (order by b rows between 1 preceding "
        "and current row) as n from t"
    ),
    "range over the key": (
        "select a, sum(b) over (partition by a order by a range between 1 preceding and 2 following) as s, "
        "count(b) over (partition by a order by a desc range between 2 preceding and 1 preceding) as n from t"
    ),
    "a text that is never there": (
        "select upper(u.s) || 'x' as x from t left join u on null where 'a' <> u.s"
    ),
    "many unions": " union all ".join(f"select a + {n} as x, s from t" for n in range(30))
    + " union select b, s from t union all select b, null from t",
    "qualify": (
        "select a, b from t qualify row_number() over (partition by a order by b desc nulls last, "
        "s) = 1"
    ),
    "values": "select k, v, b from (values (1, 'x'), (2, null)) as z (k, v) left join t on k = a",
    "with": (
        "with z as (select a, sum(b) as n from t group by a) select p.a, q.n from z as p join z as "
        "q on p.a = q.a"
    ),
    "case": (
        "select case a when 1 then 'one' when 2 then 'two' else s end as x, case when b > 1 then b "
        "end as y from t"
    ),
    "expressions": (
        "select coalesce(a, b, 0) as p, nullif(a, b) as q, a between 1 and 2 as r, s like 'a%' as l, "
        "a is distinct from b as d, upper(s) || '!' as u, -a % 2 as m, a in (1, null) as i from t"
    ),
    "dates": (
        "select cast(date '2020-01-31' + interval '1' month as date) as d, extract(year from date "
        "'2020-02-03') as y, cast('7' as int) as n from t"
    ),
    "no from": "select 1 as one, 'x' as two where 1 < 2",
    "reachable": (
        "with recursive r(n) as (select 1 union select y from e, r where x = n) select n from r"
    ),
    "counted steps": (
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n, n * "
        "2 as m from r"
    ),
}
# fmt: on


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    database = Judge()
    yield database
    database.close()


def changes(
    before: Rows, after: Rows, name: str
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """The rows that come, and those that go."""
    old, new = Counter(before.get(name, [])), Counter(after[name])
    return [*(new - old).elements()], [*(old - new).elements()]


@pytest.mark.parametrize("workers", [1, 2])
def test_constructs_come_to_what_duckdb_says_at_every_epoch(judge: Judge, workers: int) -> None:
    columns: dict[str, tuple[str, ...]] = {}

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in TABLES.items()}
        for name, text in TEXTS.items():
            answer = dd.sql(flow, text, dialect="duckdb", **tables)
            columns[name] = answer.schema.names
            answer.output(name)

    wrong: list[str] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        before: Rows = {}
        for epoch, rows in enumerate(EPOCHS):
            for name, schema in TABLES.items():
                come, go = changes(before, rows, name)
                if come:
                    flow.input(name).insert(come)
                if go:
                    flow.input(name).remove(go)
                judge.tell(name, dd.Schema.of(schema), rows[name])
            before = rows
            flow.seal()
            for name, text in TEXTS.items():
                table = flow.output(name).snapshot()
                have = Counter(zip(*(table.column(each).to_pylist() for each in columns[name]), strict=True))
                here, there = differences(have, judge.answer(text))
                if here or there:
                    wrong.append(f"{name}, epoch {epoch}: {here} instead of {there}")
    assert not wrong, "\n".join(wrong)


REFUSED = {
    "selec a": "1:1",
    "select a +\n from t": "2:2",
    "select nope from t": "1:8",
    "select a\n  , nope from t": "2:5",
    "select a, b from t group by a": "1:11",
    "select a from t group by a having b > 1": "1:35",
    "select a from t group by a order by b limit 1": "1:37",
    "select a from t where sum(b) > 1": "1:23",
    "select sum(sum(b)) from t": "1:12",
    "select a from t group by sum(b)": "1:26",
    "select t.a from t, u where a = 1": "1:28",
    "select x.a from t": "1:8",
    "select a from nowhere": "1:15",
    "select foo(a) from t": "1:8",
    "select count(distinct a, b) from t": "1:8",
    "select percentile(a, b) from t": "1:19",
    "select percentile(a, 1.5) from t": "1:19",
    "select percentile_disc(0.5) within group (order by a desc) from t": "1:8",
    "select listagg(a, ',') from t": "1:16",
    "select listagg(distinct s, ',') within group (order by a) from t": "1:25",
    "select first(a) from t": "1:8",
    "select a from t union select a, c from u": "1:30",
    "select a from t union select s from t": "1:8",
    "select a = s from t": "1:8",
    "select a + s from t": "1:8",
    "select upper(a) from t": "1:8",
    "select sum(s) from t": "1:8",
    "select a from t where b": "1:23",
    "select a from t for update": "1:8",
    "select a from t tablesample (10 percent)": "1:30",
    "select a as x, b as x from t": "1:8",
    "select a from t order by nope limit 1": "1:26",
    "select a from t order by 3 limit 1": "1:26",
    "select a from t limit 1 + 1": "1:23",
    "select a from t where a in (select a, c from u)": "1:23",
    "select (select a, c from u) from t": "1:16",
    "select a from t join t on a = a": "1:22",
    "select a from t left join u on exists (select 1)": "1:47",
    "select row_number() over () from t": "1:8",
    "select a from t where row_number() over (order by a) = 1": "1:23",
    "with recursive r(n) as (select n from r) select n from r": "1:16",
    "with z as (select 1 as k), z as (select 2 as k) select k from z": "1:6",
    "select * from (values (1), (2, 3)) as z": "1:29",
    "select cast(a as tinyblob) from t": "1:13",
    "delete from t": "1:13",
    "select a from t; select b from t": "1:1",
    "": "1:1",
    "select date '2020-13-01' from t": "1:13",
}


def test_a_bad_text_gives_one_line_with_its_place_and_installs_nothing() -> None:
    wrong: list[str] = []

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in TABLES.items()}
        for text, place in REFUSED.items():
            try:
                dd.sql(flow, text, **tables)
            except SqlError as error:
                said = str(error).splitlines()[0]
                if not said.startswith(f"<sql>:{place}: "):
                    wrong.append(f"{text!r}: {said}")
            else:
                wrong.append(f"{text!r} is not refused")
        tables["t"].output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)
    assert not wrong, "\n".join(wrong)


def test_huge_and_deep_texts_are_refused() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", "a: int")
        for text in (
            "select " + "(" * 5_000 + "a" + ")" * 5_000 + " from t",
            "select '" + "x" * (1 << 20) + "'",
        ):
            with pytest.raises(SqlError):
                dd.sql(flow, text, t=t)
        t.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_a_scalar_with_two_rows_is_an_error_of_its_output_alone_until_one_goes() -> None:
    def build(flow: Dataflow) -> None:
        t, u = dd.input(flow, "t", "a: int"), dd.input(flow, "u", "a: int, c: int")
        dd.sql(flow, "select a, (select c from u where u.a = t.a) as m from t", t=t, u=u).output("scalar")
        dd.sql(flow, "select a from t", t=t).output("other")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert([(1,), (2,)])
        flow.input("u").insert([(1, 10), (1, 11)])
        flow.seal()
        with pytest.raises(dd.NotEmptyError, match="<sql>:1:"):
            flow.output("scalar").snapshot()
        assert len(flow.output("other").snapshot()) == 2
        flow.input("u").remove([(1, 11)])
        flow.seal()
        assert sorted(dd.to_pylist(flow.output("scalar").snapshot()), key=str) == [
            {"a": 1, "m": 10},
            {"a": 2, "m": None},
        ]


def test_a_scalar_of_its_own_with_two_rows_is_an_error_even_if_no_row_needs_it() -> None:
    def build(flow: Dataflow) -> None:
        t, u = dd.input(flow, "t", "a: int"), dd.input(flow, "u", "a: int, c: int")
        dd.sql(flow, "select a, (select c from u) as m from t", t=t, u=u).output("scalar")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("u").insert([(1, 10), (1, 11)])
        flow.seal()
        with pytest.raises(dd.NotEmptyError, match="the subquery at <sql>:1:"):
            flow.output("scalar").snapshot()
        flow.input("u").remove([(1, 11)])
        flow.seal()
        assert flow.output("scalar").snapshot().num_rows == 0


def test_shortest_paths_by_a_minimum_in_the_recursion() -> None:
    text = """
        with recursive d(n, far) as (
            select 1, 0 union
            select y, min(far + w) from d, e where n = x group by y)
        select n, min(far) as far from d group by n
    """

    def build(flow: Dataflow) -> None:
        dd.sql(flow, text, e=dd.input(flow, "e", TABLES["e"])).output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("e").insert([(1, 2, 1), (2, 3, 1), (1, 3, 7), (3, 4, 2)])
        flow.seal()
        assert {(row["n"], row["far"]) for row in dd.to_pylist(flow.output("result").snapshot())} == {
            (1, 0), (2, 1), (3, 2), (4, 4)
        }  # fmt: skip
        flow.input("e").remove([(2, 3, 1)])
        flow.seal()
        assert {(row["n"], row["far"]) for row in dd.to_pylist(flow.output("result").snapshot())} == {
            (1, 0), (2, 1), (3, 7), (4, 9)
        }  # fmt: skip


@pytest.mark.parametrize("dialect", ["spark", "postgres", "duckdb"])
def test_a_quotient_of_decimals_is_a_decimal_and_by_0_a_row_that_fails(dialect: str) -> None:
    def build(flow: Dataflow) -> None:
        prices = dd.input(flow, "prices", "k: int, x: decimal(18, 2), y: decimal(18, 2)")
        query = "select k, x / y as q, x / 8 as r from prices"
        dd.sql(flow, query, dialect=dialect, prices=prices).output("out")

    def answers() -> list[object]:
        return [(row["q"], row["r"]) for row in dd.to_pylist(flow.output("out").snapshot())]

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        prices = flow.input("prices")
        prices.insert([(1, Decimal("-2.00"), Decimal("3.00"))])
        flow.seal()
        right = [(Decimal("-0.66666666666666666667"), Decimal("-0.25"))]
        assert answers() == right
        prices.insert([(2, Decimal("2.00"), Decimal("0.00"))])
        flow.seal()
        with pytest.raises(dd.RowError, match="<sql>:1:11. divides by zero"):
            answers()
        prices.remove([(2, Decimal("2.00"), Decimal("0.00"))])
        flow.seal()
        assert answers() == right


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select k, e + 1 as e from t lateral view explode(a) x as e", [(1, 3), (1, 3), (1, None)]),
        (
            "select k, e + 1 as e from t lateral view outer explode(a) x as e",
            [(1, 3), (1, 3), (1, None), (2, None), (3, None)],
        ),
        ("select k, e from t lateral view posexplode(a) x as p, e where p = 2", [(1, None)]),
        ("select k, sum(e) as e from t, unnest(a) as x(e) group by k", [(1, 4)]),
    ],
)
def test_elements_of_an_array_have_its_type(query: str, rows: list[tuple[object, ...]]) -> None:
    def build(flow: Dataflow) -> None:
        dd.sql(flow, query, t=dd.input(flow, "t", "k: int, a: array<int?>?")).output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert([(1, [2, 2, None]), (2, []), (3, None)])
        flow.seal()
        answer = dd.to_pylist(flow.output("out").snapshot())
        assert Counter((row["k"], row["e"]) for row in answer) == Counter(rows)
        flow.input("t").remove([(1, [2, 2, None]), (2, []), (3, None)])
        flow.seal()
        assert dd.to_pylist(flow.output("out").snapshot()) == []


def test_explain_shows_places_in_the_text() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", TABLES["t"])
        answer = dd.sql(flow, "select a\nfrom t\nwhere b > 1", t=t)
        assert "<sql>:3:7" in answer.explain()
        answer.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_joins_take_known_keys_first_and_explain_warns_of_pairs_without_an_equality() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", "a: int, b: int")
        u = dd.input(flow, "u", "a: int, b: int, c: int")
        k = dd.input(flow, "k", "a: int, c: int", mode="upsert", key="a")
        text = "select t.b from t, u, {} where t.a = u.a and t.b = u.b and t.a = k.a"
        for keyed in ("k", "(select a, count(*) as n from u group by a) as k"):
            lines = dd.sql(flow, text.format(keyed), t=t, u=u, k=k).explain().splitlines()
            joins = [line for line in lines if line.lstrip().startswith("join on")]
            assert "b = b" in joins[0] and "b = b" not in joins[1], "the keyed part is joined beneath"
        pairs = dd.sql(flow, "select t.b\nfrom t, u\nwhere t.b < u.c", t=t, u=u)
        _, _, warnings = pairs.explain().partition("== warnings ==\n")
        assert warnings.startswith("join on nothing: all pairs of rows") and warnings.endswith("  <sql>:3:7")
        for quiet in (
            "select b from t where b > (select avg(c) from u)",
            "select 1 as x from t, u where t.a = u.a",
        ):
            assert "warnings" not in dd.sql(flow, quiet, t=t, u=u).explain()
        pairs.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_strong_filters_are_joined_to_their_neighbours_first_and_domains_come_last() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", "a: int, b: int")
        u = dd.input(flow, "u", "b: int, c: int")
        v = dd.input(flow, "v", "c: int, s: string")
        tables = {"t": t, "u": u, "v": v}

        def joins(text: str) -> list[str]:
            lines = dd.sql(flow, text, **tables).explain().partition("== after")[0].splitlines()
            return [line.split("<sql>")[0].strip() for line in lines if "join on" in line]

        chain = "select t.a from t, u, v where t.b = u.b and u.c = v.c and {}"
        assert joins(chain.format("s = 'x'")) == ["join on b = b#2", "join on c = c#2"]
        assert joins(chain.format("(s = 'x' or s in ('y', 'z'))")) == ["join on b = b#2", "join on c = c#2"]
        assert joins(chain.format("s > 'x'")) == ["join on c = c#2", "join on b = b#2"]
        assert joins(chain.format("s = 'x' and t.a > 1")) == ["join on c = c#2", "join on b = b#2"]
        exists = "select t.a from t, u where t.b = u.b and exists (select 1 from v where v.c = t.a) and {}"
        late, early = joins(exists.format("u.c = 3")), joins(exists.format("t.a = 3"))
        assert late.index("join on b = b#2") > 0 and early.index("join on b = b#2") == 0
        t.output("result")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)


def test_dialects_differ_where_they_say_so() -> None:
    def build(flow: Dataflow) -> None:
        t = dd.input(flow, "t", "a: int, b: int")
        e = dd.constant(flow, [(1, "x"), (2, "y")], "b: int, s: string?")
        for dialect in ("spark", "postgres", "duckdb"):
            dd.sql(flow, "select a / 2 as half, -a % 2 as rest from t", dialect=dialect, t=t).output(dialect)
        by_zero = "select a / b as x, -a / b as y, b / b as z, 1.5::double % b as r, (b - 7) // 2 as n from t"
        dd.sql(flow, by_zero, dialect="duckdb", t=t).output("by zero")
        none = "select count_if(a > 0) as n from t where a > 99"
        dd.sql(flow, none, dialect="duckdb", t=t).output("none")
        for dialect, remainder in {"duckdb": "a % b", "spark": "cast(a as double) % b"}.items():
            text = f"select {remainder} as r from t"
            dd.sql(flow, text, dialect=dialect, t=t).output(f"remainder {dialect}")
        greatest = "select max_by(a, b) / 2 as half from t"
        dd.sql(flow, greatest, dialect="postgres", t=t).output("greatest")
        for dialect in ("spark", "duckdb"):
            of_null = "select max_by(if(b = 2, null, s), b) as s from e"
            dd.sql(flow, of_null, dialect=dialect, e=e).output(f"greatest {dialect}")
        lists = "select array_agg(nullif(a, a)) as x, array_agg(a) filter (where a > 99) as y from t"
        dd.sql(flow, lists, dialect="duckdb", t=t).output("lists")
        made = "select array_agg(b) as b, array_agg(distinct s) as s, list(s order by b desc) as o from e"
        elements = f"with m as ({made}) select x + 1 as n, s, o from m, unnest(b) as u(x)"
        dd.sql(flow, elements, dialect="duckdb", e=e).output("made")
        said = "percentile(b, 0.5) as x, listagg('z', '+') within group (order by b) as y, kurtosis(b) as z"
        dd.sql(flow, f"select {said}, skewness(b) as s, corr(a, b) as c from t", t=t).output("of Spark")
        with pytest.raises(SqlError, match="kurtosis_pop"):
            dd.sql(flow, "select kurtosis(a) from t", dialect="duckdb", t=t)
        with pytest.raises(SqlError, match="there is no dialect"):
            dd.sql(flow, "select a from t", dialect="oracle", t=t)

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("t").insert([(3, 0)])
        flow.seal()
        assert dd.to_pylist(flow.output("spark").snapshot()) == [{"half": 1.5, "rest": -1}]
        assert dd.to_pylist(flow.output("postgres").snapshot()) == [{"half": 1, "rest": -1}]
        assert dd.to_pylist(flow.output("duckdb").snapshot()) == [{"half": 1.5, "rest": -1}]
        assert dd.to_pylist(flow.output("greatest").snapshot()) == [{"half": 1}]
        assert dd.to_pylist(flow.output("greatest spark").snapshot()) == [{"s": None}]
        assert dd.to_pylist(flow.output("greatest duckdb").snapshot()) == [{"s": "x"}]
        elements = dd.to_pylist(flow.output("made").snapshot())
        assert elements == [{"n": n, "s": ["x", "y"], "o": ["y", "x"]} for n in (2, 3)]
        (row,) = dd.to_pylist(flow.output("lists").snapshot())
        assert list(row.values()) == [[], []]  # DuckDB: a null, and null
        (row,) = dd.to_pylist(flow.output("by zero").snapshot())
        assert list(map(str, row.values())) == ["inf", "-inf", "nan", "nan", "-3"]
        assert dd.to_pylist(flow.output("none").snapshot()) == [{"n": 0}]  # DuckDB: null
        for dialect in ("duckdb", "spark"):
            with pytest.raises(timely.TimelyError, match="divides by zero"):
                flow.output(f"remainder {dialect}").snapshot()
        (row,) = dd.to_pylist(flow.output("of Spark").snapshot())
        assert (row["x"], row["y"], row["c"]) == (0.0, "z", None)


def test_collections_of_a_loop_are_tables_in_its_body() -> None:
    once = (
        "select n from roots union select y from e join r on x = n union select k from (values (0)) as v (k)"
    )
    more = """
        with recursive s(n) as (select n from r union select y from e, s where x = n and w < 3)
        select distinct n from s where n <= (select max(n) from r) + 10
    """

    def build(flow: Dataflow) -> None:
        roots, e = dd.input(flow, "roots", "n: int"), dd.input(flow, "e", TABLES["e"])
        roots.iterate(lambda r: dd.sql(flow, once, "duckdb", r=r, e=e, roots=roots)).output("once")
        roots.iterate(lambda r: dd.sql(flow, more, "duckdb", r=r, e=e)).output("more")

    def answer(name: str) -> list[int]:
        return sorted(row["n"] for row in dd.to_pylist(flow.output(name).snapshot()))

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("roots").insert([(1,)])
        flow.input("e").insert([(1, 2, 1), (2, 3, 5), (3, 4, 1), (2, 5, 1), (5, 20, 1)])
        flow.seal()
        assert (answer("once"), answer("more")) == ([0, 1, 2, 3, 4, 5, 20], [1, 2, 5])
        flow.input("e").remove([(2, 5, 1), (1, 2, 1)])
        flow.seal()
        assert (answer("once"), answer("more")) == ([0, 1], [1])
