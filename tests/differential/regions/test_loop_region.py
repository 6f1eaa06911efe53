"""loop_region.py: a loop that a region runs gives what it gives otherwise, at every epoch.

same_*   random inputs, epochs and turns: what has left is the plain meaning, and the same as without regions
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at
from reference.dataflow import Cluster, trace_rows
from strategies_collections import BINARY, NUMBERS, UNARY, examples

import differential as dd
from differential import Collection, col
from differential.columns.column_types import Int64s
from differential.kernels.regions.layout import X_BOUND, X_FROM
from differential.regions import loop_region
from differential.regions.loop_region import LoopRegion
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark

Two = Callable[[Collection, Collection], Collection]
TwoPlainly = Callable[[Rows, Rows], Rows]


class Step(NamedTuple):
    """What a client does: changes of both inputs, so many epochs ahead; then it may seal some inputs. Then
    the worker has so many turns.
    """

    first: Sequence[tuple[Row, int]]
    second: Sequence[tuple[Row, int]]
    ahead: int
    seals: Sequence[str]
    turns: int


pairs = st.tuples(st.integers(0, 4), st.integers(0, 4))
changed = st.lists(st.tuples(pairs, st.sampled_from([1, 1, 1, 2, -1])), max_size=5)
BOTH = ("first", "second")
ALL = -1
"""Turns, until nothing moves any more."""
# One input may be ahead of the other: then rows of epochs that are open for long wait in the loop.
sealing = st.sampled_from([BOTH, BOTH, ("first",), ("second",), ()])
steps = st.builds(Step, changed, changed, st.integers(0, 2), sealing, st.sampled_from([0, 1, 2, 3, ALL, ALL]))
scripts = st.lists(steps, min_size=1, max_size=10)


@contextmanager
def regions(are_on: bool) -> Iterator[None]:
    """Loops that are installed meanwhile are regions, or are not."""
    before = os.environ.get("NAIAD_REGIONS")
    os.environ["NAIAD_REGIONS"] = "1" if are_on else "0"
    try:
        yield
    finally:
        del os.environ["NAIAD_REGIONS"]
        if before is not None:
            os.environ["NAIAD_REGIONS"] = before


def installed(build: Two, are_on: bool, *, bits: tuple[int, ...] | None = None) -> Cluster:
    """A worker that runs a loop over two inputs of (k, v)."""

    def flow(flow: Dataflow) -> None:
        first, second = dd.input(flow, "first", NUMBERS), dd.input(flow, "second", NUMBERS)
        build(first, second).output("result")
        if bits is not None:
            flow.level_bits = bits

    with regions(are_on):
        return Cluster(flow)


def is_region(cluster: Cluster) -> bool:
    """Whether any loop is one."""
    return bool(cluster.instances[0].regions)


def _complete(cluster: Cluster) -> int:
    return cluster.instances[0].output("result").complete_before


def check(build: Two, plain: TwoPlainly, script: Sequence[Step], bits: tuple[int, ...] | None) -> None:
    """Both ways are at the plain meaning at every epoch, and know the same epochs as complete."""
    ours, others = installed(build, True, bits=bits), installed(build, False, bits=bits)
    assert is_region(ours) and not is_region(others)
    given_at: list[list[list[tuple[Row, int]]]] = [[[] for _ in BOTH] for _ in range(32)]
    sealed = dict.fromkeys(BOTH, 0)
    for step in [*script, *[Step((), (), 0, BOTH, ALL)] * 3]:
        for number, (name, changes) in enumerate(zip(BOTH, (step.first, step.second), strict=True)):
            if changes:
                given_at[sealed[name] + step.ahead][number].extend(changes)
                for cluster in (ours, others):
                    cluster.change(name, changes, sealed[name] + step.ahead)
        for cluster in (ours, others):
            for name in step.seals:
                cluster.instances[0].inputs[name].seal()
            for _ in range(step.turns):
                cluster.step(0)
            if step.turns == ALL:
                cluster.run()
        for name in step.seals:
            sealed[name] += 1
        if step.turns == ALL:
            assert _complete(ours) == _complete(others) == min(sealed.values())
    ours.close()
    ours.run()
    others.close()
    others.run()
    found, wanted = ours.changes("result"), others.changes("result")
    so_far = (Rows(), Rows())
    for epoch in range(max(sealed.values()) + 3):
        for rows, more in zip(so_far, given_at[epoch], strict=True):
            for row, diff in more:
                rows[row] += diff
        meant = plain(*(plainly.collection(rows) for rows in so_far))
        assert accumulated_at(found, (epoch,)) == meant, epoch
        assert accumulated_at(wanted, (epoch,)) == meant, epoch
    assert found == wanted
    assert trace_rows(ours) == 0, "nothing will come"


# Bodies


def _distances(roots: Collection, along: Collection) -> Collection:
    """The least number of edges from a key of `roots`: a join, one more, the least."""
    start = roots.filter(col.k >= 0).select(k=col.v, v=0)
    edges = along.distinct()
    return start.iterate(
        lambda found: (
            found.join(edges.select(k=col.k, to=col.v), on="k")
            .select(k=col.to, v=col.v + 1)
            .concat(start)
            .group_by("k")
            .agg(v=dd.min("v"))
        )
    )


def _least(rows: Rows) -> Rows:
    return plainly.aggregate(rows, [("min", 0)])


def _distances_plainly(roots: Rows, along: Rows) -> Rows:
    start = plainly.map_rows(roots, lambda row: (row[1], 0))
    edges = plainly.distinct(along)

    def further(found: Rows) -> Rows:
        paired = plainly.join(found, edges)
        return plainly.map_rows(paired, lambda row: (row[2], cast(int, row[1]) + 1))

    return plainly.iterate(start, lambda found: _least(plainly.concat(further(found), start)))


def _closure(first: Collection, second: Collection) -> Collection:
    """All pairs that a way leads from to: a variable is joined with itself."""
    edges = first.concat(second).distinct()
    return edges.iterate(
        lambda x: x.join(x.select(v=col.k, w=col.v), on="v").select(k=col.k, v=col.w).concat(edges).distinct()
    )


def _closure_plainly(first: Rows, second: Rows) -> Rows:
    edges = plainly.distinct(plainly.concat(first, second))
    turned = lambda rows: plainly.map_rows(rows, lambda row: (row[1], row[0]))  # noqa: E731

    def step(x: Rows) -> Rows:
        longer = plainly.map_rows(plainly.join(turned(x), x), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(longer, edges))

    return plainly.iterate(edges, step)


def _counted(first: Collection, second: Collection) -> Collection:
    """Keys with what they count and add up to, as far as it stays below a bound: sums that change."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        moved = x.join(along.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
        totals = moved.concat(start).group_by("k").agg(n=dd.count(), s=dd.sum("v"))
        return (
            totals.select(k=col.k, v=dd.min_of(col.n + col.s, 9))
            .concat(start)
            .distinct()
            .concat(x)
            .distinct()
        )

    return start.iterate(body)


