"""How does a change's latency grow with the graph, and how many changes a second with more epochs in flight?

    python -m bench.plots [--runs 3] [--small] [--redraw]

Components and distances, on graphs of 10,000 to a million nodes with twice as many edges, one change at a
time; and on one graph of 100,000 nodes with 1 to 10,000 epochs in flight. Ours and Rust's in turn, one
worker each, every run a process of its own whose answer is checked (`bench/compare.py`). Each round is
added to curves.jsonl as soon as it is over, in `bench/results` or the folder of --into; what is there is
drawn: change_by_size.svg, throughput.svg, and both in figures, curves.md. With --redraw nothing runs. A
round that is there is not made again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.cases import Case
from bench.compare import OURS, Comparison
from bench.machine import ROOT
from bench.rounds import Round, keep, kept, provenance
from bench.systems import PEER_PROGRAM, RUST, Checkout, Figures, Peer, RunError, System
from bench.tables import number

__all__ = ["Curve", "curves", "draw", "main", "markdown"]

FAMILIES = {"wcc plain": "wcc", "bfs": "bfs"}
NODES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
CHANGES = 100
IN_FLIGHT = {1: 200, 10: 1_000, 100: 1_000, 1_000: 3_000, 10_000: 10_000}
"""Epochs in flight, and how many there are in all."""
IN_FLIGHT_NODES = 100_000
_SIZE = (7.6, 3.8)
"""Inches."""
_COLOURS = {"wcc": "#1f6fb4", "bfs": "#c0392b"}


@dataclass(frozen=True)
class Curve:
    """One line of a plot: by place on its axis what the rounds have, of those in which both systems count."""

    family: str
    system: str
    what: str
    values: dict[int, list[float]]

    @property
    def points(self) -> dict[int, float]:
        """The medians."""
        return {at: statistics.median(found) for at, found in sorted(self.values.items())}


def by_size(nodes: Sequence[int], changes: int) -> list[Case]:
    """One change at a time."""
    return [Case(words, (count, 2 * count, changes)) for words in FAMILIES for count in nodes]


def by_flight(in_flight: dict[int, int], nodes: int) -> list[Case]:
    """Several epochs at once."""
    return [
        Case(words, (nodes, 2 * nodes, changes), batch)
        for words in FAMILIES
        for batch, changes in in_flight.items()
    ]


def curves(
    rounds: Sequence[Round],
    cases: Sequence[Case],
    place: Callable[[Case], int],
    what: str,
    read: Callable[[Case, Figures], float],
) -> list[Curve]:
    """One for each workload and system, of the rounds of these cases."""
    values: dict[tuple[str, str], dict[int, list[float]]] = {}
    for one in rounds:
        if one.case in cases and {OURS, RUST} <= one.figures.keys():
            for system, figures in one.figures.items():
                line = values.setdefault((FAMILIES[one.case.words], system), {})
                line.setdefault(place(one.case), []).append(read(one.case, figures))
    return [Curve(*key, what, line) for key, line in values.items()]


def latencies(rounds: Sequence[Round], cases: Sequence[Case]) -> list[Curve]:
    """Milliseconds of a change by nodes: the median, and 99 %."""
    medians = curves(rounds, cases, lambda case: case.sizes[0], "median", lambda _, f: f.change_ms_median)
    larger = curves(rounds, cases, lambda case: case.sizes[0], "99 %", lambda _, f: f.change_ms_p99)
    return medians + larger


def throughputs(rounds: Sequence[Round], cases: Sequence[Case]) -> list[Curve]:
    """Changes a second by epochs in flight."""
    return curves(
        rounds, cases, lambda case: case.batch, "", lambda case, f: case.batch / f.change_ms_median * 1e3
    )


def draw(lines: Sequence[Curve], across: str, up: str, path: Path) -> None:
    """Both axes logarithmic. Without a date and with names that do not change, so that equal figures are
    equal files.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    for line in lines:
        axes.plot(
            list(line.points),
            list(line.points.values()),
            label=" ".join([line.family, line.system, line.what]).strip(),
            color=_COLOURS[line.family],
            linestyle="-" if line.system == OURS else "--",
            marker="x" if line.what == "99 %" else ".",
            alpha=0.45 if line.what == "99 %" else 1.0,
            linewidth=1,
        )
    axes.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    axes.legend(frameon=False, fontsize="small", ncols=2)
    with mpl.rc_context({"svg.hashsalt": "naiad", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def markdown(lines: Sequence[Curve], across: str) -> str:
    """What is drawn, in figures: ours, Rust's, and the median of the ratios, round by round."""
    pairs = [
        (line, other)
        for line in lines
        for other in lines
        if (line.system, other.system) == (OURS, RUST)
        and (line.family, line.what) == (other.family, other.what)
    ]
    heads = [f"{line.family} {line.what}".strip() for line, _ in pairs]
    rows = [f"| {across} | {' | '.join(heads)} |", f"|---|{'---|' * len(pairs)}"]
    for at in sorted({at for line in lines for at in line.values}):
        rows.append(f"| {at:,} | {' | '.join(_cell(line, other, at) for line, other in pairs)} |")
    return "\n".join(rows)


def _cell(line: Curve, other: Curve, at: int) -> str:
    if at not in line.values:
        return "–"
    ratio = statistics.median(
        mine / theirs for mine, theirs in zip(line.values[at], other.values[at], strict=True)
    )
    return f"{number(line.points[at])} / {number(other.points[at])} = {ratio:.2f}"


def _written(folder: Path, rounds: Sequence[Round], sizes: Sequence[Case], flights: Sequence[Case]) -> None:
    """Both plots, and the figures."""
    latency, throughput = latencies(rounds, sizes), throughputs(rounds, flights)
    draw(latency, "nodes; twice as many edges", "milliseconds of a change", folder / "change_by_size.svg")
    draw(throughput, "epochs in flight", "changes a second", folder / "throughput.svg")
    nodes = flights[0].sizes[0]
    (folder / "curves.md").write_text(
        "## A change by size of the graph, and changes a second by epochs in flight\n\n"
        "`python -m bench.plots`: ours / Rust and their ratio, one worker each, medians over the rounds of "
        "`curves.jsonl`, from which it is drawn.\n\n"
        "### Milliseconds of a change of one edge\n\n![change](change_by_size.svg)\n\n"
        f"{markdown(latency, 'nodes')}\n\nSmaller is better: below 1 ours is quicker.\n\n"
        f"### Changes a second, {nodes:,} nodes and {2 * nodes:,} edges\n\n![throughput](throughput.svg)\n\n"
        f"{markdown(throughput, 'epochs in flight')}\n\nLarger is better: above 1 ours does more.\n\n"
        f"{provenance(rounds)}\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--runs", type=int, default=3, help="rounds of each point, those that are there included"
    )
    parser.add_argument("--into", type=Path, default=ROOT / "bench/results", metavar="FOLDER")
    parser.add_argument("--small", action="store_true", help="sizes of which the figures mean nothing")
    parser.add_argument("--redraw", action="store_true", help="run nothing")
    parser.add_argument("--peer", type=Path, default=PEER_PROGRAM, help="Rust's program")
    options = parser.parse_args(arguments)
    sizes = by_size((200, 500), 10) if options.small else by_size(NODES, CHANGES)
    flights = by_flight({1: 10, 10: 20}, 300) if options.small else by_flight(IN_FLIGHT, IN_FLIGHT_NODES)
    data = options.into / "curves.jsonl"
    rounds = kept([data]) if data.exists() else []
    failures: list[str] = []
    if not options.redraw:
        with ExitStack() as stack:
            try:
                systems: list[System] = [stack.enter_context(Checkout(ROOT, OURS)), Peer(options.peer)]
            except RunError as error:
                parser.error(str(error))
            comparison = Comparison(systems, print)
            for case in (*sizes, *flights):
                missing = options.runs - sum(one.case == case for one in rounds)
                comparison.run(case, 1, max(0, missing), lambda one: keep(one, data))
            rounds += comparison.rounds
            failures = comparison.failures
    if not rounds:
        parser.error(f"there is nothing in {data}")
    _written(options.into, rounds, sizes, flights)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
