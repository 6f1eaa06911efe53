"""What came out of each run of a query in all engines, and the tables of it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.tables import number

__all__ = ["Figures", "Round", "document", "keep", "kept"]

OURS, FLINK = "ours", "Flink"


@dataclass
class Figures:
    """Of an engine that follows, its load and its changes; of one that computes anew, `anew_ms`."""

    load_seconds: float | None = None
    change_ms_median: float | None = None
    change_ms_p99: float | None = None
    anew_ms: float | None = None


@dataclass
class Round:
    """One query, once in each engine; `refused` has the engines that do not take it, and why."""

    suite: str
    query: str
    says: str
    workers: int
    loaded: int
    changed: str
    day: str
    machine: str
    figures: dict[str, Figures] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


def keep(one: Round, path: Path) -> None:
    """Add a round to a file."""
    with path.open("a") as lines:
        lines.write(json.dumps(asdict(one)) + "\n")


def kept(paths: Sequence[Path]) -> list[Round]:
    """The rounds of files."""
    rounds = []
    for path in paths:
        for line in path.read_text().splitlines():
            one = Round(**json.loads(line))
            one.figures = {name: Figures(**figures) for name, figures in one.figures.items()}  # type: ignore[arg-type]  # as JSON has them
            rounds.append(one)
    return rounds


@dataclass(frozen=True)
class _Row:
    """All rounds of a query on so many workers."""

    rounds: Sequence[Round]

    @property
    def first(self) -> Round:
        return self.rounds[0]

    def median(self, engine: str, read: Callable[[Figures], float | None]) -> float | None:
        values = [read(one.figures[engine]) for one in self.rounds if engine in one.figures]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    def ratio(
        self, engine: str, read: Callable[[Figures], float | None], other: Callable[[Figures], float | None]
    ) -> float | None:
        """Ours divided by the other's, round by round, and of that the median."""
        ratios = []
        for one in self.rounds:
            if OURS in one.figures and engine in one.figures:
                mine, theirs = read(one.figures[OURS]), other(one.figures[engine])
                if mine is not None and theirs:
                    ratios.append(mine / theirs)
        return statistics.median(ratios) if ratios else None


def _load(figures: Figures) -> float | None:
    return figures.load_seconds


def _change(figures: Figures) -> float | None:
    return figures.change_ms_median


def _slowest(figures: Figures) -> float | None:
    return figures.change_ms_p99


def _anew(figures: Figures) -> float | None:
    return figures.anew_ms


_RATIOS = (
    ("load", FLINK, _load, _load),
    ("change", FLINK, _change, _change),
    ("change, 99 %", FLINK, _slowest, _slowest),
    ("change", "DuckDB", _change, _anew),
    ("change", "Spark", _change, _anew),
)


def document(rounds: Sequence[Round], command: str) -> str:
    """The tables in Markdown: for each suite and number of workers the figures, and where we lose."""
    parts = [f"Made by `{command}`."]
    for suite, workers in dict.fromkeys((one.suite, one.workers) for one in rounds):
        mine = [one for one in rounds if (one.suite, one.workers) == (suite, workers)]
        rows = [
            _Row([one for one in mine if one.query == name])
            for name in dict.fromkeys(each.query for each in mine)
        ]
        first = mine[0]
        days = ", ".join(dict.fromkeys(one.day for one in mine))
        count = "one worker" if workers == 1 else f"{workers} workers"
        parts += [
            f"## {suite}, {count}",
            f"{days}; {first.machine}. A change has {first.changed}. Medians of "
            f"{max(len(row.rounds) for row in rows)} rounds.",
            _table(rows),
            "\n".join(_lost(rows)) or "No case in which we lose.",
        ]
    wrong = [f"- {one.query}, {name}: {why}" for one in rounds for name, why in one.wrong.items()]
    return "\n\n".join([*parts, *(["## Wrong answers", "\n".join(wrong)] if wrong else [])]) + "\n"


def _table(rows: Sequence[_Row]) -> str:
    heads = [
        "query", "load, rows/s: ours, Flink", "ratio of seconds", "change, ms: ours, Flink", "ratio",
        "99 %, ms: ours, Flink", "anew, ms: DuckDB, Spark", "change / DuckDB, Spark",
    ]  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        one = row.first
        speeds = [row.median(engine, _load) for engine in (OURS, FLINK)]
        cells = [
            f"{one.query} {one.says}".strip(),
            ", ".join("–" if each is None else f"{one.loaded / each:,.0f}" for each in speeds),
            _shown(row.ratio(FLINK, _load, _load)),
            ", ".join(_shown(row.median(engine, _change)) for engine in (OURS, FLINK)),
            _shown(row.ratio(FLINK, _change, _change)),
            ", ".join(_shown(row.median(engine, _slowest)) for engine in (OURS, FLINK)),
            ", ".join(_shown(row.median(engine, _anew)) for engine in ("DuckDB", "Spark")),
            ", ".join(_shown(row.ratio(engine, _change, _anew)) for engine in ("DuckDB", "Spark")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "–" if value is None else number(value)


def _lost(rows: Sequence[_Row]) -> Iterator[str]:
    """Each case in which we lose, and each query that an engine does not take."""
    for row in rows:
        one = row.first
        for label, engine, read, other in _RATIOS:
            ratio = row.ratio(engine, read, other)
            if ratio is not None and ratio > 1:
                what = "computing it anew" if other is _anew else "as long as"
                yield f"- We lose: {one.query}, {label}, {number(ratio)} times {what} in {engine}."
        for engine, why in one.refused.items():
            yield f"- {one.query} is not taken by {engine}: {why}."
