"""Decimals of two words through whole dataflows: what DuckDB says of the rows as they are then.

Its `avg` of decimals is a float; Python's fractions say the means, and the loop's rows.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st
from reference.collection import accumulated_at
from reference.dataflow import Cluster
from sql.judge import Judge, differences

import differential as dd
import timely
from differential import Collection, col
from timely.building.dataflow import Dataflow

EPOCHS = 3
SCHEMA = dd.Schema.of("k: int, w: decimal(28, 6), v: decimal(34, 2)?, p: decimal(9, 3)")

Row = tuple[int, Decimal, Decimal | None, Decimal]
Stays = tuple[Row, int, int]
"""A row, and the epochs in which it is there: from the first, up to and without the last."""


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    end = 10**digits - 1
    words = st.one_of(
        st.integers(-2, 2), st.sampled_from([end, -end, 2**63, -(2**63) - 1]), st.integers(-end, end)
    )
    return words.map(lambda word: Decimal((int(word < 0), tuple(map(int, str(abs(word)))), -scale)))


ROWS = st.tuples(
    st.integers(0, 2), _decimals(26, 6), st.none() | _decimals(34, 2), st.integers(-999, 999).map(Decimal)
)
STAYS = st.tuples(ROWS, st.integers(0, EPOCHS - 1), st.integers(1, EPOCHS)).filter(lambda it: it[1] < it[2])


def _build(flow: Dataflow) -> None:
    rows = dd.input(flow, "rows", SCHEMA)
    rows.group_by("k").agg(
        w=dd.sum("w"),
        v=dd.sum("v"),
        product=dd.sum(col.w * col.p),
        least=dd.min("w"),
        most=dd.max("v"),
        number=dd.count_distinct("v"),
        last=dd.argmax("w", by="v"),
    ).output("groups")
    rows.agg(w=dd.sum("w"), v=dd.sum("v"), n=dd.count("v")).output("all")
    rows.group_by("k").agg(w=dd.avg("w"), v=dd.avg("v"), p=dd.avg("p")).output("means")
    rows.group_by("w", "v").agg(n=dd.count()).output("keyed")
    rows.select("k", "w").join(rows.select("w", q=col.p), on="w").output("joined")
    rows.top_k(1, by=[col.v.desc(nulls_last=True), "w"], keys=["k"]).select("k", "v", "w").output("top")
    in_order = rows.over("k", by="w").with_columns(s=dd.sum("v"), q=dd.sum("p"), m=dd.max("v"), n=dd.min("w"))
    in_order.select("k", "w", "s", "q", "m", "n").output("windows")
    rows.filter(col.v > col.w, col.w != Decimal("0.000001")).select("k", "v").distinct().output("filtered")

    def step(reached: Collection) -> Collection:
        further = reached.filter(col.k < 4).select(k=col.k + 1, w=-col.w)
        return rows.select("k", "w").concat(further).group_by("k").agg(w=dd.max("w"))

    rows.select("k", "w").filter(col.k < 0).iterate(step).output("loop")


QUERIES = {
    "groups": "SELECT k, sum(w), sum(v), sum(w * p), min(w), max(v), count(DISTINCT v), "
    "(SELECT min(w) FROM rows s WHERE s.k = r.k AND s.v = max(r.v)) FROM rows r GROUP BY k",
    "all": "SELECT sum(w), sum(v), count(v) FROM rows",
    "keyed": "SELECT w, v, count(*) FROM rows GROUP BY w, v",
    "joined": "SELECT w, k, q FROM rows JOIN (SELECT w, p AS q FROM rows) USING (w)",
    "top": "SELECT k, v, w FROM rows "
    "QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, w) = 1",
    "windows": "SELECT k, w, sum(v) OVER x, sum(p) OVER x, max(v) OVER x, min(w) OVER x FROM rows "
    "WINDOW x AS (PARTITION BY k ORDER BY w)",
    "filtered": "SELECT DISTINCT k, v FROM rows WHERE v > w AND w <> 0.000001",
}


def _half_up(number: Fraction, scale: int) -> Decimal:
    whole = (2 * abs(number) * 10**scale + 1) // 2
    sign = int(number < 0 and whole > 0)
    return Decimal((sign, tuple(map(int, str(whole))), -scale))


def _means(rows: list[Row]) -> Counter[tuple[object, ...]]:
    means: Counter[tuple[object, ...]] = Counter()
    for k in {row[0] for row in rows}:
        columns = list(zip(*(row[1:] for row in rows if row[0] == k), strict=True))
        mean: list[object] = [k]
        for values, scale in zip(columns, (10, 6, 7), strict=True):
            there = [Fraction(value) for value in values if value is not None]
            mean.append(_half_up(sum(there, Fraction()) / len(there), scale) if there else None)
        means[tuple(mean)] = 1
    return means


def _looped(rows: list[Row]) -> Counter[tuple[object, ...]]:
    """The fixed point of the loop: a key's greatest value, and the negative of that of the key before."""
    best: dict[int, Decimal] = {}
    for k in range(5):
        values = [row[1] for row in rows if row[0] == k]
        values += [best[k - 1].copy_negate() + 0] if k - 1 in best else []
        if values:
            best[k] = max(values)
    return Counter(best.items())


