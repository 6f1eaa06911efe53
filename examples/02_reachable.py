"""Which nodes can be reached from node 1, while edges come and go?

    python examples/02_reachable.py [--workers 2]

A loop to the fixed point, kept up to date. After each epoch the nodes are printed that became reachable (+1)
or stopped being so (-1). Without `--workers` everything runs within this process.
"""

from __future__ import annotations

import argparse
import sys

import differential as dd
import timely
from differential import col

EPOCHS = [
    ([(1, 2), (1, 3), (2, 3), (3, 2)], [], "four edges were inserted"),
    ([], [(1, 3)], "edge 1→3 was removed: nothing changed"),
    ([], [(1, 2)], "edge 1→2 was removed"),
]
"""For each epoch: edges to insert, edges to remove, a remark."""


@timely.builder
def reachable(dataflow: timely.Dataflow) -> None:
    """The dataflow, as every worker builds it."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    roots = dd.input(dataflow, "roots", "node: int")
    reached = roots.iterate(
        lambda r: r.join(edges, on={"node": "src"}).select(node=col.dst).concat(roots).distinct()
    )
    reached.output("reached")


def main() -> None:
    """Feed the epochs, print what each of them changes."""
    parser = argparse.ArgumentParser(description="Nodes reachable from node 1, while edges come and go.")
    parser.add_argument(
        "--workers", type=int, default=0, help="worker processes; 0 (the default): within this process"
    )
    workers: int = parser.parse_args().workers
    with timely.connect(workers=workers or 1, embedded=workers == 0) as cluster:
        # A module whose name begins with a digit can only be named with its package.
        flow = cluster.install("examples.02_reachable:reachable" if workers else reachable)
        flow.input("roots").insert([(1,)])
        for inserted, removed, remark in EPOCHS:
            flow.input("edges").insert(inserted)
            flow.input("edges").remove(removed)
            epoch = flow.seal()
            changes = flow.output("reached").changes().to_pylist()
            shown = "   ".join(f"node {row['node']} {row['diff']:+d}" for row in changes)
            print(f"epoch {epoch}   {shown:<40}<- {remark}")


if __name__ == "__main__":
    try:
        main()
    except timely.TimelyError as error:
        sys.exit(f"02_reachable: {error}")
