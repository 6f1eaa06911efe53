"""What `install` and `replace` take as a query; `timely.spark.run` takes the same, in tests/spark/jobs.

form_*      each form, in this process and on a worker in another one
refused_*   what is no query, and inputs that do not fit
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from query_forms import FORMS, INPUTS, OUTPUTS, ROWS, WANTED, edges_of

import differential as dd
import timely
from differential import Collection, col
from timely.errors import MisuseError
from timely.operators.vertex import Vertex


@pytest.fixture(scope="module", params=["embedded", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    """One worker, here and elsewhere."""
    with timely.connect(workers=1, embedded=request.param == "embedded") as made:
        yield made


def declares(form: str) -> bool:
    """Whether a form declares its inputs itself."""
    return "written" in form or form.startswith("of_a_dataflow") or form in ("marked", "by name")


@pytest.mark.parametrize("form", FORMS)
def test_form_is_installed_with_its_outputs(form: str, cluster: timely.Cluster) -> None:
    given = {} if declares(form) else {"inputs": INPUTS}
    flow = cluster.install(FORMS[form](), **given)  # type: ignore[arg-type]
    assert sorted(flow.outputs) == sorted(OUTPUTS[form])
    flow.input("edges").insert(ROWS)
    flow.seal()
    for name, rows in zip(OUTPUTS[form], WANTED, strict=False):
        assert flow.output(name).snapshot().to_pylist() == rows
    flow.uninstall()


def test_form_of_collections_may_have_arguments(cluster: timely.Cluster) -> None:
    def above(edges: Collection, least: int) -> Collection:
        return edges.filter(col.src > least)

    flow = cluster.install(above, inputs=INPUTS, least=1)
    assert flow.name == "above" and flow.outputs == ["result"]
    flow.uninstall()


def test_form_of_a_new_version(cluster: timely.Cluster) -> None:
    def kept(edges: Collection) -> Collection:
        edges.export("edges")
        return edges.distinct()

    flow = cluster.install(kept, inputs=INPUTS)
    flow.input("edges").insert(ROWS)
    flow.seal()
    later = cluster.replace(flow, lambda edges: edges.filter(col.src > 1), inputs=INPUTS)
    later.seal(wait=True)
    assert later.output("result").snapshot().num_rows == 2
    later.uninstall()


def test_form_of_a_builder_that_has_an_argument_called_inputs(cluster: timely.Cluster) -> None:
    def several(dataflow: timely.Dataflow, inputs: int) -> None:
        for number in range(inputs):
            dd.input(dataflow, f"rows{number}", "k: int").output(f"out{number}")

    flow = cluster.install(several, inputs=2)  # type: ignore[arg-type]
    assert flow.outputs == ["out0", "out1"]
    flow.uninstall()


def test_form_of_collections_may_have_an_input_called_inputs(cluster: timely.Cluster) -> None:
    flow = cluster.install(lambda inputs: inputs.distinct(), inputs={"inputs": "k: int"})
    assert (list(flow.inputs), flow.outputs) == (["inputs"], ["result"])
    flow.uninstall()


def test_form_of_a_function_that_does_not_tell_its_parameters(cluster: timely.Cluster) -> None:
    flow = cluster.install(dict, inputs=INPUTS)
    assert flow.outputs == ["edges"]
    flow.uninstall()


def test_form_of_records_may_return_what_it_likes() -> None:
    class Kept(Vertex):
        """Passes records on."""

        def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
            self.send_by(0, message, time)

        def symbols(self, mark: object) -> None:
            """None are kept."""

    def records(dataflow: timely.Dataflow) -> list[object]:
        (out,) = dataflow.stage("kept", Kept, [dataflow.input("in").feed()])
        dataflow.output("out", out)
        return [out, 7]

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(records)
        flow.input("in").insert([1])
        flow.seal()
        assert flow.output("out").changes() == [(0, 1)]  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    ("query", "inputs", "told"),
    [
        (7, None, "install takes a function of a dataflow"),
        ([], None, "install takes a function of a dataflow"),
        (timely.Dataflow("no query"), None, "install takes a function of a dataflow"),
        (lambda edges: edges, "src: int", "takes schemas by name"),
        (lambda edges: edges, {}, "takes schemas by name"),
        (lambda lines: lines, INPUTS, "does not fit the inputs edges"),
        (lambda edges: 7, INPUTS, "return a collection, a tuple of collections, or a dict"),
        (lambda edges: None, INPUTS, r"or name each by collection\.output\('name'\)"),
        (lambda edges: {"a": 7}, INPUTS, "returns a dict"),
        (edges_of(timely.Dataflow("written")), INPUTS, "takes collections that are written already without"),
    ],
)
def test_refused_what_is_no_query(query: object, inputs: object, told: str) -> None:
    with timely.connect(embedded=True) as cluster, pytest.raises(MisuseError, match=told):
        cluster.install(query, inputs=inputs)  # type: ignore[arg-type]


def test_refused_arguments_that_nothing_takes() -> None:
    with timely.connect(embedded=True) as cluster:
        with pytest.raises(MisuseError, match="written already without least: they have their inputs"):
            cluster.install(edges_of(timely.Dataflow("written")), least=1)  # type: ignore[arg-type]
        with pytest.raises(MisuseError, match="install: edges cannot be an input and an argument"):
            cluster.install(lambda edges: edges, inputs=INPUTS, edges=1)
