"""in_turn: are steps made in turn, and compared with their neighbours? No figure is looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import in_turn
from bench.in_turn import Steps, taken_in_turn, told
from bench.machine import ROOT

ECHO = "import sys; print('ready', flush=True)\nfor line in sys.stdin: print(len(line) / 10, flush=True)"


def process(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_every_system_makes_every_step() -> None:
    one, other = process(ECHO), process(ECHO)
    with Steps("ours", one) as ours, Steps("other", other) as theirs:
        steps = ["load", "change 10"]
        rounds = taken_in_turn([ours, theirs], steps)
    assert rounds == [{"ours": 0.5, "other": 0.5}, {"ours": 1.0, "other": 1.0}]
    assert None not in (one.poll(), other.poll()), "they end with the block"


def test_a_process_that_ends_is_named_with_what_it_was_asked_for() -> None:
    ends = process("print('ready', flush=True); raise SystemExit(3)")
    with (
        pytest.raises(in_turn.RunError, match="before has ended with 3, asked for load"),
        Steps("before", ends) as before,
    ):
        ends.wait()
        before.step("load")


def test_a_process_that_never_begins_is_named() -> None:
    with (
        pytest.raises(in_turn.RunError, match="before has ended with 4, asked for ready"),
        Steps("before", process("raise SystemExit(4)")),
    ):
        pass


def test_ratios_are_of_neighbours() -> None:
    rounds = [{"ours": 1.0, "before": 2.0}, {"ours": 30.0, "before": 20.0}, {"ours": 8.0, "before": 8.0}]
    assert told("bfs", rounds, "before") == "bfs: ours / before 1.00 (0.50-1.50), 8.00 / 8.00 ms, 3 pairs"


@pytest.mark.parametrize(("workers", "threads"), [(1, []), (2, []), (2, ["--threads"])])
def test_a_checkout_beside_itself(
    workers: int, threads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bfs", "--small", "--loads", "2", "--changes", "3", "--workers", str(workers), *threads]
    in_turn.main([*words, "--against", str(ROOT)])
    load, change = capsys.readouterr().out.splitlines()
    assert load.startswith(f"bfs-300-900 on {workers}, load: ours / {ROOT.name} ") and load.endswith(
        "2 pairs"
    )
    assert change.startswith(f"bfs-300-900 on {workers}, change: ") and change.endswith("3 pairs")


@pytest.mark.parametrize(
    ("words", "said"), [(["--loads", "0"], "at least one load"), (["nothing"], "nothing")]
)
def test_what_cannot_be_asked_for(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        in_turn.main(["bfs", *words, "--small", "--against", str(ROOT)])
    assert said in capsys.readouterr().err


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout"):
        in_turn.main(["bfs", "--small", "--against", str(tmp_path)])
