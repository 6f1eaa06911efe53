"""plots: is what is drawn what was measured? No figure of a run is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import plots
from bench.cases import Case
from bench.rounds import Round, keep, kept
from bench.systems import Figures

SIZES = plots.by_size((200, 500), 10)
FLIGHTS = plots.by_flight({1: 10, 10: 20}, 300)


def of(milliseconds: float) -> Figures:
    return Figures(1.0, milliseconds, 2 * milliseconds, 5.0, 6.0)


def made_up() -> list[Round]:
    """Ours 2, then 8 ms; Rust 1, then 16: in pairs 2 and 0.5; and a round in which Rust's does not count."""
    return [
        Round(case, 1, figures)
        for case in (*SIZES, *FLIGHTS)
        for figures in (
            {"ours": of(2.0), "Rust": of(1.0)},
            {"ours": of(8.0), "Rust": of(16.0)},
            {"ours": of(99.0)},
        )
    ]


def test_cases_are_of_both_workloads_each_with_twice_as_many_edges_as_nodes() -> None:
    assert [(case.words, case.sizes) for case in SIZES] == [
        (words, (nodes, 2 * nodes, 10)) for words in ("wcc plain", "bfs") for nodes in (200, 500)
    ]
    assert [(case.batch, case.sizes) for case in FLIGHTS[:2]] == [(1, (300, 600, 10)), (10, (300, 600, 20))]


def test_points_are_medians_of_rounds_in_which_both_count() -> None:
    lines = plots.latencies(made_up(), SIZES)
    assert [(line.family, line.system, line.what) for line in lines[:4]] == [
        ("wcc", "ours", "median"),
        ("wcc", "Rust", "median"),
        ("bfs", "ours", "median"),
        ("bfs", "Rust", "median"),
    ]
    assert lines[0].points == {200: 5.0, 500: 5.0} and lines[1].points == {200: 8.5, 500: 8.5}
    assert (lines[4].what, lines[4].points[200]) == ("99 %", 10.0)


def test_throughput_counts_the_changes_of_a_group() -> None:
    """One in 2 or 8 ms, and ten in as many."""
    ours = plots.throughputs(made_up(), FLIGHTS)[0]
    assert ours.values == {1: [500.0, 125.0], 10: [5000.0, 1250.0]}


def test_ratios_are_of_rounds_not_of_medians() -> None:
    table = plots.markdown(plots.latencies(made_up(), SIZES), "nodes")
    assert table.splitlines()[0] == "| nodes | wcc median | bfs median | wcc 99 % | bfs 99 % |"
    assert "| 200 | 5.00 / 8.50 = 1.25 |" in table


def test_places_that_were_not_measured_are_empty() -> None:
    rounds = [one for one in made_up() if one.case != SIZES[1]]
    assert "| 500 | – | 5.00 / 8.50 = 1.25 |" in plots.markdown(plots.latencies(rounds, SIZES), "nodes")


def test_what_was_kept_is_drawn_again_the_same(tmp_path: Path) -> None:
    for one in made_up():
        keep(one, tmp_path / "curves.jsonl")
    drawn = []
    for _ in range(2):
        plots.main(["--small", "--redraw", "--into", str(tmp_path)])
        names = ("change_by_size.svg", "throughput.svg", "curves.md")
        drawn.append([(tmp_path / name).read_text() for name in names])
    assert drawn[0] == drawn[1]
    assert "wcc ours median" in drawn[0][0] and "bfs Rust" in drawn[0][1]
    assert "![throughput](throughput.svg)" in drawn[0][2]


class Told:
    """A system whose runs all give the same; a context manager, as a checkout is."""

    description = "told"

    def __init__(self, name: str, journal: list[str]) -> None:
        self.name = name
        self._journal = journal

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.append("over")

    def can_run(self, case: Case) -> bool:
        return True

    def run(self, case: Case, workers: int) -> Figures:
        self._journal.append(self.name)
        return of(1.0)


def test_rounds_that_are_there_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal: list[str] = []
    monkeypatch.setattr(plots, "Checkout", lambda folder, name: Told(name, journal))
    monkeypatch.setattr(plots, "Peer", lambda program: Told("Rust", journal))
    cases, made = len(SIZES) + len(FLIGHTS), []
    for runs in ("2", "2", "3"):
        plots.main(["--small", "--runs", runs, "--into", str(tmp_path)])
        made.append((journal.count("ours"), journal.count("Rust")))
        journal.clear()
    assert made == [(2 * cases, 2 * cases), (0, 0), (cases, cases)]
    assert len(kept([tmp_path / "curves.jsonl"])) == 3 * cases
    assert "| 10 | 10,000 / 10,000 = 1.00 |" in (tmp_path / "curves.md").read_text()


def test_nothing_that_was_kept_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        plots.main(["--redraw", "--into", str(tmp_path)])
    assert "there is nothing in" in capsys.readouterr().err
