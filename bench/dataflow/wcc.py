"""How long does connected components take to load, and to follow a change?

The workload "wcc plain N E K" of `bench/workloads.py` through the public interface, embedded in this process: one
worker, the whole runtime. One JSON line on standard output, with the keys that the peers' programs print.

    python -m bench.dataflow.wcc [NODES EDGES CHANGES]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import differential as dd
from bench.workloads import Check, check_wcc, graph
from differential.algorithms import connected_components
from timely.dataflow import Dataflow
from timely.worker.core import Worker


def build(flow: Dataflow) -> None:
    """Labels of all nodes; the nodes are an input of their own, as in the peers' programs."""
    edges = dd.input(flow, "edges", "src: int, dst: int")
    nodes = dd.input(flow, "nodes", "node: int")
    connected_components(edges, nodes).output("components")


def peak_mib() -> float:
    """The largest resident size that this process has had, in MiB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
