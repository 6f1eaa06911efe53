"""What may a client ask of a worker, and what is it answered?

Fields have exactly the types that the classes below declare; anything else is a `RequestError`. Nothing is
pickled, and nothing that a client sends is executed but the builder that `Install` names. How requests look
on the wire, and what else one must look like: `frames/messages.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from progress.records import record

from ..errors import PeerError
from ..limits import READER_SECONDS_MAX
from .claims import shown

__all__ = [
    "ALL_PARTS",
    "BY_COLUMN",
    "IN_EPOCH",
    "IN_OPEN",
    "ONE_ATTEMPT",
    "WHEN_NAMED",
    "WRITES_ONCE",
    "Decide",
    "Deliver",
    "Describe",
    "Drop",
    "Hello",
    "Install",
    "Missing",
    "Progress",
    "Read",
    "Replace",
    "Reply",
    "Request",
    "Shutdown",
    "Stats",
    "Uninstall",
    "Value",
    "waits_for_epoch",
]


Value = object
"""What msgpack holds: None, bool, int, float, str, bytes, lists and dicts of these."""

WRITES_ONCE: Final = "once/"
"""How the name of a query begins that writes one batch under a name that is made for it, and so is never
repeated.
"""

IN_OPEN: Final = "open"
IN_EPOCH: Final = "epoch"
BY_COLUMN: Final = "column"
WHEN_NAMED: Final = "named"

ONE_ATTEMPT: Final = ""
"""The attempt of a staged delivery that has only this one: an insertion in parts."""

ALL_PARTS: Final = -1
"""In place of how many parts of an insertion enter: whatever is staged of it."""


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


@record(frozen=True)
class Deliver:
    """Take rows of the delivery (`writer`, `sequence`): the table, or, if they count as `IN_OPEN`, a few
    plain rows (`operators/inputs/plain_rows.py`). `diff` 1 adds them, -1 removes them, 0: the column `diff`
    says.

    `counts` says when they count, and in which epoch:

        IN_OPEN      at once, in `epoch`, or in the open epoch if that is later
        IN_EPOCH     at once, in `epoch`, which must be open. `sequence` -1: the rows have no name
        BY_COLUMN    as `IN_EPOCH`, each row in the epoch that its column `column` says
        WHEN_NAMED   once a `Decide` names them: this is part `part` of `attempt` at the delivery, which is
                     `ONE_ATTEMPT` for an insertion; other attempts are at a batch of the query `writer`

    Values: is_new (False: it was taken before); of the first, third and last also epoch: the epoch that they
    have entered, or that is open.
    """

    dataflow: int
    input: str
    writer: str
    sequence: int
    counts: str
    epoch: int
    diff: int
    rows: list[Value] = field(default_factory=list)
    column: str = ""
    part: int = 0
    attempt: str = ONE_ATTEMPT


@record(frozen=True)
class Decide:
    """Worker 0: what belongs to which epoch, for all workers. All of it is decided, or nothing.

    after    deliveries [input, writer, sequence] to worker 0 that must have been taken; if it is not known
             that all were, nothing is decided
    enter    staged deliveries [input, writer, sequence, parts], each of which has all its parts by now, or
             batches [input, query, batch, attempts, stream, may_skip, looked]: each enters `epoch`, or the
             open epoch if that is later. Parts behind the first `parts` are left over from a client that was
             lost, or gave up, with more under the same name: they are dropped. Without a number all enter.
             Nothing but these attempts enters of a batch. It is refused if batches before
             it are missing or were those of another `stream` (empty: of none), unless `may_skip`; if a later
             one is committed; and if so much time has passed since `looked`, by the `seconds` of worker 0,
             that some worker may have dropped what was found there
    seals    complete all epochs up to `epoch`, and up to those that are entered by `enter` and `after`
    close    inputs of which the open epoch is complete, and to which no other follows

    Values: entered, [is_new, epoch] for each of `enter`; open, the epoch that is open now; sealed, the last
    epoch that is complete by this; -1: none.
    """

    dataflow: int
    epoch: int
    seals: bool = False
    after: list[Value] = field(default_factory=list)
    enter: list[Value] = field(default_factory=list)
    close: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Missing:
    """Which of these deliveries does this worker not have: appends to `epoch` [input, writer, sequence], and
    attempts with so many parts [input, query, batch, attempt, parts]? Attempts that are here stay until they
    are decided about, or dropped by name.

    Values: missing, as in `names`; queries, [last, last_rows, open, seconds] for each [input, query] of
    `queries`: its last batch that is committed (-1: none), how many rows of it have entered here, the open
    epoch of the input, and what the clock of this worker says.
    """

    dataflow: int
    epoch: int
    names: list[Value]
    queries: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Drop:
    """Drop what is staged of attempts [input, writer, sequence, attempt], which no `Decide` will name; or, of
    batches [input, query, batch], all attempts that no `Missing` has found.
    """

    dataflow: int
    names: list[Value]


@dataclass(frozen=True)
class Uninstall:
    """Worker 0: this dataflow ends on all workers, for all clients; what it kept is given back.

    With `cascade` those that import from it end, too; otherwise it is refused as long as there are any.
    """

    dataflow: int
    cascade: bool


@record(frozen=True)
class Progress:
    """How far is `output`, or, if that is empty, the whole dataflow? Answered once epoch `beyond` is complete
    there, at once if that is -1; after `timeout_seconds` (below 0: never) with a `WaitTimeoutError`, whose
    message counts the `waited_seconds` before the request, too.

    reader        moves the place of this reader; empty: of nobody
    keep_from     the first epoch that the reader may still ask for; -1: it leaves, and holds nothing back
    keep_seconds  how long its place is kept if nothing is heard of it
    drops         instead of being held against what is kept, drop changes before `keep_from` that no reader
                  needs; an epoch that is not complete keeps its place
    extent        answer what the output has, also, and that after `timeout_seconds` in any case

    Values: complete (the first epoch that is not complete); with `drops` also kept (the first epoch whose
    changes are still there); with `extent` kept, last (the epoch behind the last one that has changes),
    without ([first epoch, the one behind the last] for each stretch of complete epochs from `keep_from` on
    that have no answer), why (what an error says of the last of them), origin (where this output began, on
    this worker. One of a dataflow that is installed again has another; one that goes on where its dataflow is
    replaced has the same).
    """

    dataflow: int
    output: str
    beyond: int = -1
    timeout_seconds: float = -1.0
    waited_seconds: float = 0.0
    reader: str = ""
    keep_from: int = -1
    keep_seconds: float = READER_SECONDS_MAX
    drops: bool = False
    extent: bool = False


@record(frozen=True)
class Read:
    """Rows of an output, once they are complete: the changes of epochs `start` ≤ epoch < `stop`, or, with
    `start` -1, the collection as of `stop` - 1. Not complete after `timeout_seconds` (below 0: never), the
    answer is a `WaitTimeoutError`.

    reader          has its place at `start` from now on; of a piece: was heard of. Empty: nobody
    is_open_ended   also the changes of epochs from `stop` on that are complete by then
    with_failures   say which of the epochs have no answer. Otherwise the reply is that error, if the last of
                    them has none. If `start` is `stop`: whether the epoch before has one

    first     the row that a piece begins at, which has as many rows as fit; the order of rows is the same
              whenever it is asked. -1: all rows are read, and what follows means nothing
    part      only rows of this share of `parts`: equal rows are in the same one, on all workers
    columns   which columns of a piece, in which order; `epoch` and `diff` are such, too
    filters   only rows for which all of these hold, [column, what, value]; see `operators/conditions.py`
    origin    as of `Progress`: a piece of an output that began elsewhere is refused. Empty: of any

    Values: complete, of all rows; with failures also failed: (first epoch, the one behind the last, from
    which epoch on this holds, names of the error's classes, its message) for each stretch of epochs without
    an answer. Of a piece: next (the first row behind it; -1: there is none), rows (of all pieces, shares and
    filters aside), is_negative (whether some multiplicity of the collection is below zero), is_one (all diffs
    of this piece are 1, and `diff` is left out). Table: columns, epoch, diff; of a piece: `columns`.
    """

    dataflow: int
    output: str
    start: int
    stop: int
    timeout_seconds: float
    reader: str = ""
    is_open_ended: bool = False
    with_failures: bool = False
    first: int = -1
    part: int = 0
    parts: int = 1
    columns: list[Value] = field(default_factory=list)
    filters: list[Value] = field(default_factory=list)
    origin: str = ""


@dataclass(frozen=True)
class Stats:
    """Values: counters of the worker and of its dataflows, as of now."""


@dataclass(frozen=True)
class Shutdown:
    """End, and with it the whole cluster."""


Request = (
    Hello | Install | Replace | Describe | Deliver | Decide | Missing | Drop | Uninstall | Progress | Read
    | Stats | Shutdown
)  # fmt: skip


def waits_for_epoch(request: Request) -> bool:
    """Whether a request is answered once an epoch is complete."""
    return isinstance(request, Read) or (isinstance(request, Progress) and request.beyond >= 0)


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
