"""Components of a mention graph, kept current while a window slides over it.

    python examples/mention_components.py [--input FILE] [--kind MT] [--workers 2] [--window-hours 24]
                                          [--slide-minutes 60] [--epochs N] [--output DIR] [--json]
                                          [--allow-gap]

Spark reads the interactions and turns them into epochs: what enters and what leaves the window. Its executors
send them straight to the workers; this process only says when an epoch is complete. The workers keep, for
every user in the window, the smallest user id connected with it. What changes is written by Spark, one commit
per epoch. The line of an epoch is shown when the epoch is committed.

Exit status: 0 all epochs are committed; 1 an error, which is told; 2 a mistake in the command line; 128 + n
ended by signal n (SIGINT, SIGTERM, SIGHUP). However it ends, what was shown is committed, and the same
command goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from component_sizes import ComponentSizes
from mentions.interactions import checked_file, read_interactions
from mentions.mention_stream import generate
from mentions.stray_times import refuse_stray_times
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import differential as dd
import timely
from differential import col
from differential.algorithms import connected_components
from timely.errors import TimelyError
from timely.spark.epochs import EpochRows, EpochSize, epoch_rows
from timely.spark.feed import EpochFeed
from timely.spark.lost import end_session, java_watched
from timely.spark.session import local_session
from timely.spark.sink import ChangesSink, write_snapshot
from timely.spark.stopping import Stopped, stopped_by_signals
from timely.spark.windows import SlidingWindow

HOUR_SECONDS = 3600


@timely.builder
def mentions(dataflow: timely.Dataflow) -> None:
    """The dataflow, as every worker builds it."""
    interactions = dd.input(dataflow, "interactions", "source: int, target: int")
    edges = interactions.select(src=col.source, dst=col.target)
    connected_components(edges).output("components")


@dataclass(frozen=True)
class EpochReport:
    """What is said about one epoch; the fields of a `--json` line."""

    epoch: int
    end: int
    interactions: int
    nodes: int
    components: int
    largest: int
    changes: int
    seconds: float


@dataclass(frozen=True)
class Options:
    """The command line."""

    input: Path | None
    kind: str | None
    workers: int
    window_hours: float
    slide_minutes: float
    epochs: int | None
    output: Path
    json: bool
    allow_gap: bool


class Shown:
    """The lines of the epochs, each shown when its epoch is committed."""

    def __init__(self, console: Console, as_json: bool) -> None:
        self._console = console
        self._as_json = as_json
        self._waiting: deque[tuple[EpochReport, EpochSize]] = deque()
        self._sink: ChangesSink | None = None

    def follow(self, sink: ChangesSink) -> None:
        """What `sink` commits is what may be shown."""
        self._sink = sink

    def add(self, report: EpochReport, size: EpochSize) -> None:
        """One more epoch, which waits for its commit."""
        self._waiting.append((report, size))
        self.show()

    def show(self) -> None:
        """Show what has been committed since."""
        while self._waiting and self._sink is not None and self._waiting[0][0].epoch < self._sink.committed:
            report, size = self._waiting.popleft()
            if self._as_json:
                print(json.dumps(asdict(report)), flush=True)
            else:
                self._console.print(line(report, size), highlight=False, soft_wrap=True)

    def progress(self) -> str:
        """How far the commits have come."""
        return "Nothing was written." if self._sink is None else self._sink.progress()


def main(arguments: list[str] | None = None) -> int:
    """Run the job; the exit code is 0 when every epoch was committed."""
    options = parsed(arguments)
    console = Console(stderr=options.json)
    shown = Shown(console, options.json)
    try:
        with stopped_by_signals(), java_watched(), ExitStack() as stack:
            run(options, console, shown, stack)
    except TimelyError as error:
        tell(f"[bold red]{type(error).__name__}[/]: ", str(error), shown)
        return 1
    except Stopped as stopped:
        tell("", f"{stopped}.", shown)
        return stopped.exit_code
    except KeyboardInterrupt:
        tell("", "stopped at once.", shown)
        return 130
    return 0


def tell(who: str, what: str, shown: Shown) -> None:
    """The one message of a job that did not end well, with how far it has come."""
    errors = Console(stderr=True)
    errors.print(who, end="")
    errors.print(what, highlight=False, soft_wrap=True, markup=False)
    if shown.progress() not in what:
        errors.print(shown.progress(), highlight=False, soft_wrap=True, markup=False)


def run(options: Options, console: Console, shown: Shown, stack: ExitStack) -> None:
    """Start Spark and the workers, feed, follow, commit."""
    path = generated(stack) if options.input is None else checked_file(options.input)
    with console.status("starting Spark and the workers …"), ThreadPoolExecutor(1) as starter:
        stack.callback(end_session)
        session = starter.submit(local_session, 2, "mention components")
        cluster = stack.enter_context(timely.connect(workers=options.workers))
        flow = cluster.install(mentions)
        spark = session.result()
    with console.status(f"reading {path.name} …"):
        source = read_interactions(spark, path, options.kind)
        slide, length = round(options.slide_minutes * 60), round(options.window_hours * HOUR_SECONDS)
        window = SlidingWindow(source.first_time, source.last_time, length, slide)
        if not options.allow_gap:
            refuse_stray_times(source, window)
        epochs = window.epochs if options.epochs is None else min(options.epochs, window.epochs)
        rows = epoch_rows(window.changes(source.rows, epochs=epochs), diff="diff")
    job: dict[str, object] = {
        "input": "generated" if options.input is None else str(path.resolve()),
        "kind": options.kind or "all",
        "window": length,
        "slide": slide,
    }
    feed = EpochFeed(rows, "interactions", cluster.append_target(flow.index))
    try:
        with ChangesSink(spark, options.output, job=job) as sink, display(console, epochs) as progress:
            shown.follow(sink)
            follow = progress.add_task("epochs", total=epochs)
            for report, size, changes in reported(followed(flow, feed, rows, epochs), rows, window):
                sink.commit(report.epoch, changes)
                shown.add(report, size)
                progress.advance(follow)
            sink.flush()
    finally:
        # Leaving the block has committed what was complete, also if it was left by an error.
        shown.show()
    write_snapshot(spark, options.output, flow.output("components").snapshot())
    console.print(f"changes and snapshot are in {options.output}", highlight=False, soft_wrap=True)


def reported(
    changes_of_epochs: Iterable[tuple[int, pa.Table, float]], rows: EpochRows, window: SlidingWindow
) -> Iterator[tuple[EpochReport, EpochSize, pa.Table]]:
    """What is said about each epoch, with what came and went in it, and its changes."""
    sizes = ComponentSizes()
    in_window = 0
    for epoch, changes, seconds in changes_of_epochs:
        size = rows.sizes.get(epoch, EpochSize(0, 0))
        in_window += size.entered - size.left
        sizes.apply(changes)
        report = EpochReport(
            epoch,
            window.end(epoch),
            in_window,
            sizes.nodes,
            sizes.components,
            sizes.largest,
            changes.num_rows,
            round(seconds, 6),
        )
        yield report, size, changes


def followed(
    flow: timely.Flow, feed: EpochFeed, rows: EpochRows, epochs: int
) -> Iterator[tuple[int, pa.Table, float]]:
    """Each epoch with what it changed, and the time from sealing it to knowing that."""
    output = flow.output("components")
    for chunk in rows.chunks(epochs):
        receipts = feed.send(chunk)
        for epoch in chunk:
            expected = [
                identity for receipt in receipts[epoch] for identity in receipt.expected("interactions")
            ]
            begin = time.perf_counter()
            flow.seal(expected=expected)
            changes = output.changes(epoch, epoch + 1)
            seconds = time.perf_counter() - begin
            output.forget(epoch + 1)
            yield epoch, changes, seconds


def generated(stack: ExitStack) -> Path:
    """A file with a mention stream of our own making, for whoever has no data."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mentions-"))
    path = Path(folder) / "mentions.txt.gz"
    generate().write(path)
    return path


