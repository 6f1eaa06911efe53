"""Workers that run a compiled loop in rounds: what they hold, when they wait, and how far an epoch may be."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from reference.collection import Collection as Rows
from reference.collection import Row
from reference.dataflow import Cluster, trace_rows
from views_of_progress import Views

import differential as dd
from bench.dataflow.bfs import build, distances
from differential.compiled_loops import loop as loop_module
from differential.compiled_loops.loop import KernelLoop
from differential.compiled_loops.round_messages import RoundMessage
from differential.kernels.compiled_loops.layout import (
    X_BOUND,
    X_FROM,
)
from differential.thresholds import STEP_ROWS_MAX
from progress.errors import PeerError
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.operators.capture import FOREVER
from timely.operators.compiled_loop import Vote, are_alike
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.wire.batch import Batch, Records


def _cluster(workers: int = 2, seed: int = 0) -> Cluster:
    return Cluster(build, workers=workers, seed=seed)


def _regions(cluster: Cluster) -> list[CompiledLoopRunner]:
    found = []
    for instance in cluster.instances:
        (region,) = instance.loops
        assert isinstance(region, CompiledLoopRunner)
        found.append(region)
    return found


def _path(length: int) -> list[tuple[Row, int]]:
    return [((node, node + 1), 1) for node in range(length)]


def _far(length: int) -> Rows:
    return Rows({(node, node): 1 for node in range(length + 1)})


def _load(cluster: Cluster, length: int) -> None:
    cluster.change("roots", [((0,), 1)], 0)
    cluster.change("edges", _path(length), 0, 1)


def test_no_worker_takes_an_epoch_for_done_while_rows_of_it_are_between_loops() -> None:
    for seed in range(20):
        cluster, rng = _cluster(3, seed), random.Random(seed)
        _load(cluster, 12)
        cluster.seal()
        for _ in range(2_000):
            cluster.act(rng.randrange(3), rng)
            done = [instance.epochs_done() for instance in cluster.instances]
            if any(done):
                break
        else:
            pytest.fail("epoch 0 is never done")
        complete = [region._done for region in _regions(cluster)]
        assert complete == [1] * 3, "an epoch is done where every region has said so"
        cluster.run()
        assert cluster.snapshot("distances") == _far(12)


def _sizes(flow: Dataflow) -> None:
    """How many nodes are that far away: rows leave the loop for other workers."""
    edges, roots = dd.input(flow, "edges", "src: int, dst: int"), dd.input(flow, "roots", "node: int")
    distances(edges, roots).group_by("distance").agg(nodes=dd.count()).output("sizes")


def test_a_message_that_is_taken_up_before_it_is_heard_of_takes_nobodys_hold_away() -> None:
    """Of three workers one may have the rows of another before the third does, and before any hears of them.

    (Where a hold counts as one message, a view is ahead in 12 of 30 of these.)
    """
    looked = 0
    for seed in range(20):
        cluster, rng = Cluster(_sizes, workers=3, seed=seed), random.Random(seed)
        views = Views(cluster)
        cluster.change("roots", [((0,), 1)], 0)
        for _ in range(6):
            for worker in range(3):
                drawn = [((rng.randrange(8), rng.randrange(8)), 1) for _ in range(2)]
                cluster.change("edges", drawn, None, worker)
            cluster.seal()
            cluster.harry(rng, rng.choice([0, 5, 20, 40]))
        cluster.run()
        looked += views.looked
    assert looked > 10_000


def test_each_worker_holds_the_first_epoch_that_is_not_done() -> None:
    cluster = _cluster()
    shift = cluster.instances[0].frozen.layout.shifts[0]
    assert [region.held for region in _regions(cluster)] == [0, 0], "from the beginning on"
    _load(cluster, 3)
    cluster.seal()
    cluster.run()
    assert [region.held for region in _regions(cluster)] == [1 << shift] * 2
    cluster.close()
    cluster.run()
    assert [region.held for region in _regions(cluster)] == [None, None]
    assert [instance.epochs_done() for instance in cluster.instances] == [FOREVER] * 2
    assert trace_rows(cluster) == 0, "nothing will come"


def test_a_barrier_waits_for_the_rows_of_the_slowest_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as one has not voted, the others open nothing."""
    cluster = _cluster()
    _load(cluster, 5)
    cluster.run()
    cluster.seal()
    opened: list[int] = []
    open_barrier = KernelLoop.open

    def noted(region: KernelLoop, gate: int, counters: int) -> None:
        opened.append(counters)
        open_barrier(region, gate, counters)

    monkeypatch.setattr(KernelLoop, "open", noted)
    first, second = _regions(cluster)
    second._advance_in_round = lambda: False  # type: ignore[method-assign]
    cluster.run()
    assert first._vote is not None and first._vote.number == 0 and second._vote is None
    assert opened == [] and [instance.epochs_done() for instance in cluster.instances] == [0, 0]
    del second._advance_in_round
    with cluster.turn_of(1):
        second.activate()
    cluster.run()
    assert len(opened) >= 2 * 5 and cluster.snapshot("distances") == _far(5)


