"""The example that kills its workers: nothing is lost, and a second run goes on behind the first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

PROGRAM = ROOT / "examples" / "killed_workers.py"


def answer_of(*arguments: str) -> list[str]:
    """Return the lines that the example prints."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.timeout(180)
def test_killed_workers_lose_nothing_and_a_second_run_goes_on(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    first = answer_of("--store", store, "--epochs", "4", "--kill-every", "2")
    assert first[0] == "begins with epoch 0"
    assert first[1] == "epoch 1: a worker is killed"
    assert first[-1] == "as a sum over all orders: True"
    second = answer_of("--store", store, "--epochs", "6", "--kill-every", "5")
    assert second[:2] == ["begins with epoch 4", "epoch 4: a worker is killed"]
    assert second[-1] == "as a sum over all orders: True"
