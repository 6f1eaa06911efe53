"""Checking of progress tracking, switched on for real processes.

on_*       each way to switch it on does, and a job runs as it would without
caught_*   what is broken on purpose ends the cluster with the name of the predicate
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from house import ROOT

import timely
from timely.running.checking.checker import SWITCH

CAUGHT = (
    r"progress predicate B2, own share does not hold at worker 1 of 2, dataflow 0: .* fails at "
    r"'miscounts' output 0 → 'collect'"
)


def drop_a_count(cluster: timely.Cluster) -> None:
    flow = cluster.install("dataflows:miscounts")
    flow.input("words").insert(["drop a count"])
    flow.seal()
    flow.wait(0)


def test_on_nested_loops_pass_and_a_dropped_count_is_caught() -> None:
    with timely.connect(workers=2, check_progress=True) as cluster:
        flow = cluster.install("dataflows:collatz")
        flow.input("numbers").insert([(n, n, 0) for n in range(1, 12)])
        flow.seal()
        assert {record[0] for _, record in flow.output("steps").changes()} == set(range(1, 12))
        with pytest.raises(timely.InternalError, match=CAUGHT.replace("dataflow 0", "dataflow 1")) as caught:
            drop_a_count(cluster)
        assert "last events: " in str(caught.value)


def test_on_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    with (
        timely.connect(workers=2) as cluster,
        pytest.raises(timely.InternalError, match=CAUGHT),
    ):
        drop_a_count(cluster)


def test_on_by_the_command_line() -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    arguments = ["-w", "2", "--client-port", "0", "--check-progress", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "timely.worker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT / "tests",
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().partition('"address": "')[2].partition('"')[0]
        with timely.connect(address) as cluster:
            with pytest.raises(timely.InternalError, match=CAUGHT):
                drop_a_count(cluster)
            assert cluster.install("dataflows:word_count").seal() == 0, "only that dataflow has ended"
            cluster.shutdown()
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "progress predicate B2, own share does not hold at worker 1 of 2" in errors
    finally:
        process.kill()
        process.communicate()


def test_on_is_said_when_workers_are_started_and_not_when_they_are_joined() -> None:
    with pytest.raises(timely.MisuseError, match="whether they check_progress was decided"):
        timely.connect("127.0.0.1:1", check_progress=True)
