"""An action of a worker in words, with the records and times that it is about.

worker 0: 'balances' gets [('ada', 500)] at (0,) by input 0
worker 0: 'balances' is notified of (0,) and sends [('ada', 500)] at (0,) to the output 'answers'
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.times.timestamp import Timestamp

from ..failure import text_of
from ..running.checking.actions import Action, Activate, Idle, Notify, Publish, Receive, Resume, Ring, Tell
from ..running.core import Worker
from ..running.instance import Instance
from ..running.progress_messages import DataHeader, ProgressHeader, read_header
from ..running.stages.vertex_runner import VertexRunner
from ..user_code.call_site import is_users
from ..wire.batch import Batch, Records, decode

__all__ = ["Lengths", "action_in_words", "error_in_words", "lengths_of", "sendings"]

Lengths = list[int]
"""How many messages wait at each stage of a worker."""

_SHOWN_CHARS_MAX = 160


def action_in_words(worker: Worker, action: Action, frames: Sequence[memoryview] = ()) -> str:
    """Return what a worker is about to do; `frames`: the message that it receives."""
    if isinstance(action, Receive):
        return f"receives {_message(worker.instance(), action.peer, frames)} from worker {action.peer}"
    instance = worker.instances[action.dataflow]
    match action:
        case Activate():
            return _turn(instance.runners[action.stage])
        case Publish():
            return "tells the others what is over and what is new"
        case Notify():
            return "looks which notifications are due"
        case Resume():
            return f"lets {instance.runners[action.stage].name!r} have the turn that it asked for"
        case Ring():
            return f"lets an alarm of {instance.runners[action.stage].name!r} be due"
        case Tell():
            return "tells the others what it has held back"
        case Idle():
            return "has nothing to do"


def _turn(runner: VertexRunner) -> str:
    if runner.source is not None:
        return f"lets rows of {runner.name} enter"
    unpack = runner.code.unpack
    does = [
        f"gets {_shown(batch)} at {unpack(word)}{f' by input {port}' if len(runner.ports) > 1 else ''}"
        for port, _, word, batch in runner.inbox
    ]
    if runner.due:
        does.append(f"is notified of {', '.join(str(unpack(word)) for word in runner.due)}")
    if runner.may_resume:
        does.append("is resumed")
    if runner.wants_activation:
        does.append("is activated")
    return f"{runner.name!r} {', '.join(does) or 'has a turn'}"


def lengths_of(instance: Instance) -> Lengths:
    """Return how many messages wait at each stage."""
    return [len(runner.inbox) for runner in instance.runners]


def sendings(
    instance: Instance, stage: int, before: Lengths, sent: Sequence[tuple[int, list[memoryview]]]
) -> str:
    """Return what the vertex of a stage has sent in a turn; `before`: the messages that waited before it,
    `sent`: those to other workers.
    """
    parts: list[str] = []
    for runner, length in zip(instance.runners, before, strict=True):
        for _, _, word, batch in runner.inbox[0 if runner.stage == stage else length :]:
            parts.append(f"{_shown(batch)} at {runner.code.unpack(word)} to {runner.name!r}")
    for peer, frames in sent:
        header = read_header(frames[0], instance.worker)
        if isinstance(header, DataHeader):
            parts.append(f"{_message(instance, instance.worker, frames)} on worker {peer}")
    return f" and sends {', '.join(parts)}" if parts else ""


def error_in_words(error: BaseException) -> str:
    """Return what was raised, and the line of the user where."""
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if is_users(trace.tb_frame):
            line = f"\n  at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__}: {text_of(error)}{line}"


def _message(instance: Instance, source: int, frames: Sequence[memoryview]) -> str:
    header = read_header(frames[0], source) if frames else None
    if isinstance(header, ProgressHeader):
        return "news of progress"
    if not isinstance(header, DataHeader):
        return "a message"
    connector = instance.connectors[header.connector]
    target = instance.runners[connector.target.stage]
    batch = decode(header.batch_kind, frames[1:], source)
    return f"{_shown(batch)} at {_time_of(target, header.word)} for {target.name!r}"


def _time_of(target: VertexRunner, word: int) -> Timestamp:
    return target.code.unpack(word)


def _shown(batch: Batch) -> str:
    text = repr(batch.records) if isinstance(batch, Records) else repr(batch)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
