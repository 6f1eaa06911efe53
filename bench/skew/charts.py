"""The figures as SVG files, which look the same each time that they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from .figures import SCHEMES, Measurement

__all__ = ["draw"]

_SIZE = (7.6, 3.4)
"""Inches."""


def draw(all_of_them: Sequence[Measurement], folder: Path) -> list[Path]:
    """Messages, imbalance and moves by z, throughput by units; where they were written."""
    plain = [each for each in all_of_them if each.query == "lineitem ⋈ orders" and not each.variant]
    most = max(each.units for each in plain)
    by_z = [each for each in plain if each.units == most]
    by_units = [each for each in all_of_them if each.variant == "by work" and each.query == "Q3"]
    title = f"on {most} units"
    return [
        _lines(
            folder / "messages.svg", by_z, "z", f"messages for a row, {title}", lambda each: each.messages
        ),
        _lines(folder / "imbalance.svg", by_z, "z", f"busiest over mean, {title}", lambda each: each.settled),
        _lines(
            folder / "throughput.svg", by_units, "units", "rows for work, Q3", lambda each: each.throughput
        ),
    ]


def _lines(
    path: Path, listed: Sequence[Measurement], across: str, label: str, value: Callable[[Measurement], float]
) -> Path:
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    for scheme in SCHEMES:
        mine = [each for each in listed if each.scheme == scheme]
        if mine:
            places = [float(each.units if across == "units" or each.z is None else each.z) for each in mine]
            axes.plot(places, [value(each) for each in mine], label=scheme, marker=".", linewidth=1)
    axes.set(yscale="log", xlabel=across, ylabel=label)
    axes.legend(frameon=False, fontsize="small")
    with mpl.rc_context({"svg.hashsalt": "naiad"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path
