"""What the page points at: each cause by itself, and nothing where all goes well."""

from __future__ import annotations

from dataclasses import replace

from timely.client.reports.figures import DataflowFigures, StageFigures, WorkerFigures
from timely.console.content.findings import computing, findings

FLOW = DataflowFigures(0, "shop", 5, 5, 0, 0.0, 100.0, 0.1, 1000)
CALM = StageFigures(0, 1, "group by key", "shop.py:3", "", 0.1, 1.0, 100.0, 0, 10, 100)


def reader(epoch: int, silent: float, behind: int) -> dict[str, object]:
    shown = {
        "name": "3f2a91bc",
        "client": "process 77 on ada",
        "site": "shop.py:12",
        "rows": 1_200,
        "bytes": 48_000,
    }
    return shown | {"epoch": epoch, "silent": silent, "behind": behind}


def kinds(stage: StageFigures, shares: list[float], flow: DataflowFigures = FLOW) -> list[str]:
    split = [[replace(stage, busy=share)] for share in shares]
    return [each.kind for each in findings(flow, [stage], split, [], [])]


def test_nothing_is_found_where_all_goes_well() -> None:
    inputs = [{"name": "a", "epoch": 5}, {"name": "b", "epoch": 6}, {"name": "c", "epoch": None}]
    outputs = [{"name": "o", "complete": 5, "readers": [reader(5, 60.0, 0), reader(1, 0.1, 4)]}]
    assert findings(FLOW, [CALM], [[CALM], [CALM]], inputs, outputs) == []


def test_a_stage_that_is_always_busy_is_found() -> None:
    assert kinds(replace(CALM, busy=1.8), [0.9, 0.9]) == ["busy"]
    assert kinds(replace(CALM, busy=0.9), [0.9]) == ["busy"]


def test_a_worker_that_does_most_is_found_with_advice_for_what_the_stage_is() -> None:
    uneven = replace(CALM, busy=0.5, skew=1.9)
    assert kinds(uneven, [0.02, 0.48]) == ["uneven"]
    assert kinds(replace(uneven, busy=0.1), [0.0, 0.1]) == [], "too little to matter"
    for name, word in (("join on k", "balance="), ("input a", "insertions"), ("distinct", "key")):
        stage = replace(uneven, name=name)
        shares = [[replace(stage, busy=0.02)], [replace(stage, busy=0.48)]]
        (found,) = findings(FLOW, [stage], shares, [], [])
        assert "worker 1's time, 96% of all" in found.text and word in found.advice and found.stage == 1


def test_a_worker_that_keeps_most_rows_has_the_keys_that_have_them() -> None:
    stage = replace(CALM, name="join on k", busy=0.5, skew=1.9)
    shares = [[replace(stage, busy=busy, kept_rows=rows)] for busy, rows in ((0.02, 10), (0.48, 90))]
    (found,) = findings(FLOW, [stage], shares, [], [])
    assert found.advice.startswith("Worker 1 keeps 90% of its rows")
    even = [[replace(stage, busy=0.02, kept_rows=50)], [replace(stage, busy=0.48, kept_rows=50)]]
    (found,) = findings(FLOW, [stage], even, [], [])
    assert "keeps" not in found.advice


def test_times_that_differ_since_a_process_has_no_processor_are_not_called_skew() -> None:
    def found_of(busy: float, had: float) -> list[str]:
        stage = replace(CALM, busy=busy, skew=1.9)
        shares = [[replace(stage, busy=0.02)], [replace(stage, busy=busy - 0.02)]]
        return [f"{each.kind}: {each.text}" for each in findings(FLOW, [stage], shares, [], [], [1.0, had])]

    assert found_of(0.5, 0.3) == [], "it works for half of the time and less, and may have no skew"
    (found,) = found_of(0.95, 0.3)
    assert found.startswith("busy") and "has a processor for 30% of that only" in found
    (found,) = found_of(0.95, 0.9)
    assert found.startswith("uneven")
    for busy in (0.5, 0.95):
        stage = replace(CALM, busy=busy, skew=1.9, name="join on k")
        shares = [[replace(stage, busy=0.02, kept_rows=1)], [replace(stage, busy=busy - 0.02, kept_rows=99)]]
        (other,) = findings(FLOW, [stage], shares, [], [], [1.0, 0.3])
        assert other.kind == "uneven", "the rows that it keeps say so, whatever the processors do"


def test_workers_of_one_process_have_the_processors_of_that() -> None:
    workers = [WorkerFigures(number, number // 2, 0.5, 0, 0.0) for number in range(4)]
    stages = [[replace(CALM, busy=busy)] for busy in (0.9, 0.1, 0.3, 0.1)]
    assert computing(workers, stages) == [0.5, 0.5, 1.0, 1.0]
    assert computing([replace(workers[0], cpu=0.0)], [[]]) == [0.0], "and no worker that does nothing matters"


def test_rows_that_wait_are_found_if_it_is_late_or_they_are_many() -> None:
    assert kinds(replace(CALM, waiting=10), [0.1]) == []
    assert kinds(replace(CALM, waiting=10), [0.1], replace(FLOW, behind_seconds=2.0)) == ["waiting"]
    assert kinds(replace(CALM, waiting=200_000), [0.1]) == ["waiting"]


def test_an_input_that_nobody_seals_is_found() -> None:
    inputs = [{"name": "a", "epoch": 3}, {"name": "b", "epoch": 9}]
    (found,) = findings(FLOW, [], [], inputs, [])
    assert found.kind == "input" and "'a' is at epoch 3" in found.text and "9" in found.text


def test_a_reader_that_fell_silent_is_found() -> None:
    outputs = [{"name": "o", "complete": 50, "readers": [reader(8, 30.0, 42)]}]
    (found,) = findings(FLOW, [], [], [], outputs)
    assert found.kind == "reader" and "30 s" in found.text and "42 epochs" in found.text
    assert (
        found.text.endswith(": process 77 on ada, at shop.py:12") and "1,200 rows in 48,000" in found.advice
    )
