"""Queries as functions of collections: what becomes of them, and which query is which.

built_*      inputs by name, answers by name
refused_*    parameters that are no inputs, answers that are no collections
same_*       the identity of a query
"""

from __future__ import annotations

from typing import cast

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.plan.building import Plan
from differential.plan.installing import BUILDER, travelling_form
from differential.queries import again, as_builder, described
from timely.errors import GraphError, MisuseError

EDGES = {"edges": "src: int, dst: int"}


def targets(edges: Collection) -> Collection:
    return edges.select(node=col.dst).distinct()


def both(edges: Collection, roots: Collection) -> dict[str, Collection]:
    return {"targets": targets(edges), "known": roots.join(edges, on={"node": "src"})}


def dataflow_of(build: object) -> timely.Dataflow:
    assert callable(build)
    dataflow = timely.Dataflow("shown")
    build(dataflow)
    return dataflow


def test_built_function_is_called_with_its_inputs_and_answers_result() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(as_builder(targets, EDGES))
        flow.input("edges").insert([(1, 2), (3, 2)])
        flow.seal()
        assert flow.output("result").snapshot().to_pylist() == [{"node": 2}]
    assert as_builder(targets, EDGES).__name__ == "targets"
    assert as_builder(lambda edges: edges, EDGES).__name__ == "query"


def test_built_dict_names_its_outputs() -> None:
    told = described(dataflow_of(as_builder(both, {**EDGES, "roots": "node: int?"})))
    assert {name: schema.names for name, schema in told.inputs.items()} == {
        "edges": ["src", "dst"],
        "roots": ["node"],
    }
    assert {name: schema.names for name, schema in told.outputs.items()} == {
        "targets": ["node"],
        "known": ["node", "dst"],
    }
    assert told.inputs["roots"].field("node").nullable and not told.inputs["edges"].field("src").nullable


def test_built_again_of_collections_that_are_written_already() -> None:
    dataflow = timely.Dataflow("written")
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    unread = dd.input(dataflow, "unread", "x: int")
    assert unread is not None
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(again({"targets": targets(edges), "rows": edges.map(lambda row: row)}))
        flow.input("unread").insert([(1,)])
        flow.input("edges").insert([(1, 2)])
        flow.seal()
        assert flow.output("targets").snapshot().to_pylist() == [{"node": 2}]
        assert flow.output("rows").snapshot().num_rows == 1


def test_built_again_it_can_be_sent_to_workers_functions_and_all() -> None:
    edges = dd.input(timely.Dataflow("written"), "edges", "src: int, dst: int")
    scale = 3
    written = timely.Dataflow("again")
    again(edges.map(lambda row: (row.src * scale, row.dst)))(written)
    (plan,) = written.descriptions
    builder, arguments = travelling_form(cast("Plan", plan))
    assert builder == BUILDER and b"row.src * scale" in arguments["plan"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda lines: lines, "does not fit the inputs edges: .*'lines'.* called as the inputs are"),
        (lambda edges, roots: edges, "does not fit the inputs edges: .*'roots'"),
        (3, r"a query is a function of its inputs, not a int: def query\(edges\)"),
    ],
)
def test_refused_parameters_that_are_no_inputs(query: object, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        as_builder(query, EDGES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "shown"), [(None, "nothing"), ([1], "a list"), ({}, "a dict"), ({"a": 1}, "a dict")]
)
def test_refused_answers_that_are_no_collections(answer: object, shown: str) -> None:
    with pytest.raises(MisuseError, match=f"returns {shown}: return a collection, a tuple"):
        dataflow_of(as_builder(lambda edges: answer, EDGES))


@pytest.mark.parametrize("name", [1, None, "\ud800", ""])
def test_refused_names_of_outputs_and_inputs_that_are_no_texts(name: str) -> None:
    """1 and "1" would be one output: the other answer would be lost, and nobody told."""
    message = "the name of an output is a text"
    with pytest.raises(GraphError, match=message):
        dataflow_of(as_builder(lambda edges: {name: edges, "1": targets(edges)}, EDGES))
    with pytest.raises(GraphError, match=message):
        again({name: dd.input(timely.Dataflow("written"), "edges", EDGES["edges"])})
    rows = dd.input(timely.Dataflow("written"), "edges", EDGES["edges"])
    for call in (rows.output, rows.export):
        with pytest.raises(GraphError, match="the name of an (output|export) is a text"):
            call(name)
    with pytest.raises(GraphError, match="the name of an input is a text"):
        as_builder(targets, {name: EDGES["edges"]})


def test_refused_collections_of_another_dataflow() -> None:
    """Its output would be lost, and nobody told."""
    foreign = dd.input(timely.Dataflow("foreign"), "edges", EDGES["edges"])
    message = "output 'result_1' of '.*' is a collection of another dataflow, 'foreign'"
    with pytest.raises(GraphError, match=message):
        dataflow_of(as_builder(lambda edges: (edges, foreign), EDGES))
    with timely.connect(embedded=True) as cluster, pytest.raises(GraphError, match=message):
        cluster.install(lambda dataflow: (dd.input(dataflow, "edges", EDGES["edges"]), foreign))


def test_same_query_is_told_from_others_and_not_by_its_lines() -> None:
    def elsewhere(edges: Collection) -> Collection:
        return edges.select(node=col.dst).distinct()

    identity = described(dataflow_of(as_builder(targets, EDGES))).identity
    assert described(dataflow_of(as_builder(elsewhere, EDGES))).identity == identity
    assert described(dataflow_of(as_builder(lambda edges: edges, EDGES))).identity != identity
    nullable = {"edges": "src: int, dst: int?"}
    assert described(dataflow_of(as_builder(targets, nullable))).identity != identity
