"""sharing.py: what is kept once for several operators, and what is not.

shared_*    plans in which something is, and what
guard_*     plans in which it must not be; with random rows each fails if its guard is removed
meaning_*   every one of these plans, at partially ordered times, on several workers, is what it was
less_*      rows are there once that were there twice
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import cast

import pytest
from reference.collection import Collection as Rows
from reference.dataflow import Change, Cluster, check_at_times, trace_rows
from reference.plan import meaning
from strategies_collections import NUMBERS
from strategies_plans import least

import differential as dd
from differential import Collection, col, lit
from differential.operators import join as join_module
from differential.operators.join_vertex import JoinVertex
from differential.plan.building import Plan
from differential.plan.improving import improve
from differential.plan.rules.sharing import Sharing, share
from timely.building.dataflow import Dataflow

Build = Callable[[Collection, Collection], Collection]


def _itself(a: Collection, b: Collection) -> Collection:
    return a.join(a.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)


def _two_joins(a: Collection, b: Collection) -> Collection:
    """One of them needs a column that the other does not."""
    first = a.join(b.select(k=col.v, w=col.k), on="k").select(k=col.w, v=col.v)
    second = a.select(key=col.k).join(b.select(key=col.k), on="key").select(k=col.key, v=lit(7))
    return first.concat(second)


def _answers(a: Collection, b: Collection) -> Collection:
    least = a.group_by("k").agg(lo=dd.min("v"))
    return least.join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.lo)


def _several_answers(a: Collection, b: Collection) -> Collection:
    """Of which a join needs one, under another name."""
    both = a.group_by("k").agg(lo=dd.min("v"), n=dd.count())
    few = both.select(key=col.k, many=col.n)
    return b.join(few, on={"k": "key"}).select(k=col.v, v=col.many).concat(both.select(k=col.k, v=col.lo))


def _function(a: Collection, b: Collection) -> Collection:
    first = a.group_by("k").reduce(least, "first: int")
    return first.join(b, on="k").select(k=col.first, v=col.v)


def _distinct(a: Collection, b: Collection) -> Collection:
    return b.join(a.select("k").distinct(), on="k")


def _reduce_beside_join(a: Collection, b: Collection) -> Collection:
    least = a.group_by("k").agg(v=dd.min("v"))
    return a.join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v).concat(least)


def _two_reduces(a: Collection, b: Collection) -> Collection:
    mixed = a.concat(b)
    total = mixed.group_by("k").agg(v=dd.sum("v"))
    return (
        mixed.group_by("k").agg(v=dd.max("v"), w=dd.min("v")).select(k=col.k, v=col.v - col.w).concat(total)
    )


def _labels(a: Collection, b: Collection) -> Collection:
    own = a.select(k=col.k, v=col.k).distinct()
    edges = a.distinct().select(k=col.k, to=col.v)
    return own.iterate(
        lambda labels: (
            labels.join(edges, on="k").select(k=col.to, v=col.v).concat(own).group_by("k").agg(v=dd.min("v"))
        )
    )


def _read_twice_in_a_loop(a: Collection, b: Collection) -> Collection:
    """And as rows, too; its columns change places on the way back."""
    start = a.select(v=col.k, k=col.v).distinct()
    there, back = a.distinct().select(k=col.k, to=col.v), b.distinct().select(k=col.k, to=col.v)

    def body(x: Collection) -> Collection:
        found = x.join(there, on="k").concat(x.join(back, on="k")).select(k=col.to, v=col.v)
        return found.concat(x.select("k", "v")).group_by("k").agg(v=dd.min("v")).select("v", "k")

    return start.iterate(body).select("k", "v")


def _loop_in_a_loop(a: Collection, b: Collection) -> Collection:
    """The outer variable is read inside the inner loop, by the keys of its answers."""
    start = a.group_by("k").agg(v=dd.min("v"))

    def outer(x: Collection) -> Collection:
        def inner(y: Collection) -> Collection:
            moved = y.join(x.select(k=col.k, to=col.v), on="k").select(k=dd.min_of(col.to, 2), v=col.v)
            return moved.concat(y.select("k", "v")).group_by("k").agg(v=dd.min("v"))

        return x.iterate(inner, name="inner").concat(start).group_by("k").agg(v=dd.min("v"))

    return start.iterate(outer, name="outer")


def _asked_for(a: Collection, b: Collection) -> Collection:
    kept = a.arrange(by="k")
    some = kept.join(b.select(k=col.k, w=col.v), on="k").filter(col.v > 0).select(k=col.w, v=col.v)
    return (
        kept.join(b.select(k=col.v, w=col.k), on="k").filter(col.v < 1).select(k=col.k, v=col.w).concat(some)
    )


def _entered(a: Collection, b: Collection) -> Collection:
    """Two loops read what is kept outside of both."""

    def reached(x: Collection) -> Collection:
        return x.join(a.select(k=col.k, to=col.v), on="k").select(k=col.to, v=col.v).concat(b).distinct()

    def reached_once(x: Collection) -> Collection:
        return x.join(a.select(k=col.k, to=col.v), on="k").select(k=col.to, v=col.v).concat(b, x).distinct()

    return b.distinct().iterate(reached).concat(b.distinct().iterate(reached_once))


def _exported(a: Collection, b: Collection) -> Collection:
    """What is kept for other dataflows, here by the same key, is read by a single join."""
    if not a.place:
        a.export("rows", by="k")
    return a.join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)


# How many arrangements there are of their own, how many reduces share answers, how many sides read them back.
SHARED: dict[str, tuple[Build, tuple[int, int, int]]] = {
    "a join with itself": (_itself, (1, 0, 0)),
    "two joins of which one needs less": (_two_joins, (1, 0, 0)),
    "answers in a join": (_answers, (0, 1, 0)),
    "some of several answers": (_several_answers, (0, 1, 0)),
    "answers of a function": (_function, (0, 1, 0)),
    "a distinct in a join": (_distinct, (0, 1, 0)),
    "a reduce beside a join": (_reduce_beside_join, (1, 0, 0)),
    "two reduces": (_two_reduces, (1, 0, 0)),
    "a variable that goes on as answers": (_labels, (0, 1, 1)),
    "a variable that is read twice": (_read_twice_in_a_loop, (0, 1, 2)),
    "a variable in an inner loop": (_loop_in_a_loop, (0, 2, 2)),
    "what was asked for": (_asked_for, (1, 0, 0)),
    "what is outside of two loops": (_entered, (1, 0, 0)),
    "what is exported": (_exported, (1, 0, 0)),
}


def _counted(a: Collection, b: Collection) -> Collection:
    """Rows that cancel in k are there in (k, v): a count of the wider rows would find the group."""
    joined = a.join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
    return a.select("k").group_by("k").agg(v=dd.count()).concat(joined)


def _least_of_wider(a: Collection, b: Collection) -> Collection:
    """A value that cancels is none, though it is there beside different third columns."""
    wide = a.join(b.select(v=col.v, x=col.k), on="v")
    least = wide.select("k", "v").group_by("k").agg(v=dd.min("v"))
    return wide.join(b.select(k=col.k, w=col.v), on="k").select(k=col.x + col.w, v=col.v).concat(least)


def _other_order(a: Collection, b: Collection) -> Collection:
    one = a.join(b.select(p=col.k, q=col.v), on={"k": "p", "v": "q"})
    other = a.join(b.select(p=col.v, q=col.k), on={"v": "p", "k": "q"}).select("k", "v")
    return one.concat(other)


def _other_keys(a: Collection, b: Collection) -> Collection:
    least = a.group_by("k").agg(lo=dd.min("v"))
    return least.join(b.select(lo=col.k, w=col.v), on="lo").select(k=col.w, v=col.lo)


def _other_filter(a: Collection, b: Collection) -> Collection:
    one = a.filter(col.v > 0).join(b.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
    return a.filter(col.v < 1).join(b.select(k=col.v, w=col.k), on="k").select(k=col.w, v=col.v).concat(one)


def _one_column_twice(a: Collection, b: Collection) -> Collection:
    twice = a.select(x=col.k, y=col.k, v=col.v)
    again = twice.join(b.select(x=col.k, y=col.v), on=["x", "y"]).select(k=col.x, v=col.v)
    return twice.join(b.select(x=col.v, y=col.k), on=["x", "y"]).select(k=col.x, v=col.v).concat(again)


def _goes_on_as_another(a: Collection, b: Collection) -> Collection:
    """The answers are filtered before they go on: what comes back are other rows."""
    start = a.group_by("k").agg(v=dd.min("v"))

    def body(x: Collection) -> Collection:
        moved = x.join(b.select(k=col.k, to=col.v).distinct(), on="k").select(k=col.to, v=col.v)
        return moved.concat(start).group_by("k").agg(v=dd.min("v")).filter(col.v > 0)

    return start.iterate(body)


def _goes_on_by_other_keys(a: Collection, b: Collection) -> Collection:
    start = a.group_by("k").agg(v=dd.min("v"))

    def body(x: Collection) -> Collection:
        moved = x.join(b.select(v=col.k, to=col.v).distinct(), on="v").select(k=col.to, v=col.k)
        return moved.concat(start, x).group_by("k").agg(v=dd.min("v"))

    return start.iterate(body)


def _goes_on_by_keys_in_another_order(a: Collection, b: Collection) -> Collection:
    start = a.select(k=col.k, v=col.v, w=col.k).group_by("k", "v").agg(w=dd.min("w"))

    def body(x: Collection) -> Collection:
        moved = x.join(b.select(p=col.k, q=col.v), on={"v": "p", "k": "q"})
        turned = moved.select(k=col.v, v=col.k, w=col.w + 0)
        return turned.concat(start, x.select("k", "v", "w")).group_by("k", "v").agg(w=dd.min("w"))

    return start.iterate(body).select("k", v=col.w)


def _reduces_of_one_column_twice(a: Collection, b: Collection) -> Collection:
    twice = a.select(x=col.k, y=col.k)
    one = twice.group_by("x").agg(s=dd.min("y")).select(k=col.x, v=col.s)
    two = twice.group_by("x").agg(m=dd.max("y"), n=dd.min("y"))
    return two.select(k=col.x, v=col.m + col.n).concat(one)


def _goes_on_as_what_is_outside(a: Collection, b: Collection) -> Collection:
    """The answers do not depend on the loop, and are not kept in it."""
    start = a.group_by("k").agg(v=dd.min("v"))

    def body(x: Collection) -> Collection:
        x.join(b.select(k=col.k, w=col.v), on="k").inspect(lambda row, time, diff: None)
        return start

    return start.iterate(body)


def _goes_on_until_it_stops(a: Collection, b: Collection) -> Collection:
    """What goes on too late is dropped, and who reads the answers would miss what it is told of."""

    def body(x: Collection) -> Collection:
        found = x.join(b.select(k=col.k, to=col.v), on="k").select(k=col.to, v=col.v)
        return found.concat(x).group_by("k").agg(v=dd.min("v"))

    return a.iterate(body, times=2)


GUARDS: dict[str, Build] = {
    "what comes back stops": _goes_on_until_it_stops,
    "the keys of what comes back are in another order": _goes_on_by_keys_in_another_order,
    "two columns of a reduce that are one": _reduces_of_one_column_twice,
    "what comes back is kept outside": _goes_on_as_what_is_outside,
    "a count does not read wider rows": _counted,
    "nor does a least": _least_of_wider,
    "the order of keys is another": _other_order,
    "the keys are not those of the answers": _other_keys,
    "a filter makes another collection": _other_filter,
    "two keys that are one column": _one_column_twice,
    "what comes back is filtered": _goes_on_as_another,
    "what comes back is kept by other keys": _goes_on_by_other_keys,
}
BUILDS = {**{name: build for name, (build, _) in SHARED.items()}, **GUARDS}


def _plan(build: Build) -> Plan:
    flow = Dataflow("tested")
    build(dd.input(flow, "a", NUMBERS), dd.input(flow, "b", NUMBERS)).output("out")
    return Plan.of(flow)


def _sharing(build: Build) -> Sharing:
    plan = _plan(build)
    return share(improve(plan.roots, plan.add_rewritten, lambda node: plan.sites.get(node.digest, ())).roots)


def _counts(found: Sharing) -> tuple[int, int, int]:
    read = {kept.identity for kept in (*found.joins.values(), *found.reduces.values())}
    own = {identity for identity in read if identity[0] not in found.answers}
    return len(own), len(found.answers), sum(found.returns.values())


@pytest.mark.parametrize("name", SHARED)
def test_shared_is_what_two_keep_alike(name: str) -> None:
    build, wanted = SHARED[name]
    assert _counts(_sharing(build)) == wanted


@pytest.mark.parametrize("name", GUARDS)
def test_guard_of_what_differs_nothing_is_shared(name: str) -> None:
    assert _counts(_sharing(GUARDS[name])) == (0, 0, 0)


def test_shared_rows_are_no_wider_than_their_readers_need() -> None:
    def build(a: Collection, b: Collection) -> Collection:
        kept = a.select(k=col.k, v=col.v, x=col.v + 1, y=col.v + 2).distinct().arrange("k")
        return kept.join(b.select(k=col.k), on="k").select("k", "v")

    (kept,) = _sharing(build).joins.values()
    assert (kept.keys, kept.values) == (("k",), ("v",))


def _histories(rng: random.Random, depth: int) -> list[list[Change]]:
    return [
        [
            (
                (rng.randrange(3), rng.randrange(-1, 3)),
                tuple(rng.randrange(3) for _ in range(depth)),
                rng.choice([-1, 1, 1, 2]),
            )
            for _ in range(rng.randrange(1, 9))
        ]
        for _ in range(2)
    ]


LOOPS = {
    _labels,
    _read_twice_in_a_loop,
    _loop_in_a_loop,
    _entered,
    _goes_on_as_another,
    _goes_on_by_other_keys,
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", BUILDS)
def test_meaning_at_every_time(
    name: str, depth: int, workers: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_module, "MATCHED_PIECE_ROWS", 3)
    build = BUILDS[name]
    root = _plan(build).roots[-1]

    def plain(a: Rows, b: Rows) -> Rows:
        return meaning(root, {"a": a, "b": b})

    if build in LOOPS and depth == 3:
        depth = 2  # an inner loop makes it four
    for trial in range(2 * effort):
        rng = random.Random(f"{seed} {name} {trial}")
        changes = _histories(rng, depth)
        if build in LOOPS:
            changes = [[(row, time, abs(diff)) for row, time, diff in some] for some in changes]
        check_at_times(build, plain, changes, depth=depth, seed=trial, workers=workers)


def test_less_rows_are_kept_and_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(build: Build, is_shared: bool) -> tuple[int, Rows]:
        if not is_shared:
            monkeypatch.setattr("differential.plan.building.share", lambda roots: Sharing())

        def whole(flow: Dataflow) -> None:
            build(dd.input(flow, "a", NUMBERS), dd.input(flow, "b", NUMBERS)).output("out")

        cluster = Cluster(whole)
        rng = random.Random(3)
        for name in ("a", "b"):
            cluster.change(name, [((rng.randrange(300), rng.randrange(300)), 1) for _ in range(600)])
        cluster.seal()
        cluster.run()
        monkeypatch.undo()
        return trace_rows(cluster), cluster.snapshot("out")

    for name, most in [("a join with itself", 0.51), ("a variable that goes on as answers", 0.95)]:
        build = SHARED[name][0]
        (less, found), (more, wanted) = rows(build, True), rows(build, False)
        assert found == wanted
        assert less <= most * more, (name, less, more)


def test_shared_what_is_exported_is_read_by_the_owner_too() -> None:
    def build(flow: Dataflow) -> None:
        _exported(dd.input(flow, "a", NUMBERS), dd.input(flow, "b", NUMBERS)).output("out")

    cluster = Cluster(build, workers=2)
    for _ in range(3):
        cluster.change("a", [((k, v), 1) for k in range(4) for v in range(3)])
        cluster.change("b", [((k, k), 1) for k in range(4)])
        cluster.seal()
        cluster.run()
    assert cluster.snapshot("out") == {(k, v): 9 for k in range(4) for v in range(3)}
    joins = cluster.vertices("join on k")
    assert [sum(t.rows for t in cast(JoinVertex, join).traces()) > 0 for join in joins] == [True, True]
    assert all(len(cast(JoinVertex, join).traces()) == 1 for join in joins), "of b alone"


def test_guard_what_was_made_before_anybody_knew_is_read_as_rows() -> None:
    """A stage by hand asks for a reduce at once; a join that comes later keeps rows of its own."""
    flow = Dataflow("tested")
    a, b = dd.input(flow, "a", NUMBERS), dd.input(flow, "b", NUMBERS)
    least = a.group_by("k").agg(lo=dd.min("v"))
    least.feeds(0, ["k"])
    least.join(b, on="k").output("out")
    (stage,) = [stage for stage in flow.freeze().stages if stage.name.startswith("join")]
    assert "True" not in stage.detail
    assert Plan.of(flow).lowering.sharing.answers
