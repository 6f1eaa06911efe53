"""A table and a curve from what `bench.dataflow.sliding` and `bench.peers.spark_components` have printed.

    python -m bench.dataflow.sliding FILE > ours.jsonl
    python -m bench.peers.spark_components FILE --end T T … --json > spark.jsonl
    python -m bench.sliding_report ours.jsonl spark.jsonl --first TIME --slide-minutes 60 --write NAME

writes bench/results/NAME.md and NAME.svg: seconds per epoch beside Spark's recomputation of the same window,
and rows in the window, rows in all traces and memory over the epochs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from bench.machine import machine

Line = dict[str, float]
_WIDTH, _HEIGHT, _MARGIN = 760, 260, 40
_CURVES = {
    "window": ("rows in the window", "#888888"),
    "trace_rows": ("rows in all traces", "#1f6fb4"),
    "trace_mib": ("MiB in all traces", "#2a9d4a"),
    "resident_mib": ("MiB resident, both workers", "#c0392b"),
}


def lines(path: Path) -> list[Line]:
    """The JSON lines of a file."""
    return [cast(Line, json.loads(text)) for text in path.read_text().splitlines() if text.startswith("{")]


def curve(epochs: Sequence[Line]) -> str:
    """All curves as one SVG, each scaled to its own largest value, which its label states."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 60}" font-size="11">']
    step = (_WIDTH - 2 * _MARGIN) / max(1, len(epochs) - 1)
    for place, (key, (label, colour)) in enumerate(_CURVES.items()):
        largest = max(epoch[key] for epoch in epochs)
        points = " ".join(
            f"{_MARGIN + index * step:.1f},{_HEIGHT - (_HEIGHT - _MARGIN) * epoch[key] / largest:.1f}"
            for index, epoch in enumerate(epochs)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        text = f"{label} (largest: {largest:,.0f})"
        x, y = _MARGIN + (place % 2) * 340, _HEIGHT + 20 + (place // 2) * 18
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def table(epochs: Sequence[Line], spark: Sequence[Line], first: int, slide: int) -> str:
    """The windows that Spark recomputed, beside the epoch that ends with each."""
    rows = [
        "| epoch | rows in the window | labels changed | ours, s | Spark, s | Spark / ours |",
        "|---|---|---|---|---|---|",
    ]
    for window in spark:
        epoch = epochs[(int(window["end"]) - first) // slide - 1]
        assert epoch["window"] == window["interactions"], (epoch, window)
        rows.append(
            f"| {epoch['epoch']:.0f} | {epoch['window']:,.0f} | {epoch['changes']:,.0f} "
            f"| {epoch['seconds']:.3f} | {window['seconds']:.1f} "
            f"| {window['seconds'] / epoch['seconds']:.1f} |"
        )
    return "\n".join(rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="a report of a sliding window")
    parser.add_argument("ours", type=Path)
    parser.add_argument("spark", type=Path)
    parser.add_argument("--first", type=int, required=True, help="first time of the input, unix seconds")
    parser.add_argument("--slide-minutes", type=int, default=60)
    parser.add_argument("--write", required=True, help="name of the report in bench/results")
    options = parser.parse_args()
    *epochs, summary = lines(options.ours)
    spark = lines(options.spark)
    folder = Path(__file__).resolve().parent / "results"
    (folder / f"{options.write}.svg").write_text(curve(epochs))
    text = (
        f"## A sliding window, epoch by epoch: {options.write}\n\n"
        f"{summary['epochs']:.0f} epochs on two worker processes; after the first day the median epoch takes "
        f"{summary['median_after_day_1']:.3f} s and the longest {summary['max_after_day_1']:.2f} s, "
        f"all together {sum(epoch['seconds'] for epoch in epochs):.0f} s.\n\n"
        f"{table(epochs, spark, options.first, options.slide_minutes * 60)}\n\n"
        "Ours: from the first row handed over to all changed labels known, without reading and writing "
        "files. Spark: recomputation of the window by large-star and small-star steps, two cores, input "
        f"cached, after a window to warm up. Machine: {machine()}.\n\n![memory]({options.write}.svg)\n\n"
        f"Traces hold {epochs[-1]['trace_mib']:.0f} MiB at the end, "
        f"{max(e['trace_mib'] for e in epochs):.0f} MiB at most: what has left the window is compacted "
        "away.\n"
    )
    (folder / f"{options.write}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