def test_bounds_that_differ_are_voted_on_again_and_the_largest_holds() -> None:
    """A worker that hears of a bound when it knows of a larger one says its own."""
    cluster = _cluster()
    _load(cluster, 3)
    cluster.run()
    first, second = _regions(cluster)
    for index in range(2):
        with cluster.turn_of(index):
            for handle in cluster.instances[index].inputs.values():
                handle.seal(4)
    bounds = iter([3, 5])
    for region, bound in zip((first, second), bounds, strict=True):
        region._closed_before = lambda bound=bound: bound  # type: ignore[method-assign]
    said: list[tuple[int, int, int]] = []
    for region in (first, second):
        beat = region.loop.message

        def noted(told: Vote, peer: int, beat: Callable[[Vote, int], Batch] = beat) -> Batch:
            said.append((told.worker, told.number, told.bound))
            return beat(told, peer)

        region.loop.message = noted  # type: ignore[method-assign]
    with cluster.turn_of(0):
        first.activate()
    assert said == [(0, 0, 3)]
    cluster.run()
    assert (1, 0, 5) in said and (0, 1, 5) in said and (1, 1, 5) in said
    assert {bound for _, number, bound in said if number} == {5}
    assert first._done == second._done == 5


def test_rows_of_an_open_epoch_let_nobody_hold_that_and_none_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing else waits with any worker: something may still come in before them."""
    cluster = _cluster()
    _load(cluster, 20)
    for index in range(2):
        cluster.change("edges", [((node, node), 1) for node in range(40)], 3, index)
    _seal(cluster, 4, "edges")
    _seal(cluster, 0, "roots")
    cluster.run()
    regions = _regions(cluster)
    shift = cluster.instances[0].frozen.layout.shifts[0]
    held: list[int] = []
    hold = CompiledLoopRunner._hold_epoch

    def noted(region: CompiledLoopRunner, epoch: int, ended: set[int] | None = None) -> None:
        held.append(epoch)
        hold(region, epoch, ended)

    monkeypatch.setattr(CompiledLoopRunner, "_hold_epoch", noted)
    _seal(cluster, 2, "roots")
    for index, bound in enumerate((2, 3)):
        regions[index]._closed_before = lambda bound=bound: bound  # type: ignore[method-assign]
        with cluster.turn_of(index):
            regions[index].activate()
    cluster.run()
    assert [region.loop.first() for region in regions] == [3 << shift] * 2, "with both of them rows wait"
    assert held == [2, 2, 3, 3], "first they differ in what they know to be closed"


@pytest.mark.parametrize("rests", [True, False])
def test_many_rows_of_an_open_epoch_rest_and_very_many_are_taken_up_as_they_come(
    rests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not rests:
        monkeypatch.setattr(loop_module, "GATHERED_ROWS_MAX", STEP_ROWS_MAX)
    cluster = _cluster()
    _load(cluster, 6 * STEP_ROWS_MAX)
    _seal(cluster, 0, "edges")
    cluster.run()
    assert [region._done for region in _regions(cluster)] == [0, 0]
    waiting = 0
    for region in _regions(cluster):
        loop = region.loop
        assert isinstance(loop, KernelLoop)
        found = [loop._slots.rows(slot) for slot in loop._parts.passing]
        assert rests or max(found) <= STEP_ROWS_MAX
        waiting += sum(found)
    assert (
        (waiting, trace_rows(cluster)) == (6 * STEP_ROWS_MAX, 0)
        if rests
        else trace_rows(cluster) >= 5 * STEP_ROWS_MAX
    )
    _seal(cluster, 0, "roots")
    cluster.run()
    assert cluster.snapshot("distances") == _far(6 * STEP_ROWS_MAX)


def test_an_epoch_far_ahead_is_reached_in_few_rounds() -> None:
    cluster = _cluster()
    _load(cluster, 3)
    cluster.seal()
    cluster.run()
    for epoch in (1 << 30, 1 << 40, 1 << 55):
        before = _regions(cluster)[0]._round
        cluster.seal(epoch)
        cluster.run()
        assert [region._done for region in _regions(cluster)] == [epoch + 1] * 2
        cluster.change("edges", [((0, 3), 1 if epoch < 1 << 35 else -1)], epoch + 1, 1)
        cluster.seal()
        cluster.run()
        assert _regions(cluster)[0]._round < before + 40
        assert [instance.epochs_done() for instance in cluster.instances] == [epoch + 2] * 2


def _beside_another(flow: Dataflow) -> None:
    """A loop, and an input that does not lead to it."""
    build(flow)
    dd.input(flow, "apart", "k: int").output("apart")


def _few_epochs(flow: Dataflow) -> None:
    _beside_another(flow)
    flow.level_bits = (3, 14)


def _seal(cluster: Cluster, epoch: int, *names: str) -> None:
    for index, instance in enumerate(cluster.instances):
        with cluster.turn_of(index):
            for name in names:
                instance.inputs[name].seal(epoch)


def test_an_epoch_further_ahead_than_one_that_is_far_is_reached_though_no_frontier_moves() -> None:
    """The anchor waits for another input. So the loop's input goes on from one far epoch to the next."""
    cluster = Cluster(_beside_another, workers=2)
    _load(cluster, 3)
    cluster.seal()
    for epoch in (1 << 58, 1 << 59):
        _seal(cluster, epoch, "edges", "roots")
        cluster.run()
        assert [region._done for region in _regions(cluster)] == [epoch + 1] * 2
    cluster.seal(1 << 59)
    cluster.run()
    assert [instance.epochs_done() for instance in cluster.instances] == [(1 << 59) + 1] * 2
    assert cluster.snapshot("distances") == _far(3)


