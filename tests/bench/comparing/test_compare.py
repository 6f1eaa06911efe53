"""compare: are systems run in turn, wrong answers not counted, and ratios those of pairs?

  chosen_*     workloads by name
  rounds_*     who runs when, and what counts
  kept_*       what is written of each round, and made a table again
  checkout_*   another checkout is what is measured
  peer_*       programs that lie, fail, or are not there
  tables_*     what is shown, and which of the ratios that are asked for are reached

No figure of a run is looked at.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench import compare, memory
from bench.cases import CASES, MODEST, SMALL, Case, chosen
from bench.compare import Comparison
from bench.machine import ROOT
from bench.recomputation import believed
from bench.rounds import document, keep, kept, rows_of
from bench.systems import (
    PYTHON_PEERS,
    Checkout,
    Figures,
    Peer,
    PythonPeer,
    RunError,
    TooMuchError,
)
from bench.tables import COLUMNS, Row, markdown, ratios, screen

WCC = SMALL[0]
COUNT = next(case for case in SMALL if case.family == "count")


def figures(seconds: float) -> Figures:
    return Figures(seconds, seconds * 10, seconds * 100, 200.0, 200.0 + seconds)


class Told:
    """A system whose runs are known beforehand; errors are raised."""

    description = "made up"

    def __init__(
        self,
        name: str,
        runs: list[Figures | RunError],
        journal: list[str],
        cannot: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.cannot = cannot
        self._runs = runs
        self._journal = journal

    def can_run(self, case: Case) -> bool:
        return case.words not in self.cannot

    def run(self, case: Case, workers: int) -> Figures:
        self._journal.append(self.name)
        outcome = self._runs.pop(0)
        if isinstance(outcome, RunError):
            raise outcome
        return outcome


# chosen_


def test_chosen_without_names_are_all() -> None:
    assert chosen(CASES, []) == list(CASES)


def test_chosen_by_name_or_its_beginning() -> None:
    names = [case.name for case in chosen(CASES, ["scc", "bfs-100k-1m"])]
    assert names == ["bfs-100k-1M", "scc-100k-200k", "scc-written-100k-200k"]
    assert [case.name for case in chosen(CASES, ["bfs-1M"])] == ["bfs-1M-2M"]
    assert [case.name for case in chosen(CASES, ["wcc-100k-200k"])] == ["wcc-100k-200k"]


def test_chosen_unknown_names_are_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match=r"no workload 'triangles'; there are wcc-100k-200k, .*"):
        chosen(CASES, ["wcc", "triangles"])


@pytest.mark.parametrize("cases", [CASES, MODEST, SMALL])
def test_chosen_names_are_of_one_case_each(cases: tuple[Case, ...]) -> None:
    assert len({case.name for case in cases}) == len(cases)


# rounds_


def test_rounds_who_comes_first_takes_turns() -> None:
    journal: list[str] = []
    systems = [Told(name, [figures(1.0)] * 3, journal) for name in ("ours", "other")]
    notes: list[str] = []
    Comparison(systems, notes.append).run(WCC, 1, runs=3)
    assert notes[2] == "other: wcc-300-500 on one worker, run 2 of 3"
    assert journal == ["ours", "other", "other", "ours", "ours", "other"]


def test_rounds_without_a_partner_do_not_count() -> None:
    journal: list[str] = []
    ours = Told("ours", [figures(1.0), figures(3.0)], journal)
    other = Told("other", [RunError("the answer is wrong"), figures(2.0)], journal)
    comparison = Comparison([ours, other], note=lambda now: None)
    comparison.run(WCC, 1, runs=2)
    (row,) = rows_of(comparison.rounds)
    assert ratios(row.pairs("ours", "other"), COLUMNS[0]) == [1.5]
    (failure,) = comparison.failures
    assert "other: wcc-300-500 on one worker, run 1 of 2: the answer is wrong" in failure


def test_rounds_of_a_system_that_cannot_say_it_are_without_it() -> None:
    journal: list[str] = []
    ours = Told("ours", [figures(1.0)] * 2, journal)
    able, unable = Told("Pathway", [figures(2.0)] * 2, journal), Told("Bytewax", [], journal, (WCC.words,))
    comparison = Comparison([ours, able, unable], note=lambda now: None)
    comparison.run(WCC, 1, runs=2)
    assert journal == ["ours", "Pathway", "Pathway", "ours"]
    text = document(comparison.rounds, "ours", "command")
    assert "ours / Pathway" in text and "Bytewax" not in text


def test_rounds_of_a_system_that_is_too_slow_are_not_made_again() -> None:
    journal: list[str] = []
    ours = Told("ours", [figures(1.0)] * 3, journal)
    fast = Told("Rust", [figures(2.0)] * 3, journal)
    slow = Told("Pathway", [TooMuchError("pathway", "60 s")], journal)
    comparison = Comparison([ours, fast, slow], note=lambda now: None)
    comparison.run(WCC, 1, runs=3)
    assert journal.count("Pathway") == 1 and journal.count("Rust") == 3
    assert not comparison.failures, "it is a figure, not a failure"
    text = document(comparison.rounds, "ours", "command")
    assert text.count("| wcc-300-500 | not within 60 s |") == 1


def test_rounds_end_where_all_others_are_too_slow() -> None:
    journal: list[str] = []
    ours = Told("ours", [figures(1.0)] * 3, journal)
    slow = Told("Pathway", [TooMuchError("pathway", "60 s")], journal)
    Comparison([ours, slow], note=lambda now: None).run(WCC, 1, runs=3)
    assert journal == ["ours", "Pathway"]


# kept_


def made_rounds(path: Path) -> Comparison:
    journal: list[str] = []
    ours = Told("ours", [figures(1.0), figures(2.0), figures(3.0)], journal)
    other = Told(
        "Rust", [figures(2.0), RunError("the answer is wrong"), TooMuchError("rust", "5 s")], journal
    )
    comparison = Comparison([ours, other], note=lambda now: None)
    comparison.run(WCC, 1, runs=2, done=lambda one: keep(one, path))
    comparison.run(COUNT, 2, runs=1, done=lambda one: keep(one, path))
    return comparison


def test_kept_rounds_make_the_same_table_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    comparison = made_rounds(path)
    assert kept([path]) == comparison.rounds
    assert document(kept([path]), "ours", "x") == document(comparison.rounds, "ours", "x")


def test_kept_rounds_of_several_sittings_are_one_row(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    made_rounds(first)
    made_rounds(second)
    rows = rows_of(kept([first, second]))
    assert [(row.case, row.workers, len(row.rounds)) for row in rows] == [(WCC, 1, 4), (COUNT, 2, 2)]


def test_kept_lines_that_a_crash_cut_are_left_out_and_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    rounds = made_rounds(path).rounds
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert kept([path]) == rounds[:-1]
    keep(rounds[-1], path)
    assert path.read_text() == whole


def test_kept_by_one_command_and_shown_by_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peer, path = program(tmp_path, right_answer()), tmp_path / "kept.jsonl"
    with pytest.raises(SystemExit) as ended:
        compare.main(
            ["count", "--small", "--runs", "1", "--workers", "1", "--peer", str(peer)]
            + ["--keep", str(path), "--write", str(tmp_path / "first.md")]
        )
    assert ended.value.code == 0
    compare.main(["--from", str(path), "--write", str(tmp_path / "again.md")])
    first, again = ((tmp_path / name).read_text().splitlines() for name in ("first.md", "again.md"))
    assert first[3:] == again[3:], "all but the command"
    capsys.readouterr()
    compare.main(["--from", str(path)])
    assert "| count-1k-10k |" in capsys.readouterr().out


# checkout_


@pytest.fixture
def other_checkout(tmp_path: Path) -> Path:
    """Another checkout with the packages of this one."""
    folder = tmp_path / "other"
    for package in ("progress", "timely", "differential"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("spark"))
    return folder


def test_checkout_of_this_very_folder_is_run_beside_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        compare.main(
            ["count", "--small", "--runs", "1", "--workers", "1", "--against", str(ROOT)]
            + ["--write", str(tmp_path / "count.md")]
        )
    assert ended.value.code == 0
    text = (tmp_path / "count.md").read_text()
    assert f"### ours / {ROOT.name}, one worker" in text
    assert re.search(r"\| count-1k-10k \| \d+\.\d\d \|", text)
    assert "count-1k-10k" in capsys.readouterr().out


def test_checkout_is_measured_by_its_own_packages(other_checkout: Path) -> None:
    """A wrong answer of the other checkout is seen, so it was the other checkout that ran."""
    with (other_checkout / "differential/__init__.py").open("a") as module:
        module.write("\n\nsum = max\n")
    sums = next(case for case in SMALL if case.family == "sum")
    with Checkout(other_checkout) as checkout, pytest.raises(RunError, match="the answer has the checks"):
        checkout.run(sums, 1)


def test_checkout_whose_packages_are_not_its_own_does_not_count(tmp_path: Path) -> None:
    for package in ("progress", "timely", "differential"):
        (tmp_path / package).symlink_to(ROOT / package)
    with Checkout(tmp_path) as checkout, pytest.raises(RunError, match=r"measured were the packages of"):
        checkout.run(SMALL[1], 1)


def test_checkout_names_are_all_different() -> None:
    folders = [Path("/a/before"), Path("/b/before"), Path("/c/ours"), Path("/d/after")]
    assert compare.names_of(folders) == ["before", "before (2)", "ours (2)", "after"]


def test_checkout_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no checkout of this project"):
        Checkout(tmp_path)


def test_checkout_without_a_bench_that_measures_has_no_bench_of_its_own(other_checkout: Path) -> None:
    (other_checkout / "bench").mkdir()
    (other_checkout / "bench/__init__.py").touch()
    with pytest.raises(RunError, match="has no dataflow/measure.py"):
        Checkout(other_checkout, own_bench=True)


# peer_


def program(folder: Path, says: dict[str, object], exit_code: int = 0) -> Path:
    """A peer that prints what it is told to."""
    path = folder / "peer"
    line = json.dumps(says)
    path.write_text(f"#!{sys.executable}\nprint({line!r})\nraise SystemExit({exit_code})\n")
    path.chmod(0o755)
    return path


def right_answer() -> dict[str, object]:
    agreed = believed(COUNT.workload)
    return {
        "system": "told 1.0",
        "workload": COUNT.workload,
        "workers": 1,
        "batch": 1,
        "load_seconds": 1.0,
        "change_ms_median": 1.0,
        "change_ms_p99": 2.0,
        "idle_mib": 2.5,
        "peak_mib": 3.0,
        "check_load": agreed.load.to_json(),
        "check_changes": agreed.changes.to_json(),
    }


def test_peer_whose_answer_is_right_counts(tmp_path: Path) -> None:
    peer = Peer(program(tmp_path, right_answer()))
    assert peer.run(COUNT, 1) == Figures(1.0, 1.0, 2.0, 2.5, 3.0)
    assert peer.description == "told 1.0, release build"


@pytest.mark.parametrize("part", ["check_load", "check_changes"])
def test_peer_whose_answer_is_wrong_does_not_count(tmp_path: Path, part: str) -> None:
    wrong = dict(believed(COUNT.workload).load.to_json(), n=999)
    peer = Peer(program(tmp_path, {**right_answer(), part: wrong}))
    with pytest.raises(RunError, match=f"the answer is wrong: {part} is 999 "):
        peer.run(COUNT, 1)


def test_peer_that_ran_something_else_does_not_count(tmp_path: Path) -> None:
    peer = Peer(program(tmp_path, {**right_answer(), "workers": 2}))
    with pytest.raises(RunError, match="asked for workers 1, but it ran 2"):
        peer.run(COUNT, 1)


def test_peer_that_fails_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="ended with 3"):
        Peer(program(tmp_path, right_answer(), exit_code=3)).run(COUNT, 1)


def test_peer_that_lies_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peer = program(tmp_path, {**right_answer(), "check_load": {"n": 1, "special": 1, "sum": 1, "hash": "1"}})
    with pytest.raises(SystemExit) as ended:
        compare.main(["count", "--small", "--runs", "1", "--workers", "1", "--peer", str(peer)])
    assert ended.value.code == 1
    assert "the answer is wrong: check_load" in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_peer_that_is_not_built_is_an_error_that_says_how(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=re.escape("build it as bench/peers/README.md says")):
        Peer(tmp_path / "ddpeer")


def test_peer_that_does_not_end_is_too_slow(tmp_path: Path) -> None:
    sleeps = tmp_path / "python"
    sleeps.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeps.chmod(0o755)
    with pytest.raises(TooMuchError, match="has not ended within 0 s"):
        PythonPeer("Bytewax", 0.1, sleeps).run(COUNT, 1)


def test_peer_that_takes_too_much_memory_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps = tmp_path / "python"
    sleeps.write_text("#!/bin/sh\nexec sleep 60\n")
    sleeps.chmod(0o755)
    monkeypatch.setattr(memory, "resident_mib_of", lambda process: 12 * 1024 + 1.0)
    with pytest.raises(TooMuchError, match="has not ended within 12 GiB"):
        PythonPeer("Bytewax", 60.0, sleeps).run(COUNT, 1)


def test_peer_in_python_is_asked_as_rust_is(tmp_path: Path) -> None:
    """The program stands for the environment's Python, and says what it was asked for by ending with it."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/asked\necho '{json.dumps(right_answer())}'\n")
    python.chmod(0o755)
    peer = PythonPeer("Pathway", 60.0, python)
    assert peer.run(COUNT, 1) == Figures(1.0, 1.0, 2.0, 2.5, 3.0)
    assert peer.description == "told 1.0"
    asked_for = (tmp_path / "asked").read_text().strip()
    assert asked_for == "-m bench.peers.python.on_pathway count plain 1000 10000 10 40 -w 1 --batch 1"


