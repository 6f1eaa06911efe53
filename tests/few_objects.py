"""Files of tests that run in a process with few objects, because they let the collector look through all.

The tests that were collected are some millions of objects, which the collector does not see (`conftest.py`).
Tests of the collector itself show it all of them again, and then each look takes a second or two. So the
tests of a file with `pytestmark = pytest.mark.few_objects` run in a pytest of their own, which has collected
nothing else, and its reports are passed on. If few tests were collected they run here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

__all__ = ["reports_of", "run_apart"]

COLLECTED_MIN = 1_000
_SECONDS_MAX = 250
_FILE = "NAIAD_TEST_REPORTS"

Reports = dict[str, list[pytest.TestReport]]
_REPORTS = pytest.StashKey[dict[Path, Reports]]()


def run_apart(item: pytest.Item) -> bool | None:
    """Report what the test does in a process with few objects; None if it runs here."""
    session = item.session
    if item.get_closest_marker("few_objects") is None or len(session.items) < COLLECTED_MIN:
        return None
    known = session.config.stash.setdefault(_REPORTS, {})
    if item.path not in known:
        wanted = [each.nodeid for each in session.items if each.path == item.path]
        known[item.path] = reports_of(wanted, session.config)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in known[item.path].get(item.nodeid) or [_missing(item, known[item.path])]:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def reports_of(tests: Sequence[str], config: pytest.Config) -> Reports:
    """Run these tests in a process of their own; return the reports of each, and below "" what it printed."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join([path for path in sys.path if path])
    command = [sys.executable, "-m", "pytest", "-p", "few_objects", "-p", "no:cacheprovider", "-q", "-n", "0"]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "reports"
        file.touch()
        done = subprocess.run(
            [*command, *tests],
            cwd=config.rootpath,
            env={**outside, "PYTHONPATH": path, _FILE: str(file)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS_MAX,
        )
        found: Reports = defaultdict(list)
        for line in file.read_text().splitlines():
            report = config.hook.pytest_report_from_serializable(config=config, data=json.loads(line))
            found[report.nodeid].append(report)
    found[""] = [pytest.TestReport("", ("", None, ""), {}, "failed", done.stdout, "call")]
    return dict(found)


def _missing(item: pytest.Item, reports: Reports) -> pytest.TestReport:
    printed = reports[""][0].longrepr
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", f"it was not run:\n{printed}", "call")


class _Writing:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a report for the process that has started this one."""
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with Path(os.environ[_FILE]).open("a") as file:
            file.write(json.dumps(data) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin of that process."""
    if _FILE in os.environ:
        config.pluginmanager.register(_Writing(config))
