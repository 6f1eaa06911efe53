"""Let a signal end a driver as an error does: by leaving its `with` blocks one after another.

Otherwise SIGTERM would end Python at once, and abandon an epoch that is being committed, and the workers.
Exit codes are those of a shell: 128 plus the number of the signal. `exit_status` runs a function as a program
of this kind, which ends with one message, whatever has ended it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final

from rich.console import Console

from timely.errors import TimelyError
from timely.spark.lost import end_session, java_watched

__all__ = ["Stopped", "exit_status", "stopped_by_signals"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks this process to end. Not an `Exception`, so that code which handles errors lets it
    pass.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.number).name}"

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal."""
        return 128 + self.number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Inside, the first SIGTERM, SIGINT or SIGHUP raises `Stopped` in the main thread.

    After that SIGTERM and SIGHUP are ignored, since a tool that ends a whole group of processes sends them
    more than once; another SIGINT (Ctrl-C) interrupts the tidying up. The earlier handlers are restored at
    the end. An error during the tidying up has not ended the program, so `Stopped` is raised in its place.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for each in _SIGNALS:
            signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_IGN)
        received.append(number)
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    except Exception as error:
        if received:
            raise Stopped(received[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_status(program: Callable[[ExitStack], object]) -> int:
    """Run a driver to its end and return its exit status: 0; 1 after an error of ours; 128 plus the number of
    the signal that has ended it.

    `program` gets an exit stack, which is closed however the program ends, and Spark ends with it. An error
    is printed as one message to the error stream, with the progress of commits if there were any.
    """
    try:
        with stopped_by_signals(), java_watched(), ExitStack() as stack:
            stack.callback(end_session)
            program(stack)
    except TimelyError as error:
        _print(f"[bold red]{type(error).__name__}[/]: ", str(error), error)
        return 1
    except Stopped as stopped:
        _print("", f"{stopped}.", stopped)
        return stopped.exit_code
    except KeyboardInterrupt as interrupt:
        _print("", "stopped at once.", interrupt)
        return 128 + signal.SIGINT
    return 0


def _print(who: str, what: str, error: BaseException) -> None:
    console = Console(stderr=True)
    console.print(who, end="")
    notes = [note for note in getattr(error, "__notes__", []) if " committed in " in note]
    for line in (what, *(note for note in notes or ["Nothing was written."] if note not in what)):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
