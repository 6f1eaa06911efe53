"""Prometheus's own parser reads the metrics; they are what the workers count, and counters never fall."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from collection_flows import distances
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

import timely
from timely.metrics import collector
from timely.metrics.collector import ClusterCollector

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples_of(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(each: ClusterCollector) -> Samples:
    registry = CollectorRegistry()
    registry.register(each)
    return samples_of(generate_latest(registry).decode())


def values(found: Samples, name: str) -> dict[tuple[str, ...], float]:
    """By the values of its labels, in the order of the labels' names."""
    return {
        tuple(value for _, value in labels): value for (one, labels), value in found.items() if one == name
    }


@pytest.fixture(autouse=True)
def each_asks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(collector, "_FRESH_SECONDS", 0.0)
    return iter((None,))  # type: ignore[return-value]


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_are_what_the_workers_count(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(distances)
        asked = ClusterCollector(cluster.stats, stages=True)
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(20)])
        flow.seal(wait=True)
        flow.input("edges").insert([(7, 9), (8, 10)])
        reads = flow.output(next(iter(name_of(cluster)))).follow()
        next(reads)
        before = scraped(asked)
        flow.seal(wait=True)
        after = scraped(asked)
        stats = cluster.stats()
    name = str(stats[0]["dataflows"][flow.index]["spec"])  # type: ignore[index]
    of_flow = (name, str(flow.index))
    assert values(before, "naiad_up") == {(): 1.0}
    assert values(before, "naiad_epoch_open") == {of_flow: 1.0} == values(before, "naiad_epoch_complete")
    assert (
        values(after, "naiad_epoch_open") == {of_flow: 2.0}
        and values(after, "naiad_epochs_behind")[of_flow] == 0
    )
    assert values(before, "naiad_input_rows_waiting") == {(*of_flow[:1], "edges", of_flow[1]): 2.0} | {
        (name, "roots", of_flow[1]): 0.0
    }
    at_inputs = values(before, "naiad_input_bytes_waiting")
    assert at_inputs.pop((name, "roots", of_flow[1])) == 0 < at_inputs.pop((name, "edges", of_flow[1]))
    assert not at_inputs and set(values(after, "naiad_input_bytes_waiting").values()) == {0.0}
    assert sum(values(after, "naiad_rows_total").values()) == 23
    assert len(values(after, "naiad_worker_info")) == workers
    assert {labels[-1] for labels in values(after, "naiad_epoch_seconds")} == {"0.5", "0.99"}
    assert max(values(before, "naiad_reader_lag_epochs").values()) <= 1
    assert len(values(after, "naiad_stage_busy_seconds_total")) == workers * len(
        stats[0]["dataflows"][flow.index]["stages"]  # type: ignore[index,arg-type]
    )
    grew = {one for (one, labels), value in after.items() if value > before.get((one, labels), 0.0)}
    assert {"naiad_rows_total", "naiad_busy_seconds_total", "naiad_stage_rows_total"} <= grew
    fell = [key for key, value in after.items() if key[0].endswith("_total") and value < before.get(key, 0.0)]
    assert not fell, fell


def test_what_waits_is_that_of_each_stage_and_in_sum_of_each_dataflow() -> None:
    def told(worker: int, rows: int) -> dict[str, object]:
        stages = [
            {"name": name, "rows_waiting": share * rows, "bytes_waiting": 9 * share * rows}
            for share, name in enumerate(("input a", "join", "group"))
        ]
        flows = {3: {"spec": "shop", "stages": stages}, 4: {"spec": "idle", "stages": stages[:1]}}
        return {"worker": worker, "process": 1, "dataflows": flows}

    found = scraped(ClusterCollector(lambda: [told(0, 10), told(1, 1)], stages=True))  # type: ignore[list-item,return-value]
    for unit, each in (("rows", 1.0), ("bytes", 9.0)):
        assert values(found, f"naiad_waiting_{unit}") == {
            ("shop", "3", "0"): 30 * each, ("shop", "3", "1"): 3 * each,
            ("idle", "4", "0"): 0.0, ("idle", "4", "1"): 0.0,
        }  # fmt: skip
        by_stage = values(found, f"naiad_stage_{unit}_waiting")
        assert by_stage["shop", "join", "3", "1", "0"] == 10 * each
        assert by_stage["shop", "group", "3", "2", "1"] == 2 * each


def name_of(cluster: timely.Cluster) -> list[str]:
    flows = cluster.stats()[0]["dataflows"]
    return [str(output["name"]) for output in flows[0]["outputs"]]  # type: ignore[index,call-overload]


def test_without_stages_there_are_none() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(distances)
        assert not [name for name, _ in scraped(ClusterCollector(cluster.stats)) if "stage" in name]


def test_a_cluster_that_cannot_be_asked_is_not_up_and_no_more_is_said() -> None:
    def ask() -> list[dict[str, object]]:
        raise timely.PeerError("worker 0 is gone")

    assert scraped(ClusterCollector(ask)) == {("naiad_up", ()): 0.0}  # type: ignore[arg-type]


def test_names_with_odd_characters_are_labels_as_they_are() -> None:
    stage = {"name": 'a "b"\n\\c', "site": "x.py:1", "loop": "", "busy_seconds": 1.0, "rows_waiting": 0}
    told = {
        "worker": 0,
        "process": 1,
        "dataflows": {0: {"spec": "<sql>\n", "complete_before": 0, "stages": [stage]}},
    }
    found = scraped(ClusterCollector(lambda: [told], stages=True))  # type: ignore[list-item,return-value]
    assert values(found, "naiad_stage_busy_seconds_total") == {("<sql>\n", 'a "b"\n\\c', "0", "0", "0"): 1.0}


def test_who_asks_again_at_once_gets_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_FRESH_SECONDS", 60.0)
    asked: list[int] = []

    def ask() -> list[dict[str, object]]:
        asked.append(1)
        return []

    each = ClusterCollector(ask)  # type: ignore[arg-type]
    each._asked = -60.0
    assert scraped(each) == scraped(each) and len(asked) == 1