def test_peer_in_python_says_which_workloads_it_has() -> None:
    bytewax = PythonPeer("Bytewax", 1.0, Path(sys.executable))
    able = {case.family for case in CASES if bytewax.can_run(case)}
    assert able == {"count", "sum", "join"}
    for name in PYTHON_PEERS:
        of_them = [case for case in MODEST if PythonPeer(name, 1.0, Path(sys.executable)).can_run(case)]
        assert {case.words for case in of_them} == set(PYTHON_PEERS[name]), "a modest size of each"


def test_peer_in_python_that_is_not_installed_is_an_error_that_says_how(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=re.escape("make it as bench/peers/README.md says")):
        PythonPeer("Pathway", 1.0, tmp_path / "python")


# tables_


def made_up() -> list[Row]:
    rounds = [
        {"ours": figures(1.0), "Rust": figures(2.0)},
        {"ours": figures(3.0), "Rust": figures(4.0)},
        {"ours": figures(9.0), "Rust": figures(3.0)},
        {"ours": figures(5.0)},
    ]
    in_flight = next(case for case in SMALL if case.batch > 1)
    return [Row(WCC, 1, rounds), Row(in_flight, 1, rounds), Row(WCC, 2, [])]


def test_tables_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    text = markdown(made_up(), "ours", "Rust")
    assert "| wcc-300-500 | 0.75 (0.50–3.00) |" in text
    assert "| wcc-300-500 | 3.00 / 3.00 | 30.0 / 30.0 | 300 / 300 | 3.00 / 3.00 | 203 / 203 |" in text