def test_a_bound_behind_all_that_words_can_say_is_said_anew_when_the_anchor_moves() -> None:
    """Else rows that come by the next round, of epochs that no word here could say, would count as open."""
    cluster = Cluster(_few_epochs, workers=2)
    _load(cluster, 3)
    _seal(cluster, 3, "edges", "roots")
    cluster.run()
    instance, (first, second) = cluster.instances[0], _regions(cluster)
    shift = instance.frozen.layout.shifts[0]
    second._advance_in_round = lambda: False  # type: ignore[method-assign]
    for names, anchor, start in ((("edges", "roots"), 0, 4), (("apart",), 3, 1)):
        _seal(cluster, 20, *names)
        cluster.run()
        assert first._vote is not None and first._vote.bound == 21
        assert instance.anchor.epoch == anchor
        loop = first.loop
        assert isinstance(loop, KernelLoop)
        assert (loop._state[X_FROM] >> shift, loop._state[X_BOUND] >> shift) == (start, 7)
        assert loop._slots.bound == 7 << shift
    del second._advance_in_round
    with cluster.turn_of(1):
        second.activate()
    cluster.run()
    assert [region._done for region in _regions(cluster)] == [21, 21]


@pytest.mark.parametrize(
    ("said", "has_ended"),
    [
        ([(True, b"\1"), (True, b"\1")], True),
        ([(True, b"\1"), (True, b"\0")], False),
        ([(True, b"\1"), (False, b"")], False),
        ([(False, b""), (False, b"")], False),
    ],
    ids=["all", "one", "one keeps rows", "all keep rows"],
)
def test_what_has_ended_is_what_all_say_of_whom_none_keeps_rows(
    said: list[tuple[bool, bytes]], has_ended: bool
) -> None:
    cluster = _cluster()
    first, _ = _regions(cluster)
    port = first._watched[0]
    first._voted_ended = {port}  # by what it has said, now or earlier
    every = [Vote(n, 0, 1, 1, -1, 0, False, is_empty, ended) for n, (is_empty, ended) in enumerate(said)]
    with cluster.turn_of(0):
        first._end_span(1, are_alike(every))
    assert (len(first.frontier(port)) == 0) == has_ended


