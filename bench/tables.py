"""What is the ratio, pair by pair, and how is it shown: on the screen, and in Markdown.

A *round* are the figures of the runs that were made in turn, by system; of a run that does not count there
are none. A *row* is a case with a number of workers and all its rounds. Figures of one round can be
compared; so a ratio is of one round, and what is shown is its median over the rounds and its range. Beside
it stands the ratio that is asked for (`bench/asked.py`), marked whether it is reached: the median counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bench.asked import Asked, asked
from bench.cases import Case
from bench.systems import Figures

__all__ = [
    "COLUMNS",
    "OF_WHOLE",
    "REMEMBERED",
    "Column",
    "Row",
    "columns_of",
    "markdown",
    "number",
    "ratios",
    "screen",
    "summary",
]


Pairs = Sequence[tuple[Figures, Figures]]
"""Ours and the other's figures, of the rounds in which both count."""


@dataclass(frozen=True)
class Column:
    """One figure of a run; `None` from a system that does not say it.

    Ours is divided by the other's figure, or by another one of its figures, `read_other`.
    """

    label: str
    unit: str
    read: Callable[[Figures], float | None]
    of_groups: bool = True
    """Whether it says something where all changes are one group."""
    asks: Callable[[Asked], float | None] = lambda _: None
    read_other: Callable[[Figures], float | None] | None = None

    @property
    def head(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def values(self, pairs: Pairs) -> list[tuple[float, float]]:
        """The figure, of both, where both say it."""
        read_other = self.read_other or self.read
        read = [(self.read(mine), read_other(theirs)) for mine, theirs in pairs]
        return [(a, b) for a, b in read if a is not None and b is not None]


COLUMNS = (
    Column("load", "s", lambda figures: figures.load_seconds, asks=lambda asked: asked.load),
    Column("change, median", "ms", lambda figures: figures.change_ms_median, asks=lambda asked: asked.change),
    Column(
        "change, 99 %",
        "ms",
        lambda figures: figures.change_ms_p99,
        of_groups=False,
        asks=lambda asked: asked.change_99,
    ),
    Column("memory above idle", "MiB", lambda figures: figures.added_mib),
    Column("memory", "MiB", lambda figures: figures.peak_mib),
)
OF_WHOLE = Column(
    "memory above idle / the other's whole",
    "MiB",
    lambda figures: figures.added_mib,
    asks=lambda asked: asked.memory,
    read_other=lambda figures: figures.peak_mib,
)
"""Shown where something is asked of it, and not on the screen."""
REMEMBERED = (
    Column("rows in traces", "", lambda figures: figures.trace_rows),
    Column("traces", "MiB", lambda figures: figures.trace_mib),
)
"""Shown where both say it."""
_LEVEL = (0.95, 1.05)
"""Ratios between these are neither green nor red, where none is asked for."""


@dataclass
class Row:
    """A case, and what came out."""

    case: Case
    workers: int
    rounds: list[dict[str, Figures]] = field(default_factory=list)
    too_much: dict[str, str] = field(default_factory=dict)
    """By system in what a run has not ended, as in 600 s."""
    unable: set[str] = field(default_factory=set)
    """Systems in which the workload cannot be said."""
    threads: bool = False
    """Whether our workers are threads of one process; the other's may always be."""

    @property
    def where(self) -> str:
        """On how many workers, of which kind."""
        kind = ", ours in threads of one process" if self.threads else ""
        return "one worker" if self.workers == 1 else f"{self.workers} workers{kind}"

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
    of_whole = [OF_WHOLE] if any(_wanted(row, OF_WHOLE, other) is not None for row in rows) else []
    return [*COLUMNS, *of_whole, *(column for column in REMEMBERED if column.values(all_pairs))]


def _wanted(row: Row, column: Column, other: str) -> float | None:
    """The ratio that is asked for, if one is."""
    return column.asks(asked(row.case, row.workers, other))


def screen(rows: Sequence[Row], ours: str, other: str) -> Table:
    """For the terminal: ratio, and both figures."""
    rows = [row for row in rows if other not in row.unable]
    columns = [column for column in columns_of(rows, ours, other) if column is not OF_WHOLE]
    table = Table(title=f"{ours} / {other}: ratio, and both", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("workload", no_wrap=True)
    table.add_column("workers", justify="right")
    for column in columns:
        table.add_column(column.head, justify="right")
    for row in rows:
        pairs = row.pairs(ours, other)
        cells = [_cell(row, pairs, column, other) for column in columns]
        table.add_row(row.case.name, f"{row.workers}{' threads' * row.threads}", *cells)
    return table


def _cell(row: Row, pairs: Pairs, column: Column, other: str) -> Text:
    found = ratios(pairs, column)
    if not found or not row.shows(column):
        return Text("–", style="dim")
    ratio = statistics.median(found)
    wanted = _wanted(row, column, other)
    low, high = _LEVEL if wanted is None else (wanted, wanted)
    style = "green" if ratio < low else "red" if ratio > high else ""
    return Text.assemble((f"{ratio:.2f}", style), (f"\n{_both(pairs, column)}", "dim"))


def _both(pairs: Pairs, column: Column) -> str:
    values = column.values(pairs)
    if not values:
        return "–"
    return " / ".join(number(statistics.median(value[side] for value in values)) for side in (0, 1))


def number(value: float) -> str:
    """Three digits that count."""
    digits = next((digits for digits, least in enumerate((100, 10, 1)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}"


def markdown(rows: Sequence[Row], ours: str, other: str) -> str:
    """For a file: a table of ratios and one of figures for each number of workers."""
    parts: list[str] = []
    for where in dict.fromkeys(row.where for row in rows):
        mine = [row for row in rows if row.where == where and other not in row.unable]
        if not mine:
            continue
        columns = columns_of(mine, ours, other)
        parts += [
            f"### {ours} / {other}, {where}: ratio, median (range), and what is asked: ✓ reached, ✗ not",
            _markdown_table(mine, columns, ours, other, _ratio_text, lambda column: column.label),
            f"### {ours} and {other}, {where}: medians",
            _markdown_table(mine, columns, ours, other, _both_text, lambda column: column.head),
        ]
    return "\n\n".join([*parts, *summary(rows, ours, other)])


def summary(rows: Sequence[Row], ours: str, other: str) -> Iterator[str]:
    """How much of what is asked is reached, and where we lose most."""
    judged: list[bool] = []
    lost: list[tuple[float, str]] = []
    for row in rows:
        for column in (*COLUMNS, OF_WHOLE):
            found = ratios(row.pairs(ours, other), column) if row.shows(column) else []
            if not found:
                continue
            ratio = statistics.median(found)
            wanted = _wanted(row, column, other)
            if wanted is not None:
                judged.append(ratio <= wanted)
            if column in _TIMES:
                lost.append((ratio, f"{row.case.name} on {row.where}, {column.label}"))
    if judged:
        yield f"Reached beside {other}: {sum(judged)} of {len(judged)} ratios that are asked for."
    if lost:
        ratio, where = max(lost)
        verb = "lose most" if ratio > 1 else "are least ahead"
        yield f"Where we {verb}: {where}, {ratio:.2f} of {other}."


_TIMES = COLUMNS[:2]
"""The load, and the median of the changes."""


Cell = Callable[[Row, Column, str, str], str]


def _markdown_table(
    rows: Sequence[Row],
    columns: Sequence[Column],
    ours: str,
    other: str,
    cell: Cell,
    head: Callable[[Column], str],
) -> str:
    lines = [f"| workload | {' | '.join(map(head, columns))} |", f"|---|{'---|' * len(columns)}"]
    for row in rows:
        cells = [cell(row, column, ours, other) if row.shows(column) else "–" for column in columns]
        lines.append(f"| {row.case.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _both_text(row: Row, column: Column, ours: str, other: str) -> str:
    return _both(row.pairs(ours, other), column)


def _ratio_text(row: Row, column: Column, ours: str, other: str) -> str:
    found = ratios(row.pairs(ours, other), column)
    if not found:
        bound = row.too_much.get(other)
        return "–" if bound is None else f"not within {bound}"
    ratio = statistics.median(found)
    spread = f" ({min(found):.2f}–{max(found):.2f})" if len(found) > 1 else ""
    wanted = _wanted(row, column, other)
    mark = "" if wanted is None else f" {'✓' if ratio <= wanted else '✗'} {wanted:.1f}"
    return f"{ratio:.2f}{spread}{mark}"