def _counted_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], row[1]))
        totals = plainly.aggregate(plainly.concat(moved, start), [("count", 0), ("sum", 0)])
        bounded = plainly.map_rows(
            totals, lambda row: (row[0], min(cast(int, row[1]) + cast(int, row[2]), 9))
        )
        return plainly.distinct(plainly.concat(bounded, start, x))

    return plainly.iterate(start, step)


def _in_turns(first: Collection, second: Collection) -> Collection:
    """Two variables, each of which makes the other."""
    start, along = first.distinct(), second.distinct()

    def body(odd: Collection, even: Collection) -> dict[str, Collection]:
        edges = along.select(k=col.k, w=col.v)
        further = lambda x: x.select(k=col.v, u=col.k).join(edges, on="k").select(k=col.u, v=col.w)  # noqa: E731
        return {"even": further(odd).concat(start).distinct(), "odd": further(even).distinct()}

    found = dd.iterate({"even": start, "odd": NUMBERS}, body)
    return found["odd"].concat(found["even"].select(k=col.k, v=col.v + 10))


def _in_turns_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def further(x: Rows) -> Rows:
        turned = plainly.map_rows(x, lambda row: (row[1], row[0]))
        return plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))

    odd, even = Rows(), start
    while True:
        more = plainly.distinct(further(even)), plainly.distinct(plainly.concat(further(odd), start))
        if more == (odd, even):
            return plainly.concat(odd, plainly.map_rows(even, lambda row: (row[0], cast(int, row[1]) + 10)))
        odd, even = more


def _by_functions(first: Collection, second: Collection) -> Collection:
    """Functions of Python's in the body: on the way to a gate, and in one."""
    start, along = first.distinct(), second.distinct()

    def least(key: object, group: list[tuple[tuple[object, ...], int]]) -> list[tuple[object, ...]]:
        del key
        return [min(cast("tuple[int]", row) for row, _ in group)]

    return start.iterate(
        lambda x: (
            x.join(along.select(k=col.k, w=col.v), on="k")
            .map(lambda row: (row.w, min(row.v + 1, 7)), "k: int, v: int")
            .concat(start)
            .group_by("k")
            .reduce(least, "v: int")
        )
    )


