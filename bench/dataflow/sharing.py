"""What does it save to keep once what several operators keep alike: rows, bytes, and time to load?

    python -m bench.dataflow.sharing ../shared/data/tpch-sf0.02 --runs 3 --write bench/results/sharing.md

Connected components and strongly connected components of random graphs, and queries 3 and 5 of TPC-H side by
side. Each with nothing shared, with what is shared without being asked, and with `arrange`, in turn, each run
in a process of its own. Answers of all three have to be the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

import timely
from bench.dataflow import revenue, scc, wcc
from bench.dataflow.job import Job
from bench.machine import versions
from differential.plan import building
from differential.plan.rules.sharing import Sharing, share
from timely.building.builders import Builder

__all__ = ["GRAPHS", "measured", "share"]

GRAPHS: dict[str, Callable[[], Job]] = {
    "wcc 100k 200k": lambda: wcc.job(100_000, 200_000, 0),
    "scc 100k 200k": lambda: scc.job(100_000, 200_000, 0),
}
_REVENUE = "Q3 beside Q5"
_HOWS = ("nothing", "by itself", "asked for")


def measured(workload: str, how: str, folder: Path) -> dict[str, object]:
    """One run: seconds to load, rows and bytes in traces, and a digest of the answers."""
    if how == "nothing":
        building.share = lambda roots: Sharing()  # type: ignore[attr-defined]
    build: Builder = revenue.arranged if how == "asked for" else revenue.side_by_side
    outputs = ["open orders", "sold at home"]
    if workload == _REVENUE:
        tables = {name: revenue.load(folder, name) for name in revenue.TABLES}
    else:
        job = GRAPHS[workload]()
        build, outputs, tables = job.build, [job.output], {**job.fixed, **job.changing}
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        begin = time.perf_counter()
        for name, table in tables.items():
            flow.input(name).insert(table)
        flow.seal(wait=True)
        seconds = time.perf_counter() - begin
        (stats,) = cluster.stats()
        stages = stats["dataflows"][flow.index]["stages"]  # type: ignore[index]
        return {
            "seconds": seconds,
            "rows": sum(stage.get("trace_rows", 0) for stage in stages),
            "bytes": sum(stage.get("trace_bytes", 0) for stage in stages),
            "answers": [_digest(flow.output(name).snapshot()) for name in outputs],
        }


def _digest(table: pa.Table) -> str:
    rows = table.sort_by([(name, "ascending") for name in table.column_names])
    return blake2b(str([column.to_pylist() for column in rows.columns]).encode(), digest_size=8).hexdigest()


def _in_a_process(workload: str, how: str, folder: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "bench.dataflow.sharing", str(folder), "--one", workload, how]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _table(folder: Path, runs: int) -> str:
    lines = ["| workload | shared | load, s | rows in traces | MiB in traces |", "|---|---|---|---|---|"]
    for workload in (*GRAPHS, _REVENUE):
        hows = _HOWS if workload == _REVENUE else _HOWS[:2]
        found: dict[str, list[dict[str, object]]] = {how: [] for how in hows}
        for _ in range(runs):
            for how in hows:
                found[how].append(_in_a_process(workload, how, folder))
        answers = {str(run["answers"]) for each in found.values() for run in each}
        if len(answers) != 1:
            raise SystemExit(f"{workload}: the answers differ: {answers}")
        for how, each in found.items():
            seconds = statistics.median(float(str(run["seconds"])) for run in each)
            rows, size = (int(str(each[0][key])) for key in ("rows", "bytes"))
            lines.append(f"| {workload} | {how} | {seconds:.3g} | {rows:,} | {size / 2**20:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of tpch-sf0.02")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    parser.add_argument("--one", nargs=2, metavar=("WORKLOAD", "HOW"), help="one run, as JSON")
    options = parser.parse_args()
    if options.one:
        workload, how = options.one
        print(json.dumps(measured(workload, how, options.folder)))
        return
    table = _table(options.folder, options.runs)
    if options.write:
        options.write.write_text(
            f"## What sharing saves\n\n{table}\n\n{options.runs} runs, in turn, medians. {versions()}\n"
        )


if __name__ == "__main__":
    main()
