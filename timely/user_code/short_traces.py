"""What is shown of the way that an error has come: the user's lines, and none of ours.

An error that a query is refused with says what is wrong and names the user's line. The dozen frames of ours
between his call and the place that found out say nothing to him, and push both out of sight. Only what says
on purpose that something is wrong (`TimelyError`) is told so, and an interrupt (Ctrl-C) of a call that waits,
which says in a dozen frames by what means it did: ten lines each in a notebook. If a function of the user ran
meanwhile its frames are shown. A bug of ours (`InternalError`), and all else that is raised, keeps all
frames.

In a script most is asked within `install`, which is told so; in a notebook a query is written cell by cell,
and each call is one that the user has made. So all calls of a collection, of a flow, its inputs and its
outputs are: `in_short`; and what answers to a name that none of them has: `short_lookup`. A call that goes
well pays 0.1 µs for it, since nothing is done before it fails.
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
"""From an object, the name of its method, what was named, and what Python says, to what is raised."""

_ANSWER: Final = "__naiad_answers_misfits__"


class shortened_traces:
    """`with shortened_traces():` in a call that users make: errors leave it without frames of ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TimelyError | KeyboardInterrupt):
            _shorten(error)


def short(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, a call that users make, told shortly."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except (TimelyError, KeyboardInterrupt) as error:
            _shorten(error)
            raise
        except TypeError as error:
            # Arguments that do not fit: it arose here, where the user's call is meant.
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                error.__traceback__ = None
                answer: Misfit | None = getattr(function, _ANSWER, None)
                if answer is not None and args:  # none: the method of a class, called without an object
                    with shortened_traces():
                        raise answer(args[0], function.__name__, named, error) from None
            raise

    return called


def answers_misfits(answer: Misfit) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of methods of a class that is `in_short`: arguments that do not fit are answered by the
    error that `answer` makes of the object, the method's name, the named arguments and Python's own error.

    Looked at when they do not fit, and not before: a check of each call would cost a small one as much as
    what it does.
    """

    def marked(function: Callable[P, R]) -> Callable[P, R]:
        setattr(function, _ANSWER, answer)
        return function

    return marked


def short_lookup(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, a `__getattr__` that says what to write for a name that there is not, without its frame.

    A frame is added as an error leaves it, so that the function itself cannot cut its own: who raises anew
    what came from below adds none. An error that arose deeper is another one, and keeps its way.
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
    """A decorator of classes: all public methods that it defines are calls that users make."""
    for name, function in list(vars(kind).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(kind, name, short(function))
    return kind


def _shorten(error: BaseException) -> None:
    """Leave the user's lines on the way of `error`, and of what has led to it, which would be shown above it,
    only what that does not say itself: the same error where it arose, on a worker in this process, or in a
    library below ours, has frames of ours and the same text.
    """
    if isinstance(error, InternalError):
        return
    error.__traceback__ = users_frames(error.__traceback__)
    told, seen = text_of(error), {id(error)}
    while (cause := error.__cause__) is not None and not isinstance(cause, InternalError):
        if id(cause) in seen:  # `raise error from error` makes a circle
            return
        seen.add(id(cause))
        lines = users_frames(cause.__traceback__)
        if (isinstance(cause, TimelyError) or lines is None) and (text_of(cause) or "\0") in told:
            error.__cause__ = cause.__cause__
            continue
        if lines is not None:
            cause.__traceback__ = lines
        error = cause


def users_frames(trace: TracebackType | None, besides: Collection[str] = ()) -> TracebackType | None:
    """The same way without frames of our packages, of ZeroMQ, which these call, and of Python's own modules,
    nor of the packages `besides`; None if all are such.
    """
    steps: list[TracebackType] = []
    while trace is not None:
        if is_users(trace.tb_frame) and _package_of(trace.tb_frame) not in ("zmq", *besides):
            steps.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for step in reversed(steps):
        found = _behind(step, found)
    return found


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _behind(step: TracebackType, further: TracebackType | None) -> TracebackType:
    return TracebackType(further, step.tb_frame, step.tb_lasti, step.tb_lineno)