def test_tables_have_no_99_percent_of_a_single_group() -> None:
    line = next(line for line in markdown(made_up(), "ours", "Rust").splitlines() if "in-flight" in line)
    assert line.split("|")[4].strip() == "–"


def test_tables_show_a_row_without_pairs_as_empty() -> None:
    text = markdown(made_up(), "ours", "Rust")
    assert "| wcc-300-500 | – | – | – | – | – |" in text


def test_tables_show_what_is_remembered_where_both_say_it() -> None:
    said = replace(figures(1.0), trace_rows=900.0, trace_mib=3.0)
    says_less = replace(figures(1.0), trace_rows=600.0, trace_mib=None)
    row = Row(WCC, 1, [{"ours": said, "before": says_less, "Rust": figures(1.0)}])
    assert "rows in traces" not in markdown([row], "ours", "Rust")
    text = markdown([row], "ours", "before")
    assert "rows in traces |" in text and "| 900 / 600 |" in text and "traces, MiB" not in text


def large(ratio: float, rounds: int = 1) -> Row:
    """A case of which all times are asked to be at most half of Rust's, and what they are."""
    case = next(case for case in CASES if case.name == "wcc-100k-200k")
    return Row(case, 1, [{"ours": figures(ratio), "Rust": figures(1.0)}] * rounds)


