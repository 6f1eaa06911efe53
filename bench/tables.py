"""What is the ratio, pair by pair, and how is it shown: on the screen, and in Markdown.

A *round* are the figures of the runs that were made in turn, by system; of a run that does not count there
are none. A *row* is a case with a number of workers and all its rounds. Figures of one round can be compared;
so a ratio is of one round, and what is shown is its median over the rounds and its range.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bench.cases import Case
from bench.systems import Figures

__all__ = ["COLUMNS", "Column", "Row", "markdown", "ratios", "screen"]


@dataclass(frozen=True)
class Column:
    """One figure of a run."""

    label: str
    unit: str
    read: Callable[[Figures], float]
    of_groups: bool = True
    """Whether it says something where all changes are one group."""


COLUMNS = (
    Column("load", "s", lambda figures: figures.load_seconds),
    Column("change, median", "ms", lambda figures: figures.change_ms_median),
    Column("change, 99 %", "ms", lambda figures: figures.change_ms_p99, of_groups=False),
    Column("memory above idle", "MiB", lambda figures: figures.added_mib),
    Column("memory", "MiB", lambda figures: figures.peak_mib),
)
_LEVEL = (0.95, 1.05)
"""Ratios between these are neither green nor red."""


@dataclass
class Row:
    """A case, and what came out."""

    case: Case
    workers: int
    rounds: list[dict[str, Figures]] = field(default_factory=list)

    def pairs(self, ours: str, other: str) -> list[tuple[Figures, Figures]]:
        """The rounds in which both count."""
        return [(one[ours], one[other]) for one in self.rounds if ours in one and other in one]

    def shows(self, column: Column) -> bool:
        """Whether the figure says something here."""
        return self.case.batch == 1 or column.of_groups


def ratios(pairs: Sequence[tuple[Figures, Figures]], column: Column) -> list[float]:
    """Ours divided by the other's, pair by pair; where nothing is to be divided by, none."""
    return [column.read(mine) / column.read(theirs) for mine, theirs in pairs if column.read(theirs) > 0]


def screen(rows: Sequence[Row], ours: str, other: str) -> Table:
    """For the terminal: ratio, and both figures."""
    table = Table(title=f"{ours} / {other}: ratio, and both", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("workload", no_wrap=True)
    table.add_column("workers", justify="right")
    for column in COLUMNS:
        table.add_column(f"{column.label}, {column.unit}", justify="right")
    for row in rows:
        pairs = row.pairs(ours, other)
        cells = [_cell(row, pairs, column) for column in COLUMNS]
        table.add_row(row.case.name, str(row.workers), *cells)
    return table


def _cell(row: Row, pairs: Sequence[tuple[Figures, Figures]], column: Column) -> Text:
    found = ratios(pairs, column)
    if not found or not row.shows(column):
        return Text("–", style="dim")
    ratio = statistics.median(found)
    style = "green" if ratio < _LEVEL[0] else "red" if ratio > _LEVEL[1] else ""
    return Text.assemble((f"{ratio:.2f}", style), (f"\n{_both(pairs, column)}", "dim"))


def _both(pairs: Sequence[tuple[Figures, Figures]], column: Column) -> str:
    mine, theirs = (statistics.median(column.read(pair[side]) for pair in pairs) for side in (0, 1))
    return f"{_number(mine)} / {_number(theirs)}"


def _number(value: float) -> str:
    """Three digits that count."""
    digits = next((digits for digits, least in enumerate((100, 10, 1)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}"


def markdown(rows: Sequence[Row], ours: str, other: str) -> str:
    """For a file: a table of ratios and one of figures for each number of workers."""
    parts: list[str] = []
    for workers in dict.fromkeys(row.workers for row in rows):
        mine = [row for row in rows if row.workers == workers]
        processes = "one worker" if workers == 1 else f"{workers} workers"
        parts += [
            f"### {ours} / {other}, {processes}: ratio, median (range)",
            _markdown_table(mine, ours, other, _ratio_text, lambda column: column.label),
            f"### {ours} and {other}, {processes}: medians",
            _markdown_table(mine, ours, other, _both, lambda column: f"{column.label}, {column.unit}"),
        ]
    return "\n\n".join(parts)


def _markdown_table(
    rows: Sequence[Row],
    ours: str,
    other: str,
    cell: Callable[[Sequence[tuple[Figures, Figures]], Column], str],
    head: Callable[[Column], str],
) -> str:
    lines = [
        f"| workload | {' | '.join(map(head, COLUMNS))} |",
        f"|---|{'---|' * len(COLUMNS)}",
    ]
    for row in rows:
        pairs = row.pairs(ours, other)
        cells = [cell(pairs, column) if pairs and row.shows(column) else "–" for column in COLUMNS]
        lines.append(f"| {row.case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio_text(pairs: Sequence[tuple[Figures, Figures]], column: Column) -> str:
    found = ratios(pairs, column)
    if not found:
        return "–"
    spread = f" ({min(found):.2f}–{max(found):.2f})" if len(found) > 1 else ""
    return f"{statistics.median(found):.2f}{spread}"
