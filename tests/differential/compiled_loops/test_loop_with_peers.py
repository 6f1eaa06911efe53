"""loop.py: a compiled loop of several workers gives what is meant, at every epoch.

same_*   random inputs at all workers, epochs, and orders of what workers do, compaction in between
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pytest
from built_flows import built_before
from hypothesis import given
from hypothesis import strategies as st
from loop_bodies import BODIES, Two, TwoPlainly
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.collection import Row, accumulated_at
from reference.dataflow import Cluster, trace_rows
from ring_network import RingNetwork
from strategies_collections import NUMBERS, examples, repeat_until
from views_of_progress import Views

import differential as dd
from differential.columns.packed.block import Block
from differential.compiled_loops import loop as loop_module
from differential.compiled_loops import round_messages, slots
from differential.compiled_loops.loop import KernelLoop
from differential.compiled_loops.round_messages import RoundMessage
from differential.kernels.compiled_loops.layout import (
    FAR,
    K_BARRIER,
    P_KIND,
    S_COLUMNS,
    S_COMPONENTS,
    S_NEXT,
)
from differential.thresholds import STEP_ROWS_MAX
from progress.errors import PeerError
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.operators.compiled_loop import Vote
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.wire.transport.ring import IS_POSSIBLE

BOTH = ("first", "second")
ALL = -1
LEAPS = (3, 7, 30, 1 << 50)
"""Where an epoch has three bits, words have no room for all of these."""


class Step(NamedTuple):
    """What clients do: changes of both inputs, each at some worker and so many epochs ahead; then some inputs
    are sealed at some workers, in this order, so many epochs at once. Then so many moves are made, in any
    order, or all there are.
    """

    changes: Sequence[tuple[int, int, int, Row, int]]
    seals: Sequence[tuple[int, int]]
    moves: int
    leap: int = 1


def steps(workers: int) -> st.SearchStrategy[list[Step]]:
    """`changes`: input, worker, epochs ahead, row, difference. `seals`: input and worker."""
    which, worker, small = st.integers(0, 1), st.integers(0, workers - 1), st.integers(0, 4)
    row = st.tuples(small, small)
    change = st.tuples(which, worker, st.integers(0, 2), row, st.sampled_from([1, 1, 1, 2, -1]))
    every = [(n, at) for n in range(2) for at in range(workers)]
    # Some inputs at some workers may stay behind: then rows of open epochs wait in the loop for long.
    seals = st.one_of(st.permutations(every), st.permutations(every), st.lists(st.sampled_from(every)))
    moves = st.sampled_from([0, 3, 10, 40, ALL])
    leaps = st.sampled_from([1, 1, 1, 1, *LEAPS])
    return st.lists(
        st.builds(Step, st.lists(change, max_size=8), seals, moves, leaps), min_size=1, max_size=8
    )


def installed(
    build: Two, workers: int, seed: int, bits: tuple[int, ...] | None, network: RingNetwork | None = None
) -> Cluster:
    """Workers that run a loop over two inputs of (k, v); each has a region."""

    def flow(flow: Dataflow) -> None:
        first, second = dd.input(flow, "first", NUMBERS), dd.input(flow, "second", NUMBERS)
        build(first, second).output("result")
        if bits is not None:
            flow.level_bits = bits

    built = built_before(build, bits)
    cluster = Cluster(flow, workers=workers, seed=seed, network=network, built=built)
    if network is not None and network.is_in_turn:
        network.meet(cluster.workers)
    assert all(instance.loops for instance in cluster.instances)
    return cluster


@contextmanager
def sent_packed(are_packed: bool) -> Iterator[None]:
    """Whether all rows that Python sends to other workers go packed, however few they are."""
    with pytest.MonkeyPatch.context() as limits:
        if are_packed:
            limits.setattr(round_messages, "PACKED_ROWS_MIN", 1)
        yield


def check(
    build: Two,
    plain: TwoPlainly,
    workers: int,
    script: Sequence[Step],
    seed: int,
    bits: tuple[int, ...] | None,
    network: RingNetwork | None = None,
) -> None:
    """What has left is the plain meaning at every epoch; in the end nothing is kept."""
    cluster, rng = installed(build, workers, seed, bits, network), random.Random(seed)
    views = Views(cluster)
    given_at = defaultdict[int, tuple[Rows, Rows]](lambda: (Rows(), Rows()))
    sealed = dict.fromkeys([(n, at) for n in range(2) for at in range(workers)], 0)
    last = Step((), list(sealed), ALL)
    for step in [*script, *[last] * 3]:
        for which, worker, ahead, row, diff in step.changes:
            epoch = sealed[which, worker] + ahead
            given_at[epoch][which][row] += diff
            cluster.change(BOTH[which], [(row, diff)], epoch, worker)
        for which, worker in step.seals:
            sealed[which, worker] += step.leap
            with cluster.turn_of(worker):
                cluster.instances[worker].inputs[BOTH[which]].seal(sealed[which, worker] - 1)
        if step.moves == ALL:
            cluster.run()
            complete = [instance.output("result").complete_before for instance in cluster.instances]
            assert complete == [min(sealed.values())] * workers, (complete, sealed)
        else:
            cluster.harry(rng, step.moves)
    cluster.close()
    cluster.run()
    found = cluster.changes("result")
    so_far = (Rows(), Rows())
    for epoch in sorted({*given_at, *(epoch for (epoch,) in found), max(sealed.values()) + 2}):
        for rows, more in zip(so_far, given_at[epoch], strict=True):
            for row, diff in more.items():
                rows[row] += diff
        meant = plain(*(plainly.collection(rows) for rows in so_far))
        assert accumulated_at(found, (epoch,)) == meant, epoch
    assert all(instance.is_complete() for instance in cluster.instances)
    assert trace_rows(cluster) == 0, "nothing will come"
    assert views.looked, "views were held to the truth"


@pytest.mark.parametrize("name", BODIES)
def test_same_as_is_meant_with_two_and_three_workers_in_any_order(name: str) -> None:
    few = (3, 12, 12) if name.startswith("nested") else (3, 14)  # the anchor moves

    @examples(1)
    @given(
        st.sampled_from([2, 2, 3]).flatmap(lambda count: st.tuples(st.just(count), steps(count))),
        st.integers(0, 1 << 30),
        st.sampled_from([None, few]),
        st.booleans(),
    )
    def holds(
        drawn: tuple[int, list[Step]], seed: int, bits: tuple[int, ...] | None, are_packed: bool
    ) -> None:
        with sent_packed(are_packed):
            check(*BODIES[name], *drawn, seed, bits)

    holds()


@pytest.mark.skipif(not IS_POSSIBLE, reason="a host without rings")
@pytest.mark.parametrize("name", BODIES)
def test_same_where_loops_go_on_by_themselves_from_ring_to_ring(name: str) -> None:
    """Where memory is small, round messages go through sockets, too; where it is large, most are kernels'. In
    turn, a worker that waits lets the others go on meanwhile.
    """
    few = (3, 12, 12) if name.startswith("nested") else (3, 14)
    went = 0

    @examples(1)
    @given(
        st.sampled_from([2, 2, 3]).flatmap(lambda count: st.tuples(st.just(count), steps(count))),
        st.integers(0, 1 << 30),
        st.sampled_from([None, few]),
        st.sampled_from([1 << 12, 1 << 13, 1 << 16]),
        st.booleans(),
        st.booleans(),
    )
    def holds(
        drawn: tuple[int, list[Step]],
        seed: int,
        bits: tuple[int, ...] | None,
        size: int,
        are_packed: bool,
        is_in_turn: bool,
    ) -> None:
        nonlocal went
        network = RingNetwork(drawn[0], size, seed, is_in_turn)
        try:
            with sent_packed(are_packed):
                check(*BODIES[name], *drawn, seed, bits, network)
        finally:
            network.close()
        went += network.lent

    repeat_until(lambda: went > 0, holds)
    assert went > 0


@pytest.mark.parametrize("name", ["three in order", "three by the fewest", "nested three"])
def test_what_is_from_before_a_span_stays_so_where_no_row_is_of_its_first_epochs(name: str) -> None:
    """Lookups tell it by its time, which compaction moves on as far as nobody can ask."""
    every = [(n, at) for n in range(2) for at in range(2)]
    same = [(0, 0, 0, (0, 0), 1)]
    first = [(0, 0, 1, (0, 2), 1), (0, 0, 2, (1, 4), 1), (1, 0, 0, (4, 2), 1)]
    later = [(0, 1, 0, (0, 3), 1), (1, 0, 0, (0, 2), -1), (1, 0, 2, (1, 0), 1)]
    script = [
        Step(same * 8, every, 3, 3),
        Step(same * 5 + first, every, 0, 30),
        Step([], [(0, 0)] * 5 + [(0, 1)] * 2, ALL, 1),
        Step(same * 5 + later, every, 0, 1),
        *[Step([], every, moves, 1) for moves in (0, 40, 0)],
    ]
    for seed in range(60):
        check(*BODIES[name], 2, script, seed, None)


@pytest.mark.parametrize("name", ["distances", "closure", "counted"])
@pytest.mark.parametrize("by_rings", [False, True])
def test_same_where_many_rows_go_packed_and_wait_so_at_their_barriers(
    name: str, by_rings: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_rings and not IS_POSSIBLE:
        pytest.skip("a host without rings")
    monkeypatch.setattr(round_messages, "PACKED_ROWS_MIN", 100)
    monkeypatch.setattr(slots, "SLOT_LOOSE_ROWS_MAX", 2 * STEP_ROWS_MAX)
    kept: list[int] = []
    put_block = slots.Slots._put_block
    monkeypatch.setattr(
        slots.Slots, "_put_block", lambda self, slot, block: (kept.append(slot), put_block(self, slot, block))
    )
    rng = random.Random(7)
    first = [(0, rng.randrange(400), 1) for _ in range(300)]
    second = [(rng.randrange(400), rng.randrange(400), 1) for _ in range(3_000)]
    if name == "closure":
        first, second = [(n, n + 1, 1) for n in range(80)], []
    changes = [(0, rng.randrange(2), 0, (k, v), diff) for k, v, diff in first]
    changes += [(1, rng.randrange(2), 0, (k, v), diff) for k, v, diff in second]
    every = [(n, at) for n in range(2) for at in range(2)]
    fewer = [(which, at, ahead, row, -diff) for which, at, ahead, row, diff in changes[::7]]
    network = RingNetwork(2, 1 << 16, 7) if by_rings else None
    try:
        check(*BODIES[name], 2, [Step(changes, every, ALL), Step(fewer, every, ALL)], 7, None, network)
    finally:
        if network is not None:
            network.close()
    assert kept, "none of them was much"


@pytest.mark.parametrize("leap", [7, 1 << 50])
def test_leaps_one_after_the_other_are_done_whoever_hears_of_them_first(leap: int, seed: int) -> None:
    """Where words have no room, what is far has one stand-in: that it is another leap makes no difference
    there."""
    rng = random.Random(seed)
    for _ in range(80):
        workers = rng.choice([2, 3])
        every = [(n, at) for n in range(2) for at in range(workers)]
        script = [
            Step(
                [(rng.randrange(2), rng.randrange(workers), 1, (0, 1), 1)] * rng.choice([0, 0, 1]),
                rng.sample(every, len(every)),
                rng.choice([10, 20, 40]),
                leap,
            )
            for _ in range(2)
        ]
        check(*BODIES["distances"], workers, script, rng.randrange(1 << 30), (3, 14))


def test_a_span_reaches_as_far_as_was_said_when_words_count_from_a_later_epoch() -> None:
    """Its bound is further ahead than three bits can say, until the anchor moves in the middle of it."""
    instance = installed(BODIES["distances"][0], 2, 0, (3, 14)).instances[0]
    runner = instance.loops[0]
    assert isinstance(runner, CompiledLoopRunner) and isinstance(runner.loop, KernelLoop)
    runner._done, runner.held = 20, runner._word(20)
    runner._close(50)
    runner._send_vote(50)
    instance.anchor.epoch = 19
    runner.rebase(Rebase(19, runner._shift))
    region = runner.loop
    out, barrier = next(iter(region._to_barriers.items()))
    region._slots.put(out, _rows(len(region._slots.look(out)), runner._word(21) | 5))
    assert region.next_barrier() == (barrier, 5)


# One worker's share


def _loop(name: str = "distances", workers: int = 2) -> KernelLoop:
    region = installed(BODIES[name][0], workers, 0, None).instances[0].loops[0].loop
    assert isinstance(region, KernelLoop)
    return region


def _said(number: int = 0) -> Vote:
    return Vote(1, number, 1, 0, -1, 0, False, False, b"")


def _rows(columns: int, time: int, count: int = 1) -> np.ndarray:
    words = np.arange(columns * count, dtype=np.int64).reshape(columns, count)
    words[-2], words[-1] = time, 1
    return words


def test_what_leaves_for_a_barrier_counts_where_the_barrier_opens_next() -> None:
    region = _loop()
    region.close(0, 1 << region._parts.epoch_shift)
    (out, barrier), *_ = region._to_barriers.items()
    columns = len(region._slots.look(out))
    assert region.next_barrier() is None and region.first() is None and not region.passes()
    region._slots.put(out, _rows(columns, 3))
    assert region.next_barrier() == (barrier, 3)
    assert region.first() == 0 and not region.passes()


def test_rows_that_have_come_in_rest_until_they_are_very_many_packed_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = _loop()
    slot, *_ = region._parts.passing
    words = _rows(len(region._slots.look(slot)), 0, STEP_ROWS_MAX + 1)
    region._slots.put(slot, words)
    assert region.rests(), "their epoch is open"
    for most, rests in ((STEP_ROWS_MAX + 1, False), (STEP_ROWS_MAX + 2, True)):
        monkeypatch.setattr(loop_module, "GATHERED_ROWS_MAX", most)
        assert region.rests() == rests
    monkeypatch.setattr(loop_module, "GATHERED_ROWS_MAX", 2 * STEP_ROWS_MAX + 1)
    assert region.rests()
    monkeypatch.setattr(slots, "SLOT_LOOSE_ROWS_MAX", 1)
    region._slots.put_packed(
        slot, [Block(words[:, :STEP_ROWS_MAX].copy()), Block(words[:, STEP_ROWS_MAX:].copy())]
    )
    assert region._slots.packed_rows == STEP_ROWS_MAX + 1 and not region.rests()
    region.pass_on()
    assert region.rests() and region._slots.rows(slot) == region._slots.packed_rows == 0


def test_rows_of_epochs_that_are_closed_later_count_from_then_on() -> None:
    region = _loop()
    shift = region._parts.epoch_shift
    region.close(0, 1 << shift)
    out, barrier = next(iter(region._to_barriers.items()))
    region._slots.put(out, _rows(len(region._slots.look(out)), 1 << shift | 5))
    assert region.next_barrier() is None and region.first() == 1 << shift
    region.close(1 << shift, 2 << shift)
    assert region.next_barrier() == (barrier, 5)


def test_rows_for_each_other_worker_are_found_when_their_epoch_is_closed() -> None:
    """For barriers and for what needs none: the least counters of those that are closed by then."""
    region = _loop(workers=3)
    shift, slots = region._parts.epoch_shift, region._slots
    outs = [out.slot for out in region._parts.outs]
    assert len(outs) == 2, "one for each of the others"
    region.close(0, 1 << shift)
    for number, out in enumerate(outs):
        for time in (2 << shift | 3, 1 << shift | 7 + number, 1 << shift | 9 + number):
            slots.put(out, _rows(len(slots.look(out)), time))
    assert all(slots.table[out, S_NEXT] == FAR for out in outs)
    region.close(1 << shift, 2 << shift)
    assert slots.table[outs, S_NEXT].tolist() == [7 + number for number in range(len(outs))]
    region.close(1 << shift, 3 << shift)
    assert slots.table[outs, S_NEXT].tolist() == [3] * len(outs)


def test_what_a_barrier_keeps_outside_of_slots_counts_once_its_epoch_is_closed() -> None:
    region = _loop()
    shift = region._parts.epoch_shift
    number, barrier = next(iter(region._parts.barriers.items()))
    barrier.held = np.array([1 << shift | 5], np.int64)
    region._find_held()
    region.close(0, 1 << shift)
    assert region.next_barrier() is None and region.first() == 1 << shift
    region.close(1 << shift, 2 << shift)
    assert region.next_barrier() == (number, 5)


@pytest.mark.parametrize("is_python", [False, True])
def test_one_barrier_is_opened_and_only_the_one_that_all_have_chosen(is_python: bool) -> None:
    region = _loop()
    region.close(0, 1 << region._parts.epoch_shift)
    number, barrier = next(iter(region._parts.barriers.items()))
    if is_python:
        region._parts.steps[number, P_KIND] = K_BARRIER
    columns = len(region._slots.look(barrier.slot))
    for counters in (3, 7):
        region._slots.put(barrier.slot, _rows(columns, counters))
    region.open(number, 2)
    assert region.next_barrier() == (number, 3), "it was another worker's turn"
    region.open(number, 3)
    assert region.next_barrier() == (number, 7)
    region.open(number, 7)
    assert region.next_barrier() is None


def test_rows_that_leave_for_elsewhere_than_barriers_must_be_passed_on_if_their_epoch_is_closed() -> None:
    region = _loop("closure")
    shift = region._parts.epoch_shift
    region.close(0, 1 << shift)
    out = region._elsewhere[0]
    columns = len(region._slots.look(out))
    region._slots.put(out, _rows(columns, 1 << shift))
    assert not region.passes(), "they have time"
    region._slots.put(out, _rows(columns, 7))
    assert region.passes()


def test_a_message_takes_all_rows_of_one_worker_along() -> None:
    region = _loop(workers=3)
    outs = [out for out in region._parts.outs if out.target == region._parts.outs[0].target]
    assert [out.peer for out in outs] == [1, 2]
    for out in outs:
        region._slots.put(out.slot, _rows(len(region._slots.look(out.slot)), out.peer, 2))
    beat = region.message(_said(), 2)
    assert isinstance(beat, RoundMessage) and beat.rows == 2
    ((target, words),) = beat.parts
    assert target == outs[1].target and words[-2].tolist() == [2, 2]
    assert [region._slots.rows(out.slot) for out in outs] == [2, 0]
    assert region.message(_said(), 2).rows == 0


def test_many_rows_of_one_worker_go_packed_and_few_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_messages, "PACKED_ROWS_MIN", 4)
    region = _loop()
    (out, *_) = region._parts.outs
    columns = len(region._slots.look(out.slot))
    sent: list[list[bool]] = []
    for rows in (3, 4):
        region._slots.put(out.slot, _rows(columns, 0, rows))
        beat = region.message(_said(), out.peer)
        assert isinstance(beat, RoundMessage) and beat.rows == rows
        sent.append([isinstance(part, Block) for _, part in beat.parts])
    assert sent == [[False], [True]]


@pytest.mark.parametrize("held", [0, STEP_ROWS_MAX + 1])
def test_rows_that_come_packed_wait_as_they_came_where_many_do(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also then so many are words that a kernel leaves the slot to Python."""
    monkeypatch.setattr(slots, "SLOT_LOOSE_ROWS_MAX", 2 * STEP_ROWS_MAX)
    region = _loop()
    region.close(0, 1 << region._parts.epoch_shift)
    target = region._parts.outs[0].target
    columns = len(region._slots.look(target))
    if held:
        region._slots.put(target, _rows(columns, 9, held))
    words = _rows(columns, 7, 3 * STEP_ROWS_MAX)
    words[0] = range(3 * STEP_ROWS_MAX)
    words[-2, 100], words[-2, 2 * STEP_ROWS_MAX] = 5, 3
    region.hear(RoundMessage(_said(), ((target, Block(words)),)))
    table = region._slots.table[target]
    assert region._slots.rows(target) == STEP_ROWS_MAX + 1
    assert region._slots.packed_rows == 3 * STEP_ROWS_MAX + held - STEP_ROWS_MAX - 1
    assert region._slots.least(target) == 3 and table[S_NEXT] == 3
    found = region._slots.take(target)
    meant = np.concatenate([words, _rows(columns, 9, held)], axis=1) if held else words
    assert Counter(map(tuple, found.T.tolist())) == Counter(map(tuple, meant.T.tolist()))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("wrong", ["slot", "columns"])
