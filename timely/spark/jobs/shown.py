"""One line on the screen while a job runs: how far it is, and what it waits for.

    epoch 12 of 168 · 3,402 rows in · 98 changes · 0.4 s behind · waits for workers

Written to the error stream, and only if that is a terminal: it is wiped away at the end. "Behind" is how long
ago the rows of the epoch in hand had been sent.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

__all__ = ["Screen"]


class Screen:
    """The line; a context manager. `wanted=False`: nothing is shown, whatever the terminal is.

    `seconds`: how long the job has waited for what, until now.
    """

    def __init__(
        self, wanted: bool, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        console = Console(stderr=True) if console is None else console
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        if wanted and console.is_terminal:
            # What the program prints goes above the line; but never from a file or a pipe to the terminal.
            is_seen = sys.stdout.isatty()
            self._live = Live(self._spinner, console=console, transient=True, redirect_stdout=is_seen)
        self._clock = clock
        self._total: int | None = None
        self._done = self._rows = self._changes = 0
        self._sent: float | None = None
        self._waits, self._since = "starting", clock()
        self._spent: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def total(self, epochs: int | None, done: int = 0) -> None:
        """How many epochs there will be, if that is known, and how many are done already."""
        self._total, self._done = epochs, done
        self._show()

    def waits(self, what: str) -> None:
        """What the job waits for now."""
        self._count()
        self._waits = what
        self._show()

    def spent(self) -> dict[str, float]:
        """Seconds since this was asked the last time, by what they were waited for."""
        self._count()
        spent, self._spent = self._spent, {}
        return spent

    def sent(self) -> None:
        """Rows of the next epochs have been sent."""
        self._sent = self._clock()

    def done(self, epoch: int, rows: int, changes: int) -> None:
        """An epoch is answered."""
        self._done = epoch + 1
        self._rows += rows
        self._changes += changes
        self._show()

    def line(self) -> str:
        """What is shown."""
        if self._total is None and not self._done:
            return f"waits for {self._waits}"
        of = "" if self._total is None else f" of {self._total:,}"
        lag = "" if self._sent is None else f"{self._clock() - self._sent:.1f} s behind · "
        return (
            f"epoch {self._done:,}{of} · {self._rows:,} rows in · {self._changes:,} changes · {lag}"
            f"waits for {self._waits}"
        )

    def _count(self) -> None:
        now = self._clock()
        for seconds in (self._spent, self.seconds):
            seconds[self._waits] = seconds.get(self._waits, 0.0) + now - self._since
        self._since = now

    def _show(self) -> None:
        if self._live is not None:
            self._spinner.update(text=self.line())
