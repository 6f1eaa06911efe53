"""How long until a process answers its first small query?

Starts a fresh process that imports the library, installs connected components on one embedded worker, inserts
three edges and reads the answer. Run it twice: the first time on a fresh machine compiles the kernels, later
ones read them from disk.

    python -m bench.dataflow.start [--runs 3]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

PROGRAM = """
import differential as dd, timely
from differential.algorithms import connected_components

@timely.builder
def build(flow):
    connected_components(dd.input(flow, "edges", "src: int, dst: int")).output("components")

with timely.connect(workers=1, embedded=True) as cluster:
    flow = cluster.install(build)
    flow.input("edges").insert([(1, 2), (2, 3), (5, 6)])
    flow.seal()
    assert flow.output("components").changes().num_rows == 5
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="seconds to the first answer of a fresh process")
    parser.add_argument("--runs", type=int, default=3)
    seconds: list[float] = []
    for _ in range(parser.parse_args().runs):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
        seconds.append(time.perf_counter() - begin)
    print(
        f"first answer after {', '.join(f'{one:.2f}' for one in seconds)} s; "
        f"median {statistics.median(seconds):.2f}"
    )


if __name__ == "__main__":
    main()
