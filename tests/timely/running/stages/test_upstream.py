"""upstream.py: what leads to a stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import differential as dd
from timely import Batch, Dataflow, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.upstream import sources_of, upstream_of
from timely.wire.transport.memory import MemoryNetwork


class Passes(Vertex):
    """Hands on what it gets."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, batch, word)


def running() -> Instance:
    """Two inputs, a stage of each, and one of both, of the first of these stages, and of the second input."""
    dataflow = Dataflow()
    one, two = dataflow.input("one"), dataflow.input("two")
    first = one.stage("first", Passes)
    dataflow.stage("both", Passes, [one.feed(0), two.feed(0), two.feed(1)])
    dataflow.stage("mixed", Passes, [first.feed(0), two.feed(1)])
    return Worker().install(dataflow.freeze())


def leading(instance: Instance, name: str, port: int) -> list[int]:
    (stage,) = [number for number, each in enumerate(instance.frozen.stages) if each.name == name]
    return [spec.index for spec in instance.frozen.connectors if spec.target == stage and spec.port == port]


def test_only_inputs_lead_there_or_there_are_no_sources() -> None:
    instance = running()
    frozen = instance.frozen
    assert sources_of(frozen, leading(instance, "both", 0)) == [0, 1]
    assert sources_of(frozen, leading(instance, "both", 1)) == [1]
    assert sources_of(frozen, leading(instance, "mixed", 0)) == [], "a vertex may hold what it gets"
    followed = [runner.name for runner in instance.runners if runner._ahead is not None]
    assert followed == ["first", "both"]
    assert [len(runner.followers) for runner in instance.runners[:2]] == [2, 1], "each once"


def test_several_workers_follow_nothing() -> None:
    """What an input of another worker lets in is still on its way when this one's has gone on."""
    dataflow = Dataflow()
    dataflow.input("one").stage("first", Passes)
    frozen = dataflow.freeze()
    several = Worker(0, 2, MemoryNetwork(2).transport(0)).install(frozen)
    assert all(runner._ahead is None for runner in several.runners)
    assert any(runner._ahead is not None for runner in Worker().install(frozen).runners)


def test_a_loop_behind_something_else_than_inputs_follows_none() -> None:
    def rounds(flow: Dataflow, counts_before: bool) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        given = edges.select("src", "dst").distinct() if counts_before else edges
        given.iterate(lambda inner: inner.select("src", "dst").distinct()).output("found")

    for counts_before in (False, True):
        dataflow = Dataflow()
        rounds(dataflow, counts_before)
        (region,) = Worker().install(dataflow.freeze()).loops
        assert (region._ahead is None) == counts_before


def test_an_input_that_leads_into_a_loop_in_two_ways_is_one_source() -> None:
    dataflow = Dataflow()
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    steps = edges.select(src=dd.col.src, to=dd.col.dst)
    edges.iterate(
        lambda x: x.join(steps, on="src").select(src=dd.col.to, dst=dd.col.dst).concat(x).distinct()
    ).output("found")
    instance = Worker().install(dataflow.freeze())
    (region,) = instance.loops
    assert len(region._entries) > 1 and region._ahead is not None
    (source,) = [runner for runner in instance.runners if runner.followers]
    assert source.name == "input edges" and source.followers == [region]


def test_who_sends_to_a_port_says_whether_batches_arrive_as_they_are() -> None:
    found = {}
    for name in ("as they are", "filtered", "by key"):
        dataflow = Dataflow()
        rows = dd.input(dataflow, "rows", "k: int, v: int")
        if name == "filtered":
            rows = rows.filter(dd.col.v > 0)
        elif name == "by key":
            rows = rows.group_by("k").agg(n=dd.count())
        rows.output("out")
        instance = Worker().install(dataflow.freeze())
        stages = range(len(instance.runners))
        found[name] = [each.is_plain for stage in stages for each in instance.feeding(stage, 0)]
    assert found == {"as they are": [True], "filtered": [False], "by key": [False, True]}


def test_all_from_which_something_may_come() -> None:
    instance = running()
    frozen, stages = instance.frozen, len(instance.runners)
    into = leading(instance, "mixed", 0)
    before = leading(instance, "first", 0)
    assert upstream_of(frozen, stages, into) == {0, 2, stages + into[0], stages + before[0]}
    assert upstream_of(frozen, stages, []) == frozenset()
