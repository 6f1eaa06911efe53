"""A durable cluster whose workers are killed goes on with those that stand by."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from feeding_threads import Feeder, Threads, supervisor_of

import differential as dd
import timely
from timely.durable.bases.manifest import base_numbers
from timely.durable.folder_store import FolderStore


def test_load_goes_on_though_workers_are_killed(tmp_path: Path, seed: int, effort: int) -> None:
    """Of those at work, of those that stand by, and all at once; the others take over."""
    fate = random.Random(seed)
    with timely.connect(workers=2, durable=tmp_path, standby=True, log_level="error") as cluster:
        keeper = supervisor_of(cluster)
        reserve = keeper.reserve
        assert reserve is not None
        feeder = Feeder(cluster, seed)
        with Threads(feeder) as threads:
            for what in ["of the cluster", "that stands by", "all", *["of the cluster"] * effort]:
                threads.until(lambda: reserve.is_abreast)
                restarts, before = keeper.restarts, keeper.pids
                successors = reserve.pids
                if what == "that stands by":
                    os.kill(fate.choice(successors), signal.SIGKILL)
                    threads.until(lambda: not reserve.is_abreast)
                else:
                    for pid in before if what == "all" else [fate.choice(before)]:
                        os.kill(pid, signal.SIGKILL)
                    threads.until(lambda restarts=restarts: keeper.restarts > restarts)  # type: ignore[misc]
                    done = len(feeder.twin.changed)
                    threads.until(lambda done=done: len(feeder.twin.changed) > done + 2)  # type: ignore[misc]
                    assert keeper.pids == successors and keeper.restarts == restarts + 1
        changes: Counter[tuple[int, int, int]] = Counter()
        for row in cluster.flow("sold").output("rows").changes(0).to_pylist():
            changes[row["epoch"], row["k"], row["n"]] += row["diff"]
        assert changes == Counter(
            {
                (epoch, *row): diff
                for epoch, each in enumerate(feeder.twin.changed)
                for row, diff in each.items()
            }
        )
        last = feeder.last
        rows = cluster.flow("sold").output("both").snapshot().to_pylist()
        assert {(r["k"], r["count"], r["n"], r["v"]) for r in rows} == feeder.twin.both[last]


def last_by_text(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: string")
    rows.group_by("b").agg(n=dd.count(), last=dd.max("a")).output("last")


def test_they_follow_from_a_base_and_past_later_ones(tmp_path: Path) -> None:
    def texts(first: int) -> pa.Table:
        numbers = range(first, first + 50_000)
        return pa.table({"a": list(numbers), "b": [f"{number:0150}" for number in numbers]})

    store = FolderStore(tmp_path)
    with timely.connect(workers=2, durable=tmp_path, sync="system", standby=True) as cluster:
        keeper = supervisor_of(cluster)
        flow = cluster.install(last_by_text)
        flow.output("last").forget(0)
        with Threads() as threads:
            for number in range(2):
                bases = base_numbers(store)[-1] if base_numbers(store) else 0
                flow.input("rows").insert(texts(number * 50_000))
                if number:
                    flow.input("rows").remove(texts((number - 1) * 50_000))
                flow.seal(wait=True)
                flow.output("last").forget(number)
                threads.until(lambda bases=bases: base_numbers(store)[-1:] > [bases])  # type: ignore[misc]
                assert keeper.reserve is not None
                threads.until(lambda: keeper.is_abreast)
                expected = flow.output("last").snapshot().sort_by("b")
                if number % 2:
                    restarts = keeper.restarts
                    os.kill(keeper.pids[1], signal.SIGKILL)
                    threads.until(lambda restarts=restarts: keeper.restarts > restarts)  # type: ignore[misc]
                assert flow.output("last").snapshot().sort_by("b").equals(expected)


@pytest.mark.parametrize(
    "settings",
    [{}, {"embedded": True, "durable": "store"}, {"threads": True, "durable": "store"}],
    ids=["no store", "embedded", "threads"],
)
def test_refused_where_nobody_could_stand_by(settings: dict[str, object]) -> None:
    with pytest.raises(timely.MisuseError, match="standby=True is for workers in processes of their own"):
        timely.connect(workers=1, standby=True, **settings)  # type: ignore[arg-type]


def test_answers_are_those_of_the_workers_that_stood_by(tmp_path: Path) -> None:
    with timely.connect(workers=1, durable=tmp_path, standby=True) as cluster:
        keeper = supervisor_of(cluster)
        flow = cluster.install(last_by_text)
        flow.input("rows").insert(pa.table({"a": list(range(50_000)), "b": ["x"] * 50_000}))
        flow.seal(wait=True)
        with Threads() as threads:
            threads.until(lambda: keeper.is_abreast)
            successors = keeper.reserve.pids if keeper.reserve is not None else []
            told = {"worker": 0, "process": successors[0], "is_abreast": True, "behind": 0}
            threads.until(lambda: cluster.stats()[0]["store"]["standby"] == [told])  # type: ignore[index]
        os.kill(keeper.pids[0], signal.SIGKILL)
        assert flow.output("last").snapshot().to_pylist() == [{"b": "x", "n": 50_000, "last": 49_999}]
        assert keeper.pids == successors


def test_changes_that_never_cease_hold_up_no_rescaling(tmp_path: Path) -> None:
    """Those that follow are never without something new, and abreast all the same."""
    with timely.connect(workers=1, durable=tmp_path, sync="system") as cluster:
        flow = cluster.install(last_by_text)

        def change(ends: threading.Event) -> None:
            while not ends.is_set():
                flow.input("rows").insert([(flow.epoch, "x")])
                flow.seal(wait=True)

        with Threads(change) as threads:
            threads.until(lambda: flow.epoch > 20)
            cluster.rescale(2)
            reached = flow.epoch
            threads.until(lambda: flow.epoch > reached + 20)
        flow.seal(wait=True)
        (row,) = flow.output("last").snapshot().to_pylist()
        assert row["n"] == row["last"] + 1 == flow.epoch - 1
