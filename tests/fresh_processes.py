"""Processes that keep what they compile in a folder of a test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from house import ROOT

__all__ = ["answer", "start"]


def start(folder: Path, program: str, cache: Path) -> subprocess.Popen[str]:
    """A process that keeps what it compiles in `cache`, beside the modules in `folder`."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "NAIAD_CACHE": str(cache),
    }
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    """What it writes."""
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out
