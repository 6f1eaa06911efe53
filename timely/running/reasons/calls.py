"""What is a worker at, in the middle of a call? Any thread may ask.

The frames of the worker's thread say it: whether it is in a step at all, whose turn it is, and which line of
the user's code runs. Python keeps frames anyway, so that nobody pays for this until somebody asks.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from types import CodeType, FrameType
from typing import Final

from ...user_code.call_site import is_users
from ...wire.reasons import Reason
from ..core import Worker
from ..stages.compiled_loop import CompiledLoopRunner
from ..stages.vertex_runner import VertexRunner

__all__ = ["call_of"]

_STEPS: Final = frozenset({Worker.step.__code__, Worker.take_in.__code__, Worker._in_each.__code__})
_TURNS: Final = frozenset({VertexRunner.activate.__code__, CompiledLoopRunner.activate.__code__})


def call_of(worker: Worker, seconds: float = -1.0, entries: Collection[CodeType] = ()) -> Reason | None:
    """Return the call that a worker is in, since so many seconds; None if it is not at work.

    `entries`: functions, beside those of the worker, in which it works, such as those that answer requests.
    """
    innermost = sys._current_frames().get(worker.acting.thread)
    users: FrameType | None = None
    own: FrameType | None = None
    runner: VertexRunner | CompiledLoopRunner | None = None
    for frame in _outwards(innermost):
        own = own or frame
        if users is None and is_users(frame):
            users = frame
        if frame.f_code in _TURNS:
            turn: object = frame.f_locals.get("self")
            if runner is None and isinstance(turn, VertexRunner | CompiledLoopRunner):
                runner = turn
        elif frame.f_code in entries or (frame.f_code in _STEPS and frame.f_locals.get("self") is worker):
            return _described(worker, seconds, users, own, runner)
    return None


def _described(
    worker: Worker,
    seconds: float,
    users: FrameType | None,
    own: FrameType,
    runner: VertexRunner | CompiledLoopRunner | None,
) -> Reason:
    shown = own if users is None else users
    where = "" if users is None else f"{users.f_code.co_filename}:{users.f_lineno}"
    detail = f"in {shown.f_code.co_qualname}"
    if runner is None:
        return Reason("call", where=where, seconds=seconds, detail=detail, workers=(worker.index,))
    dataflow = next(
        (each.frozen.name for each in worker.instances.values() if runner in each.turns.actors), ""
    )
    stage, number, site = runner.name, runner.stage, runner.site
    if isinstance(runner, CompiledLoopRunner) and runner.loop.at is not None:
        number = runner.loop.at
    return Reason(
        "call", dataflow, stage, number, site, (), 1, where, seconds, detail, workers=(worker.index,)
    )


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
