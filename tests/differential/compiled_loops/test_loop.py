"""loop.py: a compiled loop gives what an ordinary one gives, at every epoch.

same_*   random inputs, epochs and turns: what has left is the plain meaning, and the same as without regions
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pytest
from built_flows import built_before
from hypothesis import given
from hypothesis import strategies as st
from loop_bodies import BODIES, Two, TwoPlainly, distances
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at
from reference.dataflow import Cluster, trace_rows
from strategies_collections import NUMBERS, examples

import differential as dd
import timely
from differential import Collection, col
from differential.columns.column_types import Int64s
from differential.columns.update_batch import UpdateBatch
from differential.compiled_loops import loop as loop_module
from differential.compiled_loops import slots as slots_module
from differential.compiled_loops.loop import KernelLoop
from differential.kernels.compiled_loops.layout import (
    X_BOUND,
    X_COUNTED,
    X_FROM,
)
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark
from timely.running.stages.connector import Connector


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
        return Cluster(flow, built=built_before(build, are_on, bits))


def is_region(cluster: Cluster) -> bool:
    """Whether any loop is one."""
    return bool(cluster.instances[0].loops)


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


# same_


@pytest.mark.parametrize("name", BODIES)
def test_same_as_without_and_as_is_meant_at_every_epoch(name: str) -> None:
    few = (3, 12, 12) if name.startswith("nested") else (3, 14)

    @examples(1)
    @given(scripts, st.sampled_from([None, few]), st.sampled_from([1, 3, 4096]))
    def holds(script: list[Step], bits: tuple[int, ...] | None, turns: int) -> None:
        # After so many barriers others have their turn: what is still to be done must not be forgotten then.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop_module, "_TURNS_MAX", turns)
            patch.setattr(loop_module, "_OTHER_TURNS_MAX", min(turns, 64))
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
                region = instance.loops[0].loop
                assert isinstance(region, KernelLoop)
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
    cluster = installed(distances, True)
    region, layout = cluster.instances[0].loops[0].loop, cluster.instances[0].frozen.layout
    assert isinstance(region, KernelLoop)
    by, slots = Rebase(2, layout.shifts[0]), region._slots
    word = 5 << layout.shifts[0] | 3
    pending = {barrier.pending for barrier in region._barriers if barrier.pending >= 0}
    assert pending
    for slot in range(len(slots)):
        time = -1 if slot in pending else -2
        words: Int64s = np.ones((len(slots.look(slot)), 1), np.int64)
        words[time] = word
        slots.put(slot, words, time)
    for barrier in region._barriers:
        barrier.held = np.array([word], np.int64)
    region._state[X_FROM], region._state[X_BOUND] = 1 << layout.shifts[0], 6 << layout.shifts[0]
    region.rebase(by)
    for slot in range(len(slots)):
        assert slots.look(slot)[-1 if slot in pending else -2].tolist() == [by.word(word)], slot
        assert slots.least(slot) == by.word(word)
    for barrier in region._barriers:
        assert barrier.held.tolist() == [by.word(word)]
    assert (region._state[X_FROM], region._state[X_BOUND]) == (0, 4 << layout.shifts[0])
    assert slots.bound == region._state[X_BOUND]


def test_what_went_round_before_the_anchor_moved_is_told_of_its_own_epoch() -> None:
    """Where regions go in step the anchor moves in the middle of a stretch, at whose end it is told."""
    cluster = installed(distances, True)
    (instance,) = cluster.instances
    region, shift = instance.loops[0].loop, instance.frozen.layout.shifts[0]
    assert isinstance(region, KernelLoop)
    number, use = next(
        (number, use)
        for number, use in region._parts.uses.items()
        if isinstance(use, Connector) and use.iteration_counts is not None
    )
    region._round_counts[:, 0], region._round_counts[:, 1] = (
        (number, 5 << shift | 3, 7),
        (number, 1 << shift | 2, 8),
    )
    region._state[X_COUNTED] = 2
    by = Rebase(2, shift)
    use.rebase(by)
    region.rebase(by)
    region.send()
    assert use.iteration_counts is not None
    assert list(use.iteration_counts) == [((1 << shift | 2) - by.step, 8), (3 << shift | 3, 7)]


def test_rows_that_leave_and_are_packed_are_of_the_time_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the iterations of an epoch add up to is one row."""
    monkeypatch.setattr(slots_module, "SLOT_LOOSE_ROWS_MAX", 600)
    cluster = installed(distances, True)
    region, shift = cluster.instances[0].loops[0].loop, cluster.instances[0].frozen.layout.shifts[0]
    assert isinstance(region, KernelLoop)
    slots, sent = region._slots, list[tuple[object, int]]()

    class Use:
        def send_moved(self, batch: UpdateBatch, word: int) -> None:
            sent.append((batch.words[-2:].tolist(), word))

    first = next(each for each in region._parts.leaving if each.way == "summed")
    slot, keep, add = first.slot, first.keep, first.add
    region._parts.leaving[:] = [first._replace(uses=[Use()])]  # type: ignore[list-item]
    for iteration in range(3):
        words: Int64s = np.ones((len(slots.look(slot)), 600), np.int64)
        words[-2] = 5 << shift | iteration
        slots.put(slot, words)
    assert slots.packed[slot]
    region.send()
    outside = ((5 << shift) & keep) + add
    assert sent == [([[outside], [1800]], outside)]
    assert slots.rows(slot) == 0 and slot not in slots.packed


def _least_in_turn(dataflow: Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "k: int, v: int")
    after = rows.iterate(
        lambda inner: inner.select(k=(col.k + 1) % 3, v=col.v).concat(rows).group_by("k").agg(v=dd.min("v"))
    )
    after.output("least")


@pytest.mark.parametrize("is_long", [True, False])
def test_behind_a_span_of_very_many_epochs_keys_have_few_rows_again(
    is_long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever completes a history in pieces would have each one meet all rows of those before."""
    if not is_long:
        monkeypatch.setattr(loop_module, "LONG_EPOCHS", 1 << 20)
    epochs = 300
    comes, goes = range(epochs), range(1, epochs)
    history = pa.table(
        {
            "k": [0] * (2 * epochs - 1),
            "v": [*(-epoch for epoch in comes), *(1 - epoch for epoch in goes)],
            "epoch": [*comes, *goes],
            "diff": [1] * epochs + [-1] * (epochs - 1),
        }
    )
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(_least_in_turn)
        flow.input("rows").append(history, epoch="epoch")
        flow.wait(flow.seal(through=epochs - 1))
        flow.input("rows").insert([(1, 5)])
        flow.wait(flow.seal())
        assert sorted(flow.output("least").snapshot().to_pylist(), key=lambda row: row["k"]) == [
            {"k": k, "v": 1 - epochs} for k in range(3)
        ]
        (stats,) = cast("list[dict[str, list[dict[str, list[dict[str, object]]]]]]", cluster.stats())
    stages = stats["dataflows"][0]["stages"]
    kept = [int(cast(int, stage["trace_rows"])) for stage in stages if "trace_rows" in stage]
    assert (sum(kept) < epochs) == is_long, kept
