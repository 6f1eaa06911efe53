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

__all__ = ["COLUMNS", "REMEMBERED", "Column", "Row", "columns_of", "markdown", "ratios", "screen"]


Pairs = Sequence[tuple[Figures, Figures]]
"""Ours and the other's figures, of the rounds in which both count."""


@dataclass(frozen=True)
class Column:
    """One figure of a run; `None` from a system that does not say it."""

    label: str
    unit: str
    read: Callable[[Figures], float | None]
    of_groups: bool = True
    """Whether it says something where all changes are one group."""

    @property
    def head(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def values(self, pairs: Pairs) -> list[tuple[float, float]]:
        """The figure, of both, where both say it."""
        read = [(self.read(mine), self.read(theirs)) for mine, theirs in pairs]
        return [(a, b) for a, b in read if a is not None and b is not None]


COLUMNS = (
    Column("load", "s", lambda figures: figures.load_seconds),
    Column("change, median", "ms", lambda figures: figures.change_ms_median),
    Column("change, 99 %", "ms", lambda figures: figures.change_ms_p99, of_groups=False),
    Column("memory above idle", "MiB", lambda figures: figures.added_mib),
    Column("memory", "MiB", lambda figures: figures.peak_mib),
)
REMEMBERED = (
    Column("rows in traces", "", lambda figures: figures.trace_rows),
    Column("traces", "MiB", lambda figures: figures.trace_mib),
)
"""Shown where both say it."""
_LEVEL = (0.95, 1.05)
"""Ratios between these are neither green nor red."""


@dataclass
class Row:
    """A case, and what came out."""

    case: Case
    workers: int
    rounds: list[dict[str, Figures]] = field(default_factory=list)

    def pairs(self, ours: str, other: str) -> Pairs:
        """The rounds in which both count."""
        return [(one[ours], one[other]) for one in self.rounds if ours in one and other in one]

    def shows(self, column: Column) -> bool:
        """Whether the figure says something here."""
        return self.case.batch == 1 or column.of_groups


def ratios(pairs: Pairs, column: Column) -> list[float]:
    """Ours divided by the other's, pair by pair; where nothing is to be divided by, none."""
    return [mine / theirs for mine, theirs in column.values(pairs) if theirs > 0]


def columns_of(rows: Sequence[Row], ours: str, other: str) -> list[Column]:
    """The figures that are shown."""
    all_pairs = [pair for row in rows for pair in row.pairs(ours, other)]
    return [*COLUMNS, *(column for column in REMEMBERED if column.values(all_pairs))]


def screen(rows: Sequence[Row], ours: str, other: str) -> Table:
    """For the terminal: ratio, and both figures."""
    columns = columns_of(rows, ours, other)
    table = Table(title=f"{ours} / {other}: ratio, and both", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("workload", no_wrap=True)
    table.add_column("workers", justify="right")
    for column in columns:
        table.add_column(column.head, justify="right")
    for row in rows:
        pairs = row.pairs(ours, other)
        cells = [_cell(row, pairs, column) for column in columns]
        table.add_row(row.case.name, str(row.workers), *cells)
    return table


def _cell(row: Row, pairs: Pairs, column: Column) -> Text:
    found = ratios(pairs, column)
    if not found or not row.shows(column):
        return Text("–", style="dim")
    ratio = statistics.median(found)
    style = "green" if ratio < _LEVEL[0] else "red" if ratio > _LEVEL[1] else ""
    return Text.assemble((f"{ratio:.2f}", style), (f"\n{_both(pairs, column)}", "dim"))


def _both(pairs: Pairs, column: Column) -> str:
    values = column.values(pairs)
    if not values:
        return "–"
    return " / ".join(_number(statistics.median(value[side] for value in values)) for side in (0, 1))


def _number(value: float) -> str:
    """Three digits that count."""
    digits = next((digits for digits, least in enumerate((100, 10, 1)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}"


def markdown(rows: Sequence[Row], ours: str, other: str) -> str:
    """For a file: a table of ratios and one of figures for each number of workers."""
    parts: list[str] = []
    for workers in dict.fromkeys(row.workers for row in rows):
        mine = [row for row in rows if row.workers == workers]
        columns = columns_of(mine, ours, other)
        pairs = [(row, row.pairs(ours, other)) for row in mine]
        processes = "one worker" if workers == 1 else f"{workers} workers"
        parts += [
            f"### {ours} / {other}, {processes}: ratio, median (range)",
            _markdown_table(pairs, columns, [column.label for column in columns], _ratio_text),
            f"### {ours} and {other}, {processes}: medians",
            _markdown_table(pairs, columns, [column.head for column in columns], _both),
        ]
    return "\n\n".join(parts)


def _markdown_table(
    rows: Sequence[tuple[Row, Pairs]],
    columns: Sequence[Column],
    head: Sequence[str],
    cell: Callable[[Pairs, Column], str],
) -> str:
    lines = [f"| workload | {' | '.join(head)} |", f"|---|{'---|' * len(columns)}"]
    for row, pairs in rows:
        cells = [cell(pairs, column) if row.shows(column) else "–" for column in columns]
        lines.append(f"| {row.case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio_text(pairs: Pairs, column: Column) -> str:
    found = ratios(pairs, column)
    if not found:
        return "–"
    spread = f" ({min(found):.2f}–{max(found):.2f})" if len(found) > 1 else ""
    return f"{statistics.median(found):.2f}{spread}"
