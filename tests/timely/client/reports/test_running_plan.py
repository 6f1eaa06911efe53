"""The text lists each stage with where its rows came from, and names one that a worker does nearly alone."""

from __future__ import annotations

import re

import pytest
from collection_flows import distances

import timely
from timely.client.reports.running_plan import running_plan
from timely.wire.requests import Reply, Value


@pytest.mark.parametrize("workers", [1, 2])
def test_every_stage_is_told_with_what_it_reads(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(distances)
        flow.input("roots").insert([(0,)])
        flow.input("edges").insert([(n, n + 1) for n in range(20)])
        flow.seal(wait=True)
        plain, told = flow.explain(), flow.explain(analyze=True)
        (worker, *_) = cluster.stats()
    stages = worker["dataflows"][flow.index]["stages"]  # type: ignore[index]
    for number, stage in enumerate(stages):
        line = re.compile(
            rf"^.*\b{number}  {re.escape(str(stage['name']))}.*{re.escape(str(stage['site']))}$", re.M
        )
        assert line.search(plain) and line.search(told), number
    assert re.search(r"from \d+ input edges$", plain, re.M) and re.search(
        r"input edges: 20 rows$", told, re.M
    )
    assert "epoch 1 is open, what is before 1 is complete" in told and "busy s" in told
    assert plain.startswith(f"'collection_flows:distances' on {workers} worker") or "distances" in plain
    assert " in iterate " in plain


def told_by(seconds: float, rows: int, name: str) -> Reply:
    stages: list[Value] = [
        {"name": "input a", "site": "shop.py:7", "loop": "", "busy_seconds": 0.01, "rows_waiting": 0},
        {"name": name, "site": "shop.py:8", "loop": "", "busy_seconds": seconds, "rows_waiting": 0},
    ]
    connectors: list[Value] = [{"source": 0, "target": 1, "rows": rows, "messages": 1} for _ in range(2)]
    inputs: list[Value] = [{"name": "a", "epoch": 2**62, "rows_waiting": 0}]
    told: Value = {
        "spec": "shop", "complete_before": 2**62, "inputs": inputs, "epochs": [], "stages": stages,
        "connectors": connectors,
    }  # fmt: skip
    return Reply({"worker": 0, "dataflows": {4: told}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("name", "seconds", "advice"),
    [
        (
            "join on key",
            (0.1, 0.9),
            "stage 1 is uneven: one worker took 1.80 times the mean of all; join(…, balance='auto')",
        ),
        (
            "distinct",
            (0.0, 0.9),
            "stage 1 is uneven: one worker took 2.00 times the mean of all; docs/skew_joins.md",
        ),
        (
            "input b",
            (0.0, 0.9),
            "stage 1 is uneven: one worker took 2.00 times the mean of all; map, filter and select behind",
        ),
        ("distinct", (0.4, 0.5), ""),
        ("distinct", (0.0, 0.05), ""),
    ],
)
def test_a_stage_that_one_worker_does_nearly_alone_is_named(
    name: str, seconds: tuple[float, float], advice: str
) -> None:
    told = running_plan([told_by(each, 7, name) for each in seconds], 4, analyze=True)
    last = told.splitlines()[-1]
    assert last.startswith(advice) if advice else "uneven" not in told
    assert "no input is open, all is complete" in told and "input a: 28 rows" in told
    assert "uneven" not in running_plan([told_by(each, 7, name) for each in seconds], 4, analyze=False)