@given(st.lists(STAYS, max_size=10), st.integers(1, 3))
@example([((0, Decimal(10) ** 20, Decimal(10) ** 31, Decimal(1)), at, 3) for at in (0, 1, 1)], 2)
@example([((0, Decimal(0), None, Decimal(0)), 0, 2), ((0, Decimal("-0.000001"), None, Decimal(3)), 1, 2)], 1)
def test_rows_of_wide_decimals_come_and_go_as_in_sql(contents: list[Stays], workers: int) -> None:
    cluster = Cluster(_build, workers=workers)
    for number, (row, first, stop) in enumerate(contents):
        cluster.change("rows", [(row, 1)], first, worker=number % workers)
        cluster.change("rows", [(row, -1)], stop, worker=(number + 1) % workers)
    cluster.seal(EPOCHS)
    cluster.run()
    judge = Judge()
    for epoch in range(EPOCHS):
        rows = [row for row, first, stop in contents if first <= epoch < stop]
        judge.tell("rows", SCHEMA, rows)
        for name, sql in QUERIES.items():
            have = accumulated_at(cluster.changes(name), (epoch,))
            assert differences(have, judge.answer(sql)) == ([], []), name
        assert accumulated_at(cluster.changes("means"), (epoch,)) == _means(rows)
        assert accumulated_at(cluster.changes("loop"), (epoch,)) == _looped(rows)
    judge.close()


def _pricing(flow: Dataflow) -> None:
    """Query 1 of TPC-H, with the types that its tables have in Spark."""
    lines = dd.input(
        flow,
        "lineitem",
        "flag: string, quantity: decimal(15, 2), price: decimal(15, 2), discount: decimal(15, 2), "
        "tax: decimal(15, 2)",
    )
    lines.group_by("flag").agg(
        quantity=dd.sum("quantity"),
        base=dd.sum("price"),
        reduced=dd.sum(col.price * (1 - col.discount)),
        charge=dd.sum(col.price * (1 - col.discount) * (1 + col.tax)),
        mean=dd.avg("price"),
        n=dd.count(),
    ).output("pricing")


