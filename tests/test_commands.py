"""What can be started by `python -m` says by `--help` what it is, and refuses what it does not know.

Found by their names: a new command is looked at, too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

PACKAGES = ("progress", "timely", "differential")
PARTS = ("timely.worker.process",)
"""Started by our own commands: they say so."""


def commands() -> list[str]:
    """Modules with a command line of their own."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if '\nif __name__ == "__main__":\n' in path.read_text():
                parts = path.relative_to(ROOT).with_suffix("").parts
                found.append(".".join(part for part in parts if part != "__main__"))
    return found


def test_commands_are_those_that_the_documents_name() -> None:
    assert commands() == [
        "progress.check",
        "timely.console",
        "timely.durable",
        "timely.keys",
        "timely.metrics",
        "timely.spark.archive",
        "timely.sql",
        "timely.top",
        "timely.why",
        "timely.worker",
        *PARTS,
    ]


@pytest.mark.parametrize("name", commands())
@pytest.mark.parametrize("argument", ["--help", "--no-such-option"])
def test_commands_say_what_they_are_and_refuse_what_they_do_not_know(
    name: str, argument: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", name, argument],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
    )
    told = done.stdout + done.stderr
    assert (done.returncode == 0) == (argument == "--help" and name not in PARTS), told
    assert "Traceback" not in told and f"python -m {'timely.worker' if name in PARTS else name}" in told
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "nothing is written"
