"""What may a client request of a worker, and what does the worker answer?

Fields have exactly the types that the classes below declare; anything else is a `RequestError`. Nothing is
pickled, and of all that a client sends a worker executes only the builder that `Install` names. For the
frames of a request, and further limits on it, see `frames/messages.py`.
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
    "Probe",
    "Progress",
    "Read",
    "Replace",
    "Reply",
    "Request",
    "Shutdown",
    "Stats",
    "Uninstall",
    "Value",
    "Why",
    "waits_for_epoch",
]


Value = object
"""A value that msgpack holds: None, bool, int, float, str, bytes, lists and dicts of these."""

WRITES_ONCE: Final = "once/"
"""Prefix of the name of a query that writes a single batch. The name is created for it, so no other query has
it.
"""

IN_OPEN: Final = "open"
IN_EPOCH: Final = "epoch"
BY_COLUMN: Final = "column"
WHEN_NAMED: Final = "named"

ONE_ATTEMPT: Final = ""
"""The name of the only attempt of a staged insertion."""

ALL_PARTS: Final = -1
"""As the number of parts of an insertion that enter: all staged ones."""


@dataclass(frozen=True)
class Hello:
    """Ask a worker for its identity. Values: version, index, workers, addresses of all workers' client ports,
    dataflows by index, incarnation (how often the cluster has started on its store; 0: it is not durable),
    cluster (the identity of its store; empty: it has none).
    """


@dataclass(frozen=True)
class Install:
    """Worker 0: let all workers build and start `spec`, "module:function". Values: as for `Describe`."""

    spec: str
    arguments: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Replace:
    """Worker 0: let all workers build `spec` as the new version of a dataflow, which takes the place of the
    old one once it has caught up, within `timeout_seconds` (below 0: at any time). Values: as for `Describe`,
    of the new version.
    """

    dataflow: int
    spec: str
    arguments: dict[str, Value]
    timeout_seconds: float


@dataclass(frozen=True)
class Describe:
    """Describe a dataflow. Values: dataflow, name, spec, epoch (the open one), fingerprint, inputs [[name,
    description, Arrow schema or None, converter or None, True if it takes plain rows], …], outputs [[name,
    description, Arrow schema or None], …], exports [[name, Arrow schema or None, input or ""], …],
    imports [[dataflow, export], …], first (the epoch with which it began, as far as this worker knows), note
    (what it was made from, or ""), stages (lines of text), durable (the first epoch that is not durable; -1:
    the cluster is not; not after `Install` and `Replace`).
    """

    dataflow: int


@record(frozen=True)
class Deliver:
    """Take rows of the delivery (`writer`, `sequence`): the table, or, if `counts` is `IN_OPEN`, a few plain
    rows (`operators/inputs/plain_rows.py`). `diff` 1 adds the rows, -1 removes them, 0: their column `diff`
    decides.

    `counts` says when the rows count, and in which epoch:

        IN_OPEN      at once, in `epoch`, or in the open epoch if that is later
        IN_EPOCH     at once, in `epoch`, which must be open. `sequence` -1: the rows have no name
        BY_COLUMN    as `IN_EPOCH`, each row in the epoch in its column `column`
        WHEN_NAMED   once a `Decide` names them: the rows are part `part` of `attempt` at the delivery. That
                     is `ONE_ATTEMPT` for an insertion; other attempts are at a batch of the query `writer`

    Values: is_new (False: the delivery was taken before); for IN_OPEN, BY_COLUMN and WHEN_NAMED also epoch:
    the epoch that the rows have entered, or that is open.
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
    """Worker 0: decide for all workers which staged rows enter which epoch, and which epochs and inputs end.
    Worker 0 decides all of a request, or nothing of it.

    after    deliveries [input, writer, sequence] to worker 0 that must have been taken. If worker 0 does not
             know that all were, it decides nothing
    enter    staged insertions [input, writer, sequence, parts], each with all its parts staged by now, or
             batches [input, query, batch, attempts, stream, may_skip, looked]. Each enters `epoch`, or the
             open epoch if that is later. Of an insertion the first `parts` parts enter, or all if the number
             is left out; workers drop the parts behind them, left over from a client that was lost, or gave
             up, with more parts under the same name. Of a batch only `attempts` enter. Worker 0 refuses a
             batch if batches before it are missing or came from another `stream` (empty: of none), unless
             `may_skip`; if a later batch is committed; and if so much time has passed since `looked`, by the
             `seconds` of worker 0, that some worker may have dropped an attempt that `Missing` had found
             there
    seals    complete all epochs up to `epoch`, and up to those that `enter` and `after` have entered
    close    inputs whose open epoch is complete, and to which no other epoch follows

    incarnation   the incarnation of the cluster in which the first row of `enter` was staged, or an earlier
                  one; 0: the cluster is not durable. Worker 0 refuses to let rows enter that were staged in
                  another incarnation than its own: they are gone. It accepts what has entered already
    early         answer before the decision is durable
    only          seal this input alone, whose open epoch is then in `open`; `after`, `enter` and `close`
                  are empty
    waits         from 0 on: answer also a `Progress` of all outputs beyond `epoch` with this limit, under
                  the next number, or, if it is answered soon, with `complete` in the answer to this request

    Values: entered, [is_new, epoch] for each of `enter`; open, the epoch that is open now; sealed, the last
    epoch that this request completes; -1: none; took, True if those of `after` that are not answered yet get
    no other answer: they have entered epochs up to `sealed`.
    """

    dataflow: int
    epoch: int
    seals: bool = False
    after: list[Value] = field(default_factory=list)
    enter: list[Value] = field(default_factory=list)
    close: list[Value] = field(default_factory=list)
    incarnation: int = 0
    early: bool = False
    only: str = ""
    waits: float = -1.0