def test_pricing_summary_of_tpch_has_the_types_of_spark_and_fits() -> None:
    rng = random.Random(5)

    def cents(end: int) -> Decimal:
        return Decimal(rng.randrange(end)).scaleb(-2)

    lines = [(rng.choice("ANR"), cents(5_100), cents(10**15), cents(11), cents(9)) for _ in range(2_000)]
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(_pricing)
        flow.input("lineitem").insert(lines)
        flow.input("lineitem").remove(lines[:500])
        flow.seal(wait=True)
        table = flow.output("pricing").snapshot()
    types = [str(field.type) for field in table.schema][1:-1]
    assert types == [f"decimal128({of})" for of in ("25, 2", "25, 2", "38, 4", "38, 6", "19, 6")]
    judge = Judge()
    schema = dd.Schema.of(
        "flag: string, q: decimal(15, 2), p: decimal(15, 2), d: decimal(15, 2), t: decimal(15, 2)"
    )
    judge.tell("lines", schema, lines[500:])
    have = Counter(tuple(row.values()) for row in table.drop_columns(["mean"]).to_pylist())
    reduced = "CAST(p AS DECIMAL(28, 2)) * (1 - d)"
    charge = f"sum({reduced}), sum({reduced} * (1 + t))"
    sql = f"SELECT flag, sum(q), sum(p), {charge}, count(*) FROM lines GROUP BY flag"
    assert differences(have, judge.answer(sql)) == ([], [])
    judge.close()
    for row in table.to_pylist():
        prices = [Fraction(line[2]) for line in lines[500:] if line[0] == row["flag"]]
        assert row["mean"] == _half_up(sum(prices, Fraction()) / len(prices), 6)


