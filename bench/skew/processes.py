"""What a spread join costs on two processes: elapsed time, beside the plain join in the same turns.

python -m bench.skew.processes [--rounds N] [--write FILE]

hot       one key with 4,000 rows a side: all pairs are made, and added up
even      120,000 lines and 30,000 orders, keys drawn evenly, in 100 epochs: what balancing costs for nothing
skewed    the same, drawn by z = 1: latency of an epoch
large     ten times as many rows, by z = 1, in 60 epochs: where rows cost more than epochs do
units     the same with 64 units in place of 16
moving    a million rows that move to other units under epochs of 1,000 rows: one of 1,024 buckets in each
          ("fluid"), 32 in each ("batched"), all at once, and all at once with nothing coming in meanwhile
          ("stand still")
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import get_args

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from bench.machine import versions
from differential import Collection, col
from differential.skew.balance import Scheme
from progress.compiled.arrays import Int64s
from timely.routing.announcement import BUCKET, RoutingCell, RoutingChanges
from timely.routing.grid import Grid
from timely.wire.routing import BUCKETS

HOT_ROWS = 4_000
ORDERS, LINES, EPOCHS = 30_000, 120_000, 100
LARGE, LARGE_EPOCHS = 10, 60
MOVED_ROWS, EPOCH_ROWS = 1_000_000, 1_000
LEAD = 2
SCHEMES: dict[str, Scheme] = {scheme: scheme for scheme in get_args(Scheme)}
_BATCH = 32
_LATER_EPOCHS = 20
_WARM_EPOCHS = 2
"""Kernels are loaded in the first ones, which count for nothing."""

_PARTS = {
    "hot": (f"One key with {HOT_ROWS:,} rows a side", ("plain", "JB", "JB6", "matrix")),
    "even": ("Even keys, 100 epochs", ("plain", "hash", "D-JB", "JB6", "JB", "hash, routed", "D-JB, routed")),
    "skewed": ("Keys by z = 1, 100 epochs", ("plain", "hash, routed", "D-JB, routed", "D-JB", "JB6", "JB")),
    "large": (f"Keys by z = 1, {LARGE} times the rows", ("plain", "hash", "D-JB", "JB6", "JB")),
    "units": (
        f"Keys by z = 1, {LARGE} times the rows, 64 units",
        ("plain", "D-JB, 64 units", "JB6, 64 units", "JB, 64 units"),
    ),
    "moving": (
        f"{MOVED_ROWS:,} rows under epochs of {EPOCH_ROWS:,}",
        ("no move", "fluid", "batched", "all at once", "stand still"),
    ),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="spread joins on two processes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(_PARTS), nargs="*", default=list(_PARTS))
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    lines = ["# Spread joins on two processes", ""]
    for line in _measured(options.only, options.rounds):
        print(line, flush=True)
        lines.append(line)
    if options.write is not None:
        options.write.write_text("\n".join([*lines, versions()]) + "\n")


def _measured(parts: Sequence[str], rounds: int) -> Iterator[str]:
    runs: dict[str, Callable[[str], list[float]]] = {
        "hot": hot,
        "even": lambda name: epochs(name, 0.0),
        "skewed": lambda name: epochs(name, 1.0),
        "large": lambda name: epochs(name, 1.0, LARGE, LARGE_EPOCHS),
        "units": lambda name: epochs(name, 1.0, LARGE, LARGE_EPOCHS),
        "moving": moving,
    }
    for part in parts:
        title, names = _PARTS[part]
        yield from _table(title, runs[part], names, rounds)


def _table(
    title: str, run: Callable[[str], Sequence[float]], names: Sequence[str], rounds: int
) -> Iterator[str]:
    """Each of `names` in turn, `rounds` times; medians of the whole, and of all epochs of all rounds."""
    wholes: dict[str, list[float]] = {name: [] for name in names}
    epochs_of: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            seconds = run(name)
            wholes[name].append(sum(seconds))
            epochs_of[name] += seconds
    yield f"## {title}"
    yield ""
    yield "| | all, s | beside the first | an epoch, ms: median | 99 % | longest |"
    yield "|---|---|---|---|---|---|"
    first = median(wholes[names[0]])
    for name in names:
        whole, each = median(wholes[name]), np.array(epochs_of[name]) * 1_000
        yield (
            f"| {name} | {whole:.2f} | {whole / first:.2f} | {np.median(each):.2f} | "
            f"{np.quantile(each, 0.99):.2f} | {each.max():.1f} |"
        )
    yield ""


def _joined(flow: timely.Dataflow, name: str) -> Collection:
    left, right = dd.input(flow, "left", "k: int, v: int"), dd.input(flow, "right", "k: int, w: int")
    scheme, _, how = name.partition(", ")
    balance: dd.Balance | dd.Routed[Collection] | None = None
    if scheme in SCHEMES:
        balance = dd.Balance(SCHEMES[scheme], units=64 if how == "64 units" else 16)
        if how == "routed":
            balance = dd.Routed(balance, dd.announcements(flow, "routes"), lead=LEAD)
    return left.join(right, on="k", balance=balance)


def _install(cluster: timely.Cluster, name: str) -> timely.Flow:
    def build(flow: timely.Dataflow) -> None:
        pairs = _joined(flow, name).select(m=(col.v * col.w) % 1_000)
        pairs.group_by("m").agg(n=dd.count()).output("found")

    return cluster.install(build)


def _rows(key: Int64s, value: Int64s, name: str) -> pa.Table:
    return pa.table({"k": key, name: value})


def hot(name: str) -> list[float]:
    """Seconds of one epoch."""
    with timely.connect(workers=2) as cluster:
        flow = _install(cluster, name)
        for _ in range(_WARM_EPOCHS):
            flow.input("left").insert([(1, 1), (2, 1)])
            flow.input("right").insert([(1, 1), (2, 1)])
            _sealed(flow)
        numbers = np.arange(HOT_ROWS)
        flow.input("left").insert(_rows(numbers * 0 + 7, numbers, "v"))
        flow.input("right").insert(_rows(numbers * 0 + 7, numbers, "w"))
        return [_sealed(flow)]


def epochs(name: str, z: float, times: int = 1, count: int = EPOCHS) -> list[float]:
    """Seconds of each of `count` epochs but the first ones: lines and orders come in by turns."""
    draw = np.random.default_rng(20130)
    share = np.arange(1, times * ORDERS + 1) ** -z
    keys = draw.permutation(times * ORDERS)[draw.choice(share.size, times * LINES, p=share / share.sum())]
    orders = draw.permutation(share.size)
    with timely.connect(workers=2) as cluster:
        for _ in range(2):  # the first for nothing: kernels are loaded at their first calls
            seconds = []
            flow = _install(cluster, name)
            for epoch in range(count):
                some = np.arange(epoch, keys.size, count)
                flow.input("left").insert(_rows(keys[some], some, "v"))
                some = np.arange(epoch, orders.size, count)
                flow.input("right").insert(_rows(orders[some], some, "w"))
                seconds.append(_sealed(flow))
            flow.uninstall()
    return seconds


def moving(pacing: str) -> list[float]:
    """Seconds of each epoch behind the load, while all that was loaded moves on by one unit."""
    draw = np.random.default_rng(20130)
    with timely.connect(workers=2) as cluster:
        flow = _install(cluster, "D-JB, routed")
        keys = draw.integers(0, MOVED_ROWS, MOVED_ROWS)
        flow.input("left").insert(_rows(keys, np.arange(MOVED_ROWS), "v"))
        _sealed(flow)
        for _ in range(_LATER_EPOCHS):
            _change(flow, draw)
            _sealed(flow)
        steps = _steps(pacing)
        seconds = []
        for epoch in range((len(steps) or BUCKETS) + LEAD + _LATER_EPOCHS):
            if epoch < len(steps):
                flow.input("routes").insert([tuple(row) for row in steps[epoch].announcements()])
            if pacing == "stand still" and epoch == 0:
                started = time.perf_counter()
                for _ in range(LEAD + 1):  # nothing comes in until all has moved
                    flow.seal()
                flow.wait()
                held = time.perf_counter() - started
            _change(flow, draw)
            seconds.append(_sealed(flow) + (held if pacing == "stand still" and epoch == 0 else 0.0))
        return seconds


def _steps(pacing: str) -> list[RoutingChanges]:
    """What is announced in which epoch: each bucket of the left goes from its unit to the next one."""
    half = 8
    places = {RoutingCell(BUCKET, 0, bucket): Grid.alone((bucket + 1) % half) for bucket in range(BUCKETS)}
    if pacing == "no move":
        return []
    if pacing not in ("fluid", "batched"):
        return [RoutingChanges(None, places)]
    listed, size = list(places.items()), 1 if pacing == "fluid" else _BATCH
    return [RoutingChanges(None, dict(listed[first : first + size])) for first in range(0, BUCKETS, size)]


def _change(flow: timely.Flow, draw: np.random.Generator) -> None:
    keys = draw.integers(0, MOVED_ROWS, (2, EPOCH_ROWS // 2))
    numbers = draw.integers(0, 1 << 30, EPOCH_ROWS // 2)
    flow.input("left").insert(_rows(keys[0], numbers, "v"))
    flow.input("right").insert(_rows(keys[1], numbers, "w"))


def _sealed(flow: timely.Flow) -> float:
    started = time.perf_counter()
    flow.seal()
    flow.wait()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