@dataclass(frozen=True)
class Missing:
    """Ask which of these deliveries this worker does not have. `names` holds appends to `epoch` [input,
    writer, sequence], and attempts with their number of parts [input, query, batch, attempt, parts]. The
    worker keeps the attempts that it has until a `Decide` about them, or a `Drop` by name.

    Values: missing, entries of `names`; queries, [last, last_rows, open, seconds] for each [input, query] of
    `queries`: the last committed batch (-1: none), the number of its rows that have entered here, the open
    epoch of the input, and the clock of this worker; in a durable cluster also incarnation.
    """

    dataflow: int
    epoch: int
    names: list[Value]
    queries: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Drop:
    """Drop the staged rows of attempts [input, writer, sequence, attempt], which no `Decide` will name; or,
    of batches [input, query, batch], those of all attempts that no `Missing` has found.
    """

    dataflow: int
    names: list[Value]


@dataclass(frozen=True)
class Uninstall:
    """Worker 0: end this dataflow on all workers, for all clients, and free its memory.

    With `cascade` the dataflows that import from it end, too; otherwise worker 0 refuses while there are any.
    """

    dataflow: int
    cascade: bool


@record(frozen=True)
class Progress:
    """Ask how far `output`, or, if that is empty, the whole dataflow is. The worker answers once epoch
    `beyond` is complete there, at once if that is -1; after `timeout_seconds` (below 0: never) it answers
    with a `WaitTimeoutError`, whose message counts the `waited_seconds` before the request, too.

    reader        move the position of this reader; empty: of none
    keep_from     the first epoch that the reader may still request; -1: the reader leaves, and holds nothing
    keep_seconds  how long the worker keeps the reader's position without hearing of the reader
    drops         drop the changes before `keep_from`, or before the first epoch that is not complete if that
                  is earlier, that no reader needs. Without it the worker refuses a reader whose changes from
                  `keep_from` on are gone
    extent        answer also what the output has, and do so after `timeout_seconds` in any case

    Values: complete (the first epoch that is not complete); with `drops` also kept (the first epoch whose
    changes are still there); with `extent` kept, last (the epoch behind the last one that has changes), rows
    (that are kept of the collection on this worker, those that cancel included; -1: not known), without
    ([first epoch, the one behind the last] for each run of complete epochs from `keep_from` on without an
    answer), why (the text of the error for the last of them), origin (identifies where this output began, on
    this worker: an output of a dataflow that is installed again has another origin; one that continues where
    its dataflow is replaced has the same, and so has one of a durable cluster that has started again).
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


@dataclass(frozen=True)
class Probe:
    """Ask whether the stream at a probe is past a time, with its counters of loops: whether nothing at or
    before it can come any more; if `is_strict`, nothing before it. Without a time, only whether there is such
    a probe. If it `waits`, the answer comes once that is so, or after `timeout_seconds` (below 0: never) as a
    `WaitTimeoutError`, whose message counts the `waited_seconds` before the request, too.

    Values: is_past.
    """

    dataflow: int
    probe: str
    time: list[Value] = field(default_factory=list)
    is_strict: bool = False
    waits: bool = False
    timeout_seconds: float = -1.0
    waited_seconds: float = 0.0


@record(frozen=True)
class Read:
    """Read rows of an output, once they are complete: the changes of epochs `start` ≤ epoch < `stop`, or,
    with `start` -1, the collection as of `stop` - 1. If they are not complete after `timeout_seconds` (below
    0: never), the answer is a `WaitTimeoutError`.

    reader          set the position of this reader to `start`; for a piece, only note that it is alive.
    Empty:
                    no reader
    is_open_ended   read also the changes of epochs from `stop` on that are complete by then
    with_failures   list the epochs without an answer; if `start` equals `stop`, check the epoch before them.
                    If False, the reply is the error of the last epoch if that has no answer

    first     read a piece: as many rows as fit, from this row on; the order of rows is the same for every
              request. -1: read all rows, and ignore the fields below
    part      read only rows of this share of `parts`; equal rows are in the same share, on all workers
    columns   the columns of a piece, in this order; they may include `epoch` and `diff`
    filters   read only rows for which all of these hold, [column, what, value]: see
              `operators/outputs/conditions.py`
    origin    as in `Progress`: the worker refuses a piece of an output with another origin. Empty: any
    after     the incarnation that the piece before came from, of this worker or another: the worker refuses
              the piece if a durable cluster has started again since, because rows may lie elsewhere. 0: any

    Values: complete, of all rows; with failures also failed: (first epoch, the one behind the last, the epoch
    from which on this holds, names of the error's classes, its message) for each run of epochs without an
    answer. For a piece: next (the first row behind it; -1: none), rows (of all pieces, not counting shares
    and filters), is_negative (True if some multiplicity of the collection is below zero), is_one (True if all
    diffs of this piece are 1, and `diff` is left out), incarnation. Table: columns, epoch, diff; of a piece:
    `columns`.
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
    after: int = 0


@dataclass(frozen=True)
class Stats:
    """Ask for counters. Values: the current counters of the worker and of its dataflows."""


@dataclass(frozen=True)
class Why:
    """Ask what holds an epoch of a dataflow, as far as this worker knows; -1: only what the worker is at.

    Values: address and process of the worker; complete, the first epoch that is not complete; reasons, what
    this worker has outstanding up to the epoch (`Reason.values` of `reasons.py`); view, what is outstanding
    on all workers as far as this one knows: [values, count of all, count of this one, of
    the first what only this one knows]; is_cut, True if there
    is more; if the client asks for it, retained: see `timely/running/reasons/retained.py`. If no dataflow is
    named also addresses of all workers, and dataflows: [number, name, last sealed
    epoch] of each. A worker that is in a long call answers this by its other port, and nothing else.
    """

    dataflow: int
    epoch: int
    retained: bool = False


@dataclass(frozen=True)
class Shutdown:
    """End this worker, and with it the whole cluster."""


Request = (
    Hello | Install | Replace | Describe | Deliver | Decide | Missing | Drop | Uninstall | Progress | Probe
    | Read | Stats | Why | Shutdown
)  # fmt: skip


def waits_for_epoch(request: Request) -> bool:
    """Return True if the worker answers the request only once an epoch is complete."""
    if isinstance(request, Probe):
        return request.waits
    return isinstance(request, Read) or (isinstance(request, Progress) and request.beyond >= 0)


@record(frozen=True)
class Reply:
    """The answer of a worker: named values, and a table if the request was for one."""

    values: dict[str, Value] = field(default_factory=dict)
    table: pa.Table | None = None

    def integer(self, name: str) -> int:
        """Return the value `name`, an integer; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, int):
            raise PeerError(f"a reply says {name} = {shown(value)} where an integer belongs")
        return value

    @property
    def incarnation(self) -> int:
        """The incarnation of the cluster, if that is durable and the reply says it; else 0."""
        return self.integer("incarnation") if "incarnation" in self.values else 0

    def text(self, name: str) -> str:
        """Return the value `name`, a string; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise PeerError(f"a reply says {name} = {shown(value)} where a text belongs")
        return value

    def items(self, name: str) -> list[Value]:
        """Return the value `name`, a list; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise PeerError(f"a reply says {name} = {shown(value)} where a list belongs")
        return value

    def columns(self) -> pa.Table:
        """Return the table; `PeerError` if there is none."""
        if self.table is None:
            raise PeerError("a worker's reply lacks the table that the request was for")
        return self.table
