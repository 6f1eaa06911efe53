"""sources.py: inputs and streams as collections; imports are tested in `tests/processes/queries/`.

same_*      asked for twice
refused_*   what a user may do wrong, and what he is told
checked_*   a removal of what is not there may be an error, on several workers as on one
"""

from __future__ import annotations

import re

import pytest
from reference.dataflow import Cluster

import differential as dd
from differential.errors import NotEmptyError, SchemaError
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
