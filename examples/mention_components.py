"""Components of a mention graph, kept current while a window slides over it.

    python examples/mention_components.py [--input FILE] [--kind MT] [--workers 2] [--window-hours 24]
                                          [--slide-minutes 60] [--epochs N] [--output DIR] [--json]
                                          [--durable FOLDER] [--allow-gap]

`components` is the query; `timely.spark.run` does the rest: Spark turns the interactions into epochs (what
enters and what leaves the window), its executors send them straight to the workers, and changes become
Parquet, one commit per epoch. The program prints the line of an epoch when the epoch is committed.

Exit status: 0 all epochs are committed; 1 an error, with a message; 2 a mistake in the command line; 128 + n
ended by signal n (SIGINT, SIGTERM, SIGHUP). However it ends, the epochs on the screen are committed, and the
same command goes on behind them. With `--durable` workers that end start again, and no row is sent twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from mentions.epoch_lines import EpochLines
from mentions.interactions import checked_file, read_interactions
from mentions.mention_stream import generate
from mentions.stray_times import refuse_stray_times
from rich.console import Console

import timely.spark
from differential import Collection, col
from differential.algorithms import connected_components
from timely.spark.session import local_session
from timely.spark.stopping import exit_status
from timely.spark.windows import SlidingWindow


def components(interactions: Collection) -> Collection:
    """For every user in the window, the smallest user id connected with it."""
    return connected_components(interactions.drop_nulls().select(src=col.source, dst=col.target))


def follow(options: argparse.Namespace, stack: ExitStack) -> None:
    """Read the interactions, and follow the query over the window."""
    console = Console(stderr=options.json)
    if options.input is None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mentions-")))
        path = generate().write(folder / "mentions.txt.gz")
    else:
        path = checked_file(options.input)
    with console.status(f"starting Spark, reading {path.name} …"):
        source = read_interactions(local_session(2, "mention components"), path, options.kind)
        slide, length = round(options.slide_minutes * 60), round(options.window_hours * 3600)
        first, last = source.first_time, source.last_time
        if not options.allow_gap:
            refuse_stray_times(source, SlidingWindow(first, last, length, slide))
    job = {"input": "generated" if options.input is None else str(path.resolve()), "kind": options.kind}
    timely.spark.run(
        components,
        {"interactions": source.rows},
        window=timely.spark.sliding(
            length, every=slide, on="time", first=first, last=last, epochs=options.epochs
        ),
        outputs=[timely.spark.to_parquet(options.output, job=job), EpochLines(console, options.json)],
        workers=options.workers,
        durable=options.durable,
    )
    console.print(f"changes and snapshot are in {options.output}", highlight=False, soft_wrap=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    option = parser.add_argument
    option("--input", type=Path, help="lines of: source target unix_seconds [kind]; generated if left out")
    option("--kind", help="only interactions of this kind, such as MT")
    option("--workers", type=int, default=2, help="worker processes (default 2)")
    option("--window-hours", type=float, default=24, help="length of the window (default 24)")
    option("--slide-minutes", type=float, default=60, help="how far it moves per epoch (default 60)")
    option("--epochs", type=int, help="stop after this many epochs")
    option("--output", type=Path, default=Path("mention_components.out"), help="folder for the answers")
    option("--durable", type=Path, metavar="FOLDER", help="keep what the workers take in, and go on with it")
    option("--json", action="store_true", help="one JSON object per epoch on standard output, nothing else")
    option("--allow-gap", action="store_true", help="take times that are far off all others as they are")
    options = parser.parse_args(arguments)
    for name in ("workers", "window_hours", "slide_minutes"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} must be above zero, not {getattr(options, name)}")
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs must be at least 1, not {options.epochs}")
    return options


if __name__ == "__main__":
    sys.exit(exit_status(partial(follow, parsed())))
