"""What were figures taken on, and of which commit are they?"""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

__all__ = ["ROOT", "commit_of", "machine", "versions"]

ROOT = Path(__file__).resolve().parent.parent
"""This checkout."""


def commit_of(folder: Path = ROOT) -> str:
    """The commit of a checkout, marked if files of it are changed."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=folder, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "?"


def versions() -> str:
    """The processor, Python, and the libraries that count."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "?",
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pyarrow"))
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, {libraries}"


def machine() -> str:
    """What the figures were taken on, and which commit they are of."""
    return f"{versions()}; commit {commit_of()}"