def test_rows_for_no_slot_of_those_that_come_from_others_are_refused(wrong: str, is_packed: bool) -> None:
    region = _loop()
    target = region._parts.outs[0].target
    columns = len(region._slots.look(target))
    fine = (target, _rows(columns, 0))
    region.hear(RoundMessage(_said(), (fine,)))
    assert region._slots.least(target) == 0 != FAR
    slot = region._parts.outs[0].slot if wrong == "slot" else target
    words = _rows(columns + (wrong == "columns"), 0)
    bad = (slot, Block(words) if is_packed else words)
    with pytest.raises(PeerError, match=r"worker 1 sent rows of \d words for slot \d+ of a loop"):
        region.hear(RoundMessage(_said(), (bad,)))


@pytest.mark.parametrize("barrier", [99, 1 << 62, 0])
def test_a_barrier_that_is_none_is_refused(barrier: int) -> None:
    """Where several are named, they are put in order."""
    region = _loop()
    assert 0 not in region._parts.barriers, "a step that is no barrier"
    with pytest.raises(PeerError, match=rf"worker 1 named barrier {barrier} of a loop"):
        region.hear(RoundMessage(_said()._replace(barrier=barrier), ()))


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("component", [-1, 99, 1 << 62])
def test_rows_of_no_component_of_a_sum_are_refused(component: int, is_packed: bool) -> None:
    """A kernel would write where they say."""
    region = _loop("counted")
    table = region._slots.table
    target = next(out.target for out in region._parts.outs if table[out.target, S_COMPONENTS])
    assert table[target, S_COMPONENTS] == 3, "how many rows, and two limbs"
    rows = _rows(int(table[target, S_COLUMNS]), 0, 5)
    rows[-3] = [0, 1, 2, 0, 1]
    region.hear(RoundMessage(_said(), ((target, rows),)))
    assert region._slots.rows(target) == 5
    wrong = rows.copy()
    wrong[-3, 4] = component
    with pytest.raises(PeerError, match=r"worker 1 sent rows for slot \d+ .* of none of its 3 components"):
        region.hear(RoundMessage(_said(), ((target, Block(wrong) if is_packed else wrong),)))
    assert region._slots.rows(target) == 5


