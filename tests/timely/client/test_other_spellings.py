"""What other libraries call it is told what flows, inputs and outputs call it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import differential as dd
import timely
from timely.client.other_spellings import OF_FLOWS, OF_INPUTS, OF_OUTPUTS
from timely.client.session import Flow


def passing(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "in", "a: int").output("out")


@pytest.fixture
def flow() -> Iterator[Flow]:
    with timely.connect(workers=1, embedded=True) as cluster:
        yield cluster.install(passing)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("commit", "Write instead: seal()"),
        ("advance_to", "seal(through=epoch)"),
        ("insert", "input('name').insert(rows)"),
        ("snapshot", "output('name').snapshot()"),
        ("stop", "uninstall()"),
    ],
)
def test_flows_say_what_to_write(flow: Flow, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"a flow has no '{name}'") as caught:
        getattr(flow, name)
    assert said in str(caught.value)


def test_an_output_and_an_input_are_no_attributes_of_a_flow_but_named_as_what_they_are(flow: Flow) -> None:
    with pytest.raises(AttributeError, match=r"no 'out': it is an output; write output\('out'\)$"):
        getattr(flow, "out")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no 'in': it is an input; write input\('in'\)$"):
        getattr(flow, "in")
    with pytest.raises(AttributeError, match="a flow has no 'name'$"):
        Flow.__new__(Flow).name  # noqa: B018


def test_inputs_and_outputs_say_what_to_write(flow: Flow) -> None:
    for name in ("to_pandas", "collect", "read"):
        with pytest.raises(AttributeError, match=rf"output .* no '{name}'. Write instead: snapshot\(\)"):
            getattr(flow.output("out"), name)
    with pytest.raises(AttributeError, match=r"input .* no 'send'. Write instead: insert\(rows\)"):
        getattr(flow.input("in"), "send")  # noqa: B009
    for each in (flow, flow.input("in"), flow.output("out")):
        with pytest.raises(AttributeError, match="no 'nonsense'$"):
            getattr(each, "nonsense")  # noqa: B009


def test_no_spelling_is_the_name_of_something_that_is_there(flow: Flow) -> None:
    for each, spellings in (
        (flow, OF_FLOWS),
        (flow.input("in"), OF_INPUTS),
        (flow.output("out"), OF_OUTPUTS),
    ):
        assert not set(spellings) & set(dir(each))
