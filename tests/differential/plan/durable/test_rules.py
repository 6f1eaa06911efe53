"""By which rules is a plan folded? And are answers the same as without a fold?

ruled_*      the rule of each input, and the lines that say why rows are not summed
restarted_*  runs with folds and restarts against an undisturbed one, for every kind of dataflow
mutant_*     folds by a wrong rule: each is found out
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from folded_flows import (
    CHECKED,
    PLAIN,
    QUERIES,
    UPSERTED,
    Query,
    accumulated,
    changes_by_epoch,
    checked,
    collected,
    delayed,
    delayed_by_function,
    during,
    folded,
    give,
    history_for,
    late_behind_state,
    on_time,
    run,
    undisturbed,
    upserted,
    upserted_late,
)

import differential as dd
import timely
from differential import col
from differential.columns.column_types import Int64s
from differential.kernels.rows.sort import sort_parts
from differential.plan.building import Plan
from differential.plan.durable import rules
from differential.plan.durable.clamped import ClampedRows
from differential.plan.durable.latest import LatestRows
from differential.plan.durable.rules import PlanFacts, plan_facts
from differential.plan.durable.summing import SummedRows
from differential.plan.durable.views import Views
from timely.routing.announcement import BUCKET, RoutingCell, RoutingChanges
from timely.routing.grid import HASH_MAX, Grid

EPOCHS = 14


def facts_of(query: Callable[[timely.Dataflow], object]) -> PlanFacts:
    flow = timely.Dataflow("query")
    query(flow)
    flow.freeze()
    return plan_facts(Plan.of(flow))


def reason_of(query: Callable[[timely.Dataflow], object]) -> str:
    (facts,) = facts_of(query).inputs
    assert bool(facts.why) != facts.sums
    return facts.why


# ruled_


@pytest.mark.parametrize("query", QUERIES)
def test_ruled_by_what_reads_the_input(query: Query) -> None:
    (facts,) = facts_of(query).inputs
    is_whole = query in (late_behind_state, delayed_by_function, upserted_late)
    assert facts.sums == (not is_whole) and bool(facts.why) == is_whole
    mode = "checked" if query in CHECKED else "upsert" if query in UPSERTED else "append"
    assert facts.form == rules.FORMS[mode]
    assert facts_of(query).lookback == (2 if query is delayed else 0)


def test_ruled_late_behind_state_says_the_line_and_what_to_write() -> None:
    why = reason_of(late_behind_state)
    assert "split_late (" in why and "folded_flows.py:" in why
    assert "Write split_late directly behind the input" in why


def test_ruled_late_behind_a_function_needs_each_epoch() -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "in", "a: int").map(lambda row: row, "a: int")
        rows.split_late("a", 1, clock=dd.clock(0, every=1))[0].output("out")

    assert "split_late" in reason_of(query)


def test_ruled_delays_on_a_path_add_up_and_others_do_not() -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "in", "a: int")
        rows.delay(2).group_by("a").agg(n=dd.count()).delay(3).output("long")
        rows.delay(4).output("short")
        dd.input(flow, "other", "a: int").output("other")

    assert facts_of(query).lookback == 5


def test_ruled_delay_by_a_function_says_what_to_write() -> None:
    assert "as delay(3)" in reason_of(delayed_by_function)


def test_ruled_delay_in_a_loop_needs_each_epoch() -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "in", "a: int")
        rows.iterate(lambda inner: inner.delay(1).filter(col.a > 0).concat(inner).distinct()).output("out")

    assert "is in a loop" in reason_of(query)


def test_ruled_announcements_keep_their_epochs_and_what_is_joined_does_not() -> None:
    def query(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "a: int, b: int")
        routed = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow), lead=2)
        edges.join(edges.select(b=col.a, c=col.b), on="b", balance=routed).output("out")

    by_name = {each.name: each for each in facts_of(query).inputs}
    assert by_name["edges"].sums
    assert not by_name["routes"].sums and "announcements" in by_name["routes"].why


def test_ruled_import_that_needs_each_epoch() -> None:
    def late(flow: timely.Dataflow) -> None:
        rows = dd.imported(flow, 0, "rows", "a: int")
        rows.split_late("a", 1, clock=dd.clock(0, every=1))[0].output("out")

    def plain(flow: timely.Dataflow) -> None:
        dd.imported(flow, 0, "rows", "a: int").output("out")

    assert "split_late" in facts_of(late).import_reason
    assert facts_of(plain).import_reason == ""


def test_ruled_install_says_once_what_is_kept_whole_and_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with timely.connect(workers=2, embedded=True, durable=tmp_path, sync="system") as cluster:
            cluster.install(late_behind_state)
            cluster.install(delayed)
    (record,) = caplog.records
    assert "dataflow 0 (late_behind_state): the store keeps the whole history of" in record.message
    assert "input 'edges': split_late (" in record.message and "folded_flows.py:" in record.message


# restarted_


def with_folds(query: Query, seed: int, folder: Path, epochs: int = EPOCHS) -> list[str]:
    """Run in several incarnations, with folds in between; return where something differs."""
    rng = random.Random(seed)
    history = history_for(query, seed, epochs)
    expected = undisturbed(query, history, seed, 1 + seed % 2)
    differences: list[str] = []
    at = right_from = 0
    while at < epochs:
        stop = min(epochs, at + rng.randrange(3, 8))
        with timely.connect(
            workers=rng.randrange(1, 4), embedded=True, durable=folder, sync="system"
        ) as cluster:
            flow = cluster.install(query)
            assert flow.epoch == at
            run(flow, history, seed, at, stop)
            if stop < epochs and rng.random() < 0.5:
                give(flow, stop, history[stop], seed, calls=2)  # they come once more, to the same epoch
            changes = changes_by_epoch(flow, right_from, stop)
            differences += [f"epoch {epoch}" for epoch in changes if changes[epoch] != expected[epoch]]
            if collected(flow, stop - 1) != accumulated(expected, stop - 1):
                differences.append(f"rows at epoch {stop - 1}")
        at = stop
        if at < epochs:
            base = folded(folder, rng.random() < 0.7, rng.choice([1 << 29, 5_000]))
            right_from = max(right_from, base.flows[0].right_from + 1)
    return differences


def routed(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "edges", "a: int, b: int")
    balance = dd.Routed(dd.Balance("D-JB", units=4), dd.announcements(flow), lead=2)
    edges.join(edges.select(b=col.a, c=col.b), on="b", balance=balance).output("out")


def routed_with_a_fold(folder: Path) -> bool:
    """Move a bucket twice, fold, and restart; return True if all is as without."""
    history = history_for(PLAIN[0], 1, 12)

    def moves(flow: timely.Flow, epoch: int) -> None:
        if epoch in (2, 5):
            grid = Grid(((epoch // 2,),), (HASH_MAX,), (HASH_MAX,))
            changes = RoutingChanges(None, {RoutingCell(BUCKET, 0, 3): grid})
            flow.input("routes").insert([tuple(row) for row in changes.announcements()])

    def go_on(flow: timely.Flow, first: int, stop: int) -> None:
        for epoch in range(first, stop):
            moves(flow, epoch)
            run(flow, history, 1, epoch, epoch + 1)

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(routed)
        go_on(flow, 0, 12)
        expected = changes_by_epoch(flow, 9, 12)
    with timely.connect(workers=2, embedded=True, durable=folder) as cluster:
        go_on(cluster.install(routed), 0, 9)
    assert folded(folder, forgets=True).flows[0].right_from == 8
    with timely.connect(workers=3, embedded=True, durable=folder) as cluster:
        flow = cluster.install(routed)
        go_on(flow, 9, 12)
        return changes_by_epoch(flow, 9, 12) == expected


RUNS = {checked: 5}
"""How many runs see that rows are folded as those of another mode; where it is not one."""


def test_restarted_with_announcements(tmp_path: Path) -> None:
    assert routed_with_a_fold(tmp_path / "store")


@pytest.mark.parametrize("query", QUERIES)
def test_restarted_from_bases_shows_the_same(query: Query, tmp_path: Path, effort: int) -> None:
    for seed in range(effort * RUNS.get(query, 1)):
        assert with_folds(query, seed, tmp_path / str(seed)) == []


# mutant_


def dies(query: Query, folder: Path, seeds: int = 3) -> bool:
    """Return True if some of the first runs shows a difference, or cannot go on."""
    for seed in range(seeds):
        try:
            if with_folds(query, seed, folder / str(seed)):
                return True
        except timely.TimelyError:
            return True
    return False


def test_mutant_upserts_folded_by_arrival(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_of = LatestRows.as_of

    def by_arrival(self: LatestRows, words: Int64s, summed: int, first: int) -> Int64s:
        words = words.copy()
        words[self._kw + 1 : self._kw + 3] = 0  # without their order
        return as_of(self, sort_parts([words]), summed, first)

    monkeypatch.setattr(LatestRows, "as_of", by_arrival)
    assert dies(upserted, tmp_path)


def test_mutant_upserts_and_checked_rows_folded_by_sum(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ClampedRows, "as_of", SummedRows.as_of)
    assert dies(checked, tmp_path, seeds=RUNS[checked])


def test_mutant_lookback_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rules, "_lookbacks", lambda nodes: {node.digest: 0 for node in nodes})
    assert dies(delayed, tmp_path)


def test_mutant_base_not_behind_split_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Views, "epochs", lambda self, words, summed, first: words[-2].clip(min=summed))
    assert dies(on_time, tmp_path)


def test_mutant_split_late_behind_state_is_summed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rules, "_reason", lambda plan, node, stateless: "")
    assert dies(late_behind_state, tmp_path / "late")
    assert dies(delayed_by_function, tmp_path / "delayed")


def test_mutant_announcements_folded_by_sum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rules, "Spread", ())
    with pytest.raises(timely.TimelyError, match="conflicting announcements"):
        routed_with_a_fold(tmp_path / "store")


def test_mutant_rows_dropped_too_early(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed = Views.needed
    monkeypatch.setattr(Views, "needed", lambda self, words, summed: needed(self, words, summed + 3))
    assert dies(during, tmp_path)
