"""Kernels that are first called when there are many rows are ready with the first trace of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from fresh_processes import cache_without

from differential.kernels import loading
from progress.compiled.kernel import Kernel, compile_for

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
from differential.kernels.merging.merge_runs import merge_runs
from differential.kernels.rows.sort import sort_words
from differential.trace.trace import Trace
from progress.compiled.kernel import kernels_compiled
assert not merge_runs.signatures
trace = Trace(1, 0, 1 << 62)
print(bool(merge_runs.signatures), bool(sort_words.signatures), kernels_compiled() > 0)
"""


def test_those_that_are_not_kept_are_compiled_with_the_first_trace_and_some_are_loaded(
    tmp_path: Path,
) -> None:
    """Sorting is loaded where it is called: a start loads what it calls soon, and does not wait for more."""
    cache = cache_without(tmp_path, "merge_runs", "sort_words")

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": str(ROOT), "NAIAD_CACHE": str(cache)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert run() == "True True True"
    assert run() == "True False False"


def test_all_that_are_named_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Kernel] = []
    prepared: list[Kernel] = []
    monkeypatch.setattr(loading, "load_kept", lambda *kernels: loaded.extend(kernels))
    monkeypatch.setattr(loading, "compile_unless_kept", lambda kernel, *_: prepared.append(kernel))
    loading.load_kernels.cache_clear()
    loading.prepare.cache_clear()
    loading.load_kernels()
    loading.load_kernels()
    named = {name for name, found in vars(loading).items() if isinstance(found, Kernel)}
    assert sorted(kernel.__name__ for kernel in prepared) == sorted(named)  # type: ignore[attr-defined]
    assert loaded and set(loaded) < set(prepared)
    loading.prepare.cache_clear()


def test_examples_are_what_kernels_are_called_with() -> None:
    """Another shape would be another signature: machine code that nobody asks for."""
    for kernel, shape in (*loading._AT_MERGES, *loading.MERGES, *loading._OF_ALL):
        compile_for(kernel, *(loading._EXAMPLES[letter] for letter in shape))
        (signature,) = cast("Kernel", kernel).signatures
        kinds = [{"i": "int64", "l": "int64, 1,", "t": "int64, 2,"}[letter] for letter in shape]
        assert all(kind in signature for kind in kinds) and signature.count("int64") == len(shape)
