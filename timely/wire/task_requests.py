"""What many tasks ask that work for one reader: of another system, such as Spark.

    Hold    keep what a reader is about to read, while its tasks read it
    Piece   a bounded part of what one worker has of an output

They travel as all requests do (`frames/messages.py`). A reader, or a query that writes, is known by a name
that its tasks share, which need not run in one process, nor at one time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "WRITES_ONCE",
    "Hold",
    "Piece",
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
