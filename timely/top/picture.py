"""Figures of a cluster as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..client.reports.figures import DataflowFigures, Figures, StageFigures

__all__ = ["ORDERS", "picture", "short", "size"]

ORDERS: Final[dict[str, Callable[[StageFigures], float]]] = {
    "busy": lambda stage: stage.busy,
    "rows": lambda stage: stage.rows,
    "waiting": lambda stage: stage.waiting,
    "kept": lambda stage: stage.kept_bytes,
    "skew": lambda stage: stage.skew if stage.busy else 0.0,
}
"""What stages can be sorted by; its first letter is the key for it."""

_NUMBER_WIDTH: Final = 7
"""Columns with numbers keep it where a terminal is narrow; names are cut off."""

_BEHIND_SECONDS_LATE: Final = 1.0
"""Epochs that are later than this are marked."""


_EPOCHS_APART: Final = 2
"""An input that is so many epochs ahead of another one waits for it."""


def picture(figures: Figures, order: str, height: int, age: float = 0.0) -> Group:
    """Return the tables, with as many stages as fit into `height` lines, the first by `order`. `age`: seconds
    since the workers answered: a line says so if they are more than two.
    """
    names = {flow.dataflow: flow.name for flow in figures.dataflows}
    room = max(3, height - len(figures.workers) - len(figures.dataflows) - 9)
    stages = sorted(figures.stages, key=ORDERS[order], reverse=True)
    keys = ", ".join(f"{name[0]} {name}" for name in ORDERS)
    line = f"over {figures.seconds:.1f} s; stages by {order} (keys: {keys}; q ends)"
    if len(stages) > room:
        line += f"; {len(stages) - room} more stages"
    parts: list[RenderableType] = [
        _workers(figures),
        _dataflows(figures),
        _stages(stages[:room], names),
        Text(line, "dim"),
    ]
    if age > 2.0:
        parts.insert(0, Text(f"the workers have not answered for {age:.0f} s: this is older", "bold yellow"))
    return Group(*parts)


def _table(*columns: str) -> Table:
    """Return a table with a column for each name; those of numbers, which end with a space, are justified."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        if column.endswith(" "):
            table.add_column(column.strip(), justify="right", no_wrap=True, min_width=_NUMBER_WIDTH)
        else:
            table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


def _workers(figures: Figures) -> Table:
    table = _table("worker", "process ", "cpu ", "memory ", "messages/s ", "coming ", "on rings ")
    for each in figures.workers:
        table.add_row(
            str(each.worker), str(each.process), f"{each.cpu:.0%}", size(each.resident_bytes),
            short(each.messages), short(each.coming_rows), size(each.ring_bytes),
        )  # fmt: skip
    return table


def _dataflows(figures: Figures) -> Table:
    table = _table("dataflow", "epoch ", "behind ", "by ", "rows/s ", "busy ", "keeps ")
    for each in figures.dataflows:
        late = each.behind_seconds > _BEHIND_SECONDS_LATE
        table.add_row(
            Text(f"{each.dataflow} {each.name}"),
            _epoch(each),
            f"{each.behind_epochs:,}",
            Text(f"{each.behind_seconds:.1f} s" if each.behind_seconds else "", "bold red" if late else ""),
            short(each.rows), f"{each.busy:.0%}", size(each.kept_bytes),
        )  # fmt: skip
    return table


def _epoch(flow: DataflowFigures) -> str:
    """Return the open epoch, and how far ahead of it another input is, if nobody seals this one."""
    if flow.complete_before is None:
        return "ended"
    ahead = f" +{flow.ahead_epochs:,}" if flow.ahead_epochs >= _EPOCHS_APART else ""
    return "-" if flow.epoch is None else f"{flow.epoch}{ahead}"


def _stages(stages: Sequence[StageFigures], names: dict[int, str]) -> Table:
    table = _table("busy ", "skew ", "rows/s ", "waiting ", "bytes ", "keeps ", "stage", "of", "written at")
    for each in stages:
        busy = Text(f"{each.busy:.0%}", "bold red" if each.busy > 0.9 else "")
        name = each.name if not each.loop else f"{each.loop} · {each.name}"
        table.add_row(
            busy, f"{each.skew:.2f}", short(each.rows), short(each.waiting), size(each.waiting_bytes),
            size(each.kept_bytes),
            Text(name if len(name) <= 44 else f"{name[:43]}…"), Text(names.get(each.dataflow, "")),
            Text(_of_site(each.site)),
        )  # fmt: skip
    return table


def _of_site(site: str) -> str:
    """Return a file without its folders, and the line."""
    file, _, line = site.rpartition(":")
    return f"{PurePath(file).name}:{line}" if file else site


def short(number: float) -> str:
    """Return a number with three digits and a letter for thousands: 12.3k."""
    for unit in ("", "k", "M", "G"):
        if abs(number) < 999.5 or unit == "G":
            return f"{number:.3g}{unit}" if abs(number) < 999.5 else f"{number:,.0f}{unit}"
        number /= 1000
    raise AssertionError("G is the last")


def size(number: float) -> str:
    """Return bytes in units of 1,024: 1.2 MiB; nothing for none."""
    if not number:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1023.5 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError("GiB is the last")
