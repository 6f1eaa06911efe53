"""Reading an output piece by piece, straight from the worker that has it.

    for table in pieces(workers, worker, slice_): …

While one piece is worked on, the next is on its way, and no more than that: what a slow reader leaves waiting
is one piece on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import PeerError
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..wire.arrow import int64_array
from ..wire.requests import Progress, Read, Reply, Value
from .installed import Workers

__all__ = ["Extent", "Held", "OutputSlice", "extent_of", "hold_everywhere", "pieces"]

_BEHIND_ALL = 1 << 61
"""A row that no output has: asking from there on tells how much there is, and gives nothing."""


@dataclass(frozen=True)
class OutputSlice:
    """What is read: `start` ≤ epoch < `stop` of the changes, or, with `start` -1, the collection as of `stop`
    - 1.

    `reader` names whose place keeps it there; `columns` may hold `epoch` (of changes) and `diff`; `filters`
    are conditions as of `operators/conditions.py`; `part` of `parts`: equal rows of all workers are in the
    same one. `origins`: where the output began, on each worker that is asked; none: wherever.
    """

    dataflow: int
    output: str
    reader: str
    start: int
    stop: int
    columns: tuple[str, ...]
    filters: Sequence[Value] = field(default_factory=list)
    part: int = 0
    parts: int = 1
    timeout_seconds: float = REPLY_SECONDS_MAX
    origins: tuple[str, ...] = ()

    def only(self, worker: int) -> OutputSlice:
        """The same, for who asks no other worker."""
        return replace(self, origins=self.origins[worker : worker + 1])

    def piece(self, worker: int, first: int) -> Read:
        """The request to `worker` for the piece that begins at row `first`."""
        return Read(
            self.dataflow,
            self.output,
            self.start,
            self.stop,
            self.timeout_seconds,
            reader=self.reader,
            first=first,
            part=self.part,
            parts=self.parts,
            columns=list(self.columns),
            filters=list(self.filters),
            origin=self.origins[worker] if self.origins else "",
        )


@dataclass(frozen=True)
class Extent:
    """How much of an output there is on one worker."""

    rows: int
    is_negative: bool


class Held(NamedTuple):
    """What all workers have of an output: the first epoch that is not complete on one of them, the first
    whose changes all keep, and the epoch behind the last that has changes on any. `origins`: where the output
    began, on each of them. `without`: the stretches of epochs without an answer, each as the first and the
    one behind the last, and `why` the last of them has none.
    """

    complete: int
    kept: int
    last: int
    origins: tuple[str, ...]
    without: tuple[tuple[int, int], ...] = ()
    why: str = ""

    def end_with_answer(self, start: int, stop: int) -> int | None:
        """The end of a stretch of epochs that begins at `start`, of which the last has an answer: if possible
        not behind `stop`; None: there is none yet.
        """
        end = stop
        for first, last in reversed(self.without):
            if first < end <= last:
                end = first
        if end > start:
            return end
        end = stop + 1
        for first, last in self.without:
            if first < end <= last:
                end = last + 1
        return end if end <= self.complete else None

    @property
    def origin(self) -> str:
        """Where it began on worker 0, by which a dataflow is told from another."""
        return self.origins[0]


def pieces(workers: Workers, worker: int, wanted: OutputSlice) -> Iterator[pa.Table]:
    """The pieces of one worker, in order; each has all of `wanted.columns`. What fails raises."""
    with ThreadPoolExecutor(1, "pieces") as ahead:
        coming = ahead.submit(_ask, workers, worker, wanted, 0)
        while True:
            reply = coming.result()
            following = reply.integer("next")
            if following >= 0:
                coming = ahead.submit(_ask, workers, worker, wanted, following)
            yield _with_diff(reply, wanted.columns)
            if following < 0:
                return


def extent_of(workers: Workers, wanted: OutputSlice) -> list[Extent]:
    """How much each worker has; the collection is laid out there by then."""
    asked = [(worker, wanted.piece(worker, _BEHIND_ALL), None) for worker in range(workers.count)]
    replies = workers.ask(asked, wanted.timeout_seconds + REPLY_SECONDS_MAX)
    return [Extent(reply.integer("rows"), bool(reply.values.get("is_negative"))) for reply in replies]


def hold_everywhere(workers: Workers, wanted: Progress, seconds: float = REPLY_SECONDS_MAX) -> Held:
    """Ask all workers for the extent of an output, with `Progress`. Each may take `seconds` until it is free
    to answer.
    """
    replies = workers.ask([(worker, wanted, None) for worker in range(workers.count)], seconds)
    return Held(
        min(reply.integer("complete") for reply in replies),
        max(reply.integer("kept") for reply in replies),
        max(reply.integer("last") for reply in replies),
        tuple(reply.text("origin") for reply in replies),
        tuple(map(_stretch, replies[0].items("without"))),  # all workers know the same of what is complete
        replies[0].text("why"),
    )


def _stretch(said: object) -> tuple[int, int]:
    match said:
        case [int(first), int(stop)]:
            return first, stop
    raise PeerError(f"a worker says {said!r:.100} of epochs without an answer")


def _ask(workers: Workers, worker: int, wanted: OutputSlice, first: int) -> Reply:
    seconds = wanted.timeout_seconds + REPLY_SECONDS_MAX + ANSWER_SECONDS_MAX
    (reply,) = workers.ask([(worker, wanted.piece(worker, first), None)], seconds)
    following = reply.integer("next")
    if 0 <= following <= first:
        raise PeerError(f"worker {worker} sent the piece of row {first} again in place of the next one")
    return reply


def _with_diff(reply: Reply, columns: Sequence[str]) -> pa.Table:
    table = reply.columns()
    if reply.values.get("is_one"):
        at = list(columns).index("diff")
        table = table.add_column(at, "diff", int64_array(np.ones(table.num_rows, dtype=np.int64)))
    return table
