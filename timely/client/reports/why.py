"""Why is an epoch not complete? What all workers say, as one report.

A worker tells what it has itself, and its view of all workers. What is in a view, and what no worker has that
has answered, is on its way, or with a worker that has not answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from ...errors import WaitTimeoutError
from ...failure import add_note
from ...limits import REASONS_SECONDS_MAX, REPORT_CHARS_MAX
from ...operators.capture import FOREVER
from ...wire.reasons import KINDS, Reason, shown_seconds
from ...wire.requests import Reply, Value, Why

__all__ = ["EpochReport", "at_work", "explain", "report_of", "silent_workers", "together"]

_SHOWN_MAX: Final = 6
"""Lines of a report; of its short form three."""
_SHORT_MAX: Final = 3
_OF_WORKERS: Final = ("silent", "call")
_Place: TypeAlias = tuple[int, tuple[int, ...]]
_SINCE: Final = ("capability", "notification", "rows", "message", "loop", "entering")
"""Kinds whose age is that of their epoch, since it was sealed."""


class _Answering(Protocol):
    """Workers that say what holds an epoch; see `Workers`."""

    def reasons(self, request: Why) -> list[Reply | str]:
        """Return what each worker says, or why it says nothing."""
        ...


@dataclass(frozen=True)
class EpochReport:
    """What holds an epoch, from `Flow.why`; `print` shows it in a few lines, the likeliest cause first.

    `reasons` are all that workers have told. Those with `is_first` wait for nothing else; the others may only
    wait for them. `complete_before` is the first epoch that is not complete on all workers that have
    answered; -1: none has said it. `is_cut` is True if there is more than workers tell.
    """

    dataflow: str
    epoch: int
    is_complete: bool
    complete_before: int
    reasons: tuple[Reason, ...] = ()
    is_cut: bool = False

    def __str__(self) -> str:
        return self._text(_SHOWN_MAX)

    def short(self) -> str:
        """Return the report for the end of an error: three reasons at most."""
        text = self._text(_SHORT_MAX)
        return text if len(text) <= REPORT_CHARS_MAX else f"{text[: REPORT_CHARS_MAX - 2]} …"

    @property
    def cause(self) -> Reason | None:
        """The likeliest cause; None if nothing is known to hold the epoch."""
        return self.reasons[0] if self.reasons else None

    def _text(self, shown_max: int) -> str:
        if self.is_complete:
            return f"{self._what()} is complete"
        lines = [f"{self._what()} is not complete{self._so_far()}"]
        first = [reason for reason in self.reasons if reason.is_first] or list(self.reasons)
        lines += [f"  {reason}" for reason in first[:shown_max]]
        more, others = len(first) - shown_max, len(self.reasons) - len(first)
        if more > 0:
            lines.append(f"  and {more} more{' at least' * self.is_cut}")
        if others and not more > 0:
            lines.append(
                f"  and {others} more that may only wait for {'this' if len(first) == 1 else 'these'}"
            )
        if not self.reasons:
            lines.append("  nothing is known to hold it: ask again, the workers may just have done it")
        return "\n".join(lines)

    def _what(self) -> str:
        name = f" of {self.dataflow!r}" if self.dataflow else ""
        return f"the end{name}" if self.epoch >= FOREVER - 1 else f"epoch {self.epoch}{name}"

    def _so_far(self) -> str:
        others = " with the other workers" * any(reason.kind == "silent" for reason in self.reasons)
        so_far = f"complete{others} are the epochs before {self.complete_before}"
        so_far = so_far if self.complete_before > 0 else ""
        sealed = next((one.seconds for one in self.reasons if one.kind in _SINCE and one.seconds >= 0), -1.0)
        ago = f"it was sealed {shown_seconds(sealed)} ago" if sealed >= 0 else ""
        text = "; ".join(part for part in (ago, so_far) if part)
        return f" ({text})" if text else ""


def explain(error: BaseException, workers: _Answering, dataflow: int, name: str, epoch: int) -> None:
    """Let an error about a wait that has taken too long end with what holds the epoch; if `dataflow` is below
    0, with what the workers are at. It says so if that cannot be had within about a second.
    """
    if not isinstance(error, WaitTimeoutError):
        return
    try:
        answers = workers.reasons(Why(dataflow, epoch))
        if dataflow < 0:
            lines = at_work(answers)[:_SHORT_MAX]
            text = "\n".join(("the workers that do not answer:", *lines))
            text = text if lines else "all workers answer by now"
        else:
            text = f"why: {report_of(name, epoch, answers).short()}"
    except Exception as second:  # the first error is what the caller has to hear of
        text = f"why: the workers could not be asked what holds it ({type(second).__name__}: {second})"
    add_note(error, text[:REPORT_CHARS_MAX])


def at_work(answers: Sequence[Reply | str]) -> list[str]:
    """Return a line for each worker that is in a call, or does not answer."""
    reasons = [reason for reason in report_of("", -1, answers).reasons if reason.kind in _OF_WORKERS]
    return [f"  {reason}" for reason in reasons]


def report_of(dataflow: str, epoch: int, answers: Sequence[Reply | str]) -> EpochReport:
    """Return the report about an epoch from the answers of all workers, in order. In place of an answer: why
    a worker has given none.
    """
    heard = silent_workers(answers)
    complete = [answer.integer("complete") for answer in answers if isinstance(answer, Reply)]
    befores = [before for before in complete if before >= 0]
    for answer in answers:
        if isinstance(answer, Reply):
            read = (Reason.read(value) for value in answer.items("reasons"))
            heard += [reason for reason in read if reason is not None]
    is_complete = epoch >= 0 and bool(befores) and len(befores) == len(answers) and min(befores) > epoch
    if is_complete:
        return EpochReport(dataflow, epoch, True, min(befores))
    at_work = {(reason.dataflow, reason.stage) for reason in heard if reason.kind == "call"}
    on_the_way = _on_the_way(answers, is_missing=len(befores) < len(answers))
    heard += (reason for reason in on_the_way if (reason.dataflow, reason.stage) not in at_work)
    reasons = together(heard, answers)
    is_cut = any(isinstance(answer, Reply) and bool(answer.values.get("is_cut")) for answer in answers)
    return EpochReport(dataflow, epoch, False, min(befores, default=-1), tuple(reasons), is_cut)


def silent_workers(answers: Sequence[Reply | str]) -> list[Reason]:
    """Return a reason for each worker that has given no answer."""
    return [
        Reason("silent", detail=answer, seconds=REASONS_SECONDS_MAX, workers=(worker,))
        for worker, answer in enumerate(answers)
        if isinstance(answer, str)
    ]


def together(heard: Sequence[Reason], answers: Sequence[Reply | str]) -> list[Reason]:
    """Return what several workers have told, the same as one reason, the likeliest first."""
    return _ranked(_merged(_sealed(heard, answers)))


def _on_the_way(answers: Sequence[Reply | str], is_missing: bool) -> Iterator[Reason]:
    """Yield what is in a view, and with no worker that has answered. `is_missing`: some worker may have more
    than it tells; otherwise it is only late news that a vertex seems to hold something.
    """
    reasons: dict[_Place, Reason] = {}
    told: dict[_Place, int] = {}
    here: Counter[_Place] = Counter()
    heard = [answer for answer in answers if isinstance(answer, Reply)]
    # A worker in a call has not heard since that began what the others have done.
    is_fresh = [not any(_is_call(value) for value in answer.items("reasons")) for answer in heard]
    for answer, counts in zip(heard, is_fresh, strict=True):
        for entry in answer.items("view"):
            match entry:
                case [values, int(events), int(own), int(untold)]:
                    if (reason := Reason.read(values)) is None:
                        continue
                    key = reason.number, reason.time
                    reasons[key] = reason
                    here[key] += own - untold
                    if counts or not any(is_fresh):
                        told[key] = max(told.get(key, events - untold), events - untold)
    for key, reason in reasons.items():
        rest = told.get(key, 0) - here[key]
        if rest > 0 and (reason.kind == "message" or is_missing):
            yield replace(reason, count=1 if reason.kind == "loop" else rest, workers=())


def _is_call(value: Value) -> bool:
    match value:
        case {"kind": "call"}:
            return True
        case _:
            return False


def _sealed(heard: Sequence[Reason], answers: Sequence[Reply | str]) -> Iterator[Reason]:
    """Yield the reasons without open inputs of workers that have not heard yet that worker 0 has sealed the
    epoch.
    """
    decides = {
        (reason.dataflow, reason.stage) for reason in heard if reason.kind == "input" and 0 in reason.workers
    }
    has_decided = isinstance(answers[0], Reply) and answers[0].integer("complete") >= 0
    for reason in heard:
        if reason.kind == "input" and has_decided and (reason.dataflow, reason.stage) not in decides:
            yield replace(reason, kind="entering", detail="it is sealed, and this worker has not heard of it")
        else:
            yield reason


def _merged(heard: Iterator[Reason]) -> list[Reason]:
    """Return the reasons with those as one that several workers have told of the same thing."""
    merged: dict[object, Reason] = {}
    for reason in heard:
        who = reason.detail if reason.kind == "reader" else ""
        key = reason.kind, reason.dataflow, reason.stage, reason.number, reason.time, reason.where, who
        if reason.kind in _OF_WORKERS:
            merged[reason.kind, reason.workers] = reason
            continue
        other = merged.get(key)
        if other is None:
            merged[key] = reason
            continue
        workers = tuple(sorted({*other.workers, *reason.workers}))
        is_one = reason.kind in ("input", "import", "loop") or not reason.workers
        merged[key] = replace(
            other,
            count=max(other.count, reason.count) if is_one else other.count + reason.count,
            seconds=max(other.seconds, reason.seconds),
            is_first=other.is_first and reason.is_first,
            workers=workers,
            rows=other.rows + reason.rows if min(other.rows, reason.rows) >= 0 else -1,
            bytes=other.bytes + reason.bytes if min(other.bytes, reason.bytes) >= 0 else -1,
        )
    return list(merged.values())


def _ranked(reasons: list[Reason]) -> list[Reason]:
    return sorted(reasons, key=lambda reason: (not reason.is_first, KINDS.index(reason.kind), reason.time))
