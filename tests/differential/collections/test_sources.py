"""sources.py: inputs and streams as collections; imports are tested in `tests/processes/queries/`.

same_*      asked for twice
refused_*   what a user may do wrong, and what he is told
streams_*   from collections to streams and back
durable_*   which epochs are kept
constant_*  rows that are part of the query
checked_*   a removal of what is not there may be an error, on several workers as on one
"""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from reference.dataflow import Cluster

import differential as dd
import timely
from differential import col, lit
from differential.errors import NotEmptyError, SchemaError
from differential.plan.building import Plan
from differential.plan.durable.rules import plan_facts
from differential.plan.installing import travelling_form
from progress.errors import GraphError
from timely.building.dataflow import Dataflow
from timely.running import core


def test_refused_columns_that_tables_of_changes_use() -> None:
    for name in ("diff", "epoch"):
        with pytest.raises(SchemaError, match=f"input 'numbers': a column cannot be called '{name}'"):
            dd.input(Dataflow("queries"), "numbers", f"k: int, {name}: int")


def test_refused_a_collection_without_columns_wherever_one_begins() -> None:
    """Its rows would be lost between Python, Arrow and the rules: they are a number of nothing."""
    told = "has one column at least. .* write 'one: int'"
    flow = Dataflow("queries")
    for declare in (dd.input, dd.checked_input):
        with pytest.raises(SchemaError, match=f"input 'ticks': a collection {told}"):
            declare(flow, "ticks", "")
    with pytest.raises(SchemaError, match=f"import ticks of owner: a collection {told}"):
        dd.imported(flow, "owner", "ticks", {})
    ticks = dd.input(flow, "ticks", "one: int")  # nothing of what was refused is left
    for refused in (
        lambda: ticks.map(lambda row: (), ""),
        lambda: ticks.flat_map(lambda row: [()], ""),
        lambda: ticks.map_batches(lambda batch: batch, ""),
        lambda: ticks.group_by().reduce(lambda key, rows: [()], ""),
    ):
        with pytest.raises(SchemaError, match=told):
            refused()


def test_refused_two_inputs_of_one_name() -> None:
    flow = Dataflow("queries")
    dd.input(flow, "numbers", "k: int")
    with pytest.raises(GraphError, match="numbers"):
        dd.input(flow, "numbers", "k: int")


def test_same_import_asked_for_twice_is_one() -> None:
    flow = Dataflow("queries")
    first = dd.imported(flow, "owner", "answers", "k: int")
    assert dd.imported(flow, "owner", "answers", "k: int").node is first.node
    assert dd.imported(flow, "owner", "others", "k: int").node is not first.node


def test_refused_modes_without_a_key_and_keys_without_a_mode() -> None:
    for wanted in ({"mode": "upsert"}, {"key": "k"}, {"key": "k", "mode": "latest"}):
        with pytest.raises(SchemaError, match="mode='upsert'"):
            dd.input(Dataflow("queries"), "numbers", "k: int, v: int", **wanted)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="'missing'"):
        dd.input(Dataflow("queries"), "numbers", "k: int", key="missing", mode="upsert")
    with pytest.raises(SchemaError, match="twice"):
        dd.input(Dataflow("queries"), "numbers", "k: int", key=("k", "k"), mode="upsert")


