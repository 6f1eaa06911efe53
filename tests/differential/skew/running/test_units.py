"""units.py: a join in units is the join at every epoch, whatever is announced, and however it runs.

meaning_*   random rows with removals, absurd announcements, 1 to 3 workers, late messages, compaction at any
            moment; all that was kept is gone when everything is removed
loads_*     depend on what comes in and on announcements, and on nothing else
mutants_*   what would be wrong is found by these runs
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.dataflow import Cluster
from reference.skew.spread_runs import HASHES, SCHEMES, SpreadRun, loads_of, seal_apart
from strategies_collections import repeat_until

import differential as dd
from differential.columns.column_types import Int64s
from differential.kernels.rows.hashing import hash_of_key, hashes_of
from differential.kernels.rows.ranges import rows_of_keys
from differential.skew.running import units
from differential.skew.running.router import UnitRouterVertex
from differential.skew.running.schedule import Change, Schedule
from differential.skew.running.units import Shape, SideFrontiers, ToTheFirst, Units, _losing
from progress.times.anchor import Rebase
from progress.times.time_words import TimeLayout
from timely.routing.announcement import BUCKET, KEY, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid
from timely.wire.routing import BUCKETS

EACH_SCHEME = pytest.mark.parametrize("scheme", SCHEMES)
seeds = st.integers(0, 2**30)


def _runs() -> int:
    """How many of a scheme: 10,000 of all in the long form."""
    return settings().max_examples // 2 if settings().max_examples < 1_000 else 2_000


def test_hashes_are_of_the_key_words_and_of_all_words_behind_the_unit() -> None:
    words = np.array([[9, 8], [1, 2], [3, 4], [5, 6], [0, 0], [1, 1]])
    key_hash, row_hash = units._hashes(words, 1, 2, 3)
    behind = np.ascontiguousarray(words[1:])
    assert key_hash.tolist() == [hash_of_key(behind, row, 2) for row in range(2)]
    assert row_hash.tolist() == [hash_of_key(behind, row, 3) for row in range(2)]


# meaning_


@EACH_SCHEME
def test_meaning_of_the_join_at_every_epoch_whatever_moves(scheme: str) -> None:
    @settings(max_examples=_runs(), phases=[Phase.generate])
    @given(seeds, st.integers(1, 3), st.integers(0, 3))
    def holds(seed: int, workers: int, lead: int) -> None:
        run = SpreadRun(seed, scheme, lead)
        run.check(run.carried_out(workers, seed + 1))

    holds()


@EACH_SCHEME
def test_meaning_with_all_predicates_of_progress_tracking(scheme: str) -> None:
    for seed in range(3):
        run = SpreadRun(seed, scheme, epochs=5)
        run.check(run.carried_out(2, seed, monitored=True))


@EACH_SCHEME
def test_meaning_when_words_count_from_a_later_epoch_now_and_then(scheme: str) -> None:
    """Of few bits: anchors move with rows on their way from unit to unit, and before versions hold."""
    moved: list[int] = []

    @settings(max_examples=_runs(), phases=[Phase.generate])
    @given(seeds, st.integers(1, 3), st.integers(0, 6), st.integers(2, 3))
    def holds(seed: int, workers: int, lead: int, bits: int) -> None:
        run = SpreadRun(seed, scheme, lead, epochs=12, bits=bits)
        cluster = run.carried_out(workers, seed + 1)
        run.check(cluster)
        same = SpreadRun(seed, scheme, lead, epochs=12).carried_out(1, seed)
        assert loads_of(cluster) == loads_of(same)
        moved.append(cluster.instances[0].anchor.epoch)

    repeat_until(lambda: max(moved) > 3, holds)
    assert max(moved) > 3


@pytest.mark.parametrize(
    ("seed", "scheme", "lead", "workers"), [(1_054_142, "D-JB", 0, 1)], ids=["late to units"]
)
def test_meaning_of_runs_that_were_wrong_once(seed: int, scheme: str, lead: int, workers: int) -> None:
    """An announcement that routers knew before units did, which had merged rows up to its epoch by then."""
    run = SpreadRun(seed, scheme, lead)
    run.check(run.carried_out(workers, seed + 1))


def _moved_far_behind() -> Rows:
    """A row of epoch 0 moves at 3, which is announced when rows are in epoch 7; then a partner comes."""
    cluster = Cluster(SpreadRun(0, "D-JB").build, 2)
    for name, row in (("a", (0, 1)), ("b", (0, 7))):
        cluster.change(name, [(row, 1)], 0)
    seal_apart(cluster, 6, 0)
    cluster.run()
    for worker in (0, 1):
        cluster.compact(worker)
    moved = RoutingChanges(
        None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(3), RoutingCell(KEY, 1, HASHES[0]): Grid.alone(1)}
    )
    cluster.change("routes", [(tuple(row), 1) for row in moved.announcements()], 1)
    seal_apart(cluster, 6, 6)
    cluster.run()
    cluster.change("b", [((0, 9), 1)], 7)
    cluster.seal(7)
    cluster.run()
    return cluster.snapshot("pairs")


def test_meaning_when_it_is_announced_late_what_early_rows_do() -> None:
    assert _moved_far_behind() == {(0, 1, 7): 1, (0, 1, 9): 1}


def _units(lead: int = 0) -> tuple[Units, int]:
    """Units of one worker, of few epochs, and the position of these."""
    layout = TimeLayout((7, 9))
    shift = layout.shifts[0]
    code = layout.guard(0) | layout.guard(1), shift, layout.epochs - 1, 1
    schedule = Schedule(SCHEMES["D-JB"].placement, lead, shift)
    return Units(Shape(1, (1, 1), ((0, 0), (0, 1), (1, 1))), schedule, code, counts=True), shift


@pytest.mark.parametrize("are_noted", [True, False])
def test_meaning_where_rows_that_probe_are_further_than_announcements(are_noted: bool) -> None:
    """The routers have had all announcements of epoch 5, and rows come from 10 on; some units have not had
    them, these or others, so that units do not know what is said. What is kept is merged meanwhile.
    """
    there, shift = _units()
    spot = HASHES[0] % BUCKETS * BUCKETS
    before, after = ((spot, 0, 1, (epoch << shift) + 1, 1) for epoch in (0, 7))
    there.keep(0, np.array([before, after], np.int64).T.copy())
    moved = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(3)})
    old = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(0)})
    rows = np.array([(10 << shift) + 1])
    for epoch, said in ((0, old), (5, moved)):
        announced = [(*row, epoch << shift, 1) for row in said.announcements()]
        if are_noted:
            there.note(np.array(announced, np.int64).T.copy())
        behind = np.array([epoch << shift]), np.array([(epoch << shift) + 1])
        there.advance(SideFrontiers([rows] * 2, [rows] * 2, [behind[1]] * 2, behind[0]))
        for trace in there.traces:
            trace.compact()
        if not are_noted:
            there.note(np.array(announced, np.int64).T.copy())
    there.advance(SideFrontiers([rows] * 2, [rows] * 2, [rows] * 2, rows))
    (left,) = there.moved
    assert left.words[[0, 1, 2, -1]].T.tolist() == [[spot + 3, 0, 1, 1]]


def test_what_arrives_is_as_old_as_it_was_and_of_before_the_anchor_at_the_first_time() -> None:
    there, shift = _units()
    time = (3 << shift) + 1
    ages = (0, (2 << shift) - 1, (3 << shift) - 1, (3 << shift), (5 << shift) - 1)
    words = np.array([(1, 0, number, age, time, 1) for number, age in enumerate(ages)], np.int64)
    there.arrive(0, words.T.copy())
    found = there.traces[0].words()
    assert found[-2].tolist() == [3 << shift, (1 << shift) + 1, 1, 0, 0]
    there.traces[0].check_invariants()


def test_one_right_is_held_however_many_versions_are_to_come() -> None:
    there, shift = _units(lead=1_000)
    assert there.capabilities() == []
    for epoch in range(2, 7):
        moved = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(epoch % 3)})
        announced = [(*row, epoch << shift, 1) for row in moved.announcements()]
        there.note(np.array(announced, np.int64).T.copy())
    assert there.capabilities() == [1_002 << shift], "a wide one: there are words of 127 epochs"
    before = np.array([5 << shift])
    there.advance(SideFrontiers([before] * 2, [before] * 2, [before + 1] * 2, before))
    assert there.capabilities() == [1_002 << shift]


def test_nothing_leaves_at_a_time_of_which_there_are_no_words_though_nothing_else_will_come() -> None:
    there, shift = _units(lead=1)
    ((home,),) = SCHEMES["D-JB"].placement.first.grid_of(0, HASHES[0]).units
    spot = HASHES[0] % BUCKETS * BUCKETS
    there.keep(0, np.array([[spot + home], [0], [1], [(1 << shift) + 1], [1]]))
    moved = RoutingChanges(None, {RoutingCell(KEY, 0, HASHES[0]): Grid.alone(3)})
    announced = [(*row, 126 << shift, 1) for row in moved.announcements()]  # the last epoch of seven bits
    there.note(np.array(announced, np.int64).T.copy())
    nothing = np.empty(0, np.int64)
    ended = SideFrontiers([nothing] * 2, [nothing] * 2, [nothing] * 2, nothing)
    there.advance(ended)
    assert not there.moved and there.capabilities() == [127 << shift]
    for trace in there.traces:
        trace.rebase(ToTheFirst(100, shift))
    there.rebase(Rebase(100, shift))
    there.advance(ended)
    assert [(left.time, left.words[0].tolist()) for left in there.moved] == [(27 << shift, [spot + 3])]
    assert there.capabilities() == []


def test_moving_looks_at_a_bucket_whose_shares_end_elsewhere_on_the_same_units() -> None:
    """As at one that goes elsewhere: some of its rows are on the other unit from then on."""
    before = dd.Balance("D-JB", units=4).placement.first
    split = Grid.split([0, 1])
    uneven = Grid.split([0, 1], (HASH_MAX // 4, HASH_MAX))
    tables = [
        before.changed(RoutingChanges(None, {RoutingCell(BUCKET, 0, 3): grid}).announcements())
        for grid in (split, uneven)
    ]
    assert _losing(*tables, 0).tolist() == [3 * BUCKETS, 3 * BUCKETS + 1]
    assert _losing(*tables, 1).tolist() == _losing(tables[0], tables[0], 0).tolist() == []


def test_moving_looks_at_nothing_but_what_lies_in_buckets_that_go_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []

    def watched(table: Int64s, spots: Int64s, kw: int) -> Int64s:
        found = rows_of_keys(table, spots, kw)
        looked_at.append(found.shape[1])
        return found

    monkeypatch.setattr(units, "rows_of_keys", watched)
    cluster = Cluster(SpreadRun(0, "D-JB").build)
    cluster.change("a", [((key, 1), 1) for key in range(3_000)], 0)
    bucket = HASHES[0] % BUCKETS
    hashes = hashes_of(np.arange(3_000).reshape(1, -1), np.arange(1))
    there = int((hashes % BUCKETS == bucket).sum())
    said = RoutingChanges(None, {RoutingCell(BUCKET, 0, bucket): Grid.alone(4)})
    cluster.change("routes", [(tuple(row), 1) for row in said.announcements()], 1)
    cluster.seal(5)
    cluster.run()
    moved = sum(diff for (_, _, _, what), diff in cluster.snapshot("loads").items() if what == units.ARRIVED)
    assert sum(looked_at) == moved == there < 30


# loads_


@EACH_SCHEME
def test_loads_are_the_same_on_any_workers_in_any_order(scheme: str) -> None:
    moved = 0
    for seed in range(4):
        run = SpreadRun(seed, scheme)
        wanted = loads_of(run.carried_out(1, 0))
        for workers in (2, 3):
            assert loads_of(run.carried_out(workers, seed + workers)) == wanted
        moved += sum(what == 3 for *_, what in (row for rows in wanted.values() for row in rows))
    assert moved > 0, "nothing has moved in these runs"


# mutants_


def _fails(
    monkeypatch: pytest.MonkeyPatch, name: str, mutant: object, of: type = Units, lead: int = 1
) -> bool:
    """Whether one of some runs finds it."""
    monkeypatch.setattr(of, name, mutant)
    for seed in range(200):
        run = SpreadRun(seed, ("D-JB", "hash", "JB6")[seed % 3], lead)
        try:
            run.check(run.carried_out(1 + seed % 3, seed))
        except AssertionError:
            return True
    return False


def test_mutants_that_move_before_old_epochs_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: Units, start: int, frontiers: SideFrontiers) -> bool:
        return True

    assert _fails(monkeypatch, "_may_leave", at_once)


def test_mutants_that_move_while_somebody_still_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def when_all_came(self: Units, start: int, frontiers: SideFrontiers) -> bool:
        rows = [*frontiers.stored, *frontiers.probing]
        return not any(len(frontier) and int(frontier.min()) < start for frontier in rows)

    assert _fails(monkeypatch, "_may_leave", when_all_came)


def test_mutants_that_route_by_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    place = UnitRouterVertex._place

    def by_the_last(self: UnitRouterVertex, words: Int64s) -> None:
        schedule = self._schedule
        versions = schedule.versions
        schedule.versions = type(versions)((0,), versions.tables[-1:])
        place(self, words)
        schedule.versions = versions

    assert _fails(monkeypatch, "_place", by_the_last, UnitRouterVertex, lead=3)


def test_mutants_that_do_not_wait_for_what_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = Units._bound

    def without(self: Units, side: int, frontiers: SideFrontiers) -> int | None:
        return bound(self, side, frontiers._replace(arriving=[np.empty(0, np.int64)] * 2))

    assert _fails(monkeypatch, "_bound", without)


def test_mutants_that_compact_to_the_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    def hold_back(self: Units, frontiers: SideFrontiers) -> None:
        for side in (0, 1):
            own = frontiers.stored if self._schedule.placement.is_cells else frontiers.probing
            self.stores[side].set_hold(own[1 - side])

    assert _fails(monkeypatch, "_hold_back", hold_back)


def test_mutants_that_match_moved_rows_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    arrive = Units.arrive

    def and_ask(self: Units, side: int, words: Int64s) -> None:
        arrive(self, side, words)
        self.probe(side, np.ascontiguousarray(np.delete(words, -3, 0)))

    assert _fails(monkeypatch, "arrive", and_ask)


@pytest.mark.parametrize("lost", ["sent", "left behind"])
def test_mutants_that_lose_a_range_or_leave_it_behind(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave = Units._leave

    def without(self: Units, change: Change) -> None:
        if lost == "sent":
            leave(self, change)
            self.moved.clear()
            return
        kept = [store.trace for store in self.stores]
        copies = [trace.__deepcopy__({}) for trace in kept]
        leave(self, change)
        for store, copy in zip(self.stores, copies, strict=True):
            store.trace = copy

    assert _fails(monkeypatch, "_leave", without)
