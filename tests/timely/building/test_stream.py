"""Streams: the handles that building uses."""

from __future__ import annotations

from timely import Broadcast, Dataflow, Vertex
from timely.building.exchange import RecordRoute


def test_a_stage_of_one_input_and_one_output_is_a_stream_again() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    doubled = numbers.stage("double", Vertex)
    assert (doubled.dataflow, doubled.stage_index, doubled.output, doubled.scope) == (
        dataflow,
        1,
        0,
        dataflow.root,
    )


def test_an_exchange_is_a_function_or_a_route_or_nothing() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    route = Broadcast()
    for exchange in (None, route, hash):
        numbers.stage("stage", Vertex, exchange=exchange)
    routes = [stage.feeds[0].route for stage in dataflow.stages[1:]]
    assert routes[0] is None and routes[1] is route and isinstance(routes[2], RecordRoute)


def test_a_feed_keeps_its_port_its_route_and_what_is_said_of_it() -> None:
    route = Broadcast()
    one = Dataflow().input("one")
    feed = one.feed(1, route=route, detail="some")
    assert feed.stream is one and (feed.port, feed.route, feed.detail) == (1, route, "some")
