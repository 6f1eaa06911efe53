"""One line on the screen while a job runs: its progress, and what it waits for.

    epoch 12 of 168 · 3,402 rows in · 98 changes · 0.4 s behind · waits for workers

The line goes to the error stream, only if that is a terminal, and is erased at the end. "Behind" is the time
since the rows of the current epoch were sent.
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
    """The line; a context manager. `is_shown=False`: show nothing, even on a terminal.

    `seconds`: how long the job has waited so far, by what it waited for.
    """

    def __init__(
        self, is_shown: bool, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        console = Console(stderr=True) if console is None else console
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        if is_shown and console.is_terminal:
            # Lines that the program prints go above this line, but only if its output is a terminal, too:
            # rich would redirect a file or a pipe to the terminal.
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
        """Set the number of epochs, if that is known, and of those that are done already."""
        self._total, self._done = epochs, done
        self._show()

    def waits(self, what: str) -> None:
        """Note what the job waits for from now on."""
        self._count()
        self._waits = what
        self._show()

    def spent(self) -> dict[str, float]:
        """Return the seconds since the last call, by what the job waited for."""
        self._count()
        spent, self._spent = self._spent, {}
        return spent

    def sent(self) -> None:
        """Note that the rows of the next epochs have been sent."""
        self._sent = self._clock()

    def done(self, epoch: int, rows: int, changes: int) -> None:
        """Note that an epoch is answered, with its numbers of rows and changes."""
        self._done = epoch + 1
        self._rows += rows
        self._changes += changes
        self._show()

    def line(self) -> str:
        """Return the line."""
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
