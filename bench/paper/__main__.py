"""Section 5 of the paper again: changed labels by iteration, and slides of one second, on public data.

    python -m bench.paper FOLDER [--slides 500] [--write docs/paper]

FOLDER is that of the data set higgs-activity. Writes tables and figures; without --write it shows the tables
alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.machine import versions
from bench.paper.iterations import Curves, curves_of
from bench.paper.slides import Latency, slide_by_slide
from bench.paper.window import DAY, busiest, interactions

KINDS = {"mentions": "MT", "all interactions": None}
ORDERS = ("", ", small labels first")
_FILE = "higgs-activity_time.txt.gz"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="figures of the differential dataflow paper")
    parser.add_argument("folder", type=Path, help="the data set higgs-activity")
    parser.add_argument("--slides", type=int, default=500)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    path = options.folder / _FILE
    windows = {name: busiest(interactions(path, kind), DAY) for name, kind in KINDS.items()}
    curves = curves_of(windows["mentions"])
    latencies = {
        f"{name}{order}": slide_by_slide(window, options.slides, prioritised=bool(order))
        for name, window in windows.items()
        for order in ORDERS
    }
    text = report(curves, latencies)
    print(text)
    if options.write is not None:
        from bench.paper.charts import draw_iterations, draw_slides

        draw_iterations(curves, options.write / "iterations.svg")
        draw_slides(latencies, options.write / "slides.svg")
        (options.write / "results.md").write_text(text)


def report(curves: Curves, latencies: dict[str, Latency]) -> str:
    """Tables of what was measured."""
    rows = [
        "## Changed labels by iteration",
        "",
        f"Connected components of {curves.nodes:,} nodes.",
        "",
        "| iteration | stateless | incremental | prioritised | after a slide of one second |",
        "|---|---|---|---|---|",
    ]
    ways = (curves.stateless, curves.incremental, curves.prioritised, curves.slide)
    longest = max(map(len, ways))
    for index in range(longest):
        cells = [f"{way[index]:,}" if index < len(way) else "" for way in ways]
        rows.append(f"| {index + 1} | {' | '.join(cells)} |")
    rows += [f"| all | {' | '.join(f'{sum(way):,}' for way in ways)} |", ""]
    rows += [
        f"A slide changes {curves.share:.4%} of what comes from scratch by priority; the paper: 0.003 %.",
        "",
        "## Slides of one second",
        "",
        "| | interactions in the window | slides | median, ms | 99 %, ms | longest, ms |",
        "|---|---|---|---|---|---|",
    ]
    for name, latency in latencies.items():
        figures = " | ".join(f"{latency.at(percent):.2f}" for percent in (50, 99, 100))
        rows.append(f"| {name} | {latency.rows:,} | {len(latency.milliseconds):,} | {figures} |")
    return "\n".join([*rows, "", f"One worker. {versions()}", ""])


if __name__ == "__main__":
    main()
