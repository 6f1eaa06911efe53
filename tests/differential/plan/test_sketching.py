"""sketching.py: stages written by hand in the bodies of loops, against the same loops without them.

law_*       a loop is the same with collections in it that go through streams, or are computed by a vertex
unread_*    stages for their effects alone
refused_*   streams that do not belong together
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from reference.dataflow import Cluster

import differential as dd
import timely
from differential import Collection, col
from differential.plan.building import Plan
from differential.plan.durable.rules import plan_facts
from differential.plan.installing import travelling_form
from differential.plan.sketching import Sketch

EDGES = "a: int, b: int"
Change = tuple[tuple[int, int], int]


class FurtherVertex(timely.Vertex):
    """Joins paths (input 0) with edges (input 1): pairs, at the least upper bounds of their times."""

    def __init__(self) -> None:
        self.changes: tuple[list[tuple[Change, tuple[int, ...]]], ...] = ([], [])

    def on_recv(self, edge: int, message: list[Change], time: tuple[int, ...]) -> None:  # type: ignore[override]
        sent: dict[tuple[int, ...], list[object]] = defaultdict(list)
        for row, diff in message:
            self.changes[edge].append(((row, diff), time))
            for (other, count), at in self.changes[1 - edge]:
                path, step = (row, other) if edge == 0 else (other, row)
                if path[1] == step[0]:
                    later = tuple(map(max, zip(time, at, strict=True)))
                    sent[later].append(((path[0], step[1]), diff * count))
        for later, records in sent.items():
            self.send_by(0, records, later)


def plain(known: Collection, edges: Collection) -> Collection:
    return known.join(edges.select(b=col.a, to=col.b), on="b").select("a", b=col.to)


def through(known: Collection, edges: Collection) -> Collection:
    odd, even = known.stream().exchange(timely.by(0)).branch(lambda record: record[0][0] % 2)
    return plain(dd.collection(odd, EDGES).concat(dd.collection(even, EDGES)), edges)


def by_hand(known: Collection, edges: Collection) -> Collection:
    feeds = [
        known.stream().feed(0, exchange=timely.by(lambda record: record[0][1])),
        edges.stream().feed(1, exchange=timely.by(lambda record: record[0][0])),
    ]
    (further,) = known.stream().dataflow.stage("further", FurtherVertex, feeds)
    return dd.collection(further, EDGES)


Further = Callable[[Collection, Collection], Collection]


def closures(*ways: Further) -> Callable[[timely.Dataflow], None]:
    """The closure of edges as often as there are ways to go further, and in a loop in a loop."""

    def query(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)
        for way in ways:
            closed = edges.iterate(lambda known, way=way: way(known, edges).concat(edges).distinct())
            closed.output(way.__name__)
            edges.iterate(
                lambda outer, way=way: outer.iterate(
                    lambda known: way(known, outer).concat(outer).distinct(), times=2
                )
            ).output(f"{way.__name__} twice")

    return query


@pytest.mark.parametrize("workers", [1, 2])
def test_law_a_loop_is_the_same_with_stages_by_hand_in_it(workers: int) -> None:
    rng = random.Random(workers)
    cluster = Cluster(closures(plain, through, by_hand), workers, seed=workers)
    there: list[tuple[int, int]] = []
    for _ in range(4):
        new = [(rng.randrange(5), rng.randrange(5)) for _ in range(3)]
        old = [there.pop(rng.randrange(len(there))) for _ in range(len(there) // 3)]
        there += new
        cluster.change("edges", [*((row, 1) for row in new), *((row, -1) for row in old)])
        cluster.seal()
    cluster.run()
    for depth in ("", " twice"):
        wanted = cluster.changes(f"plain{depth}")
        assert wanted and cluster.changes(f"through{depth}") == wanted
        assert cluster.changes(f"by_hand{depth}") == wanted


def test_unread_stages_run_for_their_effects_and_see_iterations() -> None:
    seen: Counter[tuple[int, ...]] = Counter()

    def query(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", EDGES)

        def body(known: Collection) -> Collection:
            known.stream().inspect_batch(lambda time, records: seen.update([time] * len(records)))
            return plain(known, edges).concat(edges).distinct()

        edges.iterate(body).output("out")

    cluster = Cluster(query)
    cluster.change("edges", [((1, 2), 1), ((2, 3), 1), ((3, 4), 1)])
    cluster.seal()
    cluster.run()
    assert {time[0] for time in seen} == {0} and {time[1] for time in seen} >= {0, 1, 2}
    assert seen[0, 0] == 3, "the edges themselves"


def test_refused_streams_of_inside_and_outside() -> None:
    flow = timely.Dataflow("tested")
    edges = dd.input(flow, "edges", EDGES)
    outside, left = edges.stream(), []

    def mixed(known: Collection) -> Collection:
        return dd.collection(known.stream().concat(outside), EDGES)

    with pytest.raises(
        timely.GraphError, match=r"stage 'concat' .*iterate.* one of its streams is not. Make a coll"
    ):
        edges.iterate(mixed)

    def loops(known: Collection) -> Collection:
        with flow.loop("by hand") as loop:
            loop.enter(known.stream())
        return known

    with pytest.raises(timely.GraphError, match="can be entered from the scope around it"):
        edges.iterate(loops)

    def leaks(known: Collection) -> Collection:
        left.append(known.stream())
        return known

    edges.iterate(leaks)
    with pytest.raises(
        timely.GraphError, match="whose body has returned: only what `iterate` returns leaves"
    ):
        dd.collection(left[0], EDGES)


def test_refused_is_replaying_in_a_body_that_is_being_written() -> None:
    sketch = Sketch(0, "flow / iterate")
    with pytest.raises(timely.GraphError, match=r"'a' \(.*\) cannot be replayed in 'flow / iterate'"):
        sketch.replay_times("a", 2)


def test_refused_where_plans_are_sent_and_kept_where_they_are_durable() -> None:
    flow = timely.Dataflow("tested")
    closures(through)(flow)
    with pytest.raises(timely.MisuseError, match="stages that were written by hand"):
        travelling_form(Plan.of(flow))
    assert "written by hand" in dd.explain(flow)
    flow.freeze()
    (facts,) = plan_facts(Plan.of(flow)).inputs
    assert not facts.sums and "by hand" in facts.why and "changes of each epoch" in facts.why
