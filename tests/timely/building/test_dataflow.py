"""Building: what is refused, with the line that built it, and what is allowed.

names_*    of inputs and outputs
feeds_*    what a stage may take
frozen_*   nothing is added after the end
"""

from __future__ import annotations

import pytest

from timely import Dataflow, GraphError, Vertex


def test_names_of_inputs_and_outputs_are_taken_once() -> None:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    dataflow.output("out", numbers)
    with pytest.raises(GraphError, match="already has an input 'numbers'"):
        dataflow.input("numbers")
    with pytest.raises(GraphError, match="already has an output 'out'"):
        dataflow.output("out", numbers)


def test_names_of_outputs_are_for_streams_outside_of_loops() -> None:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    loop = dataflow.loop("loop")
    with pytest.raises(GraphError, match="output 'out' is inside 'flow / loop': leave the loop first"):
        dataflow.output("out", loop.enter(numbers))


def test_feeds_come_from_the_same_dataflow() -> None:
    stream = Dataflow().input("numbers")
    with pytest.raises(GraphError, match=rf"'mix' takes a stream of another dataflow \({__file__}:"):
        Dataflow().stage("mix", Vertex, [stream.feed()])


def test_feeds_come_from_one_scope() -> None:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    inside = dataflow.loop("loop").enter(numbers)
    with pytest.raises(GraphError, match="enter or leave the loop explicitly"):
        dataflow.stage("mix", Vertex, [numbers.feed(0), inside.feed(1)])


def test_feeds_leave_no_input_unconnected() -> None:
    numbers = Dataflow().input("numbers")
    with pytest.raises(GraphError, match="input 0 of stage 'second' is not connected"):
        numbers.dataflow.stage("second", Vertex, [numbers.feed(1)])
    with pytest.raises(GraphError, match="stage 'none' has no input"):
        numbers.dataflow.stage("none", Vertex, [])


@pytest.mark.parametrize("port", [-1, True, "0", 1.0, None])
def test_feeds_are_of_inputs_that_are_numbered(port: int) -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with pytest.raises(
        GraphError,
        match=r"^stage 'adds': the port of a feed \(.*test_dataflow.py:\d+\) is a whole number from 0 to",
    ):
        dataflow.stage("adds", Vertex, [numbers.feed(), numbers.feed(port)])


def test_feeds_of_one_input_may_be_several_and_outputs_as_many_as_asked_for() -> None:
    dataflow = Dataflow()
    one, two = dataflow.input("one"), dataflow.input("two")
    outputs = dataflow.stage("merge", Vertex, [one.feed(0), two.feed(0)], outputs=3)
    assert [stream.output for stream in outputs] == [0, 1, 2]
    assert dataflow.stages[-1].inputs == 1


def test_frozen_dataflows_take_nothing_more() -> None:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    assert dataflow.freeze() is dataflow.freeze()
    with pytest.raises(GraphError, match="'flow' is frozen; stage 'late' came too late"):
        numbers.stage("late", Vertex)


@pytest.mark.parametrize("name", [3, None, "", True])
def test_inputs_and_outputs_have_names_that_clients_can_ask_for(name: object) -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with pytest.raises(GraphError, match=r"test_dataflow\.py:\d+\): the name of an output is a text"):
        dataflow.output(name, numbers)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="the name of an input is a text, such as 'rows'"):
        dataflow.input(name)  # type: ignore[arg-type]
    assert list(dataflow.inputs) == ["numbers"] and not dataflow.outputs


@pytest.mark.parametrize(
    ("vertex", "message"),
    [
        (Vertex(), r"not a Vertex: Vertex, or lambda: Vertex\(…\)"),
        ("Vertex", r"not a str: MyVertex, not MyVertex\(\)"),
    ],
)
def test_vertices_are_made_by_each_worker(vertex: object, message: str) -> None:
    numbers = Dataflow().input("numbers")
    with pytest.raises(GraphError, match=rf"stage 'one' \({__file__}:\d+\): each worker .*{message}"):
        numbers.stage("one", vertex)  # type: ignore[arg-type]


def test_feeds_are_a_list_of_feeds() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    for feeds, message in [
        (numbers, r"not a Stream. Write \[stream.feed\(\)\]"),
        (numbers.feed(), r"not a Feed. Write \[stream.feed\(…\)\]"),
        ([numbers.feed(), numbers], r"has a Stream at place 1, .* Write stream.feed\(1\) for input 1"),
    ]:
        with pytest.raises(GraphError, match=message):
            dataflow.stage("one", Vertex, feeds)  # type: ignore[arg-type]


def test_an_output_is_one_stream_of_a_stage() -> None:
    dataflow = Dataflow()
    outputs = dataflow.stage("one", Vertex, [dataflow.input("numbers").feed()])
    with pytest.raises(GraphError, match=r"Write \(stream,\) = dataflow.stage\(…\)"):
        dataflow.output("out", outputs)  # type: ignore[arg-type]
