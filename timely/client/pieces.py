"""Reading an output piece by piece, straight from the worker that has it.

    for table in pieces(workers, worker, output): …

While the reader works on one piece, the next is on its way, and no more than that: a slow reader leaves one
piece waiting on either side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import PeerError, RestartedError
from ..limits import ANSWER_SECONDS_MAX, REPLY_SECONDS_MAX
from ..wire.arrow import int64_array
from ..wire.requests import Progress, Read, Reply, Value
from .installed import Members, Requests, Workers, to_all

__all__ = ["Extent", "Held", "OutputSlice", "extent_of", "hold_everywhere", "pieces", "pieces_of_all"]

_BEHIND_ALL = 1 << 61
"""A row that no output has: a request from there on returns the number of rows, and none of them."""


@dataclass(frozen=True)
class OutputSlice:
    """Changes of epochs `start` ≤ epoch < `stop` of an output, or, with `start` -1, the collection as of
    `stop` - 1.

    reader    the reader whose position keeps these changes from being dropped
    columns   columns to read; `epoch` (of changes) and `diff` may be among them
    filters   conditions as of `operators/outputs/conditions.py`
    part      only rows of this share of `parts`; equal rows of all workers are in the same share
    origins   where the output began, on each worker that is read; empty: anywhere. Of a durable cluster, the
              same on each, however many there are
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
        """Return the same slice for a reader of one worker only."""
        return replace(self, origins=self.origins[worker : worker + 1])

    def piece(self, worker: int, first: int, after: int = 0) -> Read:
        """Return the request to `worker` for the piece that begins at row `first`; the piece before it came
        from incarnation `after` (0: of any).
        """
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
            origin=self.origins[min(worker, len(self.origins) - 1)] if self.origins else "",
            after=after,
        )


@dataclass(frozen=True)
class Extent:
    """The size of an output on one worker."""

    rows: int
    is_negative: bool


class Held(NamedTuple):
    """The epochs of an output that all workers have.

    complete   the first epoch that is not complete on all workers
    kept       the first epoch whose changes all workers still have
    last       the epoch behind the last one that has changes on any worker
    origins    where the output began, on each worker
    without    the spans of epochs without an answer, each as its first epoch and the one behind its last
    why        the reason why the last of these has no answer
    """

    complete: int
    kept: int
    last: int
    origins: tuple[str, ...]
    without: tuple[tuple[int, int], ...] = ()
    why: str = ""

    def end_with_answer(self, start: int, stop: int) -> int | None:
        """Return the end of a span of epochs that begins at `start` and whose last epoch has an answer; at
        most `stop` if possible. Return None if there is none yet.
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
        """Where the output began on worker 0. It distinguishes this dataflow from others."""
        return self.origins[0]


def pieces(workers: Workers, worker: int, output: OutputSlice) -> Iterator[pa.Table]:
    """Yield the pieces of one worker, in order; each has all columns of `output`."""
    return _pieces(workers, workers.members, [worker], output)


def pieces_of_all(workers: Workers, output: OutputSlice) -> Iterator[pa.Table]:
    """Yield the pieces of all workers, one worker after the other. Raise `RestartedError` if a durable
    cluster starts again meanwhile.
    """
    members = workers.members
    return _pieces(workers, members, range(members.count), output)


def _pieces(
    workers: Workers, members: Members, which: Sequence[int], output: OutputSlice
) -> Iterator[pa.Table]:
    at, first, after = 0, 0, members.incarnation
    with ThreadPoolExecutor(1, "pieces") as ahead:
        coming = ahead.submit(_ask, workers, which[at], output, first, after)
        while at < len(which):
            reply = coming.result()
            first, after = reply.integer("next"), reply.incarnation
            if first < 0:
                at, first = at + 1, 0
            if at < len(which):
                coming = ahead.submit(_ask, workers, which[at], output, first, after)
            yield _with_diff(reply, output.columns)


def extent_of(workers: Workers, output: OutputSlice) -> list[Extent]:
    """Return the size of an output on each worker; the workers prepare the collection for that."""

    def makes(members: Members) -> Requests:
        return [(worker, output.piece(worker, _BEHIND_ALL), None) for worker in range(members.count)]

    replies = workers.ask_members(makes, output.timeout_seconds + REPLY_SECONDS_MAX)
    return [Extent(reply.integer("rows"), bool(reply.values.get("is_negative"))) for reply in replies]


def hold_everywhere(workers: Workers, request: Progress, seconds: float = REPLY_SECONDS_MAX) -> Held:
    """Return the extent of an output on all workers. `request` may also move a reader. Each worker may take
    `seconds` until it is free to answer.
    """
    replies = workers.ask_members(to_all(request), seconds)
    return Held(
        min(reply.integer("complete") for reply in replies),
        max(reply.integer("kept") for reply in replies),
        max(reply.integer("last") for reply in replies),
        tuple(reply.text("origin") for reply in replies),
        tuple(
            map(_span, replies[0].items("without"))
        ),  # the same on all workers, as far as epochs are complete
        replies[0].text("why"),
    )


def _span(entry: object) -> tuple[int, int]:
    match entry:
        case [int(first), int(stop)]:
            return first, stop
    raise PeerError(f"a worker reports {entry!r:.100} for epochs without an answer")


def _ask(workers: Workers, worker: int, output: OutputSlice, first: int, after: int) -> Reply:
    def makes(members: Members) -> Requests:
        if after not in (0, members.incarnation):
            raise RestartedError(
                f"the cluster has started again while output {output.output!r} of dataflow {output.dataflow} "
                "was being read: read it again from its first piece"
            )
        return [(worker, output.piece(worker, first, after), None)]

    seconds = output.timeout_seconds + REPLY_SECONDS_MAX + ANSWER_SECONDS_MAX
    (reply,) = workers.ask_members(makes, seconds)
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
