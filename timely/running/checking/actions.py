"""Actions: the parts of a worker's step, each with a name.

    Receive    take the next message of one other worker, and handle it
    Resume     let a vertex that asked for another turn have it
    Ring       let a vertex hear that an alarm which it has set, or another thread, wants it
    Activate   run one vertex that has work: it consumes everything that is ready
    Publish    apply the own changes of counts, and send them to all others in one piece
    Notify     find the notifications that have become due
    Tell       send changes of counts that were held back (`telling.py`), and that somebody may wait for
    Idle       let one vertex do a little of the work that may wait

`Worker.enabled` lists the actions that a worker could perform now, `Worker.perform` performs one.
`Worker.step` performs them in bulk and in the quickest order: receive all, resume all, run vertices
topologically, publish, notify. Both use the same code for each action. So a checker that tries all orders
(`timely/running/checking/explorer.py`), or a test that draws actions at random, runs the code that runs in
production.

An action happens as a whole. Two actions of different workers can be exchanged without a difference, because
the only state that two workers share is the messages on the way between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast, runtime_checkable

from progress.errors import InternalError

__all__ = [
    "Action",
    "Activate",
    "Idle",
    "Inside",
    "Notify",
    "OneByOne",
    "Publish",
    "Receive",
    "Resume",
    "Ring",
    "Tell",
    "singly",
]


@dataclass(frozen=True, slots=True)
class Receive:
    """Take the next message of worker `peer`: data, progress or control."""

    peer: int

    def __str__(self) -> str:
        return f"receive the next message of worker {self.peer}"


@dataclass(frozen=True, slots=True)
class Resume:
    """Queue a stage that has asked for another turn."""

    dataflow: int
    stage: int

    def __str__(self) -> str:
        return f"let stage {self.stage} of dataflow {self.dataflow} have the turn that it asked for"


@dataclass(frozen=True, slots=True)
class Ring:
    """Queue a stage whose vertex asked to be activated: moments may come at any time, whatever the clock
    says.
    """

    dataflow: int
    stage: int

    def __str__(self) -> str:
        return f"let an alarm of stage {self.stage} of dataflow {self.dataflow} be due"


@dataclass(frozen=True, slots=True)
class Activate:
    """Run the vertex of a queued stage, or let the rows of an input's sealed epochs enter."""

    dataflow: int
    stage: int

    def __str__(self) -> str:
        return f"run stage {self.stage} of dataflow {self.dataflow}"


@dataclass(frozen=True, slots=True)
class Publish:
    """Apply the changes of counts since the last time, and send them to all other workers."""

    dataflow: int

    def __str__(self) -> str:
        return f"publish the changes of counts of dataflow {self.dataflow}"


@dataclass(frozen=True, slots=True)
class Notify:
    """Queue the stages for which a notification has become due."""

    dataflow: int

    def __str__(self) -> str:
        return f"find the due notifications of dataflow {self.dataflow}"


@dataclass(frozen=True, slots=True)
class Tell:
    """Send what was held back, and what somebody may wait for by now."""

    dataflow: int

    def __str__(self) -> str:
        return f"tell what was held back of dataflow {self.dataflow}"


@dataclass(frozen=True, slots=True)
class Idle:
    """Let one vertex do a little of the work that may wait; only if there is nothing else to do."""

    dataflow: int

    def __str__(self) -> str:
        return f"use an idle moment for dataflow {self.dataflow}"


Inside: TypeAlias = Resume | Ring | Activate | Publish | Notify | Tell | Idle
"""One action in a dataflow."""

Action: TypeAlias = Receive | Inside
"""One action of a worker, which happens as a whole."""


@runtime_checkable
class OneByOne(Protocol):
    """A transport that hands over single messages, as `Receive` needs them. Sockets hand over all that
    came.
    """

    def heard(self) -> list[int]:
        """Return the peers from which a message waits, ascending."""
        ...

    def recv_one(self, peer: int) -> list[memoryview]:
        """Return the oldest message of a peer. Requires: one waits."""
        ...


def singly(transport: object) -> OneByOne:
    """Return a transport that hands over single messages; raise `InternalError` if it does not."""
    kind = type(transport)
    if kind not in _SINGLY:  # asking for a protocol takes 25 µs, and checkers ask before each action
        _SINGLY[kind] = isinstance(transport, OneByOne)
    if not _SINGLY[kind]:
        raise InternalError(f"a {type(transport).__name__} hands over no single messages")
    return cast("OneByOne", transport)


_SINGLY: dict[type, bool] = {}
"""For each class of transports whether they hand over single messages."""
