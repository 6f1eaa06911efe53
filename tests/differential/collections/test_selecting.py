"""selecting.py: operators on single rows.

meaning_*   at times of depth 2 and 3
refused_*   what a user may do wrong, and what he is told
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Row
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import (
    NUMBERS,
    UNARY,
    examples,
    histories,
)

import differential as dd
import timely
from differential import Collection, col
from differential.errors import ExpressionError, RowError, SchemaError, UserFunctionError
from timely.building.dataflow import Dataflow

LINEAR = (
    "select",
    "swap",
    "constant",
    "filter",
    "filter by a function",
    "map",
    "flat_map",
    "negate",
    "concat with itself",
    "rename and drop",
)
workers = st.integers(1, 3)
seeds = st.integers(0, 2**20)


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_meaning_of_a_linear_operator_at_every_time(name: str, depth: int) -> None:
    @examples(0.5)
    @given(histories(depth), workers, seeds)
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        operator = UNARY[name]
        check_at_times(operator.build, operator.plain, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def _refused(build: Callable[[Collection], object], error: type[Exception]) -> str:
    """What a user is told who writes `build` over a collection (k: int, v: int, name: string)."""
    with pytest.raises(error) as caught:
        build(dd.input(Dataflow("queries"), "numbers", "k: int, v: int, name: string"))
    return str(caught.value)


def test_refused_an_expression_without_a_name() -> None:
    assert "write select(name=" in _refused(lambda c: c.select(col.k + 1), SchemaError)


@pytest.mark.parametrize("call", ["select", "with_columns"])
def test_refused_a_text_that_is_the_name_of_a_column(call: str) -> None:
    """Polars takes it for the column; either may be meant."""
    said = _refused(lambda c: getattr(c, call)(key="k"), SchemaError)
    assert said.startswith(f"{call} (") and "test_selecting.py" in said
    assert "for the column write key=col['k'], for the text key=lit('k')" in said


def test_a_text_that_is_no_column_is_a_text_and_lit_says_one_in_any_case() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", "k: int, v: int, name: string")
    for value, type_ in (("none", "string"), (dd.lit("k"), "string"), (col["k"], "int")):
        assert str(numbers.select(made=value).schema["made"].type) == type_
        assert str(numbers.with_columns(made=value).schema["made"].type) == type_


def test_refused_a_condition_that_is_none() -> None:
    said = _refused(lambda c: c.filter(col.k + 1), ExpressionError)
    assert "needs a condition" in said and "int" in said and "test_selecting.py" in said


def test_refused_what_is_no_function() -> None:
    for build, name in ((lambda c: c.map(5), "map"), (lambda c: c.flat_map(5), "flat_map")):
        said = _refused(build, ExpressionError)
        assert re.fullmatch(name + r"\(5\) \(.*test_selecting.py:\d+\) needs a function\.", said)


def _run_one(
    build: Callable[[Collection], Collection], row: Row, error: type[Exception] = UserFunctionError
) -> Exception:
    """The error, of exactly this class, that one row leads to for as long as it is there.

    With a strict output it ends the dataflow.
    """
    cluster = Cluster(lambda flow: build(dd.input(flow, "numbers", NUMBERS)).output("result"))
    for diff in (1, 0, -1):
        cluster.change("numbers", [(row, diff)])
        cluster.seal()
        cluster.run()
    assert cluster.has_answer("result", 2) and cluster.changes("result") == {}
    assert str(cluster.error("result", 1)).startswith(
        "output 'result' has no answer at epoch 1 since epoch 0: "
    )
    found = cluster.error("result", 0)
    assert type(found) is error
    cluster = Cluster(lambda flow: build(dd.input(flow, "numbers", NUMBERS)).output("result", strict=True))
    cluster.change("numbers", [(row, 1)])
    cluster.seal()
    with pytest.raises(error) as caught:
        cluster.run()
    assert type(caught.value) is error
    # It says the same, but for what else is to be said of an answer that may come again.
    lines = [line for line in str(found).splitlines() if "answers again" not in line]
    assert str(caught.value).splitlines() == lines
    return found


def _reciprocal(record: tuple[int, int]) -> tuple[int, int]:
    k, v = record
    return (k, 1 // v)


def test_refused_to_select_nothing() -> None:
    rows = dd.input(Dataflow("queries"), "rows", "k: int")
    for nothing in ((), ([],)):
        with pytest.raises(
            SchemaError, match=r"a collection has one column at least.* write select\(one=1\)"
        ):
            rows.select(*nothing)
    assert rows.select(one=1).schema.names == ("one",)


def test_refused_a_function_that_raises_names_record_operator_and_line() -> None:
    for build in (
        lambda c: c.map(_reciprocal),
        lambda c: c.distinct().map(_reciprocal),
        lambda c: c.flat_map(lambda r: [_reciprocal(r)]),
        lambda c: c.filter(lambda r: _reciprocal(r)[1] > 0),
        lambda c: c.where(col.k > 0, lambda r: _reciprocal(r)[1] > 0),
    ):
        error = _run_one(build, (7, 0))
        assert "failed on k=7, v=0:" in str(error), error
        assert "ZeroDivisionError" in str(error) and "test_selecting.py:" in str(error)
        assert "line 3 of _reciprocal" in str(error)


def test_refused_a_result_that_does_not_fit_its_columns() -> None:
    wrong_type = str(_run_one(lambda c: c.map(lambda r: (r.k, "text")), (7, 0)))
    assert "map(" in wrong_type and "'text'" in wrong_type, wrong_type
    too_long = str(_run_one(lambda c: c.map(lambda r: (1, 2, 3)), (7, 0)))
    assert "(1, 2, 3)" in too_long and "k: int, v: int" in too_long, too_long


def test_refused_a_function_that_gives_no_condition() -> None:
    said = str(_run_one(lambda c: c.filter(lambda r: r.v), (7, 3)))
    assert "filter(" in said and "failed on Record(k=7, v=3)" in said and "test_selecting.py:" in said
    assert "it gave 3; a condition is True, or False or None" in said


def test_refused_a_division_by_zero_in_an_expression() -> None:
    error = _run_one(lambda c: c.select(k=col.k, v=col.k // col.v), (7, 0), RowError)
    assert "col.k // col.v" in str(error) and "in the row with k=7, v=0" in str(error)


def test_spellings_of_others_are_the_same_nodes() -> None:
    c = dd.input(Dataflow("queries"), "numbers", "k: int?, v: int")
    same = [
        (c.select("k", "v"), [c.select("*"), c.select(["k", "v"]), c.select(["k"], col.v)]),
        (c.select("k", w=col.v), [c.rename({"v": "w"}), c.rename(v="w"), c.withColumnRenamed("v", "w")]),
        (c.select("v"), [c.drop("k"), c.drop(["k"]), c.drop(col.k)]),
        (
            c.filter(col.k.is_not_null()),
            [
                c.drop_nulls(),
                c.dropna(),
                c.drop_nulls("k"),
                c.drop_nulls(["k", "v"]),
                c.drop_nulls("k", "v"),
                c.drop_nulls(col.k, subset="v"),
                c.dropna(subset=["k", "v"]),
            ],
        ),
        (c.filter(col.k > 1), [c.where(col.k > 1)]),
        (c.filter(col.k > 1).filter(col.v > 1), [c.filter(col.k > 1, col.v > 1)]),
        (c.with_columns(w=col.v + 1), [c.withColumn("w", col.v + 1), c.withColumns({"w": col.v + 1})]),
        (c.distinct(), [c.pipe(lambda x: x.distinct()), c.transform(lambda x: x.distinct())]),
        (c, [c.drop_nulls("v"), c.drop(), c.fill_null("none"), c.fill_null(0, "v")]),
        (
            c.with_columns(k=col.k.fill_null(0)),
            [c.fill_null(0), c.fillna(0), c.fill_null({"k": 0}), c.fillna(0, subset=["k", "v"])],
        ),
    ]
    for one, others in same:
        assert all(other.node is one.node for other in others), one


def test_fill_null_fills_what_holds_the_value_and_says_so_in_the_types() -> None:
    columns = "k: int?, x: float?, d: decimal(4, 2)?, s: string?, b: bool?, n: int"
    c = dd.input(Dataflow("queries"), "given", columns)
    assert str(c.fill_null(0).schema) == "k: int, x: float, d: decimal(4, 2), s: string?, b: bool?, n: int"
    assert (
        str(c.fill_null(0.5).schema) == "k: int?, x: float, d: decimal(4, 2)?, s: string?, b: bool?, n: int"
    )
    assert str(c.fill_null("").schema) == "k: int?, x: float?, d: decimal(4, 2)?, s: string, b: bool?, n: int"
    assert str(c.fill_null({"b": False, "k": col.n}).select("b", "k").schema) == "b: bool, k: int"
    with pytest.raises(ExpressionError, match="takes values of one type"):
        c.fill_null("", "k")


def test_filters_say_in_the_types_which_columns_are_never_null() -> None:
    c = dd.input(Dataflow("queries"), "numbers", "k: int?, v: int?, name: string?, n: int")
    assert str(c.filter(col.k > 1).schema) == "k: int, v: int?, name: string?, n: int"
    assert str(c.filter((col.k > 1) | (col.v > 1)).schema) == str(c.schema)
    assert (
        str(c.filter(col.k < col.v, col.name.is_not_null()).schema) == "k: int, v: int, name: string, n: int"
    )
    assert str(c.drop_nulls("name").schema) == "k: int?, v: int?, name: string, n: int"
    assert str(c.filter(lambda r: r.k > 1).schema) == str(c.schema)
    assert c.filter(col.n > 1).node.kind == "filter", "where nothing is known by it, nothing is said"


@pytest.mark.parametrize("workers", [1, 2])
def test_filters_rows_go_on_without_the_words_of_nulls(workers: int) -> None:
    """Into what keeps them, what only takes columns without nulls, and functions of the user."""

    def build(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int?, t: string?, x: float?, n: int?")
        some = rows.filter(col.n >= 0, col.t.is_not_null() & (col.k < 10))
        some.repeat(col.n).select("k", "t", "x").output("repeated")
        some.group_by("t").agg(k=dd.max("k"), n=dd.sum("n"), x=dd.sum("x")).output("sums")
        some.map(lambda r: (r.t, r.n + 1), "t: string, n: int").output("mapped")
        some.join(rows.select(k2=col.n, t2=col.t), on={"k": "k2"}).select("k", "t2").output("joined")
        some.filter(col.x > 0).negate().filter(col.n < 5).select("x", "t").negate().output("x")
        good, _ = rows.attempt(lambda c: c.filter(6 // col.n > 0).select(h=col.n * 2))
        good.output("good")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        given = [
            (1, "a", None, 2),
            (1, "a", 0.5, 0),
            (None, "a", 1.0, 1),
            (2, None, 1.0, 1),
            (1, "b", -1.0, 1),
        ]
        flow.input("rows").insert([*given, (3, "c", 2.0, None)])
        flow.wait(flow.seal())

        def found(name: str) -> list[tuple[object, ...]]:
            table = flow.output(name).snapshot()
            table.validate(full=True)
            return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)

        assert found("repeated") == [(1, "a", None), (1, "a", None), (1, "b", -1.0)]
        assert found("sums") == [("a", 1, 2, 0.5), ("b", 1, 1, -1.0)]
        flow.input("rows").remove([given[0]])
        flow.wait(flow.seal())
        assert found("sums") == [("a", 1, 0, 0.5), ("b", 1, 1, -1.0)]
        assert found("mapped") == [("a", 1), ("b", 2)]
        assert found("joined") == [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (1, None), (1, None)]
        assert found("x") == [(0.5, "a")]
        assert found("good") == [(2,)] * 3
        assert flow.output("x").snapshot().schema.field("x").nullable is False


def test_refused_columns_that_are_not_there_or_twice() -> None:
    assert "nothing would be left" in _refused(lambda c: c.drop("k", "v", "name"), SchemaError)
    assert "no column 'x'" in _refused(lambda c: c.drop("x"), SchemaError)
    assert "no column 'x'" in _refused(lambda c: c.rename(x="y"), SchemaError)
    assert "two columns would be called 'v'" in _refused(lambda c: c.rename(k="v"), SchemaError)


def test_with_columns_keeps_the_others_and_puts_new_ones_last() -> None:
    def build(flow: timely.Dataflow) -> None:
        numbers = dd.input(flow, "numbers", "n: int, twice: int")
        numbers.with_columns(twice=col.n * 2, next=col.n + 1).output("more")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("numbers").insert([(1, 0), (5, 0)])
        flow.seal()
        rows = flow.output("more").snapshot().to_pylist()
    assert rows == [{"n": 1, "twice": 2, "next": 2}, {"n": 5, "twice": 10, "next": 6}]


def test_spellings_an_alias_names_a_column_and_is_its_expression_elsewhere() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", "k: int, v: int, name: string")
    named = numbers.select("k", (col.v + 1).alias("more"))
    assert named.node.digest == numbers.select("k", more=col.v + 1).node.digest
    added = numbers.with_columns((col.v + 1).alias("more"))
    assert added.node.digest == numbers.with_columns(more=col.v + 1).node.digest
    assert (1 + col.k).equals(1 + dd.coalesce(col.k.alias("w")))
    with pytest.raises(SchemaError, match="needs a name"):
        numbers.with_columns(col.v + 1)  # type: ignore[arg-type]  # that is the point