def _paths(flow: Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: decimal(25, 1), b: decimal(25, 1), cost: decimal(20, 0)?")
    starts = dd.input(flow, "starts", "a: decimal(25, 1)")

    def reached(nodes: Collection) -> Collection:
        return nodes.concat(nodes.join(edges, on="a").select(a=col.b)).distinct()

    def nearest(nodes: Collection) -> Collection:
        far = (col.far + col.cost.fill_null(1)).cast("decimal(30, 0)")
        further = nodes.join(edges, on="a").select(a=col.b, far=far)
        return nodes.concat(further).group_by("a").agg(far=dd.min("far"))

    starts.iterate(reached).output("reached")
    starts.select("a", far=dd.lit(0).cast("decimal(30, 0)")).iterate(nearest).output("nearest")


def test_loops_find_the_nodes_and_the_cheapest_ways_that_python_finds() -> None:
    rng, edges = random.Random(3), list[tuple[Decimal, Decimal, Decimal | None]]()
    nodes = [Decimal(sign + f"1{'0' * zeros}.1") for sign in ("", "-") for zeros in (0, 18, 19, 23)]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(_paths)
        flow.input("starts").insert([(nodes[0],)])
        for _ in range(12):
            costs = [None, Decimal(5), Decimal(10**19), Decimal(10**20 - 1)]
            more = [(rng.choice(nodes), rng.choice(nodes), rng.choice(costs)) for _ in range(3)]
            gone = [edges.pop(rng.randrange(len(edges))) for _ in range(rng.randint(0, len(edges) // 2))]
            edges += more
            flow.input("edges").insert(more)
            flow.input("edges").remove(gone)
            flow.seal(wait=True)
            far: dict[Decimal, int] = {nodes[0]: 0}
            for _ in nodes:
                for a, b, cost in edges:
                    if a in far:
                        way = far[a] + (1 if cost is None else int(cost))
                        far[b] = min(far.get(b, way), way)
            found = {row["a"]: row["far"] for row in flow.output("nearest").snapshot().to_pylist()}
            assert found == far
            assert {row["a"] for row in flow.output("reached").snapshot().to_pylist()} == far.keys()


NUMBERS = dd.Schema.of("k: int, w: decimal(28, 6), v: decimal(34, 2)?, p: decimal(9, 3), d: decimal(32, 1)")
EDGES = ["0", "1", "-1", "0.5", str(2**63), str(-(2**63) - 1), str(2**64), f"{10**20}.25", f"-{10**21}.5"]
TEXTS = (
    "SELECT -9223372036854775808 a, 9223372036854775808 b, -12345678901234567890123456789012345678 c, "
    "-1234567890123456789012345678901234567.8 d, w FROM rows",
    "SELECT w, CAST('-1234567890123456789012345678901234567.8' AS DECIMAL(38, 1)) a, "
    "CAST(p AS DECIMAL(38, 10)) b, CAST(k AS DECIMAL(25, 3)) c, "
    "TRY_CAST(w AS BIGINT) d, TRY_CAST(v AS DECIMAL(18, 2)) e FROM rows",
    "SELECT k, w FROM rows WHERE w > 9223372036854775808 OR w IN (1, 18446744073709551616, 0.5)",
    "SELECT k, v FROM rows WHERE v BETWEEN -9223372036854775809 AND '100000000000000000000'",
    "SELECT w FROM rows UNION ALL SELECT p FROM rows UNION ALL SELECT v FROM rows",
    "SELECT k, w FROM rows INTERSECT SELECT k, p FROM rows",
    "SELECT k, p FROM rows EXCEPT SELECT k, v FROM rows",
    "SELECT k, coalesce(v, w) a, nullif(w, v) b, least(w, p) c, greatest(v, w) e FROM rows",
    "SELECT k, CASE WHEN k = 0 THEN w WHEN k = 1 THEN p ELSE k END a FROM rows",
    "SELECT k, w FROM rows WHERE w IN (SELECT v FROM rows) OR p IN (SELECT w FROM rows)",
    "SELECT k, w FROM rows WHERE d NOT IN (SELECT w FROM rows WHERE k = 1)",
    "SELECT k, p FROM rows a WHERE EXISTS (SELECT 1 FROM rows b WHERE b.w = a.p AND b.k <> a.k)",
    "SELECT k, w, (SELECT max(b.v) FROM rows b WHERE b.k = a.k) m FROM rows a",
    "SELECT a.k, a.w, b.p FROM rows a FULL JOIN rows b ON a.v = b.p AND a.k = b.k",
    "SELECT k, w FROM rows WHERE w < (SELECT max(d) FROM rows)",
    "SELECT k, w FROM rows WHERE w < (SELECT max(w) FROM rows) AND w > (SELECT min(w) FROM rows)",
    "SELECT k, d FROM rows WHERE d = (SELECT max(d) FROM rows)",
    "SELECT k, sum(w) a, sum(DISTINCT v) b, sum(CASE WHEN w > 5 THEN w ELSE 0 END) c, count(DISTINCT d) e "
    "FROM rows GROUP BY k",
    "SELECT w, count(*) n FROM rows GROUP BY w HAVING w > '0.5'",
    "SELECT k, w, sum(v) OVER (PARTITION BY k ORDER BY w, v, d, p ROWS BETWEEN 1 PRECEDING AND "
    "1 FOLLOWING) a, max(w) OVER (PARTITION BY k ORDER BY d RANGE BETWEEN CURRENT ROW AND UNBOUNDED "
    "FOLLOWING) b, rank() OVER (PARTITION BY k ORDER BY w DESC) c, "
    "lag(v) OVER (PARTITION BY k ORDER BY d, w, v, p) e FROM rows",
)


def _rows(rng: random.Random) -> Iterator[Row]:
    def value(schema: dd.Schema, name: str) -> Decimal:
        digits, scale = schema[name].type.precision, schema[name].type.scale
        number = Decimal(rng.choice(EDGES))
        return number if abs(number) < 10 ** (digits - scale) else Decimal(rng.randint(0, 2))

    while True:
        w, v, p, d = (value(NUMBERS, name) for name in "wvpd")
        yield (
            rng.randrange(3),
            w,
            rng.choice([None, v]),
            p.quantize(Decimal("0.001")),
            d.quantize(Decimal("0.1")),
        )  # type: ignore[misc]


def test_texts_of_wide_decimals_have_the_answers_of_duckdb() -> None:
    rng = random.Random(11)
    judge, rows = Judge(), list[Row]()
    with timely.connect(workers=1, embedded=True) as cluster:

        def build(flow: Dataflow) -> None:
            table = dd.input(flow, "rows", NUMBERS)
            for number, text in enumerate(TEXTS):
                dd.sql(flow, text, "duckdb", rows=table).output(f"{number}")

        flow = cluster.install(build)
        for _ in range(3):
            more = list(itertools.islice(_rows(rng), 8))
            gone = [rows.pop(rng.randrange(len(rows))) for _ in range(len(rows) // 2)]
            rows += more
            flow.input("rows").insert(more)
            flow.input("rows").remove(gone)
            flow.seal(wait=True)
            judge.tell("rows", NUMBERS, rows)
            for number, text in enumerate(TEXTS):
                have = Counter(tuple(row.values()) for row in flow.output(f"{number}").snapshot().to_pylist())
                assert differences(have, judge.answer(text)) == ([], []), text
    judge.close()


def _everywhere(flow: Dataflow) -> None:
    """Operators and columns that SQL has no words for."""
    rows = dd.input(flow, "rows", "k: int, v: decimal(34, 2)?, w: decimal(30, 2)")
    rows.cross_join(rows.agg(m=dd.max("v"))).filter(col.w < col.m).select("k", "w").output("below")
    rows.cross_join(rows.agg(m=dd.max("w"))).filter(col.w == col.m).select("k", "w").output("most")
    pairs = rows.select("w", a=col.k).join(rows.select("w", b=col.k), on="w", balance="auto")
    pairs.select("w", "a", "b").output("pairs")
    rows.select(s=dd.struct(p=col.v, q=col.w)).distinct().select(p=col.s["p"], q=col.s["q"]).output("structs")
    arrays = rows.select("k", a=dd.array(col.w, -col.w))
    arrays.explode("a").distinct().output("elements")
    rows.top_k(2, by=[col.w.desc()], keys=["k"], ties=True).select("k", "w").output("ties")
    lists = rows.group_by("k").agg(
        w=dd.collect_set("w"), v=dd.collect("v", by=[col.w.desc()]), m=dd.mode("w")
    )
    lists.select("k", "m").output("modes")
    lists.select("k", "w", "v").output("lists")


def _plainly(rows: list[tuple[int, Decimal | None, Decimal]]) -> dict[str, Counter[tuple[object, ...]]]:
    most = max(v for _, v, _ in rows if v is not None)
    groups: dict[int, list[tuple[Decimal | None, Decimal]]] = {}
    for k, v, w in rows:
        groups.setdefault(k, []).append((v, w))
    numbers = {k: Counter(w for _, w in group) for k, group in groups.items()}
    ends = {k: sorted(w for _, w in group)[-2:][0] for k, group in groups.items()}
    orders = {k: sorted(((-w, v) for v, w in group if v is not None)) for k, group in groups.items()}
    return {
        "below": Counter((k, w) for k, _, w in rows if w < most),
        "most": Counter((k, w) for k, _, w in rows if w == max(each[2] for each in rows)),
        "pairs": Counter((w, a, b) for a, _, w in rows for b, _, other in rows if w == other),
        "structs": Counter({(v, w) for _, v, w in rows}),
        "elements": Counter({(k, each) for k, _, w in rows for each in (w, w.copy_negate())}),
        "ties": Counter((k, w) for k, _, w in rows if w >= ends[k]),
        "modes": Counter((k, min(found, key=lambda w: (-found[w], w))) for k, found in numbers.items()),
        "lists": Counter((k, tuple(sorted(numbers[k])), tuple(v for _, v in orders[k])) for k in groups),
    }


def test_operators_without_sql_do_with_wide_decimals_what_python_does() -> None:
    rng = random.Random(7)
    values = [Decimal(text) for text in EDGES]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(_everywhere)
        rows: list[tuple[int, Decimal | None, Decimal]] = [(0, values[0], values[-1])]
        flow.input("rows").insert(rows)
        for _ in range(4):
            more = [
                (rng.randrange(2), rng.choice([*values, None]), rng.choice(values))
                for _ in range(rng.randint(1, 8))
            ]
            gone = [rows.pop(rng.randrange(1, len(rows))) for _ in range(len(rows) // 2)]
            rows += more
            flow.input("rows").insert(more)
            flow.input("rows").remove(gone)
            flow.seal(wait=True)
            for name, want in _plainly(rows).items():
                table = flow.output(name).snapshot().to_pylist()
                assert Counter(tuple(map(_hashable, row.values())) for row in table) == want, name


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
