"""loop_results.py: what leaves an inner loop and is joined is consolidated first.

fires_*   where it is consolidated, and that it is done once
guard_*   where nothing changes
law_*     with and without the rule the meaning is the same: at all times in partial order, at every epoch
same_*    strongly connected components as a newcomer writes them get the plan of one written with care
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import accumulated_at, history
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import (
    NUMBERS,
    Binary,
    examples,
    histories,
    loops_around_joined_loops,
    reach,
)

import differential as dd
from differential import Collection, col
from differential.plan import improving
from differential.plan.building import Plan
from differential.plan.improving import Improved, improve
from differential.plan.nodes import Consolidate, LeaveLoop, Node
from differential.plan.rewriting import beneath
from differential.plan.rules.loop_results import joined_results
from timely.building.dataflow import Dataflow

Body = Callable[[Collection, Collection], Collection]
"""What goes on of what goes round, and of a collection of the scope around it."""


def improved(body: Body) -> Improved:
    """The improved plan of an outer loop with this body."""
    flow = Dataflow("tested")
    rows = dd.input(flow, "rows", NUMBERS).distinct()
    rows.iterate(lambda x: body(x, rows).select("k", "v").distinct(), name="outer").output("result")
    plan = Plan.of(flow)
    return improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ()))


def fired(body: Body) -> int:
    """How many results are consolidated, and that they are just these."""
    found = improved(body)
    made = [node for node in beneath(found.roots) if isinstance(node, Consolidate)]
    assert all(isinstance(_below(node), LeaveLoop) for node in made)
    assert len(made) == found.fired["loop result consolidated"]
    return len(made)


def _below(node: Consolidate) -> Node:
    """What it consolidates, columns dropped before aside."""
    below: Node = node.source
    while below.is_linear:
        (below,) = below.children
    return below


def _named(rows: Collection) -> Collection:
    return rows.select(k=col.k, w=col.v)


# fires_


def test_fires_once_for_all_joins_that_read_a_result() -> None:
    def body(x: Collection, rows: Collection) -> Collection:
        inner = reach(x, rows)
        return rows.join(_named(inner), on="k").join(inner.select(v=col.k, u=col.v), on="v")

    assert fired(body) == 1


def test_fires_behind_filters_sums_and_new_names() -> None:
    assert fired(lambda x, rows: rows.join(_named(reach(x, rows)).filter(col.w > 0), on="k")) == 1
    assert fired(lambda x, rows: rows.join(_named(x.concat(reach(x, rows).negate())), on="k")) == 1


def test_fires_where_a_loop_begins_with_what_another_one_gives() -> None:
    def body(x: Collection, rows: Collection) -> Collection:
        return reach(x, rows).iterate(
            lambda y: rows.join(_named(y), on="k").select("k", v=col.w).concat(y).distinct(), name="next"
        )

    assert fired(body) == 1


def test_fires_for_joins_of_all_and_what_comes_in_by_priority() -> None:
    def circle(x: Collection, rows: Collection) -> Collection:
        inner = reach(x, rows)
        parts = [inner.select(a=col.k, b=col.v), rows.select(b=col.k, c=col.v), rows.select(c=col.k, a=col.v)]
        return dd.join_all(parts, ["a", "b", "c"]).select(k=col.a, v=col.b)

    def prioritised(x: Collection, rows: Collection) -> Collection:
        return reach(x, rows).prioritized_iterate(
            lambda found, own: found.concat(own).distinct(), priority="v", name="by priority"
        )

    assert fired(circle) == 1 and fired(prioritised) == 1


def test_fires_but_not_beside_a_consolidate_of_the_user() -> None:
    def body(x: Collection, rows: Collection) -> Collection:
        inner = reach(x, rows)
        return rows.join(_named(inner.consolidate()), on="k").join(inner.select(v=col.k, u=col.v), on="v")

    assert fired(body) == 1


def test_fires_and_drops_columns_before() -> None:
    found = improved(lambda x, rows: rows.join(reach(x, rows).select("k"), on="k"))
    (consolidated,) = [node for node in beneath(found.roots) if isinstance(node, Consolidate)]
    assert consolidated.schema.names == ("k",)


def test_fires_as_the_explanation_says() -> None:
    flow = Dataflow("tested")
    rows = dd.input(flow, "rows", NUMBERS).distinct()
    found = rows.iterate(lambda x: rows.join(_named(reach(x, rows)), on="k").select("k", "v").distinct())
    assert "after the rules: " in found.explain() and "loop result consolidated" in found.explain()


# guard_


@pytest.mark.parametrize(
    "body",
    [
        lambda x, rows: reach(x, rows).group_by("k").agg(v=dd.min("v")),
        lambda x, rows: reach(x, rows).distinct().join(_named(rows), on="k"),
        lambda x, rows: rows.join(_named(reach(x, rows).consolidate()), on="k"),
        lambda x, rows: x.join(_named(reach(rows, rows)), on="k"),
    ],
    ids=[
        "an aggregate waits",
        "so does a distinct",
        "the user has written it",
        "it depends on no outer loop",
    ],
)
def test_guard_nothing_is_added(body: Body) -> None:
    found = improved(body)
    assert found.fired["loop result consolidated"] == 0


def test_guard_a_loop_in_no_other_is_left_alone() -> None:
    flow = Dataflow("tested")
    rows = dd.input(flow, "rows", NUMBERS)
    reach(rows, rows).join(_named(rows), on="k").output("result")
    assert joined_results(Plan.of(flow).roots) == frozenset()


def test_guard_once_is_enough() -> None:
    found = improved(lambda x, rows: rows.join(_named(reach(x, rows)), on="k"))
    assert joined_results(found.roots) == frozenset()


# law_


def _without_rule(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(improving, "joined_results", lambda roots: frozenset())


@pytest.mark.parametrize("rule", [True, False])
@pytest.mark.parametrize("depth", [1, 2])
def test_law_the_meaning_stays_at_every_time(depth: int, rule: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside of loops written by hand, whose times are in partial order."""
    if not rule:
        _without_rule(monkeypatch)

    @examples(0.5)
    @given(
        loops_around_joined_loops(),
        histories(depth, size_max=6),
        histories(depth, size_max=6),
        st.integers(1, 3),
        st.integers(0, 2**20),
    )
    def holds(loop: Binary, left: list[Change], right: list[Change], workers: int, seed: int) -> None:
        check_at_times(loop.build, loop.plain, [left, right], depth=depth, workers=workers, seed=seed)

    holds()


