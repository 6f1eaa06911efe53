"""What do triangles and circles of four cost by a chain of joins, by looking up, by the fewest candidates?

    python -m bench.dataflow.patterns ../shared/data/soc-slashdot0902 --write bench/results/patterns.md

The graph of the folder, undirected: each edge once, from the smaller number to the greater, none to itself.
Triangles of all of it; circles of four of every eighth edge, since there are many more of them. What comes
out is counted, so that no output holds it; the counts of all three ways have to be the same. Then changes: an
edge at random goes, and comes back in the next epoch.

The chain asks for what it keeps (`arrange`), or its circle would be joined at once like the others. One
embedded worker, each run in a process of its own; seconds of processor time, since the machine may have
other work. Rows and bytes are those in all traces at the end of the load.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import differential as dd
import timely
from bench.machine import versions
from differential import Collection, col
from differential.collections.patterns.joins_of_many import Candidates

__all__ = ["HOWS", "PATTERNS", "edges_of", "measured"]

Int64s = npt.NDArray[np.int64]

_CHANGES = 100
_SHARE = 8
_FILE = "Slashdot0902.txt.gz"


def _named(edges: Collection, columns: str) -> Collection:
    return edges.select(**{columns[0]: col.src, columns[1]: col.dst})


def _triangles(edges: Collection, how: str) -> Collection:
    ab, bc, ac = (_named(edges, columns) for columns in ("ab", "bc", "ac"))
    if how == "chain of joins":
        return ab.join(bc, on="b").arrange(["a", "c"]).join(ac, on=["a", "c"])
    return dd.join_all([ab, bc, ac], on=["a", "b", "c"], candidates=_CANDIDATES[how])


def _circles(edges: Collection, how: str) -> Collection:
    """a - b - c - d - a, where a is the least and b is less than d."""
    both = edges.concat(edges.select(src=col.dst, dst=col.src))
    ab, ad, bc, cd = _named(edges, "ab"), _named(edges, "ad"), _named(both, "bc"), _named(both, "cd")
    if how == "chain of joins":
        found = (
            ab.join(bc, on="b")
            .filter(col.a < col.c)
            .join(cd, on="c")
            .arrange(["a", "d"])
            .join(ad, on=["a", "d"])
        )
    else:
        found = dd.join_all([ab, bc, cd, ad], on=["a", "b", "c", "d"], candidates=_CANDIDATES[how])
    return found.filter((col.a < col.c) & (col.b < col.d))


_CANDIDATES: dict[str, Candidates] = {"looking up": "in order", "fewest candidates": "fewest"}
HOWS = ("chain of joins", *_CANDIDATES)
PATTERNS: dict[str, tuple[Callable[[Collection, str], Collection], int]] = {
    "triangles": (_triangles, 1),
    "circles of four": (_circles, _SHARE),
}
"""What it is, and of every which edge."""


def edges_of(folder: Path, share: int) -> Int64s:
    """Every `share`-th edge at random, int64[n, 2], the smaller number first."""
    with gzip.open(folder / _FILE) as file:
        given = np.loadtxt(file, dtype=np.int64, comments="#")
    edges = np.unique(np.sort(given[given[:, 0] != given[:, 1]], axis=1), axis=0)
    mixed = np.random.default_rng(0).permutation(edges)
    return mixed[: len(mixed) // share]


def measured(pattern: str, how: str, edges: Int64s, changes: int = _CHANGES) -> dict[str, float]:
    """One run: seconds to load, milliseconds for a change, rows and MiB in traces, and how many there are."""
    build = PATTERNS[pattern][0]

    def query(flow: timely.Dataflow) -> None:
        found = build(dd.input(flow, "edges", "src: int, dst: int"), how)
        found.group_by().agg(n=dd.count()).output("count")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(query)
        given = flow.input("edges")
        begin = time.process_time()
        given.insert(pa.table({"src": edges[:, 0], "dst": edges[:, 1]}))
        flow.seal(wait=True)
        load = time.process_time() - begin
        (stats,) = cluster.stats()
        stages = stats["dataflows"][flow.index]["stages"]  # type: ignore[index]
        count = flow.output("count").snapshot().to_pylist()
        took: list[float] = []
        for edge in np.random.default_rng(1).permutation(edges)[: changes // 2].tolist():
            for change in (given.remove, given.insert):
                begin = time.process_time()
                change([tuple(edge)])
                flow.seal(wait=True)
                took.append(1000 * (time.process_time() - begin))
        again = flow.output("count").snapshot().to_pylist()
        assert again == count, "all edges are there again"
    return {
        "load": load,
        "median": statistics.median(took),
        "worst": max(took),
        "rows": sum(stage.get("trace_rows", 0) for stage in stages),
        "mib": sum(stage.get("trace_bytes", 0) for stage in stages) / 2**20,
        "count": sum(row["n"] for row in count),
    }


def _in_a_process(pattern: str, how: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.dataflow.patterns", str(folder), "--one", pattern, how]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _table(folder: Path) -> str:
    lines = ["| pattern | how | there are | load, s | a change, ms: median, worst | rows in traces | MiB |"]
    lines.append("|---|---|---|---|---|---|---|")
    for pattern in PATTERNS:
        counts = set()
        for how in HOWS:
            found = _in_a_process(pattern, how, folder)
            counts.add(found["count"])
            lines.append(
                f"| {pattern} | {how} | {found['count']:,} | {found['load']:.1f} | {found['median']:.2f}, "
                f"{found['worst']:.1f} | {found['rows']:,} | {found['mib']:.1f} |"
            )
            print(lines[-1], flush=True)
        if len(counts) != 1:
            raise SystemExit(f"{pattern}: the counts differ: {counts}")
    return "\n".join(lines)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of soc-slashdot0902")
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    parser.add_argument("--one", nargs=2, metavar=("PATTERN", "HOW"), help="one run, as JSON")
    options = parser.parse_args()
    if options.one:
        pattern, how = options.one
        edges = edges_of(options.folder, PATTERNS[pattern][1])
        measured(pattern, how, edges[:1_000], 2)  # kernels are compiled, or loaded
        print(json.dumps(measured(pattern, how, edges)))
        return
    table = _table(options.folder)
    if options.write:
        options.write.write_text(f"## Joins of many\n\n{table}\n\n{versions()}\n")


if __name__ == "__main__":
    main()
