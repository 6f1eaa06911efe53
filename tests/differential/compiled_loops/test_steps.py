"""Each step may be done by Python as well as by the kernel: the same comes out, whoever does it."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

import timely
from bench.dataflow import scc, wcc
from differential.compiled_loops import loop
from differential.kernels.compiled_loops.layout import (
    K_BARRIER,
    K_OTHER,
    P_KIND,
)
from differential.kernels.compiled_loops.run import run_loop
from progress.compiled.arrays import Int64s

Row = tuple[int, ...]


def _run(job: str, seed: int, monkeypatch: pytest.MonkeyPatch, share: float) -> list[Counter[Row]]:
    """The output after each epoch, where a `share` of steps is left to Python, drawn anew at each call."""
    rng, drawn = np.random.default_rng(seed), random.Random(seed)
    called = run_loop

    def call(steps: Int64s, *tables: Int64s) -> int:
        kinds = steps[:, P_KIND].copy()
        for number, kind in enumerate(kinds.tolist()):
            if drawn.random() < share:
                steps[number, P_KIND] = K_BARRIER if kind >= K_BARRIER else K_OTHER
        try:
            return called(steps, *tables)
        finally:
            steps[:, P_KIND] = kinds

    monkeypatch.setattr(loop, "run_loop", call)
    found: list[Counter[Row]] = []
    now: Counter[Row] = Counter()
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install({"wcc": wcc, "scc": scc}[job].build)
        if job == "wcc":
            flow.input("nodes").insert([(node,) for node in range(30)])
        present: list[Row] = []
        for _ in range(12):
            for _ in range(rng.integers(1, 12)):
                if present and rng.random() < 0.4:
                    flow.input("edges").remove([present.pop(int(rng.integers(len(present))))])
                else:
                    present.append((int(rng.integers(30)), int(rng.integers(30))))
                    flow.input("edges").insert([present[-1]])
            flow.wait(flow.seal())
            output = flow.output("components" if job == "wcc" else "inside")
            for *row, _, diff in zip(*output.changes().to_pydict().values(), strict=True):
                now[tuple(row)] += diff
            output.forget()
            found.append(Counter({row: count for row, count in now.items() if count}))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("job", ["wcc", "scc"])
def test_python_and_kernel_do_the_same_in_any_mixture(
    job: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for share in (0.0, 0.3, 1.0):
        with monkeypatch.context() as patch:
            found.append(_run(job, seed, patch, share))
    monkeypatch.setenv("NAIAD_REGIONS", "0")
    ordinary = _run(job, seed, monkeypatch, 0)
    assert any(ordinary)
    for share in found:
        assert share == ordinary
