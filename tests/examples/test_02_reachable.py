"""examples/02_reachable.py: the first program of the README.

shows_*      it prints what the README's first screen shows, embedded and on processes
against_*    its query against a search through the graph, while random edges come and go
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import pytest
from example_programs import example
from house import ROOT

import timely

Edge = tuple[int, int]


@pytest.mark.parametrize("workers", [0, 2])
def test_shows_the_first_screen_of_the_readme(workers: int) -> None:
    options = ["--workers", str(workers)] if workers else []
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "02_reachable.py"), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in (ROOT / "README.md").read_text()


def _reached(edges: Counter[Edge]) -> set[int]:
    reached, waiting = {1}, [1]
    while waiting:
        here = waiting.pop()
        for source, target in edges:
            if source == here and target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


@pytest.mark.parametrize("workers", [1, 2])
def test_against_a_search_from_the_root(workers: int, seed: int) -> None:
    choice = random.Random(seed)
    edges: Counter[Edge] = Counter()
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(example("02_reachable").reachable)
        flow.input("roots").insert([(1,)])
        for _ in range(12):
            removed = [edge for edge in sorted(edges) if choice.random() < 0.3]
            inserted = [(choice.randint(1, 8), choice.randint(1, 8)) for _ in range(4)]
            flow.input("edges").remove(removed)
            flow.input("edges").insert(inserted)
            edges.update(inserted)
            edges.subtract(removed)
            edges = +edges
            flow.seal()
            shown = [row["node"] for row in flow.output("reached").snapshot().to_pylist()]
            assert shown == sorted(_reached(edges)), f"edges {sorted(edges.elements())}"
