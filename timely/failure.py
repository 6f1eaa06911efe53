"""Which error ends what? The rule for the whole runtime; `docs/failures.md` describes it for users.

    refused     a worker has detected the error before anything has changed (a bad row, an unknown column, a
                closed epoch, a dataflow that cannot be built): the call raises, has no effect, and may be
                repeated. Every `TimelyError` that leaves `Server.handle`.
    no answer   an operator has failed on a row. The row becomes a failure, a row of a collection beside the
                answers, and nothing is raised while the dataflow works. The outputs behind the operator have
                no answer at an epoch while failures, accumulated up to that epoch, are there: reading them
                then raises the error (`timely/operators/failures.py`). All other outputs and dataflows go on.
    ended       something else failed while a dataflow worked, so that its state may be wrong: the dataflow
                ends, on every worker and for every client, with that error; others go on. Every error that
                leaves a step of a dataflow (`Worker.step`), or an order of worker 0 (`orders.py`).
    broken      a worker is lost, or sends a message that no worker may send: the cluster ends. All other
                errors.

A user's object (a builder, a vertex, a route, a codec, a batch class) never breaks the cluster, whatever it
raises or returns: before its dataflow runs the error is refused, afterwards it ends that dataflow and no
other.

Nothing of a dataflow that has ended can be read. Rows read before stay right, since only complete epochs are
ever handed out.
"""

from __future__ import annotations

import traceback
from bisect import bisect_right
from contextlib import suppress
from copy import deepcopy
from types import TracebackType

from .errors import (
    InternalError,
    PeerError,
    TimelyError,
    UninstalledError,
    VertexError,
    class_names,
    revive,
)
from .limits import ENDED_COUNT_MAX
from .own_files import OWN_FOLDERS

__all__ = [
    "EndedDataflows",
    "add_note",
    "as_refused",
    "as_reported",
    "bear_interrupts",
    "fresh_copy",
    "full_text_of",
    "is_interrupt",
    "is_raised_by_us",
    "text_of",
]


