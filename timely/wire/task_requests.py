"""What many tasks ask that work for one reader or writer: of another system, such as Spark.

    Hold             keep what a reader is about to read, while its tasks read it
    Piece            a bounded part of what one worker has of an output

    StageAttempt     rows of one run of a task, which count if the commit of their batch names it
    CheckAttempts    is all there that is to be committed?
    CommitAttempts   these runs of tasks are the batch
    DropAttempts     these are not

They travel as all requests do (`frames/messages.py`). Here a reader, or a query that writes, is known by a
name that its tasks share, which need not run in one process, nor at one time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "WRITES_ONCE",
    "CheckAttempts",
    "CommitAttempts",
    "DropAttempts",
    "Hold",
    "Piece",
    "StageAttempt",
    "Value",
]

Value = object
"""What msgpack holds: None, bool, int, float, str, bytes, lists and dicts of these."""

WRITES_ONCE: Final = "once/"
"""How the name of a query begins that writes one batch under a name that is made for it, and so is never
repeated.
"""


@dataclass(frozen=True)
class Hold:
    """Keep for `reader` the changes from `epoch` on, and so the collection as of the epoch before, until
    nothing was heard of it for `seconds`. With an empty `reader` nothing is kept, only asked.

    Answered when `complete` is beyond `beyond`, or after `wait_seconds` in any case: who waits for news
    rests.
    Values: complete, kept (the first epoch whose changes are still there), last (the epoch behind the last
    one that has changes), without ([first epoch, the one behind the last] for each stretch of complete epochs
    from `epoch` on that have no answer), why (what an error says of the last of them), origin (where this
    output began, on this worker. One of a dataflow that is installed again has another; one that goes on
    where its dataflow is replaced has the same).
    """

    dataflow: int
    output: str
    reader: str
    epoch: int
    seconds: float
    beyond: int = -1
    wait_seconds: float = 0.0


@dataclass(frozen=True)
class Piece:
    """Rows of an output from row `first` on, as many as fit one piece: of the changes of `start` ≤ epoch <
    `stop`, or, with `start` -1, of the collection as of `stop` - 1; once that is complete. The order of rows
    is the same whenever it is asked. A sign of life of `reader`, if that is not empty.

    part, parts   only rows of this share: equal rows are in the same one, on all workers
    columns       which columns, in which order; `epoch` and `diff` are such, too
    filters       only rows for which all of these hold, [column, what, value]; see `operators/conditions.py`
    origin        as of `Hold`: rows of an output that began elsewhere are refused. Empty: of any

    Values: next (the first row behind this piece; -1: there is none), rows (of all pieces, shares and filters
    aside), is_negative (whether some multiplicity of the collection is below zero), is_one (all diffs of this
    piece are 1, and `diff` is left out). Table: columns.
    """

    dataflow: int
    output: str
    reader: str
    start: int
    stop: int
    first: int
    part: int
    parts: int
    columns: list[Value]
    filters: list[Value]
    timeout_seconds: float
    origin: str = ""


@dataclass(frozen=True)
class StageAttempt:
    """Keep the table as part `part` of an attempt at batch `batch` of `query`; `diff` as in `Append`. See
    `operators/inputs/deliveries.py`.

    Values: is_new (False: the batch is committed, and takes no more).
    """

    dataflow: int
    input: str
    query: str
    batch: int
    attempt: str
    part: int
    diff: int


@dataclass(frozen=True)
class CheckAttempts:
    """Which of `attempts` [[name, parts], …] has not so many parts here? The others wait for the commit.

    Values: missing (names), last (the last batch of `query` that is committed; -1: none), last_rows (how
    many rows of it have entered here), open (the open epoch), seconds (what the clock of this worker says).
    """

    dataflow: int
    input: str
    query: str
    batch: int
    attempts: list[Value]


@dataclass(frozen=True)
class CommitAttempts:
    """Worker 0: what these attempts (names) have staged, on all workers, is batch `batch` of `query`. It
    enters the open epoch, which with `seals` is complete by that; nothing else of the batch enters ever.
    Refused if batches before it are missing or were those of another `stream` (empty: of none), unless
    `may_skip`, or if one behind it is committed. Refused, too, when so much time has passed since `looked`,
    by the `seconds` of worker 0, that some worker may have let go of what was found there.

    Values: is_new (False: it was committed before), epoch (which it has entered), open.
    """

    dataflow: int
    input: str
    query: str
    batch: int
    attempts: list[Value]
    seals: bool
    may_skip: bool
    stream: str
    looked: int


@dataclass(frozen=True)
class DropAttempts:
    """These attempts (names) at batch `batch` will not be committed; without any: no attempt at it so far
    that `CheckAttempts` has not named.
    """

    dataflow: int
    input: str
    query: str
    batch: int
    attempts: list[Value]
