"""Packages of other authors that are called as ours are named in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT


def run(program: str, *first: Path) -> subprocess.CompletedProcess[str]:
    """What a program does in a fresh process with the folders `first` before ours on the path."""
    path = os.pathsep.join(map(str, (*first, ROOT)))
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=first[0] if first else ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )


def other(folder: Path, name: str, source: str = "class Bar:\n    pass\n") -> Path:
    """A package of another author."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(source)
    return folder / name / "__init__.py"


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("progress", "timely"),
        ("progress", "differential"),
        ("progress", "timely.spark"),
        ("progress", "differential.algorithms"),
        ("timely", "differential"),
    ],
)
def test_the_file_is_named_with_what_to_do(name: str, imported: str, tmp_path: Path) -> None:
    file = other(tmp_path, name)
    ran = run(f"import {imported}", tmp_path)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {file} is not the package {name!r} of naiad"), ran.stderr
    assert f"pip uninstall {name}" in last and "virtual environment" in last
    assert "During handling" not in ran.stderr and "direct cause" not in ran.stderr


@pytest.mark.parametrize("source", ["raise ValueError('old')", "print 'Python 2'"])
def test_also_one_that_cannot_be_imported(source: str, tmp_path: Path) -> None:
    file = other(tmp_path, "progress", source)
    ran = run("import timely", tmp_path)
    assert ran.stderr.splitlines()[-1].startswith(f"ImportError: {file} is not"), ran.stderr


def test_a_file_of_the_user_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "progress.py").write_text("done = 0\n")
    ran = run("import timely", tmp_path)
    assert f"ImportError: {tmp_path / 'progress.py'} is not the package 'progress'" in ran.stderr


def test_timely_warns_of_another_differential_and_goes_on(tmp_path: Path) -> None:
    file = other(tmp_path, "differential")
    ran = run("import timely\nprint(timely.connect.__name__)", tmp_path)
    assert ran.stdout == "connect\n"
    assert f"RuntimeWarning: {file} is not the package 'differential' of naiad" in ran.stderr


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("raise ImportError('no numpy here')", "ImportError: no numpy here"),
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
    ],
)
def test_what_else_fails_in_ours_is_told_as_it_is(source: str, told: str, tmp_path: Path) -> None:
    other(tmp_path, "numpy", source)
    ran = run("import differential", tmp_path)
    assert ran.stderr.splitlines()[-1] == told


def test_ours_are_imported_without_a_word() -> None:
    ran = run("import timely, differential, progress")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
