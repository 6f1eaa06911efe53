"""The paper's figures as SVG files, which look the same each time that they are drawn."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.paper.iterations import Curves
from bench.paper.slides import Latency

__all__ = ["draw_iterations", "draw_slides"]

_SIZE = (7.6, 3.4)
"""Inches."""


def draw_iterations(curves: Curves, path: Path) -> None:
    """Figure 1: changed labels by iteration, on a logarithmic scale."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    named = {
        "stateless": curves.stateless,
        "incremental": curves.incremental,
        "prioritised": curves.prioritised,
        "differential, after a slide of one second": curves.slide,
    }
    for name, counts in named.items():
        shown = [count or float("nan") for count in counts]
        axes.plot(range(1, len(shown) + 1), shown, label=name, marker=".", linewidth=1)
    axes.set(yscale="log", xlabel="iteration", ylabel="changed labels")
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)


def draw_slides(latencies: dict[str, Latency], path: Path) -> None:
    """How many slides took at most so long."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    for name, latency in latencies.items():
        taken = sorted(latency.milliseconds)
        share = [(index + 1) / len(taken) for index in range(len(taken))]
        axes.plot(taken, share, label=f"{name}, {latency.rows:,} in the window", linewidth=1)
    axes.axvline(24.4, color="#888888", linewidth=1, linestyle=":", label="the paper, eight cores: 24.4 ms")
    axes.set(xscale="log", xlabel="milliseconds", ylabel="share of slides")
    axes.legend(frameon=False, fontsize="small")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    """Without a date and with names that do not change, so that equal figures are equal files."""
    with mpl.rc_context({"svg.hashsalt": "naiad", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
