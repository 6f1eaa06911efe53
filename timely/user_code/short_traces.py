"""Shorten the traceback of an error to the user's lines, without our frames.

The error of a refused query says what is wrong and names the user's line. The dozen frames of ours between
the user's call and the place of the error tell the user nothing, and push both out of sight. Only errors that
we raise on purpose (`TimelyError`) are shortened, and an interrupt (Ctrl-C) of a call that waits, whose
frames show only how it waited: ten lines each in a notebook. If a function of the user ran meanwhile, its
frames are shown. A bug of ours (`InternalError`), and every other error, keeps all frames.

In a script most errors come up within `install`, which shortens them; in a notebook a query is written cell
by cell, and the user makes each call. So `in_short` covers all calls of a collection, of a flow, its inputs
and its outputs, and `short_lookup` the lookup of names that none of them has. A call that succeeds pays 0.1
µs, since nothing is done before it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import FrameType, FunctionType, TracebackType
from typing import Final, ParamSpec, TypeVar

from ..errors import InternalError, TimelyError
from ..failure import text_of
from .call_site import is_users

__all__ = [
    "Misfit",
    "answers_misfits",
    "in_short",
    "short",
    "short_lookup",
    "shortened_traces",
    "users_frames",
]

K = TypeVar("K", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

Misfit = Callable[[object, str, Mapping[str, object], TypeError], TimelyError]
"""Returns the error to raise for an object, the name of its method, the named arguments, and Python's
error.
"""

_ANSWER: Final = "__naiad_answers_misfits__"


class shortened_traces:
    """`with shortened_traces():` in a call that users make removes our frames from its errors."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TimelyError | KeyboardInterrupt):
            _shorten(error)


def short(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function`, a call that users make, with shortened tracebacks."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except (TimelyError, KeyboardInterrupt) as error:
            _shorten(error)
            raise
        except TypeError as error:
            # If the error arose in this frame, the arguments do not fit: show the user's call as its origin.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                error.__traceback__ = None
                answer: Misfit | None = getattr(function, _ANSWER, None)
                if answer is not None and args:  # without: called on the class, without an object
                    with shortened_traces():
                        raise answer(args[0], function.__name__, named, error) from None
            raise

    return called


def answers_misfits(answer: Misfit) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of methods of a class that is `in_short`: for arguments that do not fit, raise the
    error that `answer` makes of the object, the method's name, the named arguments and Python's own error.

    Nothing is checked before a call fails: a check of each call would cost as much as a small call itself.
    """

    def marked(function: Callable[P, R]) -> Callable[P, R]:
        setattr(function, _ANSWER, answer)
        return function

    return marked


def short_lookup(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function`, a `__getattr__` whose error says what to write for a missing name, without its
    frame.

    Python adds a frame when an error leaves it, so the function cannot remove its own frame; this wrapper
    raises the error again, which adds none. An error that arose deeper is another one, and keeps its
    traceback.
    """

    @wraps(function)
    def looked_up(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except AttributeError as error:
            inner = None if error.__traceback__ is None else error.__traceback__.tb_next
            if inner is not None and inner.tb_next is None:
                error.__traceback__ = None
            raise

    return looked_up


def in_short(kind: K) -> K:
    """Decorate a class: shorten the tracebacks of all public methods that it defines."""
    for name, function in list(vars(kind).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(kind, name, short(function))
    return kind


def _shorten(error: BaseException) -> None:
    """Remove our frames from `error`, and from its causes that have lines of the user; drop causes whose text
    `error` repeats, if they are errors of ours or have no lines of the user.

    Python shows causes above the error. The same error where it arose, on a worker in this process, or in a
    library below ours, has frames of ours and the same text.
    """
    if isinstance(error, InternalError):
        return
    error.__traceback__ = users_frames(error.__traceback__)
    text, seen = text_of(error), {id(error)}
    while (cause := error.__cause__) is not None and not isinstance(cause, InternalError):
        if id(cause) in seen:  # `raise error from error` makes a circle
            return
        seen.add(id(cause))
        lines = users_frames(cause.__traceback__)
        if (isinstance(cause, TimelyError) or lines is None) and (text_of(cause) or "\0") in text:
            error.__cause__ = cause.__cause__
            continue
        if lines is not None:
            cause.__traceback__ = lines
        error = cause


def users_frames(trace: TracebackType | None, besides: Collection[str] = ()) -> TracebackType | None:
    """Return the traceback without frames of our packages, of ZeroMQ (which they call), of Python's own
    modules, and of the packages `besides`; None if no frame is left.
    """
    steps: list[TracebackType] = []
    while trace is not None:
        if is_users(trace.tb_frame) and _package_of(trace.tb_frame) not in ("zmq", *besides):
            steps.append(trace)
        trace = trace.tb_next
    shortened: TracebackType | None = None
    for step in reversed(steps):
        shortened = _behind(step, shortened)
    return shortened


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _behind(step: TracebackType, further: TracebackType | None) -> TracebackType:
    return TracebackType(further, step.tb_frame, step.tb_lasti, step.tb_lineno)
