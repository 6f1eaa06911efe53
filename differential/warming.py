"""Compiling the kernels before worker processes start: once, and not in each of them at the same time.

A run of a small dataflow in this process calls every kernel that operators use, and what is compiled is kept
on disk. That it has been done is noted beside the user's caches under a name made of all that the machine
code depends on, so that later starts pay for reading one file's status.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from differential.aggregates import count
from differential.aggregates import max as greatest
from differential.algorithms.components import connected_components
from differential.collections.sources import input as table_input
from differential.expressions.expression import col
from timely.building.dataflow import Dataflow
from timely.client.cluster import connect
from timely.worker.launcher import before_launch

__all__ = ["warm", "warm_once"]

_ROOT = Path(__file__).resolve().parent.parent
_EDGES_MANY = 20_000
"""Enough rows for the kernels that only large runs need."""


@before_launch
def warm_once() -> None:
    """`warm`, unless a process on this machine has done so for the same kernels."""
    marker = _marker()
    if marker.exists():
        return
    warm()
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError:
        pass  # without a place to note it, the next start checks again, at the cost of a second


def warm() -> None:
    """Run the kernels that most queries need. Those of the others (sessions, as-of joins, upsert and checked
    inputs, joins of many) are compiled where they are first met, some seconds each, and kept, too.
    """
    generator = np.random.default_rng(0)
    with connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(_every_operator)
        edges = flow.input("edges")
        ends = generator.integers(0, _EDGES_MANY, (2, _EDGES_MANY))
        many = pa.table({"src": ends[0], "dst": ends[1]})
        few = pa.table({"src": [1, 2, 3], "dst": [2, 3, 1]})
        edges.insert(many)
        for _ in range(2):
            edges.insert(few)
            flow.seal()
            edges.remove(few)
            flow.seal()
        flow.output("components").snapshot()  # with much in it, and with nothing
        edges.remove(many)
        flow.wait(flow.seal())
        flow.output("components").snapshot()


def _every_operator(dataflow: Dataflow) -> None:
    edges = table_input(dataflow, "edges", "src: int, dst: int")
    connected_components(edges.filter(col.src < _EDGES_MANY // 8)).output("components")
    grouped = edges.group_by("src")
    grouped.agg(n=count(), top=greatest("dst")).output("aggregates")
    grouped.top_k(2, by="dst").output("first")
    few = edges.filter(col.src < 8).select(src=col.src + 0, dst=col.dst)
    few.group_by("src").reduce(lambda key, rows: [len(rows)], "n: int").consolidate().output("reduced")


def _marker() -> Path:
    """The file that says that these kernels are compiled."""
    digest = hashlib.sha256()
    for package in ("progress", "differential"):
        for source in sorted((_ROOT / package).rglob("*.py")):
            status = source.stat()
            digest.update(f"{source} {status.st_size} {status.st_mtime_ns}\n".encode())
    versions = [importlib.metadata.version(name) for name in ("numba", "numpy", "llvmlite")]
    digest.update(
        f"{versions} {sys.version} {platform.processor()} {os.environ.get('NUMBA_CACHE_DIR', '')}".encode()
    )
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad"
    return folder / f"compiled-{digest.hexdigest()[:24]}"