def test_messages_that_wait_count_from_a_later_epoch_with_all_else() -> None:
    """Those that are not taken up yet, and those that are not even looked at."""
    cluster = _cluster(3)
    cluster.seal(3)
    cluster.run()
    instance, first = cluster.instances[0], _regions(cluster)[0]
    shift = instance.frozen.layout.shifts[0]
    word = 5 << shift | 3
    beats = [
        RoundMessage(
            Vote(peer, first._round + 1, 4, 4, -1, 0, False, False, b""),
            ((0, np.array([[7], [word], [1]])),),
        )
        for peer in (1, 2)
    ]
    first._heard = {first._round + 1: [beats[0]]}
    first.inbox = [(0, first.location, 0, beats[1])]
    instance._rebase(Rebase(3, shift))
    ((heard,),) = first._heard.values()
    ((_, location, _, waiting),) = first.inbox
    assert location == first.location
    for beat in (heard, waiting):
        assert isinstance(beat, RoundMessage)
        ((_, words),) = beat.parts
        assert words.tolist() == [[7], [2 << shift | 3], [1]]


def test_messages_that_come_before_their_round_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three workers one may have heard all, and say the next, while another has not."""
    cluster = _cluster(3)
    _load(cluster, 4)
    cluster.seal()
    cluster.run()
    heard: list[tuple[KernelLoop, int]] = []
    waiting: list[int] = []
    hear = KernelLoop.hear

    def noted(region: KernelLoop, beat: Batch) -> None:
        heard.append((region, region.vote_in(beat).number))
        hear(region, beat)

    monkeypatch.setattr(KernelLoop, "hear", noted)
    for seed in range(5):
        rng = random.Random(seed)
        for _ in range(4):
            cluster.change("edges", [((rng.randrange(6), rng.randrange(6)), 1)], None, 1)
            cluster.seal()
            cluster.harry(rng, 20)
            waiting += [len(region._heard) for region in _regions(cluster)]
    cluster.run()
    for region in _regions(cluster):
        numbers = [number for who, number in heard if who is region.loop]
        assert numbers == sorted(numbers) and set(numbers) == set(range(numbers[0], region._round))
        assert not region._heard, "all were taken up"
    assert any(waiting)


def test_nothing_but_a_round_message_is_taken_in_the_place_of_one() -> None:
    (region, _) = _regions(_cluster())
    said = Vote(1, 0, 1, 0, -1, 0, False, False, b"")
    region.check(RoundMessage(said, ()), 1)
    with pytest.raises(PeerError, match="worker 1 sent a Records in the place of a round message of a loop"):
        region.check(Records([]), 1)


def test_an_input_that_ends_between_two_spans_has_ended_with_all_once_one_leaves_no_rows() -> None:
    """So what was kept only because its rows might still come is given back."""
    cluster = _cluster()
    _load(cluster, 5)
    cluster.seal()
    cluster.run()
    regions = _regions(cluster)
    assert all(region._done == 1 and region._ended == set() for region in regions)
    for index, instance in enumerate(cluster.instances):
        with cluster.turn_of(index):
            instance.input("roots").close()
    cluster.run()
    for changes in ([((0, 1), -1), ((0, 2), 1)], [((7, 8), 1)]):
        cluster.change("edges", changes)
        for index, instance in enumerate(cluster.instances):
            with cluster.turn_of(index):
                instance.input("edges").seal()
        cluster.run()
    for region, instance in zip(regions, cluster.instances, strict=True):
        ended = {port for port in region._watched if instance.tracker.first(port) is None}
        assert ended and region._ended == ended
        assert all(region.first(port) is None for port in ended)