def test_tables_say_what_is_asked_and_whether_it_is_reached() -> None:
    row = large(0.5)
    line = next(line for line in markdown([row], "ours", "Rust").splitlines() if row.case.name in line)
    assert line.split("|")[2:7] == [" 0.50 ✓ 0.5 ", " 0.50 ✓ 0.5 ", " 0.50 ✓ 1.0 ", " 0.50 ", " 1.00 "]
    missed = markdown([large(0.51, rounds=2)], "ours", "Rust")
    assert "| 0.51 (0.51–0.51) ✗ 0.5 | 0.51 (0.51–0.51) ✗ 0.5 | 0.51 (0.51–0.51) ✓ 1.0 |" in missed
    assert "Reached beside Rust: 2 of 4 ratios that are asked for." in missed


def test_tables_compare_what_we_add_with_all_that_rust_has() -> None:
    """Figures are 200 MiB idle; ours adds 0.5 to them, Rust's process has 201 in all."""
    text = markdown([large(0.5)], "ours", "Rust")
    assert "| memory above idle / the other's whole |" in text
    assert "| 0.00 ✓ 1.0 |" in text and "| 0.500 / 201 |" in text
    assert "the other's whole" not in markdown([large(0.5)], "ours", "before"), "nothing is asked beside it"


def test_tables_say_where_we_lose_most() -> None:
    rows = [large(0.3), Row(WCC, 2, [{"ours": figures(5.0), "Rust": figures(1.0)}])]
    assert "Where we lose most: wcc-300-500 on 2 workers, load, 5.00 of Rust." in markdown(
        rows, "ours", "Rust"
    )
    assert "Where we are least ahead: wcc-100k-200k on one worker, load, 0.30" in markdown(
        rows[:1], "ours", "Rust"
    )


def test_tables_on_the_screen_fit_a_narrow_terminal() -> None:
    screen_of_100 = StringIO()
    Console(width=100, file=screen_of_100).print(screen(made_up(), "ours", "Rust"))
    shown = screen_of_100.getvalue()
    assert "0.75" in shown and "203 / 203" in shown and "…" not in shown
