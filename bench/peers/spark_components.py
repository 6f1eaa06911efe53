"""How long does Spark take to compute the components of one window from scratch?

    python -m bench.peers.spark_components FILE [--kind MT] [--window-hours 24] [--end T ...] [--cores 2]
    [--json]

The same work as one epoch of `examples/mention_components.py`, by recomputation: alternate large-star and
small-star steps (Kiveris et al., Connected Components in MapReduce and Beyond, SoCC 2014) until no edge
changes, each step a grouping and a join. That takes a number of rounds logarithmic in the longest path, where
passing labels along edges takes as many rounds as the path is long: it is the form in which Spark does best.

In Spark's favour: the interactions are parsed and cached before the clock starts, the JVM's optimising
compiler is on, and one window is computed beforehand to warm everything up. Times are wall-clock seconds of
one window, with its counts. `--end`: unix seconds; without it one window for each day after the first time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from examples.mentions.interactions import Interactions, read_interactions
from timely.spark.session import local_session

DAY_S = 86_400


@dataclass(frozen=True)
class WindowReport:
    """One window: its end, its graph, and what it took."""

    end: int
    interactions: int
    nodes: int
    components: int
    largest: int
    rounds: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line (a JSON object with `--json`) for each window."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.spark_components")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind")
    parser.add_argument("--window-hours", type=float, default=24.0)
    parser.add_argument("--end", type=int, nargs="*")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    spark = local_session(cores=options.cores, app="spark components", long_jobs=True)
    source = read_interactions(spark, options.file, options.kind)
    window = round(options.window_hours * 3_600)
    ends = options.end or [
        source.first_time + day * DAY_S
        for day in range(1, -(-(source.last_time - source.first_time) // DAY_S) + 1)
    ]
    recompute(source, ends[0], window)
    for end in ends:
        report = recompute(source, end, window)
        print(json.dumps(asdict(report)) if options.json else report, flush=True)
    spark.stop()
    return 0


def recompute(source: Interactions, end: int, window: int) -> WindowReport:
    """The components of the interactions with end - window < time <= end."""
    begin = time.perf_counter()
    rows = source.rows.where((F.col("time") > end - window) & (F.col("time") <= end)).select(
        "source", "target"
    )
    edges = rows.distinct().localCheckpoint()
    nodes = edges.select(F.col("source").alias("node")).union(edges.select("target")).distinct().count()
    stars, rounds = to_stars(edges)
    sizes = stars.groupBy("root").agg((F.count("*") + 1).alias("size"))
    largest, members = sizes.agg(F.max("size"), F.sum(F.col("size") - 1)).collect()[0]
    seconds = time.perf_counter() - begin
    alone = 1 if nodes else 0
    return WindowReport(
        end, rows.count(), nodes, nodes - (members or 0), largest or alone, rounds, round(seconds, 3)
    )


def to_stars(edges: DataFrame) -> tuple[DataFrame, int]:
    """(node, root) for every node but the smallest of its component, and the rounds it took."""
    now = (
        edges.where("source <> target")
        .select(F.greatest("source", "target").alias("node"), F.least("source", "target").alias("root"))
        .distinct()
    )
    before: tuple[int, int | None] | None = None
    for rounds in range(1, 100):
        # Cutting the lineage at each round: otherwise the plan, and the time to make it, grow without bound.
        now = small_star(large_star(now)).localCheckpoint()
        count, digest = now.agg(
            F.count("*"), F.sum(F.xxhash64("node", "root").cast("decimal(20)"))
        ).collect()[0]
        if (count, digest) == before:
            return now, rounds
        before = (count, digest)
    raise RuntimeError("no fixed point after 100 rounds")


def large_star(edges: DataFrame) -> DataFrame:
    """Each larger neighbour of a node is connected to the smallest of the node and its neighbours."""
    both = edges.union(edges.select("root", "node"))
    least = both.groupBy("node").agg(F.min("root").alias("least"))
    smallest = least.select("node", F.least("node", "least").alias("least"))
    return (
        both.join(smallest, "node")
        .where("root > node")
        .select(F.col("root").alias("node"), F.col("least").alias("root"))
    )


def small_star(edges: DataFrame) -> DataFrame:
    """A node and its smaller neighbours are connected to the smallest of these."""
    least = edges.groupBy("node").agg(F.min("root").alias("least"))
    others = edges.join(least, "node").where("root <> least").select(F.col("root").alias("node"), "least")
    return others.union(least).distinct().withColumnRenamed("least", "root")


if __name__ == "__main__":
    sys.exit(main())
