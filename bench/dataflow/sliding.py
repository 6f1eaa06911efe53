"""How long does each epoch of a sliding window take, and how much does it hold?

Components of the mention graph in a window that slides over an interaction file, through the public
interface, without Spark: only the dataflow is measured. For each epoch: seconds from the first row handed
over to the changes being known, rows in the window, rows and MiB in all traces, and the workers' resident
memory.

    python -m bench.dataflow.sliding FILE [--kind MT] [--workers 2] [--window-hours 24] [--slide-minutes 60]
    [--epochs N]

One JSON line per epoch on standard output, then one with a summary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import differential as dd
import timely
from differential import col
from differential.algorithms import connected_components

Int64s = npt.NDArray[np.int64]


_Rows: TypeAlias = "slice[int, int, None]"


class Interactions(NamedTuple):
    """A whole file, in the order of time."""

    source: Int64s
    target: Int64s
    time: Int64s


@timely.builder
def build(flow: timely.Dataflow) -> None:
    """The dataflow of the main job."""
    interactions = dd.input(flow, "interactions", "source: int, target: int")
    connected_components(interactions.select(src=col.source, dst=col.target)).output("components")


def read(path: Path, kind: str | None) -> tuple[Interactions, int, int]:
    """The interactions of `kind`, and the first and last time of all."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    times = np.array([int(row[2]) for row in rows])
    chosen = [row for row in rows if kind is None or row[3] == kind]
    numbers = np.array([[int(field) for field in row[:3]] for row in chosen], dtype=np.int64)
    numbers = numbers[np.argsort(numbers[:, 2], kind="stable")]
    return Interactions(*numbers.T.copy()), int(times.min()), int(times.max())


def slices(times: Int64s, first: int, last: int, window: int, slide: int) -> Iterator[tuple[_Rows, _Rows]]:
    """For each epoch the rows that enter and those that leave."""
    epoch, entered, left = 0, 0, 0
    while True:
        end = first + (epoch + 1) * slide
        enter_stop = int(np.searchsorted(times, end, "right"))
        leave_stop = int(np.searchsorted(times, end - window, "right"))
        yield slice(max(entered, leave_stop), enter_stop), slice(left, min(leave_stop, entered))
        entered, left = enter_stop, leave_stop
        if end >= last:
            return
        epoch += 1


def held(stats: Sequence[Mapping[str, object]], dataflow: int) -> tuple[int, float, float]:
    """Rows in traces, their MiB, and the workers' resident MiB."""
    rows = size = 0
    resident = 0.0
    for worker in stats:
        flows = cast(Mapping[int, Mapping[str, Sequence[Mapping[str, int]]]], worker["dataflows"])
        for stage in flows[dataflow]["stages"]:
            rows += stage.get("trace_rows", 0)
            size += stage.get("trace_bytes", 0)
        status = Path(f"/proc/{worker['process']}/status").read_text().splitlines()
        resident += next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
    return rows, size / 2**20, resident


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="components of a sliding window, epoch by epoch")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--window-hours", type=float, default=24)
    parser.add_argument("--slide-minutes", type=float, default=60)
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    rows, first, last = read(options.file, options.kind)
    table = pa.table(rows._asdict()).drop_columns(["time"])
    window, slide = round(options.window_hours * 3600), round(options.slide_minutes * 60)
    seconds: list[float] = []
    in_window = 0
    with timely.connect(workers=options.workers, embedded=options.workers == 1) as cluster:
        flow = cluster.install(build)
        output = flow.output("components")
        for epoch, (entering, leaving) in enumerate(slices(rows.time, first, last, window, slide)):
            if epoch == options.epochs:
                break
            begin = time.perf_counter()
            flow.input("interactions").insert(table.slice(entering.start, entering.stop - entering.start))
            flow.input("interactions").remove(table.slice(leaving.start, leaving.stop - leaving.start))
            flow.seal()
            changes = output.changes()
            seconds.append(time.perf_counter() - begin)
            output.forget()
            in_window += entering.stop - entering.start - (leaving.stop - leaving.start)
            trace_rows, trace_mib, resident_mib = held(cluster.stats(), flow.index)
            print(
                json.dumps(
                    {
                        "epoch": epoch,
                        "window": in_window,
                        "changes": changes.num_rows,
                        "seconds": round(seconds[-1], 6),
                        "trace_rows": trace_rows,
                        "trace_mib": round(trace_mib, 2),
                        "resident_mib": round(resident_mib, 1),
                    }
                ),
                flush=True,
            )
    later = np.array(seconds[round(24 * 3600 / slide) :] or seconds)
    summary = {
        "epochs": len(seconds),
        "median_after_day_1": float(np.median(later)),
        "max_after_day_1": float(later.max()),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
