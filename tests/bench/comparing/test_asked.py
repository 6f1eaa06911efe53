"""asked: which ratios are asked for?"""

from __future__ import annotations

import pytest

from bench.asked import Asked, asked
from bench.cases import CASES, MODEST, SMALL, chosen


def of(name: str, workers: int, beside: str = "Rust") -> Asked:
    (case,) = chosen(CASES, [name])
    return asked(case, workers, beside)


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("wcc-100k-200k", (0.5, 0.5), (0.5, 1.0)),
        ("wcc-100k-1M", (0.5, 0.5), (0.5, 1.0)),
        ("wcc-1M-2M", (0.5, 0.4), (0.5, 0.8)),
        ("wcc-prioritised-1M-2M", (1.0, 1.5), (1.0, 2.0)),
        ("bfs-100k-1M", (0.8, 0.8), (0.8, 2.0)),
        ("bfs-1M-2M", (0.8, 0.8), (0.8, 2.0)),
        ("scc-100k-200k", (0.7, 0.8), (0.7, 1.5)),
        ("scc-written-100k-200k", (0.5, 0.5), (0.6, 0.6)),
        ("count-1M-10M", (0.5, 1.0), (0.8, 1.5)),
        ("sum-1M-10M", (0.4, 0.8), (0.6, 1.5)),
        ("join-1M-1M", (0.6, 1.0), (0.8, 1.5)),
        ("top-100k-1M", (0.8, 0.7), (0.9, 1.5)),
        ("q3-250k", (0.8, 0.8), (0.9, 1.5)),
        ("pagerank-100k-200k", (0.5, 0.5), (0.5, 0.7)),
    ],
)
def test_beside_rust(name: str, one: tuple[float, float], two: tuple[float, float]) -> None:
    for workers, (load, change) in ((1, one), (2, two)):
        assert of(name, workers) == Asked(load, change, 2 * change, 1.0)


def test_of_epochs_in_flight_only_the_change_on_one_worker() -> None:
    assert of("bfs-100k-200k-in-flight", 1) == Asked(change=1.5, memory=1.0)
    assert of("wcc-100k-200k-in-flight", 1) == Asked(change=0.5, memory=1.0)
    assert of("wcc-100k-200k-in-flight", 2) == Asked(memory=1.0)


def test_beside_peers_in_python_ten_times_ahead_in_all_that_takes_time() -> None:
    assert of("count-1M-10M", 1, "Bytewax") == of("wcc-1M-2M", 2, "Pathway") == Asked(0.1, 0.1, 0.1)
    assert all(asked(case, 1, "Pathway") == Asked(0.1, 0.1, 0.1) for case in MODEST)


def test_nothing_of_little_cases_of_more_workers_or_beside_another_checkout() -> None:
    assert {asked(case, 1, beside) for case in SMALL for beside in ("Rust", "Pathway")} == {Asked()}
    assert {asked(case, 1, "Rust") for case in MODEST} == {Asked()}, "that is a table of its own"
    assert of("wcc-1M-2M", 3) == of("wcc-1M-2M", 1, "before") == Asked()


def test_of_every_case_but_the_one_in_which_we_lose_most() -> None:
    assert [case.name for case in CASES if asked(case, 1, "Rust") == Asked()] == ["count-10k-100k"]