class EndedDataflows(dict[int, TimelyError]):
    """The dataflows of a worker that have ended, or were never begun, each with the reason: the last
    ENDED_COUNT_MAX of them. `count` of them there have been.

    Of all before it knows the numbers, as ranges: a cluster that answers a statement of SQL has one dataflow
    more that has ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._ranks: dict[int, tuple[bool, int]] = {}
        """Of each reason: True if a dataflow that it reads has ended, and the worker from which it comes."""
        self._read: dict[int, dict[int, str]] = {}
        """Of those that have ended with one that they read: in words what they read, by its number."""
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        """The ranges of the numbers without reasons, in order; no two of them touch."""

    def __deepcopy__(self, memo: dict[int, object]) -> EndedDataflows:
        copy = EndedDataflows()
        copy.update(deepcopy(dict(self), memo))
        copy.count, copy._ranks, copy._read = self.count, {**self._ranks}, {**self._read}
        copy._firsts, copy._lasts = [*self._firsts], [*self._lasts]
        return copy

    def add(self, number: int, reason: TimelyError, origin: int, read: dict[int, str] | None = None) -> bool:
        """Note why a dataflow has ended; return True unless there is a reason that all workers prefer: an
        error of its own to the end of one that it reads, then that of the first worker. `read`: in words what
        it reads, by number, if one of these has ended.
        """
        rank = read is not None, origin
        if (number in self and rank >= self._ranks[number]) or self.is_long_over(number):
            return False
        self.count += number not in self
        self[number], self._ranks[number] = reason, rank
        self._read.pop(number, None)
        if read is not None:
            self._read[number] = read
        if len(self) > ENDED_COUNT_MAX:
            oldest = next(iter(self))
            self.remove(oldest)
            self._add_to_ranges(oldest)
        return True

    def readers(self, owner: int) -> list[tuple[int, dict[int, str]]]:
        """Return the dataflows that read `owner`, and that have ended with one that they read, each with all
        that it reads.
        """
        return [(number, read) for number, read in self._read.items() if owner in read]

    def remove(self, number: int) -> None:
        """Forget that a dataflow was never begun."""
        self.pop(number, None)
        self._ranks.pop(number, None)
        self._read.pop(number, None)

    def last(self, count: int) -> list[TimelyError]:
        """Return the reasons of the last `count` that have ended, as far as they are known."""
        return [*self.values()][-count:] if count else []

    def is_long_over(self, number: int) -> bool:
        """Return True if a dataflow has ended so long ago that the reason is not known any more."""
        place = bisect_right(self._firsts, number)
        return place > 0 and number <= self._lasts[place - 1]

    def compared(self) -> object:
        """Return all that decides what a worker does."""
        return [*self._firsts], [*self._lasts], sorted(self), sorted(self._ranks.items())

    def __missing__(self, number: int) -> TimelyError:
        if not self.is_long_over(number):
            raise KeyError(number)
        error = UninstalledError(
            f"dataflow {number} has ended; why is not known any more, since over {ENDED_COUNT_MAX:,} "
            "have ended after it"
        )
        error.ends_dataflow = True
        return error

    def _add_to_ranges(self, number: int) -> None:
        place = bisect_right(self._firsts, number)
        self._firsts.insert(place, number)
        self._lasts.insert(place, number)
        for at in (place, place - 1):  # with the range behind it, then with the one before
            if 0 <= at < len(self._firsts) - 1 and self._lasts[at] + 1 == self._firsts[at + 1]:
                self._lasts[at] = self._lasts[at + 1]
                del self._firsts[at + 1], self._lasts[at + 1]


def as_reported(error: BaseException, where: str) -> TimelyError:
    """Return `error` in a form for clients and other workers: as an error of ours, with the user's part of
    the traceback.

    An error of ours other than a `PeerError` keeps its class. Any other becomes a `VertexError` if it has
    notes on the vertex that ran, since then the user's code has failed, and otherwise an `InternalError` at
    `where`. A `PeerError` does not keep its class, since clients would take it for the loss of one of our
    workers.
    """
    if isinstance(error, TimelyError) and not isinstance(error, PeerError):
        report = fresh_copy(error)
    else:
        notes = _notes_of(error)
        class_ = VertexError if notes else InternalError
        origin = notes[-1] if notes else where
        report = class_(f"{type(error).__name__}: {text_of(error)}\n  {origin}\n{_users_part(error)}")
    report.__cause__ = error
    _drop_frames(error)
    return report


def as_refused(error: BaseException, what: str) -> TimelyError:
    """Return `error` in a form for a client: user code raised it, or its result has caused it, before
    anything had changed. `what` says what failed, as in "the dataflow 'm:f' could not be built".

    A `PeerError` of user code becomes a `VertexError`: clients would take it for the loss of a worker.
    """
    if isinstance(error, TimelyError) and not isinstance(error, PeerError):
        return error
    report = VertexError(f"{what}: {type(error).__name__}: {full_text_of(error)}\n{_users_part(error)}")
    report.__cause__ = error
    _drop_frames(error)
    return report


def fresh_copy(error: TimelyError) -> TimelyError:
    """Return a new error of the same class and text, to be raised in place of `error`: an error that is
    raised twice collects the frames of both tracebacks.
    """
    fresh = revive(class_names(error), full_text_of(error))
    fresh.ends_dataflow = error.ends_dataflow
    fresh.__cause__ = error.__cause__
    return fresh


def full_text_of(error: BaseException) -> str:
    """Return the message of an error with its notes: the text that is sent to clients and workers."""
    return "\n".join([text_of(error), *_notes_of(error)])


def text_of(error: object) -> str:
    """Return the text of an error or another object in a form that can be sent: valid UTF-8, and at most
    `_TEXT_CHARS_MAX` characters long. If `__str__` of a user's object raises, return a text that says so.
    """
    try:
        return _sendable(str(error))
    except BaseException as second:
        if is_interrupt(second):
            raise
        return f"(it has no text: __str__ raised {type(second).__name__})"


def add_note(error: BaseException, note: str) -> None:
    """Add a note to `error`, if its class allows that."""
    with suppress(Exception):
        error.add_note(note)


def is_interrupt(error: BaseException) -> bool:
    """Return True if `error` is an interrupt from the keyboard, which ends the program.

    A worker process ignores Ctrl-C (`bear_interrupts`), so a `KeyboardInterrupt` there is an error of the
    user's code like any other. In other processes it is an interrupt, regardless of its origin and of the
    program's handler of the signal: a program that was started in the background ignores SIGINT, and behaves
    the same.
    """
    return not _Process.bears_interrupts and isinstance(error, KeyboardInterrupt)


def bear_interrupts() -> None:
    """Let `is_interrupt` be False for all errors of this process from now on; worker processes call this."""
    _Process.bears_interrupts = True


def is_raised_by_us(error: BaseException) -> bool:
    """Return True if a line of ours raised `error`, and not one of a user or of another library."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is None or step.tb_frame.f_code.co_filename.startswith(OWN_FOLDERS)


def _notes_of(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [_sendable(note) for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def _sendable(text: str) -> str:
    if len(text) > _TEXT_CHARS_MAX:
        text = f"{text[:_TEXT_CHARS_MAX]}… ({len(text):,} characters in all)"
    return text.encode("utf-8", "backslashreplace").decode()


def _users_part(error: BaseException) -> str:
    lines = traceback.format_tb(_users_trace(error), limit=-_FRAMES_SHOWN_MAX)
    return _sendable("".join(lines).rstrip())


def _users_trace(error: BaseException) -> TracebackType | None:
    """Return the traceback from the first frame on that is not ours; its last frame if all are ours."""
    trace = error.__traceback__
    while (
        trace is not None
        and trace.tb_next is not None
        and trace.tb_frame.f_code.co_filename.startswith(OWN_FOLDERS)
    ):
        trace = trace.tb_next
    return trace


def _drop_frames(error: BaseException) -> None:
    """Reduce the tracebacks of `error` and its causes to the shown part, and clear all their frames. The
    error is stored for ever, and the variables of its frames would keep all memory of the dataflow alive.
    """
    chain: list[BaseException] = []
    ahead: list[BaseException | None] = [error]
    while ahead:
        one = ahead.pop()
        if one is not None and not any(one is other for other in chain):
            chain.append(one)
            ahead += [one.__cause__, one.__context__]
    for one in chain:
        trace = _users_trace(one)
        traceback.clear_frames(one.__traceback__)
        BaseException.with_traceback(one, trace)  # not by assignment, which a user's class may override


class _Process:
    """State of the whole process."""

    bears_interrupts = False


_FRAMES_SHOWN_MAX = 12
_TEXT_CHARS_MAX = 20_000
