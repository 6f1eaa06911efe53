"""What is shown of the way that an error has come: the user's lines, and of ours the call that he made.

An error that a query is refused with says what is wrong and names the user's line. The dozen frames of ours
between his call and the place that found out say nothing to him, and push both out of sight. Only what says
on purpose that something is wrong (`TimelyError`) is told so, and an interrupt (Ctrl-C) of a call that waits,
which says in a dozen frames by what means it did: ten lines each in a notebook. If a function of the user ran
meanwhile its frames are shown. A bug of ours (`InternalError`), and all else that is raised, keeps all
frames.

In a script most is asked within `install`, which is told so; in a notebook a query is written cell by cell,
and each call is one that the user has made. So all calls of a collection are: `in_short`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FrameType, FunctionType, TracebackType
from typing import ParamSpec, TypeVar

from ..errors import InternalError, TimelyError
from .call_site import is_users

__all__ = ["in_short", "short", "told_shortly", "users_frames"]

K = TypeVar("K", bound=type)
P = ParamSpec("P")
R = TypeVar("R")


class told_shortly:
    """`with told_shortly():` in a call that users make: errors leave it without frames of ours beneath it."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or trace is None:
            return
        if isinstance(error, TimelyError | KeyboardInterrupt) and not isinstance(error, InternalError):
            # The first frame is that of the `with`: the call that the user made.
            error.__traceback__ = _behind(trace, users_frames(trace.tb_next))
            _shorten_cause(error)


def short(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, a call that users make, told shortly."""

    @wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        with told_shortly():
            return function(*args, **named)

    return called


def in_short(kind: K) -> K:
    """A decorator of classes: all public methods that it defines are calls that users make."""
    for name, function in list(vars(kind).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(kind, name, short(function))
    return kind


def _shorten_cause(error: BaseException) -> None:
    """Of what has led to `error`, which would be shown above it, only what that does not say itself: the same
    error where it arose, on a worker in this process, has frames of ours and the same text.
    """
    cause = error.__cause__
    if isinstance(cause, TimelyError) and not isinstance(cause, InternalError) and str(cause) in str(error):
        error.__cause__ = cause.__cause__
        error.__suppress_context__ = True
    elif cause is not None and (lines := users_frames(cause.__traceback__)) is not None:
        cause.__traceback__ = lines


def users_frames(trace: TracebackType | None) -> TracebackType | None:
    """The same way without frames of our packages, of ZeroMQ, which these call, and of Python's own modules;
    None if all are such.
    """
    steps: list[TracebackType] = []
    while trace is not None:
        if is_users(trace.tb_frame) and not _is_of_zeromq(trace.tb_frame):
            steps.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for step in reversed(steps):
        found = _behind(step, found)
    return found


def _is_of_zeromq(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "zmq"


def _behind(step: TracebackType, further: TracebackType | None) -> TracebackType:
    return TracebackType(further, step.tb_frame, step.tb_lasti, step.tb_lineno)
