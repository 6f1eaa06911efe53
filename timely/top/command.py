"""`python -m timely.top`: show in a terminal how a cluster works, again and again.

A thread asks the workers: one that is in a long step answers late, and the picture says then how old it is.
Nobody asks again before the last answer is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live

from .. import connect
from ..client.cluster import Cluster
from ..client.reports.figures import Figures, Stats, figures
from .picture import ORDERS, picture
from .pressed import Pressed

__all__ = ["run_command"]

_EXAMPLES = """examples:
  python -m timely.top localhost:7401                     until q is pressed
  python -m timely.top localhost:7401 --sort kept         the stages that keep most come first
  python -m timely.top localhost:7401 --once --json       one answer for a program
  python -m timely.top host:7401 --keys ada-keys          if the workers have keys"""

_LOOKS_A_SECOND = 10
"""How often a key is looked for and the picture drawn."""

_FILE_WIDTH = 160
"""Characters of a line where the output is no terminal."""


def run_command(arguments: Sequence[str], out: TextIO) -> None:
    """Run a command line, and write what it shows to `out`.

    Raises `TimelyError` if the workers do not answer, or no more; exits with status 2 and the usage if the
    line is malformed.
    """
    parsed = _parser().parse_args(arguments)
    console = Console(file=out, width=None if out.isatty() else _FILE_WIDTH)
    with connect(parsed.address, keys=parsed.keys) as cluster:
        watch = _Asking(cluster, parsed.every)
        try:
            if parsed.once or not console.is_terminal:
                _write(watch.first(), parsed, console)
            else:
                _show(watch, parsed.sort, console)
        finally:
            watch.end()


def _write(shown: Figures, parsed: argparse.Namespace, console: Console) -> None:
    if parsed.json:
        console.file.write(json.dumps(asdict(shown)) + "\n")
    else:
        console.print(picture(shown, parsed.sort, sys.maxsize))


def _show(watch: _Asking, order: str, console: Console) -> None:
    with Pressed() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            shown, age = watch.last()
            if shown is not None:
                live.update(picture(shown, order, console.height, age), refresh=True)
            key = pressed.wait(1 / _LOOKS_A_SECOND)
            if key == "q":
                return
            order = next((name for name in ORDERS if name[0] == key), order)


class _Asking:
    """Asks a cluster again and again, in a thread."""

    def __init__(self, cluster: Cluster, every: float) -> None:
        self._cluster = cluster
        self._every = every
        self._changed = threading.Condition()
        self._figures: Figures | None = None
        self._answered = time.monotonic()
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="asks the workers", daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            before, asked = self._cluster.stats(), time.monotonic()
            while not self._ended.wait(self._every):
                after, now = self._cluster.stats(), time.monotonic()
                self._tell(before, after, now - asked)
                before, asked = after, now
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _tell(self, before: Stats, after: Stats, seconds: float) -> None:
        with self._changed:
            self._figures, self._answered = figures(before, after, seconds), time.monotonic()
            self._changed.notify_all()

    def first(self) -> Figures:
        """Wait for the first figures, and return them. Raises what asking has raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._figures is not None or self._error is not None)
        shown, _ = self.last()
        assert shown is not None
        return shown

    def last(self) -> tuple[Figures | None, float]:
        """Return the last figures, None before the first, and how many seconds more than usual they are old.
        Raises what asking has raised.
        """
        with self._changed:
            if self._error is not None:
                raise self._error
            return self._figures, time.monotonic() - self._answered - self._every

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.05 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text} s: give 0.05 to 3600")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m timely.top",
        description="Show how a running cluster works: its workers, dataflows and stages.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", metavar="HOST:PORT", help="of any worker of the cluster")
    parser.add_argument(
        "--every", type=_seconds, default=1.0, metavar="SECONDS", help="between two answers (1.0)"
    )
    parser.add_argument("--sort", choices=list(ORDERS), default="busy", help="which stages come first (busy)")
    parser.add_argument(
        "--once", action="store_true", help="show one answer and end, as where the output is no terminal"
    )
    parser.add_argument("--json", action="store_true", help="write the one answer as a line of JSON")
    parser.add_argument(
        "--keys",
        type=Path,
        metavar="FOLDER",
        help="the keys of this client, as 'python -m timely.keys client' has made them",
    )
    return parser