EPOCHS = 4


def _by_epoch(loop: Binary, inputs: list[list[Change]], workers: int, seed: int) -> list[Rows]:
    """The result at each epoch, several of them in flight."""
    rng = random.Random(seed)

    def build(flow: Dataflow) -> None:
        first, second = (dd.input(flow, name, NUMBERS) for name in ("first", "second"))
        loop.build(first, second).output("result")

    cluster = Cluster(build, workers, seed)
    for name, changes in zip(("first", "second"), inputs, strict=True):
        for row, (epoch,), diff in changes:
            cluster.change(name, [(row, diff)], epoch, rng.randrange(workers))
    for epoch in sorted({*rng.sample(range(EPOCHS), 2), EPOCHS - 1}):
        cluster.seal(epoch)
        cluster.harry(rng, rng.choice([0, 5, 20]))
    cluster.run()
    changes_out = cluster.changes("result")
    return [accumulated_at(changes_out, (epoch,)) for epoch in range(EPOCHS)]


@examples(0.5)
@given(
    loops_around_joined_loops(),
    st.lists(histories(1, size_max=8), min_size=2, max_size=2),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_law_the_meaning_stays_at_every_epoch(
    loop: Binary, inputs: list[list[Change]], workers: int, seed: int
) -> None:
    """In compiled loops, too, with rows that go again."""
    with_rule = _by_epoch(loop, inputs, workers, seed)
    with pytest.MonkeyPatch.context() as patch:
        _without_rule(patch)
        without = _by_epoch(loop, inputs, workers, seed)
    plain = [
        loop.plain(*(accumulated_at(history(changes), (epoch,)) for changes in inputs))
        for epoch in range(EPOCHS)
    ]
    assert with_rule == without == plain


# same_


def _components(edges: Collection, *, by_hand: bool) -> Collection:
    """Edges within strong components: two joins with labels, forwards and backwards, again and again."""
    nodes = edges.select(node=col.k, label=col.k).concat(edges.select(node=col.v, label=col.v))

    def trimmed(left: Collection, along: Collection) -> Collection:
        labels = nodes.iterate(
            lambda labels: (
                labels.join(left, on={"node": "k"})
                .select(node=col.v, label=col.label)
                .concat(nodes)
                .group_by("node")
                .agg(label=dd.min("label"))
            ),
            name="labels",
        )
        if by_hand:
            labels = labels.consolidate()
        return (
            along.join(labels.select(k=col.node, a=col.label), on="k")
            .join(labels.select(v=col.node, b=col.label), on="v")
            .filter(col.a == col.b)
            .select(k=col.v, v=col.k)
        )

    reverse = edges.select(k=col.v, v=col.k)
    return edges.iterate(lambda left: trimmed(trimmed(left, edges), reverse), name="components")


def test_same_plan_as_with_consolidate_by_hand() -> None:
    plans = []
    for by_hand in (False, True):
        flow = Dataflow("tested")
        _components(dd.input(flow, "edges", NUMBERS), by_hand=by_hand).output("inside")
        plan = Plan.of(flow)
        found = improve(
            plan.roots, plan.add_rewritten, lambda node, plan=plan: plan.sites.get(node.digest, ())
        )  # type: ignore[misc]
        assert found.fired["loop result consolidated"] == (0 if by_hand else 2)
        plans.append([root.digest for root in found.roots])
    assert plans[0] == plans[1]
