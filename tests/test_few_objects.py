"""Tests with a process of their own: what they do is reported here, whatever happens to that process."""

from __future__ import annotations

import os
from pathlib import Path

import few_objects
import pytest
from few_objects import _missing, reports_of, run_apart

TESTS = """
import os

import pytest

ABOVE = {above}


def test_is_right():
    assert os.getpid() != ABOVE


@pytest.mark.skipif(True, reason="a good one")
def test_is_left_out():
    raise AssertionError


def test_is_wrong():
    assert os.getpid() == ABOVE, "it is elsewhere"


def test_ends_all():
    os._exit(7)


def test_comes_too_late():
    pass
"""


def test_reports_are_those_of_a_process_of_their_own(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "test_apart.py").write_text(TESTS.format(above=os.getpid()))
    names = ("is_right", "is_left_out", "is_wrong", "ends_all", "comes_too_late")
    tests = [f"{tmp_path / 'test_apart.py'}::test_{name}" for name in names]
    reports = reports_of(tests, request.config)
    by_name = {test.partition("::test_")[2]: of_test for test, of_test in reports.items() if test}
    outcomes = {name: [report.outcome for report in of_test] for name, of_test in by_name.items()}
    assert outcomes == {
        "is_right": ["passed"] * 3,
        "is_left_out": ["skipped", "passed"],
        "is_wrong": ["passed", "failed", "passed"],
        "ends_all": ["passed"],
    }
    assert "it is elsewhere" in by_name["is_wrong"][1].longreprtext


def test_one_that_has_no_report_has_failed_with_what_was_printed(request: pytest.FixtureRequest) -> None:
    reports = reports_of(["no such file"], request.config)
    assert list(reports) == [""]
    missing = _missing(request.node, reports)
    assert missing.failed and missing.nodeid == request.node.nodeid
    assert "it was not run" in missing.longreprtext and "no such file" in missing.longreprtext


def test_one_without_the_mark_runs_here(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_objects, "COLLECTED_MIN", 0)
    assert run_apart(request.node) is None
