"""Why is an epoch not complete? One thing that holds it, as a worker finds it and a client shows it.

silent         a worker does not answer
call           a worker has been in one call for a while: of a callback, most often
input          an input is open: nobody has sealed the epoch
import         what a dataflow reads of another one is behind
capability     a vertex holds a time
notification   a vertex waits to be notified of a time
loop           a compiled loop works on an epoch
rows           messages wait in front of a vertex
entering       sealed rows of an input, an import or a constant have not entered yet
message        messages are on their way from a stage to another
elsewhere      a vertex of a worker that has not said so holds a time, or waits to be notified
disk           the work is done, and the rows are not on disk yet
restart        a restarted cluster has not made its answers again
install        the dataflow has not begun
pending        embedded workers have work, and no call of the program lets them do it
reader         a client has not read changes of an output that are complete
fold           a durable cluster writes changes of an output into a base
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from ..limits import REASON_CHARS_MAX
from .requests import Value

__all__ = ["KINDS", "Reason", "shown_seconds"]

KINDS: Final = (
    "silent", "install", "input", "call", "import", "restart", "capability", "loop", "notification", "rows",
    "entering", "elsewhere", "message", "pending", "disk", "reader", "fold",
)  # fmt: skip
"""What may hold an epoch, the likeliest cause first; the last two hold changes that are complete."""
_SHOWN_MAX: Final = 8


@dataclass(frozen=True)
class Reason:
    """One thing that holds an epoch.

    kind       what it is: one of `KINDS`
    dataflow   the name of its dataflow; empty if it concerns a whole worker
    stage      the name of the stage, input or loop
    number     the number of the stage; -1 if it is none
    site       the line of the program that has built the stage, as "file:line"
    time       the time that it holds: epoch and counters of loops; empty if it holds all
    count      how many messages, capabilities or requests there are
    where      the line of the user's code that runs, or that has made the capability
    seconds    for how long, as far as that is known; -1: not known
    detail     what else is known, in words
    is_first   True if nothing else that is outstanding can lead to it
    workers    the workers where it is, as far as they have said so
    rows       that are kept because of it, about; -1: not known
    bytes      of these
    """

    kind: str
    dataflow: str = ""
    stage: str = ""
    number: int = -1
    site: str = ""
    time: tuple[int, ...] = ()
    count: int = 1
    where: str = ""
    seconds: float = -1.0
    detail: str = ""
    is_first: bool = True
    workers: tuple[int, ...] = ()
    rows: int = -1
    bytes: int = -1

    def values(self) -> dict[str, Value]:
        """Return the fields that are not as they are by default, as a reply holds them."""
        values: dict[str, Value] = {}
        for one in fields(self):
            value: object = getattr(self, one.name)
            if value != one.default:
                values[one.name] = _sendable(value)
        return values

    @staticmethod
    def read(value: object) -> Reason | None:
        """Return the reason that a reply holds; None if it is malformed, or of no known kind."""
        if not isinstance(value, Mapping) or value.get("kind") not in KINDS:
            return None
        empty = Reason(str(value["kind"]))
        taken: dict[str, object] = {}
        for one in fields(empty):
            default: object = getattr(empty, one.name)
            field = value.get(one.name, default)
            if isinstance(default, tuple) and isinstance(field, list):
                field = tuple(field)
            if type(field) is not type(default):
                return None
            if isinstance(field, tuple) and not all(type(number) is int for number in field):
                return None
            taken[one.name] = field
        return Reason(**taken)  # type: ignore[arg-type]  # each has the type of its default

    def __str__(self) -> str:
        """Return one line in plain words."""
        return _SENTENCES[self.kind](self)

    @property
    def place(self) -> str:
        """The workers, and where the stage was built, as the end of a line."""
        parts = [_listed(self.workers)] if self.workers else []
        if self.site and self.site != self.where:
            parts.append(f"built at {self.site}")
        return f" ({'; '.join(parts)})" if parts else ""

    @property
    def when(self) -> str:
        """The time, as the epoch alone or with the counters of loops."""
        if len(self.time) == 1:
            return f"epoch {self.time[0]}"
        return f"time {self.time}"

    @property
    def age(self) -> str:
        """For how long; empty if that is not known."""
        return "" if self.seconds < 0 else f" for {shown_seconds(self.seconds)}"


def shown_seconds(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"


def _listed(workers: tuple[int, ...]) -> str:
    numbers = ", ".join(map(str, workers[:_SHOWN_MAX]))
    more = f" and {len(workers) - _SHOWN_MAX} more" if len(workers) > _SHOWN_MAX else ""
    return f"worker{'s' * (len(workers) > 1)} {numbers}{more}"


def _behind(text: str, before: str = ", ") -> str:
    return f"{before}{text}" if text else ""


def _call(reason: Reason) -> str:
    who = _listed(reason.workers)
    at = f" at {reason.where}" if reason.where else ""
    built = f", built at {reason.site}" if reason.site else ""
    turn = f", of {reason.stage!r} in {reason.dataflow!r}{built}" if reason.stage else ""
    return f"{who} is in a call{reason.age}: {reason.detail}{at}{turn}"


def _input(reason: Reason) -> str:
    return (
        f"input {reason.stage!r} of {reason.dataflow!r} is open at {reason.when}: nobody has sealed it"
        f"{_behind(reason.age.strip(), '; open ')}{reason.place}"
    )


def _import(reason: Reason) -> str:
    return (
        f"{reason.dataflow!r} reads {reason.stage}, and is at {reason.when} of it"
        f"{_behind(reason.detail, ': ')}{reason.place}"
    )


def _capability(reason: Reason) -> str:
    where = f", by a capability made at {reason.where}" if reason.where else ""
    return f"{reason.stage!r} holds {reason.when}{where}{reason.place}"


def _notification(reason: Reason) -> str:
    return f"{reason.stage!r} waits to be notified of {reason.when}{_behind(reason.detail)}{reason.place}"


def _rows(reason: Reason) -> str:
    count = f"{reason.count:,} messages wait" if reason.count > 1 else "a message waits"
    return f"{count} in front of {reason.stage!r} at {reason.when}{_behind(reason.detail)}{reason.place}"


def _loop(reason: Reason) -> str:
    return f"the loop {reason.stage!r} works on {reason.when}{_behind(reason.detail, ' and ')}{reason.place}"


def _entering(reason: Reason) -> str:
    what = f"the rows of {reason.stage!r} at {reason.when}"
    return f"{what} have not entered yet{_behind(reason.detail, ': ')}{reason.place}"


def _message(reason: Reason) -> str:
    count = f"{reason.count:,} messages are" if reason.count > 1 else "a message is"
    built = f" ({reason.stage!r} was built at {reason.site})" if reason.site else ""
    return f"{count} on the way at {reason.when}: {reason.detail}{built}"


def _elsewhere(reason: Reason) -> str:
    what = f"{reason.stage!r} holds {reason.when} on another worker, or waits there to be notified of it"
    return f"{what}{reason.place}"


def _reader(reason: Reason) -> str:
    heard = f", and was last heard of {shown_seconds(reason.seconds)} ago" if reason.seconds >= 0 else ""
    size = f"about {reason.rows:,} rows in {reason.bytes:,} bytes"
    kept = f"; {size} are kept for it" if reason.rows >= 0 else ""
    who = ", at ".join(part for part in (reason.detail, reason.where) if part)
    client = f"a client ({who})" if who else "a client"
    return f"{client} has still to read {reason.stage!r} from {reason.when} on{heard}{kept}{reason.place}"


def _fold(reason: Reason) -> str:
    return f"a fold writes {reason.stage!r} from {reason.when} on into a base{reason.place}"


def _as_it_is(reason: Reason) -> str:
    return reason.detail


_SENTENCES: Final = {
    "silent": _as_it_is,
    "install": _as_it_is,
    "call": _call,
    "input": _input,
    "import": _import,
    "restart": _as_it_is,
    "capability": _capability,
    "loop": _loop,
    "notification": _notification,
    "rows": _rows,
    "entering": _entering,
    "elsewhere": _elsewhere,
    "message": _message,
    "pending": _as_it_is,
    "disk": _as_it_is,
    "reader": _reader,
    "fold": _fold,
}
assert _SENTENCES.keys() == set(KINDS), "each kind has a sentence"


def _sendable(value: object) -> Value:
    if isinstance(value, tuple):
        return list(value)
    return value[:REASON_CHARS_MAX] if isinstance(value, str) else value