def _by_functions_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        moved = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], min(cast(int, row[1]) + 1, 7)))
        return _least(plainly.concat(moved, start))

    return plainly.iterate(start, step)


def _filtered(first: Collection, second: Collection) -> Collection:
    """Conditions of all kinds and sums on the way, some of which Python does."""
    start, along = first.distinct(), second.distinct()
    return start.iterate(
        lambda x: (
            x.filter((col.v != 2) & (col.k <= col.v + 3))
            .join(along.filter(col.k != col.v).select(k=col.k, w=col.v), on="k")
            .filter((col.w > 0) & (col.v < 6))
            .select(k=col.w, v=col.v + 1)
            .concat(start.filter(col.k <= 3), start.negate().filter(col.v == 4), start)
            .distinct()
        )
    )


def _filtered_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        left = plainly.filter_rows(x, lambda r: r[1] != 2 and cast(int, r[0]) <= cast(int, r[1]) + 3)
        joined = plainly.join(left, plainly.filter_rows(along, lambda r: r[0] != r[1]))
        going = plainly.filter_rows(joined, lambda r: cast(int, r[2]) > 0 and cast(int, r[1]) < 6)
        moved = plainly.map_rows(going, lambda row: (row[2], cast(int, row[1]) + 1))
        begun = plainly.filter_rows(start, lambda r: cast(int, r[0]) <= 3)
        without = plainly.negate(plainly.filter_rows(start, lambda r: r[1] == 4))
        return plainly.distinct(plainly.concat(moved, begun, without, start))

    return plainly.iterate(start, step)


def _unary(name: str) -> tuple[Two, TwoPlainly]:
    one = UNARY[name]
    return (
        lambda first, second: one.build(first.concat(second)),
        lambda first, second: one.plain(plainly.concat(first, second)),
    )


def _nested(first: Collection, second: Collection) -> Collection:
    """What is reached, then from the even ones among it again: a loop in a loop, both of which have gates."""
    along, own = second.distinct(), first.distinct()

    def reached(x: Collection) -> Collection:
        edges = along.select(v=col.k, w=col.v)
        return x.iterate(
            lambda y: y.join(edges, on="v").select(k=col.k, v=col.w).concat(x).distinct(), name="inner"
        )

    return own.iterate(
        lambda x: reached(x).filter(col.v >= 2).select(k=col.v, v=col.k).concat(own).distinct(), name="outer"
    )


def _nested_plainly(first: Rows, second: Rows) -> Rows:
    along, own = plainly.distinct(second), plainly.distinct(first)

    def reached(x: Rows) -> Rows:
        def step(y: Rows) -> Rows:
            turned = plainly.map_rows(y, lambda row: (row[1], row[0]))
            longer = plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))
            return plainly.distinct(plainly.concat(longer, x))

        return plainly.iterate(x, step)

    def step(x: Rows) -> Rows:
        far = plainly.filter_rows(reached(x), lambda row: cast(int, row[1]) >= 2)
        return plainly.distinct(plainly.concat(plainly.map_rows(far, lambda r: (r[1], r[0])), own))

    return plainly.iterate(own, step)


def _with_itself(first: Collection, second: Collection) -> Collection:
    """Two readers of one arrangement, in one join: the second must see what the first has not."""
    start = first.concat(second).distinct()

    def body(x: Collection) -> Collection:
        kept = x.select(k=col.v, v=col.k).arrange(by="k")
        paired = kept.join(kept.select(k=col.k, w=col.v), on="k")
        return paired.select(k=col.v, v=col.w).concat(start).distinct()

    return start.iterate(body)


def _with_itself_plainly(first: Rows, second: Rows) -> Rows:
    start = plainly.distinct(plainly.concat(first, second))

    def step(x: Rows) -> Rows:
        turned = plainly.map_rows(x, lambda row: (row[1], row[0]))
        paired = plainly.map_rows(plainly.join(turned, turned), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(paired, start))

    return plainly.iterate(start, step)


def _read_by_groups(first: Collection, second: Collection) -> Collection:
    """An arrangement that reduces and a join read: its rows are there before their times are complete."""
    start, along = first.distinct(), second.distinct()

    def body(x: Collection) -> Collection:
        kept = x.arrange(by="k")
        largest = kept.group_by("k").agg(v=dd.max("v"))
        joined = kept.join(along.select(k=col.k, w=col.v), on="k").select(k=col.w, v=col.v)
        number = kept.group_by("k").agg(v=dd.count()).filter(col.v < 4)
        return joined.concat(x, start, largest.select(k=col.v, v=col.k), number).distinct()

    return start.iterate(body)