def test_same_columns_in_the_same_order_come_out_of_an_input_by_key() -> None:
    values = dd.input(Dataflow("queries"), "values", "v: int, k: int", key="k", mode="upsert")
    assert values.schema.names == ("v", "k")
    rows, refused = dd.checked_input(Dataflow("queries"), "rows", "v: int, k: int")
    assert rows.schema == refused.schema == values.schema


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_checked_a_removal_of_what_is_not_there_leaves_no_answer_until_it_is_mended(workers: int) -> None:
    def build(flow: Dataflow) -> None:
        rows, refused = dd.checked_input(flow, "items", "sku: string", refusal="error")
        rows.output("rows")
        assert refused.schema == rows.schema

    cluster = Cluster(build, workers)
    cluster.change("items", [(("pen",), 2)])
    cluster.seal()
    cluster.run()
    cluster.change("items", [(("ink",), -1)], worker=workers - 1)
    cluster.change("items", [(("ink",), 1), (("pen",), -1)])
    cluster.seal()
    cluster.run()
    assert cluster.snapshot("rows") == {("pen",): 1}, "what one epoch says of a row counts together"
    cluster.change("items", [(("pen",), -2), (("ink",), 3)], worker=workers - 1)
    cluster.seal()
    cluster.run()
    error = cluster.error("rows")
    assert type(error) is NotEmptyError
    assert re.match(
        r"output 'rows' has no answer at epoch 2: input 'items' \(.*test_sources.py:\d+\): that what is "
        r"removed is there does not hold, for there is the row sku='pen'\.$", str(error), re.M
    ), error  # fmt: skip
    with pytest.raises(NotEmptyError):
        cluster.snapshot("rows")
    assert cluster.changes("rows") == {(0,): {("pen",): 2}, (1,): {("pen",): -1}}, "nobody sees that epoch"
    cluster.change("items", [(("pen",), 1)])
    cluster.seal()
    cluster.run()
    assert not cluster.has_answer("rows", 2), "it stays as it was"


