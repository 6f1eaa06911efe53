"""controlling.py: a client that reads counts and announces, and what comes of it.

balance_*   hot keys are divided, units are even, and the join stays the join
again_*     a controller that is made anew: by the same handle, or by one that does not seal
pacing_*    how many items are announced in an epoch; what stands still
refused_*   schemes and settings that cannot be
"""

from __future__ import annotations

from collections import Counter
from typing import cast

import numpy as np
import pytest

import differential as dd
import timely
from differential.skew.controlling import Controller, Pacing, announced
from differential.skew.planning.controller import PlanSettings
from differential.skew.planning.loads import imbalance
from timely.building.dataflow import Dataflow
from timely.errors import MisuseError

EPOCHS = 20
ROWS = 60
BALANCE = dd.Balance("D-JB", units=6)


def _build(flow: Dataflow) -> None:
    a, b = dd.input(flow, "a", "k: int, v: int"), dd.input(flow, "b", "k: int, w: int")
    a.join(b, on="k").group_by("k").agg(n=dd.count()).output("plain")
    routes = dd.announcements(flow)
    routes.output("said")
    pairs = a.join(b, on="k", balance=dd.Routed(BALANCE, routes))
    pairs.group_by("k").agg(n=dd.count()).output("spread")
    dd.loads(pairs).output("loads")
    dd.bucket_counts(pairs).output("buckets")
    dd.key_counts(pairs, at_least=20).output("keys")


class _Run:
    """Rows of the left with one key of five in two, those of the right with any, epoch by epoch."""

    def __init__(
        self, cluster: timely.Cluster, pacing: Pacing = "at once", settings: PlanSettings | None = None
    ) -> None:
        self.flow = cluster.install(_build)
        self.controller = Controller(self.flow, BALANCE, settings or PlanSettings(period=5), pacing=pacing)
        self._rng = np.random.default_rng(7)
        self.announced: list[int] = []

    def epoch(self) -> None:
        """Rows come, something may be announced, the epoch is sealed."""
        keys = self._rng.zipf(1.5, ROWS) % 50
        self.flow.input("a").insert([(int(k), n) for n, k in enumerate(keys)])
        self.flow.input("b").insert([(int(k), n) for n, k in enumerate(self._rng.integers(0, 50, ROWS))])
        self.announced.append(len({(row.scope, row.side, row.key) for row in self.controller.announce()}))
        self.flow.seal()

    def snapshot(self, name: str) -> Counter[tuple[object, ...]]:
        """Rows of an output."""
        return Counter(tuple(row.values()) for row in self.flow.output(name).snapshot().to_pylist())

    def stored(self) -> list[int]:
        """Rows kept, by unit."""
        found = Counter[int]()
        for (_, unit, _, what), count in self.snapshot("loads").items():
            found[cast("int", unit)] += count * (what == 0)
        return [found[unit] for unit in range(BALANCE.units)]


def test_balance_of_units_is_kept_while_the_join_is_the_join() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        run = _Run(cluster)
        for _ in range(EPOCHS):
            run.epoch()
        assert run.snapshot("spread") == run.snapshot("plain")
        assert len(run.controller.plans) >= 1
        assert imbalance(run.stored()) < 1.35 < imbalance(run.controller.plans[0].before)
        assert sum(run.stored()) == 2 * ROWS * EPOCHS


def test_balance_stays_as_it_is_without_a_controller_and_goes_on_with_another() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        run = _Run(cluster)
        for _ in range(8):
            run.epoch()
        table = run.controller.table
        said = announced(run.flow.output("said"))
        run.controller = Controller(run.flow, BALANCE, PlanSettings(period=5), said=said)
        assert run.controller.table == table
        for _ in range(8):
            run.epoch()
        assert run.snapshot("spread") == run.snapshot("plain")


@pytest.mark.parametrize("handle", ["the same", "another"])
def test_again_counts_all_rows_and_goes_on_with_what_was_announced(handle: str) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        run = _Run(cluster)
        for _ in range(9):
            run.epoch()
        before = run.controller
        assert before.plans, "it has read its outputs, and announced"
        flow = run.flow if handle == "the same" else cluster.flow(run.flow.index)
        settings = PlanSettings(theta_max=0.05, period=5)
        run.controller = Controller(flow, BALANCE, settings, said=announced(flow.output("said")))
        assert run.controller.table == before.table
        run.epoch()
        (plan,) = run.controller.plans
        assert sum(plan.before) == 2 * ROWS * 9, "all rows, and not those since"
        for _ in range(EPOCHS):
            run.epoch()
        assert imbalance(run.stored()) < 1.35
        assert run.snapshot("spread") == run.snapshot("plain")


def test_again_plans_though_it_misses_epochs_that_others_seal() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        run = _Run(cluster)
        run.controller = Controller(cluster.flow(run.flow.index), BALANCE, PlanSettings(period=5))
        for _ in range(3):
            run.epoch()
        for _ in range(3):
            run.flow.seal()
        assert run.controller.announce(), "epoch 4 has gone by: a plan is due"


def test_pacing_begins_with_the_hottest_key_and_plans_anew_while_much_still_waits() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        run = _Run(cluster, "fluid", PlanSettings(theta_max=0.01, period=3))
        for _ in range(3):
            run.epoch()
        (first,) = run.controller.plans
        (row, *_) = announced(run.flow.output("said"))[0]
        counts = {key: max(left, right) for key, left, right in run.snapshot("keys")}
        assert counts[row.key] == max(counts.values())
        for _ in range(3):
            run.epoch()
        assert len(first.changes.grids) > 3, "so some of it waits still"
        assert len(run.controller.plans) == 2


@pytest.mark.parametrize(("pacing", "most"), [("fluid", 1), (2, 2)])
def test_pacing_is_how_many_items_are_announced_in_an_epoch(pacing: Pacing, most: int) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        run = _Run(cluster, pacing)
        for _ in range(16):
            run.epoch()
        planned = [len(plan.changes.grids) for plan in run.controller.plans]
        assert max(run.announced) == min(most, max(planned)) and sum(run.announced) <= sum(planned)
        assert run.snapshot("spread") == run.snapshot("plain")


def test_pacing_of_the_third_seed_moves_everything_while_nothing_comes_in() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        run = _Run(cluster, 1)
        for _ in range(4):
            run.epoch()
        plan = run.controller.check()
        assert plan is not None
        epochs = run.controller.stand_still()
        assert epochs == len(plan.changes.grids) + 3
        assert max(run.stored()) == max(plan.after), "what was planned is what there is"
        run.epoch()
        assert run.snapshot("spread") == run.snapshot("plain")


def test_refused_schemes_without_plans_and_pacing_that_is_none() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(_build)
        with pytest.raises(MisuseError, match="JB places rows at random"):
            Controller(flow, dd.Balance("JB", units=4), PlanSettings())
        for pacing in (0, -1, "slowly", True):
            with pytest.raises(MisuseError, match="pacing is"):
                Controller(flow, BALANCE, PlanSettings(), pacing=pacing)  # type: ignore[arg-type]