def _read_by_groups_plainly(first: Rows, second: Rows) -> Rows:
    start, along = plainly.distinct(first), plainly.distinct(second)

    def step(x: Rows) -> Rows:
        largest = plainly.map_rows(plainly.aggregate(x, [("max", 0)]), lambda row: (row[1], row[0]))
        number = plainly.filter_rows(plainly.aggregate(x, [("count", 0)]), lambda row: cast(int, row[1]) < 4)
        joined = plainly.map_rows(plainly.join(x, along), lambda row: (row[2], row[1]))
        return plainly.distinct(plainly.concat(joined, x, start, largest, number))

    return plainly.iterate(start, step)


def _with_nulls(first: Collection, second: Collection) -> Collection:
    """Keys that may be null, which match nothing: in rows of a join's own, and in an arrangement."""
    start = first.distinct()
    along = second.distinct().select(k=dd.when(col.k > 0).then(col.k), w=col.v)

    def body(x: Collection) -> Collection:
        kept = x.select(k=dd.when(col.v > 1).then(col.k), v=col.v).arrange(by="k")
        some = kept.join(along, on="k").select(k=col.w, v=col.v)
        more = kept.join(along.select(k=col.k, u=col.w), on="k").filter(col.u > col.v)
        own = x.select(k=dd.when(col.v > 2).then(col.v), u=col.k).join(along, on="k")
        return some.concat(start, more.select(k=col.v, v=col.u), own.select(k=col.u, v=col.w)).distinct()

    return start.iterate(body)


def _with_nulls_plainly(first: Rows, second: Rows) -> Rows:
    start = plainly.distinct(first)
    along = plainly.filter_rows(plainly.distinct(second), lambda row: cast(int, row[0]) > 0)

    def step(x: Rows) -> Rows:
        kept = plainly.filter_rows(x, lambda row: cast(int, row[1]) > 1 and cast(int, row[0]) > 0)
        paired = plainly.join(kept, along)
        some = plainly.map_rows(paired, lambda row: (row[2], row[1]))
        larger = plainly.filter_rows(paired, lambda row: cast(int, row[2]) > cast(int, row[1]))
        more = plainly.map_rows(larger, lambda row: (row[1], row[2]))
        by_value = plainly.filter_rows(x, lambda row: cast(int, row[1]) > 2)
        turned = plainly.map_rows(by_value, lambda row: (row[1], row[0]))
        own = plainly.map_rows(plainly.join(turned, along), lambda row: (row[1], row[2]))
        return plainly.distinct(plainly.concat(some, start, more, own))

    return plainly.iterate(start, step)


BODIES: dict[str, tuple[Two, TwoPlainly]] = {
    "distances": (_distances, _distances_plainly),
    "reach": (BINARY["reach in a loop"].build, BINARY["reach in a loop"].plain),
    "labels": _unary("least label in a loop"),
    "closure": (_closure, _closure_plainly),
    "counted": (_counted, _counted_plainly),
    "in turns": (_in_turns, _in_turns_plainly),
    "functions": (_by_functions, _by_functions_plainly),
    "filtered": (_filtered, _filtered_plainly),
    "nested": (_nested, _nested_plainly),
    "with itself": (_with_itself, _with_itself_plainly),
    "read by groups": (_read_by_groups, _read_by_groups_plainly),
    "nulls": (_with_nulls, _with_nulls_plainly),
}


# same_


@pytest.mark.parametrize("name", BODIES)
def test_same_as_without_and_as_is_meant_at_every_epoch(name: str) -> None:
    few = (3, 12, 12) if name == "nested" else (3, 14)

    @examples(1)
    @given(scripts, st.sampled_from([None, few]), st.sampled_from([1, 3, 4096]))
    def holds(script: list[Step], bits: tuple[int, ...] | None, turns: int) -> None:
        # After so many gates others have their turn: what is still to be done must not be forgotten then.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop_region, "_TURNS_MAX", turns)
            patch.setattr(loop_region, "_OTHER_TURNS_MAX", min(turns, 64))
            check(*BODIES[name], script, bits)

    holds()


# Between two calls


def _without_gates_behind(first: Collection, second: Collection) -> Collection:
    """The pairs of two joins with one arrangement are what leaves, as soon as they are made."""
    along = second.select(k=col.k, w=col.v)

    def body(x: Collection) -> Collection:
        turned = x.select(k=col.v, v=col.k + 100).filter(col.v < 104)
        pairs = turned.join(along, on="k").select(k=col.w, v=col.v)
        return x.join(along, on="k").filter(col.v < 4).select(k=col.w, v=col.v + 1).concat(first, pairs)

    return first.iterate(body)


