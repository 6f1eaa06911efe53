"""What does one changed row of a large group cost: by sums, means, counts, and the least value?

One group of so many different values, one worker in this process; each change removes a row and inserts
another, and is an epoch. The estimate: a sum looks at a handful of components, whatever the group holds, so
all sizes take the same. Where we should lose: very many small groups, whose sums are no fewer than their
rows; that is the workload `sum` of `measure.py`.

    python -m bench.dataflow.aggregates 200000 1000000
"""

from __future__ import annotations

import argparse
import statistics
import time

import pyarrow as pa

import differential as dd
import timely

__all__ = ["QUERIES", "measured"]

_CHANGES = 30

QUERIES = {
    name: {name: getattr(dd, name)(*(() if name == "count" else ("v",)))}
    for name in ("count", "sum", "avg", "variance", "min")
    if hasattr(dd, name)
}
if hasattr(dd, "percentile"):
    QUERIES |= {
        "median": {"median": dd.median("x")},
        "4 percentiles": {f"p{p}": dd.percentile("v", p / 100) for p in (10, 50, 90, 99)},
        "mode": {"mode": dd.mode("v")},
        "count_distinct": {"n": dd.count_distinct("v")},
        "approx_count_distinct": {"n": dd.approx_count_distinct("v")},
        "sum_distinct": {"n": dd.sum_distinct("v")},
        "corr": {"r": dd.corr("v", "x")},
        "kurtosis": {"tails": dd.kurtosis("x")},
        "collect": {"all": dd.collect("v")},
    }
if hasattr(dd, "avg"):
    QUERIES["sum of floats"] = {"total": dd.sum("x")}
    QUERIES["count, sum, avg, min"] = {
        "n": dd.count(),
        "total": dd.sum("v"),
        "mean": dd.avg("v"),
        "least": dd.min("v"),
    }


def measured(query: str, rows: int) -> tuple[float, float, int]:
    """Seconds to load, milliseconds for a change (the median), and rows kept."""
    with timely.connect(workers=1, embedded=True) as cluster:

        def build(flow: timely.Dataflow) -> None:
            source = dd.input(flow, "rows", "k: int, v: int, x: float")
            source.group_by("k").agg(**QUERIES[query]).output("out")

        flow = cluster.install(build)
        given = flow.input("rows")
        values = pa.array(range(rows), pa.int64())
        columns = {"k": pa.array([7] * rows, pa.int64()), "v": values, "x": values.cast(pa.float64())}
        begin = time.perf_counter()
        given.insert(pa.table(columns))
        flow.seal(wait=True)
        load = time.perf_counter() - begin
        changes: list[float] = []
        for number in range(_CHANGES):
            old, new = rows // 2 + number, rows + number
            begin = time.perf_counter()
            given.remove([(7, old, float(old))])
            given.insert([(7, new, float(new))])
            flow.seal(wait=True)
            changes.append(1000 * (time.perf_counter() - begin))
        (stats,) = cluster.stats()
        stages = stats["dataflows"][flow.index]["stages"]  # type: ignore[index]
        kept = sum(stage.get("trace_rows", 0) for stage in stages)
    return load, statistics.median(changes), kept


def main() -> None:
    """A line for each query and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=list(QUERIES))
    arguments = parser.parse_args()
    sizes = arguments.rows
    print("| aggregates | rows of the group | load, s | change, ms | rows kept |")
    print("|---|---|---|---|---|")
    for query in arguments.queries:
        measured(query, 1_000)
        for rows in sizes:
            load, change, kept = measured(query, rows)
            print(f"| {query} | {rows:,} | {load:.2f} | {change:.2f} | {kept:,} |", flush=True)


if __name__ == "__main__":
    main()