def display(console: Console, epochs: int) -> Progress:
    """The progress display under the lines of the epochs."""
    del epochs
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def line(report: EpochReport, size: EpochSize) -> str:
    """One epoch on the screen."""
    end = datetime.fromtimestamp(report.end, UTC).strftime("%a %d %b %H:%M")
    return (
        f"{end}  +{size.entered:<6,} -{size.left:<6,} interactions  {report.nodes:>7,} nodes  "
        f"{report.components:>6,} components  largest {report.largest:>7,}  {report.changes:>7,} changes  "
        f"{report.seconds * 1000:>7.1f} ms"
    )


def parsed(arguments: list[str] | None) -> Options:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        description="Components of a mention graph, kept current while a window slides over it."
    )
    parser.add_argument(
        "--input",
        type=Path,
        help="lines of: source target unix_seconds [kind]; plain or .gz; generated if left out",
    )
    parser.add_argument("--kind", help="only interactions of this kind, such as MT")
    parser.add_argument("--workers", type=int, default=2, help="worker processes (default 2)")
    parser.add_argument("--window-hours", type=float, default=24, help="length of the window (default 24)")
    parser.add_argument(
        "--slide-minutes", type=float, default=60, help="how far the window moves per epoch (default 60)"
    )
    parser.add_argument("--epochs", type=int, help="stop after this many epochs")
    parser.add_argument(
        "--output", type=Path, default=Path("mention_components.out"), help="folder for changes and snapshot"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object per epoch on standard output, nothing else"
    )
    parser.add_argument(
        "--allow-gap", action="store_true", help="take times that are far off all others for what they are"
    )
    options = Options(**vars(parser.parse_args(arguments)))
    for name, value in (
        ("--workers", options.workers),
        ("--window-hours", options.window_hours),
        ("--slide-minutes", options.slide_minutes),
    ):
        if value <= 0:
            parser.error(f"{name} must be above zero, not {value}")
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs must be at least 1, not {options.epochs}")
    return options


if __name__ == "__main__":
    sys.exit(main())