def test_rows_on_their_way_out_count_from_a_later_epoch_and_are_known_too() -> None:
    found = []
    for are_on in (True, False):
        cluster = installed(_without_gates_behind, are_on, bits=(3, 14))
        (instance,) = cluster.instances
        first, second = instance.inputs["first"], instance.inputs["second"]
        cluster.change("first", [((0, 0), 1)], 0)
        cluster.change("second", [((0, 1), 1)], 0)
        cluster.seal()
        cluster.run()
        for epoch in range(1, 10):  # the second input is ahead; in the first one epoch 5 is open for long
            if epoch == 5:
                cluster.change("second", [((0, 2), 1)], epoch)
            second.seal()
            cluster.run()
        cluster.change("second", [((0, 3), 1)], 10)  # it waits, so that the anchor moves
        waited = 0
        for _ in range(1, 12):
            first.seal()
            cluster.run()
            if are_on and instance.anchor.epoch < _complete(cluster) <= 5:
                region = instance.regions[0].region
                assert isinstance(region, LoopRegion)
                slots = [slot for slot, *_ in region._parts.leaving if region._slots.rows(slot)]
                shown: list[int] = []
                region.symbols(cast(Mark, _Shown(shown)))
                for slot in slots:
                    waited += 1
                    assert set(region._slots.look(slot)[:-2].ravel().tolist()) <= set(shown)
        assert waited or not are_on
        cluster.close()
        cluster.run()
        found.append(cluster.changes("result"))
    assert found[0] == found[1]
    assert sorted(found[0]) == [(0,), (5,), (10,)]


class _Shown:
    """In the place of a `Mark`: notes words."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def words(self, words: Int64s) -> None:
        self._words += words.ravel().tolist()


def _ways(first: Collection, second: Collection) -> Collection:
    """From how many reached keys an edge leads to a key: answers that the loop itself looks up by key."""
    along, start = second.select(k=col.k, w=col.v), first.select(k=col.k, v=1)
    return start.iterate(
        lambda x: x.join(along, on="k").select(k=col.w, v=1).concat(start).group_by("k").agg(v=dd.count())
    )


def test_answers_are_not_kept_where_nothing_more_comes_to_look_them_up() -> None:
    found, kept = [], []
    for are_on in (True, False):
        cluster = installed(_ways, are_on)
        (instance,) = cluster.instances
        cluster.change("second", [((k, k + 1), 1) for k in range(5)], 0)
        cluster.change("first", [((0, 0), 1)], 0)
        cluster.seal()
        cluster.run()
        instance.inputs["second"].close()
        cluster.run()
        for epoch in range(1, 200):
            changed = [((k, 0), 1 if epoch % 2 else -1) for k in range(4)]
            cluster.change("first", [*changed, ((epoch + 10, 0), 1)], epoch)
            instance.inputs["first"].seal()
            cluster.run()
        assert is_region(cluster) == are_on
        found.append(cluster.changes("result"))
        kept.append(trace_rows(cluster))
    assert found[0] == found[1]
    assert kept[0] <= kept[1]


def test_all_that_waits_counts_from_a_later_epoch() -> None:
    """Also where the anchor moves in the middle of an epoch, with times pending and rows in machines."""
    cluster = installed(_distances, True)
    region, layout = cluster.instances[0].regions[0].region, cluster.instances[0].frozen.layout
    assert isinstance(region, LoopRegion)
    by, slots = Rebase(2, layout.shifts[0]), region._slots
    word = 5 << layout.shifts[0] | 3
    pending = {gate.pending for gate in region._gates if gate.pending >= 0}
    assert pending
    for slot in range(len(slots)):
        time = -1 if slot in pending else -2
        words: Int64s = np.ones((len(slots.look(slot)), 1), np.int64)
        words[time] = word
        slots.put(slot, words, time)
    for gate in region._gates:
        gate.held = np.array([word], np.int64)
    region._state[X_FROM], region._state[X_BOUND] = 1 << layout.shifts[0], 6 << layout.shifts[0]
    region.rebase(by)
    for slot in range(len(slots)):
        assert slots.look(slot)[-1 if slot in pending else -2].tolist() == [by.word(word)], slot
        assert slots.least(slot) == by.word(word)
    for gate in region._gates:
        assert gate.held.tolist() == [by.word(word)]
    assert (region._state[X_FROM], region._state[X_BOUND]) == (0, 4 << layout.shifts[0])
    assert slots.bound == region._state[X_BOUND]
