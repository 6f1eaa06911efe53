"""What becomes of a description: ingress, egress and feedback contracted into connectors.

contracted_*    only stages that do something remain
order_*         stages are numbered after their sources
fingerprint_*   equal for what is built alike, different for what is not
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from timely import Batch, Broadcast, Dataflow, GraphError, Records, Vertex


def looping(name: str = "body") -> Dataflow:
    dataflow = Dataflow("flow")
    numbers = dataflow.input("numbers")
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        out, again = dataflow.stage(
            name, Vertex, [loop.enter(numbers).feed(0), back.stream.feed(1)], outputs=2
        )
        back.connect(again)
    dataflow.output("out", loop.leave(out))
    return dataflow


def test_contracted_a_loop_leaves_its_body_and_three_connectors() -> None:
    frozen = looping().freeze()
    assert [stage.name for stage in frozen.stages] == ["input numbers", "body", "output out"]
    code = frozen.codes[1]
    enter, feedback, leave = frozen.connectors
    assert (enter.source, enter.target, enter.port, enter.add, enter.is_identity) == (0, 1, 0, 0, True)
    assert (feedback.source, feedback.target, feedback.port, feedback.add) == (1, 1, 1, code.unit)
    assert (leave.source, leave.target, leave.is_identity) == (1, 2, False)
    word = code.pack((4, 7))
    assert code.unpack((word & feedback.keep) + feedback.add) == (4, 8)
    assert frozen.codes[2].unpack((word & leave.keep) + leave.add) == (4,)


def test_contracted_several_ways_into_a_loop_become_a_connector_each() -> None:
    dataflow = Dataflow()
    one, two = dataflow.input("one"), dataflow.input("two")
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        entered = [loop.enter(stream).feed() for stream in (one, two)]
        (out,) = dataflow.stage("body", Vertex, [*entered, back.stream.feed()])
        back.connect(out)
        back.connect(out)
    assert [(c.source, c.target) for c in dataflow.freeze().connectors] == [(0, 2), (1, 2), (2, 2), (2, 2)]


def test_contracted_transforms_of_a_path_are_run_in_order_and_stop_when_nothing_is_left() -> None:
    def appending(text: str) -> Callable[[Batch], Batch | None]:
        def transform(batch: Batch) -> Batch | None:
            assert isinstance(batch, Records)
            return Records([*batch.records, text]) if text else None

        return transform

    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        (out,) = dataflow.stage(
            "body", Vertex, [loop.enter(numbers).feed(), back.stream.feed(transform=appending("b"))]
        )
        back.connect(out, out.feed(transform=appending("a")))
        nothing = loop.feedback()
        nothing.connect(out, out.feed(transform=appending("")))
        dataflow.stage("never", Vertex, [nothing.stream.feed(transform=appending("x"))])
    feedback, dropped = dataflow.freeze().connectors[1:]
    assert feedback.transform is not None and dropped.transform is not None
    result = feedback.transform(Records(["r"]))
    assert isinstance(result, Records) and result.records == ["r", "a", "b"]
    assert dropped.transform(Records(["r"])) is None


def test_behind_loops_is_what_lies_in_one_or_gets_what_comes_out_of_one() -> None:
    dataflow = Dataflow()
    before = dataflow.input("numbers").stage("before", Vertex)
    beside = before.stage("beside", Vertex)
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        (out,) = dataflow.stage("body", Vertex, [loop.enter(before).feed(), back.stream.feed()])
        back.connect(out)
    (both,) = dataflow.stage("both", Vertex, [beside.feed(), loop.leave(out).feed()])
    dataflow.output("looped", both.stage("then", Vertex))
    dataflow.output("straight", beside)
    frozen = dataflow.freeze()
    names = {frozen.stages[number].name for number in frozen.behind_loops}
    assert names == {"body", "both", "then", "output looped"}


def test_contracted_nothing_at_all_is_refused() -> None:
    with pytest.raises(GraphError, match="is empty"):
        Dataflow("flow").freeze()


def test_fingerprint_is_equal_for_dataflows_built_alike() -> None:
    assert looping().freeze().fingerprint == looping().freeze().fingerprint


def test_fingerprint_tells_names_routes_details_and_layouts_apart() -> None:
    def plain(
        exchange: Broadcast | None = None, detail: str = "", bits: tuple[int, ...] | None = None
    ) -> str:
        dataflow = Dataflow("flow", level_bits=bits)
        dataflow.stage("s", Vertex, [dataflow.input("numbers").feed(route=exchange, detail=detail)])
        return dataflow.freeze().fingerprint

    found = [
        plain(), plain(Broadcast()), plain(detail="filter"), plain(bits=(40,)),
        looping().freeze().fingerprint, looping("other").freeze().fingerprint,
    ]  # fmt: skip
    assert len(set(found)) == len(found)


def test_order_of_stages_has_sources_before_readers_that_were_written_first() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    early = dataflow.open_stage("early", Vertex, dataflow.root, "it waits")
    (reader,) = dataflow.stage("reader", Vertex, [early.feed()])
    (late,) = dataflow.stage("late", Vertex, [numbers.feed()])
    dataflow.add_feed(early.stage_index, late.feed())
    dataflow.output("out", reader)
    frozen = dataflow.freeze()
    assert [stage.name for stage in frozen.stages] == [
        "input numbers",
        "late",
        "early",
        "reader",
        "output out",
    ]
    assert all(connector.source < connector.target for connector in frozen.connectors)


def test_order_of_stages_in_loops_leaves_ways_back_aside() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with dataflow.loop("loop") as loop:
        back = loop.feedback()
        early = dataflow.open_stage("early", Vertex, loop.scope)
        (body,) = dataflow.stage("body", Vertex, [early.feed(0), back.stream.feed(1)])
        back.connect(body)
        dataflow.output("round", loop.leave(back.stream))
        dataflow.add_feed(
            early.stage_index, loop.enter(dataflow.stage("late", Vertex, [numbers.feed()])[0]).feed()
        )
    names = [stage.name for stage in dataflow.freeze().stages]
    assert names == ["input numbers", "late", "early", "body", "output round"]


def test_order_of_stages_in_a_circle_without_a_way_back_is_refused() -> None:
    dataflow = Dataflow()
    dataflow.input("numbers")
    early = dataflow.open_stage("early", Vertex, dataflow.root)
    dataflow.add_feed(early.stage_index, dataflow.stage("late", Vertex, [early.feed()])[0].feed())
    with pytest.raises(GraphError, match="early"):
        dataflow.freeze()