def test_checked_nobody_sees_rows_of_an_epoch_in_which_something_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client may come between any two turns, and an output with few rows needs none to be complete."""

    def build(flow: Dataflow) -> None:
        rows, _ = dd.checked_input(flow, "items", "sku: string", refusal="error")
        rows.output("rows")
        rows.output("strict", strict=True)

    monkeypatch.setattr(core, "ACTIVATIONS_PER_STEP_MAX", 1)
    cluster = Cluster(build, 1)
    cluster.change("items", [(("pen",), 2)])
    cluster.seal()
    cluster.run()
    (instance,) = cluster.instances
    assert instance.output("rows").complete_before == instance.output("strict").complete_before == 1
    cluster.change("items", [(("pen",), -3)])
    cluster.seal()
    with pytest.raises(NotEmptyError):
        for _ in range(100):
            instance._owner.step()  # type: ignore[attr-defined]
            assert instance.output("strict").complete_before == 1
            rows = instance.output("rows")
            assert rows.complete_before == 1 or not cluster.has_answer("rows", 1)


def test_refused_a_refusal_that_is_none() -> None:
    with pytest.raises(SchemaError, match="'row' or 'error', not 'raise'"):
        dd.checked_input(Dataflow("queries"), "rows", "v: int", refusal="raise")  # type: ignore[arg-type]


def test_refused_an_input_of_no_dataflow_says_how_it_is_written() -> None:
    with pytest.raises(
        SchemaError, match="Write instead: input.flow, 'orders', 'customer: string, cents: int'"
    ):
        dd.input("orders", "customer: string")  # type: ignore[call-arg, arg-type]


EDGES = "a: int, b: int"


def closure_by_hand(flow: timely.Dataflow) -> None:
    """The closure of edges, in a loop by hand between streams, and by `iterate`."""
    edges = dd.input(flow, "edges", EDGES)
    with flow.loop("closure") as loop:
        back = loop.feedback()
        entered = loop.enter(edges.stream())
        start = dd.collection(entered, EDGES)
        known = dd.collection(entered.concat(back.stream), EDGES)
        longer = known.join(edges.select(b=col.a, to=col.b), on="b").select("a", b=col.to)
        paths = longer.concat(edges).distinct()
        back.connect(paths.concat(start.negate()).consolidate().stream())
        outside = loop.leave(paths.stream())
    dd.collection(outside, EDGES).output("by hand")
    edges.iterate(
        lambda known: (
            known.join(edges.select(b=col.a, to=col.b), on="b").select("a", b=col.to).concat(edges).distinct()
        )
    ).output("iterated")


@pytest.mark.parametrize("workers", [1, 2])
def test_streams_in_a_loop_by_hand_keep_their_iterations(workers: int) -> None:
    rng = random.Random(workers)
    cluster = Cluster(closure_by_hand, workers, seed=workers)
    there: list[tuple[int, int]] = []
    for _ in range(5):
        new = [(rng.randrange(6), rng.randrange(6)) for _ in range(4)]
        old = [there.pop(rng.randrange(len(there))) for _ in range(len(there) // 3)]
        there += new
        cluster.change("edges", [*((row, 1) for row in new), *((row, -1) for row in old)])
        cluster.seal()
    cluster.run()
    assert cluster.changes("by hand") == cluster.changes("iterated") != {}


def test_streams_of_one_loop_meet_whichever_way_they_became_collections() -> None:
    flow = timely.Dataflow("tested")
    numbers = flow.input("numbers")
    with flow.loop("loop") as outer, outer.loop("inner") as inner:
        entered = inner.enter(outer.enter(numbers))
        one = dd.collection(entered, "n: int")
        other = dd.from_stream(flow, entered, "n: int", (outer, inner))
        assert one.place == other.place and one.concat(other).place == (outer, inner)
        assert one.stream().scope is inner.scope


def test_streams_are_shown_by_explain_and_counted_as_something_to_read() -> None:
    flow = timely.Dataflow("tested")
    dd.input(flow, "numbers", "n: int").filter(col.n > 1).stream()
    assert "stream()" in dd.explain(flow) and "written by hand" in dd.explain(flow)
    assert "stream" in [stage.name for stage in flow.freeze().stages]


def test_streams_of_rows_that_an_inspect_sees_are_computed_once() -> None:
    seen: list[object] = []

    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: int")
        looked = rows.distinct().inspect(lambda row, time, diff: seen.append(row))
        dd.collection(looked.filter(col.a > 0).stream(), EDGES).output("out")
        looked.group_by("a").agg(n=dd.count()).output("counts")

    cluster = Cluster(query)
    cluster.change("rows", [((1, 2), 1), ((0, 2), 1)])
    cluster.seal()
    cluster.run()
    assert sorted(seen) == [(0, 2), (1, 2)] and cluster.snapshot("out") == {(1, 2): 1}  # type: ignore[type-var]


def test_streams_of_rows_that_fail_leave_outputs_behind_them_without_an_answer() -> None:
    def query(flow: timely.Dataflow) -> None:
        stream = dd.input(flow, "rows", "a: int").select(x=lit(6) // col.a).stream()
        flow.output("records", stream)
        dd.collection(stream.map(lambda record: record), "x: int").output("rows")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(query)
        flow.input("rows").insert([(0,), (3,)])
        flow.seal()
        for name in ("records", "rows"):
            with pytest.raises(dd.RowError, match="divides by zero"):
                flow.output(name).changes()
        flow.input("rows").remove([(0,)])
        flow.seal()
        assert flow.output("rows").snapshot().to_pylist() == [{"x": 2}]


def test_refused_streams_that_are_none_and_queries_that_are_sent() -> None:
    flow = timely.Dataflow("tested")
    edges = dd.input(flow, "edges", EDGES)
    for odd, why in ((edges, "is a collection already"), ([1], "is no stream"), (flow, "is no stream")):
        with pytest.raises(dd.SchemaError, match=rf"dd.collection\(stream, schema\) .*{why}"):
            dd.collection(odd, EDGES)  # type: ignore[arg-type]
    with pytest.raises(dd.SchemaError, match="column"):
        dd.collection(flow.input("none"), "")
    edges.stream()
    with pytest.raises(timely.MisuseError, match="stages that were written by hand .*by name"):
        travelling_form(Plan.of(flow))


def test_durable_all_epochs_of_inputs_are_kept_for_stages_by_hand() -> None:
    flow = timely.Dataflow("tested")
    rows, others = (dd.input(flow, name, EDGES) for name in ("rows", "others"))
    dd.collection(rows.filter(col.a > 1).stream(), EDGES).output("out")
    others.output("others")
    flow.freeze()
    facts = {each.name: each for each in plan_facts(Plan.of(flow)).inputs}
    assert not facts["rows"].sums and facts["others"].sums
    assert "stream() (" in facts["rows"].why and "the changes of each epoch" in facts["rows"].why


# Constants.

COUNTRIES = [("PT", "Portugal"), ("ES", "España"), ("PT", "Portugal"), ("??", None)]


@pytest.mark.parametrize("workers, embedded", [(1, True), (3, True), (2, False)])
def test_constant_rows_are_there_once_each_whatever_comes_in(workers: int, embedded: bool) -> None:
    def named(flow: timely.Dataflow) -> None:
        countries = dd.constant(flow, COUNTRIES, "code: string, name: string?")
        countries.output("countries")
        orders = dd.input(flow, "orders", "code: string, cents: int")
        orders.join(countries.distinct(), on="code").output("named")

    with timely.connect(workers=workers, embedded=embedded) as cluster:
        flow = cluster.install(named)
        flow.seal(wait=True)
        assert sorted(map(str, flow.output("countries").snapshot().to_pylist())) == sorted(
            str({"code": code, "name": name}) for code, name in COUNTRIES
        )
        flow.input("orders").insert([("ES", 5), ("FR", 6)])
        flow.seal(wait=True)
        assert flow.output("named").snapshot().to_pylist() == [{"code": "ES", "cents": 5, "name": "España"}]
        assert flow.output("countries").changes(start=1, stop=2).num_rows == 0


def test_constant_tables_have_their_columns_and_every_type_comes_back() -> None:
    table = pa.table(
        {
            "n": pa.array([1, None]),
            "x": pa.array([0.5, float("nan")]),
            "t": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "d": pa.array([Decimal("1.50"), Decimal("2.00")]),
            "b": pa.array([b"a", None]),
        }
    )
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda flow: dd.constant(flow, table).output("out"))
        out = flow.output("out").snapshot().sort_by("t")
        assert str(out.to_pylist()) == str(table.to_pylist())


def test_constant_in_a_loop_and_again_from_a_store(tmp_path: Path) -> None:
    def reached(flow: timely.Dataflow) -> None:
        edges = dd.constant(flow, [(1, 2), (2, 3), (3, 1), (4, 5)], "src: int, dst: int")
        roots = dd.input(flow, "roots", "node: int")
        roots.iterate(
            lambda r: r.join(edges, on={"node": "src"}).select(node=col.dst).concat(roots).distinct()
        ).output("reached")

    for sealed in range(3):
        with timely.connect(
            workers=1 + sealed % 2, embedded=True, durable=tmp_path, sync="system"
        ) as cluster:
            flow = cluster.install(reached)
            if not sealed:
                flow.input("roots").insert([(1,)])
            flow.seal(wait=True)
            nodes = sorted(row["node"] for row in flow.output("reached").snapshot().to_pylist())
            assert nodes == [1, 2, 3]


@pytest.mark.parametrize(
    "rows, schema, said",
    [
        ([(1,)], None, "write the columns of these rows behind them"),
        ([(1, 2)], "a: int", "row 0"),
        ([("x",)], "a: int", "'a'"),
        ([(None,)], "a: int", "'a'.*null"),
        ([(1,)], "", "one column at least"),
        ([("x" * 2_000_000,)], "a: string", "may have 1,048,576 in one constant. Declare an input"),
    ],
)
def test_constant_refused_with_the_line(rows: object, schema: str | None, said: str) -> None:
    with pytest.raises(SchemaError, match=f"(?s){said}") as error:
        dd.constant(Dataflow("queries"), rows, schema)
    assert "test_sources.py:" in str(error.value) or "one column" in str(error.value)
