"""Kernels that are first called when there are many rows are loaded with the first trace of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from differential.kernels import loading
from progress.kernel import Kernel

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import numpy as np
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.rows.memory import describe_words
from differential.trace.trace import Trace
from progress.kernel import compile_for, kernels_compiled
assert not describe_words.signatures
trace = Trace(1, 0, 1 << 62)
print(bool(describe_words.signatures), bool(merge_runs.signatures), kernels_compiled())
compile_for(describe_words, np.empty((1, 1), np.int64), 1, np.empty((1, 1), np.int64), 0)
"""


def test_those_that_are_kept_are_loaded_with_the_first_trace_and_others_are_not_compiled(
    tmp_path: Path,
) -> None:
    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": str(ROOT), "NAIAD_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert run() == "False False 0"
    assert run() == "True False 0"


def test_all_that_are_named_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Kernel] = []
    monkeypatch.setattr(loading, "load_kept", lambda *kernels: loaded.extend(kernels))
    loading.load_kernels.cache_clear()
    loading.load_kernels()
    loading.load_kernels()
    named = {name for name, found in vars(loading).items() if isinstance(found, Kernel)}
    assert sorted(kernel.__name__ for kernel in loaded) == sorted(named)  # type: ignore[attr-defined]
    assert "merge_runs" in named
