"""What is shown of the way that an error has come: the user's lines, and of ours the call that he made.

An error that a query is refused with says what is wrong and names the user's line. The dozen frames of ours
between his call and the place that found out say nothing to him, and push both out of sight. Only what says
on purpose that something is wrong (`TimelyError`) is told so, and an interrupt (Ctrl-C) of a call that waits,
which says in a dozen frames by what means it did: ten lines each in a notebook. If a function of the user ran
meanwhile its frames are shown. A bug of ours (`InternalError`), and all else that is raised, keeps all
frames.
"""

from __future__ import annotations

from types import FrameType, TracebackType

from ..errors import InternalError, TimelyError
from .call_site import is_users

__all__ = ["told_shortly", "users_frames"]


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
