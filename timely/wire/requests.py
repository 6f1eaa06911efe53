"""What may a client ask of a worker, and what is it answered?

Fields have exactly the types that the classes below declare; anything else is a `RequestError`. Nothing is
pickled, and nothing that a client sends is executed but the builder that `Install` names. How requests look
on the wire, and what else one must look like: `frames/messages.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from progress.records import record

from ..errors import PeerError
from .claims import shown
from .task_requests import CheckAttempts, CommitAttempts, DropAttempts, Hold, Piece, StageAttempt, Value

__all__ = [
    "Append",
    "AppendEpochs",
    "Arrived",
    "Changes",
    "CheckAttempts",
    "Close",
    "CommitAttempts",
    "Describe",
    "DropAttempts",
    "Enter",
    "Forget",
    "Frontier",
    "Hello",
    "Hold",
    "Insert",
    "InsertRows",
    "Install",
    "Leave",
    "Piece",
    "Replace",
    "Reply",
    "Request",
    "Seal",
    "Shutdown",
    "Snapshot",
    "Stage",
    "StageAttempt",
    "Stats",
    "Uninstall",
    "Value",
    "Wait",
]


@dataclass(frozen=True)
class Hello:
    """Who are you? Values: version, index, workers, addresses of all workers' client ports, dataflows by
    index.
    """


@dataclass(frozen=True)
class Install:
    """Worker 0: let all workers build and start `spec`, "module:function". Values as of `Describe`."""

    spec: str
    arguments: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Replace:
    """Worker 0: let all workers build `spec` as the new version of a dataflow, which takes its place once it
    has caught up; not after this time (seconds < 0: for ever). Values as of `Describe`, of the new version.
    """

    dataflow: int
    spec: str
    arguments: dict[str, Value]
    timeout_seconds: float


@dataclass(frozen=True)
class Describe:
    """Values: dataflow, name, spec, epoch (the open one), fingerprint, inputs [[name, description, Arrow
    schema or None, converter or None, whether it takes plain rows], …],
    outputs [[name, description, Arrow schema or None], …], exports,
    stages (lines of text).
    """

    dataflow: int


@dataclass(frozen=True)
class Append:
    """Add the table to `epoch`, which must be open. `diff` 1 inserts, -1 removes, 0: the column `diff` says;
    `sequence` -1: it is new each time. Values: is_new.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int


@dataclass(frozen=True)
class AppendEpochs:
    """As `Append`, each row to the open epoch that the column `column` says. Values: is_new."""

    dataflow: int
    input: str
    column: str
    writer: str
    sequence: int
    diff: int


@record(frozen=True)
class Insert:
    """Add the table to `epoch`, or to the open one if that is later; `diff` as in `Append`. Values: is_new,
    epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int


@record(frozen=True)
class InsertRows:
    """`Insert` of few plain rows (`operators/inputs/plain_rows.py`), which need no table. Values: is_new,
    epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int
    rows: list[Value]


@dataclass(frozen=True)
class Stage:
    """Keep the table as part `part` of the insertion (writer, sequence), until `Enter`. Otherwise as
    `Insert`.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    part: int
    diff: int


@dataclass(frozen=True)
class Enter:
    """Worker 0: all parts of an insertion have arrived; it enters `epoch`, or the open one if that is later.
    Values: is_new, epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int


@dataclass(frozen=True)
class Arrived:
    """Values: missing, those of `expected` [[input, writer, sequence], …] that this worker does not have."""

    dataflow: int
    epoch: int
    expected: list[Value]


@record(frozen=True)
class Seal:
    """Worker 0: all inputs' epochs up to `epoch` are complete, and those that were entered by the client's
    requests with the numbers of `behind`, `InsertRows`. Values: open, the epoch that is open now; sealed, the
    last one that is complete by this; -1 if it is not known that all of `behind` were done: then nothing is.
    """

    dataflow: int
    epoch: int
    behind: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Close:
    """Worker 0: no epoch will follow at `input`; its open one is complete. Values: open."""

    dataflow: int
    input: str


@dataclass(frozen=True)
class Uninstall:
    """Worker 0: this dataflow ends on all workers, for all clients; what it kept is given back.

    With `cascade` those that import from it end, too; otherwise it is refused as long as there are any.
    """

    dataflow: int
    cascade: bool


@dataclass(frozen=True)
class Frontier:
    """Values: complete, the first epoch that is not complete at `output` (of all outputs, if empty)."""

    dataflow: int
    output: str


@record(frozen=True)
class Wait:
    """Answered once `epoch` is complete at `output` (at all, if empty). Values: complete. Seconds < 0: for
    ever. `waited_seconds`: what of the caller's limit was over before, which is said together with the rest.
    """

    dataflow: int
    output: str
    epoch: int
    timeout_seconds: float
    waited_seconds: float = 0.0


@record(frozen=True)
class Changes:
    """The changes of epochs `start` ≤ epoch < `stop`, once they are complete, or, with `is_open_ended`, of
    all from `start` on that are complete by then. `reader`, unless empty, has its place at `start` from now
    on.

    If the last of these epochs has no answer, the reply is that error; `with_failures`: it is a table all the
    same, and says which of the epochs have none; if these are no epochs, whether the one before `start` has
    none.

    Values: complete; with failures also failed: (first epoch, the one behind the last, from which epoch on
    this holds, names of the error's classes, its message) for each stretch of epochs without an answer.
    Table: columns, epoch, diff.
    """

    dataflow: int
    output: str
    reader: str
    start: int
    stop: int
    is_open_ended: bool
    timeout_seconds: float
    with_failures: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The collection up to `epoch`, once that is complete. Values: complete. Table: columns, diff."""

    dataflow: int
    output: str
    epoch: int
    timeout_seconds: float


@dataclass(frozen=True)
class Forget:
    """The client `reader` needs no changes of epochs before `stop`; what nobody needs is dropped."""

    dataflow: int
    output: str
    reader: str
    stop: int


@dataclass(frozen=True)
class Leave:
    """The client `reader` reads this output no more: it holds nothing back."""

    dataflow: int
    output: str
    reader: str


@dataclass(frozen=True)
class Stats:
    """Values: counters of the worker and of its dataflows, as of now."""


@dataclass(frozen=True)
class Shutdown:
    """End, and with it the whole cluster."""


Request = (
    Hello | Install | Replace | Describe | Append | AppendEpochs | Insert | InsertRows | Stage | Enter
    | Arrived | Seal | Close | Uninstall | Frontier | Wait | Changes | Snapshot | Forget | Leave | Hold
    | Piece | StageAttempt | CheckAttempts | CommitAttempts | DropAttempts | Stats | Shutdown
)  # fmt: skip


@record(frozen=True)
class Reply:
    """What a worker answers: named values, and a table where one was asked for."""

    values: dict[str, Value] = field(default_factory=dict)
    table: pa.Table | None = None

    def integer(self, name: str) -> int:
        """The value `name`, an integer; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, int):
            raise PeerError(f"a reply says {name} = {shown(value)} where an integer belongs")
        return value

    def text(self, name: str) -> str:
        """The value `name`, a string; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise PeerError(f"a reply says {name} = {shown(value)} where a text belongs")
        return value

    def items(self, name: str) -> list[Value]:
        """The value `name`, a list; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise PeerError(f"a reply says {name} = {shown(value)} where a list belongs")
        return value

    def columns(self) -> pa.Table:
        """The table; `PeerError` if there is none."""
        if self.table is None:
            raise PeerError("a reply came without the table that was asked for")
        return self.table