def test_barriers_have_one_order_with_all_workers() -> None:
    """That of the kernel: by counter and place, outermost first."""
    region = _loop("nested")
    parts = region._parts
    shifts = parts.fields[0].tolist()
    inner = [barrier for barrier, levels in parts.levels.items() if levels == 2]
    outer = [barrier for barrier, levels in parts.levels.items() if levels == 1]
    assert inner and outer
    early, late = 1 << shifts[1], 2 << shifts[1]
    assert region.order(inner[0], early | 3) < region.order(inner[0], early | 4)
    assert region.order(inner[0], early | 4) < region.order(inner[0], late)
    assert region.order(outer[-1], early) < region.order(inner[0], late)
    assert region.order(inner[0], early | 9) < region.order(outer[-1], early), "the inner loop comes first"


# Words that are symbols


def _reach_by_name(flow: Dataflow) -> None:
    edges = dd.input(flow, "edges", "src: string, dst: string").distinct()

    def further(reached: dd.Collection) -> dd.Collection:
        longer = reached.join(edges.select(dst=dd.col.src, to=dd.col.dst), on="dst")
        return longer.select("src", dst=dd.col.to).concat(edges).distinct()

    edges.iterate(further).output("reach")


def _closed(edges: set[Row]) -> set[Row]:
    further = edges | {(a, d) for a, b in edges for c, d in edges if b == c}
    return edges if further == edges else _closed(further)


def test_names_go_round_between_workers_that_know_different_ones_and_forget_them() -> None:
    forgotten = 0
    for seed in range(8):
        rng = random.Random(seed)
        workers = rng.choice([2, 3])
        cluster = Cluster(_reach_by_name, workers, seed, own_symbols=True, forgets=True)
        assert all(instance.loops for instance in cluster.instances)
        present: set[Row] = set()
        for epoch in range(12):
            for _ in range(rng.randrange(3)):
                edge = (f"{epoch // 4} {rng.randrange(6)}", f"{epoch // 4} {rng.randrange(6)}")
                diff = 1 if edge not in present else -1
                present ^= {edge}
                cluster.change("edges", [(edge, diff)], None, rng.randrange(workers))
            cluster.seal()
            cluster.harry(rng, rng.choice([0, 5, 20, 60]))
            if rng.random() < 0.3:
                cluster.run()
                assert set(cluster.snapshot("reach")) == _closed(present), (seed, epoch)
        cluster.run()
        assert set(cluster.snapshot("reach")) == _closed(present), seed
        forgotten += cluster.forgotten
    assert forgotten
