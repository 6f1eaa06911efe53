"""Streams: the handles that building uses."""

from __future__ import annotations

import pytest

import timely
from timely import Broadcast, Dataflow, MisuseError, Vertex
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


def test_a_feed_takes_an_exchange_as_a_stage_does() -> None:
    one = Dataflow().input("one")
    route = Broadcast()
    assert isinstance(one.feed(exchange=timely.by(0)).route, RecordRoute)
    assert one.feed(exchange=route).route is route
    with pytest.raises(MisuseError, match=r"^feed\(1\): `exchange` is timely.by\(…\), .*not a str"):
        one.feed(1, exchange="word")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"Write exchange=timely.by\(…\), as in stream.feed\(1, exchange"):
        one.feed(1, route=timely.by(0))  # type: ignore[arg-type]


class PairVertex(Vertex):
    """Puts together, by key, what comes in at two inputs and by a loop."""

    def __init__(self) -> None:
        self.sides: dict[tuple[object, ...], dict[object, set[object]]] = {}

    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        """Keep each record by its key, until no more of this time can come."""
        if time not in self.sides:
            self.sides[time] = {}
            self.notify_at(time)
        for record in message:
            key, value = record  # type: ignore[misc]
            self.sides[time].setdefault(key, set()).add((edge, value))

    def on_notify(self, time: tuple[int, ...]) -> None:
        """Send each key with all its values, and once round the loop with another key."""
        sides = self.sides.pop(time)
        self.send_by(0, [(key, tuple(sorted(values))) for key, values in sides.items()], time)
        if time[1] == 0:
            self.send_by(1, [(key % 2, key) for key in sides if isinstance(key, int)], time)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_feeds_with_an_exchange_bring_equal_keys_together_at_each_input_and_round_a_loop(
    workers: int,
) -> None:
    def build(dataflow: Dataflow) -> None:
        left, right = dataflow.input("left"), dataflow.input("right")
        with dataflow.loop() as loop:
            back = loop.feedback()
            feeds = [
                loop.enter(left).feed(0, exchange=timely.by(0)),
                loop.enter(right).feed(1, exchange=timely.by(0)),
                back.stream.feed(2, exchange=timely.by(0)),
            ]
            pairs, further = dataflow.stage("pair", PairVertex, feeds, outputs=2)
            back.connect(further)
        dataflow.output("pairs", loop.leave(pairs))

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("left").insert([(key, "l") for key in range(9)])
        flow.input("right").insert([(key, "r") for key in range(9)])
        flow.seal()
        pairs = sorted(record for _, record in flow.output("pairs").changes())
    straight = [(key, ((0, "l"), (1, "r"))) for key in range(9)]
    assert pairs == sorted([*straight, *((k, tuple((2, n) for n in range(k, 9, 2))) for k in (0, 1))])


def test_a_stream_is_shown_by_its_place() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    assert repr(numbers) == "Stream(output 0 of stage 0)"
    assert repr(timely.tables(numbers)) == "TableStream(output 0 of stage 0)"


def test_arguments_that_are_swapped_or_several_streams_are_told_what_to_write() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    with pytest.raises(timely.GraphError, match=r"name comes first.*Write stage\('mine', Vertex\)"):
        numbers.stage(Vertex, "mine")  # type: ignore[arg-type]
    with pytest.raises(timely.GraphError, match="branch, ok_err and partition return several streams"):
        dataflow.output("out", numbers.branch(bool))  # type: ignore[arg-type]
