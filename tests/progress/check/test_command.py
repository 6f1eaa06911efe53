"""`python -m progress.check`: what it prints, and with which status it ends."""

from __future__ import annotations

import pytest
from house import ROOT

from progress.check.command import main

FILE = str(ROOT / "tests" / "wrong_vertices.py")


def run(*arguments: str) -> tuple[int, list[str]]:
    lines: list[str] = []
    return main([*arguments], lines.append), lines


def test_a_right_scenario_ends_with_0() -> None:
    status, lines = run(f"{FILE}:RIGHT_ALONE", "--orders", "all", "--states", "500")
    assert status == 0 and lines[-1].startswith("all is as it must be: ") and "states" in lines[-1]


def test_seeds_are_run_one_after_the_other_and_one_shows_its_run() -> None:
    assert run(f"{FILE}:RIGHT", "--seeds", "3", "--crash", "--workers", "3") == (
        0,
        ["all is as it must be: seeds 0 to 2"],
    )
    status, lines = run(f"{FILE}:RIGHT", "--seed", "17")
    assert status == 0 and lines[0].startswith("seed 17: ")


def test_a_wrong_scenario_ends_with_1_and_its_steps(tmp_path: object) -> None:
    status, lines = run(f"{FILE}:KEEPS")
    assert status == 1
    assert lines[0].startswith("progress.check: nothing can happen any more, and 'sum' (stage 1, worker")
    assert "\n    1 worker" in lines[0]


def test_a_bad_file_ends_with_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("missing.py:scenario")[0] == 2
    assert capsys.readouterr().err == "progress.check: there is no file 'missing.py'\n"
    assert run(f"{FILE}:RIGHT", "--workers", "1")[0] == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_bad_arguments_end_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(f"{FILE}:RIGHT", "--seeds", "many")
    assert caught.value.code == 2
    assert "'many' is no whole number from 1 on" in capsys.readouterr().err
