"""groups.py: groups, aggregates and functions of groups.

meaning_*   one row per group with its aggregates, or what the function gives, at every time
kept_*      sums and nothing else; nothing is left of what was removed
against_*   another library
columns_*   which columns come out
refused_*   aggregates and schemas that do not fit
decimals_*  digits of sums and means, spreads
single_*    collections of one row
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from decimal import Decimal

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.dataflow import Change, Cluster, check_at_times, trace_rows
from strategies_collections import UNARY, examples, histories

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError, SchemaError, SumOverflowError, UserFunctionError
from timely.building.dataflow import Dataflow

AGGREGATES = (
    "aggregates of days and decimals",
    "count",
    "sum",
    "min",
    "max",
    "several aggregates",
    "statistics",
    "aggregates of everything",
)
REDUCTIONS = ("reduce", "reduce to multiplicities")


# meaning_


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", [*AGGREGATES, *REDUCTIONS])
def test_meaning_at_every_time(name: str, depth: int) -> None:
    @examples(1.5)
    @given(histories(depth, size_max=14), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def test_meaning_a_removal_beside_an_insertion_matters_where_both_are_in() -> None:
    """Nothing arrives at (1, 1), and nothing is left in any batch; yet the count changes there."""
    changes: list[Change] = [((1, 5), (1, 0), 1), ((1, 5), (0, 1), -1)]
    for name in (*AGGREGATES, *REDUCTIONS):
        operator = UNARY[name]
        for seed in range(10):
            check_at_times(operator.build, operator.plain, [changes], depth=2, seed=seed)


@pytest.mark.parametrize("depth", [2, 3])
def test_meaning_of_a_few_keys_with_long_histories(depth: int) -> None:
    """The incremental minimum skips what cannot matter: here much does, again and again."""
    rows = st.tuples(st.integers(0, 1), st.integers(0, 5))

    @examples(1.5)
    @given(histories(depth, rows, size_max=30), st.sampled_from(AGGREGATES), st.integers(0, 2**20))
    def holds(changes: list[Change], name: str, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, seed=seed)

    holds()


def test_meaning_of_rows_without_other_columns() -> None:
    """Keys are all there is: a group is its key and how often it occurs."""
    changes: list[Change] = [((1,), (0,), 2), ((2,), (0,), 1), ((1,), (1,), -1), ((2,), (2,), -1)]
    check_at_times(
        lambda c: c.group_by("k").reduce(lambda key, rows: [(key[0], rows[0][1])], "again: int, n: int"),
        lambda rows: plainly.collection([(k, k, count) for (k,), count in rows.items()]),
        [changes],
        depth=1,
        schemas="k: int",
    )


# kept_


def _embedded(
    schema: str, build: Callable[[Collection], Collection]
) -> tuple[timely.Cluster, timely.Installed]:
    cluster = timely.connect(workers=1, embedded=True)
    return cluster, cluster.install(lambda flow: build(dd.input(flow, "rows", schema)).output("o"))


HARD = [0.1, 0.2, 1e300, -1e300, 1e-320, 3.0, float("inf"), 0.7, -0.1]


def test_kept_nothing_of_floats_that_are_removed() -> None:
    """In any order: what is left is as if the others had never been there."""
    flow_of = lambda c: c.group_by("k").agg(s=dd.sum("x"), m=dd.avg("x"), d=dd.stddev("x"))  # noqa: E731
    cluster, flow = _embedded("k: int, x: float", flow_of)
    with cluster:
        rows = flow.input("rows")
        rows.insert([(1, value) for value in HARD])
        flow.seal()
        for value in sorted(HARD[2:], key=str):
            rows.remove([(1, value)])
            flow.seal()
        ((_, total, mean, spread),) = [tuple(row.values()) for row in flow.output("o").snapshot().to_pylist()]
        assert total == 0.1 + 0.2 and mean == total / 2 and math.isclose(spread, statistics.stdev([0.1, 0.2]))
        rows.remove([(1, 0.1), (1, 0.2)])
        flow.seal()
        assert flow.output("o").snapshot().num_rows == 0
        rows.insert([(1, 0.1), (1, -0.1)])
        flow.seal()
        (row,) = flow.output("o").snapshot().to_pylist()
        assert row["s"] == 0.0 and math.copysign(1.0, row["s"]) == 1.0


def test_kept_are_sums_not_rows() -> None:
    """What a sum keeps does not grow with the values of a group, and what it has said it does not keep."""

    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        rows.group_by("k").agg(s=dd.sum("v"), a=dd.avg("v"), d=dd.variance("v")).output("o")

    cluster = Cluster(build)
    for number in range(300):
        cluster.change("rows", [((number % 3, number * number), 1)])
    cluster.seal()
    cluster.run()
    components = 4
    assert trace_rows(cluster) == 3 * components


# against_


def test_against_pandas() -> None:
    values: list[tuple[int | None, float | None]] = [
        (n % 4 or None, None if n % 5 == 0 else n * 0.37) for n in range(60)
    ]
    cluster, flow = _embedded(
        "k: int?, x: float?",
        lambda c: c.group_by("k").agg(
            size=dd.count(),
            count=dd.count("x"),
            sum=dd.sum("x"),
            mean=dd.avg("x"),
            var=dd.variance("x"),
            std=dd.stddev("x"),
            nunique=dd.count_distinct("x"),
        ),
    )
    with cluster:
        flow.input("rows").insert(values)
        flow.seal()
        found = flow.output("o").snapshot().to_pandas().set_index("k").sort_index()
    frame = pandas.DataFrame(values, columns=["k", "x"])
    names = ["size", "count", "sum", "mean", "var", "std", "nunique"]
    wanted = frame.groupby("k", dropna=False)["x"].agg(names).sort_index()
    assert len(found) == 4
    pandas.testing.assert_frame_equal(found, wanted, check_dtype=False, check_index_type=False, rtol=1e-12)


# columns_


def test_columns_keys_may_be_lists_column_objects_and_expressions_with_names() -> None:
    source = _numbers()
    grouped = source.group_by(["name", col.k], half=col.v // 2).agg(n=dd.count())
    assert str(grouped.schema) == "name: string, k: int, half: int, n: int"
    assert grouped.node is source.group_by("name", "k", half=col.v // 2).agg(n=dd.count()).node


def test_columns_of_the_short_forms_are_named_after_what_they_are() -> None:
    grouped = _numbers().group_by("k")
    assert str(grouped.count().schema) == "k: int, count: int"
    assert str(grouped.sum("v").schema) == "k: int, sum_v: int"
    assert str(grouped.mean("v").schema) == "k: int, avg_v: float"
    assert str(grouped.min("v").schema) == "k: int, min_v: int"
    assert str(grouped.max("v").schema) == "k: int, max_v: int"


def test_columns_whole_collections_and_having() -> None:
    source = _numbers()
    assert source.agg(n=dd.count()).node is source.group_by().agg(n=dd.count()).node
    counted = source.group_by("k").agg(n=dd.count())
    assert counted.having(col.n > 1).node is counted.filter(col.n > 1).node


def test_columns_an_aggregate_may_be_of_a_key() -> None:
    found = _numbers().group_by("k").agg(most=dd.max("k"), n=dd.count("k"), d=dd.count_distinct("k"))
    assert str(found.schema) == "k: int, most: int, n: int, d: int"


def _numbers(schema: str = "k: int, v: int, name: string") -> Collection:
    return dd.input(Dataflow("queries"), "numbers", schema)


def test_columns_are_the_keys_in_the_order_of_group_by_then_the_aggregates() -> None:
    grouped = _numbers().group_by("name", "k")
    assert str(grouped.agg(n=dd.count(), hi=dd.max("v")).schema) == "name: string, k: int, n: int, hi: int"
    assert (
        str(grouped.reduce(lambda key, rows: [], "text: string?").schema)
        == "name: string, k: int, text: string?"
    )


def test_columns_min_and_max_keep_the_type_of_their_column() -> None:
    found = _numbers("k: int, when: timestamp, x: float").group_by("k").agg(a=dd.min("when"), b=dd.max("x"))
    assert str(found.schema) == "k: int, a: timestamp, b: float"


def test_columns_aggregates_are_named_as_in_python_or_by_alias() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        grouped = rows.group_by("k").agg(dd.sum("v").alias("s"), n=dd.count())
        assert grouped.schema.names == ("k", "s", "n")
        same = rows.group_by("k").agg(dd.sum(col.v).alias("s"), dd.count().alias("n"))
        grouped.concat(same.negate()).output("nothing")
        rows.agg(dd.max("v").alias("most")).output("most")

    cluster = Cluster(build)
    cluster.change("rows", [((1, 2), 1), ((1, 3), 1), ((2, 5), 1)])
    cluster.seal()
    cluster.run()
    assert not cluster.snapshot("nothing") and cluster.snapshot("most") == {(5,): 1}


def test_columns_keys_may_be_expressions_with_an_alias() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, v: int")
        counts = rows.group_by((col.v // 10).alias("tens"), ["k"]).count()
        assert counts.schema.names == ("tens", "k", "count")
        same = rows.groupBy([(col.v // 10).alias("tens"), col.k]).count()
        counts.concat(same.negate()).output("nothing")
        counts.output("counts")

    cluster = Cluster(build)
    cluster.change("rows", [((1, 2), 1), ((1, 3), 1), ((2, 15), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("counts") == {(0, 1, 2): 1, (1, 2, 1): 1} and not cluster.snapshot("nothing")


# refused_


def test_refused_an_aggregate_of_a_column_whose_place_a_key_has_taken() -> None:
    for grouped in (lambda c: c.group_by((col.v // 10).alias("v")), lambda c: c.group_by("k", v=col.v // 10)):
        for aggregate in (dd.sum("v"), dd.max(col.v + 1), dd.first("k", by="v")):
            said = _refused(lambda c, g=grouped, a=aggregate: g(c).agg(x=a), SchemaError, "k: int, v: int")  # type: ignore[misc]
            assert "'v' is a key here" in said and "another name" in said
        assert grouped(_numbers("k: int, v: int")).agg(n=dd.count()).schema.names[-1] == "n"


def test_refused_aggregates_without_a_name_or_with_one_twice() -> None:
    said = _refused(lambda c: c.group_by("k").agg(dd.sum(col.v + 1)), SchemaError, "k: int, v: int")
    assert "dd.sum(col.v + 1)" in said and "alias('total')" in said
    for wrong in ({"v": "size"}, {"*": "sum"}, {3: "sum"}, {"v": dd.sum}, {"v": ["max", "first"]}):
        said = _refused(lambda c, w=wrong: c.agg(w), SchemaError, "k: int, v: int")  # type: ignore[misc]
        assert "test_groups.py:" in said and "there is no such aggregate of a column" in said
    assert "'sum(v)'" in _refused(lambda c: c.agg({"v": "sum"}, **{"sum(v)": dd.count()}), SchemaError)
    twice = [dd.sum("v").alias("v"), dd.max("v").alias("v")]
    assert "'v'" in _refused(lambda c: c.agg(*twice), SchemaError, "k: int, v: int")
    assert "'v'" in _refused(lambda c: c.agg(twice[0], v=dd.count()), SchemaError, "k: int, v: int")
    with pytest.raises(ExpressionError, match="a name is text"):
        dd.sum("v").alias(7)  # type: ignore[arg-type]


def test_aggregates_by_column_are_called_as_in_pyspark() -> None:
    rows = _numbers("k: int, v: int")
    found = rows.group_by("k").agg({"v": ["sum", "max"], "*": "count", "k": "mean"}, n=dd.count())
    named = {"sum(v)": dd.sum("v"), "max(v)": dd.max("v"), "count(1)": dd.count(), "avg(k)": dd.avg("k")}
    assert found.node.digest == rows.group_by("k").agg(**named, n=dd.count()).node.digest
    for kind, make in (("median", dd.median), ("std", dd.stddev), ("collect_list", dd.collect)):
        name = {"std": "stddev"}.get(kind, kind)
        assert rows.agg({"v": kind}).node.digest == rows.agg(**{f"{name}(v)": make("v")}).node.digest


def _refused(build: Callable[[Collection], object], error: type[Exception], schema: str = "") -> str:
    with pytest.raises(error) as caught:
        build(_numbers(schema or "k: int, v: int, name: string"))
    return str(caught.value)


def test_refused_no_aggregate_at_all() -> None:
    assert "at least one aggregate" in _refused(lambda c: c.group_by("k").agg(), SchemaError)


def test_refused_what_is_no_aggregate() -> None:
    said = _refused(lambda c: c.group_by("k").agg(n="v"), SchemaError)  # type: ignore[arg-type]
    assert "agg(n=…)" in said and "dd.count()" in said and "'v'" in said


def test_refused_names_that_are_keys() -> None:
    assert "'k' is a key already" in _refused(lambda c: c.group_by("k").agg(k=dd.count()), SchemaError)
    said = _refused(lambda c: c.group_by("k").reduce(lambda key, rows: [], "k: int"), SchemaError)
    assert "'k' is a key already" in said


def test_refused_an_aggregate_without_a_name() -> None:
    said = _refused(lambda c: c.group_by("k").agg(dd.sum(col.v + 1)), SchemaError)
    assert "agg(total=dd.sum('x'))" in said
    assert "sum('x')" in _refused(lambda c: c.group_by("k").sum(), SchemaError)


def test_refused_a_key_that_is_computed_and_has_no_name() -> None:
    said = _refused(lambda c: c.group_by(col.v // 7), SchemaError)
    assert "col.v // 7" in said and "group_by(day=" in said


def test_refused_a_key_named_twice() -> None:
    assert "twice" in _refused(lambda c: c.group_by("k", "k").agg(n=dd.count()), SchemaError)


def test_refused_an_aggregate_of_a_column_that_is_not_there() -> None:
    said = _refused(lambda c: c.group_by("k").agg(n=dd.sum("missing")), SchemaError)
    assert "'missing'" in said and "k: int, v: int" in said


def test_refused_least_of_what_has_no_order() -> None:
    said = _refused(lambda c: c.group_by("k").agg(n=dd.min("x")), ExpressionError, "k: int, x: any")
    assert "min(x)" in said and "no order" in said and "reduce(fn, …)" in said


def test_refused_a_sum_that_leaves_64_bits_names_the_group_and_only_if_it_stays_so() -> None:
    cluster = Cluster(
        lambda flow: dd.input(flow, "numbers", "k: int, v: int").group_by("k").agg(s=dd.sum("v")).output("o")
    )
    cluster.change("numbers", [((7, 2**62), 1), ((7, 2**62 + 1), 1), ((7, -5), 1)])
    cluster.change("numbers", [((8, 2**62), 1), ((8, 2**62 + 1), 1)])
    cluster.seal()
    cluster.change("numbers", [((9, 1), 1)])
    cluster.seal()
    cluster.change("numbers", [((8, -2), 1)])
    cluster.seal()
    cluster.run()
    error = cluster.error("o", 0)
    assert type(error) is SumOverflowError
    assert re.search(
        r"sum\(v\) \(.*test_groups.py:\d+\) of the group \(k=8\) leaves 64 bits\.$", str(error), re.M
    )
    assert not cluster.has_answer("o", 1) and cluster.has_answer("o", 2)
    sums = {(7, 2**63 - 4): 1, (8, 2**63 - 1): 1, (9, 1): 1}
    assert cluster.changes("o") == {(2,): sums} and cluster.snapshot("o") == sums


def _fails(key: tuple[object, ...], rows: list[tuple[tuple[object, ...], int]]) -> list[int]:
    return [1 // (len(rows) - 1)]


def test_refused_a_function_that_raises_names_the_group_and_the_line() -> None:
    cluster = Cluster(
        lambda flow: (
            dd.input(flow, "numbers", "k: int, v: int").group_by("k").reduce(_fails, "n: int").output("o")
        )
    )
    for row in ((7, 8), (8, 8), (7, 9), (8, 9)):
        cluster.change("numbers", [(row, 1)])
        cluster.seal()
    cluster.run()
    error = cluster.error("o", 0)
    assert type(error) is UserFunctionError
    assert re.search(
        r"reduce\(\S*_fails\) \(.*test_groups.py:\d+\) failed on \(7,\): \[\(\(8,\), 1\)\]:\n"
        r"  ZeroDivisionError: .*, in line 2 of _fails\.$", str(error), re.M
    ), error  # fmt: skip
    assert "(1 more row failed, too)" in str(cluster.error("o", 1))
    assert "failed on (8,)" in str(cluster.error("o", 2)) and "more row" not in str(cluster.error("o", 2))
    assert cluster.changes("o") == {(3,): {(7, 1): 1, (8, 1): 1}}, (
        "the group that was there before comes with it"
    )


# decimals_


def test_decimals_a_sum_has_more_digits_than_its_parts() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, d: decimal(5, 2), e: decimal(5, 2)?")
        rows.group_by("k").agg(d=dd.sum("d"), e=dd.sum("e")).output("sums")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(1, Decimal("999.99"), Decimal("-999.99"))] * 20)
        flow.input("rows").insert([(2, Decimal("0.01"), None)])
        flow.wait(flow.seal())
        table = flow.output("sums").snapshot()
    table.validate(full=True)
    assert [str(field.type) for field in table.schema][1:] == ["decimal128(15, 2)"] * 2
    rows = sorted(tuple(row.values())[:3] for row in table.to_pylist())
    assert rows == [(1, Decimal("19999.80"), Decimal("-19999.80")), (2, Decimal("0.01"), None)]


def test_decimals_a_mean_is_a_decimal_with_four_digits_more_rounded_half_up() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, d: decimal(5, 2), e: decimal(5, 2)?")
        rows.group_by("k").agg(d=dd.avg("d"), e=dd.avg("e"), twice=dd.avg(col.d * 2)).output("means")
        rows.group_by("k").avg("d").output("short")
        rows.agg(d=dd.avg("d"), n=dd.count()).output("all")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        rows = flow.input("rows")
        flow.wait(flow.seal())
        (nothing,) = flow.output("all").snapshot().to_pylist()
        rows.insert(
            [(1, Decimal("0.01"), None), (1, Decimal("0.01"), Decimal("-0.02")), (1, Decimal(0), None)]
        )
        rows.insert([(2, Decimal("-999.99"), None), (3, Decimal("-0.01"), Decimal("0.01"))])
        rows.insert([(3, Decimal(0), Decimal(0))] * 6399)
        flow.wait(flow.seal())
        table = flow.output("means").snapshot()
        rows.remove([(1, Decimal("0.01"), Decimal("-0.02"))])
        flow.wait(flow.seal())
        later = flow.output("means").snapshot().to_pylist()
        short = flow.output("short").snapshot().schema
    table.validate(full=True)
    assert nothing == {"d": None, "n": 0}
    types = [str(field.type) for field in table.schema][1:]
    assert types == ["decimal128(9, 6)"] * 2 + ["decimal128(11, 6)"]
    assert short.names == ["k", "avg_d"] and str(short.field("avg_d").type) == "decimal128(9, 6)"
    found = {row["k"]: [row["d"], row["e"], row["twice"]] for row in table.to_pylist()}
    assert found == {
        1: [Decimal("0.006667"), Decimal("-0.02"), Decimal("0.013333")],
        2: [Decimal("-999.99"), None, Decimal("-1999.98")],
        3: [Decimal("-0.000002"), Decimal("0.000002"), Decimal("-0.000003")],  # 0.0000015625, 0.000003125
    }
    assert {row["k"]: row["e"] for row in later} == {1: None, 2: None, 3: Decimal("0.000002")}
    assert {row["d"] for row in later if row["k"] == 1} == {Decimal("0.005")}


def test_decimals_a_mean_is_there_although_the_sum_has_too_many_digits() -> None:
    def build(flow: Dataflow) -> None:
        dd.input(flow, "rows", "d: decimal(34, 4)").agg(d=dd.avg("d")).output("mean")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert([(Decimal("9" * 30 + ".9999"),)] * 20_000)
        flow.wait(flow.seal())
        (row,) = flow.output("mean").snapshot().to_pylist()
    assert row == {"d": Decimal("9" * 30 + ".9999")}


@pytest.mark.parametrize("sign", ["", "-"])
def test_decimals_a_mean_of_more_than_38_digits_is_an_error_that_names_the_group(sign: str) -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, d: decimal(38, 2)")
        rows.group_by("k").agg(n=dd.count(), d=dd.avg("d")).output("means")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        rows = flow.input("rows")
        rows.insert([(6, Decimal(sign + "9" * 32 + ".99"))] * 5)
        flow.wait(flow.seal())
        assert flow.output("means").snapshot().num_rows == 1
        rows.insert([(7, Decimal(sign + "1" + "0" * 32)), (6, Decimal(0))])
        flow.wait(flow.seal())
        for read in (flow.output("means").snapshot, flow.output("means").changes):
            with pytest.raises(
                SumOverflowError, match=r"avg\(d\) \(.*\) of the group \(k=7\) has more than 38 digits"
            ):
                read()
        rows.insert([(7, Decimal(0))])
        flow.wait(flow.seal())
        (first, second) = flow.output("means").snapshot().to_pylist()
        assert first == {"k": 6, "n": 6, "d": Decimal(sign + "8" + "3" * 31 + ".325000")}
        assert second == {"k": 7, "n": 2, "d": Decimal(sign + "5" + "0" * 31)}


def test_decimals_spreads_are_floats_without_a_cast() -> None:
    def build(flow: Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, d: decimal(5, 2), e: decimal(5, 2)?")
        rows.group_by("k").agg(
            v=dd.variance("d"), s=dd.stddev("d", sample=False), e=dd.stddev("e"), m=dd.avg("d")
        ).output("spreads")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        given = [Decimal("0.10"), Decimal("0.20"), Decimal("999.90")]
        flow.input("rows").insert([(1, each, None) for each in given] + [(2, given[0], given[1])])
        flow.wait(flow.seal())
        found = {row.pop("k"): row for row in flow.output("spreads").snapshot().to_pylist()}
    assert found[2] == {"v": None, "s": 0.0, "e": None, "m": Decimal("0.1")}
    mean = sum(given) / 3
    squares = float(sum((each - mean) ** 2 for each in given))
    assert found[1]["v"] == pytest.approx(squares / 2, rel=1e-15)
    assert found[1]["s"] == pytest.approx((squares / 3) ** 0.5, rel=1e-15)
    assert found[1]["e"] is None and found[1]["m"] == Decimal("333.4")


@pytest.mark.parametrize("sign", ["", "-"])
def test_decimals_a_sum_of_more_than_38_digits_is_an_error_that_names_the_group(sign: str) -> None:
    def build(flow: Dataflow) -> None:
        dd.input(flow, "rows", "k: int, d: decimal(38, 1)").group_by("k").agg(s=dd.sum("d")).output("sums")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        rows = flow.input("rows")
        rows.insert([(7, Decimal(sign + "9" * 37 + ".9"))])
        flow.wait(flow.seal())
        assert flow.output("sums").snapshot().num_rows == 1
        rows.insert([(7, Decimal(sign + "0.1")), (8, Decimal(1))])
        flow.wait(flow.seal())
        with pytest.raises(SumOverflowError, match=r"the group \(k=7\) has more than 38 digits"):
            flow.output("sums").snapshot()
        rows.remove([(7, Decimal(sign + "0.1"))])
        flow.wait(flow.seal())
        sums = {7: Decimal(sign + "9" * 37 + ".9"), 8: Decimal(1)}
        assert {row["k"]: row["s"] for row in flow.output("sums").snapshot().to_pylist()} == sums


# single_


@pytest.mark.parametrize("workers", [1, 3])
def test_single_a_second_row_leaves_what_rests_on_it_without_an_answer_until_it_goes(workers: int) -> None:
    def build(flow: Dataflow) -> None:
        rates = dd.input(flow, "rates", "rate: int")
        amounts = dd.input(flow, "amounts", "amount: int")
        rate = rates.assert_single("there is one rate")
        amounts.cross_join(rate).select(sum=col.amount * col.rate).output("sums")
        amounts.output("amounts")

    cluster = Cluster(build, workers=workers)
    for epoch, (changes, wanted) in enumerate(
        [
            ([], {}),
            ([((2,), 1)], {(10,): 1}),
            ([((3,), 1)], None),
            ([((3,), -1), ((2,), 1)], None),  # the same row twice is two rows
            ([((2,), -1)], {(10,): 1}),
            ([((2,), -1), ((4,), 1)], {(20,): 1}),
        ]
    ):
        cluster.change("rates", changes, worker=epoch % workers)
        cluster.change("amounts", [((5,), 1)] if epoch == 0 else [])
        cluster.seal()
        cluster.run()
        assert cluster.snapshot("amounts") == {(5,): 1}
        assert cluster.has_answer("sums", epoch) == (wanted is not None)
        if wanted is None:
            assert "there is one rate does not hold, for there is the row rows=2" in str(
                cluster.error("sums")
            )
        else:
            assert cluster.snapshot("sums") == wanted


def test_a_named_aggregate_of_pandas_is_answered_by_ours() -> None:
    rows = dd.input(timely.Dataflow("tested"), "rows", "k: int, x: int")
    for kind, ours in (("sum", "sum"), ("mean", "avg"), ("nunique", "count_distinct")):
        aggregates = {"total": ("x", kind)}
        with pytest.raises(dd.SchemaError, match=rf"\. Write dd\.{ours}\('x'\)$"):
            rows.group_by("k").agg(**aggregates)  # type: ignore[arg-type]


def test_a_minus_before_a_name_is_told_with_the_way_to_write_it() -> None:
    orders = dd.input(timely.Dataflow("orders"), "orders", "id: int, cents: int")
    for make in (
        lambda: orders.top_k(2, by="-cents"),
        lambda: orders.group_by("id").top_k(2, by=["id", "-cents"]),
        lambda: orders.order_by("-cents"),
    ):
        with pytest.raises(dd.SchemaError, match=r"'-cents' is no column; .* is col\.cents\.desc\(\)$"):
            make()
