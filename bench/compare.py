"""Two systems, the same workloads, in turn: what is the ratio?

    python -m bench.compare [WORKLOAD ...] [--workers 1 2] [--threads] [--runs N] [--write FILE]
    python -m bench.compare wcc bfs-100k-200k --against ../before --runs 5

Runs ours and the peer's program alternately, each as a process of its own, and shows the ratio pair by pair:
figures of one run can be compared, figures of two machines or two days cannot. WORKLOAD is a name of the
table or how one begins; without one it is all of them.

Several workers of ours are processes, with --threads threads of one; Rust's are always threads.

With --against FOLDER the other one is the checkout of this project in FOLDER, so that a change of the code
has its before and after; with --peer as well the peer's program runs beside both. What is measured is then
written in this checkout, in `bench/dataflow`, for both, unless --own-bench says otherwise.

With --peer-python Pathway Bytewax it is these systems, each on what can be said in it, at most --limit
seconds a run: in the sizes of the table, and in smaller ones (`MODEST` in `bench/cases.py`) for where that
is too much for them.

With --peer-engine Flink it is Flink SQL, on what can be said in it, at most --limit seconds a run; with
--peer as well Rust's program runs beside them.

With --keep FILE each round is added to a file when it is over; --from FILE makes the tables of what such
files have, and runs nothing. So what takes very long can be run in several sittings, and nothing is lost by
a crash.

A run counts only if its answer is right (`bench/recomputation.py`); one that does not is reported, and the
command fails. --small takes sizes of which only the answer means something.

The peers' programs are built as `bench/peers/README.md` says.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from bench.cases import CASES, MODEST, SMALL, Case, chosen
from bench.machine import ROOT, versions
from bench.rounds import Round, document, keep, kept, rows_of
from bench.systems import (
    ENGINES,
    PEER_PROGRAM,
    PYTHON_PEERS,
    RUST,
    Checkout,
    EnginePeer,
    Figures,
    Peer,
    PythonPeer,
    RunError,
    System,
    TooMuchError,
)
from bench.tables import screen

__all__ = ["Comparison", "main", "names_of"]

OURS = "ours"
_FILE_WIDTH = 140
"""Columns, where it is not a terminal that says how many it has."""
_ROW_LINES, _OTHER_LINES = 2, 6
"""Of a table on the screen: lines of a row, and title, head and what is around it."""


class Comparison:
    """Runs of several systems in turn; the first is compared with each of the others.

    It can be shown: what there is so far, and what runs now; the latter is told to `note`, too.
    """

    def __init__(self, systems: Sequence[System], note: Callable[[str], None], threads: bool = False) -> None:
        self.systems = systems
        self._threads = threads
        self._note = note
        self.rounds: list[Round] = []
        self.now = ""

    @property
    def failures(self) -> list[str]:
        """Of all rounds."""
        return [failure for one in self.rounds for failure in one.failures]

    def prepare(self, families: set[str], workers: int) -> None:
        """A small run of each, for a checkout that is run for the first time: a process that compiles kernels
        is larger from then on.
        """
        for case in SMALL:
            if case.family in families:
                for system in self.systems:
                    if isinstance(system, Checkout):
                        self._run(system, Round(case, workers), f"{system.name}: first a small {case.name}")

    def run(
        self, case: Case, workers: int, runs: int, done: Callable[[Round], None] = lambda _: None
    ) -> None:
        """One row; each round is given to `done` when it is over."""
        able = [system for system in self.systems if system.can_run(case)]
        unable = [system.name for system in self.systems if system not in able]
        for number in range(runs):
            one = Round(
                case,
                workers,
                unable=unable,
                day=f"{datetime.now(UTC):%Y-%m-%d}",
                machine=versions(),
                threads=self._threads and workers > 1,
            )
            self.rounds.append(one)
            # Who comes first takes turns: what slows the machine down for a while is not always in the same
            # one's way.
            for system in able if number % 2 == 0 else list(reversed(able)):
                now = f"{system.name}: {case.name} on {_workers(workers)}, run {number + 1} of {runs}"
                figures = self._run(system, one, now)
                if figures is not None:
                    one.figures[system.name] = figures
            able = [system for system in able if system.name not in one.too_much]  # it would be again
            done(one)
            if len(able) == 1:
                return

    def _run(self, system: System, one: Round, now: str) -> Figures | None:
        """The figures, or none if the run does not count."""
        self.now = now
        self._note(now)
        one.loads.append(os.getloadavg()[0])
        try:
            return system.run(one.case, one.workers)
        except TooMuchError as error:
            one.too_much[system.name] = error.bound
        except RunError as error:
            one.failures.append(f"{now}: {error}")
        finally:
            one.systems[system.name] = system.description  # known after its first run
        return None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = rows_of(self.rounds)
        if self.now and console.is_terminal:  # what does not fit would be written again and again
            lines = console.size.height - len(self.failures) - _OTHER_LINES * len(self.systems)
            rows = rows[-max(1, lines // (_ROW_LINES * (len(self.systems) - 1))) :]
        for other in self.systems[1:]:
            yield screen(rows, OURS, other.name)
        for failure in self.failures:
            yield Text(failure, style="red")
        if self.now:
            yield Text(f"{self.now}; load average {os.getloadavg()[0]:.1f}", style="dim")


def names_of(folders: Sequence[Path]) -> list[str]:
    """A short name for each checkout, no two alike: the last part of its path, with a number if need be."""
    names = [OURS, RUST]
    for folder in folders:
        name, number = folder.resolve().name, 2
        while name in names:
            name, number = f"{folder.resolve().name} ({number})", number + 1
        names.append(name)
    return names[2:]


def _workers(count: int) -> str:
    return "one worker" if count == 1 else f"{count} workers"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    options = parser.parse_args(given)
    # Where things are on this machine is of no use to who reads it.
    shown = (Path(word).name if word.startswith("/") else word for word in given)
    command = f"python -m bench.compare {' '.join(shown)}".strip()
    if options.made_of:
        text = document(kept(options.made_of), OURS, command)
        options.write.write_text(text) if options.write else print(text)
        return
    try:
        known = dict.fromkeys((*MODEST, *CASES)) if options.peer_python else CASES
        cases = chosen(SMALL if options.small else tuple(known), options.workload)
    except ValueError as error:
        parser.error(str(error))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH)
    with ExitStack() as stack:
        try:
            systems = _systems(options, stack)
        except RunError as error:
            parser.error(str(error))
        # A terminal shows what runs now below the table.
        comparison = Comparison(
            systems, lambda now: None if console.is_terminal else console.print(now), options.threads
        )

        def done(one: Round) -> None:
            """After each round, so that whoever interrupts has what there is."""
            if options.keep is not None:
                keep(one, options.keep)
            if options.write is not None:
                options.write.write_text(document(comparison.rounds, OURS, command))

        with Live(comparison, console=console, refresh_per_second=2, vertical_overflow="visible"):
            if not options.small:
                comparison.prepare({case.family for case in cases}, max(options.workers))
            for workers in options.workers:
                for case in cases:
                    if any(system.can_run(case) for system in systems[1:]):
                        comparison.run(case, workers, options.runs, done)
            comparison.now = ""
    sys.exit(1 if comparison.failures else 0)


def _systems(options: argparse.Namespace, stack: ExitStack) -> list[System]:
    """Ours first; raises `RunError` if one is not there."""
    systems: list[System] = [stack.enter_context(Checkout(ROOT, OURS, threads=options.threads))]
    for folder, name in zip(options.against, names_of(options.against), strict=True):
        other = Checkout(folder, name, own_bench=options.own_bench, threads=options.threads)
        systems.append(stack.enter_context(other))
    if options.peer is not None or not (options.against or options.peer_python or options.peer_engine):
        systems.append(Peer(options.peer or PEER_PROGRAM))
    systems += [PythonPeer(name, options.limit) for name in options.peer_python]
    systems += [EnginePeer(name, options.limit) for name in options.peer_engine]
    return systems


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="all workloads, ours beside Rust or another checkout")
    parser.add_argument("workload", nargs="*", help="as in wcc or bfs-100k-1M; all without one")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--threads", action="store_true", help="several workers of ours are threads")
    parser.add_argument("--runs", type=int, default=3, help="rounds, in which each system runs once")
    parser.add_argument("--small", action="store_true", help="sizes of which only the answer means something")
    parser.add_argument("--write", type=Path, help="a Markdown file for the tables")
    parser.add_argument(
        "--against", type=Path, nargs="+", default=[], metavar="FOLDER", help="other checkouts"
    )
    parser.add_argument(
        "--own-bench", action="store_true", help="measure other checkouts by the queries that are in them"
    )
    parser.add_argument(
        "--peer-python", nargs="+", default=[], choices=list(PYTHON_PEERS), help="systems from PyPI"
    )
    parser.add_argument(
        "--peer-engine",
        nargs="+",
        default=[],
        choices=list(ENGINES),
        help="engines that keep queries current",
    )
    parser.add_argument(
        "--limit", type=float, default=600.0, metavar="SECONDS", help="of a run of these; default: 600"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add each round to this file of JSON lines")
    parser.add_argument(
        "--from", type=Path, nargs="+", dest="made_of", metavar="FILE", help="tables of what was kept"
    )
    parser.add_argument(
        "--peer", type=Path, nargs="?", const=PEER_PROGRAM, help="Rust's program, also beside others"
    )
    return parser


if __name__ == "__main__":
    main()
