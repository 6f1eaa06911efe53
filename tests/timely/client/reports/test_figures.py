"""Figures are differences of what workers count, all workers together."""

from __future__ import annotations

import time

import pytest
from collection_flows import distances

import differential as dd
import timely
from timely.client.reports.figures import Figures, figures
from timely.wire.requests import Value


def told(
    rows: int, busy: float, *, complete: int = 3, epoch: int = 3, epochs: list[Value] | None = None
) -> dict[str, Value]:
    """What a worker says of an input that leads to a stage and to an output."""
    stages: list[Value] = [
        {"name": name, "site": "shop.py:7", "loop": "", "busy_seconds": part * busy, "rows_waiting": waiting}
        for name, part, waiting in (("input a", 0.0, 0), ("join", 1.0, 5), ("output b", 0.5, 0))
    ]
    return {
        "worker": 0,
        "process": 77,
        "messages_sent": rows,
        "used": {"cpu_seconds": busy, "resident_bytes": 1000},
        "dataflows": {
            4: {
                "spec": "shop",
                "complete_before": complete,
                "inputs": [{"name": "a", "epoch": epoch, "rows_waiting": 0}],
                "epochs": [] if epochs is None else epochs,
                "stages": stages,
                "connectors": [
                    {"source": 0, "target": 1, "rows": rows, "messages": 1},
                    {"source": 0, "target": 2, "rows": rows // 2, "messages": 1},
                    {"source": 1, "target": 2, "rows": 10 * rows, "messages": 1},
                ],
            }
        },
    }  # type: ignore[dict-item]


def test_rates_are_differences_by_second_and_the_skew_is_the_largest_share() -> None:
    shown = figures([told(100, 1.0), told(100, 1.0)], [told(140, 4.0), told(100, 2.0)], 2.0)
    assert [each.cpu for each in shown.workers] == [1.5, 0.5]
    assert [each.messages for each in shown.workers] == [20.0, 0.0]
    entry, join, output = shown.stages
    assert (entry.rows, join.rows, output.rows) == (20.0, 20.0, 210.0), "an input counts a row once"
    assert (join.busy, join.skew, output.skew, entry.skew) == (2.0, 1.5, 1.5, 1.0)
    assert (join.waiting, join.site, join.dataflow, join.stage) == (10, "shop.py:7", 4, 1)
    (flow,) = shown.dataflows
    assert (flow.name, flow.rows, flow.busy, flow.behind_epochs) == ("shop", 20.0, 3.0, 0)


def test_an_input_is_ahead_of_another_one_and_a_worker_of_another_one_is_not() -> None:
    def ahead_of(*by_worker: list[int]) -> int:
        workers = [told(0, 0.0) for _ in by_worker]
        for worker, epochs in zip(workers, by_worker, strict=True):
            inputs = [{"name": str(place), "epoch": epoch} for place, epoch in enumerate(epochs)]
            worker["dataflows"][4]["inputs"] = inputs
        (flow,) = figures(workers, workers, 1.0).dataflows
        return flow.ahead_epochs

    assert ahead_of([3, 9], [5, 9]) == 6
    assert ahead_of([3], [9]) == 0, "news of a seal come to one worker first"
    assert ahead_of([3, 2**62], [3, 2**62]) == 0, "an input that is closed"


def test_a_dataflow_is_as_late_as_its_first_sealed_epoch_that_is_not_complete() -> None:
    epochs: list[Value] = [[3, 9.0, 8.0], [4, 2.5, None], [5, 1.0, None]]
    late = [told(0, 0.0, epoch=6, complete=3, epochs=epochs), told(0, 0.0, epoch=6, complete=4, epochs=[])]
    (flow,) = figures(late, late, 1.0).dataflows
    assert (flow.epoch, flow.complete_before, flow.behind_epochs, flow.behind_seconds) == (6, 3, 3, 2.5)


def test_a_dataflow_that_has_ended_is_not_late() -> None:
    ended = [told(0, 0.0, epoch=2**62, complete=2**62)]
    (flow,) = figures(ended, ended, 1.0).dataflows
    assert (flow.epoch, flow.complete_before, flow.behind_epochs) == (None, None, 0)


def test_what_was_not_there_before_counts_from_its_start() -> None:
    shown = figures([], [told(30, 3.0)], 3.0)
    assert [stage.rows for stage in shown.stages] == [10.0, 10.0, 105.0]
    assert shown.stages[1].busy == 1.0


def test_answers_lie_some_time_apart() -> None:
    with pytest.raises(ValueError, match="0 s"):
        figures([], [], 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_figures_of_a_cluster_agree_with_what_went_in(workers: int) -> None:
    def build(flow: timely.Dataflow) -> None:
        distances(flow)
        pairs = dd.input(flow, "pairs", "key: int, value: int")
        pairs.output("pairs")
        pairs.group_by("key").agg(total=dd.sum("value")).output("totals")

    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        before, began = cluster.stats(), time.monotonic()
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(20)])
        flow.input("pairs").insert([(n % 5, n) for n in range(40)])
        flow.seal(wait=True)
        flow.input("pairs").insert([(1, 1)])
        after = cluster.stats()
        seconds = time.monotonic() - began
        shown = figures(before, after, seconds)
        check(shown, workers, seconds)


def check(shown: Figures, workers: int, seconds: float) -> None:
    """One root, 20 edges and 40 pairs were sealed."""
    assert [each.worker for each in shown.workers] == list(range(workers))
    (flow,) = shown.dataflows
    assert (flow.epoch, flow.complete_before, flow.behind_epochs, flow.behind_seconds) == (1, 1, 0, 0.0)
    assert flow.rows * seconds == pytest.approx(61)
    assert 0 < flow.busy <= workers and flow.kept_bytes > 0
    by_name = {stage.name: stage for stage in shown.stages}
    groups = by_name["group by key: total=sum(value)"]
    assert 5 <= groups.rows * seconds < 41, "sums are made before rows go to other workers"
    assert groups.kept_rows >= 5 and groups.busy > 0
    in_loop = [stage for stage in shown.stages if stage.loop]
    assert in_loop and all(stage.busy > 0 for stage in in_loop)
    assert all(1.0 <= stage.skew <= workers for stage in shown.stages)
    assert {stage.site.rpartition(":")[0].endswith(".py") for stage in shown.stages} == {True}


def test_rows_on_their_way_are_those_sent_and_not_received() -> None:
    def worker(number: int, sent: dict[int, int], received: dict[int, int], ring: int) -> dict[str, Value]:
        peers: list[Value] = [
            {"worker": peer, "rows_sent": sent[peer], "rows_recv": received[peer], "ring_bytes": ring}
            for peer in sent
        ]
        return {"worker": number, "peers": peers, "dataflows": {}}

    stats = [
        worker(0, {1: 100, 2: 7}, {1: 60, 2: 0}, 10),
        worker(1, {0: 60, 2: 5}, {0: 90, 2: 4}, 20),
        worker(2, {0: 9, 1: 3}, {0: 7, 1: 5}, 0),
    ]
    shown = figures(stats, stats, 1.0)
    assert [each.coming_rows for each in shown.workers] == [9, 10, 0], (
        "answers of a moment later count as none"
    )
    assert [each.ring_bytes for each in shown.workers] == [20, 10, 30]
