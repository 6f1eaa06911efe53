"""What do the peers in Python have in common: the command line, the inputs, and the line that is printed?

Inputs are drawn as in `bench/workloads.py` and made Python's own values before the clock runs, which is what both
peers take. What comes out is gathered as it comes, and summed up for its check when the clock has stopped.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench import memory, workloads
from bench.workloads import Check, RowRange, Schedule

__all__ = [
    "CHECKS",
    "NOBODY",
    "Inputs",
    "Measured",
    "NumberedRow",
    "OutputRow",
    "Row",
    "Run",
    "drawn",
    "given",
    "printed",
    "ready",
]

Row = tuple[int, ...]
NumberedRow = tuple[str, int, Row]
"""An input, which of its rows it is, and the row."""
OutputRow = tuple[Row, int]
"""A row, and how often it is there more."""
NOBODY = -1
"""The first column of an output row that belongs to no answer."""

CHECKS: dict[str, Callable[..., Check]] = {  # type: ignore[explicit-any]  # two or three columns
    "wcc": workloads.check_wcc,
    "bfs": workloads.check_bfs,
    "pagerank": workloads.check_pagerank,
    "count": workloads.check_count,
    "sum": workloads.check_sum,
    "join": workloads.check_join,
}
"""By the first word of a workload, of the columns of its output."""


@dataclass(frozen=True)
class Run:
    """What the command line says."""

    words: tuple[str, ...]
    sizes: tuple[int, ...]
    workers: int
    batch: int

    @property
    def family(self) -> str:
        """As in wcc."""
        return self.words[0]


@dataclass(frozen=True)
class Inputs:
    """Rows by input, as tuples; those of `fixed` are loaded and stay, the others come and go by the schedule."""

    schedule: Schedule
    changing: dict[str, list[Row]]
    fixed: dict[str, list[Row]]

    def loaded(self) -> list[NumberedRow]:
        """Input, number and row of all that is there at first."""
        first = self.schedule.present(0)
        rows = [
            (name, number, row) for name, listed in self.fixed.items() for number, row in enumerate(listed)
        ]
        for name, listed in self.changing.items():
            rows += [(name, number, row) for number, row in enumerate(listed[first])]
        return rows

    def changed(self, change: int) -> tuple[list[NumberedRow], list[NumberedRow]]:
        """The same of what goes and of what comes in a change."""
        gone, come = self.schedule.removed(change), self.schedule.inserted(change)
        return self._numbered(gone), self._numbered(come)

    def _numbered(self, rows: RowRange) -> list[NumberedRow]:
        return [
            (name, number, row)
            for name, listed in self.changing.items()
            for number, row in enumerate(listed[rows], rows.start)
        ]


@dataclass
class Measured:
    """What a run finds out; `output` has what came out, `loaded` how much of it with the load."""

    load_seconds: float = 0.0
    change_ms: list[float] = field(default_factory=list)
    output: list[OutputRow] = field(default_factory=list)
    loaded: int = 0
    peak_mib: float = 0.0
    """When the last result was there, before the check is summed up."""


def given(system: str, families: Sequence[str]) -> Run:
    """The command line, which is that of `ddpeer`."""
    parser = argparse.ArgumentParser(description=f"one run of one workload on {system}")
    parser.add_argument("words", nargs="+", metavar="WORKLOAD NUMBERS", help=f"one of {', '.join(families)}")
    parser.add_argument("--batch", type=int, default=1, help="epochs in flight before waiting")
    parser.add_argument("-w", dest="workers", type=int, default=1, help="worker threads")
    options = parser.parse_args()
    words = tuple(word for word in options.words if not word.isdecimal())
    if words not in {tuple(family.split()) for family in families}:
        parser.error(f"{' '.join(words)} is none of {', '.join(families)}")
    sizes = tuple(int(word) for word in options.words if word.isdecimal())
    return Run(words, sizes, options.workers, options.batch)


def drawn(run: Run) -> Inputs:
    """The inputs of a workload."""
    match run.family:
        case "count":
            counted = workloads.count(*run.sizes)
            return Inputs(counted.schedule, {"rows": _rows(counted.key)}, {})
        case "sum":
            summed = workloads.sum_(*run.sizes)
            return Inputs(summed.schedule, {"rows": _rows(summed.key, summed.value)}, {})
        case "join":
            keys, rows, epochs, updates = run.sizes
            joined = workloads.join(keys, rows, epochs, updates)
            numbers = np.arange(joined.schedule.rows)
            left, right = _rows(joined.left_key, numbers), _rows(joined.right_key, numbers)
            return Inputs(joined.schedule, {"left": left, "right": right}, {})
        case family:
            graph = workloads.graph(*run.sizes)
            starts = {"wcc": graph.nodes, "bfs": 1}.get(family)
            fixed = {} if starts is None else {"nodes": _rows(np.arange(starts))}
            return Inputs(graph.schedule, {"edges": _rows(graph.src, graph.dst)}, fixed)


def _rows(*columns: workloads.Int64s) -> list[Row]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def ready() -> float:
    """MiB that are resident before the rows are drawn."""
    gc.collect()
    return memory.resident_mib()


def printed(system: str, run: Run, measured: Measured, idle_mib: float) -> str:
    """The line of JSON that `bench/peers/README.md` describes."""
    check_load, check_changes = (
        _check(run.family, rows) for rows in (measured.output[: measured.loaded], measured.output)
    )
    return json.dumps(
        {
            "system": system,
            "workload": " ".join([*run.words, *map(str, run.sizes)]),
            "workers": run.workers,
            "batch": run.batch,
            "load_seconds": measured.load_seconds,
            "change_ms_median": _rank(measured.change_ms, 50),
            "change_ms_p99": _rank(measured.change_ms, 99),
            "change_ms_all": measured.change_ms,
            "idle_mib": idle_mib,
            "peak_mib": measured.peak_mib,
            "check_load": check_load.to_json(),
            "check_changes": check_changes.to_json(),
        }
    )


def _check(family: str, output: Sequence[OutputRow]) -> Check:
    columns = np.array([(*row, diff) for row, diff in output if row[0] != NOBODY], np.int64).T
    return CHECKS[family](*columns)


def _rank(milliseconds: list[float], percent: int) -> float | None:
    """The least that at least so many do not exceed, as the peers count."""
    return float(np.percentile(milliseconds, percent, method="inverted_cdf")) if milliseconds else None
