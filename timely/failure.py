"""Which error ends what? The rule of the house, in one place; `docs/failures.md` says the same to users.

    refused     a worker has found what is wrong before anything has changed (a bad row, an unknown column, a
                closed epoch, a dataflow that cannot be built): the call raises, nothing is different, and it
                may be repeated. A `TimelyError` that comes out of `Server.handle`.
    no answer   an operator has failed on a row. The row is a failure, a row of a collection beside the
                answers, and nothing is raised while the dataflow works. Outputs that the operator leads to
                have no answer while failures, accumulated up to an epoch, are there: whoever reads them then
                gets the error (`timely/operators/failures.py`). All other outputs and dataflows go on.
    ended       something else failed while a dataflow worked, so that its state may be wrong: the dataflow
                ends, on every worker and for every client, with that error; others go on. Everything that
                comes out of a step of a dataflow (`Worker.step`), or of an order of worker 0 (`orders.py`).
    broken      a worker is lost, or says what no worker may say: the cluster ends. Everything else.

What a user hands in (a builder, a vertex, a route, a codec, a batch class) never breaks the cluster, whatever
it raises or returns: before its dataflow runs that is refused, afterwards it ends that dataflow and no other.

Nothing of a dataflow that has ended can be read. What was read before stays right, since only complete epochs
are ever handed out.
"""

from __future__ import annotations

import traceback
from contextlib import suppress
from types import TracebackType

from .errors import InternalError, PeerError, TimelyError, VertexError, class_names, revive
from .own_files import OWN_FOLDERS

__all__ = [
    "add_note",
    "again",
    "as_refused",
    "as_told",
    "bear_interrupts",
    "is_interrupt",
    "is_raised_by_us",
    "story_of",
    "text_of",
]


def as_told(error: BaseException, where: str) -> TimelyError:
    """`error` in a form that clients and other workers can be told: one of ours, with what, where, and the
    user's part of the traceback.

    `where` stands in for the notes that tell which vertex ran; with notes it is the user's code that failed.
    So it is if a `PeerError` comes here, which clients would take for the loss of one of our workers.
    """
    if isinstance(error, TimelyError) and not isinstance(error, PeerError):
        told = again(error)
    else:
        notes = _notes_of(error)
        made = VertexError if notes else InternalError
        place = notes[-1] if notes else where
        told = made(f"{type(error).__name__}: {text_of(error)}\n  {place}\n{_users_part(error)}")
    told.__cause__ = error
    _let_go(error)
    return told


def as_refused(error: BaseException, what: str) -> TimelyError:
    """`error` in a form that a client can be told: it left code of a user, or arose from what that code gave,
    before anything had changed. `what` says what failed, as in "the dataflow 'm:f' could not be built".

    A `PeerError` of a user's code becomes a `VertexError`: clients would take it for the loss of a worker.
    """
    if isinstance(error, TimelyError) and not isinstance(error, PeerError):
        return error
    told = VertexError(f"{what}: {type(error).__name__}: {text_of(error)}\n{_users_part(error)}")
    told.__cause__ = error
    _let_go(error)
    return told


def again(error: TimelyError) -> TimelyError:
    """An error of the same class and text, to be raised once more: one that is raised twice collects
    tracebacks.
    """
    fresh = revive(class_names(error), story_of(error))
    fresh.ends_dataflow = error.ends_dataflow
    fresh.__cause__ = error.__cause__
    return fresh


def story_of(error: BaseException) -> str:
    """The message of an error with its notes, which is how it travels."""
    return "\n".join([text_of(error), *_notes_of(error)])


def text_of(error: object) -> str:
    """The message of an error, or what another object says of itself, in a form that can be sent: not too
    long, and UTF-8. A user's object may fail to tell even that.
    """
    try:
        return _sendable(str(error))
    except BaseException as second:
        if is_interrupt(second):
            raise
        return f"(its text cannot be told: __str__ raised {type(second).__name__})"


def add_note(error: BaseException, note: str) -> None:
    """Note where `error` arose, if its class lets us."""
    with suppress(Exception):
        error.add_note(note)


def is_interrupt(error: BaseException) -> bool:
    """Whether `error` ends the program at the wish of somebody at the keyboard.

    A worker process ignores Ctrl-C (`bear_interrupts`), so a `KeyboardInterrupt` there is an error of the
    user's code like any other. Elsewhere it is an interrupt, whoever raises it and whatever the program has
    set for the signal: a program that was started in the background ignores SIGINT, and behaves the same.
    """
    return not _Process.bears_interrupts and isinstance(error, KeyboardInterrupt)


def bear_interrupts() -> None:
    """Take no `KeyboardInterrupt` of this process for an interrupt from now on; worker processes call it."""
    _Process.bears_interrupts = True


def is_raised_by_us(error: BaseException) -> bool:
    """Whether a line of ours raised `error`, and not one of a user or of another library."""
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
    """The traceback from the first frame on that is none of ours; its last frame, if all are."""
    trace = error.__traceback__
    while (
        trace is not None
        and trace.tb_next is not None
        and trace.tb_frame.f_code.co_filename.startswith(OWN_FOLDERS)
    ):
        trace = trace.tb_next
    return trace


def _let_go(error: BaseException) -> None:
    """Keep of an error that is remembered for ever only what is shown: through the variables of its frames it
    would hold all that the dataflow had in memory.
    """
    chain: list[BaseException] = []
    ahead: list[BaseException | None] = [error]
    while ahead:
        one = ahead.pop()
        if one is not None and not any(one is known for known in chain):
            chain.append(one)
            ahead += [one.__cause__, one.__context__]
    for one in chain:
        trace = _users_trace(one)
        traceback.clear_frames(one.__traceback__)
        BaseException.with_traceback(one, trace)  # whatever a user's class does when it is assigned to


class _Process:
    """What holds for the whole process."""

    bears_interrupts = False


_FRAMES_SHOWN_MAX = 12
_TEXT_CHARS_MAX = 20_000
