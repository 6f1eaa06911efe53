"""A stream that is captured into files on some workers, and replayed on others to ask another question.

    python examples/replayed.py [--processes] [FOLDER]

The first cluster counts clicks by user, and captures them. The second one has no input: it reads the files,
and counts the same clicks by page.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import timely

EPOCHS = (
    (("ada", "home"), ("bob", "home"), ("ada", "cart")),
    (("ada", "pay"), ("bob", "cart")),
    (("cy", "home"),),
)


def add(total: int, one: int) -> int:
    """Return the next count."""
    return total + one


@timely.builder
def by_user(dataflow: timely.Dataflow, folder: str) -> None:
    """Clicks in, and into the folder; counts by user out. Clicks of one user are captured on one worker."""
    clicks = dataflow.input("clicks").exchange(timely.by(0))
    clicks.capture(folder)
    dataflow.output("counts", clicks.map(lambda click: (click[0], 1)).aggregate(add, 0))


@timely.builder
def by_page(dataflow: timely.Dataflow, folder: str) -> None:
    """The clicks of the folder once more; counts by page out."""
    clicks = dataflow.replay(folder)
    dataflow.output("counts", clicks.map(lambda click: (click[1], 1)).aggregate(add, 0))


def show(flow: timely.Flow, title: str, place: int) -> None:
    """Print the counts of each epoch, of the entry of a click at `place`; compare them with a plain count."""
    print(title)
    counts = sorted(flow.output("counts").changes())
    plainly = Counter((epoch, click[place]) for epoch, clicks in enumerate(EPOCHS) for click in clicks)
    if counts != sorted((epoch, (name, count)) for (epoch, name), count in plainly.items()):
        sys.exit(f"replayed: these differ from a plain count: {counts}")
    for epoch, (name, count) in counts:
        print(f"  epoch {epoch}: {count} × {name}")


def run(folder: str, are_processes: bool) -> None:
    """Capture the clicks on two workers, and replay them on three."""
    with timely.connect(workers=2, embedded=not are_processes) as cluster:
        flow = cluster.install(by_user, folder=folder)
        for clicks in EPOCHS:
            flow.input("clicks").insert(list(clicks))
            flow.seal()
        flow.wait()
        show(flow, "by user, on 2 workers", 0)
    with timely.connect(workers=3, embedded=not are_processes) as cluster:
        flow = cluster.install(by_page, folder=folder)
        flow.finish()
        show(flow, f"by page, on 3 workers, from {len(list(Path(folder).iterdir()))} files", 1)


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description="Capture a stream, and replay it on other workers.")
    parser.add_argument("folder", nargs="?", help="a new folder for the files; without it a temporary one")
    parser.add_argument(
        "--processes", action="store_true", help="workers are processes, and not within this one"
    )
    arguments = parser.parse_args()
    if arguments.folder is not None:
        run(arguments.folder, arguments.processes)
        return
    with TemporaryDirectory() as folder:
        run(str(Path(folder) / "clicks"), arguments.processes)


if __name__ == "__main__":
    try:
        main()
    except timely.TimelyError as error:
        sys.exit(f"replayed: {error}")
