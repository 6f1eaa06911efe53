"""What has been declared, as `freeze` reads it."""

from __future__ import annotations

from timely import Dataflow, Vertex
from timely.building.declarations import Declarations


def test_a_stage_has_as_many_inputs_as_its_highest_fed_port_says() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    dataflow.stage("both", Vertex, [numbers.feed(1), numbers.feed(0), numbers.feed(1)])
    assert [declared.inputs for declared in dataflow.stages] == [0, 2]


def test_a_dataflow_is_its_declarations_in_the_order_of_writing() -> None:
    dataflow = Dataflow("two", level_bits=[20])
    numbers = dataflow.input("numbers")
    dataflow.probe("watched", numbers)
    dataflow.output("out", numbers)
    assert isinstance(dataflow, Declarations) and dataflow.level_bits == (20,)
    assert [declared.name for declared in dataflow.stages] == ["input numbers", "probe watched", "output out"]
    assert (dataflow.inputs["numbers"].stage, dataflow.probes["watched"]) == (0, 1)
    assert dataflow.outputs["out"].stage == 2


def test_one_without_stages_declares_nothing() -> None:
    empty = Declarations("empty")
    assert not (empty.stages or empty.inputs or empty.outputs or empty.probes)
    assert empty.level_bits is None
