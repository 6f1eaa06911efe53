"""What is kept of runs that were made in turn, so that a table can be made of several sittings?

A *round* are the runs of one case, each system once, one after the other: figures of one round can be
compared. A file has a round in each line, as JSON, and is added to as soon as a round is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from bench.cases import Case
from bench.systems import Figures
from bench.tables import Row, markdown

__all__ = ["Round", "document", "keep", "kept", "provenance", "rows_of"]


@dataclass
class Round:
    """One round: by system its figures, or why there are none."""

    case: Case
    workers: int
    figures: dict[str, Figures] = field(default_factory=dict)
    too_much: dict[str, str] = field(default_factory=dict)
    """By system in what a run has not ended, as in 600 s or 12 GiB."""
    unable: list[str] = field(default_factory=list)
    """Systems in which the workload cannot be said."""
    failures: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    """The machine's load average before each run."""
    systems: dict[str, str] = field(default_factory=dict)
    """Which version each is."""
    day: str = ""
    machine: str = ""
    threads: bool = False
    """Whether our workers are threads of one process."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(line: str) -> Round:
        """The inverse of `to_json`."""
        said = cast("dict[str, object]", json.loads(line))
        case = cast("dict[str, object]", said["case"])
        figures = cast("Mapping[str, Mapping[str, float]]", said["figures"])
        return Round(
            Case(str(case["words"]), tuple(cast("list[int]", case["sizes"])), cast(int, case["batch"])),
            cast(int, said["workers"]),
            {name: Figures(**values) for name, values in figures.items()},
            cast("dict[str, str]", said["too_much"]),
            cast("list[str]", said["unable"]),
            cast("list[str]", said["failures"]),
            cast("list[float]", said["loads"]),
            cast("dict[str, str]", said["systems"]),
            str(said["day"]),
            str(said["machine"]),
            said.get("threads") is True,
        )


def keep(one: Round, path: Path) -> None:
    """Add a round to a file. What a crash has left there of a line is taken out."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{one.to_json()}\n".encode())


def kept(paths: Iterable[Path]) -> list[Round]:
    """The rounds of some files, but for a last line that has no end."""
    return [
        Round.from_json(line)
        for path in paths
        for line in path.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]


def rows_of(rounds: Sequence[Round]) -> list[Row]:
    """A row for each case, number of workers and kind of these, in the order in which they come."""
    rows: dict[tuple[Case, int, bool], Row] = {}
    for one in rounds:
        row = rows.setdefault(
            (one.case, one.workers, one.threads), Row(one.case, one.workers, threads=one.threads)
        )
        row.rounds.append(one.figures)
        row.too_much.update(one.too_much)
        row.unable.update(one.unable)
    return list(rows.values())


def document(rounds: Sequence[Round], ours: str, command: str) -> str:
    """All tables in Markdown, and what they were taken on."""
    rows = rows_of(rounds)
    others = dict.fromkeys(name for one in rounds for name in one.systems if name != ours)
    parts = ["## Ours beside others", f"`{command}`"]
    parts += [markdown(rows, ours, name) for name in others]
    parts += [f"Does not count: {failure}" for one in rounds for failure in one.failures]
    parts.append(
        f"{provenance(rounds)} Memory is that of all processes of a system, its inputs included. In flight: "
        "all changes at once, and the time for all of them."
    )
    return "\n\n".join(parts) + "\n"


def provenance(rounds: Sequence[Round]) -> str:
    """How many rounds, when, of what and on what."""
    versions: dict[str, dict[str, None]] = {}
    for one in rounds:
        for name, version in one.systems.items():
            versions.setdefault(name, {})[version] = None
    who = "; ".join(f"{name}: {', '.join(each)}" for name, each in versions.items())
    loads = [load for one in rounds for load in one.loads]
    counts = [len(row.rounds) for row in rows_of(rounds)]
    number = " to ".join(str(count) for count in sorted({min(counts, default=0), max(counts, default=0)}))
    days = ", ".join(dict.fromkeys(one.day for one in rounds))
    machines = "; ".join(dict.fromkeys(one.machine for one in rounds))
    return (
        f"{number} rounds, {days}. {who}. Machine: {machines}; load average before each run "
        f"{min(loads, default=0):.1f} to {max(loads, default=0):.1f}, our own runs included."
    )
