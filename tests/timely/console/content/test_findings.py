"""What the page points at: each cause by itself, and nothing where all goes well."""

from __future__ import annotations

from dataclasses import replace

from timely.client.reports.figures import DataflowFigures, StageFigures
from timely.console.content.findings import findings

FLOW = DataflowFigures(0, "shop", 5, 5, 0, 0.0, 100.0, 0.1, 1000)
CALM = StageFigures(0, 1, "group by key", "shop.py:3", "", 0.1, 1.0, 100.0, 0, 10, 100)


def kinds(stage: StageFigures, shares: list[float], flow: DataflowFigures = FLOW) -> list[str]:
    split = [[replace(stage, busy=share)] for share in shares]
    return [each.kind for each in findings(flow, [stage], split, [], [])]


def test_nothing_is_found_where_all_goes_well() -> None:
    inputs = [{"name": "a", "epoch": 5}, {"name": "b", "epoch": 6}, {"name": "c", "epoch": None}]
    outputs = [
        {"name": "o", "complete": 5, "readers": [{"epoch": 5, "silent": 60.0}, {"epoch": 1, "silent": 0.1}]}
    ]
    assert findings(FLOW, [CALM], [[CALM], [CALM]], inputs, outputs) == []


def test_a_stage_that_is_always_busy_is_found() -> None:
    assert kinds(replace(CALM, busy=1.8), [0.9, 0.9]) == ["busy"]
    assert kinds(replace(CALM, busy=0.9), [0.9]) == ["busy"]


def test_a_worker_that_does_most_is_found_with_advice_for_what_the_stage_is() -> None:
    uneven = replace(CALM, busy=0.5, skew=1.9)
    assert kinds(uneven, [0.02, 0.48]) == ["uneven"]
    assert kinds(replace(uneven, busy=0.1), [0.0, 0.1]) == [], "too little to matter"
    for name, word in (("join on k", "balance"), ("input a", "insertions"), ("group by k", "key")):
        stage = replace(uneven, name=name)
        shares = [[replace(stage, busy=0.02)], [replace(stage, busy=0.48)]]
        (found,) = findings(FLOW, [stage], shares, [], [])
        assert "worker 1's time, 96% of all" in found.text and word in found.advice and found.stage == 1


def test_rows_that_wait_are_found_if_it_is_late_or_they_are_many() -> None:
    assert kinds(replace(CALM, waiting=10), [0.1]) == []
    assert kinds(replace(CALM, waiting=10), [0.1], replace(FLOW, behind_seconds=2.0)) == ["waiting"]
    assert kinds(replace(CALM, waiting=200_000), [0.1]) == ["waiting"]


def test_an_input_that_nobody_seals_is_found() -> None:
    inputs = [{"name": "a", "epoch": 3}, {"name": "b", "epoch": 9}]
    (found,) = findings(FLOW, [], [], inputs, [])
    assert found.kind == "input" and "'a' is at epoch 3" in found.text and "9" in found.text


def test_a_reader_that_fell_silent_is_found() -> None:
    outputs = [{"name": "o", "complete": 50, "readers": [{"epoch": 8, "silent": 30.0}]}]
    (found,) = findings(FLOW, [], [], [], outputs)
    assert found.kind == "reader" and "30 s" in found.text and "42 epochs" in found.text
