"""Keys that are pressed in a terminal, one at a time, without a line being ended."""

from __future__ import annotations

import os
import select
import sys
import time
from types import TracebackType

__all__ = ["Pressed"]


class Pressed:
    """The keys of the program's terminal, within a `with`. Where its input is no terminal no key comes."""

    def __init__(self) -> None:
        self._file = -1
        self._before: list[object] = []

    def __enter__(self) -> Pressed:
        if sys.stdin is not None and sys.stdin.isatty():
            import termios
            import tty

            self._file = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            import termios

            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]

    def wait(self, seconds: float) -> str:
        """Return the next key; "" if none is pressed within these seconds."""
        if self._file < 0:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._file], [], [], seconds)
        return os.read(self._file, 1).decode(errors="replace") if ready else ""
